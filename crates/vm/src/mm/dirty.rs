//! How writers of files are held back while too many pages are dirty.

use super::limits::Limits;
use super::writeback::{self, Why};
use super::{DirtyRule, Rules};
use crate::host::Throttle;
use crate::ids::MappingId;
use crate::state::Dirty;
use crate::vm::{Host, Vm};

/// A writer's nap: 100 ms.
const NAP: u64 = 100_000_000;
/// The longest pause of 6.x: 200 ms.
const PAUSE: u64 = 200_000_000;
/// Pauses of one call, so that a host without a flusher ends it (assumed).
const PAUSES: u32 = 64;
/// Pages that a writer of 2.4 writes itself, and those after which one of 6.x is looked at (from memory).
const BATCH: u32 = 32;

/// A writer made a page of a file dirty (of tmpfs too with [`Rules::tmpfs_counts_dirty`]): it is held back if
/// there are too many. Returns whether it slept.
pub fn balance_dirty(vm: &Vm, host: &dyn Host, rules: &Rules, _mapping: MappingId) -> bool {
    let since = vm.with(|state| {
        state.dirty.since += 1;
        state.dirty.since
    });
    match rules.dirty {
        DirtyRule::Buffers => balance_buffers(vm, host, rules),
        DirtyRule::Share => balance_share(vm, host, rules, since),
        DirtyRule::Pauses => balance_pauses(vm, host, rules, since),
    }
}

/// Begins a new count of pages. Returns the state of dirty pages.
fn restart(vm: &Vm, rules: &Rules) -> Dirty {
    vm.with(|state| state.dirty.since = 0);
    dirty(vm, rules)
}

/// The dirty pages that the limits are for.
fn dirty(vm: &Vm, rules: &Rules) -> Dirty {
    let dirty = vm.with(|state| state.dirty);
    let more = if rules.tmpfs_counts_dirty { dirty.tmpfs } else { 0 };
    Dirty { file: dirty.file + more, ..dirty }
}

/// 2.4: the writer writes the 32 oldest pages above the soft limit; above the hard limit it also waits for
/// the oldest write and wakes the flusher (docs/theory/vm.md 2.14).
fn balance_buffers(vm: &Vm, host: &dyn Host, rules: &Rules) -> bool {
    writeback::keep_order(vm);
    let limits = Limits::of(vm, host, rules);
    let dirty = restart(vm, rules).file;
    if dirty <= limits.background {
        return false;
    }
    writeback::write_back(vm, host, rules, Why::Pages(BATCH.into()));
    if dirty <= limits.limit {
        return false;
    }
    host.wake_flushers(0);
    writeback::wait_for_oldest(vm, host)
}

/// 2.6.29: looked at every 1024 pages of a large machine, every 8 when the limit is near. The disk has all of
/// the limit (assumed: one disk takes all completions), less what others have dirty or under writeback
/// (docs/theory/vm.md 2.14).
fn balance_share(vm: &Vm, host: &dyn Host, rules: &Rules, since: u32) -> bool {
    let frames = vm.with(|state| state.zones.iter().map(|zone| zone.managed).sum::<u64>());
    let interval = (frames / 32).clamp(16, 1024) as u32;
    let near = |limits: &Limits, dirty: &Dirty| {
        let all = dirty.file + dirty.writeback;
        let own = dirty.file + dirty.file_writeback;
        let share = limits.limit.min((limits.limit + own).saturating_sub(all));
        own > share && all >= (limits.background + limits.limit) / 2
    };
    let limits = Limits::of(vm, host, rules);
    let dirty = self::dirty(vm, rules);
    if since < if near(&limits, &dirty) { 8 } else { interval } {
        return false;
    }
    restart(vm, rules);
    let (mut slept, mut written) = (false, 0);
    for _ in 0..PAUSES {
        let (limits, dirty) = (Limits::of(vm, host, rules), self::dirty(vm, rules));
        if dirty.file > limits.background {
            host.wake_flushers(0);
        }
        if !near(&limits, &dirty) {
            break;
        }
        let chunk = u64::from(interval) * 3 / 2;
        written += writeback::write_back(vm, host, rules, Why::Pages(chunk - written));
        if written >= chunk {
            break;
        }
        host.throttle(Throttle::Dirty, NAP);
        slept = true;
    }
    slept
}

/// 6.x: below the mean of both limits a writer is free. Above, it sleeps so long that it makes pages dirty at
/// the rate of the disks, faster below the set point and slower above (`balance_dirty_pages`, simplified: one
/// writer has the whole rate, and is looked at every 32 pages; docs/theory/vm.md 2.14).
fn balance_pauses(vm: &Vm, host: &dyn Host, rules: &Rules, since: u32) -> bool {
    if since < BATCH {
        return false;
    }
    restart(vm, rules);
    let mut slept = false;
    for _ in 0..PAUSES {
        let limits = Limits::of(vm, host, rules);
        let speed = measure(vm, host.now());
        let dirty = self::dirty(vm, rules);
        if dirty.file > limits.background {
            host.wake_flushers(0);
        }
        let all = dirty.file + dirty.writeback;
        let free_run = (limits.background + limits.limit) / 2;
        if all <= free_run || limits.base == 0 {
            break;
        }
        let ratio = ratio(all, free_run, limits.limit);
        let rate = speed * ratio / 1024;
        let pause = (u64::from(since) * 1_000_000_000).checked_div(rate).unwrap_or(PAUSE);
        host.throttle(Throttle::Dirty, pause.min(PAUSE));
        slept = true;
        if rate > 0 {
            break;
        }
    }
    slept
}

/// The part of the disks' rate that writers get, in 1024ths: 1 at the set point, half way between free run
/// and limit; 0 at the limit; a cubic between (docs/theory/vm.md 2.14).
fn ratio(dirty: u64, free_run: u64, limit: u64) -> u64 {
    if dirty >= limit {
        return 0;
    }
    let set_point = (free_run + limit) / 2;
    let x = (set_point as i64 - dirty as i64) * 1024 / (limit - set_point).max(1) as i64;
    (1024 + x * x * x / (1024 * 1024)).clamp(0, 2048) as u64
}

/// Pages a second that the disks write, averaged over 3 seconds, and computed every 200 ms.
fn measure(vm: &Vm, now: u64) -> u64 {
    const PERIOD: u64 = 3_000_000_000;
    vm.with(|state| {
        let speed = &mut state.dirty.speed;
        let elapsed = now - speed.at;
        if elapsed >= PAUSE {
            let written = speed.written.0 - speed.written.1;
            let old = PERIOD.saturating_sub(elapsed);
            let pages = u128::from(written) * 1_000_000_000 + u128::from(speed.pages) * u128::from(old);
            speed.pages = (pages / u128::from(elapsed.max(PERIOD))) as u64;
            (speed.at, speed.written.1) = (now, speed.written.0);
        }
        speed.pages
    })
}
