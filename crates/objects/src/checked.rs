//! A cache that checks every address its callers pass. A wrong one ends the process with a report that names
//! the address and the cache. `unsafe`: reads and writes words of objects.
//!
//! | cache | the state word | fresh | live | free |
//! |---|---|---|---|---|
//! | without a constructor | the second word of a free object | key | the caller's data | key |
//! | with a constructor | a word behind the object | 0 | 1 | key |
//!
//! If the engine is wrapped, the wrapper knows an object's state, and a cache without a constructor has no
//! state word.
//!
//! The key is a secret of the process XOR the object's address. A live object without a constructor holds its
//! own key by chance once in 2^64.

use crate::prefill::Prefill;
use crate::spec::{End, Spec, WORD, state_offset};
use crate::untyped::Cache;
use crate::{AllocError, CreateError, InUse, Shrinker, Stats};
use slablab_malloc::Given;
use slablab_malloc::shared::{Named, misuse, say};
use slablab_malloc::world::Native;
use slablab_native::Object;
use slablab_platform::{Hooks, Pfn};
use slablab_slabs::Misuse;

/// A constructor: initialises an object once, before it is first allocated.
///
/// Invariant: only C makes one, as an argument of a function that creates a cache: any thread may call it
/// with the address of a new object of that cache.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Constructor(unsafe extern "C" fn(*mut std::ffi::c_void));

/// A destructor: called with an object that a [`Constructor`] initialised, when the memory of its slab goes
/// back. The object is free.
///
/// Invariant: only C makes one, as an argument of a function that creates a cache: any thread may call it
/// with the address of a constructed object of that cache, once.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Destructor(Constructor);

/// What a newly allocated object contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Anything; in a cache with a constructor, what the constructor and the last user left.
    Any,
    /// Zeros; not in a cache with a constructor, where it is as [`Contents::Any`].
    Zeros,
}

/// A cache that checks the addresses that its callers give it.
pub struct Checked {
    cache: Cache,
    construct: Option<Constructor>,
    /// Bytes from an object's start to its state word.
    word: usize,
    secret: u64,
    /// Whether objects have no state word.
    wordless: bool,
}

const FRESH: u64 = 0;
const LIVE: u64 = 1;

/// Objects allocated in advance from a [`Checked`] cache. They leak unless [`Checked::give_back`] is called.
#[derive(Debug, Default)]
pub struct PrefilledObjects(Prefill);

impl PrefilledObjects {
    /// Number of objects left.
    pub fn left(&self) -> usize {
        self.0.left()
    }
}

/// Writes the key into a free object of a cache without a constructor.
fn mark(object: Object) {
    // SAFETY: the object is free, and has two words.
    unsafe { object.as_ptr().cast::<u64>().add(1).write(Native::secret() ^ object.addr() as u64) };
}

/// Destroys what is in a free object, if its constructor ran. Its state is `word` bytes behind its start.
fn end(name: &str, object: Object, word: usize, destroy: Destructor) {
    let at = object.as_ptr().wrapping_add(word).cast::<u64>();
    let key = Native::secret() ^ object.addr() as u64;
    // SAFETY: the slab is being freed and the object is free, so no thread uses it. It has a state word,
    // which its slab began with as `FRESH`; the key says that the constructor ran. The invariant of
    // `Destructor`: the word is `FRESH` from now on, so it is called once.
    let state = unsafe {
        let state = at.replace(FRESH);
        if state == key {
            (destroy.0.0)(object.as_ptr().cast());
        }
        state
    };
    if ![FRESH, key].contains(&state) {
        misuse(format_args!(
            "{name}: the word behind the free object {object:?} was overwritten with {state:#x}"
        ));
    }
}

impl Checked {
    /// Creates a cache with the options of `spec`, with or without a constructor, and with a destructor.
    ///
    /// # Errors
    /// See [`CreateError`]; [`CreateError::Destructor`] if there is a destructor and no constructor.
    pub fn create(
        spec: &Spec<'_>,
        construct: Option<Constructor>,
        destroy: Option<Destructor>,
    ) -> Result<Checked, CreateError> {
        let mut spec = spec.clone();
        spec.kept = construct.is_some();
        if let Some(destroy) = destroy {
            if construct.is_none() {
                return Err(CreateError::Destructor);
            }
            let (name, word) = (spec.name.to_owned(), state_offset(spec.size));
            spec.end = Some(End::new(move |object| end(&name, object, word, destroy)));
        }
        if construct.is_none() {
            spec.mark = Some(mark);
        }
        let cache = Cache::create(&spec)?;
        let word = if construct.is_some() { cache.state_offset() } else { WORD };
        let wordless = construct.is_none() && cache.is_wrapped();
        Ok(Checked { cache, construct, word, secret: Native::secret(), wordless })
    }

