//! Freed blocks of page frames that are kept out of reach for a while: by a debugging heap (`debug=` with the
//! letter P), and by the hardened one.
//!
//! A block above the classes has no red zone or poison, so no check would find a write after its free.
//! Instead the block becomes inaccessible when it is freed: the kernel ends the process at the instruction
//! that reads or writes it. The oldest block goes back to the page allocator when a bound is reached, or when
//! memory is short.

use crate::world::Native;
use slablab_native::Sleep;
use slablab_pages::Pages;
use slablab_platform::Pfn;

/// Most blocks that are kept. Each is a mapping of its own to the kernel, which allows 65,530.
const MOST: usize = 64;
/// Most page frames that are kept, 64 MiB on pages of 4 KiB. They cost address space of the heap; their
/// memory is given back.
const MOST_FRAMES: u32 = 1 << 14;
/// Most page frames that are kept with their memory, 2 MiB on pages of 4 KiB.
const MOST_RESIDENT: u32 = 1 << 9;

#[derive(Clone, Copy)]
struct Block {
    pfn: Pfn,
    frames: u32,
    /// Whether the block has its memory still.
    is_resident: bool,
}

impl Block {
    fn resident(&self) -> u32 {
        if self.is_resident { self.frames } else { 0 }
    }
}

/// First in, first out.
struct Kept {
    blocks: [Option<Block>; MOST],
    oldest: usize,
    count: usize,
    frames: u32,
    resident: u32,
}

static KEPT: Sleep<Kept> =
    Sleep::new(Kept { blocks: [None; MOST], oldest: 0, count: 0, frames: 0, resident: 0 });

impl Kept {
    /// Adds a block, if there is room.
    fn push(&mut self, block: Block) -> bool {
        let fits = self.count < MOST
            && self.frames + block.frames <= MOST_FRAMES
            && self.resident + block.resident() <= MOST_RESIDENT;
        if !fits {
            return false;
        }
        self.blocks[(self.oldest + self.count) % MOST] = Some(block);
        self.count += 1;
        self.frames += block.frames;
        self.resident += block.resident();
        true
    }

    fn pop(&mut self) -> Option<Block> {
        let block = self.blocks[self.oldest].take()?;
        self.oldest = (self.oldest + 1) % MOST;
        self.count -= 1;
        self.frames -= block.frames;
        self.resident -= block.resident();
        Some(block)
    }
}

/// Makes a freed block, which is in no slab any more, inaccessible, and keeps it; its memory is given back.
/// `false` if the block is too large or the kernel refuses; then the caller frees it.
pub(crate) fn keep(pages: &Pages<Native>, pfn: Pfn) -> bool {
    let block = Block { pfn, frames: Pages::<Native>::exact_frames(pfn), is_resident: false };
    block.frames <= MOST_FRAMES && Native::forbid(pfn, block.frames) && put(pages, block)
}

/// As [`keep`], but the block keeps its memory, so that its next owner has no page faults.
pub(crate) fn keep_resident(pages: &Pages<Native>, pfn: Pfn) -> bool {
    let block = Block { pfn, frames: Pages::<Native>::exact_frames(pfn), is_resident: true };
    block.frames <= MOST_RESIDENT && Native::hide(pfn, block.frames) && put(pages, block)
}

/// Adds a block. The oldest ones make room.
fn put(pages: &Pages<Native>, block: Block) -> bool {
    loop {
        let mut kept = KEPT.lock();
        if kept.push(block) {
            return true;
        }
        let oldest = kept.pop();
        // Without this lock: the page allocator has locks of its own.
        drop(kept);
        // A block that the kernel refuses is lost.
        let _ = oldest.is_some_and(|oldest| give_back(pages, oldest));
    }
}

/// Gives every kept block back to the page allocator, and returns their frames. Ends early if the kernel
/// refuses one: at a limit of memory it refuses the others, too.
pub(crate) fn release_all(pages: &Pages<Native>) -> u64 {
    let mut released = 0;
    loop {
        let oldest = KEPT.lock().pop();
        let Some(oldest) = oldest else { return released };
        if !give_back(pages, oldest) {
            KEPT.lock().push(oldest);
            return released;
        }
        released += u64::from(oldest.frames);
    }
}

/// Whether a kept block starts at this frame and offset.
pub(crate) fn is_kept((pfn, offset): (Pfn, u32)) -> bool {
    offset == 0 && KEPT.lock().blocks.iter().flatten().any(|block| block.pfn == pfn)
}

/// Gives a block back to the page allocator. `false` if the kernel refuses: its next owner could not use it.
fn give_back(pages: &Pages<Native>, block: Block) -> bool {
    let permitted = Native::permit(block.pfn, block.frames);
    match permitted {
        true if block.is_resident => pages.free_exact(block.pfn),
        true => pages.free_exact_discarded(block.pfn),
        false => {}
    }
    permitted
}
