//! Where objects start in the slabs of the caches with slots at fixed places.
//!
//! A free checks it for each object. Eight bytes for each cache, one after another, are few cache lines for a
//! program whose sizes are mixed. In them, a slab's offsets are compared as in [`Starts`], modulo 2^32.

use crate::area::PLACES;
use crate::place::Place;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A cache's starts; zeros before its first slab.
struct Entry {
    reciprocal: AtomicU32,
    /// Of the slab with the fewest objects that the cache ever had; 0, too, once it had one that is too large
    /// for numbers of 32 bits.
    end: AtomicU32,
}

/// By place. No object starts where there is no cache: their end is 0.
static ENTRIES: [Entry; PLACES] =
    [const { Entry { reciprocal: AtomicU32::new(0), end: AtomicU32::new(0) } }; _];

/// The reciprocal of objects that are `size` bytes apart in a slab of `bytes` bytes, the least r with
/// size * r = 2^32 + d and d > 0; and their end, which is their number times d. The end is 0 if the slab is
/// so large that a product for an offset in it may be in a second round modulo 2^32: on pages of 4 KiB that
/// takes slabs of more than 64 KiB, which no knob left alone makes.
fn of(bytes: u32, size: u32) -> (u32, u32) {
    let reciprocal = (1 << u32::BITS) / u64::from(size) + 1;
    let rest = reciprocal * u64::from(size) - (1 << u32::BITS);
    let fits = rest * u64::from(bytes.div_ceil(size)) < reciprocal;
    (reciprocal as u32, if fits { rest as u32 * (bytes / size) } else { 0 })
}

/// Notes a slab of `bytes` bytes whose objects are `size` bytes apart, before anybody knows an object of it.
pub(crate) fn note(place: Place, bytes: u32, size: u32) {
    if place == Place::NONE {
        return;
    }
    let entry = &ENTRIES[place.index()];
    let (reciprocal, end) = of(bytes, size);
    if entry.reciprocal.load(Relaxed) != reciprocal {
        // The place's first slab, or that of another cache which has the number now.
        entry.end.store(0, Relaxed);
        entry.reciprocal.store(reciprocal, Relaxed);
        entry.end.store(end, Relaxed);
    } else if end < entry.end.load(Relaxed) {
        entry.end.fetch_min(end, Relaxed);
    }
}

/// Whether an object starts `offset` bytes into a slab of the cache with this place: `true` is exact. `false`
/// may also mean that the slab has more objects than another one had, or is too large.
#[inline(always)]
pub(crate) fn has(place: Place, offset: u32) -> bool {
    let entry = &ENTRIES[place.index()];
    offset.wrapping_mul(entry.reciprocal.load(Relaxed)) < entry.end.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_start_where_a_division_says() {
        for size in (16..4096).step_by(16).chain([4352, 5120, 8192, 8704, 12288, 16384, 17408, 24576, 32768])
        {
            for bytes in (12..=17).map(|shift| 1 << shift).filter(|bytes| size <= *bytes) {
                let (reciprocal, end) = of(bytes, size);
                assert!(end > 0, "objects of {size} bytes in {bytes}");
                for offset in 0..bytes {
                    let expected = offset % size == 0 && offset / size < bytes / size;
                    let found = offset.wrapping_mul(reciprocal) < end;
                    assert_eq!(found, expected, "{offset} of objects of {size} bytes in {bytes}");
                }
            }
        }
    }

    #[test]
    fn no_object_starts_in_a_slab_that_is_too_large() {
        for (bytes, size, fits) in [(1 << 20, 4096, true), (1 << 20, 8192, false), (1 << 21, 2048, true)] {
            assert_eq!(of(bytes, size).1 > 0, fits, "objects of {size} bytes in {bytes}");
        }
    }

    /// Slabs of one cache may have several orders: the one with the fewest objects counts, or one that is too
    /// large, whichever comes first.
    #[test]
    fn the_least_end_stays() {
        const SIZE: u32 = 4096;
        for (cache, slabs, end) in [
            (120, &[1 << 16, 1 << 14, 1 << 16][..], 4 * SIZE),
            (121, &[1 << 16, 1 << 22, 1 << 14], 0),
            (122, &[1 << 22, 1 << 14], 0),
        ] {
            let place = Place::of(cache);
            slabs.iter().for_each(|bytes| note(place, *bytes, SIZE));
            assert_eq!(ENTRIES[place.index()].end.load(Relaxed), end, "slabs of {slabs:?} bytes");
            assert_eq!(has(place, SIZE), end > 0, "slabs of {slabs:?} bytes");
        }
    }
}
