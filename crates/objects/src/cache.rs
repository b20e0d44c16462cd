//! A cache of values of one type. `unsafe`: makes values in raw memory.

use crate::constructor::{self, Constructed, Mode, Plain};
use crate::object::{Object, Reserve};
use crate::shrinker::Shrinker;
use crate::untyped::{self, Spec};
use crate::{AllocError, CreateError, InUse, InsertError, Letters, Limit, Stats};
use std::marker::PhantomData;

/// A cache of values of one type.
///
/// [`Plain`]: a value moves into an object and is dropped when the object is freed.
///
/// ```
/// let cache = slablab_objects::ObjectCache::new("connection")?;
/// let mut connection = cache.insert((7, "a peer"))?;
/// connection.0 += 1;
/// assert_eq!(*connection, (8, "a peer"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Constructed`]: a constructor makes the value once; it is as the last user left it when it is handed out
/// again.
///
/// ```
/// let cache = slablab_objects::ObjectCache::with("buffer", || Vec::<u8>::with_capacity(4096))?;
/// let mut buffer = cache.alloc()?;
/// buffer.clear();
/// buffer.push(1);
/// drop(buffer);
/// assert!(cache.alloc()?.capacity() >= 4096, "the memory is still there");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// An object cannot outlive its cache:
///
/// ```compile_fail,E0505
/// let cache = slablab_objects::ObjectCache::new("connection").unwrap();
/// let connection = cache.insert(7).unwrap();
/// drop(cache);
/// drop(connection);
/// ```
pub struct ObjectCache<T, M: Mode<T> = Plain> {
    raw: untyped::Cache,
    mode: M,
    values: PhantomData<T>,
}

// SAFETY: values are reached through objects alone, so that the cache only moves them between threads.
unsafe impl<T: Send, M: Mode<T> + Send> Send for ObjectCache<T, M> {}
// SAFETY: as above.
unsafe impl<T: Send, M: Mode<T> + Sync> Sync for ObjectCache<T, M> {}

impl<T> ObjectCache<T> {
    /// A cache of plain values.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(name: &str) -> Result<Self, CreateError> {
        Builder::new(name).create()
    }

    /// Moves a value into an object.
    ///
    /// # Errors
    /// There is no object, and why; the value comes back.
    #[inline(always)]
    pub fn insert(&self, value: T) -> Result<Object<'_, T>, InsertError<T>> {
        match self.raw.alloc() {
            Ok(object) => {
                // SAFETY: the object is ours alone, and large and aligned enough.
                unsafe { constructor::value::<T>(object).write(value) };
                Ok(Object::new(object, self))
            }
            Err(why) => Err(InsertError { value, why }),
        }
    }
}

impl<T> ObjectCache<T, Constructed<T>> {
    /// A cache whose values are made by `make` and stay made while their objects are free. A value's `Drop`
    /// runs when its slab goes: in some call of this cache by some thread, at the latest when the cache is
    /// dropped.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn with(name: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Result<Self, CreateError> {
        Builder::new(name).create_with(make)
    }

    /// An object, as its last user left it, or as the constructor made it.
    ///
    /// # Errors
    /// There is no object, and why.
    #[inline(always)]
    pub fn alloc(&self) -> Result<Object<'_, T, Constructed<T>>, AllocError> {
        let object = self.raw.alloc()?;
        let unmade = Unmade(&self.raw, object);
        self.mode.prepare(object);
        std::mem::forget(unmade);
        Ok(Object::new(object, self))
    }
}

/// An object in which no value is yet: given back if the constructor panics.
struct Unmade<'a>(&'a untyped::Cache, slablab_native::Object);

impl Drop for Unmade<'_> {
    fn drop(&mut self) {
        self.0.free(self.1);
    }
}

