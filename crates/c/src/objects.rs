//! Object caches for C, under the kernel's names. cbindgen makes `include/slablab.h` from this file.
//!
//! A cache is a pointer that `kmem_cache_create` returned. Every address of an object is checked, and a wrong
//! one ends the process with a report. An address of a cache is trusted.

use crate::edge::{Ask, Asked, Given, Lent, Objects, Text, set_errno};
use libc::{EAGAIN, EBUSY, EDQUOT, EINVAL, ENOMEM, c_int, c_uint, c_void, size_t};
use slablab_objects::checked::{Checked, Constructor, Contents, Destructor, PrefilledObjects};
use slablab_objects::untyped::Spec;
use slablab_objects::{AllocError, CreateError, Letters, Limit, Shrinker};
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::ptr;

/// Aligns objects so that each lies in as few cache lines as possible; for `flags` of `kmem_cache_create`.
pub const KMEM_HWCACHE_ALIGN: c_uint = 0x2000;
/// Checks that a freed object belongs to the cache and is allocated (letter F of `debug=`); for `flags` of
/// `kmem_cache_create`.
pub const KMEM_CONSISTENCY_CHECKS: c_uint = 0x100;
/// Puts red zones around objects (Z). A write to one is reported when the object is freed or allocated next.
pub const KMEM_RED_ZONE: c_uint = 0x400;
/// Poisons free objects (P). A write to one is reported when it is allocated next. Not with a constructor.
pub const KMEM_POISON: c_uint = 0x800;
/// Records the stacks that allocate and free an object (U), for reports.
pub const KMEM_STORE_USER: c_uint = 0x10000;
/// For `flags` of the functions that allocate: fills the object with zeros. Invalid if the cache has a
/// constructor. `kmem_cache_create` has no flag of this value.
pub const KMEM_ZERO: c_uint = 0x1;

/// A cache of objects of one size.
#[allow(non_camel_case_types, reason = "C's name")]
pub struct kmem_cache {
    checked: Checked,
    name: CString,
}

/// Objects that were allocated in advance.
#[allow(non_camel_case_types, reason = "C's name")]
pub struct slab_sheaf(PrefilledObjects);

/// A registered shrinker.
#[allow(non_camel_case_types, reason = "C's name")]
pub struct kmem_shrinker {
    _registered: Shrinker,
}

/// Options of a new cache. Zeros are the defaults.
#[allow(non_camel_case_types, reason = "C's name")]
#[repr(C)]
pub struct kmem_cache_args {
    /// Alignment in bytes, a power of two; 0 for 8 bytes.
    pub align: size_t,
    /// `KMEM_HWCACHE_ALIGN`, and the flags that debug this cache; or 0.
    pub flags: c_uint,
    /// Constructor: called once for an object, before it is first allocated. The contents survive frees. May
    /// be null.
    pub ctor: Option<Constructor>,
    /// Destructor: called for each object that the constructor initialised, when the memory of its slab goes
    /// back: in a later call for this cache that takes a slow path, in `kmem_cache_shrink` or in
    /// `kmem_cache_destroy`, in any thread, with no lock held. It may call functions of caches. Not called
    /// for what is left when the process ends. May be null; only with a constructor.
    pub dtor: Option<Destructor>,
    /// The number of objects that may be live at a time; 0 for no limit.
    pub max_objects: size_t,
    /// Bytes that live objects may take, each with the padding that its cache puts around it; 0 for no limit.
    /// Only if `max_objects` is 0.
    pub max_bytes: size_t,
    /// The engine, in the grammar of `SLABLAB_ENGINE`; null for the process's own.
    pub engine: Text,
}

impl kmem_cache_args {
    const NONE: kmem_cache_args = kmem_cache_args {
        align: 0,
        flags: 0,
        ctor: None,
        dtor: None,
        max_objects: 0,
        max_bytes: 0,
        engine: Text::NULL,
    };
}

