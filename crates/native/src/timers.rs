//! Deferred work: kept here, run by whoever assembles the world, on slow paths of ordinary activity. `unsafe`: the timers
//! live in lumps.
//!
//! There is no thread for it. This world knows no reader of RCU: whoever reads without a lock has [`GRACE_NS`] for it.

use crate::lock::Sleep;
use crate::{lumps, system};
use slablab_platform::{CpuId, Work, WorkKind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Nanoseconds of a grace period.
pub(crate) const GRACE_NS: u64 = 1_000_000;

/// What the clock shows, if it stands: for the contract's checks, which take no time. 0 while it runs.
static STANDS_AT_NS: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds since some start.
pub(crate) fn now_ns() -> u64 {
    match STANDS_AT_NS.load(Relaxed) {
        0 => system::now_ns(),
        stands_at => stands_at,
    }
}

/// For the contract's checks: from here on the clock moves by this alone.
pub(crate) fn advance(ns: u64) {
    STANDS_AT_NS.store(now_ns() + ns, Relaxed);
}

#[derive(Clone, Copy)]
struct Timer {
    due_ns: u64,
    cpu: CpuId,
    work: Work,
}

/// Timers in no order. The room for them doubles.
struct Timers {
    room: Option<NonNull<Timer>>,
    capacity: usize,
    count: usize,
}

// SAFETY: the room is the table's own.
unsafe impl Send for Timers {}

static TIMERS: Sleep<Timers> = Sleep::new(Timers { room: None, capacity: 0, count: 0 });
/// When the first timer is due, so that a look costs one load.
static FIRST_DUE_NS: AtomicU64 = AtomicU64::new(u64::MAX);

impl Timers {
    fn all(&mut self) -> &mut [Timer] {
        match self.room {
            // SAFETY: the first `count` timers were written.
            Some(room) => unsafe { std::slice::from_raw_parts_mut(room.as_ptr(), self.count) },
            None => &mut [],
        }
    }

    /// Room for one more. `false` when there is none to be had.
    fn grow(&mut self) -> bool {
        let capacity = (self.capacity * 2).max(64);
        let Some(room) = lumps::take(capacity * size_of::<Timer>()) else { return false };
        let room = room.cast::<Timer>();
        if let Some(old) = self.room {
            // SAFETY: both rooms have `count` timers and do not overlap; the old one is ours to give.
            unsafe {
                old.copy_to_nonoverlapping(room, self.count);
                lumps::give(old.cast(), self.capacity * size_of::<Timer>());
            }
        }
        (self.room, self.capacity) = (Some(room), capacity);
        true
    }

    fn publish(&mut self) {
        let first = self.all().iter().map(|timer| timer.due_ns).min();
        FIRST_DUE_NS.store(first.unwrap_or(u64::MAX), Relaxed);
    }
}

/// Keeps a work until its time, unless it waits already. Without room for it the work is lost, which costs memory that
/// periodic work would have given back, nothing else.
pub(crate) fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
    let mut timers = TIMERS.lock();
    let waits = timers.all().iter().any(|timer| timer.cpu == cpu && timer.work == work);
    if waits || (timers.count == timers.capacity && !timers.grow()) {
        return;
    }
    let timer = Timer { due_ns: now_ns() + delay_ns, cpu, work };
    let (room, count) = (timers.room.expect("there is room"), timers.count);
    // SAFETY: there is room for one more.
    unsafe { room.add(count).write(timer) };
    timers.count += 1;
    timers.publish();
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
    let all = timers.all();
    let index = (0..all.len()).min_by_key(|index| all[*index].due_ns)?;
    let timer = all[index];
    if timer.due_ns > now {
        return None;
    }
    all[index] = all[all.len() - 1];
    timers.count -= 1;
    timers.publish();
    Some((timer.cpu, timer.work))
}

/// Whether a work may be due.
#[inline]
pub(crate) fn any_waits() -> bool {
    FIRST_DUE_NS.load(Relaxed) != u64::MAX
}

/// Takes a work of a kind of a cache, due or not.
pub(crate) fn take_of(cache: u32, kind: WorkKind) -> Option<(CpuId, Work)> {
    if !any_waits() {
        return None;
    }
    let mut timers = TIMERS.lock();
    let all = timers.all();
    let index = all.iter().position(|timer| timer.work.cache == cache && timer.work.kind == kind)?;
    let timer = all[index];
    all[index] = all[all.len() - 1];
    timers.count -= 1;
    timers.publish();
    Some((timer.cpu, timer.work))
}

/// Forgets everything.
pub(crate) fn clear() {
    let mut timers = TIMERS.lock();
    timers.count = 0;
    timers.publish();
}
