//! Samples of a memory at fixed times: what `vmstat`, /proc/meminfo and `ps` would show.
//!
//! A kernel with a recorder samples its memory ([`crate::record::Recorder::sampled`]): values become tracks
//! of the recording, and the samples are kept if the recorder says so. The sampler reads, charges nothing
//! and changes nothing: a run's result does not depend on it.

use super::Memory;
pub use super::samples::{Daemon, PartEnd, Sample, Seen};
pub use super::views::Frames;
use super::waits::THROTTLES;
use crate::kernel::{Observer, Waiting};
use crate::record::{Holds, MEMORY, Recorder, TrackId};
use slablab_model::{Ps, Timed};
use slablab_vm::Counter;
use std::cell::Cell;
use std::rc::{Rc, Weak};

/// What a task waits for while it waits for I/O, beside throttling.
const IO_WAITS: [&str; 3] = ["for the lock of frame", "for the write of frame", "for a request of disk"];
/// The groups of tracks beside [`MEMORY`]: rates of paging, requests of disks, tasks.
const PAGING: &str = "Paging";
const DISKS: &str = "Disks";
const TASKS: &str = "Tasks";
const SECOND: Ps = 1_000_000_000_000;
const PAGE_SHIFT: u32 = 12;

/// The tracks of a recording that samples fill.
struct Tracks {
    uses: [TrackId; 8],
    swap: TrackId,
    rates: [TrackId; RATES.len()],
    disks: Vec<TrackId>,
    tasks: [TrackId; 2],
}

/// Counters whose rates are tracks.
const RATES: [(Counter, &str); 4] = [
    (Counter::PgFault, "faults per second"),
    (Counter::PgMajFault, "major faults per second"),
    (Counter::PswpIn, "pages swapped in per second"),
    (Counter::PswpOut, "pages swapped out per second"),
];

impl Tracks {
    fn new(recorder: &Recorder, memory: &Memory) -> Tracks {
        let of = |group, name: &str, holds| recorder.track_of(group, || name.into(), holds);
        Tracks {
            // The kernel fills the track of slabs whenever they change.
            uses: Frames::USES.map(|name| of(MEMORY, name, Holds::Bytes)),
            swap: of(MEMORY, "swap", Holds::Bytes),
            rates: RATES.map(|(_, name)| of(PAGING, name, Holds::Counts)),
            disks: memory
                .disks
                .all()
                .iter()
                .map(|disk| of(DISKS, &format!("{} requests", disk.name), Holds::Counts))
                .collect(),
            tasks: ["running", "waiting for I/O"].map(|name| of(TASKS, name, Holds::Counts)),
        }
    }
}

/// The observer of a kernel that samples its memory.
struct Sampler {
    memory: Weak<Memory>,
    recorder: Recorder,
    tracks: Tracks,
    /// When and at which counts the rates were last computed.
    last: Cell<(Ps, [u64; RATES.len()])>,
}

impl Observer for Sampler {
    fn sample(&self, at: Ps) {
        let Some(memory) = self.memory.upgrade().filter(|memory| !memory.daemons.are_stopping()) else {
            return;
        };
        let (frames, used) = Timed::outside(|| memory.frames_and_swap());
        self.record(&memory, at, &frames, used);
        if self.recorder.keeps_samples() {
            let sample = Timed::outside(|| memory.sample(at, frames));
            memory.samples.keep(sample);
        }
    }

    fn is_io(&self, waiting: &Waiting) -> bool {
        IO_WAITS.iter().chain(&THROTTLES).any(|what| *what == waiting.what)
    }
}

impl Sampler {
    /// Adds a sample to the recording.
    fn record(&self, memory: &Memory, at: Ps, frames: &Frames, swap_used: u64) {
        let value = |track: TrackId, value: u64| self.recorder.value(track, at, value as i64);
        for (at, (track, pages)) in self.tracks.uses.iter().zip(frames.uses()).enumerate() {
            if Frames::USES[at] != "slabs" {
                value(*track, pages << PAGE_SHIFT);
            }
        }
        value(self.tracks.swap, swap_used << PAGE_SHIFT);
        let counts = memory.vm.with(|state| RATES.map(|(counter, _)| state.counters.get(counter)));
        let (since, before) = self.last.replace((at, counts));
        let time = u128::from(at - since);
        for (place, track) in self.tracks.rates.iter().enumerate().filter(|_| time > 0) {
            let count = u128::from(counts[place] - before[place]);
            value(*track, (count * u128::from(SECOND) / time) as u64);
        }
        for (disk, track) in memory.disks.all().iter().zip(&self.tracks.disks) {
            value(*track, disk.stat()[8]);
        }
        let (running, blocked) = memory.kernel.running_and_blocked();
        value(self.tracks.tasks[0], running.into());
        value(self.tracks.tasks[1], blocked.into());
    }
}

impl Memory {
    /// Samples from now on, if the recorder is on.
    pub(super) fn start_sampling(self: &Rc<Self>) {
        let Some(every) = self.samples.recorder.sample_every() else { return };
        let recorder = self.samples.recorder.clone();
        let tracks = Tracks::new(&recorder, self);
        let sampler = Sampler { memory: Rc::downgrade(self), recorder, tracks, last: Cell::default() };
        self.kernel.set_observer(every, Rc::new(sampler));
    }

    /// The samples so far.
    pub fn take_samples(&self) -> Vec<Sample> {
        self.samples.take()
    }

    /// A part of the program ends.
    pub fn end_part(&self, name: impl FnOnce() -> String) {
        if !self.samples.are_kept() {
            return;
        }
        let frames = || self.frames_and_swap().0;
        let (meminfo, processes) =
            Timed::outside(|| (self.meminfo(&frames()), self.processes.list(&self.vm)));
        let end = PartEnd { name: name(), at: Timed::clock(), meminfo, processes };
        self.samples.keep_part(end);
    }

    /// A last sample, of the end of the programs.
    pub(super) fn sample_end(&self) {
        let now = Timed::clock();
        if self.samples.are_kept() && self.samples.are_before(now) {
            self.samples.keep(Timed::outside(|| self.sample(now, self.frames_and_swap().0)));
        }
    }

    /// Page frames by use, and pages in swap.
    fn frames_and_swap(&self) -> (Frames, u64) {
        let (pages, used) = self.vm.with(|state| (state.census(), u64::from(state.swap.used())));
        (self.frames(pages), used)
    }

    fn sample(&self, at: Ps, frames: Frames) -> Sample {
        let (running, blocked) = self.kernel.running_and_blocked();
        Sample {
            at,
            vmstat: self.vmstat(frames.free),
            meminfo: self.meminfo(&frames),
            frames,
            disks: self.disks.stats(),
            cpu: self.kernel.all_cpus(at),
            daemons: self.daemons_at(at),
            running,
            blocked,
            switches: self.kernel.switches(),
            interrupts: self.disks.all().iter().map(|disk| disk.interrupts()).sum(),
            processes: self.processes.list(&self.vm),
        }
    }

    fn daemons_at(&self, at: Ps) -> Vec<Daemon> {
        let kswapds = self
            .daemons
            .kswapds
            .iter()
            .enumerate()
            .map(|(node, kswapd)| (format!("kswapd{node}"), kswapd.seen()));
        let all = kswapds.chain([("flusher".into(), self.daemons.flusher.seen())]);
        let daemon = |(name, (task, is_awake))| {
            let ran = Option::map_or(task, 0, |task| self.kernel.ran(task, at));
            Daemon { name, ran, is_awake }
        };
        all.map(daemon).collect()
    }
}
