//! Freed blocks of page frames that stay for a while, for the next requests.
//!
//! The page allocator takes a freed block in as the buddies that it is made of, and a request that is a
//! little larger than the largest of them would get memory that was never used: a page fault for each page.
//! To split buddies and to merge them takes time, too. So a block stays here: neighbours become one block,
//! and a request takes the smallest that is large enough, or its beginning. Blocks leave when they were idle
//! for an epoch (`shared::upkeep`), or when a bound is reached.
//!
//! ```text
//! take         a block that is large enough; what is left of it stays
//!   grow         else, for a large one: a smaller one and the free frames behind it
//! resize       a live block takes from the kept one behind it, or leaves its end there
//! keep         joins the block with its neighbours
//! end_epoch    gives the page allocator what was idle
//! release_all  the page allocator has no memory for a request (`Native::on_reclaim`)
//! ```

mod bins;

pub(crate) use bins::{FIRST, LAST};

use crate::world::Native;
use bins::{Bins, begins, ending, frames_of};
use slablab_native::Sleep;
use slablab_pages::Pages;
use slablab_platform::{NodeId, Pfn, Time};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The frames of a large block, 256 KiB on pages of 4 KiB. Smaller requests do not make a block grow.
const LARGE_FRAMES: u32 = 64;
/// What is left of a block stays if it is more than this part of the block.
const END_FRACTION: u32 = 16;
/// A block serves requests of at least this part of its frames: its next owner may need all of it.
const FIT_FRACTION: u32 = 16;
/// How many blocks are tried to grow.
const TRIES: usize = 4;
/// The smallest block for which huge pages are worth while: 4 MiB on pages of 4 KiB.
const HUGE_FRAMES: u32 = 1024;
/// A new block within this time after the free of another one replaces it.
const REPLACES_NS: u64 = 128_000_000;

struct Kept {
    bins: Bins,
    frames: u64,
    /// Counts the epochs.
    epoch: u64,
    /// The least of `frames` since the epoch began.
    least: u64,
}

static KEPT: Sleep<Kept> = Sleep::new(Kept { bins: Bins::EMPTY, frames: 0, epoch: 0, least: 0 });
/// Frames of all kept blocks: written under the lock, by [`Kept::publish`].
static FRAMES: AtomicU64 = AtomicU64::new(0);
/// Frames that requests took from here in this epoch, and in the one before.
static SERVED: AtomicU64 = AtomicU64::new(0);
static SERVED_BEFORE: AtomicU64 = AtomicU64::new(0);
/// When a block of at least [`HUGE_FRAMES`] was last freed.
static HUGE_FREED_NS: AtomicU64 = AtomicU64::new(0);

/// For the directory: the address of the number of frames of all kept blocks.
pub(crate) fn frames_at() -> u64 {
    std::ptr::from_ref(&FRAMES).addr() as u64
}

/// Frames of kept blocks.
pub(crate) fn frames() -> u64 {
    FRAMES.load(Relaxed)
}

fn note_served(frames: u32) {
    SERVED.fetch_add(u64::from(frames), Relaxed);
}

/// Frames that requests took from kept blocks within an epoch, lately.
pub(crate) fn served_lately() -> u64 {
    SERVED.load(Relaxed).max(SERVED_BEFORE.load(Relaxed))
}

impl Kept {
    fn insert(&mut self, pfn: Pfn) {
        self.bins.insert(pfn, self.epoch);
        self.frames += u64::from(frames_of(pfn));
    }

    fn remove(&mut self, pfn: Pfn) {
        self.bins.remove(pfn);
        self.frames -= u64::from(frames_of(pfn));
    }

    /// Says how many frames are kept now. Called before the lock is let go.
    fn publish(&mut self) {
        FRAMES.store(self.frames, Relaxed);
        self.note_least();
    }

    fn note_least(&mut self) {
        self.least = self.least.min(self.frames);
    }

