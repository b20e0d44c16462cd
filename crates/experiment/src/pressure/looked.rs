//! What the memory of a run looked like over time, and at the end of each phase.

use slablab_model::Ps;
pub use slablab_sim::memory::sampler::{Frames, Sample};
use slablab_sim::memory::sampler::{PartEnd, Seen};
pub use slablab_sim::memory::views::ProcessMemory;
use slablab_sim::programs::script as sim;
use slablab_sim::record::Limits;
pub use slablab_sim::record::{Recorder, Recording};

/// A recorder of a run: samples every `every` picoseconds, and so many events.
pub fn recorder(every: Ps, events: usize) -> Recorder {
    Recorder::new(Limits { events, ..Limits::default() }).sampled(every)
}

/// The memory of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Samples, if the run's recorder keeps them.
    pub samples: Vec<Sample>,
    /// Ends of phases, by time.
    pub ends: Vec<PhaseEnd>,
}

/// The memory at the end of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseEnd {
    /// The phase; `PROCESS: PHASE` if it is not one of the main process.
    pub phase: String,
    /// When, picoseconds since the machine's start.
    pub at: Ps,
    /// /proc/meminfo: name and KiB.
    pub meminfo: Vec<(&'static str, u64)>,
    /// The processes that had memory.
    pub processes: Vec<ProcessMemory>,
}

impl Looked {
    /// The memory of a run with these records and samples.
    pub(super) fn new(records: &[sim::Record], samples: Vec<Sample>) -> Looked {
        let end = |record: &sim::Record, phase: &sim::Phase| PhaseEnd {
            phase: match record.process.as_str() {
                "" => phase.label.clone(),
                process => format!("{process}: {}", phase.label),
            },
            at: phase.uptime_ns * 1_000,
            meminfo: phase.end.meminfo.clone(),
            processes: phase.end.processes.clone(),
        };
        let of = |record: &sim::Record| -> Vec<PhaseEnd> {
            record.phases.iter().map(|phase| end(record, phase)).collect()
        };
        let mut ends: Vec<PhaseEnd> = records.iter().flat_map(of).collect();
        ends.sort_by_key(|end| end.at);
        Looked { samples, ends }
    }

    /// The memory of the last run that this recorder saw; `None` if it had no page replacement.
    pub fn of(recorder: &Recorder) -> Option<Looked> {
        let Seen { samples, parts } = Seen::of(recorder)?;
        let end = |part: PartEnd| PhaseEnd {
            phase: part.name,
            at: part.at,
            meminfo: part.meminfo,
            processes: part.processes,
        };
        Some(Looked { samples, ends: parts.into_iter().map(end).collect() })
    }

    /// The samples of the multiples of `every` picoseconds, and the last one. They are there if `every` is a
    /// multiple of the time between two samples.
    pub fn every(&self, every: Ps) -> Vec<&Sample> {
        let last = self.samples.len().saturating_sub(1);
        let due = |(at, sample): &(usize, &Sample)| sample.at.is_multiple_of(every) || *at == last;
        self.samples.iter().enumerate().filter(due).map(|(_, sample)| sample).collect()
    }
}