impl<T, M: Mode<T>> ObjectCache<T, M> {
    /// Takes `count` objects in advance: what they are handed out by cannot fail, nor, if there is a
    /// constructor, run it.
    ///
    /// # Errors
    /// There are not that many, and why; then none was taken.
    pub fn prefill(&self, count: usize) -> Result<Reserve<'_, T, M>, AllocError> {
        Reserve::new(self, count)
    }

    /// Registers who keeps objects of this cache for later: asked for so many when the cache is at its limit,
    /// and, like every shrinker, when memory is short. Answers how many it let go.
    pub fn shrinker(&self, ask: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Shrinker {
        Shrinker::of(Some(self.raw.number()), ask)
    }

    /// Gives back what is kept for nobody. Answers the bytes of slabs that the cache has no more.
    pub fn shrink(&self) -> u64 {
        self.raw.shrink()
    }

    /// Ends the cache's life, as dropping it does, and says whether objects remain that were forgotten. Those
    /// stay for good.
    ///
    /// # Errors
    /// So many remain.
    pub fn destroy(mut self) -> Result<(), InUse> {
        self.raw.destroy().map_err(|busy| InUse { objects: busy.live_objects })
    }

    /// The cache's name.
    pub fn name(&self) -> &str {
        self.raw.name()
    }

    /// What the cache holds.
    pub fn stats(&self) -> Stats {
        self.raw.stats()
    }

    #[inline(always)]
    pub(crate) fn raw(&self) -> &untyped::Cache {
        &self.raw
    }

    #[inline(always)]
    pub(crate) fn mode(&self) -> &M {
        &self.mode
    }
}

impl<T, M: Mode<T>> Drop for ObjectCache<T, M> {
    fn drop(&mut self) {
        // Constructed values are dropped here at the latest: this tells the compiler that they must not
        // outlive what they refer to. What is forgotten stays, and `destroy` says how much.
        let _forgotten = self.raw.destroy();
    }
}

impl<T, M: Mode<T>> std::fmt::Debug for ObjectCache<T, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectCache").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// What a cache is asked to be, step by step.
///
/// ```
/// use slablab_objects::{Builder, Limit};
/// let cache = Builder::new("packet").align(256).limit(Limit::Objects(1000)).create::<[u8; 1500]>()?;
/// assert_eq!(cache.stats().limit, Some(1000));
/// # Ok::<(), slablab_objects::CreateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder<'a> {
    spec: Spec<'a>,
}

impl<'a> Builder<'a> {
    /// A cache of this name.
    pub fn new(name: &'a str) -> Self {
        Builder { spec: Spec::new(name, 1, 1) }
    }

    /// Aligns objects to so many bytes, if their type does not ask for more.
    #[must_use]
    pub fn align(mut self, bytes: usize) -> Self {
        self.spec.align = bytes;
        self
    }

    /// Aligns objects so that none lies in more cache lines than it must.
    #[must_use]
    pub fn hwcache_align(mut self) -> Self {
        self.spec.hwcache_align = true;
        self
    }

    /// Sets the cache's limit.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.spec.limit = limit;
        self
    }

    /// Chooses the engine, in the words of `SLABLAB_ENGINE`.
    #[must_use]
    pub fn engine(mut self, engine: &'a str) -> Self {
        self.spec.engine = Some(engine);
        self
    }

    /// Debugs this cache, beside what its engine's words say.
    #[must_use]
    pub fn debug(mut self, letters: Letters) -> Self {
        self.spec.debug = letters;
        self
    }

    /// A cache of plain values.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create<T>(self) -> Result<ObjectCache<T>, CreateError> {
        self.made(Plain, false)
    }

    /// A cache whose values are kept, as [`ObjectCache::with`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_with<T>(
        self,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Result<ObjectCache<T, Constructed<T>>, CreateError> {
        self.made(Constructed::new(make), true)
    }

    fn made<T, M: Mode<T>>(mut self, mode: M, keeps: bool) -> Result<ObjectCache<T, M>, CreateError> {
        if !self.spec.align.is_power_of_two() {
            return Err(CreateError::Align(self.spec.align));
        }
        self.spec.size = size_of::<T>().max(1);
        self.spec.align = self.spec.align.max(align_of::<T>());
        self.spec.kept = keeps;
        self.spec.end = if keeps { Some(constructor::end::<T>) } else { None };
        Ok(ObjectCache { raw: untyped::Cache::create(&self.spec)?, mode, values: PhantomData })
    }
}
