//! The world's address space: one mapping, reserved when the world starts, cut into parts.
//!
//! ```text
//! heap | memmap | owners | marks | flags | areas | lumps
//! ```
//!
//! Either all parts are there, or nothing is reserved and the next start tries again.

use crate::area::{AREA_BYTES, SLOTS, SLOTS_MIN};
use crate::memory::{FLAG_BYTES, Frame, page_shift};
use crate::system;

/// The heap's bytes where address space is not limited: 1 TiB.
const HEAP_BYTES: usize = 1 << 40;
/// The heap's bytes at least: with fewer the world does not start.
const HEAP_BYTES_MIN: usize = 1 << 26;
/// Bytes of address space for lumps, where it is not limited, and at least.
const LUMP_BYTES: usize = 1 << 32;
const LUMP_BYTES_MIN: usize = 1 << 23;

/// Where the parts are.
pub(crate) struct Space {
    /// The heap, at a multiple of an eighth of its size.
    pub(crate) heap: usize,
    pub(crate) frames: usize,
    /// A descriptor for every frame of the heap.
    pub(crate) memmap: usize,
    /// A word for every frame of the heap.
    pub(crate) owners: usize,
    /// A bit for every 8 bytes of the heap.
    pub(crate) marks: usize,
    /// A byte for every [`FLAG_BYTES`] of the heap.
    pub(crate) flags: usize,
    pub(crate) areas: usize,
    pub(crate) slots: usize,
    pub(crate) lumps: usize,
    pub(crate) lump_bytes: usize,
}

impl Space {
    /// Reserves as much as there is, by halves: half of what the process may have for the heap, a 16th for areas and a 64th for
    /// lumps at most. `None`, and nothing is reserved, where there is less than the least.
    pub(crate) fn reserve() -> Option<Space> {
        let limit = system::address_space();
        let mut heap = HEAP_BYTES.min(limit / 2);
        let mut slots = SLOTS.min(limit / 16 / AREA_BYTES).max(SLOTS_MIN);
        let mut lumps = LUMP_BYTES.min(limit / 64).max(LUMP_BYTES_MIN);
        while heap >= HEAP_BYTES_MIN {
            if let Some(space) = Space::reserve_exactly(heap, slots, lumps) {
                return Some(space);
            }
            heap /= 2;
            slots = (slots / 2).max(SLOTS_MIN);
            lumps = (lumps / 2).max(LUMP_BYTES_MIN);
        }
        None
    }

    fn reserve_exactly(heap_bytes: usize, slots: usize, lump_bytes: usize) -> Option<Space> {
        let (frames, align) = (heap_bytes >> page_shift(), heap_bytes / 8);
        let parts = [
            heap_bytes + align,
            frames * size_of::<Frame>(),
            frames * 8,
            heap_bytes / 64,
            heap_bytes / FLAG_BYTES,
            slots * AREA_BYTES,
            lump_bytes,
        ]
        .map(|bytes| bytes.next_multiple_of(AREA_BYTES));
        let whole = system::reserve(parts.iter().sum())?;
        let mut end = whole.as_ptr().expose_provenance();
        let [heap, memmap, owners, marks, flags, areas, lumps] = parts.map(|bytes| {
            let start = end;
            end += bytes;
            start
        });
        let heap = heap.next_multiple_of(align);
        Some(Space { heap, frames, memmap, owners, marks, flags, areas, slots, lumps, lump_bytes })
    }
}