/// Statistics of a cache. The values are not consistent while other threads use it.
#[allow(non_camel_case_types, reason = "C's name")]
#[repr(C)]
pub struct kmem_cache_stats {
    /// Requested bytes of an object.
    pub object_bytes: size_t,
    /// Bytes from one object to the next.
    pub spaced_bytes: size_t,
    /// Objects in a slab.
    pub objects_per_slab: size_t,
    /// Bytes of a slab.
    pub slab_bytes: size_t,
    /// Number of slabs.
    pub slabs: size_t,
    /// Objects that the slabs can hold.
    pub objects: size_t,
    /// Allocated objects. Without a limit the free objects in other threads' slots are counted too.
    pub active: size_t,
    /// Most objects that may be allocated at a time; 0 without a limit.
    pub limit: size_t,
}

/// A cache that [`kmem_cache_create`] returned.
type Cache = Lent<kmem_cache>;

#[cold]
#[inline(never)]
fn refused(why: AllocError) -> *mut c_void {
    set_errno(match why {
        AllocError::NoMemory => ENOMEM,
        AllocError::Limit => EDQUOT,
        AllocError::Interrupted => EAGAIN,
    });
    ptr::null_mut()
}

/// What `flags` of an allocation ask for; `None` if they are invalid.
fn contents(cache: &kmem_cache, flags: c_uint) -> Option<Contents> {
    match flags {
        0 => Some(Contents::Any),
        KMEM_ZERO if !cache.checked.constructs() => Some(Contents::Zeros),
        _ => None,
    }
}

#[cold]
#[inline(never)]
fn invalid() -> *mut c_void {
    set_errno(EINVAL);
    ptr::null_mut()
}

#[cold]
#[inline(never)]
extern "C" fn alloc_slow(cache: &kmem_cache, flags: c_uint) -> *mut c_void {
    let Some(contents) = contents(cache, flags) else { return invalid() };
    match cache.checked.alloc(contents) {
        Ok(object) => object.cast(),
        Err(why) => refused(why),
    }
}