    /// Adds a block, as one with the kept blocks behind it and before it.
    fn join(&mut self, pfn: Pfn) {
        self.join_behind(pfn);
        let before = ending(Pfn(pfn.0 - 1)).filter(|before| node_of(*before) == node_of(pfn));
        if let Some(before) = before {
            self.remove(before);
            Pages::<Native>::join_exact(before, pfn);
        }
        self.insert(before.unwrap_or(pfn));
    }

    /// Makes one of a block and the kept block behind it, if there is one.
    fn join_behind(&mut self, pfn: Pfn) {
        let behind = pfn.plus(frames_of(pfn));
        if begins(behind) && node_of(behind) == node_of(pfn) {
            self.remove(behind);
            Pages::<Native>::join_exact(pfn, behind);
        }
    }
}

fn node_of(pfn: Pfn) -> NodeId {
    Pages::<Native>::exact_node(pfn)
}

/// Whether a block is so large that its owner takes longer than a look at the clock.
pub(crate) fn is_large(pfn: Pfn) -> bool {
    frames_of(pfn) >= LARGE_FRAMES
}

/// Keeps a freed block, which is in no slab any more.
pub(crate) fn keep(pfn: Pfn) {
    if frames_of(pfn) >= HUGE_FRAMES {
        HUGE_FREED_NS.store(Native::now(), Relaxed);
    }
    put(pfn);
}

fn put(pfn: Pfn) {
    let mut kept = KEPT.lock();
    kept.join(pfn);
    kept.publish();
}

/// Resizes a live block where it is: it takes frames of the kept block behind it, then of the page allocator.
/// The frames that it does not need any more are kept. `false`, and it stays as it was, if it cannot grow.
pub(crate) fn resize(pages: &Pages<Native>, pfn: Pfn, frames: u32) -> bool {
    let before = frames_of(pfn);
    let mut kept = KEPT.lock();
    if frames > before {
        kept.join_behind(pfn);
    }
    let has = frames_of(pfn);
    if has >= frames {
        if has > frames {
            let end = pages.split_exact(pfn, frames);
            kept.join(end);
        }
        kept.publish();
        note_served(frames.saturating_sub(before));
        return true;
    }
    FRAMES.store(kept.frames, Relaxed);
    // The page allocator has locks of its own.
    drop(kept);
    let grown = pages.resize_exact(pfn, frames);
    if grown {
        KEPT.lock().note_least();
        note_served(has - before);
    } else if has > before {
        put(pages.split_exact(pfn, before));
    }
    grown
}

/// Allows huge pages for a new block of a process that replaces large blocks again and again: it fills them,
/// and each of its pages would be a page fault. A block that is never replaced may be a table with few used
/// pages.
pub(crate) fn allow_huge_pages(pfn: Pfn, frames: u32) {
    if frames >= HUGE_FRAMES && Native::now().saturating_sub(HUGE_FREED_NS.load(Relaxed)) < REPLACES_NS {
        Native::allow_huge_pages(pfn, frames);
    }
}

/// A kept block of a node with `frames` frames at a multiple of 2^`align` frames. Its memory may hold
/// anything.
pub(crate) fn take(pages: &Pages<Native>, frames: u32, align: u8, node: NodeId) -> Option<Pfn> {
    if self::frames() < u64::from(frames) / 2 {
        return None;
    }
    let wanted = frames.checked_add((1 << align) - 1)?;
    let most = wanted.saturating_mul(FIT_FRACTION);
    let mut kept = KEPT.lock();
    if let Some(mut pfn) = kept.bins.find(wanted, most, node) {
        kept.remove(pfn);
        let before = pfn.0.next_multiple_of(1 << align) - pfn.0;
        if before > 0 {
            let second = pages.split_exact(pfn, before);
            kept.insert(pfn);
            pfn = second;
        }
        if frames_of(pfn) - frames > frames_of(pfn) / END_FRACTION {
            let end = pages.split_exact(pfn, frames);
            kept.insert(end);
        }
        kept.publish();
        note_served(frames);
        return Some(pfn);
    }
    drop(kept);
    if frames < LARGE_FRAMES || align > 0 { None } else { grow(pages, frames, node) }
}

