//! Locks of level `cost`: calls wait for them, and each hand-over has a price.
//!
//! A call takes its turn first, so locks are taken in the order of self. A lock whose holder has run ahead
//! is free, but only from `free_at` on: the next call is *promised* it and continues then. Calls that come
//! while a call holds the lock, or is promised it, queue. While a call waits, other calls of its CPU may run:
//! a simulated kernel runs one at a time on each CPU.
//!
//! Outside of calls a lock has no time. It is taken and given back at once, unless a suspended call holds it.

use crate::calls::CallId;
use crate::clocks::{Clocks, LineId, LockWait, Spent};
use crate::coherence;
use crate::hardware::{Handover, Ps};
use crate::level::Access;
use crate::random::split_mix;
use slablab_platform::CpuId;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// A call that waits for a lock, and its CPU.
type Waiter = (CallId, u16);

/// Calls that wait for a lock, and when it is free.
#[derive(Debug, Default)]
pub struct Waiters {
    /// A call holds it, or code outside of calls does.
    taken: Cell<bool>,
    /// The next holder: the lock is on its way to it.
    promised: Cell<Option<CallId>>,
    /// The calls that queue, and the CPU of each.
    waiting: RefCell<VecDeque<Waiter>>,
    /// When it was taken, and when given back.
    since: Cell<Ps>,
    free_at: Cell<Ps>,
    holder: Cell<u16>,
}

impl Waiters {
    /// Whether a call holds the lock, or is about to.
    fn is_busy(&self) -> bool {
        self.taken.get() || self.promised.get().is_some()
    }
}

/// The lines of a lock: its word, and the data that it protects.
#[derive(Clone, Copy, Debug)]
pub struct LockLines {
    pub(crate) word: LineId,
    pub(crate) data: LineId,
}

/// A suspended call's place at a lock. If the call is dropped, it leaves the lock.
struct Place<'a>(&'a Waiters, CallId);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Place(waiters, me) = self;
        waiters.waiting.borrow_mut().retain(|(call, _)| call != me);
        if waiters.promised.get() == Some(*me) {
            waiters.promised.set(None);
        }
    }
}

impl Clocks {
    /// Takes the lock for the running call, or for code outside of calls.
    pub(crate) fn lock(&self, cpu: CpuId, waiters: &Waiters, lines: LockLines, level: u8) {
        if self.calls.running().is_none() {
            let taken = waiters.taken.replace(true);
            return assert!(
                !taken,
                "outside of calls no lock can be waited for, and a suspended call holds this one"
            );
        }
        self.turn(cpu);
        if waiters.is_busy() || waiters.free_at.get() > self.clock(cpu) {
            self.wait(cpu, waiters, lines, level);
        }
        self.hold(cpu, waiters, lines, level);
    }

    /// Takes the lock if that needs no waiting.
    pub(crate) fn try_lock(&self, cpu: CpuId, waiters: &Waiters, lines: LockLines, level: u8) -> bool {
        if self.calls.running().is_none() {
            return !waiters.taken.replace(true);
        }
        self.turn(cpu);
        if waiters.is_busy() || waiters.free_at.get() > self.clock(cpu) {
            self.line(cpu, lines.word, Access::Read);
            return false;
        }
        self.hold(cpu, waiters, lines, level);
        true
    }

    /// Gives the lock back.
    pub(crate) fn unlock(&self, cpu: CpuId, waiters: &Waiters, level: u8) {
        waiters.taken.set(false);
        if self.calls.is_ending() {
            return;
        }
        let now = if self.calls.running().is_some() {
            let now = self.clock(cpu);
            waiters.free_at.set(now);
            self.lock_times(level, |times| times.hold += now.saturating_sub(waiters.since.get()));
            now
        } else if waiters.promised.get().is_some() {
            return;
        } else {
            waiters.free_at.get()
        };
        if let Some((next, cpu, at)) = self.next_holder(waiters, now) {
            waiters.promised.set(Some(next));
            self.calls.unpark(next, CpuId(cpu), at);
        }
    }

