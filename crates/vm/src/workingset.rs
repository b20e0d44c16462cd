//! The refault distance: whether a page that comes back was evicted too early (`workingset.c`). Rules:
//! docs/theory/vm.md 3.2.
//!
//! A node counts its evictions and activations: its *age*. An evicted page leaves the age behind, in its
//! shadow. When it comes back, the difference is how many pages more the inactive list would have needed to
//! keep it. If the pages that are kept with better right are at least as many, it displaces one of them.

use crate::replacement::Sizes;

/// What a shadow holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shadow {
    /// The node that evicted the page.
    pub node: u16,
    /// The node's age then, without the bits that a shadow has no room for.
    pub age: u64,
    /// The page was part of the working set.
    pub workingset: bool,
}

/// Bits of a shadow.
const SHADOW_BITS: u32 = 30;

/// How shadows of a machine are packed: the working set in the lowest bit, the node above it, the age above
/// that. If the age has too few bits to span all memory, its low bits are dropped (`bucket_order`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    node_bits: u32,
    bucket_order: u32,
}

impl Packing {
    /// The packing of a machine (docs/theory/vm.md 3.2).
    pub fn new(nodes: u16, frames: u32) -> Packing {
        let node_bits = u16::BITS - nodes.saturating_sub(1).leading_zeros();
        let needed = u32::BITS - frames.leading_zeros();
        Packing { node_bits, bucket_order: needed.saturating_sub(SHADOW_BITS - 1 - node_bits) }
    }

    fn age_bits(self) -> u32 {
        SHADOW_BITS - 1 - self.node_bits
    }

    /// The word of a shadow.
    pub fn pack(self, shadow: Shadow) -> u32 {
        let age = (shadow.age >> self.bucket_order) & ((1 << self.age_bits()) - 1);
        let low = (u32::from(shadow.node) << 1) | u32::from(shadow.workingset);
        ((age as u32) << (self.node_bits + 1)) | low
    }

    /// The shadow of a word.
    pub fn unpack(self, word: u32) -> Shadow {
        Shadow {
            node: ((word >> 1) & ((1 << self.node_bits) - 1)) as u16,
            age: u64::from(word >> (self.node_bits + 1)) << self.bucket_order,
            workingset: word & 1 != 0,
        }
    }

    /// An age as far before `now` as shadows can tell.
    pub fn long_before(self, now: u64) -> u64 {
        now.wrapping_sub(1 << (self.age_bits() - 1 + self.bucket_order))
    }

    /// The age that went by since a shadow's. Ages wrap.
    pub fn distance(self, now: u64, then: u64) -> u64 {
        let mask = ((1_u64 << self.age_bits()) - 1) << self.bucket_order;
        now.wrapping_sub(then) & mask
    }
}

/// The pages that a refaulting page competes with: those of the other type, and the active ones of its own.
/// Anonymous pages count only while swap is free for them (docs/theory/vm.md 3.2).
pub fn competitors(lists: &Sizes, is_file: bool, swap_is_free: bool) -> u64 {
    let files = lists.active_file + if is_file { 0 } else { lists.inactive_file };
    let anon = lists.active_anon + if is_file { lists.inactive_anon } else { 0 };
    files + if swap_is_free { anon } else { 0 }
}

/// Whether a page comes back early enough to be active at once: the age that went by is no more than the
/// pages it competes with (docs/theory/vm.md 3.2).
pub fn is_early(distance: u64, lists: &Sizes, is_file: bool, swap_is_free: bool) -> bool {
    distance <= competitors(lists, is_file, swap_is_free)
}
