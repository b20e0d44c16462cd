//! Upkeep: deferred work, caches that keep too much, free memory that goes back to the system. There is no
//! thread for it: the threads that come to slow paths do it. [`super::decide`] has the decisions.

use super::decide::{self, Crowd, Due, Epoch, Held, Stock, TURN_EVERY_NS, Tide, Why};
use super::pages::pages;
use super::tenants;
use super::works;
use crate::kept_blocks;
use crate::world::Native;
use slablab_native::Sleep;
use slablab_pages::Pages;
use slablab_platform::{Time, Topology};
use slablab_slabs::Idle;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

/// Blocks of 2^2 frames and more go back first, the smallest of them before larger ones, which serve more
/// requests; smaller ones only if that was not enough.
const REPORT_ORDER: u8 = 2;
/// A huge page on pages of 4 KiB.
const HUGE_ORDER: u8 = 9;
/// How long one call of [`upkeep`] shrinks caches: the rest waits for the next slow paths,
const CALLER_NS: u64 = 5_000;
/// of which there may be none after a pause or a fall.
const LAST_CALLER_NS: u64 = 500_000;
/// How long the helper shrinks caches at a time.
const SLEEPER_NS: u64 = 10_000_000;
/// Turns that the helper takes at a time: after four, all caches had one.
const TURNS_A_SLEEP: u64 = crate::classes::COUNT as u64 / 4;

/// When the epoch began, in nanoseconds.
static EPOCH_BEGAN_NS: AtomicU64 = AtomicU64::new(0);
/// The most frames in use at a time in this epoch, and in the one before.
static MOST_USED: AtomicU64 = AtomicU64::new(0);
static MOST_USED_BEFORE: AtomicU64 = AtomicU64::new(0);
/// When turns were last counted, in nanoseconds.
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);
/// The turns that are due: a [`Due`].
static DUE: AtomicU64 = AtomicU64::new(0);
/// How many turns there were; and 1 + a turn of which a part was done, 0 for none.
static TURN: AtomicU32 = AtomicU32::new(0);
static UNFINISHED: AtomicU32 = AtomicU32::new(0);
/// Frames in use or resident: the least since caches last took their turns for growth.
static LEAST_HELD: AtomicU64 = AtomicU64::new(0);
/// Frames that the process is known to need: the most that were in use when caches had given back all that
/// they kept, or the least in use or resident since.
static NEEDED: AtomicU64 = AtomicU64::new(0);

/// The threads of the process. No lock is taken while it is held.
static CROWD: Sleep<Crowd> = Sleep::new(Crowd::START);

/// The most frames in use since the last look at [`TIDE`].
static MOST_SINCE: AtomicU64 = AtomicU64::new(0);
/// Whether the process is near its limit, so that it keeps nothing for later.
static NEAR_LIMIT: AtomicBool = AtomicBool::new(false);
/// The rises and falls of the frames in use. No lock is taken while it is held.
static TIDE: Sleep<Tide> = Sleep::new(Tide::START);

/// Does a bounded part of the upkeep that is due: deferred work, then a few caches' turns to shrink. Slow
/// paths call it. False if it was not the time for it.
#[inline]
pub(super) fn upkeep() -> bool {
    // The clock is looked at now and then; what is due goes on at once.
    if !Native::tick() && DUE.load(Relaxed) == 0 {
        return false;
    }
    let Some(pages) = pages() else { return false };
    if Native::work_waits() {
        works::do_due();
    }
    let (now, looked) = (Native::now(), LOOKED_NS.load(Relaxed));
    let turns = now.saturating_sub(looked) / TURN_EVERY_NS;
    if turns > 0 && LOOKED_NS.compare_exchange(looked, now, Relaxed, Relaxed).is_ok() {
        change_due(|due| due.after_look(turns));
    }
    if has_grown(pages) {
        DUE.store(Due::GROWN.pack(), Relaxed);
    }
    fall(pages);
    let due = Due::unpack(DUE.load(Relaxed));
    if due.turns > 0 {
        take_turns(pages, now + if due.why.paused { LAST_CALLER_NS } else { CALLER_NS });
    }
    true
}

/// The helper's upkeep: [`TURNS_A_SLEEP`] caches take a turn, and what was free all through an epoch
/// goes back. `slept_ns` is how long the helper slept.
pub(super) fn of_sleeper(slept_ns: u64) {
    let Some(pages) = pages() else { return };
    if Native::work_waits() {
        works::do_due();
    }
    let (now, looked) = (Native::now(), LOOKED_NS.load(Relaxed));
    // Other threads look: the process does not sleep.
    if now.saturating_sub(looked) >= slept_ns / 2 {
        LOOKED_NS.store(now, Relaxed);
        change_due(|due| due.after_look(TURNS_A_SLEEP));
        fall(pages);
        take_turns(pages, now + SLEEPER_NS);
    }
    give_back(end_epoch());
}

