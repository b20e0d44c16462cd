//! Free memory of zeros: the hardened profile relies on it, also where another heap or cache of the process
//! gives memory back.

use crate::world::Native;
use slablab_native::Object;
use slablab_pages::Pages;
use slablab_platform::{Frames, Memory, Pfn, Topology};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the process's heap is hardened.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// From now on all free memory is to be zeros. The heap whose caches have the numbers `own` hands back zeros
/// by itself.
pub(crate) fn begin(own: Range<u32>) {
    Native::zero_unmapped(own);
    IS_ON.store(true, Relaxed);
}

/// Whether all free memory is to be zeros.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Fills a block of page frames that another heap gives back with zeros, if there is need.
#[inline]
pub(crate) fn forget(pfn: Pfn) {
    if is_on() {
        let bytes = u64::from(Pages::<Native>::exact_frames(pfn)) << Native::page_shift();
        Native::fill(Native::address(pfn, 0), bytes as u32, 0);
    }
}

/// As [`forget`], for an object of `size` bytes.
#[inline]
pub(crate) fn forget_object(object: Object, size: u32) {
    if is_on() {
        Native::fill(object, size, 0);
    }
}
