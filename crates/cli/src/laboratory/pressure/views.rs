//! What `slablab pressure run` shows of a run over time: logs, tables, a page, a trace.

use crate::input::command_line;
use crate::laboratory::logs::{Logs, MS, greatest_common_divisor};
use crate::outcome::{Failure, tell};
use crate::output::{check, named, write_out};
use slablab_experiment::output::{Column, write_perfetto};
use slablab_experiment::pressure::looked::{Recorder, Recording, recorder};
use slablab_experiment::pressure::run::Run;
use slablab_experiment::run::observe::RECORDED_EVENTS;
use slablab_report::{Answer, AtomicFile, visible};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Time between two samples of a page or a trace, in milliseconds.
const LOOKED_EVERY: u64 = 100;
/// Views of memory over time.
#[derive(clap::Args)]
pub(super) struct Views {
    #[command(flatten)]
    logs: Logs,
    /// Also write a page with charts of the first run to FILE: memory by use, faults, swap, kswapd, disks
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also record the first run for ui.perfetto.dev: tasks, kswapd, the flusher, requests of disks, memory
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

/// What the runs record.
pub(super) struct Recorders {
    /// Milliseconds between two samples; `None`: nothing is recorded.
    every: Option<u64>,
    /// The first run is recorded with its events.
    has_trace: bool,
}

impl Recorders {
    /// The recorder of a run.
    pub(super) fn of(&self, is_first: bool) -> Recorder {
        let Some(every) = self.every else { return Recorder::default() };
        let events = if is_first && self.has_trace { RECORDED_EVENTS } else { 0 };
        recorder(every * MS, events)
    }
}

impl Views {
    /// Refuses files that are the script or each other, and those that cannot be written.
    pub(super) fn check(&self, script: &PathBuf) -> Result<(), Failure> {
        let files = || named("--html", &self.html).chain(named("--perfetto", &self.perfetto));
        check(named("the script", [script]), files())?;
        for (label, path) in files() {
            if path == Path::new("-") {
                return Err(format!("{label} writes a file: expected its name, found -").into());
            }
            drop(AtomicFile::create(path)?);
        }
        Ok(())
    }

    /// Whether logs or tables are printed instead of the answer.
    pub(super) fn replace_answer(&self) -> bool {
        self.logs.are_wanted()
    }

    /// What the runs record for these views. `totals`: the answer has totals of whole runs.
    pub(super) fn recorders(&self, totals: bool) -> Recorders {
        let looked = self.html.is_some() || self.perfetto.is_some() || totals;
        let times = self.logs.times().into_iter().chain([looked.then_some(LOOKED_EVERY)]);
        // Each view takes those of the samples that are at its times.
        let every = times.flatten().reduce(greatest_common_divisor);
        Recorders { every, has_trace: self.perfetto.is_some() }
    }

    /// Logs and tables of all runs.
    pub(super) fn text(&self, columns: &[Column<'_>]) -> String {
        let runs = columns.iter().flat_map(|(vm, runs)| runs.iter().map(move |run| (vm, *run)));
        let runs: Vec<(&String, &Run)> = runs.collect();
        let mut parts = Vec::new();
        for (vm, run) in &runs {
            parts.extend(self.logs.texts(&run.looked).into_iter().map(|text| match runs.len() {
                1 => text,
                _ => format!("{vm}, seed {}:\n{text}", run.seed),
            }));
        }
        parts.join("\n")
    }

    /// Writes the page and the trace.
    pub(super) fn write_files(&self, answer: &Answer, recording: &Recording) -> Result<(), Failure> {
        if let Some(path) = &self.html {
            write_out(&answer.page(&command_line()), Some(path))?;
        }
        let Some(path) = &self.perfetto else { return Ok(()) };
        let fail = |error: std::io::Error| format!("{}: {error}", visible::path(path));
        let file = BufWriter::new(AtomicFile::create(path)?);
        let file = write_perfetto(recording, file).map_err(fail)?;
        file.into_inner().map_err(|error| fail(error.into_error()))?.commit()?;
        if recording.left_out > 0 {
            let left_out = recording.left_out;
            tell(format!(
                "{}: the first {RECORDED_EVENTS} events; {left_out} more are left out",
                visible::path(path)
            ));
        }
        Ok(())
    }
}