/// Frames that the kernel backs with memory, and that no caller needs: free ones, kept blocks, barns.
pub(super) fn idle_frames() -> u64 {
    let mut bytes = 0;
    tenants::each(|tenant| bytes += tenant.barn_bytes());
    pages().map_or(0, stock) + (bytes >> Native::page_shift())
}

/// Frames in use, and free ones that the kernel backs with memory.
pub(super) fn held_frames() -> u64 {
    pages().map_or(0, |pages| pages.taken_frames() + pages.resident_free_frames())
}

/// Has free memory go back at once, or not any more: the process is near its limit.
pub(super) fn keep_little(is_near: bool) {
    NEAR_LIMIT.store(is_near, Relaxed);
}

/// In a fall of what the process uses, gives the system free memory, and has caches take their turns: the
/// process may go to sleep. Large blocks call it when they are freed.
pub(super) fn after_free() {
    let Some(pages) = pages() else { return };
    fall(pages);
    if DUE.load(Relaxed) == Due::FELL.pack() {
        take_turns(pages, Native::now() + LAST_CALLER_NS);
    }
}

/// After a thread ended, and `threads` are left: if they became few, all that is idle goes back.
pub(super) fn after_thread(threads: u32) {
    if !CROWD.lock().ended(threads, Native::now) {
        return;
    }
    if let (Some(pages), Some(_pass)) = (pages(), Native::pass()) {
        DUE.store(Due::FELL.pack(), Relaxed);
        take_turns(pages, Native::now() + LAST_CALLER_NS);
        give_back_but(0);
    }
}

fn fall(pages: &Pages<Native>) {
    let used = note_used(pages);
    let most = MOST_SINCE.swap(used, Relaxed);
    if most <= used {
        // No fall. The next look knows of a rise: it is the most by then.
        return;
    }
    let ebb = TIDE.lock().look(most, used, stock(pages), Native::now, Native::page_shift());
    if let Some(keep) = ebb.keep {
        give_back_but(keep << Native::page_shift());
    }
    if ebb.empties_caches {
        DUE.store(Due::FELL.pack(), Relaxed);
    }
}

/// Changes the turns that are due.
fn change_due(change: impl Fn(Due) -> Due) {
    let _ = DUE.fetch_update(Relaxed, Relaxed, |due| Some(change(Due::unpack(due)).pack()));
}

/// Takes a turn that is due: why it is; `None` if none is.
fn take_due() -> Option<Why> {
    let one = |due| Due::unpack(due).after_one().map(Due::pack);
    DUE.fetch_update(Relaxed, Relaxed, one).ok().map(|due| Due::unpack(due).why)
}

/// Whether the process has grown since the last `true`.
fn has_grown(pages: &Pages<Native>) -> bool {
    let used = pages.taken_frames();
    let held = used + pages.resident_free_frames();
    let [least, needed] = [&LEAST_HELD, &NEEDED].map(|level| level.fetch_min(held, Relaxed).min(held));
    let slots = u64::from(Native::slots_used());
    let grows = Due::unpack(DUE.load(Relaxed)).why.grew;
    let has_grown =
        decide::has_grown(&Held { used, held, least, needed, slots, grows }, Native::page_shift());
    if has_grown {
        LEAST_HELD.store(held, Relaxed);
    }
    has_grown
}

/// Has the caches whose turn it is shrink, until the clock says `until_ns`. False if there is more to do.
fn take_turn(turn: u32, idle: Idle, until_ns: u64) -> bool {
    loop {
        let mut more = false;
        tenants::each(|tenant| more |= tenant.shrink(turn, idle));
        if !more {
            return true;
        }
        if Native::now() > until_ns {
            return false;
        }
    }
}

/// Has caches take the turns that are due, until the clock says `until_ns`.
#[cold]
fn take_turns(pages: &Pages<Native>, until_ns: u64) {
    // What is in use now was used lately. Caches that shrink make it less.
    note_used(pages);
    let before = pages.resident_free_frames();
    let mut grows = false;
    while let Some(why) = take_due() {
        grows |= why.frames_stay();
        let turn = match UNFINISHED.swap(0, Relaxed) {
            0 => TURN.fetch_add(1, Relaxed),
            unfinished => unfinished - 1,
        };
        if !take_turn(turn, why.idle(), until_ns) {
            // Of two threads that leave one each, one is left for the next round.
            UNFINISHED.store(turn.wrapping_add(1), Relaxed);
            change_due(|due| due.after_unfinished(why));
        }
        if Native::now() > until_ns {
            break;
        }
    }
    if grows {
        if DUE.load(Relaxed) == 0 {
            NEEDED.fetch_max(pages.taken_frames(), Relaxed);
        }
    } else {
        // Nobody needed what idle caches kept.
        give_back(end_epoch().max(pages.resident_free_frames().saturating_sub(before)));
    }
}

