//! The heap of the process. `unsafe`: hands out memory.
//!
//! There is one, in a static, of the engine that the environment chose. [`ENGINE`] says which; while it says none, every
//! call comes to [`start`]. One with something around its engine is reached where none is, so that the others pay nothing
//! for it.

use crate::classes;
use crate::engines;
use crate::env::Settings;
use crate::fast::{self, Released};
use crate::heap::Heap;
use crate::shared;
use crate::world::Native;
use crate::wrapped;
use slablab_native::report::misuse;
use slablab_native::system;
use slablab_slabs::engines::slab::SlabEngine;
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::Slub;
use slablab_slabs::preset::Choice;
use slablab_slabs::{Metadata, Preset};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::hint::{assert_unchecked, cold_path};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::*};

/// Requests below are served by [`SLUB`] and slots of threads, from classes with keys: all of them, or none before it is there.
static KEYED_END: AtomicUsize = AtomicUsize::new(0);
/// The same, from classes with flags.
static LISTED_END: AtomicUsize = AtomicUsize::new(0);

const KEYED_MOST: usize = Native::FLAG_BYTES + 1;
const LISTED_MOST: usize = classes::LISTED_MAX + 1;

/// Room for a heap of one engine.
struct Room<H>(UnsafeCell<MaybeUninit<H>>);

// SAFETY: written by the one thread that starts, before `ENGINE` says that it is there.
unsafe impl<H> Sync for Room<H> {}

static SLUB: Room<Heap<Slub<Native>>> = Room(UnsafeCell::new(MaybeUninit::uninit()));
static SLQB: Room<Heap<Slqb<Native>>> = Room(UnsafeCell::new(MaybeUninit::uninit()));
static SLAB: Room<Heap<SlabEngine<Native>>> = Room(UnsafeCell::new(MaybeUninit::uninit()));

/// The first cache number of [`SLUB`].
const FIRST: u32 = shared::OWN * shared::NUMBERS;

/// Which heap there is.
static ENGINE: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const STARTING: u8 = 1;
const IS_SLUB: u8 = 2;
const IS_SLQB: u8 = 3;
const IS_SLAB: u8 = 4;
const IS_WRAPPED: u8 = 5;

