//! Where objects start in the slabs of the caches with slots at fixed places.
//!
//! A free checks it for each object, by the copy in its thread's slot of the cache. There, a slab's offsets
//! are compared as in [`Starts`], modulo 2^32. Slabs with fewer objects than the cache's first one, which are
//! made where memory is short, have no place in the pagemap, so that one number is right for all that have.
//!
//! [`Starts`]: crate::hot::Starts

use crate::area::PLACES;
use crate::place::Place;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// By place: a cache's reciprocal, and above it the end of its first slab; 0 before that. No object starts
/// where there is no cache: their end is 0.
static ENTRIES: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; _];

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

/// The reciprocal and the end in an entry.
fn halves(entry: u64) -> (u32, u32) {
    (entry as u32, (entry >> u32::BITS) as u32)
}

/// Notes a slab of `bytes` bytes whose objects are `size` bytes apart, before anybody knows an object of it.
/// Answers whether the place's numbers are right for it: not for a slab with fewer objects than the place's
/// first one, or for one that is too large for numbers of 32 bits.
pub(crate) fn note(place: Place, bytes: u32, size: u32) -> bool {
    if place == Place::NONE {
        return false;
    }
    let entry = &ENTRIES[place.index()];
    let (reciprocal, end) = of(bytes, size);
    let first = u64::from(end) << u32::BITS | u64::from(reciprocal);
    // The place's first slab, or that of another cache which has the number now.
    let is_first = |entry: u64| (halves(entry).0 != reciprocal).then_some(first);
    let before = entry.fetch_update(Relaxed, Relaxed, is_first);
    end > 0 && before.err().is_none_or(|entry| halves(entry).1 <= end)
}

/// What is noted of a place; `None` before its first slab.
pub(crate) fn noted(place: Place) -> Option<(u32, u32)> {
    let noted = ENTRIES[place.index()].load(Relaxed);
    (noted != 0).then(|| halves(noted))
}

/// Whether an object starts `offset` bytes into a slab of the cache with this place: `true` is exact. `false`
/// may also mean that the slab has more objects than the first one.
#[inline]
pub(crate) fn has(place: Place, offset: u32) -> bool {
    noted(place).is_some_and(|(reciprocal, end)| offset.wrapping_mul(reciprocal) < end)
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

    /// Slabs of one cache may have several orders: one that has fewer objects than the first is not counted,
    /// nor one that is too large.
    #[test]
    fn slabs_with_fewer_objects_have_no_place() {
        const SIZE: u32 = 4096;
        for (cache, slabs, end) in [
            (120, &[(1 << 16, true), (1 << 14, false), (1 << 16, true)][..], 16 * SIZE),
            (121, &[(1 << 14, true), (1 << 16, true), (1 << 13, false)], 4 * SIZE),
            (122, &[(1 << 22, false), (1 << 14, true)], 0),
        ] {
            let place = Place::of(cache);
            for (bytes, fits) in slabs {
                assert_eq!(note(place, *bytes, SIZE), *fits, "{bytes} bytes of {slabs:?}");
            }
            assert_eq!(noted(place).map(|(_, end)| end), Some(end), "slabs of {slabs:?} bytes");
            assert_eq!(has(place, SIZE), end > 0, "slabs of {slabs:?} bytes");
        }
        assert!(!note(Place::NONE, 1 << 14, SIZE) && noted(Place::NONE).is_none());
    }
}
