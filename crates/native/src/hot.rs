//! The hot part of a slot.

use crate::region::zeros;
use std::sync::atomic::AtomicU64;

zeros! {
    /// The words of a slot that hot operations use; sequences write `list` and `sizes`. The array's first
    /// word does not have the offset in a cache line that the first two words of most objects have: a
    /// processor that first compares the low bits of addresses would take one for the other.
    #[derive(Debug)]
    #[repr(C)]
    pub(crate) struct Hot {
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
        Hot { list, tag, sizes, top, storage }
    }

    /// With slots per thread: where the array's last word is.
    #[inline(always)]
    pub(crate) fn end(&self) -> &AtomicU64 {
        &self.sizes
    }
}
