//! The places in every area that have numbers.

use crate::area::{FIXED_CACHES, PLACES};

/// A fixed place: that of a cache's slots in every area. Its number is in bits 4 to 11 of a word: so a free
/// of malloc, which has such a word, need not shift it to look up 16 bytes by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    const SHIFT: u32 = 4;
    const MASK: u32 = (PLACES as u32 - 1) << Self::SHIFT;
    /// The place of no cache.
    pub const NONE: Place = Place(0);

    /// The place of a cache; [`Place::NONE`] if it has none.
    #[inline(always)]
    pub fn of(cache: u32) -> Place {
        if (cache as usize) < FIXED_CACHES { Place((cache + 1) << Self::SHIFT) } else { Place::NONE }
    }

    /// The place whose bits are in `word`.
    #[inline(always)]
    pub(crate) fn from_bits(word: u32) -> Place {
        Place(word & Self::MASK)
    }

    /// The bits.
    #[inline(always)]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// The number.
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        ((self.0 & Self::MASK) >> Self::SHIFT) as usize
    }
}
