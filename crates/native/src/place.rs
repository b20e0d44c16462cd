//! The places in every area that have numbers.

use crate::area::{FIXED_CACHES, PLACES};

/// A fixed place: that of a cache's slots in every area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Place(u8);

impl Place {
    /// The place of no cache.
    pub const NONE: Place = Place(0);

    /// The place of a cache; [`Place::NONE`] if it has none.
    #[inline(always)]
    pub fn of(cache: u32) -> Place {
        if (cache as usize) < FIXED_CACHES { Place(cache as u8 + 1) } else { Place::NONE }
    }

    /// The place with this number.
    #[inline(always)]
    pub(crate) fn new(number: u8) -> Place {
        Place(number)
    }

    /// The number of the cache with this place, which is not [`Place::NONE`].
    #[inline(always)]
    pub fn cache(self) -> usize {
        self.index().wrapping_sub(1)
    }

    /// The number, below [`PLACES`].
    #[inline(always)]
    pub(crate) fn number(self) -> u8 {
        self.0
    }

    /// The number as an index.
    #[inline(always)]
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

const _: () = assert!(PLACES == 1 << u8::BITS);
