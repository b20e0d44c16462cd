//! The hot part of a slot.

use crate::region::{Own, zeros};
use std::sync::atomic::AtomicU64;

zeros! {
    /// Where objects start in the slabs of a cache with a fixed place, as far as a slot's thread knows.
    /// Zeros: nowhere.
    #[derive(Debug)]
    #[repr(C)]
    pub(crate) struct Starts {
        reciprocal: Own<u32>,
        end: Own<u32>,
    }
}

impl Starts {
    /// Whether they are known.
    #[inline]
    pub(crate) fn are_known(&self) -> bool {
        self.reciprocal.get() != 0
    }

    /// Sets them: the numbers of `starts::of`.
    pub(crate) fn set(&self, (reciprocal, end): (u32, u32)) {
        self.reciprocal.set(reciprocal);
        self.end.set(end);
    }

    /// Whether an object starts `offset` bytes into a slab: as `starts::has`.
    #[inline(always)]
    pub(crate) fn has(&self, offset: u32) -> bool {
        offset.wrapping_mul(self.reciprocal.get()) < self.end.get()
    }
}

zeros! {
    /// The words of a slot that hot operations use; sequences write `list` and `sizes`. The array's first
    /// word does not have the offset in a cache line that the first two words of most objects have: a
    /// processor that first compares the low bits of addresses would take one for the other.
    #[derive(Debug)]
    #[repr(C)]
    pub(crate) struct Hot {
        /// First in a slot: [`crate::place`] says why.
        pub(crate) starts: Starts,
        /// The list's head shifted left by 16, and in the low 17 bits the number of objects on it + 1.
        pub(crate) list: AtomicU64,
        /// The engine's tag of the list.
        pub(crate) tag: AtomicU64,
        /// With slots per CPU: the array's size (low 32 bits) and capacity (high 32 bits). With slots per
        /// thread: where the array's last word is, as `top` says places.
        pub(crate) sizes: AtomicU64,
        /// With slots per thread: where the array's last address is, relative to the area. 0, as in
        /// `sizes`, is a word of zeros at the area's start: an array without objects, and without room.
        pub(crate) top: AtomicU64,
        /// The array's address.
        pub(crate) storage: AtomicU64,
    }
}

impl Hot {
    pub(crate) const fn new() -> Hot {
        let [list, tag, sizes, top, storage] = [const { AtomicU64::new(0) }; 5];
        let starts = Starts { reciprocal: Own::new(0), end: Own::new(0) };
        Hot { starts, list, tag, sizes, top, storage }
    }

    /// With slots per thread: where the array's last word is.
    #[inline(always)]
    pub(crate) fn end(&self) -> &AtomicU64 {
        &self.sizes
    }
}
