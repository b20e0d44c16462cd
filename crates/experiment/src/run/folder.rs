//! A folder of results.
//!
//! ```text
//! FOLDER/experiment.toml   the experiment as it was read
//! FOLDER/machine-0.toml    its first machine as it was read
//! FOLDER/recording-0       its first recording, if it has one
//! FOLDER/plan.json         size, repeats, seed, the key of each cell
//! FOLDER/cells/KEY.json    the runs of one cell: what a run into this folder need not do again
//! FOLDER/samples.parquet   every number of every run
//! FOLDER/summary.json      the statistics of each cell
//! FOLDER/host.json         wall time, host, paths: the only file that differs from run to run
//! FOLDER/.lock             held by the run that writes here
//! ```
//!
//! Every file appears whole or not at all. So a run that is killed leaves whole cells, and the next one into
//! the folder goes on behind them.

use crate::source::{EXPERIMENT, Experiment, stored_input, stored_machine};
use crate::workload::Runs;
use crate::workload::Sample;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use slablab_model::LockTimes;
use slablab_report::error::{At, Error, Result};
use slablab_report::{AtomicFile, Limit, read_text_at_most};
use slablab_sim::tally::Failed;
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

const LOCK: &str = ".lock";
const PLAN: &str = "plan.json";
const CELLS: &str = "cells";

/// A folder that this process alone writes to.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Gives the lock back when it is closed, also by the end of the process.
    lock: File,
}

impl Folder {
    /// Opens a folder to write results to, and makes it if it is not there.
    ///
    /// # Errors
    /// A folder that another process writes to, or that holds other files than results.
    pub fn open(path: &Path) -> Result<Folder> {
        let is_ours = path.join(LOCK).exists();
        if let Ok(mut entries) = fs::read_dir(path)
            && !is_ours
            && entries.next().is_some()
        {
            let expected = "expected a new or empty folder, or one of earlier results";
            return Err(Error::new(path, format!("the folder holds other files: {expected}")));
        }
        fs::create_dir_all(path.join(CELLS)).at(path)?;
        let lock = path.join(LOCK);
        let file = File::options().create(true).append(true).open(&lock).at(&lock)?;
        match file.try_lock() {
            Ok(()) => Ok(Folder { path: path.to_path_buf(), lock: file }),
            Err(TryLockError::WouldBlock) => {
                let what = "another slablab runs into this folder: wait for its end, or give another folder";
                Err(Error::new(path, what))
            }
            Err(TryLockError::Error(error)) => Err(Error::new(&lock, error)),
        }
    }

    /// Gives the folder back to others, also if forked processes have inherited the lock.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn close(self) -> Result<()> {
        self.lock.unlock().at(&self.path)
    }

    /// Writes the experiment and its machines, as they were read, and the plan.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn begin(&self, experiment: &Experiment, plan: &Value) -> Result<()> {
        self.write(EXPERIMENT, experiment.file.text.as_bytes())?;
        for (at, on) in experiment.machines.iter().enumerate() {
            self.write(&stored_machine(at), on.text.as_bytes())?;
        }
        for (at, input) in experiment.file.inputs().enumerate() {
            self.copy(&stored_input(at), input.path().unwrap_or(Path::new(input.given())))?;
        }
        self.write_json(PLAN, plan)
    }

    /// Writes a document.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write_json(&self, name: &str, value: &Value) -> Result<()> {
        self.write(name, slablab_report::json::document(value).as_bytes())
    }

    /// Writes a file that appears whole or not at all.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let mut file = AtomicFile::create(&path)?;
        file.write_all(bytes).at(&path)?;
        file.commit()
    }

    /// Copies a file; the copy appears whole or not at all.
    fn copy(&self, name: &str, from: &Path) -> Result<()> {
        let path = self.path.join(name);
        let mut file = AtomicFile::create(&path)?;
        std::io::copy(&mut File::open(from).at(from)?, &mut file).at(from)?;
        file.commit()
    }

    /// The runs of a cell, if an earlier run finished it.
    pub fn cell(&self, key: &str) -> Option<Runs> {
        cell(&self.path, key)
    }

    /// Keeps the runs of a cell.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn keep(&self, key: &str, runs: &Runs) -> Result<()> {
        self.write_json(&name(key), &cell_json(key, runs))
    }
}

/// A document of a folder of results. A cell of 10,000 runs has some MiB.
pub(crate) const RESULT: Limit = Limit::mib("a document of results", 256);

/// The plan of a folder of results.
///
/// # Errors
/// A folder without one.
pub fn plan(folder: &Path) -> Result<Value> {
    let path = folder.join(PLAN);
    if !path.exists() {
        let expected = "expected a folder of results that `slablab run --folder FOLDER` wrote";
        return Err(Error::new(folder, format!("there is no {PLAN} here: {expected}")));
    }
    let text = read_text_at_most(&path, RESULT)?;
    serde_json::from_str(&text).at(&path)
}

