//! What a run records for a viewer: slices, instants and values on tracks.
//!
//! ```text
//! let recorder = Recorder::new(Limits::default());        Recorder::default() records nothing
//! let cpu = recorder.track("CPUs", || "CPU 0".into());
//! let memory = recorder.track_of("Memory", || "slabs".into(), Holds::Bytes);
//! let run = recorder.name(|| "task 7".into());
//! recorder.slice(cpu, run, from, to)      when it ends, in any order
//! recorder.instant(cpu, refill, at)
//! recorder.flow_from(cpu, wakes, at, 7)   an instant from which an arrow leads to the slice of the flow 7
//! recorder.flow_to(cpu, run, from, to, 7)
//! recorder.value(memory, at, bytes)
//! recorder.watch_locks()                  inside a machine: waits for locks, a track for each CPU
//! recorder.take()                         a Recording: plain data
//! ```
//!
//! A recorder that is off costs a branch; names are made only if it is on. The recorder has limits, because
//! the run of a second can have millions of events: it keeps those inside a window of time up to a number,
//! and counts those it leaves out. [`Recorder::of_values`] keeps values alone, a bounded number of each
//! track.

pub mod profile;
pub mod pulse;
pub mod slabs;
pub mod trace;

use crate::heap::Heap;
use crate::record::profile::lock_name;
use crate::record::pulse::Beat;
use crate::record::slabs::CacheState;
use crate::record::trace::{Trace, Tracer};
use slablab_model::{Ps, Timed};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Records, or does not. A clone records into the same recording.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Option<Rc<RefCell<State>>>, Option<Beat>);

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time in which slices end, and instants and values are.
    pub window: Range<Ps>,
    /// How many slices, instants and values are kept.
    pub events: usize,
}

/// A track of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// What a track holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// Slices and instants.
    Slices,
    /// Values in bytes.
    Bytes,
    /// Values that count things.
    Counts,
}

/// A name of slices and instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The tracks, by their number: the name of the group, that of the track, and what it holds.
    pub tracks: Vec<(String, String, Holds)>,
    /// The names, by their number.
    pub names: Vec<String>,
    /// Slices, in the order in which they ended.
    pub slices: Vec<Slice>,
    /// Instants.
    pub instants: Vec<Instant>,
    /// Values, which hold until the next of their track.
    pub values: Vec<Value>,
    /// Slices, instants and values that the limits left out.
    pub left_out: u64,
}

/// A slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it is.
    pub track: TrackId,
    /// Its name.
    pub name: NameId,
    /// Its begin.
    pub from: Ps,
    /// Its end.
    pub to: Ps,
    /// The flow that leads to it; 0 for none.
    pub flow: u64,
}

/// An instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// Where it is.
    pub track: TrackId,
    /// Its name.
    pub name: NameId,
    /// Its time.
    pub at: Ps,
    /// The flow that leads on from it; 0 for none.
    pub flow: u64,
}

/// A value of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The track.
    pub track: TrackId,
    /// From when on it holds.
    pub at: Ps,
    /// The value.
    pub value: i64,
}

/// The group of tracks that have what each CPU runs.
pub const CPUS: &str = "CPUs";
/// The group of tracks that have memory.
pub const MEMORY: &str = "Memory";
/// Time between two samples of memory unless a recorder says otherwise: 100 ms.
const SAMPLE_EVERY: Ps = 100_000_000_000;
/// The group of tracks that [`Recorder::watch_locks`] fills.
pub const LOCK_WAITS: &str = "Lock waits";

#[derive(Debug)]
struct State {
    recording: Recording,
    tracks: BTreeMap<(String, String, Holds), TrackId>,
    names: BTreeMap<String, NameId>,
    limits: Limits,
    /// Values alone are kept.
    sparse: Option<Sparse>,
    /// How often memory is sampled, and whether the samples are kept beside their tracks.
    samples: (Ps, bool),
    tracer: Option<Tracer>,
    /// The slab caches when the run ended.
    slabs: Vec<CacheState>,
    /// What the run hands over, as [`Recorder::hand_over`] says.
    handed: Option<Box<dyn Any>>,
}

/// Values of each track, the highest of each step of time.
#[derive(Debug)]
struct Sparse {
    /// The most values of a track.
    points: usize,
    /// Values that are nearer to each other are one.
    step: Ps,
    kept: BTreeMap<TrackId, Vec<Value>>,
}

