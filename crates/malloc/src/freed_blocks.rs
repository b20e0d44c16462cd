//! Freed blocks of page frames that a debugging heap keeps out of reach for a while (`debug=` with the letter
//! P).
//!
//! A block above the classes has nothing around it, so a write after its free would be found by no one. Such
//! a block loses every access when it is freed: whoever reads or writes it then is ended by the system, at
//! the instruction that does it. It goes back to the page allocator when it is the oldest and a bound is
//! reached, or when memory is short.

use crate::world::Native;
use slablab_native::Sleep;
use slablab_pages::Pages;
use slablab_platform::Pfn;

/// Most blocks that are kept: each is a mapping of its own to the kernel, which has a limit of 65,530.
const MOST: usize = 64;
/// Most page frames that are kept, 64 MiB on pages of 4 KiB. Their memory is given back; this is address
/// space of the heap.
const MOST_FRAMES: u32 = 1 << 14;

#[derive(Clone, Copy)]
struct Block {
    pfn: Pfn,
    frames: u32,
}

/// First in, first out.
struct Kept {
    blocks: [Option<Block>; MOST],
    oldest: usize,
    count: usize,
    frames: u32,
}

static KEPT: Sleep<Kept> = Sleep::new(Kept { blocks: [None; MOST], oldest: 0, count: 0, frames: 0 });

impl Kept {
    fn push(&mut self, block: Block) {
        self.blocks[(self.oldest + self.count) % MOST] = Some(block);
        self.count += 1;
        self.frames += block.frames;
    }

    fn pop(&mut self) -> Option<Block> {
        let block = self.blocks[self.oldest].take()?;
        self.oldest = (self.oldest + 1) % MOST;
        self.count -= 1;
        self.frames -= block.frames;
        Some(block)
    }
}

/// Keeps a freed block, which is in no slab any more, out of reach. `false`: it is too large, or the system
/// does not take the access away; the caller gives it back.
pub(crate) fn keep(pages: &Pages<Native>, pfn: Pfn) -> bool {
    let block = Block { pfn, frames: Pages::<Native>::exact_frames(pfn) };
    if block.frames > MOST_FRAMES || !Native::forbid(pfn, block.frames) {
        return false;
    }
    loop {
        let mut kept = KEPT.lock();
        if kept.count < MOST && kept.frames + block.frames <= MOST_FRAMES {
            kept.push(block);
            return true;
        }
        let oldest = kept.pop();
        // The page allocator has locks of its own.
        drop(kept);
        oldest.into_iter().for_each(|oldest| give_back(pages, oldest));
    }
}

/// Gives every block back to the page allocator; whether there was one.
pub(crate) fn release_all(pages: &Pages<Native>) -> bool {
    let mut any = false;
    loop {
        let oldest = KEPT.lock().pop();
        let Some(oldest) = oldest else { return any };
        give_back(pages, oldest);
        any = true;
    }
}

/// Whether a kept block starts at an offset in a frame.
pub(crate) fn is_kept((pfn, offset): (Pfn, u32)) -> bool {
    offset == 0 && KEPT.lock().blocks.iter().flatten().any(|block| block.pfn == pfn)
}

fn give_back(pages: &Pages<Native>, block: Block) {
    // Without access its next owner could not use it: then it is lost.
    if Native::permit(block.pfn, block.frames) {
        pages.free_exact(block.pfn);
    }
}