/// The runs of a cell in a folder. A file that does not read is as good as none: the cell runs again.
pub fn cell(folder: &Path, key: &str) -> Option<Runs> {
    let text = read_text_at_most(&folder.join(name(key)), RESULT).ok()?;
    runs_of(key, &serde_json::from_str(&text).ok()?)
}

/// The runs of a cell as a document.
pub fn cell_json(key: &str, runs: &Runs) -> Value {
    let runs: Vec<Value> = runs.iter().map(|run| run.as_ref().map_or_else(failed, sample)).collect();
    json!({ "schema": "slablab.cell.1", "key": key, "runs": runs })
}

/// What [`cell_json`] wrote; `None` for another cell, and for another document.
pub fn runs_of(key: &str, document: &Value) -> Option<Runs> {
    if document["key"] != key {
        return None;
    }
    document["runs"].as_array()?.iter().map(run_of).collect()
}

fn name(key: &str) -> String {
    format!("{CELLS}/{key}.json")
}

/// How a run ended that gave no numbers, in a document.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Ended {
    /// The machine cannot be modelled.
    Machine { text: String },
    /// A bug of the program.
    Broken { text: String },
    /// Tasks wait for ever: each with what it waits for.
    Stuck { tasks: Vec<String> },
    /// Reclaim freed no page for so many seconds of the model's time.
    Livelock { seconds: u64, tasks: Vec<String> },
    /// No page was found after so many allocations and frees. What each cache held then.
    #[serde(rename = "out of memory")]
    OutOfMemory { events: u64, caches: Vec<Held> },
}

/// What a cache holds.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Held {
    name: String,
    objects: u64,
    /// Of its slabs.
    bytes: u64,
}

impl From<&Failed> for Ended {
    fn from(failed: &Failed) -> Ended {
        match failed.clone() {
            Failed::Machine(text) => Ended::Machine { text },
            Failed::Broken(text) => Ended::Broken { text },
            Failed::Stuck(tasks) => Ended::Stuck { tasks },
            Failed::Livelock { seconds, tasks } => Ended::Livelock { seconds, tasks },
            Failed::OutOfMemory { events, caches } => {
                let held = |(name, objects, bytes)| Held { name, objects, bytes };
                Ended::OutOfMemory { events, caches: caches.into_iter().map(held).collect() }
            }
        }
    }
}

impl From<Ended> for Failed {
    fn from(ended: Ended) -> Failed {
        match ended {
            Ended::Machine { text } => Failed::Machine(text),
            Ended::Broken { text } => Failed::Broken(text),
            Ended::Stuck { tasks } => Failed::Stuck(tasks),
            Ended::Livelock { seconds, tasks } => Failed::Livelock { seconds, tasks },
            Ended::OutOfMemory { events, caches } => {
                let held = |Held { name, objects, bytes }| (name, objects, bytes);
                Failed::OutOfMemory { events, caches: caches.into_iter().map(held).collect() }
            }
        }
    }
}

fn failed(failed: &Failed) -> Value {
    json!({ "failed": Ended::from(failed) })
}

fn sample(sample: &Sample) -> Value {
    let locks = sample.locks.iter().map(|(name, times)| {
        let LockTimes { taken, waited, wait, hold } = *times;
        let times = json!({ "taken": taken, "waited": waited, "wait_ps": wait, "hold_ps": hold });
        (name.clone(), times)
    });
    let locks: Map<String, Value> = locks.collect();
    json!({ "metrics": sample.metrics, "counters": sample.counters, "locks": locks })
}

fn run_of(value: &Value) -> Option<std::result::Result<Sample, Failed>> {
    if let Some(why) = value.get("failed") {
        return Some(Err(serde_json::from_value::<Ended>(why.clone()).ok()?.into()));
    }
    let numbers = |value: &Value| -> Option<BTreeMap<String, u64>> {
        value.as_object()?.iter().map(|(name, number)| Some((name.clone(), number.as_u64()?))).collect()
    };
    let locks = value["locks"].as_object()?.iter().map(|(name, times)| {
        let number = |what: &str| times[what].as_u64();
        let (taken, waited) = (number("taken")?, number("waited")?);
        let (wait, hold) = (number("wait_ps")?, number("hold_ps")?);
        Some((name.clone(), LockTimes { taken, waited, wait, hold }))
    });
    let locks = locks.collect::<Option<_>>()?;
    Some(Ok(Sample { metrics: numbers(&value["metrics"])?, counters: numbers(&value["counters"])?, locks }))
}
