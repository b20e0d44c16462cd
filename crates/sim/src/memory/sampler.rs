//! Samples of a memory at fixed times: what `vmstat`, /proc/meminfo and `ps` would show.
//!
//! A kernel with a recorder samples its memory ([`crate::record::Recorder::sampled`]): values become tracks
//! of the recording, and the samples are kept if the recorder says so. The sampler reads, charges nothing
//! and changes nothing: a run's result does not depend on it.

use super::views::ProcessMemory;
use super::{Memory, THROTTLES};
use crate::kernel::{AllCpus, Observer, Waiting};
use crate::record::{Holds, MEMORY, Recorder, TrackId};
use slablab_model::{Ps, Timed};
use slablab_vm::{Census, Counter};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// What a task waits for while it waits for I/O, beside throttling.
const IO_WAITS: [&str; 3] = ["for the lock of frame", "for the write of frame", "for a request of disk"];
/// The groups of tracks beside [`MEMORY`]: rates of paging, requests of disks, tasks.
const PAGING: &str = "Paging";
const DISKS: &str = "Disks";
const TASKS: &str = "Tasks";
/// The group of tracks with a slice for each time that kswapd or the flusher is awake.
pub(super) const DAEMONS: &str = "Reclaim and writeback";
const SECOND: Ps = 1_000_000_000_000;
const PAGE_SHIFT: u32 = 12;

/// Page frames by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// All that the page allocator manages.
    pub total: u64,
    /// Free, without those in the page lists of CPUs.
    pub free: u64,
    /// Slab caches.
    pub slab: u64,
    /// Pages of programs and files, by kind, and page tables.
    pub pages: Census,
}

impl Frames {
    /// Names of the uses of [`Frames::uses`].
    pub const USES: [&str; 8] =
        ["anonymous", "files", "tmpfs", "buffers", "page tables", "slabs", "other", "free"];

    /// Frames of each use. `other`: the kernel's own and those in the page lists of CPUs.
    pub fn uses(&self) -> [u64; 8] {
        let Census { anon, file, tmpfs, buffers, tables, .. } = self.pages;
        let known = anon + file + tmpfs + buffers + tables + self.slab + self.free;
        let other = self.total.saturating_sub(known);
        [anon, file, tmpfs, buffers, tables, self.slab, other, self.free]
    }
}

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
        let Some(memory) = self.memory.upgrade().filter(|memory| !memory.stopping.get()) else { return };
        let (frames, used) = Timed::outside(|| memory.frames_and_swap());
        self.record(&memory, at, &frames, used);
        if self.recorder.keeps_samples() {
            let sample = Timed::outside(|| memory.sample(at, frames));
            memory.samples.borrow_mut().push(sample);
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
        for (disk, track) in memory.disks.iter().zip(&self.tracks.disks) {
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
        let Some(every) = self.recorder.sample_every() else { return };
        let recorder = self.recorder.clone();
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
        if !self.recorder.keeps_samples() {
            return;
        }
        let frames = || self.frames_and_swap().0;
        let (meminfo, processes) = Timed::outside(|| (self.meminfo(&frames()), self.processes()));
        let end = PartEnd { name: name(), at: Timed::clock(), meminfo, processes };
        self.parts.borrow_mut().push(end);
    }

    /// Hands over to the recorder what was seen.
    pub(super) fn hand_over(&self) {
        if self.recorder.keeps_samples() {
            self.recorder.hand_over(Seen { samples: self.samples.take(), parts: self.parts.take() });
        }
    }

    /// A last sample, of the end of the programs.
    pub(super) fn sample_end(&self) {
        let now = Timed::clock();
        let is_new =
            |samples: &RefCell<Vec<Sample>>| samples.borrow().last().is_none_or(|last| last.at < now);
        if self.recorder.keeps_samples() && is_new(&self.samples) {
            let sample = Timed::outside(|| self.sample(now, self.frames_and_swap().0));
            self.samples.borrow_mut().push(sample);
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
            disks: self.disks.iter().map(|disk| (disk.name, disk.stat())).collect(),
            cpu: self.kernel.all_cpus(at),
            daemons: self.daemons_at(at),
            running,
            blocked,
            switches: self.kernel.switches(),
            interrupts: self.disks.iter().map(|disk| disk.interrupts()).sum(),
            processes: self.processes(),
        }
    }

    fn daemons_at(&self, at: Ps) -> Vec<Daemon> {
        let kswapds =
            self.daemons.iter().enumerate().map(|(node, kswapd)| (format!("kswapd{node}"), kswapd.seen()));
        let all = kswapds.chain([("flusher".into(), self.flusher.seen())]);
        let daemon = |(name, (task, is_awake))| {
            let ran = Option::map_or(task, 0, |task| self.kernel.ran(task, at));
            Daemon { name, ran, is_awake }
        };
        all.map(daemon).collect()
    }
}