impl<H> Room<H> {
    /// # Safety
    /// `ENGINE` says that this heap is there.
    #[inline(always)]
    unsafe fn heap(&'static self) -> &'static H {
        // SAFETY: the caller says that it was written.
        unsafe { (*self.0.get()).assume_init_ref() }
    }
}

impl Room<Heap<Slub<Native>>> {
    /// Gives an object of this heap back, whether it is there or not: as far as this thread's slot takes it.
    #[inline(always)]
    fn release(&'static self, at: *mut u8) -> Released {
        let Some(spot) = Native::near(at) else { return Released::No };
        // SAFETY: no slab has a number of its caches before it is there.
        fast::release_spot(|| unsafe { self.heap() }, FIRST, spot)
    }
}

/// Does something with the heap there is, if nothing is around its engine.
macro_rules! with_heap {
    ($heap:ident => $body:expr, none => $none:expr) => {
        // SAFETY: each arm takes the heap that `ENGINE` says is there. Acquire: pairs with the store in `start`.
        unsafe {
            match ENGINE.load(Acquire) {
                IS_SLUB => { let $heap = SLUB.heap(); $body }
                IS_SLQB => { let $heap = SLQB.heap(); $body }
                IS_SLAB => { let $heap = SLAB.heap(); $body }
                _ => $none,
            }
        }
    };
}

/// Makes the heap, once, and answers whether there is one. If there was no memory for it, the next request tries again.
///
/// Signals are blocked meanwhile: a handler that allocates would wait for its own thread.
#[cold]
fn start() -> bool {
    system::without_signals(start_once)
}

fn start_once() -> bool {
    if ENGINE.compare_exchange(NONE, STARTING, AcqRel, Acquire).is_err() {
        while ENGINE.load(Acquire) == STARTING {
            system::pause();
        }
        return ENGINE.load(Acquire) != NONE;
    }
    let settings = SETTINGS.get_or_init(Settings::read);
    let (true, Some(pages)) = (shared::start(settings.wanted), shared::pages()) else {
        say_no_memory();
        ENGINE.store(NONE, Release);
        return false;
    };
    fast::start();
    let registration = shared::register_own(
        matches!(settings.choice.preset, Preset::Slub(_)) && !settings.choice.wrap.is_on_anywhere(),
    );
    let first = registration.first();
    // SAFETY: this thread alone is here, and the rooms are statics.
    let engine = unsafe {
        match settings.choice.preset {
            _ if settings.choice.wrap.is_on_anywhere() => match wrapped::make(pages, first, &settings.choice)
            {
                true => IS_WRAPPED,
                false => {
                    shared::release(registration);
                    say_no_memory();
                    ENGINE.store(NONE, Release);
                    return false;
                }
            },
            Preset::Slub(policy) => {
                (*SLUB.0.get()).write(engines::slub(pages, policy)(first));
                IS_SLUB
            }
            Preset::Slqb(policy) => {
                (*SLQB.0.get()).write(Heap::new(pages, first, &policy));
                IS_SLQB
            }
            Preset::Slab(policy) => {
                (*SLAB.0.get()).write(Heap::new(pages, first, &policy));
                IS_SLAB
            }
            Preset::Slob(_) => unreachable!("the settings do not choose it"),
        }
    };
    ENGINE.store(engine, Release);
    // SAFETY: it is there.
    let has_arrays = || unsafe { SLUB.heap() }.class(0).sheaf_capacity() > 0;
    // Without arrays, and where slots are CPUs', a first look would be in vain.
    if engine == IS_SLUB && has_arrays() && !Native::slots().are_cpus() {
        KEYED_END.store(KEYED_MOST, Release);
        LISTED_END.store(LISTED_MOST, Release);
    }
    // SAFETY: the rooms are statics.
    with_heap!(heap => shared::publish_static(&registration, heap), none => match wrapped() {
        Some(heap) => shared::publish_static(&registration, heap.tenant()),
        None => return false,
    });
    // These allocate: from here on that is served.
    Native::on_thread_exit(shared::thread_exit);
    Native::on_child(shared::forget_other_threads);
    Native::watch_forks();
    if settings.stats {
        system::keep_standard_error();
        system::at_exit(print_stats);
    }
    true
}

/// Says, once, why requests are refused.
#[cold]
fn say_no_memory() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Relaxed) {
        shared::say(format_args!(
            "cannot reserve address space for the heap: allocations fail until there is some (see ulimit -v)"
        ));
    }
}

/// The environment's settings, read by the first thread that allocates.
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The engine that the environment chose, and what is around it; `None` before a thread allocated.
pub(crate) fn choice() -> Option<Choice> {
    SETTINGS.get().map(|settings| settings.choice)
}

/// The heap there is, if something is around its engine.
#[cold]
fn wrapped() -> Option<&'static dyn wrapped::Serves> {
    // Acquire: pairs with the store in `start`.
    (ENGINE.load(Acquire) == IS_WRAPPED).then(wrapped::heap)
}

/// The heap as metadata memory of others; `None` before it started.
pub(crate) fn metadata() -> Option<&'static dyn Metadata<Native>> {
    with_heap!(heap => Some(heap), none => wrapped().map(wrapped::Serves::metadata))
}

extern "C" fn print_stats() {
    shared::print_stats(&choice().expect("the heap runs"));
}

/// Does something with the heap there is; [`SLUB`] first, as it is the default.
macro_rules! serve {
    ($heap:ident => $body:expr, else $other:expr) => {
        if ENGINE.load(Relaxed) == IS_SLUB {
            // SAFETY: it is there.
            let $heap = unsafe { SLUB.heap() };
            $body
        } else {
            $other
        }
    };
}

/// What the interfaces of C and Rust are made of.
pub mod api {
    use super::*;

    /// Makes the process's heap, if nobody allocated yet.
    pub fn start_now() {
        with_heap!(_heap => (), none => if wrapped().is_none() { start(); })
    }

