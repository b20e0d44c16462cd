//! Allocations too large for the page allocator: each is a mapping of its own. `unsafe`: resizes and unmaps
//! mappings.
//!
//! There are few, so they are in an unsorted table, which is searched if an address is in no slab. The kernel
//! resizes a mapping, and moves its memory without copying it.
//!
//! There is no lock: a signal handler that interrupted a search, or a thread that must not wait for a fork,
//! searches the table too. The address in an entry is also the entry's state. While the kernel maps, moves or
//! unmaps a block, its entry is [`TAKEN`]: another thread may then map a block at the same address, in
//! another entry. A thread that frees or resizes a block of its own finds the entry by the address, because
//! no other block is at that address.

use slablab_native::system;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// An entry of the table. `slablab top` reads it.
#[repr(C)]
struct Block {
    /// The address of the block, or [`FREE`], or [`TAKEN`].
    at: AtomicUsize,
    bytes: AtomicUsize,
}

/// The state of an entry without a block.
const FREE: usize = 0;
/// The state of an entry whose block is being mapped, moved or unmapped.
const TAKEN: usize = 1;
/// The most blocks at a time.
const BLOCKS_MAX: usize = 1024;

static BLOCKS: [Block; BLOCKS_MAX] =
    [const { Block { at: AtomicUsize::new(FREE), bytes: AtomicUsize::new(0) } }; BLOCKS_MAX];

impl Block {
    /// Changes the entry from `state` to [`TAKEN`]. `false` if it is no longer in `state`. Acquire: pairs
    /// with the stores in [`Block::set`].
    fn take(&self, state: usize) -> bool {
        self.at.compare_exchange(state, TAKEN, Acquire, Relaxed).is_ok()
    }

    /// Stores the block, or [`FREE`], in an entry that this thread took.
    fn set(&self, at: usize, bytes: usize) {
        self.bytes.store(bytes, Relaxed);
        self.at.store(at, Release);
    }
}

/// The entry of the block that starts at an address; `None` if none does.
fn find(at: usize) -> Option<&'static Block> {
    BLOCKS.iter().find(|block| at > TAKEN && block.at.load(Acquire) == at)
}

/// Maps `bytes` bytes, all zeros, at a multiple of `align`, and stores their address in `place` if that is 0.
/// Returns the address that is in `place` then: another thread's mapping may be there first. Nothing unmaps
/// the mapping in `place`.
pub(crate) fn map_once(place: &AtomicUsize, bytes: usize, align: usize) -> Option<usize> {
    let mapped = system::map_block(bytes, align)?.as_ptr();
    let at = mapped.expose_provenance();
    match place.compare_exchange(0, at, AcqRel, Acquire) {
        Ok(_) => Some(at),
        Err(first) => {
            // SAFETY: mapped above, and the exchange failed: no other thread has the address.
            unsafe { system::unmap_block(mapped, bytes) };
            Some(first)
        }
    }
}

/// Maps a block of at least `bytes` bytes, all zeros, at a multiple of `align`.
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

/// Resizes the block that starts at `at` to at least `bytes` bytes, in place or by moving it. Added bytes are
/// zeros. `None` if there is no such block, no memory, or if only a copy would be aligned to `align`: then
/// the block is not changed.
pub(crate) fn resize(at: *mut u8, bytes: usize, align: usize) -> Option<*mut u8> {
    let bytes = bytes.checked_next_multiple_of(system::page_size())?;
    let block = find(at.addr()).filter(|block| block.take(at.addr()))?;
    let before = block.bytes.load(Relaxed);
    // SAFETY: `alloc` mapped the block, and this thread took its entry. The callers, `realloc` of the heaps,
    // have the address in a `Given`, and `Given::new` pays: no other thread uses the block.
    let moved = unsafe { system::resize_block(at, before, bytes, align <= system::page_size()) };
    match moved {
        Some(moved) => block.set(moved.as_ptr().expose_provenance(), bytes),
        None => block.set(at.addr(), before),
    }
    moved.map(|moved| moved.as_ptr())
}

/// Unmaps the block that starts at `at`. `false` if there is none.
pub(crate) fn free(at: *mut u8) -> bool {
    let Some(block) = find(at.addr()).filter(|block| block.take(at.addr())) else { return false };
    // SAFETY: `alloc` mapped the block, and this thread took its entry. `Heap::free_cold_engine` has the
    // address from a `Given`, and `Given::new` pays: no other thread uses the block.
    unsafe { system::unmap_block(at, block.bytes.load(Relaxed)) };
    block.set(FREE, 0);
    true
}

/// For the directory: the address of the entries, and how many there are.
pub(crate) fn entries() -> (u64, u64) {
    (std::ptr::from_ref(&BLOCKS).addr() as u64, BLOCKS_MAX as u64)
}

/// The number of blocks, and their bytes.
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