exports! { "C":
/// Creates a cache. `name` is copied. Returns null and sets `errno` to `EINVAL` if a size, an alignment, a
/// flag or the name is invalid, to `ENOMEM` if there is no memory or the process has the largest number of
/// caches.
///
/// # Safety
/// `name` is a string that ends with 0, or null; `ctor` may be called with any object of this cache.
fn kmem_cache_create(
    name: Text,
    size: size_t,
    align: size_t,
    flags: c_uint,
    ctor: Option<Constructor>,
) -> Option<Box<kmem_cache>> {
    let args = kmem_cache_args { align, flags, ctor, ..kmem_cache_args::NONE };
    kmem_cache_create_args(name, size, Some(&args))
}

/// Creates a cache as `kmem_cache_create` does, with the options of `args`, which may be null.
///
/// # Safety
/// As [`kmem_cache_create`]; `args` and its texts can be read; `dtor` may be called once with each object
/// that `ctor` initialised.
fn kmem_cache_create_args(
    name: Text,
    size: size_t,
    args: Option<&kmem_cache_args>,
) -> Option<Box<kmem_cache>> {
    let refused = |error| {
        set_errno(error);
        None
    };
    let args = args.unwrap_or(&kmem_cache_args::NONE);
    let has = |flag: c_uint| args.flags & flag != 0;
    let debug = Letters {
        checks: has(KMEM_CONSISTENCY_CHECKS),
        red_zone: has(KMEM_RED_ZONE),
        poison: has(KMEM_POISON),
        users: has(KMEM_STORE_USER),
        ..Letters::NONE
    };
    const KNOWN: c_uint =
        KMEM_HWCACHE_ALIGN | KMEM_CONSISTENCY_CHECKS | KMEM_RED_ZONE | KMEM_POISON | KMEM_STORE_USER;
    let Some(name) = name.get().filter(|_| !has(!KNOWN)) else { return refused(EINVAL) };
    let name = name.to_owned();
    let text = name.to_string_lossy();
    let mut spec = Spec::new(&text, size, args.align.max(8));
    spec.hwcache_align = has(KMEM_HWCACHE_ALIGN);
    spec.debug = debug;
    spec.limit = match (args.max_objects, args.max_bytes) {
        (0, 0) => Limit::None,
        (0, bytes) => Limit::Bytes(bytes as u64),
        (objects, _) => Limit::Objects(objects as u64),
    };
    let engine;
    if let Some(text) = args.engine.get() {
        engine = text.to_string_lossy();
        spec.engine = Some(&engine);
    }
    match Checked::create(&spec, args.ctor, args.dtor) {
        Ok(checked) => {
            drop(text);
            Some(Box::new(kmem_cache { checked, name }))
        }
        Err(CreateError::TooMany | CreateError::NoMemory) => refused(ENOMEM),
        Err(_) => refused(EINVAL),
    }
}

/// Allocates an object. Returns null and sets `errno`: `ENOMEM` without memory, `EDQUOT` at the cache's
/// limit, `EINVAL` for an invalid flag, `EAGAIN` in a signal handler that interrupted an allocation or a
/// free.
///
/// # Safety
/// `cache` came from `kmem_cache_create`.
fn kmem_cache_alloc(cache: Cache, flags: c_uint) -> *mut c_void {
    let cache = cache.get();
    if flags == 0
        && let Some(object) = cache.checked.alloc_fast()
    {
        return object.cast();
    }
    alloc_slow(cache, flags)
}

/// Allocates `count` objects, all or none. Returns `count`; or 0, and sets `errno` as [`kmem_cache_alloc`]
/// does.
///
/// # Safety
/// `cache` came from `kmem_cache_create`; `objects` has room for `count` addresses.
fn kmem_cache_alloc_bulk(
    cache: Cache,
    flags: c_uint,
    count: size_t,
    objects: Objects,
) -> size_t {
    let cache = cache.get();
    let Some(contents) = contents(cache, flags).filter(|_| count > 0) else {
        invalid();
        return 0;
    };
    let mut places = objects.room(count).iter_mut();
    let hand_over = |object: *mut u8| {
        places.next().expect("`count` objects are handed over").write(object.cast());
    };
    if let Err(why) = cache.checked.alloc_bulk(count, contents, hand_over) {
        refused(why);
        return 0;
    }
    count
}

/// Frees an object; does nothing if `object` is null. An address that is no live object of this cache ends
/// the process with a report.
///
/// # Safety
/// `cache` came from `kmem_cache_create`; no thread uses the object any more.
fn kmem_cache_free(cache: Cache, object: Given) {
    cache.get().checked.free(object.give_up());
}

/// Frees `count` objects, none of them null.
///
/// # Safety
/// As [`kmem_cache_free`]; `objects` has `count` addresses.
fn kmem_cache_free_bulk(
    cache: Cache,
    count: size_t,
    objects: Objects,
) {
    if count > 0 {
        cache.get().checked.free_bulk(objects.give_up(count));
    }
}

/// Frees every slab without a live object, as far as this thread can reach. Returns 0 if no slab is left.
///
/// # Safety
/// `cache` came from `kmem_cache_create`.
fn kmem_cache_shrink(cache: Cache) -> c_int {
    c_int::from(!cache.get().checked.shrink())
}

/// Destroys a cache; does nothing if `cache` is null. Returns 0, or -1 with `EBUSY` if objects remain: their
/// number is reported on standard error, and the cache stays.
///
/// # Safety
/// `cache` came from `kmem_cache_create`. If 0 is returned, no thread uses it any more.
fn kmem_cache_destroy(cache: Cache) -> c_int {
    let Some(mut cache) = cache.last() else { return 0 };
    if cache.checked.destroy().is_err() {
        set_errno(EBUSY);
        // The cache stays, and so does its address.
        Box::leak(cache);
        return -1;
    }
    0
}

/// Bytes of an object.
///
/// # Safety
/// `cache` came from `kmem_cache_create`.
fn kmem_cache_size(cache: &kmem_cache) -> size_t {
    cache.checked.size()
}

/// The cache's name. The string is valid as long as the cache.
///
/// # Safety
/// `cache` came from `kmem_cache_create`.
fn kmem_cache_name(cache: &kmem_cache) -> *const c_char {
    cache.name.as_ptr()
}

/// Writes the statistics of a cache to `stats`.
///
/// # Safety
/// `cache` came from `kmem_cache_create`; `stats` can be written.
fn kmem_cache_get_stats(cache: &kmem_cache, stats: &mut MaybeUninit<kmem_cache_stats>) {
    let known = cache.checked.stats();
    let known = kmem_cache_stats {
        object_bytes: known.object_bytes as size_t,
        spaced_bytes: known.spaced_bytes as size_t,
        objects_per_slab: known.objects_per_slab as size_t,
        slab_bytes: known.slab_bytes as size_t,
        slabs: known.slabs as size_t,
        objects: known.objects as size_t,
        active: known.active as size_t,
        limit: known.limit.unwrap_or(0) as size_t,
    };
    stats.write(known);
}

/// Allocates `count` objects in advance, for a section that must not fail, and runs the constructor for those
/// that are new. Returns null, and sets `errno` as [`kmem_cache_alloc`] does, if not all could be allocated.
///
/// # Safety
/// `cache` came from `kmem_cache_create`.
fn kmem_cache_prefill_sheaf(
    cache: Cache,
    flags: c_uint,
    count: size_t,
) -> Option<Box<slab_sheaf>> {
    if flags != 0 {
        invalid();
        return None;
    }
    match cache.get().checked.prefill(count) {
        Ok(prefilled) => Some(Box::new(slab_sheaf(prefilled))),
        Err(why) => {
            refused(why);
            None
        }
    }
}

/// Takes one of the objects that were allocated in advance. Returns null if none is left.
///
/// # Safety
/// `cache` came from `kmem_cache_create`, and the sheaf came from it.
fn kmem_cache_alloc_from_sheaf(
    cache: Cache,
    flags: c_uint,
    sheaf: &mut slab_sheaf,
) -> *mut c_void {
    let cache = cache.get();
    let Some(contents) = contents(cache, flags) else { return invalid() };
    cache.checked.alloc_from(&mut sheaf.0, contents).cast()
}

/// The number of objects left in a sheaf.
///
/// # Safety
/// The sheaf came from `kmem_cache_prefill_sheaf`.
fn kmem_cache_sheaf_size(sheaf: &slab_sheaf) -> size_t {
    sheaf.0.left()
}

/// Frees a sheaf and the objects that are left in it; does nothing if `sheaf` is null.
///
/// # Safety
/// `cache` came from `kmem_cache_create`, and the sheaf came from it.
fn kmem_cache_return_sheaf(
    cache: Cache,
    _flags: c_uint,
    sheaf: Option<Box<slab_sheaf>>,
) {
    if let Some(sheaf) = sheaf {
        cache.get().checked.give_back(sheaf.0);
    }
}

/// Registers a function of a program that keeps objects for later. `ask` is called with the number of objects
/// that are wanted and with `argument`, in the thread that wants memory; it returns the number of objects
/// that it freed. It is called when memory is short, and when `cache`, which may be null, is at its limit.
/// Returns null and sets `errno` to `EINVAL` if `ask` is null.
///
/// # Safety
/// `cache` came from `kmem_cache_create`, or is null; `ask` may be called with `argument` in any thread until
/// `kmem_unregister_shrinker` returned.
fn kmem_register_shrinker(
    cache: Cache,
    ask: Option<Ask>,
    argument: *mut c_void,
) -> Option<Box<kmem_shrinker>> {
    let Some(ask) = ask else {
        invalid();
        return None;
    };
    let asked = Asked(ask, argument);
    let ask = move |count: u64| asked.call(count);
    let _registered = match cache.any() {
        None => Shrinker::register(ask),
        Some(cache) => cache.checked.shrinker(ask),
    };
    Some(Box::new(kmem_shrinker { _registered }))
}

/// Unregisters a shrinker; does nothing if `shrinker` is null. Waits for every call of its function that runs
/// in another thread: once this returned, `argument` may be freed. The function may itself unregister its
/// shrinker; its own call is then not waited for.
///
/// # Safety
/// `shrinker` came from `kmem_register_shrinker`, and is not used any more.
fn kmem_unregister_shrinker(shrinker: Option<Box<kmem_shrinker>>) {
    drop(shrinker);
}

/// Calls every shrinker for all that it can free, and has every heap and cache give back the free memory that
/// it keeps. Returns the bytes that went back to the system.
fn kmem_shrink_all() -> size_t {
    slablab_objects::shrink_all() as size_t
}
}