    #[inline(always)]
    fn key(&self, object: Object) -> u64 {
        self.secret ^ object.addr() as u64
    }

    #[inline(always)]
    fn word(&self, object: Object) -> *mut u64 {
        object.as_ptr().wrapping_add(self.word).cast()
    }

    /// Allocates an object.
    ///
    /// # Errors
    /// No object could be allocated.
    pub fn alloc(&self, contents: Contents) -> Result<*mut u8, AllocError> {
        Ok(self.hand_out_any(self.cache.alloc()?, contents))
    }

    /// Hands out an object that the cache just allocated for the caller.
    fn hand_out_any(&self, object: Object, contents: Contents) -> *mut u8 {
        let at = if self.wordless { object.as_ptr() } else { self.hand_out(object) };
        if contents == Contents::Zeros && self.construct.is_none() {
            // SAFETY: the callers just took the object from the cache, whose objects have `size` bytes.
            unsafe { at.write_bytes(0, self.cache.size()) };
        }
        at
    }

    /// Allocates an object from this thread's array. `None` means "call [`Checked::alloc`]".
    #[inline(always)]
    pub fn alloc_fast(&self) -> Option<*mut u8> {
        Some(self.hand_out(self.cache.alloc_fast()?))
    }

    /// Marks an object as live.
    #[inline(always)]
    fn hand_out(&self, object: Object) -> *mut u8 {
        let word = self.word(object);
        // SAFETY: the word belongs to an object that only this thread uses.
        unsafe {
            match self.construct {
                None => word.write(0),
                Some(construct) if word.read() == FRESH => {
                    return self.make(construct, object.as_ptr(), LIVE);
                }
                Some(_) => word.write(LIVE),
            }
        }
        object.as_ptr()
    }

    #[cold]
    #[inline(never)]
    extern "C" fn make(&self, construct: Constructor, object: *mut u8, state: u64) -> *mut u8 {
        // SAFETY: the invariant of `Constructor`: the cache just allocated the object for this call. So the
        // word is this thread's.
        unsafe {
            (construct.0)(object.cast());
            object.wrapping_add(self.word).cast::<u64>().write(state);
        }
        object
    }

    /// The state word of an object of this cache, which has one.
    fn state(&self, object: Object) -> u64 {
        // SAFETY: the callers know that the object is of this cache: `owns` said so, or it was just
        // allocated.
        unsafe { self.word(object).read() }
    }

    /// Frees the object at any address; does nothing for null.
    #[inline(always)]
    pub fn free(&self, given: Given) {
        let at = given.as_ptr();
        // The slow paths look the address up again. They do not unwind and are called last, so this function
        // needs no frame.
        if let Some(entry) = Native::pagemap_local(at)
            && let Some(object) = self.cache.starts_at_fast(entry)
            && self.mark(object)
        {
            if !self.cache.free_fast(object) {
                self.free_slow_marked(at);
            }
            return;
        }
        self.free_slow(given);
    }

    /// Slow path of a free: the object is marked as free already.
    #[inline(never)]
    extern "C" fn free_slow_marked(&self, at: *mut u8) {
        let (object, location) = Object::at(at).zip(Native::location(at)).expect("an object");
        if self.cache.try_free(object, location.slab).is_err() {
            self.wrong(at);
        }
    }

    /// Slow path of a free: looks up any address, and reports one that is wrong.
    #[inline(never)]
    extern "C" fn free_slow(&self, given: Given) {
        self.look_up_and_free(&given);
    }

    fn look_up_and_free(&self, given: &Given) {
        let at = given.as_ptr();
        match self.take_back(given) {
            Some((object, slab)) if self.cache.try_free(object, slab).is_ok() => {}
            _ if at.is_null() => {}
            _ => self.wrong(at),
        }
    }

    /// Marks the object at an address as free, and returns it with its slab. `None` if there is no live one.
    fn take_back(&self, given: &Given) -> Option<(Object, Pfn)> {
        let (object, slab) = self.cache.find(Native::pagemap(given.as_ptr())?)?;
        (self.wordless || self.mark(object)).then_some((object, slab))
    }

    /// Marks an object, which starts at the address of a [`Given`], as free. `false` if it was not live.
    #[inline(always)]
    fn mark(&self, object: Object) -> bool {
        let (word, key) = (self.word(object), self.key(object));
        // SAFETY: `starts_at_fast` in `free`, or `find` in `take_back`, said that an object of this cache
        // starts here, so it has a state word. `Given::new`: no thread uses the object.
        unsafe {
            let live = if self.construct.is_some() { *word == LIVE } else { *word != key };
            if live {
                *word = key;
            }
            live
        }
    }