impl Sparse {
    fn add(&mut self, value: Value) {
        let kept = self.kept.entry(value.track).or_default();
        put(kept, value, self.step);
        if kept.len() > self.points {
            let span = value.at - kept[0].at;
            self.step = (2 * self.step).max(span / self.points as Ps * 2).max(1);
            for kept in self.kept.values_mut() {
                let all = std::mem::take(kept);
                all.into_iter().for_each(|value| put(kept, value, self.step));
            }
        }
    }
}

/// Adds a value, or makes it the last one's value if that is lower and nearer than `step`.
fn put(kept: &mut Vec<Value>, value: Value, step: Ps) {
    match kept.last_mut() {
        Some(last) if value.at < last.at + step => last.value = last.value.max(value.value),
        _ => kept.push(value),
    }
}

impl Default for Limits {
    /// All of a run, up to four million events: about 100 MB.
    fn default() -> Limits {
        Limits { window: 0..Ps::MAX, events: 4_000_000 }
    }
}

impl State {
    /// Whether an event at `at` is kept. One that is not is counted.
    fn keeps(&mut self, at: Ps) -> bool {
        if self.sparse.is_some() {
            return false;
        }
        let kept = &self.recording;
        let count = kept.slices.len() + kept.instants.len() + kept.values.len();
        let keeps = self.limits.window.contains(&at) && count < self.limits.events;
        self.recording.left_out += u64::from(!keeps);
        keeps
    }
}

impl Recorder {
    /// A recorder that is on.
    pub fn new(limits: Limits) -> Recorder {
        Recorder::with(limits, None, None)
    }

    /// A recorder of values: at most so many of each track, the highest of each step of time.
    pub fn of_values(points: usize) -> Recorder {
        Recorder::with(Limits::default(), Some(Sparse { points, step: 0, kept: BTreeMap::new() }), None)
    }

    /// A recorder of a trace of allocations ([`crate::record::trace`]) and of nothing else: lines of the
    /// first `most` allocations, counts of all.
    pub fn of_allocations(most: u64) -> Recorder {
        Recorder::with(Limits { events: 0, ..Limits::default() }, None, Some(Tracer::new(most)))
    }

    fn with(limits: Limits, sparse: Option<Sparse>, tracer: Option<Tracer>) -> Recorder {
        let (tracks, names) = (BTreeMap::new(), BTreeMap::new());
        Recorder(
            Some(Rc::new(RefCell::new(State {
                recording: Recording::default(),
                tracks,
                names,
                limits,
                sparse,
                samples: (SAMPLE_EVERY, false),
                tracer,
                slabs: Vec::new(),
                handed: None,
            }))),
            None,
        )
    }

    /// The recorder, on or off, of a run that tells `beat` how far it is.
    pub fn with_beat(self, beat: Beat) -> Recorder {
        Recorder(self.0, Some(beat))
    }

    pub(crate) fn beat(&self) -> Option<Beat> {
        self.1.clone()
    }

    /// A recorder of samples of memory, one every `every` picoseconds: they are kept beside their tracks.
    pub fn sampled(self, every: Ps) -> Recorder {
        if let Some(state) = &self.0 {
            state.borrow_mut().samples = (every, true);
        }
        self
    }

    /// How often memory is sampled; `None` if nothing is recorded, or allocations alone.
    pub(crate) fn sample_every(&self) -> Option<Ps> {
        let state = self.0.as_ref()?.borrow();
        state.tracer.is_none().then_some(state.samples.0)
    }

