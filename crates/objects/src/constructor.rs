//! Two kinds of caches: a free drops the value, or the value stays as its constructor and its users left it.
//! `unsafe`: makes and drops values in raw memory.

use crate::spec::state_offset;
use slablab_native::Object as Raw;
use std::fmt;
use std::marker::PhantomData;

/// The values in a cache's free objects, which the cache drops. A cache that threads share moves values
/// between them, so `T` must be `Send`. It shares no value: only an [`Object`](crate::Object)
/// refers to one.
pub(crate) struct Values<T>(PhantomData<T>);

// SAFETY: this is no memory. A reference to a value comes from an `Object`, by the invariant of `Object` the
// only one.
unsafe impl<T: Send> Sync for Values<T> {}

impl<T> Values<T> {
    pub(crate) const fn new() -> Self {
        Values(PhantomData)
    }
}

/// Whether a value is dropped when its object is freed ([`Plain`]) or stays ([`Constructed`]).
pub trait Mode<T>: Sized {
    /// Makes an object ready to be handed out.
    #[doc(hidden)]
    fn prepare(&self, object: Raw);
    /// Whether the value is dropped when its object is freed.
    #[doc(hidden)]
    const DROPS: bool;
}

/// A value is moved into its object, and dropped when the object is freed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl<T> Mode<T> for Plain {
    const DROPS: bool = true;
    #[inline(always)]
    fn prepare(&self, _object: Raw) {}
}

/// A value is made when its object is first handed out, stays while the object is free, and is dropped when
/// its slab goes.
pub struct Constructed<T> {
    make: Box<dyn Fn() -> T + Send + Sync>,
}

impl<T> Constructed<T> {
    pub(crate) fn new(make: impl Fn() -> T + Send + Sync + 'static) -> Self {
        Constructed { make: Box::new(make) }
    }

    #[cold]
    #[inline(never)]
    fn make(&self, object: Raw) {
        let made = (self.make)();
        // SAFETY: `prepare` saw `FRESH`: there is no value; `Builder::made` asked for the type's size and
        // alignment.
        unsafe {
            value::<T>(object).write(made);
            state::<T>(object).write(MADE);
        }
    }
}

impl<T> fmt::Debug for Constructed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Constructed")
    }
}

impl<T> Mode<T> for Constructed<T> {
    const DROPS: bool = false;
    #[inline(always)]
    fn prepare(&self, object: Raw) {
        // SAFETY: an object of a cache that keeps has a word of state behind it, written when its slab was
        // made.
        if unsafe { state::<T>(object).read() } == FRESH {
            self.make(object);
        }
    }
}

/// Drops the value in a free object, if there is one.
pub(crate) fn end<T>(object: Raw) {
    // SAFETY: the slab is being freed and the object is free, so no thread uses the value; the state says
    // that it was not dropped.
    unsafe {
        if state::<T>(object).replace(FRESH) == MADE {
            value::<T>(object).drop_in_place();
        }
    }
}

/// No value was made yet.
const FRESH: u64 = 0;
/// There is a value.
const MADE: u64 = 1;

#[inline(always)]
pub(crate) fn value<T>(object: Raw) -> *mut T {
    object.as_ptr().cast()
}

#[inline(always)]
fn state<T>(object: Raw) -> *mut u64 {
    object.as_ptr().wrapping_add(state_offset(size_of::<T>().max(1))).cast()
}
