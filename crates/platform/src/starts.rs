//! Where the objects of a slab start.

/// Decides with one multiplication and one comparison whether an object starts at an offset in a slab.
///
/// Let r be the least number with size * r = 2^64 + d and d > 0. Modulo 2^64, the offset of object k times r
/// is k * d. For the slab's objects this is below objects * d. For every other offset the product is at least
/// r, which is larger (after Lemire, Kaser and Kurz 2019).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starts {
    /// The multiplier.
    pub reciprocal: u64,
    /// An upper bound: the products of the objects' offsets are below it.
    pub end: u64,
}

impl Starts {
    /// Starts of `objects` objects that are `size` bytes apart.
    pub fn of(objects: u32, size: u32) -> Starts {
        let reciprocal = u64::MAX / size as u64 + 1 + u64::from(size.is_power_of_two());
        let rest = reciprocal.wrapping_mul(size as u64);
        Starts { reciprocal, end: rest * objects as u64 }
    }

    /// Whether an object starts `offset` bytes from the first one.
    #[inline(always)]
    pub fn has(self, offset: u32) -> bool {
        self.has_below(offset, self.end)
    }

    /// The number of the object that starts `offset` bytes from the first one.
    #[inline(always)]
    pub fn index(self, offset: u32) -> u32 {
        ((offset as u128 * self.reciprocal as u128) >> 64) as u32
    }

    /// Like [`Starts::has`], in a slab with fewer objects, whose `end` is this one.
    #[inline(always)]
    pub fn has_below(self, offset: u32, end: u64) -> bool {
        (offset as u64).wrapping_mul(self.reciprocal) < end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_start_where_a_division_says() {
        for size in [8, 16, 24, 40, 96, 100, 192, 208, 704, 1000, 4096, 5120, 12288, 32768, 65535, 1 << 20] {
            for objects in [1, 2, 3, 7, 127, 128, 170, 512, 65535] {
                let starts = Starts::of(objects, size);
                let end = size.saturating_mul(objects);
                let near_ends = (end.saturating_sub(2 * size)..end.saturating_add(3 * size)).take(300_000);
                for offset in (0..1 << 17).chain(near_ends).chain(u32::MAX - 70000..=u32::MAX) {
                    let expected = offset % size == 0 && offset / size < objects;
                    assert_eq!(starts.has(offset), expected, "{offset} of {objects} objects of {size} bytes");
                }
            }
        }
    }
}
