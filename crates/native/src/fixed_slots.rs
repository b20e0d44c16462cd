//! The slots of caches with a fixed place in every area: a program's size classes. The compiler knows where
//! they are, so a `malloc` reads no offset.

use crate::area::{Area, FIXED_CACHES, PLACES};
use crate::arrays::Array;
use crate::current::Hidden;
use crate::object::Object;
use crate::region::{HeapAccess, Trusted};
use std::marker::PhantomData;

/// A fixed place. In bits 4 to 11 of a word is its number: so a free of malloc, which has such a word and looks
/// up [`crate::starts`]' entries of 16 bytes by it, need not shift.
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

/// Takes an object from the array of this thread's slot at a fixed place.
#[inline(always)]
pub(crate) fn pop_fixed(heap: HeapAccess, place: Place) -> Option<Object> {
    let hidden = Hidden::new();
    let area = hidden.area();
    Array { heap, area, hot: area.fixed(place.index()) }.pop()
}

/// This thread's slots at fixed places: those of the caches with the numbers below 128, which are a program's
/// size classes.
pub struct FixedSlots<A>(&'static Area, PhantomData<fn() -> A>);

impl<A: Trusted> FixedSlots<A> {
    /// The slots of an area that is this thread's own.
    #[inline(always)]
    pub(crate) fn of(area: &'static Area) -> Self {
        FixedSlots(area, PhantomData)
    }

    /// Adds an object to the array of its cache, which has this place. `false` if it is full, and wherever a
    /// slower way is needed.
    #[inline(always)]
    pub fn push(self, place: Place, object: Object) -> bool {
        let hidden = Hidden::of(self.0);
        let area = hidden.area();
        Array { heap: HeapAccess::of::<A>(), area, hot: area.fixed(place.index()) }.push(object)
    }
}
