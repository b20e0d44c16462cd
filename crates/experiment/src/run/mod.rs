//! Runs the cells of an experiment on all cores, keeps whole cells, joins parts.

pub mod folder;
pub mod observe;
pub mod results;

use crate::judge::asked;
use crate::plan::{Change, Plan};
use crate::source::Experiment;
use crate::workload::Estimate;
use crate::workload::Runs;
use folder::Folder;
use rayon::prelude::*;
use results::Results;
use serde_json::json;
use sha2::{Digest, Sha256};
use slablab_engines::Ended;
use slablab_report::error::{At, Error, Result};
use slablab_sim::pulse::{Cancelled, Pulse};
use slablab_sim::record::Recorder;
use slablab_sim::tally::Failed;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest estimated run without `--force`.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// How an experiment is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What is changed of it.
    pub change: Change,
    /// The part of its cells to run; `None` for all.
    pub shard: Option<Shard>,
    /// The cells to run, by their places in the plan; `None` for all.
    pub cells: Option<Vec<usize>>,
    /// Threads; `None` for one of each CPU.
    pub threads: Option<usize>,
    /// Whether it is run although it is estimated to need too much of the host.
    pub force: bool,
    /// The program and its version: results of another one are not used again.
    pub program: String,
    /// Told how far the runs are that have not ended, in the unit of `progress` ([`run`]).
    pub pulse: Pulse,
}

/// One of several equal parts of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 0.
    pub part: usize,
    /// Of how many.
    pub of: usize,
}

impl Shard {
    /// Understands `3/8`: the third of eight parts.
    ///
    /// # Errors
    /// What is expected.
    pub fn parse(text: &str) -> std::result::Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Shard { part: part - 1, of }),
            _ => Err("expected a part of the cells, as 3/8".into()),
        }
    }

    pub(crate) fn has(self, cell: usize) -> bool {
        cell % self.of == self.part
    }
}

