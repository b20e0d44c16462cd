//! What is kept of a run's memory over time: samples, ends of parts, and when daemons were awake.

use super::views::{Frames, ProcessMemory};
use crate::kernel::AllCpus;
use crate::record::Recorder;
use slablab_model::{Ps, Timed};
use std::cell::RefCell;

/// The group of tracks with a slice for each time that kswapd or the flusher is awake.
const DAEMONS: &str = "Reclaim and writeback";

/// A kernel task that reclaims or writes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    /// Its name.
    pub name: String,
    /// Its CPU time so far.
    pub ran: Ps,
    /// Whether it has work: it does not sleep until somebody asks.
    pub is_awake: bool,
}

/// What a memory's files say at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, picoseconds since the machine's start.
    pub at: Ps,
    /// /proc/vmstat: name and value.
    pub vmstat: Vec<(&'static str, u64)>,
    /// /proc/meminfo: name and KiB.
    pub meminfo: Vec<(&'static str, u64)>,
    /// Page frames by use.
    pub frames: Frames,
    /// /sys/block/DISK/stat.
    pub disks: Vec<(&'static str, [u64; 17])>,
    /// Time of the CPUs so far.
    pub cpu: AllCpus,
    /// kswapd of each node, then the flusher.
    pub daemons: Vec<Daemon>,
    /// Tasks that run or wait for a CPU.
    pub running: u32,
    /// Tasks that wait for I/O.
    pub blocked: u32,
    /// Switches to tasks so far.
    pub switches: u64,
    /// Interrupts of disks so far.
    pub interrupts: u64,
    /// The processes that have memory.
    pub processes: Vec<ProcessMemory>,
}

/// The memory at the end of a part of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartEnd {
    /// The part.
    pub name: String,
    /// When, picoseconds since the machine's start.
    pub at: Ps,
    /// /proc/meminfo: name and KiB.
    pub meminfo: Vec<(&'static str, u64)>,
    /// The processes that have memory.
    pub processes: Vec<ProcessMemory>,
}

/// What a run's memory looked like over time, also of a run that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Samples.
    pub samples: Vec<Sample>,
    /// Ends of parts, by time.
    pub parts: Vec<PartEnd>,
}

impl Seen {
    /// What the last run with a memory handed over to a recorder that keeps samples; `None` if there was
    /// none.
    pub fn of(recorder: &Recorder) -> Option<Seen> {
        recorder.take_handed()
    }
}

impl Sample {
    /// A counter of /proc/vmstat; 0 for an unknown name.
    pub fn count(&self, name: &str) -> u64 {
        self.vmstat.iter().find(|(of, _)| *of == name).map_or(0, |(_, value)| *value)
    }

    /// A line of /proc/meminfo in KiB; 0 for an unknown name.
    pub fn kib(&self, name: &str) -> u64 {
        self.meminfo.iter().find(|(of, _)| *of == name).map_or(0, |(_, value)| *value)
    }
}

/// What the memory tells, and what was seen of it.
pub(super) struct Samples {
    pub(super) recorder: Recorder,
    kept: RefCell<Vec<Sample>>,
    parts: RefCell<Vec<PartEnd>>,
}

impl Samples {
    pub(super) fn new(recorder: &Recorder) -> Samples {
        Samples { recorder: recorder.clone(), kept: RefCell::default(), parts: RefCell::default() }
    }

    /// Keeps a sample.
    pub(super) fn keep(&self, sample: Sample) {
        self.kept.borrow_mut().push(sample);
    }

    /// Keeps the end of a part.
    pub(super) fn keep_part(&self, end: PartEnd) {
        self.parts.borrow_mut().push(end);
    }

    /// Whether samples are kept.
    pub(super) fn are_kept(&self) -> bool {
        self.recorder.keeps_samples()
    }

    /// Whether the last sample is older than `now`.
    pub(super) fn are_before(&self, now: Ps) -> bool {
        self.kept.borrow().last().is_none_or(|last| last.at < now)
    }

    /// The samples so far.
    pub(super) fn take(&self) -> Vec<Sample> {
        self.kept.take()
    }

    /// Hands over to the recorder what was seen.
    pub(super) fn hand_over(&self) {
        if self.are_kept() {
            self.recorder.hand_over(Seen { samples: self.kept.take(), parts: self.parts.take() });
        }
    }

    /// A daemon was awake since `since`. A time without work is not recorded.
    pub(super) fn record_awake(&self, name: impl Fn() -> String, since: Ps) {
        let recorder = &self.recorder;
        if recorder.is_on() && Timed::clock() > since {
            let track = recorder.track(DAEMONS, &name);
            recorder.slice(track, recorder.name(name), since, Timed::clock());
        }
    }
}