    /// `bytes` bytes, aligned to 16; null without memory.
    #[inline(always)]
    pub fn alloc(bytes: usize) -> *mut u8 {
        let object = alloc_hot(bytes);
        if object.is_null() { alloc_rest(bytes) } else { object }
    }

    /// The same where that takes least; null says nothing. Calls nothing.
    #[inline(always)]
    pub fn alloc_hot(bytes: usize) -> *mut u8 {
        // SAFETY: the ends are 0, or what is stored there once that heap is there.
        unsafe {
            let keyed_end = KEYED_END.load(Acquire);
            assert_unchecked(keyed_end <= KEYED_MOST);
            if bytes < keyed_end {
                return SLUB.heap().allocate_keyed(bytes);
            }
            cold_path();
            let listed_end = LISTED_END.load(Acquire);
            assert_unchecked(listed_end <= LISTED_MOST);
            // Told of a known size without a look.
            if bytes > Native::FLAG_BYTES && bytes < listed_end {
                SLUB.heap().allocate_flagged(bytes)
            } else {
                ptr::null_mut()
            }
        }
    }

    /// What [`alloc`] does after [`alloc_hot`].
    #[inline(never)]
    pub fn alloc_rest(bytes: usize) -> *mut u8 {
        serve!(heap => heap.allocate_warm(bytes), else alloc_other(bytes))
    }

    #[inline(never)]
    fn alloc_other(bytes: usize) -> *mut u8 {
        with_heap!(
            heap => heap.allocate(bytes),
            none => alloc_rare(bytes, 1, false)
        )
    }

    /// The same, aligned to a power of two.
    #[inline]
    pub fn alloc_aligned(bytes: usize, align: usize) -> *mut u8 {
        if align <= classes::STEP {
            return alloc(bytes);
        }
        serve!(heap => heap.allocate_aligned(bytes, align), else alloc_aligned_other(bytes, align))
    }

    #[inline(never)]
    fn alloc_aligned_other(bytes: usize, align: usize) -> *mut u8 {
        with_heap!(
            heap => heap.allocate_aligned(bytes, align),
            none => alloc_rare(bytes, align, false)
        )
    }

    /// The same, all zeros.
    #[inline]
    pub fn alloc_zeroed(bytes: usize, align: usize) -> *mut u8 {
        serve!(heap => heap.allocate_zeroed(bytes, align), else alloc_zeroed_other(bytes, align))
    }

    #[inline(never)]
    fn alloc_zeroed_other(bytes: usize, align: usize) -> *mut u8 {
        with_heap!(
            heap => heap.allocate_zeroed(bytes, align),
            none => alloc_rare(bytes, align, true)
        )
    }

    /// What nearly no call comes to: something is around the engine, or there is no heap yet.
    #[cold]
    #[inline(never)]
    fn alloc_rare(bytes: usize, align: usize, zeroed: bool) -> *mut u8 {
        match wrapped() {
            Some(heap) if zeroed => heap.allocate_zeroed(bytes, align),
            Some(heap) => heap.allocate(bytes, align),
            None if !start() => ptr::null_mut(),
            None if zeroed => alloc_zeroed_other(bytes, align),
            None => alloc_aligned_other(bytes, align),
        }
    }

    /// Gives memory back. Any address may come: what was not allocated ends the process with a report.
    ///
    /// # Safety
    /// Nobody uses the memory.
    #[inline(always)]
    pub unsafe fn free(at: *mut u8) {
        // SAFETY: the caller's promise.
        match SLUB.release(at) {
            Released::Yes => {}
            Released::Marked => free_marked(at),
            Released::Before => fast::double_free(at),
            // SAFETY: the caller's promise.
            Released::No => unsafe { free_other(at) },
        }
    }

