//! A closer look at cells: one repeat again, with the time of each CPU, or recorded for a viewer.

use crate::plan::Plan;
use crate::pressure::looked::{Looked, recorder};
use crate::run::on_threads;
use crate::source::Experiment;
use crate::workload::Observed;
use rayon::prelude::*;
use slablab_model::Ps;
use slablab_report::error::{Error, Result};
use slablab_sim::profile::Profile;
use slablab_sim::pulse::Beat;
use slablab_sim::record::{Holds, Limits, MEMORY, Recorder, Recording};
pub use slablab_sim::slabs::CacheState;
use slablab_sim::tally::Failed;
use slablab_sim::trace::Trace;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Values of the memory over the time of a run: so many that a page draws them without a program.
const MEMORY_POINTS: usize = 400;

/// A closer look at a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Where its time went; `None` if the workload does not tell.
    pub profile: Option<Profile>,
    /// Bytes of slabs by time, picoseconds from the begin of the counted part; the highest of each step.
    pub memory: Vec<(u64, u64)>,
    /// What workloads with page replacement sample, by time as `memory`.
    pub sampled: Vec<Sampled>,
}

/// A track of values that a run recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Its group.
    pub group: String,
    /// Its name.
    pub name: String,
    /// Whether the values are bytes.
    pub bytes: bool,
    /// Time and value.
    pub points: Vec<(u64, u64)>,
}

/// Events of a recording: about 20 MB of trace. What comes after them is counted.
pub const RECORDED_EVENTS: usize = 1_000_000;

/// Allocations of a trace that have lines: about 1 MB.
pub const TRACED_ALLOCATIONS: u64 = 1_000;

/// Runs the first repeat of a cell, and tells a recorder what it does.
fn observe(
    experiment: &Experiment,
    plan: &Plan,
    cell: usize,
    recorder: &Recorder,
) -> std::result::Result<Observed, Failed> {
    let seed = plan.seed_of(0);
    let setup = plan.setup(experiment, &plan.cells[cell], 0);
    let values = &plan.cells[cell].values;
    let workload = experiment.file.workload;
    let run = catch_unwind(AssertUnwindSafe(|| (workload.observe)(&setup, values, seed, recorder)));
    run.unwrap_or_else(|panic| Err(crate::run::broken(&*panic)))
}

/// Where the time of the first repeat of each cell went, and its memory. `None` for a cell with other costs,
/// and for a run that failed.
pub fn seen(experiment: &Experiment, plan: &Plan, threads: Option<usize>) -> Vec<Option<Seen>> {
    let of = |cell: usize| {
        let plain = !plan.cells[cell].drawn;
        plain.then(|| {
            let recorder = Recorder::of_values(MEMORY_POINTS);
            let observed = observe(experiment, plan, cell, &recorder).ok()?;
            Some(seen_by(observed.profile, &recorder.take()))
        })?
    };
    let all = || (0..plan.cells.len()).into_par_iter().with_max_len(1).map(of).collect();
    on_threads(threads.unwrap_or(0), all).unwrap_or_else(|_| all())
}

/// The name of the track of slabs in the group of memory, which every kernel has.
const SLABS: &str = "slabs";

/// The tracks of values. Times are from the first value on.
fn sampled(recording: &Recording) -> Vec<Sampled> {
    let start = recording.values.iter().map(|value| value.at).min().unwrap_or(0);
    let track = |(at, (group, name, holds)): (usize, &(String, String, Holds))| {
        let values = recording.values.iter().filter(move |value| value.track.0 as usize == at);
        let points = values.map(|value| (value.at - start, value.value.max(0) as u64)).collect();
        let bytes = *holds == Holds::Bytes;
        Sampled { group: group.clone(), name: name.clone(), bytes, points }
    };
    recording.tracks.iter().enumerate().map(track).filter(|track| !track.points.is_empty()).collect()
}

