//! What `slablab pressure run` shows of a run over time: logs, tables, a page, a trace.

use crate::input::command_line;
use crate::outcome::{Failure, tell};
use crate::output::{check, named, write_out};
use slablab_lab::experiment::observe::RECORDED_EVENTS;
use slablab_lab::output::{Column, meminfo_log, memory_page, processes_table, vmstat_log, write_perfetto};
use slablab_lab::pressure::looked::{Recorder, Recording, recorder};
use slablab_lab::pressure::run::Run;
use slablab_workloads::AtomicFile;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Picoseconds of a millisecond.
const MS: u64 = 1_000_000_000;
/// Time between two samples of a page or a trace, in milliseconds.
const LOOKED_EVERY: u64 = 100;
/// The longest time between two samples, in milliseconds.
const LONGEST: u64 = 86_400_000;

/// Views of memory over time.
#[derive(clap::Args)]
pub(super) struct Views {
    /// Print the log of `vmstat SECONDS` instead of the table: the model's time, 0.001 at least, 1 if not
    /// given
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = milliseconds)]
    vmstat: Option<u64>,
    /// Print /proc/meminfo at the end of each phase instead of the table; with SECONDS also at these times
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "0", value_parser = milliseconds_or_none)]
    meminfo: Option<u64>,
    /// Print the processes at the end of each phase instead of the table: VSZ, RSS, VSZ - RSS, swap, in KiB
    #[arg(long)]
    ps: bool,
    /// Also write a page with charts of the first run to FILE: memory by use, faults, swap, kswapd, disks
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also record the first run for ui.perfetto.dev: tasks, kswapd, the flusher, requests of disks, memory
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

/// Seconds with at most three decimals, as milliseconds.
fn milliseconds(text: &str) -> Result<u64, String> {
    let error = || format!("expected seconds from 0.001 to 86400, found {text:?}");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 3 || whole.len() > 5 || whole.is_empty() {
        return Err(error());
    }
    let ms = whole.parse::<u64>().map_err(|_| error())? * 1_000;
    let ms = ms + format!("{part:0<3}").parse::<u64>().map_err(|_| error())?;
    if (1..=LONGEST).contains(&ms) { Ok(ms) } else { Err(error()) }
}

/// Seconds as [`milliseconds`]; 0 for the missing value.
fn milliseconds_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { milliseconds(text) }
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

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
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
        self.vmstat.is_some() || self.meminfo.is_some() || self.ps
    }

    /// What the runs record for these views. `totals`: the answer has totals of whole runs.
    pub(super) fn recorders(&self, totals: bool) -> Recorders {
        let looked = self.html.is_some() || self.perfetto.is_some() || totals;
        let times = [self.vmstat, self.meminfo.filter(|every| *every > 0), looked.then_some(LOOKED_EVERY)];
        // Each view takes those of the samples that are at its times.
        let every = times.into_iter().flatten().reduce(greatest_common_divisor);
        Recorders { every, has_trace: self.perfetto.is_some() }
    }

    /// Logs and tables of all runs.
    pub(super) fn text(&self, columns: &[Column<'_>]) -> String {
        let runs = columns.iter().flat_map(|(vm, runs)| runs.iter().map(move |run| (vm, *run)));
        let runs: Vec<(&String, &Run)> = runs.collect();
        let mut parts = Vec::new();
        for (vm, run) in &runs {
            let mut add = |text: String| match runs.len() {
                1 => parts.push(text),
                _ => parts.push(format!("{vm}, seed {}:\n{text}", run.seed)),
            };
            if let Some(every) = self.vmstat {
                add(vmstat_log(&run.looked, every * MS));
            }
            if let Some(every) = self.meminfo {
                add(meminfo_log(&run.looked, (every > 0).then_some(every * MS)));
            }
            if self.ps {
                add(processes_table(&run.looked));
            }
        }
        parts.join("\n")
    }

    /// Writes the page and the trace.
    pub(super) fn write_files(
        &self,
        script: &Path,
        columns: &[Column<'_>],
        recording: &Recording,
    ) -> Result<(), Failure> {
        if let Some(path) = &self.html {
            let title = format!("{} under memory pressure", slablab_report::html::name_of(script));
            write_out(&memory_page(&title, columns, &command_line()), Some(path))?;
        }
        let Some(path) = &self.perfetto else { return Ok(()) };
        let fail = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = BufWriter::new(AtomicFile::create(path)?);
        let file = write_perfetto(recording, file).map_err(fail)?;
        file.into_inner().map_err(|error| fail(error.into_error()))?.commit()?;
        if recording.left_out > 0 {
            let left_out = recording.left_out;
            tell(format!(
                "{}: the first {RECORDED_EVENTS} events; {left_out} more are left out",
                path.display()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_three_decimals() {
        for (text, ms) in [("1", 1_000), ("0.001", 1), ("0.25", 250), ("86400", LONGEST), ("2.", 2_000)] {
            assert_eq!(milliseconds(text), Ok(ms), "{text}");
        }
        for text in ["", "0", "0.0001", "-1", "1e3", ".5", "86400.001", "99999999999", "my.t"] {
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }
}
