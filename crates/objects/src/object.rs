//! A value in an object, and objects taken in advance. `unsafe`: owns values in raw memory.
//!
//! The functions of a cache that hand out objects are here, and not beside the cache: files are in layers,
//! and an object refers to its cache.

use crate::cache::ObjectCache;
use crate::constructor::{Mode, Plain, value};
use crate::prefill::Prefill;
use crate::{AllocError, Constructed, InsertError, untyped};
use slablab_native::Object as Raw;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// An owned value in an object of a cache, like a `Box` whose memory is the cache's. Dropping it frees the
/// object.
///
/// Invariant: there is a value at `at`, and this `Object` alone refers to it: `Object::new` and
/// `Object::with` are called with an object that their caller just allocated.
pub struct Object<'c, T, M: Mode<T> = Plain> {
    at: Raw,
    cache: &'c ObjectCache<T, M>,
    value: PhantomData<T>,
}

// SAFETY: the invariant of `Object`: a shared `Object` gives shared references to its value, and no more.
unsafe impl<T: Sync, M: Mode<T> + Sync> Sync for Object<'_, T, M> {}

impl<'c, T, M: Mode<T>> Object<'c, T, M> {
    /// Takes ownership of the value at `at`.
    #[inline(always)]
    pub(crate) fn new(at: Raw, cache: &'c ObjectCache<T, M>) -> Self {
        Object { at, cache, value: PhantomData }
    }

    /// The value's address.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut T {
        value(self.at)
    }
}

impl<'c, T> Object<'c, T> {
    /// Moves a value into an object of `cache` that the caller just allocated.
    #[inline(always)]
    pub(crate) fn with(at: Raw, cache: &'c ObjectCache<T>, content: T) -> Self {
        // SAFETY: the caller alone has the object. `Builder::made` asked for objects of the size and
        // alignment of `T`.
        unsafe { value::<T>(at).write(content) };
        Object::new(at, cache)
    }

    /// Takes the value out and frees the object.
    #[inline]
    pub fn into_inner(self) -> T {
        let (at, cache) = (self.at, self.cache);
        std::mem::forget(self);
        // SAFETY: the invariant of `Object`: it holds a value, which is moved out before the object is freed.
        let value = unsafe { value::<T>(at).read() };
        cache.raw().free(at);
        value
    }
}

/// Frees an object when it is dropped, also if dropping the value panics.
struct Freed<'c, T, M: Mode<T>>(Raw, &'c ObjectCache<T, M>);

impl<T, M: Mode<T>> Drop for Freed<'_, T, M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.1.raw().free(self.0);
    }
}

impl<T, M: Mode<T>> Drop for Object<'_, T, M> {
    #[inline(always)]
    fn drop(&mut self) {
        let freed = Freed(self.at, self.cache);
        if M::DROPS {
            // SAFETY: the invariant of `Object`: it holds a value; nothing uses it after this drop.
            unsafe { value::<T>(freed.0).drop_in_place() };
        }
    }
}

impl<T, M: Mode<T>> Deref for Object<'_, T, M> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the invariant of `Object`: it holds a value.
        unsafe { &*value(self.at) }
    }
}

impl<T, M: Mode<T>> DerefMut for Object<'_, T, M> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the invariant of `Object`: it holds a value, and alone refers to it.
        unsafe { &mut *value(self.at) }
    }
}

impl<T: fmt::Debug, M: Mode<T>> fmt::Debug for Object<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, M: Mode<T>> fmt::Display for Object<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T, M: Mode<T>> AsRef<T> for Object<'_, T, M> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T, M: Mode<T>> AsMut<T> for Object<'_, T, M> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T> ObjectCache<T> {
    /// Moves a value into an object.
    ///
    /// # Errors
    /// No object could be allocated. The error has the reason and the value.
    #[inline(always)]
    pub fn insert(&self, value: T) -> Result<Object<'_, T>, InsertError<T>> {
        match self.raw().alloc() {
            Ok(object) => Ok(Object::with(object, self, value)),
            Err(why) => Err(InsertError { value, why }),
        }
    }
}

impl<T> ObjectCache<T, Constructed<T>> {
    /// Allocates an object. Its value is as the last user left it, or as the constructor made it.
    ///
    /// # Errors
    /// No object could be allocated.
    #[inline(always)]
    pub fn alloc(&self) -> Result<Object<'_, T, Constructed<T>>, AllocError> {
        let object = self.raw().alloc()?;
        let unmade = Unmade(self.raw(), object);
        self.mode().prepare(object);
        std::mem::forget(unmade);
        Ok(Object::new(object, self))
    }
}

impl<T, M: Mode<T>> ObjectCache<T, M> {
    /// Allocates `count` objects in advance. Taking one of them from the [`Reserve`] cannot fail and does not
    /// run the constructor.
    ///
    /// # Errors
    /// Not all `count` objects could be allocated. None is taken then.
    pub fn prefill(&self, count: usize) -> Result<Reserve<'_, T, M>, AllocError> {
        Reserve::new(self, count)
    }
}

/// An object without a value. It is freed if the constructor panics.
struct Unmade<'a>(&'a untyped::Cache, Raw);

impl Drop for Unmade<'_> {
    fn drop(&mut self) {
        self.0.free(self.1);
    }
}

/// Objects allocated in advance. Dropping the reserve frees those that are left.
///
/// ```
/// let cache = slablab_objects::ObjectCache::<u64>::new("node")?;
/// let mut reserve = cache.prefill(3)?;
/// // From here on nothing can fail.
/// let nodes: Vec<_> = (0..3).map(|n| reserve.insert(n).expect("three were taken")).collect();
/// assert_eq!(reserve.insert(3).unwrap_err(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the reserve frees its objects"]
pub struct Reserve<'c, T, M: Mode<T> = Plain> {
    cache: &'c ObjectCache<T, M>,
    prefill: Prefill,
}

impl<'c, T, M: Mode<T>> Reserve<'c, T, M> {
    pub(crate) fn new(cache: &'c ObjectCache<T, M>, count: usize) -> Result<Self, AllocError> {
        let mut reserve = Reserve { cache, prefill: Prefill::default() };
        reserve.prefill.fill(cache.raw(), count, |object| cache.mode().prepare(object))?;
        Ok(reserve)
    }

    /// Number of objects left.
    pub fn left(&self) -> usize {
        self.prefill.left()
    }
}

impl<'c, T> Reserve<'c, T> {
    /// Moves a value into one of the objects.
    ///
    /// # Errors
    /// No object is left. The error is the value.
    pub fn insert(&mut self, content: T) -> Result<Object<'c, T>, T> {
        let Some(object) = self.prefill.pop(self.cache.raw()) else { return Err(content) };
        Ok(Object::with(object, self.cache, content))
    }
}

impl<'c, T> Reserve<'c, T, Constructed<T>> {
    /// Takes one of the objects; `None` if none is left.
    pub fn alloc(&mut self) -> Option<Object<'c, T, Constructed<T>>> {
        let object = self.prefill.pop(self.cache.raw())?;
        Some(Object::new(object, self.cache))
    }
}

impl<T, M: Mode<T>> Drop for Reserve<'_, T, M> {
    fn drop(&mut self) {
        self.prefill.give_back(self.cache.raw());
    }
}

impl<T, M: Mode<T>> fmt::Debug for Reserve<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve").field("left", &self.left()).finish_non_exhaustive()
    }
}
