//! Where objects start in the slabs of the caches with slots at fixed places.
//!
//! A free checks it for each object. Sixteen bytes for each cache, one after another, are few cache lines for
//! a program whose sizes are mixed.

use crate::area::PLACES;
use crate::place::Place;
use slablab_platform::Starts;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A cache's [`Starts`]; zeros before its first slab.
struct Entry {
    reciprocal: AtomicU64,
    /// Of the slab with the fewest objects that the cache ever had.
    end: AtomicU64,
}

/// By place. No object starts where there is no cache: their end is 0.
static ENTRIES: [Entry; PLACES] =
    [const { Entry { reciprocal: AtomicU64::new(0), end: AtomicU64::new(0) } }; _];

/// Notes a slab of `bytes` bytes whose objects are `size` bytes apart, before anybody knows an object of it.
pub(crate) fn note(place: Place, bytes: u32, size: u32) {
    if place == Place::NONE {
        return;
    }
    let entry = &ENTRIES[place.index()];
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
pub(crate) fn has(place: Place, offset: u32) -> bool {
    let entry = &ENTRIES[place.index()];
    let starts = Starts { reciprocal: entry.reciprocal.load(Relaxed), end: entry.end.load(Relaxed) };
    starts.has(offset)
}
