//! Upkeep: deferred work, caches that keep too much, free memory that goes back to the system. There is no
//! thread for it: the threads that come to slow paths do it.

use super::pages::pages;
use super::tenants;
use super::works;
use crate::kept_blocks;
use crate::world::Native;
use slablab_pages::Pages;
use slablab_platform::{Time, Topology};
use slablab_slabs::Idle;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Free memory that stays for the next request, in bytes.
const KEEP_BYTES: u64 = 2 << 20;
/// What caches may keep in a slot beside an eighth of what the process needs, in bytes: as much as the main
/// sheaves of all classes when they have grown.
const SLOT_BYTES: u64 = 4 << 20;
/// The length of an epoch.
const EPOCH_NS: u64 = 64_000_000;
/// After so many epochs without a look, all that is free goes back.
const PAUSE: u64 = 10;
/// The free memory that stays is at most this part of the most that was used lately, or what
/// [`SERVED_FRACTION`] says if that is more.
const STOCK_FRACTION: u64 = 16;
/// Of this part of it, as much may stay as requests took from kept blocks within an epoch: they take such
/// memory again and again.
const SERVED_FRACTION: u64 = 4;
/// Blocks of 2^2 frames and more go back first, the smallest of them before larger ones, which serve more
/// requests; smaller ones only if that was not enough.
const REPORT_ORDER: u8 = 2;
/// A huge page on pages of 4 KiB.
const HUGE_ORDER: u8 = 9;
/// How often the next cache is asked to shrink: all of them in two thirds of a second.
const TURN_EVERY_NS: u64 = 5_000_000;
/// Most turns that are due after a time without slow paths: all caches once.
const TURNS_MOST: u64 = crate::classes::COUNT as u64;
/// How long one call of [`upkeep`] shrinks caches.
const CALLER_NS: u64 = 500_000;

/// When the epoch began, in nanoseconds.
static EPOCH_BEGAN_NS: AtomicU64 = AtomicU64::new(0);
/// The most frames in use at a time in this epoch, and in the one before.
static MOST_USED: AtomicU64 = AtomicU64::new(0);
static MOST_USED_BEFORE: AtomicU64 = AtomicU64::new(0);
/// When turns were last counted, in nanoseconds.
static LOOKED_NS: AtomicU64 = AtomicU64::new(0);
/// How many turns are due, and why: [`GROWING`], [`PAUSED`].
static DUE: AtomicU64 = AtomicU64::new(0);
/// How many turns there were; and 1 + a turn of which a part was done, 0 for none.
static TURN: AtomicU32 = AtomicU32::new(0);
static UNFINISHED: AtomicU32 = AtomicU32::new(0);
/// Frames in use or resident: the least since caches last took their turns for growth.
static LEAST_HELD: AtomicU64 = AtomicU64::new(0);
/// Frames that the process is known to need: the most that were in use when caches had given back all that
/// they kept, or the least in use or resident since.
static NEEDED: AtomicU64 = AtomicU64::new(0);
/// In [`DUE`]: the process grew; there was a pause. Then caches give back all that they keep for later.
const GROWING: u64 = 1 << 32;
const PAUSED: u64 = 1 << 33;

/// Does a bounded part of the upkeep that is due: deferred work, then a few caches' turns to shrink. Slow
/// paths call it.
#[inline]
pub fn upkeep() {
    // The clock is looked at now and then; what is due goes on at once.
    if !Native::tick() && DUE.load(Relaxed) == 0 {
        return;
    }
    if Native::work_waits() {
        works::do_due();
    }
    let (now, looked) = (Native::now(), LOOKED_NS.load(Relaxed));
    let turns = now.saturating_sub(looked) / TURN_EVERY_NS;
    if turns > 0 && LOOKED_NS.compare_exchange(looked, now, Relaxed, Relaxed).is_ok() {
        // If the process grew before a pause, and its turns were not all taken: it does not grow now.
        let why = (turns >= TURNS_MOST).then_some(PAUSED);
        add_due(turns, |before| why.unwrap_or(before));
    }
    if has_grown() {
        DUE.store(GROWING | TURNS_MOST, Relaxed);
    }
    if DUE.load(Relaxed) > 0 {
        take_turns(now + CALLER_NS);
    }
}

/// The number of turns in a value of [`DUE`].
fn turns_of(due: u64) -> u64 {
    due & u64::from(u32::MAX)
}

/// Adds turns that are due. `why` gets why those before are due, and says why all are.
fn add_due(turns: u64, why: impl Fn(u64) -> u64) {
    let more = |due| Some(why(due - turns_of(due)) | (turns_of(due) + turns).min(TURNS_MOST));
    let _ = DUE.fetch_update(Relaxed, Relaxed, more);
}

/// Takes a turn that is due: why it is; `None` if none is.
fn take_due() -> Option<u64> {
    let less = |due| match turns_of(due) {
        0 => None,
        1 => Some(0),
        _ => Some(due - 1),
    };
    DUE.fetch_update(Relaxed, Relaxed, less).ok().map(|due| due - turns_of(due))
}

