//! Size classes for malloc.
//!
//! Up to 256 bytes there is a class for every multiple of 16 bytes. Above, there are eight classes per
//! doubling, so a request of more than 256 bytes wastes less than 1/9 of its object. The kernel has at most
//! two classes per doubling: see `slablab_slabs::kmalloc`.
//!
//! Each class that a program uses has slabs that are free in part, and sheaves of free objects, and the
//! memory for a class's most objects stays when another class needs some. With sixteen classes a doubling
//! all live objects take 0.7 % less memory, but a program of many sizes and few objects of each held a sixth
//! more (docs/results/native.md, "Many large sizes").

use crate::policy::sheaf_capacity;
use slablab_native::Place;
use slablab_slabs::{CacheFlags, CacheSpec};

/// Bytes of the smallest class. All classes are multiples of it.
pub const STEP: usize = 16;
/// The number of classes of at most [`FINE_MAX`] bytes.
const FINE: usize = FINE_MAX / STEP;
/// Up to this size classes are one step apart.
const FINE_MAX: usize = 256;
/// Bytes of the largest class.
pub const MAX: usize = 32768;
/// Classes per doubling above [`FINE_MAX`] bytes.
const DOUBLING: usize = 8;
/// Number of classes.
pub const COUNT: usize = FINE + DOUBLING * (MAX / FINE_MAX).ilog2() as usize;

/// Up to this size a table gives the class.
pub const LISTED_MAX: usize = 4096;
/// The place of the slots of a request's class, by its bytes in steps, rounded up, in the heap at the fixed
/// places. As they are added to an address: so a `malloc` computes nothing.
static PLACES: [Place; LISTED_MAX / STEP + 1] = {
    let mut places = [Place::NONE; LISTED_MAX / STEP + 1];
    let mut steps = 0;
    while steps < places.len() {
        places[steps] = Place::of(reckon(steps * STEP) as u32);
        steps += 1;
    }
    places
};

/// The class of a request, by its bytes in steps, rounded up.
static LISTED: [u8; LISTED_MAX / STEP + 1] = {
    let mut listed = [0; LISTED_MAX / STEP + 1];
    let mut steps = 0;
    while steps < listed.len() {
        listed[steps] = reckon(steps * STEP) as u8;
        steps += 1;
    }
    listed
};

/// Bytes of an object of each class, by the class plus 1, the number of its place: one load, where [`size`]
/// computes. It has an entry for every byte, so that no index is beyond it.
static SIZES: [u16; 1 << u8::BITS] = {
    let mut sizes = [0; 1 << u8::BITS];
    let mut class = 0;
    while class < COUNT {
        sizes[class + 1] = size(class) as u16;
        class += 1;
    }
    sizes
};
const _: () = assert!(MAX <= u16::MAX as usize);

/// Bytes of an object of a class, for a fast path.
#[inline(always)]
pub(crate) fn size_listed(class: usize) -> usize {
    SIZES[usize::from(class.wrapping_add(1) as u8)].into()
}

/// The class of a request of at most [`MAX`] bytes.
#[inline(always)]
pub fn of(bytes: usize) -> usize {
    if bytes <= LISTED_MAX { listed(bytes) } else { reckon(bytes) }
}

/// The class of a request of at most [`LISTED_MAX`] bytes.
#[inline(always)]
#[expect(clippy::manual_div_ceil, reason = "the sum cannot overflow here, and takes four instructions less")]
pub fn listed(bytes: usize) -> usize {
    LISTED[(bytes + STEP - 1) / STEP] as usize
}

/// The place of the slots of the class of a request of at most [`LISTED_MAX`] bytes, in the heap at the fixed
/// places.
#[inline(always)]
#[expect(clippy::manual_div_ceil, reason = "as in `listed`")]
pub(crate) fn place_listed(bytes: usize) -> Place {
    PLACES[(bytes + STEP - 1) / STEP]
}

/// Computes the class of a request of at most [`MAX`] bytes.
pub(crate) const fn reckon(bytes: usize) -> usize {
    if bytes <= FINE_MAX {
        return bytes.saturating_sub(1) / STEP;
    }
    let last = bytes - 1;
    let doubling = last.ilog2() - FINE_MAX.ilog2();
    FINE + doubling as usize * DOUBLING + ((last >> (last.ilog2() - DOUBLING.ilog2())) & (DOUBLING - 1))
}

/// Bytes of an object of a class.
pub const fn size(class: usize) -> u32 {
    if class < FINE {
        return ((class + 1) * STEP) as u32;
    }
    let (doubling, step) = ((class - FINE) / DOUBLING, (class - FINE) % DOUBLING);
    ((FINE_MAX + (step + 1) * (FINE_MAX / DOUBLING)) << doubling) as u32
}

/// A size of at least `bytes` whose class has objects that are a multiple of `align` bytes apart, a power of
/// two. `None` if there is no such class. The engine decides whether the first object of a slab is aligned:
/// see `Heap::aligned`.
#[inline]
pub fn aligned(bytes: usize, align: usize) -> Option<usize> {
    let multiple = bytes.max(1).checked_next_multiple_of(align)?;
    if multiple > MAX {
        return None;
    }
    let sized = size(of(multiple)) as usize;
    // Otherwise the power of two above it, which is a class.
    Some(if sized.is_multiple_of(align) { sized } else { sized.next_power_of_two() })
}