/// Runs an experiment. `progress` is told estimated nanoseconds of one core: those that are done, and all. If
/// `options.pulse` is cancelled, the thread unwinds with [`Cancelled`]; whole cells are in the folder.
///
/// # Errors
/// An experiment that needs too much of the host, or a folder that cannot be written.
pub fn run(
    experiment: &Experiment,
    options: &Options,
    folder: Option<&Folder>,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Results> {
    // A page has no clock, and no folder.
    let start = folder.map(|_| Instant::now());
    let plan = Plan::new(experiment, &options.change)?;
    let keys = plan.keys(experiment, &options.program);
    let (written, estimates) = (plan.json(&options.program, &keys), plan.estimates(experiment));
    let wanted = |at: usize| options.cells.as_ref().is_none_or(|cells| cells.contains(&at));
    let mine = |at: usize| options.shard.is_none_or(|shard| shard.has(at)) && wanted(at);
    let kept = |at: usize| folder.filter(|_| mine(at)).and_then(|folder| folder.cell(&keys[at]));
    let runs: Vec<Option<Runs>> = (0..plan.cells.len()).map(kept).collect();
    let todo: Vec<usize> = (0..plan.cells.len()).filter(|at| mine(*at) && runs[*at].is_none()).collect();
    let threads = options.threads.unwrap_or_else(rayon::current_num_threads).max(1);
    if !options.force {
        affordable(experiment, todo.iter().map(|at| estimates[*at]), threads)?;
    }
    if let Some(folder) = folder {
        folder.begin(experiment, &written)?;
    }
    let mut computed = BTreeSet::new();
    let mut wanted: BTreeMap<usize, u32> = todo.iter().map(|at| (*at, plan.runs(&plan.cells[*at]))).collect();
    let mut results =
        Results { experiment: experiment.clone(), plan, runs, computed: 0, program: options.program.clone() };
    let mut done = 0;
    loop {
        // A part of the cells does not have both sides of its questions.
        let is_part = options.shard.is_some() || options.cells.is_some();
        if wanted.is_empty() && !is_part {
            wanted = asked::wanted(&results);
        }
        if wanted.is_empty() {
            break;
        }
        let work = Work::new(&results, &wanted, (folder, &keys), &options.pulse, done);
        let found;
        (found, done) = on_threads(threads, || work.all(progress)).at(&experiment.path)??;
        for (at, found) in std::mem::take(&mut wanted).into_keys().zip(found) {
            results.runs[at] = Some(found);
            computed.insert(at);
        }
    }
    results.computed = computed.len();
    if let Some(folder) = folder {
        results.write(folder)?;
        let host = json!({
            "schema": "slablab.host.1",
            "program": options.program,
            "experiment": experiment.path,
            "cells_computed": results.computed,
            "cells_kept": results.runs.iter().flatten().count() - results.computed,
            "threads": threads,
            "wall_s": start.map(|start| start.elapsed().as_secs_f64()),
            "shard": options.shard.map(|shard| format!("{}/{}", shard.part + 1, shard.of)),
            "host": of_host("hostname"),
            "kernel": of_host("osrelease"),
        });
        folder.write_json("host.json", &host)?;
    }
    Ok(results)
}

/// Does work on so many threads of its own (0: one of each CPU); where a system has none, on this one.
///
/// # Errors
/// The system gives no more threads.
pub(crate) fn on_threads<T: Send>(
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> std::result::Result<T, rayon::ThreadPoolBuildError> {
    match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
        Ok(pool) => Ok(pool.install(work)),
        Err(_) if cfg!(target_family = "wasm") => Ok(work()),
        Err(error) => Err(error),
    }
}

/// What the kernel of this host says of itself.
fn of_host(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?;
    Some(text.trim().to_string())
}

/// Joins folders that hold parts of one experiment.
///
/// # Errors
/// Folders of different experiments or programs, or cells that none of them has.
pub fn join(folders: &[PathBuf]) -> Result<Results> {
    let first = folders.first().ok_or_else(|| Error::new("report", "expected a folder of results"))?;
    let written = folder::plan(first)?;
    let bad = |folder: &Path, what: &str| Error::new(folder, what);
    let (change, program) =
        Plan::change_of(&written).ok_or_else(|| bad(first, "plan.json is no plan of this program"))?;
    let experiment = Experiment::stored(first)?;
    let plan = Plan::new(&experiment, &change)?;
    let keys = plan.keys(&experiment, &program);
    for other in folders {
        if folder::plan(other)? != plan.json(&program, &keys) {
            let what = "these are results of another experiment, or of another program: run it again";
            return Err(bad(other, what));
        }
    }
    let cell = |key: &String| folders.iter().find_map(|folder| folder::cell(folder, key));
    let runs: Vec<Option<Runs>> = keys.iter().map(cell).collect();
    let missing = runs.iter().filter(|runs| runs.is_none()).count();
    if missing > 0 {
        let what =
            format!("{missing} of {} cells are missing: expected the folders of all parts", runs.len());
        return Err(bad(first, &what));
    }
    Ok(Results { experiment, plan, runs, computed: 0, program })
}

/// Refuses what takes too much of the host's memory or time.
fn affordable(
    experiment: &Experiment,
    cells: impl Iterator<Item = Estimate> + Clone,
    threads: usize,
) -> Result<()> {
    let host_ns = cells.clone().map(|cell| cell.host_ns).fold(0, u64::saturating_add);
    let host_bytes = cells.map(|cell| cell.host_bytes).max().unwrap_or(0);
    let time = Duration::from_nanos(host_ns / threads as u64);
    let bytes = host_bytes.saturating_mul(threads as u64);
    let refuse = |what: String| {
        Err(Error::new(
            &experiment.path,
            format!("{what}: --quick or fewer repeats need less; --force runs it"),
        ))
    };
    if time > LONGEST {
        return refuse(format!("about {} minutes on {threads} threads", time.as_secs() / 60));
    }
    match available() {
        Some(available) if bytes > available / 4 * 3 => refuse(format!(
            "about {} MiB on {threads} threads, of {} available",
            bytes >> 20,
            available >> 20
        )),
        _ => Ok(()),
    }
}

/// Memory that this host has left; `None` where the system does not say.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// The runs that are to be done.
struct Work<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    folder: Option<&'a Folder>,
    keys: &'a [String],
    /// The cells, in the plan's order.
    todo: Vec<usize>,
    cells: Vec<Open>,
    /// Estimated nanoseconds of all runs that are known to be needed.
    whole: AtomicU64,
    done: AtomicU64,
    pulse: &'a Pulse,
}

/// A cell whose runs are not all done.
struct Open {
    left: AtomicUsize,
    /// As many as the cell is known to need.
    runs: Mutex<Vec<Option<std::result::Result<super::workload::Sample, Failed>>>>,
    /// Estimated nanoseconds of one run.
    each: u64,
}

