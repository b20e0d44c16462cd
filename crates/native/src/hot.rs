//! The hot part of a slot.

use crate::region::zeros;
use std::sync::atomic::AtomicU64;

zeros! {
    /// The words of a slot that sequences use; they write `list` and `sizes`. The array's words do not have
    /// the offsets in a cache line that the first two words of most objects have: a processor that first
    /// compares the low bits of addresses would take one for the other.
    #[derive(Debug)]
    #[repr(C)]
    pub(crate) struct Hot {
        /// The list's head shifted left by 16, and in the low 17 bits the number of objects on it + 1.
        pub(crate) list: AtomicU64,
        /// The engine's tag of the list.
        pub(crate) tag: AtomicU64,
        /// The array's size (low 32 bits) and capacity (high 32 bits).
        pub(crate) sizes: AtomicU64,
        /// The array's address.
        pub(crate) storage: AtomicU64,
        /// With slots per thread, the array's last address, if the array is not empty.
        pub(crate) top: AtomicU64,
    }
}

impl Hot {
    pub(crate) const fn new() -> Hot {
        let [list, tag, sizes, storage, top] = [const { AtomicU64::new(0) }; 5];
        Hot { list, tag, sizes, storage, top }
    }
}