/// Gives the system free memory: `idle` frames, which were not needed lately ([`end_epoch`]), and what is
/// beyond a bound.
pub(crate) fn give_back(idle: u64) {
    let (Some(pages), shift) = (pages(), Native::page_shift()) else { return };
    let free = stock(pages);
    if decide::is_little(free, shift) {
        return;
    }
    if NEAR_LIMIT.load(Relaxed) {
        give_back_but(0);
        return;
    }
    let used = note_used(pages);
    let most_used = MOST_USED.load(Relaxed).max(MOST_USED_BEFORE.load(Relaxed));
    let of = Stock { free, idle, used, most_used, served: kept_blocks::served_lately() };
    if let Some(keep) = decide::stays(&of, shift) {
        give_back_but(keep << shift);
    }
}

/// Ends the epoch, if it is over; returns how many free frames were idle.
#[must_use]
pub(crate) fn end_epoch() -> u64 {
    let Some(pages) = pages() else { return 0 };
    if has_little(pages) {
        return 0;
    }
    let (now, began) = (Native::now(), EPOCH_BEGAN_NS.load(Relaxed));
    let after_pause = match decide::epoch(false, began, now) {
        Epoch::GoesOn => return 0,
        Epoch::Begins => {
            EPOCH_BEGAN_NS.store(now, Relaxed);
            return 0;
        }
        Epoch::Ends { after_pause } => after_pause,
    };
    if EPOCH_BEGAN_NS.compare_exchange(began, now, Relaxed, Relaxed).is_err() {
        return 0;
    }
    MOST_USED_BEFORE.store(MOST_USED.swap(note_used(pages), Relaxed), Relaxed);
    let free = stock(pages);
    kept_blocks::end_epoch(pages, after_pause);
    let least = pages.least_resident();
    if after_pause { free } else { least }
}

/// Says that a block becomes free: an epoch in which nothing was idle may begin anew.
pub(crate) fn note_block_free() {
    if !pages().is_some_and(has_little) {
        return;
    }
    let now = Native::now();
    if decide::begins_anew(true, EPOCH_BEGAN_NS.load(Relaxed), now) {
        EPOCH_BEGAN_NS.store(now, Relaxed);
    }
}

/// Whether hardly any memory is free.
fn has_little(pages: &Pages<Native>) -> bool {
    decide::is_little(stock(pages), Native::page_shift())
}

/// Free frames that are resident.
fn stock(pages: &Pages<Native>) -> u64 {
    pages.resident_free_frames() + kept_blocks::frames()
}

/// Notes how many frames are in use, and returns it. Requests of page frames call it when they got them.
pub(crate) fn note_used(pages: &Pages<Native>) -> u64 {
    let used = pages.taken_frames().saturating_sub(kept_blocks::frames());
    if used > MOST_USED.load(Relaxed) {
        MOST_USED.fetch_max(used, Relaxed);
    }
    if used > MOST_SINCE.load(Relaxed) {
        MOST_SINCE.fetch_max(used, Relaxed);
    }
    used
}

/// Gives free memory back to the system, all but `keep` bytes. Returns the bytes given back.
fn give_back_but(keep: u64) -> u64 {
    let (Some(pages), shift) = (pages(), Native::page_shift()) else { return 0 };
    let (keep, blocks, resident) = (keep >> shift, kept_blocks::frames(), pages.resident_free_frames());
    let (of_blocks, of_frames) = decide::leave(blocks, resident, keep);
    kept_blocks::release_smallest(pages, of_blocks, blocks - of_blocks);
    let stays = resident.saturating_sub(of_frames);
    if pages.resident_free_frames() <= stays {
        return 0;
    }
    // A huge page that is given back in part is one no more.
    let (order, whole) =
        if Native::has_huge_pages() && keep > 0 { (HUGE_ORDER, true) } else { (REPORT_ORDER, false) };
    let large = pages.report_free(order, stays, Native::discard);
    // Small blocks are many calls to the kernel: only if they are what there is.
    let small = match !whole && pages.resident_free_frames() > stays << 1 {
        true => pages.report_free(0, stays, Native::discard),
        false => 0,
    };
    (large + small) << shift
}

/// Has every tenant give back the free memory that it keeps, and gives it to the system. Returns the bytes.
pub fn trim() -> u64 {
    tenants::each(|tenant| tenant.shrink_all());
    give_back_but(0)
}
