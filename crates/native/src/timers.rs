//! Deferred work: kept here until it is due, and run by the heap on slow paths of ordinary requests.
//!
//! There is no thread for it. This world does not track readers of RCU: a thread that reads without a lock
//! must be done after [`GRACE_NS`].

use crate::boot_memory::Array;
use crate::lock::Sleep;
use crate::system;
use slablab_platform::{CpuId, Work, WorkKind};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Nanoseconds of a grace period.
pub(crate) const GRACE_NS: u64 = 1_000_000;

/// For the contract's checks: the time at which the clock stands. 0 while it runs.
static STANDS_AT_NS: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds of a monotonic clock.
pub(crate) fn now_ns() -> u64 {
    match STANDS_AT_NS.load(Relaxed) {
        0 => system::now_ns(),
        stands_at => stands_at,
    }
}

/// For the contract's checks: stops the clock, and moves it by `ns`.
pub(crate) fn advance(ns: u64) {
    STANDS_AT_NS.store(now_ns() + ns, Relaxed);
}

#[derive(Clone, Copy)]
struct Timer {
    due_ns: u64,
    cpu: CpuId,
    work: Work,
}

/// Timers as a binary heap, the first due at the top.
struct Timers {
    heap: Array<Timer>,
    /// Number of timers for each hash of a work. With 0 no search is needed.
    waiting: [u32; BUCKETS],
}

const BUCKETS: usize = 1024;

static TIMERS: Sleep<Timers> = Sleep::new(Timers { heap: Array::new(), waiting: [0; BUCKETS] });
/// The time at which the first timer is due, for [`any_waits`] by one load.
static FIRST_DUE_NS: AtomicU64 = AtomicU64::new(u64::MAX);

fn bucket(cpu: CpuId, work: Work) -> usize {
    let mut hasher = Mixer(cpu.0 as u64);
    work.hash(&mut hasher);
    (hasher.0 >> 32) as usize % BUCKETS
}

struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ *byte as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

impl Timers {
    fn waits(&mut self, cpu: CpuId, work: Work) -> bool {
        self.waiting[bucket(cpu, work)] > 0
            && self.heap.all().iter().any(|timer| timer.cpu == cpu && timer.work == work)
    }

    /// Adds a timer. `false` without memory for it.
    fn add(&mut self, timer: Timer) -> bool {
        if !self.heap.push(timer) {
            return false;
        }
        self.waiting[bucket(timer.cpu, timer.work)] += 1;
        let last = self.heap.all().len() - 1;
        self.rise(last);
        true
    }

    fn remove(&mut self, index: usize) -> Timer {
        let timer = self.heap.all()[index];
        let last = self.heap.pop().expect("a timer is here");
        if index < self.heap.all().len() {
            self.heap.all()[index] = last;
            self.rise(index);
            self.sink(index);
        }
        self.waiting[bucket(timer.cpu, timer.work)] -= 1;
        timer
    }

    fn rise(&mut self, mut index: usize) {
        let all = self.heap.all();
        while index > 0 && all[index].due_ns < all[(index - 1) / 2].due_ns {
            all.swap(index, (index - 1) / 2);
            index = (index - 1) / 2;
        }
    }

    fn sink(&mut self, mut index: usize) {
        let all = self.heap.all();
        loop {
            let below = (2 * index + 1..2 * index + 3).filter(|below| *below < all.len());
            let Some(below) = below.min_by_key(|below| all[*below].due_ns) else { return };
            if all[below].due_ns >= all[index].due_ns {
                return;
            }
            all.swap(index, below);
            index = below;
        }
    }

    fn publish(&mut self) {
        let first = self.heap.all().first().map_or(u64::MAX, |timer| timer.due_ns);
        FIRST_DUE_NS.store(first, Relaxed);
    }
}

/// Keeps a work until it is due, unless an equal one is kept already. Without memory for it the work is lost:
/// memory that periodic work would have given back stays, and an object that was to be freed after a grace
/// period counts as live for ever, so that its cache cannot be destroyed.
pub(crate) fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
    let mut timers = TIMERS.lock();
    if !timers.waits(cpu, work) && timers.add(Timer { due_ns: now_ns() + delay_ns, cpu, work }) {
        timers.publish();
    }
}

/// Takes the earliest work that is due.
pub(crate) fn due() -> Option<(CpuId, Work)> {
    if FIRST_DUE_NS.load(Relaxed) == u64::MAX {
        return None;
    }
    let now = now_ns();
    if FIRST_DUE_NS.load(Relaxed) > now {
        return None;
    }
    let mut timers = TIMERS.lock();
    if timers.heap.all().first()?.due_ns > now {
        return None;
    }
    let timer = timers.remove(0);
    timers.publish();
    Some((timer.cpu, timer.work))
}

/// Whether a work may be due.
#[inline]
pub(crate) fn any_waits() -> bool {
    FIRST_DUE_NS.load(Relaxed) != u64::MAX
}

/// Takes a work of a cache and kind, due or not.
pub(crate) fn take_of(cache: u32, kind: WorkKind) -> Option<(CpuId, Work)> {
    if !any_waits() {
        return None;
    }
    let mut timers = TIMERS.lock();
    let is_of = |timer: &Timer| timer.work.cache == cache && timer.work.kind == kind;
    let index = timers.heap.all().iter().position(is_of)?;
    let timer = timers.remove(index);
    timers.publish();
    Some((timer.cpu, timer.work))
}

/// Drops all works.
pub(crate) fn clear() {
    let mut timers = TIMERS.lock();
    timers.heap.clear();
    timers.waiting = [0; BUCKETS];
    timers.publish();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(due_ns: u64, cpu: u16) -> Timer {
        Timer { due_ns, cpu: CpuId(cpu), work: Work { cache: 1, kind: WorkKind::Reap, argument: 0 } }
    }

    #[test]
    fn timers_come_in_the_order_they_are_due() {
        assert!(crate::start::start(crate::Wishes::default()) == crate::Start::Runs);
        let mut timers = Timers { heap: Array::new(), waiting: [0; BUCKETS] };
        for n in 0..1000u64 {
            assert!(timers.add(timer(n * 7919 % 1000, n as u16)));
        }
        assert!(timers.waits(CpuId(999), timer(0, 0).work) && !timers.waits(CpuId(1000), timer(0, 0).work));
        (0..100).for_each(|n| _ = timers.remove(n * 5));
        let mut last = 0;
        for _ in 0..900 {
            let next = timers.remove(0).due_ns;
            assert!(last <= next, "{last} before {next}");
            last = next;
        }
        assert!(timers.heap.all().is_empty() && timers.waiting.iter().all(|count| *count == 0));
    }
}