    /// Frees memory whose size or alignment the caller says: C++'s sized `delete`, C23's `free_sized`. With something around the
    /// engine a size or an alignment that is not the allocation's is reported, and the memory is freed all the same.
    ///
    /// # Safety
    /// As [`free`]; `align` is a power of two.
    #[inline(always)]
    pub unsafe fn free_sized(at: *mut u8, bytes: Option<usize>, align: usize) {
        // SAFETY: the caller's promise.
        match SLUB.release(at) {
            Released::Yes => {}
            Released::Marked => free_marked(at),
            Released::Before => fast::double_free(at),
            // SAFETY: the caller's promise.
            Released::No => unsafe { free_sized_other(at, bytes.unwrap_or(UNSAID), align) },
        }
    }

    /// The size of a free that says none.
    const UNSAID: usize = usize::MAX;

    /// # Safety
    /// As [`free_sized`].
    #[inline(never)]
    unsafe extern "C" fn free_sized_other(at: *mut u8, bytes: usize, align: usize) {
        if let Some(heap) = wrapped() {
            heap.check_sized(at, Some(bytes).filter(|bytes| *bytes != UNSAID), align);
        }
        // SAFETY: the caller's promise.
        unsafe { free_other(at) }
    }

    /// C's, as it does not unwind: whoever calls it last needs no frame.
    #[inline(never)]
    extern "C" fn free_marked(at: *mut u8) {
        // SAFETY: what is marked is an object of that heap.
        unsafe { SLUB.heap() }.release_marked(at);
    }

    /// # Safety
    /// As [`free`].
    #[inline(never)]
    unsafe extern "C" fn free_other(at: *mut u8) {
        serve!(heap => heap.release_far(at), else free_elsewhere(at));
    }

    #[inline(never)]
    fn free_elsewhere(at: *mut u8) {
        with_heap!(
            heap => heap.release_far(at),
            none => free_rare(at)
        );
    }

    /// # Safety
    /// As [`free`].
    #[cold]
    #[inline(never)]
    unsafe fn free_rare(at: *mut u8) {
        match wrapped() {
            // SAFETY: the caller's promise.
            Some(heap) => unsafe { heap.release(at) },
            None if at.is_null() => {}
            None => misuse(format_args!("free of {at:p}: not in the heap, which nothing is in yet")),
        }
    }

    /// Bytes that may be used at an address that was allocated; 0 for null.
    pub fn usable(at: *const u8) -> usize {
        with_heap!(
            heap => heap.usable(at),
            none => match wrapped() {
                Some(heap) => heap.usable(at),
                None if at.is_null() => 0,
                None => {
                    misuse(format_args!("malloc_usable_size of {at:p}: not in the heap, which nothing is in yet"))
                }
            }
        )
    }

    /// Moves an allocation to another size; null without memory, and then the old one stays.
    ///
    /// # Safety
    /// Nobody else uses the memory.
    pub unsafe fn realloc(at: *mut u8, bytes: usize, align: usize) -> *mut u8 {
        with_heap!(
            heap => heap.resize(at, bytes, align),
            none => match wrapped() {
                Some(heap) => heap.resize(at, bytes, align),
                None => misuse(format_args!("realloc of {at:p}: not in the heap, which nothing is in yet")),
            }
        )
    }

    /// Bytes of a page.
    pub fn page_size() -> usize {
        system::page_size()
    }

    /// What all heaps and object caches of the process hold; zeros before the heap started.
    pub fn totals() -> shared::Totals {
        shared::totals()
    }

    /// Prints what there is on standard error, in slabinfo's columns; nothing before the heap started.
    pub fn print_stats() {
        if let Some(choice) = choice() {
            shared::print_stats(&choice);
        }
    }

    /// Gives back all memory that can be given back. Answers whether any was.
    pub fn trim() -> bool {
        shared::trim() > 0
    }
}

/// The process's heap as Rust's global allocator: `#[global_allocator] static HEAP: Slablab = Slablab;`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slablab;

// SAFETY: what `api` hands out is the caller's alone, as large and as aligned as asked.
unsafe impl GlobalAlloc for Slablab {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        api::alloc_aligned(layout.size(), layout.align())
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        api::alloc_zeroed(layout.size(), layout.align())
    }
    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { api::free_sized(at, Some(layout.size()), layout.align()) }
    }
    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { api::realloc(at, bytes, layout.align()) }
    }
}