/// What a recorder of values has seen of a run.
fn seen_by(profile: Option<Profile>, recording: &Recording) -> Seen {
    let mut sampled = sampled(recording);
    let is_slabs = |track: &Sampled| track.group == MEMORY && track.name == SLABS;
    let memory =
        sampled.iter().find(|track| is_slabs(track)).map_or(Vec::new(), |track| track.points.clone());
    // A kernel without page replacement samples nothing else.
    if sampled.len() == 1 {
        sampled.clear();
    }
    Seen { profile, memory, sampled }
}

/// Refuses a cell that the plan does not have.
///
/// # Errors
/// Which cells there are.
pub fn expect_cell(experiment: &Experiment, plan: &Plan, cell: usize) -> Result<()> {
    if cell < plan.cells.len() {
        return Ok(());
    }
    let what = format!("--cell {}: expected 1 to {}", cell + 1, plan.cells.len());
    Err(Error::new(&experiment.path, what))
}

/// The first repeat of a cell as a recording of its counted part, up to [`RECORDED_EVENTS`].
///
/// # Errors
/// A cell that does not exist, a run that failed, a workload that records nothing.
pub fn record(experiment: &Experiment, plan: &Plan, cell: usize) -> Result<Recording> {
    expect_cell(experiment, plan, cell)?;
    let recorder = Recorder::new(Limits { events: RECORDED_EVENTS, ..Limits::default() });
    let run = observe(experiment, plan, cell, &recorder);
    run.map_err(|bad| Error::new(&experiment.path, format!("cell {}: {bad}", cell + 1)))?;
    let recording = recorder.take();
    if recording.tracks.is_empty() {
        let name = experiment.file.workload.name;
        return Err(Error::new(&experiment.path, format!("the workload {name} records nothing")));
    }
    Ok(recording)
}

/// The memory of the first repeat of a cell over time, a sample every `every` picoseconds; and how the run
/// failed, if it did. `beat` is told how far it is.
///
/// # Errors
/// A cell that does not exist, a workload without page replacement.
pub fn looked(
    experiment: &Experiment,
    plan: &Plan,
    cell: usize,
    every: Ps,
    beat: Beat,
) -> Result<(Looked, Option<Failed>)> {
    expect_cell(experiment, plan, cell)?;
    let recorder = recorder(every, 0).with_beat(beat);
    let run = observe(experiment, plan, cell, &recorder);
    let Some(looked) = Looked::of(&recorder) else {
        let name = experiment.file.workload.name;
        let what = match run {
            Err(failed) => format!("cell {}: {failed}", cell + 1),
            Ok(_) => format!("the workload {name} has no page replacement, and no log of memory"),
        };
        return Err(Error::new(&experiment.path, what));
    };
    Ok((looked, run.err()))
}

/// The slab caches of the first repeat of a cell when it has ended.
///
/// # Errors
/// A cell that does not exist, a run that failed.
pub fn slabs(experiment: &Experiment, plan: &Plan, cell: usize) -> Result<Vec<CacheState>> {
    expect_cell(experiment, plan, cell)?;
    let recorder = Recorder::of_values(MEMORY_POINTS);
    let run = observe(experiment, plan, cell, &recorder);
    run.map_err(|bad| Error::new(&experiment.path, format!("cell {}: {bad}", cell + 1)))?;
    Ok(recorder.take_slabs())
}

/// The allocations of the first repeat of a cell, in its counted part: lines of the first
/// [`TRACED_ALLOCATIONS`], counts of all.
///
/// # Errors
/// A cell that does not exist, a run that failed, a workload that does not trace.
pub fn trace(experiment: &Experiment, plan: &Plan, cell: usize) -> Result<Trace> {
    expect_cell(experiment, plan, cell)?;
    let recorder = Recorder::of_allocations(TRACED_ALLOCATIONS);
    let run = observe(experiment, plan, cell, &recorder);
    run.map_err(|bad| Error::new(&experiment.path, format!("cell {}: {bad}", cell + 1)))?;
    let trace = recorder.take_trace().unwrap_or_default();
    if trace.names.is_empty() {
        let name = experiment.file.workload.name;
        return Err(Error::new(&experiment.path, format!("the workload {name} traces no allocation")));
    }
    Ok(trace)
}