    /// Whether samples of memory are kept beside their tracks.
    pub(crate) fn keeps_samples(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.borrow().samples.1)
    }

    /// The run hands a value of its own over to its observer, in the place of the last one.
    pub(crate) fn hand_over(&self, value: impl Any) {
        if let Some(state) = &self.0 {
            state.borrow_mut().handed = Some(Box::new(value));
        }
    }

    /// The value of this type that the run handed over.
    pub(crate) fn take_handed<T: Any>(&self) -> Option<T> {
        let handed = self.0.as_ref()?.borrow_mut().handed.take()?;
        handed.downcast().ok().map(|value| *value)
    }

    /// The run has ended with these caches.
    pub(crate) fn ended(&self, heap: &dyn Heap) {
        if let Some(state) = &self.0 {
            state.borrow_mut().slabs = slabs::caches(heap);
        }
    }

    /// The slab caches when the run ended; none if it did not.
    pub fn take_slabs(&self) -> Vec<CacheState> {
        self.0.as_ref().map_or(Vec::new(), |state| std::mem::take(&mut state.borrow_mut().slabs))
    }

    /// Calls `f` with the tracer, if allocations are traced.
    pub(crate) fn tracer<T>(&self, f: impl FnOnce(&mut Tracer) -> T) -> Option<T> {
        self.0.as_ref()?.borrow_mut().tracer.as_mut().map(f)
    }

    /// The trace of allocations so far; `None` if they are not traced.
    pub fn take_trace(&self) -> Option<Trace> {
        self.tracer(Tracer::take)
    }

    /// Whether it records.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The track of slices of this name in the group of tracks; it is added if there is none.
    pub fn track(&self, group: &str, name: impl FnOnce() -> String) -> TrackId {
        self.track_of(group, name, Holds::Slices)
    }

    /// The track of this name that holds slices or values; it is added if there is none.
    pub fn track_of(&self, group: &str, name: impl FnOnce() -> String, holds: Holds) -> TrackId {
        let Some(state) = &self.0 else { return TrackId::default() };
        let state = &mut *state.borrow_mut();
        let key = (group.to_string(), name(), holds);
        *state.tracks.entry(key).or_insert_with_key(|key| {
            state.recording.tracks.push(key.clone());
            TrackId(state.recording.tracks.len() as u32 - 1)
        })
    }

    /// The number of a name.
    pub fn name(&self, name: impl FnOnce() -> String) -> NameId {
        let Some(state) = &self.0 else { return NameId::default() };
        let state = &mut *state.borrow_mut();
        *state.names.entry(name()).or_insert_with_key(|name| {
            state.recording.names.push(name.clone());
            NameId(state.recording.names.len() as u32 - 1)
        })
    }

    /// A slice that ended. What of it is before the window is cut off.
    #[inline]
    pub fn slice(&self, track: TrackId, name: NameId, from: Ps, to: Ps) {
        self.flow_to(track, name, from, to, 0);
    }

    /// A slice that ended, to which a flow leads.
    #[inline]
    pub fn flow_to(&self, track: TrackId, name: NameId, from: Ps, to: Ps, flow: u64) {
        let Some(state) = &self.0 else { return };
        let mut state = state.borrow_mut();
        if state.keeps(to) {
            let from = from.max(state.limits.window.start);
            state.recording.slices.push(Slice { track, name, from, to, flow });
        }
    }

    /// Something that happened at one moment.
    #[inline]
    pub fn instant(&self, track: TrackId, name: NameId, at: Ps) {
        self.flow_from(track, name, at, 0);
    }

    /// Something that happened at one moment, from which a flow leads on.
    #[inline]
    pub fn flow_from(&self, track: TrackId, name: NameId, at: Ps, flow: u64) {
        let Some(state) = &self.0 else { return };
        let mut state = state.borrow_mut();
        if state.keeps(at) {
            state.recording.instants.push(Instant { track, name, at, flow });
        }
    }

    /// A value that holds from `at` on.
    #[inline]
    pub fn value(&self, track: TrackId, at: Ps, value: i64) {
        let Some(state) = &self.0 else { return };
        let mut state = state.borrow_mut();
        if let Some(sparse) = &mut state.sparse {
            sparse.add(Value { track, at, value });
        } else if state.keeps(at) {
            state.recording.values.push(Value { track, at, value });
        }
    }

    /// Records each wait for a lock on the machine that is entered: a track for each CPU in the group
    /// [`LOCK_WAITS`], a slice for each wait, named by the lock.
    pub fn watch_locks(&self) {
        if self.0.as_ref().is_none_or(|state| state.borrow().sparse.is_some()) {
            return;
        }
        let recorder = self.clone();
        Timed::watch_locks(move |wait| {
            let track = recorder.track(LOCK_WAITS, || format!("CPU {}", wait.cpu.0));
            let name = recorder.name(|| lock_name(wait.level));
            recorder.slice(track, name, wait.from, wait.to);
        });
    }

    /// Drops the events so far, and records from `at` on. Tracks and names stay.
    pub fn restart(&self, at: Ps) {
        let Some(state) = &self.0 else { return };
        let state = &mut *state.borrow_mut();
        state.limits.window.start = state.limits.window.start.max(at);
        state.recording.slices.clear();
        state.recording.instants.clear();
        state.recording.values.clear();
        state.recording.left_out = 0;
        if let Some(sparse) = &mut state.sparse {
            sparse.kept.clear();
        }
        state.tracer.iter_mut().for_each(Tracer::restart);
    }

    /// The recording so far; the recorder goes on without its tracks.
    pub fn take(&self) -> Recording {
        let Some(state) = &self.0 else { return Recording::default() };
        let state = &mut *state.borrow_mut();
        state.tracks.clear();
        state.names.clear();
        if let Some(sparse) = &mut state.sparse {
            let values = std::mem::take(&mut sparse.kept);
            state.recording.values = values.into_values().flatten().collect();
            state.recording.left_out = 0;
        }
        std::mem::take(&mut state.recording)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slablab_model::{Costs, Hardware, MachineSpec, Paths, TimedMachine};
    use slablab_platform::{CpuId, Lock, Platform, rank};

    #[test]
    fn a_recorder_that_is_off_makes_no_name() {
        let recorder = Recorder::default();
        let track = recorder.track("CPUs", || panic!("a name is made"));
        let name = recorder.name(|| panic!("a name is made"));
        recorder.slice(track, name, 1, 2);
        assert_eq!(recorder.take(), Recording::default());
    }

    /// Two CPUs take one lock at once: the second has it when the first gives it back.
    #[test]
    fn a_wait_for_a_lock_is_a_slice() {
        let each = vec![0, 1];
        let hardware =
            Hardware { core: each.clone(), llc: each.clone(), socket: each, costs: Costs::default() };
        let spec = MachineSpec::uniform(2, 1, 1 << 30);
        let mut machine = TimedMachine::new(spec, hardware, Paths::default()).expect("a machine");
        let recorder = Recorder::new(Limits::default());
        machine.enter(|| {
            recorder.watch_locks();
            let lock = Rc::new(<Timed as Platform>::Lock::<rank::Zone, u64>::new(0));
            for cpu in 0..2 {
                let lock = lock.clone();
                Timed::spawn(CpuId(cpu), 0, move || {
                    let _held = lock.lock();
                    Timed::charge(100);
                });
            }
            assert_eq!(Timed::run(), []);
        });
        let found = recorder.take();
        assert_eq!(found.tracks, [(LOCK_WAITS.into(), "CPU 1".into(), Holds::Slices)]);
        assert_eq!(found.names, ["zone->lock"]);
        assert_eq!(found.slices, [Slice { track: TrackId(0), name: NameId(0), from: 0, to: 100, flow: 0 }]);
    }

    #[test]
    fn what_the_limits_leave_out_is_counted() {
        let recorder = Recorder::new(Limits { window: 10..20, events: 3 });
        let (track, name) = (recorder.track("CPUs", || "CPU 0".into()), recorder.name(|| "task".into()));
        assert_eq!(recorder.track("CPUs", || "CPU 0".into()), track);
        recorder.slice(track, name, 0, 9);
        recorder.slice(track, name, 9, 10);
        recorder.instant(track, name, 19);
        recorder.value(track, 20, 1);
        recorder.value(track, 19, 2);
        recorder.value(track, 19, 3);
        let found = recorder.take();
        assert_eq!((found.slices.len(), found.instants.len(), found.values.len()), (1, 1, 1));
        assert_eq!((found.left_out, found.tracks.len(), found.names.len()), (3, 1, 1));
    }

    /// Values alone: the highest of each step of time, and the step grows with the run.
    #[test]
    fn values_are_thinned() {
        let recorder = Recorder::of_values(10);
        let (track, name) = (recorder.track("Memory", || "slabs".into()), recorder.name(|| "task".into()));
        recorder.slice(track, name, 0, 1);
        recorder.value(track, 5, 99);
        recorder.restart(10);
        (0..1_000).for_each(|at| recorder.value(track, 10 + at, if at == 500 { 7 } else { 1 }));
        let found = recorder.take();
        assert_eq!((found.slices.len(), found.left_out, found.values[0].at), (0, 0, 10));
        assert!((5..=10).contains(&found.values.len()), "{:?}", found.values);
        assert!(found.values.is_sorted_by_key(|value| value.at));
        assert_eq!(found.values.iter().filter(|value| value.value == 7).count(), 1, "{:?}", found.values);
    }

    /// A restart drops what was, and cuts a slice that began before it.
    #[test]
    fn a_restart_begins_the_recording() {
        let recorder = Recorder::new(Limits { events: 1, ..Limits::default() });
        let (track, name) = (recorder.track("CPUs", || "CPU 0".into()), recorder.name(|| "task".into()));
        recorder.slice(track, name, 0, 1);
        recorder.slice(track, name, 1, 2);
        recorder.restart(10);
        recorder.slice(track, name, 5, 20);
        let found = recorder.take();
        assert_eq!(found.slices, [Slice { track, name, from: 10, to: 20, flow: 0 }]);
        assert_eq!(found.left_out, 0);
    }
}