/// The place of a class, of [`LISTED_MAX`] bytes at most, with room for `bytes` bytes, whose objects are a
/// multiple of `align` bytes apart, a power of two. `None` may also mean that [`aligned`] knows one.
#[inline(always)]
pub(crate) fn place_aligned(bytes: usize, align: usize) -> Option<Place> {
    // Then the sum cannot overflow.
    if bytes > LISTED_MAX {
        return None;
    }
    let multiple = (bytes + align - 1) & align.wrapping_neg();
    if multiple > LISTED_MAX {
        return None;
    }
    let place = place_listed(multiple);
    (size_listed(place.cache()) & (align - 1) == 0).then_some(place)
}

/// Bytes of a cache line.
const LINE: u32 = 64;

/// The specification of the cache of a class. Its alignment is the one that objects of its size have if they
/// lie side by side, a cache line at most: red zones and the management of a slab keep it, and programs ask
/// for more only seldom.
pub(crate) fn spec(class: usize) -> CacheSpec {
    let mut spec = CacheSpec::of_size(size(class));
    spec.align = 1 << spec.object_size.trailing_zeros().min(LINE.trailing_zeros());
    spec.flags |= CacheFlags::KMALLOC;
    spec.sheaf_capacity = sheaf_capacity(spec.object_size);
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_gets_the_smallest_class_that_holds_it() {
        for bytes in 1..=MAX {
            let class = of(bytes);
            assert!(size(class) as usize >= bytes, "{bytes} bytes in class {class} of {}", size(class));
            assert!(
                class == 0 || (size(class - 1) as usize) < bytes,
                "{bytes} bytes fit class {}",
                class - 1
            );
        }
        assert_eq!((of(0), size(COUNT - 1) as usize), (0, MAX));
    }

    /// Requests, and the bytes of the object that each gets.
    #[test]
    fn which_object_a_request_gets() {
        fn check(cases: &[(usize, u32)]) {
            let got: Vec<_> = cases.iter().map(|(bytes, _)| (*bytes, size(of(*bytes)))).collect();
            assert_eq!(got, cases);
        }
        check(&[(0, 16), (16, 16), (17, 32), (241, 256), (256, 256)]);
        check(&[(257, 288), (289, 320), (480, 480), (481, 512), (512, 512), (513, 576), (1000, 1024)]);
        check(&[(2048, 2048), (2049, 2304), (4096, 4096), (4097, 4608), (5000, 5120), (8193, 9216)]);
        check(&[(12_288, 12_288), (12_289, 13_312), (16_000, 16_384), (30_721, 32_768), (MAX, 32_768)]);
    }

    #[test]
    fn above_256_bytes_less_than_a_ninth_is_wasted() {
        for bytes in 257..=MAX {
            let got = size(of(bytes)) as usize;
            assert!((got - bytes) * 9 < got, "{bytes} bytes get {got}");
        }
    }

    /// The part of allocated bytes that the bench's mixes waste, in hundredths of a percent: `mixed16-1024`,
    /// the small sizes of its memory workload, and all sizes of that workload that classes serve.
    #[test]
    fn expected_waste_of_the_bench_mixes() {
        fn check(mix: &[(std::ops::Range<usize>, u64)], expected: u64) {
            let (mut asked, mut got) = (0u64, 0u64);
            for (sizes, weight) in mix {
                for bytes in sizes.clone() {
                    asked += bytes as u64 * weight;
                    got += size(of(bytes)) as u64 * weight;
                }
            }
            assert_eq!((got - asked) * 10_000 / got, expected, "{mix:?}");
        }
        check(&[(16..1025, 1)], 400);
        check(&[(16..516, 1)], 429);
        // 90, 9 and 1 percent over 500, 8,000 and 92,000 sizes.
        check(&[(16..516, 33_120), (500..8500, 207), (8000..32769, 2)], 433);
    }

    #[test]
    fn sizes_and_places_in_the_tables() {
        assert!((0..COUNT).all(|class| size_listed(class) == size(class) as usize));
        for bytes in 0..=LISTED_MAX {
            assert_eq!(listed(bytes), reckon(bytes), "{bytes} bytes");
            assert_eq!(place_listed(bytes).cache(), reckon(bytes), "{bytes} bytes");
        }
    }

    /// Where the table knows an aligned class, it is the one that [`aligned`] computes. It knows that of each
    /// multiple of a cache line.
    #[test]
    fn listed_classes_that_are_aligned() {
        for align in (0..=63).map(|shift| 1usize << shift) {
            for bytes in (0..=LISTED_MAX + 1).chain([MAX, MAX + 1, usize::MAX - 1, usize::MAX]) {
                let found = place_aligned(bytes, align).map(Place::cache);
                if let Some(class) = found {
                    let expected = aligned(bytes, align).map(of);
                    assert_eq!(Some(class), expected, "{bytes} bytes aligned to {align}");
                }
                let must = align <= 64 && (1..=LISTED_MAX - 64).contains(&bytes);
                assert!(found.is_some() || !must, "{bytes} bytes aligned to {align}");
            }
        }
    }

    #[test]
    fn aligned_classes() {
        for align in (0..=15).map(|shift| 1usize << shift) {
            for bytes in [1, 16, 17, 100, 256, 257, 1000, 4096, 5000, 32768] {
                let Some(sized) = aligned(bytes, align) else { continue };
                let got = size(of(sized)) as usize;
                assert!(
                    got >= bytes && got.is_multiple_of(align),
                    "{bytes} bytes aligned to {align} get {got}"
                );
                assert!(got.is_multiple_of(4096.min(align)) && (align <= 4096 || got.is_power_of_two()));
            }
        }
        assert_eq!(aligned(32768, 65536), None);
        assert_eq!(aligned(usize::MAX - 3, 4096), None);
    }
}