    /// Prints why an address could not be freed, and ends the process.
    #[cold]
    #[inline(never)]
    fn wrong(&self, at: *mut u8) -> ! {
        let name = self.cache.name();
        let Some((object, location)) = Object::at(at).zip(Native::location(at)) else {
            misuse(format_args!(
                "{name}: free of {at:p}: not allocated here: outside the heap, or in an empty slab"
            ))
        };
        if location.cache != self.cache.number().0 {
            misuse(format_args!(
                "{name}: free of {at:p}: an object of {}, not of this cache",
                Named(location.cache)
            ));
        }
        if self.cache.owns(object) == Err(Misuse::NotAnObject) {
            let offset = location.offset;
            misuse(format_args!(
                "{name}: free of {at:p}: not the start of an object: at offset {offset} in a slab"
            ));
        }
        let word = if self.wordless { FRESH } else { self.state(object) };
        if self.construct.is_some() && ![FRESH, LIVE, self.key(object)].contains(&word) {
            misuse(format_args!(
                "{name}: free of {at:p}: the word behind the object was overwritten with {word:#x}"
            ));
        }
        misuse(format_args!("{name}: double free of {at:p}, or free of an object that was never allocated"))
    }

    /// Allocates `count` objects, all or none, and calls `hand_over` with the address of each.
    ///
    /// # Errors
    /// Not all could be allocated. `hand_over` was not called then.
    pub fn alloc_bulk(
        &self,
        count: usize,
        contents: Contents,
        mut hand_over: impl FnMut(*mut u8),
    ) -> Result<(), AllocError> {
        let mut prefill = Prefill::default();
        if let Err(why) = prefill.fill(&self.cache, count, |_| ()) {
            prefill.give_back(&self.cache);
            return Err(why);
        }
        while let Some(object) = prefill.pop(&self.cache) {
            hand_over(self.hand_out_any(object, contents));
        }
        Ok(())
    }

    /// Frees the objects at the addresses, all of them.
    pub fn free_bulk(&self, all: &[Given]) {
        if self.wordless {
            // An object without a state word has no fast path.
            return all.iter().for_each(|given| self.look_up_and_free(given));
        }
        for batch in all.chunks(64) {
            let mut objects = [None; 64];
            for (place, given) in objects.iter_mut().zip(batch) {
                let Some((object, _)) = self.take_back(given) else { self.wrong(given.as_ptr()) };
                *place = Some(object);
            }
            let first = objects[0].expect("chunks are not empty");
            let objects = objects.map(|object| object.unwrap_or(first));
            self.cache.free_bulk(&objects[..batch.len()]);
        }
    }

    /// Allocates `count` objects in advance, and runs the constructor for new ones.
    ///
    /// # Errors
    /// Not all could be allocated.
    pub fn prefill(&self, count: usize) -> Result<PrefilledObjects, AllocError> {
        let mut prefill = Prefill::default();
        let ready = |object: Object| {
            if let Some(construct) = self.construct
                && self.state(object) == FRESH
            {
                self.make(construct, object.as_ptr(), self.key(object));
            }
        };
        match prefill.fill(&self.cache, count, ready) {
            Ok(()) => Ok(PrefilledObjects(prefill)),
            Err(why) => {
                prefill.give_back(&self.cache);
                Err(why)
            }
        }
    }

    /// Takes one of the objects that were allocated in advance; null if none is left.
    pub fn alloc_from(&self, lent: &mut PrefilledObjects, contents: Contents) -> *mut u8 {
        lent.0.pop(&self.cache).map_or(std::ptr::null_mut(), |object| self.hand_out_any(object, contents))
    }

    /// Frees the objects that are left.
    pub fn give_back(&self, mut lent: PrefilledObjects) {
        lent.0.give_back(&self.cache);
    }

    /// Frees slabs without live objects, as far as this thread can reach. `true` if no slab is left.
    pub fn shrink(&self) -> bool {
        self.cache.shrink();
        self.cache.usage().slabs == 0
    }

    /// Destroys the cache.
    ///
    /// # Errors
    /// Objects remain, and so does the cache. Their number is reported.
    pub fn destroy(&mut self) -> Result<(), InUse> {
        self.cache.destroy().map_err(|busy| {
            let (name, objects) = (self.cache.name(), busy.live_objects);
            say(format_args!("{name}: cannot be destroyed: objects remaining: {objects}"));
            InUse { objects }
        })
    }

    /// Registers a shrinker of this cache, as [`crate::ObjectCache::shrinker`].
    pub fn shrinker(&self, ask: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Shrinker {
        Shrinker::of(Some(self.cache.number()), ask)
    }

    /// The cache's name.
    pub fn name(&self) -> &str {
        self.cache.name()
    }

    /// Bytes of an object.
    pub fn size(&self) -> usize {
        self.cache.size()
    }

    /// Whether there is a constructor.
    pub fn constructs(&self) -> bool {
        self.construct.is_some()
    }

    /// The cache's statistics.
    pub fn stats(&self) -> Stats {
        self.cache.stats()
    }
}
