//! Where objects start in the slabs of the caches with slots at fixed places.
//!
//! A free checks it for each object. Sixteen bytes for each cache, one after another, are few cache lines for
//! a program whose sizes are mixed.

use crate::area::FIXED_CACHES;
use slablab_platform::Starts;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A cache's [`Starts`]; zeros before its first slab.
struct Entry {
    reciprocal: AtomicU64,
    /// Of the slab with the fewest objects that the cache ever had.
    end: AtomicU64,
}

/// By place. No object starts where there is no cache: their end is 0.
static ENTRIES: [Entry; 1 << u8::BITS] =
    [const { Entry { reciprocal: AtomicU64::new(0), end: AtomicU64::new(0) } }; _];

/// The place of a cache; 0 if it has none.
pub(crate) fn place(cache: u32) -> u8 {
    if (cache as usize) < FIXED_CACHES { cache as u8 + 1 } else { 0 }
}

/// Notes a slab of `bytes` bytes whose objects are `size` bytes apart, before anybody knows an object of it.
pub(crate) fn note(place: u8, bytes: u32, size: u32) {
    if place == 0 {
        return;
    }
    let entry = &ENTRIES[usize::from(place)];
    let starts = Starts::of(bytes / size, size);
    if entry.reciprocal.load(Relaxed) != starts.reciprocal {
        // The place's first slab, or that of another cache which has the number now.
        entry.end.store(0, Relaxed);
        entry.reciprocal.store(starts.reciprocal, Relaxed);
        entry.end.store(starts.end, Relaxed);
    } else if starts.end < entry.end.load(Relaxed) {
        entry.end.fetch_min(starts.end, Relaxed);
    }
}

/// Whether an object starts `offset` bytes into a slab of the cache with this place: `true` is exact. `false`
/// may also mean that the slab has more objects than another one had.
#[inline(always)]
pub(crate) fn has(place: u8, offset: u32) -> bool {
    let entry = &ENTRIES[usize::from(place)];
    let starts = Starts { reciprocal: entry.reciprocal.load(Relaxed), end: entry.end.load(Relaxed) };
    starts.has(offset)
}