/// Whether the process has grown: what it holds, by an eighth and at least [`KEEP_BYTES`], over the least it
/// held since the last `true`; or what is in use, by an eighth and [`SLOT_BYTES`] a slot, over what it is
/// known to need. Then every cache takes a turn at once: the objects that it keeps for later may be the
/// memory that is short now.
///
/// By the first rule alone, each growth is counted from the one before, so that a process whose sizes change
/// grows without a bound. The second one has room for what caches fill again at once.
fn has_grown() -> bool {
    let Some(pages) = pages() else { return false };
    let taken = pages.taken_frames();
    let held = taken + pages.resident_free_frames();
    let [least, needed] = [&LEAST_HELD, &NEEDED].map(|level| level.fetch_min(held, Relaxed).min(held));
    let shift = Native::page_shift();
    let holds_more = held - least > (least / 8).max(KEEP_BYTES >> shift);
    let of_slots = u64::from(Native::slots_used()) * (SLOT_BYTES >> shift);
    // While turns for growth are due, what is needed is not known.
    let uses_more = taken > needed + needed / 8 + of_slots && DUE.load(Relaxed) & GROWING == 0;
    if holds_more || uses_more {
        LEAST_HELD.store(held, Relaxed);
    }
    holds_more || uses_more
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
fn take_turns(until_ns: u64) {
    let Some(pages) = pages() else { return };
    // What is in use now was used lately. Caches that shrink make it less.
    note_used(pages);
    let before = pages.resident_free_frames();
    let mut grows = false;
    while let Some(why) = take_due() {
        grows |= why & GROWING != 0;
        let turn = match UNFINISHED.swap(0, Relaxed) {
            0 => TURN.fetch_add(1, Relaxed),
            unfinished => unfinished - 1,
        };
        if !take_turn(turn, if why == 0 { Idle::Since } else { Idle::All }, until_ns) {
            // Of two threads that leave one each, one is left for the next round.
            UNFINISHED.store(turn.wrapping_add(1), Relaxed);
            add_due(1, |before| before | why);
        }
        if Native::now() > until_ns {
            break;
        }
    }
    // A growing process allocates again the pages that its caches have just freed: given back, each would be
    // a page fault.
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
/// beyond a bound. Within an epoch, the process holds at most a part more than the most it used lately:
/// fragments would grow without a bound.
pub(crate) fn give_back(idle: u64) {
    let (Some(pages), shift) = (pages(), Native::page_shift()) else { return };
    let (stock, least) = (stock(pages), KEEP_BYTES >> shift);
    if stock <= least {
        return;
    }
    let used = note_used(pages);
    let most_used = MOST_USED.load(Relaxed).max(MOST_USED_BEFORE.load(Relaxed));
    let served = kept_blocks::served_lately().min(most_used / SERVED_FRACTION);
    let share = (most_used / STOCK_FRACTION).max(served).max(least);
    let bound = (most_used + share).saturating_sub(used);
    let keep = stock.saturating_sub(idle).min(bound).max(least);
    if keep < stock {
        give_back_but(keep << shift);
    }
}

/// Ends the epoch, if it is over; returns how many free frames were idle.
///
/// Time is cut into epochs of [`EPOCH_NS`]. Idle is what was free all through the epoch that ends; after a
/// pause of [`PAUSE`] epochs all that is free is. An epoch does not end while hardly any memory is free.
#[must_use]
pub(crate) fn end_epoch() -> u64 {
    let Some(pages) = pages() else { return 0 };
    if stock(pages) <= KEEP_BYTES >> Native::page_shift() {
        return 0;
    }
    let (now, began) = (Native::now(), EPOCH_BEGAN_NS.load(Relaxed));
    let epochs = if began == 0 { 0 } else { now.saturating_sub(began) / EPOCH_NS };
    if began == 0 {
        // The first epoch begins.
        EPOCH_BEGAN_NS.store(now, Relaxed);
    }
    if epochs == 0 || EPOCH_BEGAN_NS.compare_exchange(began, now, Relaxed, Relaxed).is_err() {
        return 0;
    }
    MOST_USED_BEFORE.store(MOST_USED.swap(note_used(pages), Relaxed), Relaxed);
    let pause = epochs >= PAUSE;
    let free = stock(pages);
    kept_blocks::end_epoch(pages, pause);
    let least = pages.least_resident();
    if pause { free } else { least }
}

/// Says that a block becomes free: if hardly any memory was free until now, an epoch that lasted through a
/// pause begins anew, because nothing was idle in it.
pub(crate) fn note_block_free() {
    if pages().is_none_or(|pages| stock(pages) > KEEP_BYTES >> Native::page_shift()) {
        return;
    }
    let now = Native::now();
    if now.saturating_sub(EPOCH_BEGAN_NS.load(Relaxed)) >= PAUSE * EPOCH_NS {
        EPOCH_BEGAN_NS.store(now, Relaxed);
    }
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
    used
}

/// Gives free memory back to the system, all but `keep` bytes. Returns the bytes given back.
fn give_back_but(keep: u64) -> u64 {
    let (Some(pages), shift) = (pages(), Native::page_shift()) else { return 0 };
    let (keep, blocks, resident) = (keep >> shift, kept_blocks::frames(), pages.resident_free_frames());
    let excess = (blocks + resident).saturating_sub(keep);
    // It leaves where there is more: kept blocks serve requests of blocks, the page allocator's frames slabs.
    let of_blocks = if blocks > resident { excess.min(blocks) } else { excess.saturating_sub(resident) };
    kept_blocks::release_smallest(pages, of_blocks, blocks - of_blocks);
    let stays = resident.saturating_sub(excess - of_blocks);
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
