//! Blocks that no page allocator has: above the largest order, each its own mapping.
//!
//! They are few, so they are a list in no order, searched when an address is in no slab. Another size is the kernel's work, which
//! moves the memory without copying it. `unsafe`: changes mappings and gives them back.

use slablab_native::{Sleep, system};

/// A mapping.
#[derive(Clone, Copy)]
struct Block {
    at: usize,
    bytes: usize,
}

/// Most of them at a time.
const MOST: usize = 1024;

static BLOCKS: Sleep<[Block; MOST]> = Sleep::new([Block { at: 0, bytes: 0 }; MOST]);

/// A block of at least `bytes`, all zeros, at a multiple of `align`.
pub(crate) fn alloc(bytes: usize, align: usize) -> Option<*mut u8> {
    let bytes = bytes.checked_next_multiple_of(system::page_size())?;
    let mut blocks = BLOCKS.lock();
    let place = blocks.iter_mut().find(|block| block.bytes == 0)?;
    let at = system::map_block(bytes, align)?.as_ptr();
    *place = Block { at: at.expose_provenance(), bytes };
    Some(at)
}

/// Bytes of the block that starts at an address; `None` if none does.
pub(crate) fn usable(at: usize) -> Option<usize> {
    BLOCKS.lock().iter().find(|block| block.bytes > 0 && block.at == at).map(|block| block.bytes)
}

/// Makes the block that starts at an address at least `bytes` long, where it is or elsewhere; what is new reads as zeros. `None`,
/// and it stays as it was, if there is no such block or no memory, or if only a copy would be aligned.
pub(crate) fn resize(at: *mut u8, bytes: usize, align: usize) -> Option<*mut u8> {
    let bytes = bytes.checked_next_multiple_of(system::page_size())?;
    let mut blocks = BLOCKS.lock();
    let block = blocks.iter_mut().find(|block| block.bytes > 0 && block.at == at.addr())?;
    // SAFETY: it was mapped as one, and its owner says that nobody else uses it.
    let moved = unsafe { system::resize_block(at, block.bytes, bytes, align <= system::page_size()) }?;
    *block = Block { at: moved.as_ptr().expose_provenance(), bytes };
    Some(moved.as_ptr())
}

/// How many blocks there are, and their bytes.
pub(crate) fn totals() -> (u64, u64) {
    let blocks = BLOCKS.lock();
    let used = blocks.iter().filter(|block| block.bytes > 0);
    used.fold((0, 0), |(count, bytes), block| (count + 1, bytes + block.bytes as u64))
}

/// Gives the block that starts at an address back; whether there was one.
pub(crate) fn free(at: *mut u8) -> bool {
    let mut blocks = BLOCKS.lock();
    let Some(block) = blocks.iter_mut().find(|block| block.bytes > 0 && block.at == at.addr()) else {
        return false;
    };
    let bytes = std::mem::take(&mut block.bytes);
    // SAFETY: it was mapped as one, and is on no list any more.
    unsafe { system::unmap_block(at, bytes) };
    true
}
