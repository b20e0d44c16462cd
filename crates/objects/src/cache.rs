//! A cache of values of one type.

use crate::constructor::{self, Constructed, Mode, Plain, Values};
use crate::shrinker::Shrinker;
use crate::spec::{End, Spec};
use crate::untyped;
use crate::{CreateError, InUse, Letters, Limit, Stats};

/// A cache of values of one type.
///
/// In a [`Plain`] cache, a value moves into an object and is dropped when the object is freed.
///
/// ```
/// let cache = slablab_objects::ObjectCache::new("connection")?;
/// let mut connection = cache.insert((7, "a peer"))?;
/// connection.0 += 1;
/// assert_eq!(*connection, (8, "a peer"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// In a [`Constructed`] cache, a constructor makes the value once. A later allocation of the object gets the
/// value as the last user left it.
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
/// Values that must stay in their thread make a cache that must stay there too:
///
/// ```compile_fail,E0277
/// let cache = slablab_objects::ObjectCache::<std::rc::Rc<u8>>::new("connection").unwrap();
/// std::thread::scope(|scope| _ = scope.spawn(|| cache.shrink()));
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
    _values: Values<T>,
}

impl<T> ObjectCache<T> {
    /// A cache of plain values.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(name: &str) -> Result<Self, CreateError> {
        Builder::new(name).create()
    }
}

impl<T> ObjectCache<T, Constructed<T>> {
    /// A cache whose values `make` constructs. A value stays constructed while its object is free. It is
    /// dropped when its slab is freed: in any call of this cache by any thread, at the latest when the cache
    /// is dropped.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn with(name: &str, make: impl Fn() -> T + Send + Sync + 'static) -> Result<Self, CreateError> {
        Builder::new(name).create_with(make)
    }
}

impl<T, M: Mode<T>> ObjectCache<T, M> {
    /// Registers a function that frees objects of this cache that the program keeps for later. It is called
    /// with the number of objects that are wanted, when the cache is at its limit and, like every shrinker,
    /// when memory is short. It returns the number of objects that it freed.
    pub fn shrinker(&self, ask: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Shrinker {
        Shrinker::of(Some(self.raw.number()), ask)
    }

    /// Frees slabs without live objects, as far as this thread can reach. Returns the bytes of freed slabs.
    pub fn shrink(&self) -> u64 {
        self.raw.shrink()
    }

    /// Destroys the cache, as dropping it does, and says whether objects remain because the program forgot
    /// them (`std::mem::forget`). Those are leaked.
    ///
    /// # Errors
    /// Objects remain; the error has their number.
    pub fn destroy(mut self) -> Result<(), InUse> {
        self.raw.destroy().map_err(|busy| InUse { objects: busy.live_objects })
    }

    /// The cache's name.
    pub fn name(&self) -> &str {
        self.raw.name()
    }

    /// The cache's statistics.
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
        // Constructed values are dropped here at the latest. That they are tells the compiler that they must
        // not outlive the values that they refer to. Forgotten objects are leaked.
        let _forgotten = self.raw.destroy();
    }
}

impl<T, M: Mode<T>> std::fmt::Debug for ObjectCache<T, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectCache").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Builds a cache with options.
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

    /// Aligns objects to `bytes`, or to their type's alignment if that is more.
    #[must_use]
    pub fn align(mut self, bytes: usize) -> Self {
        self.spec.align = bytes;
        self
    }

    /// Aligns objects so that each lies in as few cache lines as possible.
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

    /// Chooses the engine, in the grammar of `SLABLAB_ENGINE`.
    #[must_use]
    pub fn engine(mut self, engine: &'a str) -> Self {
        self.spec.engine = Some(engine);
        self
    }

    /// Debugs this cache, in addition to the wrappers that its engine's text names.
    #[must_use]
    pub fn debug(mut self, letters: Letters) -> Self {
        self.spec.debug = letters;
        self
    }

    /// Creates a cache of plain values.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create<T>(self) -> Result<ObjectCache<T>, CreateError> {
        self.made(Plain, false)
    }

    /// Creates a cache of constructed values, as [`ObjectCache::with`].
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
        self.spec.end = keeps.then(|| End::new(constructor::end::<T> as fn(_)));
        Ok(ObjectCache { raw: untyped::Cache::create(&self.spec)?, mode, _values: Values::new() })
    }
}
