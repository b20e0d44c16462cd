//! How far runs are, for a reader on another thread while they go on.
//!
//! ```text
//! Pulse ── run(weight) ── Beat, which the run's Recorder has ── Kernel: at(clock), done(part, whole)
//!   └── simulated(), partial()     read whenever the reader draws
//! ```
//!
//! A run writes. What it reads is one thing alone: whether it was cancelled, by which it ends without a
//! result. So what it does cannot depend on who looks. There is no clock of the host here. The time is stored
//! once in 64 events, which are switches between tasks and ticks.

use slablab_model::Ps;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Events of a run between two stores of its time.
const EVENTS: u32 = 64;

/// How far the runs of one answer are, together. A clone is of the same runs.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Together>);

#[derive(Debug, Default)]
struct Together {
    simulated: AtomicU64,
    partial: AtomicU64,
    cancelled: AtomicBool,
}

/// What work that was cancelled unwinds with: whoever catches it has no result, and no panic either. A
/// simulated kernel is not unwound: its tasks stop, and its run ends as one that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Cancelled {
    /// Ends the work of this thread, and of those that wait for it, up to who catches it.
    pub fn throw() -> ! {
        std::panic::resume_unwind(Box::new(Cancelled))
    }
}

/// What one run tells a [`Pulse`]. Its part ends with the last clone.
#[derive(Clone, Debug)]
pub struct Beat(Rc<Run>);

#[derive(Debug)]
struct Run {
    pulse: Pulse,
    weight: u64,
    events: Cell<u32>,
    at: Cell<Ps>,
    part: Cell<u64>,
}

impl Pulse {
    /// Picoseconds that all runs simulated so far, those that ended too.
    pub fn simulated(&self) -> Ps {
        self.0.simulated.load(Relaxed)
    }

    /// The parts that runs did which have not ended, in units of their weights.
    pub fn partial(&self) -> u64 {
        self.0.partial.load(Relaxed)
    }

    /// All runs end soon, as failed ones: those that go on, and those that begin later.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Relaxed);
    }

    /// Whether the runs were cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Relaxed)
    }

    /// A run begins that counts so much in [`Pulse::partial`] when it is nearly done.
    pub fn run(&self, weight: u64) -> Beat {
        let (events, at, part) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Beat(Rc::new(Run { pulse: self.clone(), weight, events, at, part }))
    }
}

impl Beat {
    /// An event of the run at this time. Returns whether the run was found to be cancelled.
    #[inline]
    pub(crate) fn at(&self, now: Ps) -> bool {
        let events = self.0.events.get() + 1;
        self.0.events.set(events % EVENTS);
        events == EVENTS && self.store(now)
    }

    /// CPUs have clocks of their own: an earlier time than the last one changes nothing.
    #[cold]
    fn store(&self, now: Ps) -> bool {
        let more = now.saturating_sub(self.0.at.get());
        self.0.at.set(self.0.at.get() + more);
        self.0.pulse.0.simulated.fetch_add(more, Relaxed);
        self.0.pulse.is_cancelled()
    }

    /// The run did `done` of `whole` that it will do. Fewer than before change nothing.
    pub(crate) fn done(&self, done: u64, whole: u64) {
        let part = u128::from(self.0.weight) * u128::from(done.min(whole)) / u128::from(whole.max(1));
        let more = (part as u64).saturating_sub(self.0.part.get());
        self.0.part.set(self.0.part.get() + more);
        self.0.pulse.0.partial.fetch_add(more, Relaxed);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.pulse.0.partial.fetch_sub(self.part.get(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_stored_at_a_bounded_rate() {
        let pulse = Pulse::default();
        let (first, second) = (pulse.run(10), pulse.run(10));
        assert!((1..EVENTS).all(|at| !first.at(Ps::from(at))));
        assert_eq!(pulse.simulated(), 0);
        assert!(!first.at(1_000));
        assert_eq!(pulse.simulated(), 1_000);
        assert!((0..EVENTS).all(|_| !first.at(900)));
        assert!((0..EVENTS).all(|_| !second.at(500)));
        assert_eq!(pulse.simulated(), 1_500, "an earlier clock adds nothing, another run does");
    }

    #[test]
    fn a_cancelled_run_ends_at_its_next_store() {
        let pulse = Pulse::default();
        let (beat, other) = (pulse.run(10), Pulse::default().run(10));
        assert!((0..EVENTS).all(|at| !beat.at(Ps::from(at))));
        pulse.cancel();
        assert!((0..EVENTS).all(|at| !other.at(Ps::from(at))));
        assert!((1..EVENTS).all(|at| !beat.at(Ps::from(at))));
        assert!(beat.at(1_000));
    }

    #[test]
    fn a_part_grows_and_goes_with_its_run() {
        let pulse = Pulse::default();
        let (first, second) = (pulse.run(1_000), pulse.run(100));
        first.done(1, 4);
        second.done(1, 2);
        assert_eq!(pulse.partial(), 300);
        first.done(0, 4);
        assert_eq!(pulse.partial(), 300, "a run does not go back");
        first.done(9, 4);
        assert_eq!(pulse.partial(), 1_050, "no more than the whole");
        let again = first.clone();
        drop(first);
        assert_eq!(pulse.partial(), 1_050);
        drop(again);
        assert_eq!(pulse.partial(), 50, "the caller counts a run that ended");
    }
}
