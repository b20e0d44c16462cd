//! Freed blocks of page frames that stay whole for a while, for the next request of their size.
//!
//! The page allocator takes a freed block in as the buddies that it is made of, and a request that is a
//! little larger than the largest of them would get memory that was never used: a page fault for each page.
//! To split buddies and to merge them takes time, too. So a block stays here until a request takes it, until
//! it was idle for an epoch (`shared::upkeep`), or until a bound is reached.

use crate::world::Native;
use slablab_native::Sleep;
use slablab_pages::Pages;
use slablab_platform::{NodeId, Pfn, Time};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most blocks that are kept.
const MOST: usize = 64;
/// Smaller blocks do not grow for a request, and make room for larger ones: 256 KiB on pages of 4 KiB.
const LARGE_FRAMES: u32 = 64;
/// The end of a block that was asked for goes to the page allocator if it is more than this part of the
/// block.
const END_FRACTION: u32 = 16;
/// How many blocks are tried to grow.
const TRIES: usize = 4;
/// The smallest block for which huge pages are worth while: 4 MiB on pages of 4 KiB.
const HUGE_FRAMES: u32 = 1024;
/// A new block within this time after the free of another one replaces it.
const REPLACES_NS: u64 = 128_000_000;

#[derive(Clone, Copy)]
struct Block {
    pfn: Pfn,
    frames: u32,
    freed_ns: u64,
}

struct Kept {
    blocks: [Block; MOST],
    count: usize,
}

const EMPTY: Block = Block { pfn: Pfn(0), frames: 0, freed_ns: 0 };
static KEPT: Sleep<Kept> = Sleep::new(Kept { blocks: [EMPTY; MOST], count: 0 });
/// Frames of all kept blocks. Written under the lock.
static FRAMES: AtomicU64 = AtomicU64::new(0);
/// When a block of at least [`HUGE_FRAMES`] was last freed.
static HUGE_FREED_NS: AtomicU64 = AtomicU64::new(0);

/// For the directory: the address of the number of frames of all kept blocks.
pub(crate) fn frames_at() -> u64 {
    std::ptr::from_ref(&FRAMES).addr() as u64
}

impl Kept {
    fn remove(&mut self, index: usize) -> Block {
        let block = self.blocks[index];
        self.count -= 1;
        self.blocks[index] = self.blocks[self.count];
        FRAMES.store(frames() - u64::from(block.frames), Relaxed);
        block
    }

    fn best<R: Ord>(&self, rank: impl Fn(&Block) -> Option<R>) -> Option<usize> {
        let ranked = self.blocks[..self.count].iter().enumerate();
        ranked.filter_map(|(index, block)| Some((rank(block)?, index))).min().map(|(_, index)| index)
    }
}

/// Frames of kept blocks.
pub(crate) fn frames() -> u64 {
    FRAMES.load(Relaxed)
}

/// Keeps a freed block, which is in no slab any more.
pub(crate) fn keep(pages: &Pages<Native>, pfn: Pfn) {
    let frames = Pages::<Native>::exact_frames(pfn);
    let now = Native::now();
    if frames >= HUGE_FRAMES {
        HUGE_FREED_NS.store(now, Relaxed);
    }
    put(pages, Block { pfn, frames, freed_ns: now });
}

/// Allows huge pages for a new block of a process that replaces large blocks again and again: it fills them,
/// and each of its pages would be a page fault. A block that is never replaced may be a table with few used
/// pages.
pub(crate) fn allow_huge_pages(pfn: Pfn, frames: u32) {
    if frames >= HUGE_FRAMES && Native::now().saturating_sub(HUGE_FREED_NS.load(Relaxed)) < REPLACES_NS {
        Native::allow_huge_pages(pfn, frames);
    }
}

/// Adds a block. If there are [`MOST`], the one that was idle longest makes room, a small one first; a small
/// one is not kept where all others are large.
fn put(pages: &Pages<Native>, block: Block) {
    let rank = |block: &Block| (block.frames >= LARGE_FRAMES, block.freed_ns);
    let mut kept = KEPT.lock();
    let mut leaves = None;
    if kept.count == MOST {
        let first =
            kept.best(|block| Some(rank(block))).filter(|first| rank(&kept.blocks[*first]) < rank(&block));
        leaves = Some(first.map_or(block, |first| kept.remove(first)));
    }
    if kept.count < MOST {
        let count = kept.count;
        kept.blocks[count] = block;
        kept.count += 1;
        FRAMES.store(frames() + u64::from(block.frames), Relaxed);
    }
    // Without this lock: the page allocator has locks of its own.
    drop(kept);
    if let Some(block) = leaves {
        pages.free_exact(block.pfn);
    }
}

/// A kept block of a node with `frames` frames at a multiple of 2^`align` frames: the smallest that is large
/// enough, else, for a large one, the largest that can grow where it is. Its memory may hold anything.
pub(crate) fn take(pages: &Pages<Native>, frames: u32, align: u8, node: NodeId) -> Option<Pfn> {
    if self::frames() == 0 {
        return None;
    }
    let is_here = |block: &Block| {
        block.pfn.0.trailing_zeros() >= u32::from(align) && Pages::<Native>::exact_node(block.pfn) == node
    };
    // A small request would cut up a large block.
    let may_serve = |block: &Block| frames >= LARGE_FRAMES || block.frames < LARGE_FRAMES;
    let is_enough = |block: &Block| {
        (is_here(block) && block.frames >= frames && may_serve(block)).then_some(block.frames)
    };
    if let Some(block) = take_best(is_enough) {
        if block.frames - frames > block.frames / END_FRACTION {
            pages.resize_exact(block.pfn, frames);
        }
        return Some(block.pfn);
    }
    if frames < LARGE_FRAMES {
        return None;
    }
    // Those that cannot grow stay out of reach until one can: the next is a smaller one.
    let mut refused = [EMPTY; TRIES];
    let mut taken = None;
    for place in &mut refused {
        let is_half = |block: &Block| is_here(block) && block.frames >= frames / 2;
        let Some(block) = take_best(|block| is_half(block).then_some(Reverse(block.frames))) else { break };
        if pages.resize_exact(block.pfn, frames) {
            allow_huge_pages(block.pfn, frames);
            taken = Some(block.pfn);
            break;
        }
        *place = block;
    }
    for block in refused.into_iter().filter(|block| block.frames > 0) {
        put(pages, block);
    }
    taken
}

/// The kept block with the least rank; `None` if no block has one.
fn take_best<R: Ord>(rank: impl Fn(&Block) -> Option<R>) -> Option<Block> {
    let mut kept = KEPT.lock();
    let index = kept.best(rank)?;
    Some(kept.remove(index))
}

/// Gives the page allocator the kept blocks that were freed before `since_ns`. `false` if there was none.
pub(crate) fn release(pages: &Pages<Native>, since_ns: u64) -> bool {
    let mut any = false;
    while let Some(block) = take_best(|block| (block.freed_ns < since_ns).then_some(block.freed_ns)) {
        pages.free_exact(block.pfn);
        any = true;
    }
    any
}

/// Gives the page allocator kept blocks, the longest idle first, until at most `frames` frames are kept.
pub(crate) fn release_down_to(pages: &Pages<Native>, frames: u64) {
    while self::frames() > frames {
        let Some(block) = take_best(|block| Some(block.freed_ns)) else { return };
        pages.free_exact(block.pfn);
    }
}

/// Gives the page allocator all kept blocks. `false` if there was none.
pub(crate) fn release_all(pages: &Pages<Native>) -> bool {
    release(pages, u64::MAX)
}