impl<'a> Work<'a> {
    /// The runs that cells lack of so many. `done` are nanoseconds of earlier rounds.
    fn new(
        results: &'a Results,
        wanted: &BTreeMap<usize, u32>,
        (folder, keys): (Option<&'a Folder>, &'a [String]),
        pulse: &'a Pulse,
        done: u64,
    ) -> Work<'a> {
        let (experiment, plan) = (&results.experiment, &results.plan);
        let open = |(at, wanted): (&usize, &u32)| {
            let cell = &plan.cells[*at];
            let spec = &experiment.machines[cell.machine].machine.spec;
            let mut runs: Vec<_> = results.runs[*at].iter().flatten().cloned().map(Some).collect();
            let left = (*wanted as usize).saturating_sub(runs.len());
            runs.resize(*wanted as usize, None);
            Open {
                left: AtomicUsize::new(left),
                runs: Mutex::new(runs),
                each: (experiment.file.workload.estimate)(spec, &cell.values).host_ns.max(1),
            }
        };
        let cells: Vec<Open> = wanted.iter().map(open).collect();
        let new: u64 = cells.iter().map(|cell| cell.each * cell.left.load(Ordering::Relaxed) as u64).sum();
        let (whole, done) = (AtomicU64::new(done + new), AtomicU64::new(done));
        Work {
            experiment,
            plan,
            folder,
            keys,
            todo: wanted.keys().copied().collect(),
            cells,
            whole,
            done,
            pulse,
        }
    }

    /// Runs all of it. Which thread runs what does not matter: each run has its own machine and seed, and a
    /// cell's own runs alone decide whether it needs more. Also gives the nanoseconds that are done.
    fn all(self, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<(Vec<Runs>, u64)> {
        progress(self.done.load(Ordering::Relaxed), self.whole.load(Ordering::Relaxed));
        loop {
            let each = self.missing();
            if each.is_empty() {
                break;
            }
            // One run at a time of each thread: runs differ in length, and finished cells are kept early.
            each.par_iter().with_max_len(1).try_for_each(|(open, run)| self.one(*open, *run, progress))?;
        }
        let finished = |open: Open| {
            let runs = open.runs.into_inner().expect("no run panics while it is kept");
            runs.into_iter().map(|run| run.expect("every run is done")).collect()
        };
        let done = self.done.into_inner();
        Ok((self.cells.into_iter().map(finished).collect(), done))
    }

    /// The runs that are known to be needed and not done: the cell's place, and the run's in the cell.
    fn missing(&self) -> Vec<(usize, u32)> {
        let of = |(at, open): (usize, &Open)| {
            let runs = open.runs.lock().expect("no run panics while it is kept");
            let missing = runs.iter().enumerate().filter(|(_, run)| run.is_none());
            missing.map(|(run, _)| (at, run as u32)).collect::<Vec<_>>()
        };
        self.cells.iter().enumerate().flat_map(of).collect()
    }

    fn one(&self, at: usize, run: u32, progress: &(dyn Fn(u64, u64) + Sync)) -> Result<()> {
        self.ends_if_cancelled();
        let (cell, open) = (&self.plan.cells[self.todo[at]], &self.cells[at]);
        let setup = self.plan.setup(self.experiment, cell, run);
        let workload = self.experiment.file.workload;
        let seed = self.plan.seed_of(run);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let recorder = Recorder::default().with_beat(self.pulse.run(open.each));
            let values = self.plan.values(self.experiment, cell, run);
            (workload.observe)(&setup, &values, seed, &recorder).map(|observed| observed.sample)
        }));
        // A cancelled run ends as one that failed.
        self.ends_if_cancelled();
        let ran = ran.unwrap_or_else(|panic| Err(broken(&*panic)));
        open.runs.lock().expect("no run panics while it is kept")[run as usize] = Some(ran);
        let done = self.done.fetch_add(open.each, Ordering::Relaxed) + open.each;
        progress(done, self.whole.load(Ordering::Relaxed));
        match open.left.fetch_sub(1, Ordering::AcqRel) {
            1 => self.looked_at(at),
            _ => Ok(()),
        }
    }

    /// Unwinds with [`Cancelled`] if the caller has cancelled the runs.
    fn ends_if_cancelled(&self) {
        if self.pulse.is_cancelled() {
            Cancelled::throw();
        }
    }

    /// The last of the runs that a cell was known to need is done: it is kept, or needs more.
    fn looked_at(&self, at: usize) -> Result<()> {
        let (cell, open) = (&self.plan.cells[self.todo[at]], &self.cells[at]);
        let file = &self.experiment.file;
        let mut all = open.runs.lock().expect("no run panics while it is kept");
        let runs: Runs = all.iter().map(|run| run.clone().expect("every run is done")).collect();
        if let Some(wanted) = self.plan.next(cell, &runs, &file.workload.metrics[file.metric]) {
            let more = wanted as usize - runs.len();
            all.resize(wanted as usize, None);
            open.left.store(more, Ordering::Release);
            self.whole.fetch_add(open.each * more as u64, Ordering::Relaxed);
            return Ok(());
        }
        match self.folder {
            Some(folder) => folder.keep(&self.keys[self.todo[at]], &runs),
            None => Ok(()),
        }
    }
}

/// A run that ended with a panic: a bug of the program.
pub(crate) fn broken(panic: &(dyn std::any::Any + Send)) -> Failed {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    // The code of an engine that is not ours ended it, and says why.
    let text = text.or_else(|| panic.downcast_ref::<Ended>().map(|ended| ended.0.as_str()));
    Failed::Broken(text.unwrap_or("no reason was given").to_string())
}

/// A program by its version and its bytes: results of another build are not used again.
///
/// # Errors
/// A file that cannot be read.
pub fn program(version: &str, path: &Path) -> Result<String> {
    let digest = Sha256::digest(std::fs::read(path).at(path)?);
    let digest = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok(format!("{version} {digest}"))
}
