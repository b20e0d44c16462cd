//! The slots of caches with a fixed place in every area: a program's size classes. The compiler knows where
//! they are, so a `malloc` reads no offset.

use crate::area::Area;
use crate::arrays::Array;
use crate::current::Hidden;
use crate::memory::PagemapEntry;
use crate::object::Object;
use crate::place::Place;
use crate::region::{HeapAccess, Trusted};
use std::marker::PhantomData;

/// Takes an object from the array of this thread's slot at a fixed place.
#[inline(always)]
pub(crate) fn pop_fixed(heap: HeapAccess, place: Place) -> Option<Object> {
    let hidden = Hidden::new();
    Array::fixed(heap, hidden.area(), place).pop()
}

/// Adds an object to the array of this thread's slot of its cache, which has this place.
#[inline(always)]
pub(crate) fn push_fixed(heap: HeapAccess, place: Place, object: Object) -> bool {
    let hidden = Hidden::new();
    Array::fixed(heap, hidden.area(), place).push(object)
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

    /// Whether an object of a cache with a fixed place starts at an entry's address. `true` is exact; `false`
    /// may also mean that only a slower look can tell.
    #[inline(always)]
    pub fn is_start(&self, entry: PagemapEntry) -> bool {
        entry.is_start_in(self.0)
    }

    /// The process's random number for the keys of free objects, if this thread has a slot of its own.
    #[inline(always)]
    pub fn object_secret(&self) -> u64 {
        self.0.header.secret.get()
    }

    /// Adds an object to the array of its cache, which has this place. `false` if it is full, and wherever a
    /// slower way is needed.
    #[inline(always)]
    pub fn push(self, place: Place, object: Object) -> bool {
        let hidden = Hidden::of(self.0);
        Array::fixed(HeapAccess::of::<A>(), hidden.area(), place).push(object)
    }
}