    /// The running call becomes the holder.
    fn hold(&self, cpu: CpuId, waiters: &Waiters, lines: LockLines, level: u8) {
        waiters.promised.set(None);
        waiters.taken.set(true);
        waiters.holder.set(cpu.0);
        self.charge(cpu, self.paths.lock, Spent::Compute);
        self.line(cpu, lines.word, Access::Write);
        waiters.since.set(self.clock(cpu));
        self.lock_times(level, |times| times.taken += 1);
        // Every holder reads and writes what the lock protects.
        self.line(cpu, lines.data, Access::Write);
    }

    /// The running call waits for a lock that another one holds, or that is free later than now.
    #[cold]
    fn wait(&self, cpu: CpuId, waiters: &Waiters, lines: LockLines, level: u8) {
        let arrived = self.clock(cpu);
        let me = self.calls.running().expect("calls alone wait for locks");
        let place = Place(waiters, me);
        if waiters.is_busy() {
            waiters.waiting.borrow_mut().push_back((me, cpu.0));
            self.await_promise(waiters, me);
        } else if self.hardware.costs.handover == Handover::Queued {
            waiters.promised.set(Some(me));
            let price = self.caches.between(waiters.holder.get(), cpu.0);
            self.calls.wait_until(waiters.free_at.get() + price, cpu);
        } else {
            // The calls that come until the lock is free compete for it too.
            waiters.promised.set(Some(me));
            self.calls.wait_until(waiters.free_at.get(), cpu);
            waiters.waiting.borrow_mut().push_front((me, cpu.0));
            match self.next_holder(waiters, waiters.free_at.get()) {
                Some((next, to, at)) if next != me => {
                    waiters.promised.set(Some(next));
                    self.calls.unpark(next, CpuId(to), at);
                    self.await_promise(waiters, me);
                }
                next => self.calls.wait_until(next.map_or(0, |(_, _, at)| at), cpu),
            }
        }
        std::mem::forget(place);
        let word = &self.lines.borrow()[lines.word.0 as usize];
        word.set(coherence::handed_over(word.get(), cpu.0, &self.caches));
        let waited = self.clock(cpu) - arrived;
        let spent = &self.spent[cpu.0 as usize][Spent::LockWait as usize];
        spent.set(spent.get() + waited);
        self.lock_times(level, |times| {
            times.waited += 1;
            times.wait += waited;
        });
        self.waits.borrow_mut()[cpu.0 as usize][level as usize] += waited;
        let watch = self.watch.borrow().clone();
        if let Some(watch) = watch {
            watch(LockWait { cpu, level, from: arrived, to: arrived + waited });
        }
    }

    /// The running call parks until the lock is promised to it.
    fn await_promise(&self, waiters: &Waiters, me: CallId) {
        self.calls.park();
        assert_eq!(waiters.promised.get(), Some(me), "a call was unparked that waits for a lock");
    }

    /// Takes the next holder from the queue: the first, or with unfair locks one of the nearest. With it come
    /// its CPU, and when it has the lock if the lock is given back at `now`.
    fn next_holder(&self, waiters: &Waiters, now: Ps) -> Option<(CallId, u16, Ps)> {
        let mut waiting = waiters.waiting.borrow_mut();
        if waiting.is_empty() {
            return None;
        }
        let (from, count) = (waiters.holder.get(), waiting.len() as Ps);
        let price = |waiter: &Waiter| self.caches.between(from, waiter.1);
        let mut at = 0;
        if self.hardware.costs.handover == Handover::TestAndSet && count > 1 {
            let nearest = waiting.iter().map(price).min()?;
            let near = waiting.iter().filter(|waiter| price(waiter) == nearest).count() as u64;
            let (seed, drawn) = split_mix(self.random.get());
            self.random.set(seed);
            let places = waiting.iter().enumerate().filter(|(_, waiter)| price(waiter) == nearest);
            at = places.map(|(place, _)| place).nth((drawn % near) as usize)?;
        }
        let next = waiting.remove(at)?;
        let one = price(&next);
        let price = match self.hardware.costs.handover {
            Handover::Queued => one,
            // Every waiter reads the word again after it was written: the next holder is served in the middle
            // of them.
            Handover::Ticket => one * (count + 1) / 2,
            // The holder needs the line back before it can write it.
            Handover::TestAndSet => one + one * (count + 1) / 2,
        };
        Some((next.0, next.1, now + price))
    }
}
