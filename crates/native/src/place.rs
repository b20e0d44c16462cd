//! The places in every area that have numbers.

use crate::area::{FIXED_BYTES, FIXED_CACHES, PLACES};

/// A fixed place: that of a cache's slots in every area.
///
/// It is the number of words before the slot, which is what an instruction can scale: 16 times the place's
/// number. What is below 16 is no cache's place, and leads into the slot of number 0, which is of zeros: the
/// first word of a slot, which says where objects start, is read from there with every free that has no
/// place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Place(u16);

/// Words of a slot.
const WORDS: u16 = (FIXED_BYTES / 8) as u16;

impl Place {
    /// The place of no cache.
    pub const NONE: Place = Place(0);
    /// Bits of a place in the pagemap's word.
    pub(crate) const BITS: u32 = (PLACES * WORDS as usize).ilog2();

    /// The place of a cache; [`Place::NONE`] if it has none.
    #[inline(always)]
    pub const fn of(cache: u32) -> Place {
        if (cache as usize) < FIXED_CACHES { Place((cache as u16 + 1) * WORDS) } else { Place::NONE }
    }

    /// The place in the upper bits of a pagemap's word.
    #[inline(always)]
    pub(crate) fn in_upper_bits(word: u64) -> Place {
        Place((word >> (u64::BITS - Self::BITS)) as u16)
    }

    /// In the upper bits of a pagemap's word.
    #[inline]
    pub(crate) fn to_upper_bits(self) -> u64 {
        u64::from(self.0) << (u64::BITS - Self::BITS)
    }

    /// The number of the cache with this place, which is not [`Place::NONE`].
    #[inline(always)]
    pub fn cache(self) -> usize {
        self.index().wrapping_sub(1)
    }

    /// The number as an index, below [`PLACES`].
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0 / WORDS) % PLACES
    }

    /// Bytes before the slot: less than all slots have.
    #[inline(always)]
    pub(crate) fn bytes(self) -> usize {
        usize::from(self.0) * 8
    }
}

// A place's bits, and those that a word without a place may have there, lead into the slots alone.
const _: () = assert!((1 << Place::BITS) * 8 == PLACES * FIXED_BYTES);