/// Makes a block of `frames` frames of a kept one that is smaller, and of the free frames behind it.
#[cold]
fn grow(pages: &Pages<Native>, frames: u32, node: NodeId) -> Option<Pfn> {
    // Those that cannot grow stay out of reach until one can: the next is a smaller one.
    let mut refused = [None; TRIES];
    let mut taken = None;
    for place in &mut refused {
        // The page allocator has locks of its own: this one is let go.
        let Some(pfn) = take_if(|bins| bins.find_below(frames, node)) else { break };
        let before = frames_of(pfn);
        if pages.resize_exact(pfn, frames) {
            allow_huge_pages(pfn, frames);
            note_served(before);
            taken = Some(pfn);
            break;
        }
        *place = Some(pfn);
    }
    refused.into_iter().flatten().for_each(put);
    KEPT.lock().note_least();
    taken
}

/// Ends an epoch: gives the page allocator the blocks that came before it began, and more if more was left
/// all the time, the largest first; all blocks if `all` says so.
pub(crate) fn end_epoch(pages: &Pages<Native>, all: bool) {
    let mut kept = KEPT.lock();
    let began = kept.epoch;
    kept.epoch += 1;
    SERVED_BEFORE.store(SERVED.swap(0, Relaxed), Relaxed);
    let now = kept.frames;
    let least = std::mem::replace(&mut kept.least, now).min(now);
    drop(kept);
    let mut idle = if all { now } else { least };
    while let Some(pfn) = take_if(|bins| bins.older_than(began)) {
        idle = idle.saturating_sub(u64::from(frames_of(pfn)));
        pages.free_exact(pfn);
    }
    KEPT.lock().note_least();
    release(pages, idle, 0, Bins::largest);
}

/// Removes the block that `choose` chooses. The caller may put it back: it is not noted as needed.
fn take_if(choose: impl Fn(&Bins) -> Option<Pfn>) -> Option<Pfn> {
    let mut kept = KEPT.lock();
    let pfn = choose(&kept.bins)?;
    kept.remove(pfn);
    FRAMES.store(kept.frames, Relaxed);
    Some(pfn)
}

/// Gives the page allocator `frames` frames of kept blocks, or what is beyond `stays` frames if that is less:
/// the smallest blocks first, which serve the fewest requests.
pub(crate) fn release_smallest(pages: &Pages<Native>, frames: u64, stays: u64) {
    release(pages, frames, stays, Bins::smallest);
}

/// Gives the page allocator `frames` frames of the blocks that `choose` chooses, or what is beyond `stays`
/// frames if that is less: another thread may release some at the same time. Returns how many.
fn release(pages: &Pages<Native>, frames: u64, stays: u64, choose: impl Fn(&Bins) -> Option<Pfn>) -> u64 {
    let mut released = 0;
    loop {
        let mut kept = KEPT.lock();
        let due = (frames - released).min(kept.frames.saturating_sub(stays));
        let Some(pfn) = Some(due).filter(|due| *due > 0).and_then(|_| choose(&kept.bins)) else { break };
        kept.remove(pfn);
        // The beginning of a block stays, if all of it would be too much.
        let beyond = u64::from(frames_of(pfn)).saturating_sub(due);
        let leaves = if beyond > 0 { pages.split_exact(pfn, beyond as u32) } else { pfn };
        if beyond > 0 {
            kept.insert(pfn);
        }
        kept.publish();
        drop(kept);
        released += u64::from(frames_of(leaves));
        pages.free_exact(leaves);
    }
    released
}

/// Gives the page allocator all kept blocks, and returns their frames.
pub(crate) fn release_all(pages: &Pages<Native>) -> u64 {
    release(pages, frames(), 0, Bins::smallest)
}
