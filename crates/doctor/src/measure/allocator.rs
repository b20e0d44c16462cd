//! Which of the kernel's allocators wrote the counts.

use crate::state::State;

/// An allocator of slabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// SLUB, with or without sheaves.
    Slub,
    /// SLAB, until 6.7.
    Slab,
}

impl Allocator {
    /// The allocator of a state. Only SLAB writes tunables into /proc/slabinfo.
    pub fn of(state: &State) -> Allocator {
        let mut rows = state.dump.slabinfo.iter().flat_map(|slabinfo| &slabinfo.rows);
        if rows.any(|row| row.limit > 0) { Allocator::Slab } else { Allocator::Slub }
    }
}
