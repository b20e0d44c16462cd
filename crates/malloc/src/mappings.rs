//! Blocks that no page allocator has: each is a mapping of its own.
//!
//! They are few, so they are a table in no order, searched when an address is in no slab. Another size is the
//! kernel's work, which moves the memory without copying it. `unsafe`: changes mappings and gives them back.
//!
//! There is no lock: a signal handler that interrupted another search, or a request that may not wait for a
//! fork, looks here too. An entry's address is its state. A thread that calls with the address of its own
//! block finds the entry, as no other block is there; an entry in whose mapping the kernel is at work is no
//! block's, so that a block that is mapped at the same address by another thread meanwhile has an entry of
//! its own.

use slablab_native::system;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// A mapping.
struct Block {
    /// Its address, [`FREE`] or [`TAKEN`].
    at: AtomicUsize,
    bytes: AtomicUsize,
}

/// No block's entry.
const FREE: usize = 0;
/// The entry of a block that is being mapped, moved or unmapped.
const TAKEN: usize = 1;
/// Mappings at a time.
const BLOCKS_MAX: usize = 1024;

static BLOCKS: [Block; BLOCKS_MAX] =
    [const { Block { at: AtomicUsize::new(FREE), bytes: AtomicUsize::new(0) } }; BLOCKS_MAX];

impl Block {
    /// Takes the entry whose address is `state`, if it is still that. Acquire: pairs with the stores in
    /// [`Block::set`].
    fn take(&self, state: usize) -> bool {
        self.at.compare_exchange(state, TAKEN, Acquire, Relaxed).is_ok()
    }

    /// Gives a taken entry an address.
    fn set(&self, at: usize, bytes: usize) {
        self.bytes.store(bytes, Relaxed);
        self.at.store(at, Release);
    }
}

/// The entry of the block that starts at an address; `None` if none does.
fn find(at: usize) -> Option<&'static Block> {
    BLOCKS.iter().find(|block| at > TAKEN && block.at.load(Acquire) == at)
}

/// A block of at least `bytes`, all zeros, at a multiple of `align`.
pub(crate) fn alloc(bytes: usize, align: usize) -> Option<*mut u8> {
    let bytes = bytes.checked_next_multiple_of(system::page_size())?;
    let block = BLOCKS.iter().find(|block| block.at.load(Relaxed) == FREE && block.take(FREE))?;
    let Some(at) = system::map_block(bytes, align) else {
        block.set(FREE, 0);
        return None;
    };
    block.set(at.as_ptr().expose_provenance(), bytes);
    Some(at.as_ptr())
}

/// Bytes of the block that starts at an address; `None` if none does.
pub(crate) fn usable(at: usize) -> Option<usize> {
    find(at).map(|block| block.bytes.load(Relaxed))
}

/// Makes the block that starts at an address at least `bytes` long, where it is or elsewhere; what is new
/// reads as zeros. `None`, and it stays as it was, if there is no such block or no memory, or if only a copy
/// would be aligned.
pub(crate) fn resize(at: *mut u8, bytes: usize, align: usize) -> Option<*mut u8> {
    let bytes = bytes.checked_next_multiple_of(system::page_size())?;
    let block = find(at.addr()).filter(|block| block.take(at.addr()))?;
    let before = block.bytes.load(Relaxed);
    // SAFETY: it was mapped as one, its entry is taken, and its owner says that nobody else uses it.
    let moved = unsafe { system::resize_block(at, before, bytes, align <= system::page_size()) };
    match moved {
        Some(moved) => block.set(moved.as_ptr().expose_provenance(), bytes),
        None => block.set(at.addr(), before),
    }
    moved.map(|moved| moved.as_ptr())
}

/// Gives the block that starts at an address back; whether there was one.
pub(crate) fn free(at: *mut u8) -> bool {
    let Some(block) = find(at.addr()).filter(|block| block.take(at.addr())) else { return false };
    // SAFETY: it was mapped as one, and its entry is taken.
    unsafe { system::unmap_block(at, block.bytes.load(Relaxed)) };
    block.set(FREE, 0);
    true
}

/// How many blocks there are, and their bytes.
pub(crate) fn totals() -> (u64, u64) {
    let bytes = BLOCKS.iter().filter(|block| block.at.load(Acquire) > TAKEN);
    let bytes = bytes.map(|block| block.bytes.load(Relaxed) as u64);
    bytes.fold((0, 0), |(count, all), bytes| (count + 1, all + bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_map_resize_and_unmap() {
        let (page, rounds) = (system::page_size(), 2000);
        let work = |thread: usize| {
            for round in 0..rounds {
                let bytes = (1 + (round + thread) % 5) * page;
                let at = alloc(bytes, 1).expect("there is room for a few");
                assert_eq!(usable(at.addr()), Some(bytes));
                let moved = resize(at, 3 * page, 1).expect("the kernel moves it");
                assert_eq!(usable(moved.addr()), Some(3 * page));
                assert!(free(moved));
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|thread| _ = scope.spawn(move || work(thread)));
        });
        assert_eq!(usable(0), None);
        assert!(!free(std::ptr::null_mut()));
        assert!(BLOCKS.iter().all(|block| block.at.load(Relaxed) == FREE));
    }
}
