//! The arrays of a cache's slots, for a library that keeps them beside the cache: one load less.

use crate::arrays::Array;
use crate::current::Hidden;
use crate::object::Object;
use crate::region::{Cache, HeapAccess, Trusted};
use std::marker::PhantomData;

/// The arrays of a cache's slots, without the cache, which is to be there for as long as they are used.
pub struct SlotArrays<A> {
    /// Where each slot is in its area.
    offset: u32,
    program: PhantomData<fn() -> A>,
}

impl<A> Clone for SlotArrays<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for SlotArrays<A> {}

impl<A: Trusted> SlotArrays<A> {
    /// The arrays of no cache: they are empty and have no room.
    pub const NONE: Self = SlotArrays { offset: 0, program: PhantomData };

    #[inline(always)]
    pub(crate) fn at(cache: Cache) -> Self {
        SlotArrays { offset: cache.offset(), program: PhantomData }
    }

    /// Takes an object from this thread's array. `None` if it is empty, and wherever a slower way is needed.
    #[inline(always)]
    pub fn pop(self) -> Option<Object> {
        let hidden = Hidden::new();
        Array::at(HeapAccess::of::<A>(), hidden.area(), self.offset as usize).pop()
    }

    /// Adds an object to this thread's array. `false` if it is full, and wherever a slower way is needed.
    #[inline(always)]
    pub fn push(self, object: Object) -> bool {
        let hidden = Hidden::new();
        Array::at(HeapAccess::of::<A>(), hidden.area(), self.offset as usize).push(object)
    }
}
