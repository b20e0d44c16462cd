//! The heap of the process. `unsafe`: hands out memory.
//!
//! There is one, in a static, of the engine that the environment chose. [`ENGINE`] says which; while it says none, every
//! call comes to [`start`].

use crate::classes;
use crate::heap::Heap;
use crate::huge;
use crate::interrupted::{self, Freed};
use crate::report::misuse;
use crate::settings::Settings;
use slablab_native::{Home, Native, Object, Start, system};
use slablab_platform::CpuId;
use slablab_slabs::Preset;
use slablab_slabs::slab_engine::SlabEngine;
use slablab_slabs::slqb::Slqb;
use slablab_slabs::slub::Slub;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};

/// Room for a heap of one engine.
struct Room<H>(UnsafeCell<MaybeUninit<H>>);

// SAFETY: written by the one thread that starts, before `ENGINE` says that it is there.
unsafe impl<H> Sync for Room<H> {}

static SLUB: Room<Heap<Slub<Native>>> = Room(UnsafeCell::new(MaybeUninit::uninit()));
static SLQB: Room<Heap<Slqb<Native>>> = Room(UnsafeCell::new(MaybeUninit::uninit()));
static SLAB: Room<Heap<SlabEngine<Native>>> = Room(UnsafeCell::new(MaybeUninit::uninit()));

/// Which heap there is.
static ENGINE: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const STARTING: u8 = 1;
const IS_SLUB: u8 = 2;
const IS_SLQB: u8 = 3;
const IS_SLAB: u8 = 4;
const BROKEN: u8 = 5;

/// What a freed object carries in its second word, together with its own address.
static KEY: AtomicU64 = AtomicU64::new(0);

impl<H> Room<H> {
    /// # Safety
    /// `ENGINE` says that this heap is there.
    #[inline(always)]
    unsafe fn heap(&'static self) -> &'static H {
        // SAFETY: the caller says that it was written.
        unsafe { (*self.0.get()).assume_init_ref() }
    }
}

/// Does something with the heap there is.
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

/// Bytes of a sheaf's objects, where the engine has sheaves: a program's bursts are longer than a kernel's.
const SHEAF_BYTES: u32 = 64 << 10;

/// Makes the heap, once; whether there is one. A signal handler that allocates meanwhile would wait for its own thread.
#[cold]
fn start() -> bool {
    system::without_signals(start_once)
}

fn start_once() -> bool {
    if ENGINE.compare_exchange(NONE, STARTING, AcqRel, Acquire).is_err() {
        while ENGINE.load(Acquire) == STARTING {
            system::pause();
        }
        return ENGINE.load(Acquire) != BROKEN;
    }
    let settings = Settings::read();
    if Native::start_with(settings.slots) != Start::Runs {
        ENGINE.store(BROKEN, Release);
        return false;
    }
    KEY.store(system::secret(), Relaxed);
    // SAFETY: this thread alone is here, and the rooms are statics.
    let engine = unsafe {
        match settings.preset {
            Preset::Slub(mut policy) => {
                policy.order_cpus = system::cpus_usable();
                // The key of a freed object is in its second word.
                policy.link = slablab_slabs::cache::LinkPlace::Start;
                (*SLUB.0.get()).write(Heap::new(&policy, SHEAF_BYTES));
                IS_SLUB
            }
            Preset::Slqb(policy) => {
                (*SLQB.0.get()).write(Heap::new(&policy, 0));
                IS_SLQB
            }
            Preset::Slab(policy) => {
                (*SLAB.0.get()).write(Heap::new(&policy, 0));
                IS_SLAB
            }
            Preset::Slob(_) => unreachable!("the settings do not choose it"),
        }
    };
    interrupted::start();
    ENGINE.store(engine, Release);
    // These allocate: from here on that is served.
    Native::on_thread_exit(|cpu: CpuId| with_heap!(heap => heap.thread_exit(cpu), none => ()));
    Native::watch_forks();
    if settings.stats {
        system::at_exit(print_stats);
    }
    true
}

extern "C" fn print_stats() {
    let settings = Settings::read();
    with_heap!(heap => heap.print_stats(&settings.preset), none => ());
}

/// What the interfaces of C and Rust are made of.
pub mod api {
    use super::*;

    /// `bytes` bytes, aligned to 16; null without memory.
    #[inline(always)]
    pub fn alloc(bytes: usize) -> *mut u8 {
        if bytes <= classes::MAX && ENGINE.load(Relaxed) == IS_SLUB {
            let class = classes::of(bytes);
            // SAFETY: it is there.
            if let Some(object) = unsafe { SLUB.heap() }.alloc_hot(class) {
                return handed_out(object);
            }
        }
        alloc_slow(bytes)
    }

    /// The object is live from here on: it loses its key.
    #[inline(always)]
    fn handed_out(object: Object) -> *mut u8 {
        // SAFETY: an object has at least two words.
        unsafe { object.as_ptr().cast::<u64>().add(1).write(0) };
        object.as_ptr()
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(bytes: usize) -> *mut u8 {
        if bytes > classes::MAX {
            return alloc_large(bytes, 1).map_or(ptr::null_mut(), |(object, _)| object.as_ptr());
        }
        let class = classes::of(bytes);
        let object = with_heap!(
            heap => match heap.alloc_hot(class) {
                None if Native::interrupted() => return interrupted::alloc(bytes, 1).unwrap_or_default(),
                None => {
                    free_waiting();
                    heap.alloc_slow(class)
                }
                hot => hot,
            },
            none => return if start() { alloc_slow(bytes) } else { ptr::null_mut() }
        );
        object.map_or(ptr::null_mut(), handed_out)
    }

    fn alloc_large(bytes: usize, align: usize) -> Option<(Object, bool)> {
        if Native::interrupted() {
            return Some((Object::at(interrupted::alloc(bytes, align)?)?, false));
        }
        if (1..bytes.max(align)).contains(&Native::largest_block()) {
            return Some((Object::at(huge::alloc(bytes, align)?)?, true));
        }
        with_heap!(
            heap => heap.alloc_large(bytes, align),
            none => if start() { alloc_large(bytes, align) } else { None }
        )
    }

    /// The same, aligned to a power of two.
    #[inline]
    pub fn alloc_aligned(bytes: usize, align: usize) -> *mut u8 {
        if align <= 16 {
            return alloc(bytes);
        }
        match classes::aligned(bytes, align) {
            Some(bytes) => alloc(bytes),
            None => alloc_large(bytes, align).map_or(ptr::null_mut(), |(object, _)| object.as_ptr()),
        }
    }

    /// The same, all zeros.
    #[inline]
    pub fn alloc_zeroed(bytes: usize, align: usize) -> *mut u8 {
        let sized = if align <= 16 { Some(bytes) } else { classes::aligned(bytes, align) };
        match sized {
            Some(sized) if sized <= classes::MAX => {
                let object = alloc(sized);
                if !object.is_null() {
                    // SAFETY: the object has so many bytes.
                    unsafe { object.write_bytes(0, bytes) };
                }
                object
            }
            _ => match alloc_large(bytes, align) {
                Some((object, true)) => object.as_ptr(),
                Some((object, false)) => {
                    // SAFETY: the block has so many bytes.
                    unsafe { object.as_ptr().write_bytes(0, bytes) };
                    object.as_ptr()
                }
                None => ptr::null_mut(),
            },
        }
    }

    /// Gives memory back. Any address may come: what was not allocated ends the process with a report.
    ///
    /// # Safety
    /// Nobody uses the memory.
    #[inline]
    pub unsafe fn free(at: *mut u8) {
        // The slow ways look it up again: kept over a call it would go through the stack.
        if let Some(home) = Native::home(at)
            && (home.cache as usize) < classes::COUNT
            && (home.offset as usize).is_multiple_of(classes::STEP)
            && let Some(object) = Object::at(at)
        {
            // SAFETY: a step of a slab has two words, and they are the caller's.
            let second = unsafe { &mut *at.cast::<u64>().add(1) };
            let key = KEY.load(Relaxed) ^ at.addr() as u64;
            if *second == key {
                double_free(at);
            }
            *second = key;
            // SAFETY: it is there.
            if ENGINE.load(Relaxed) == IS_SLUB && unsafe { SLUB.heap() }.free_hot(object, home) {
                return;
            }
        }
        free_slow(at)
    }

    #[cold]
    #[inline(never)]
    fn double_free(at: *mut u8) -> ! {
        let class = Native::home(at).map_or(0, |home| home.cache as usize);
        misuse(format_args!("double free of {at:p} (malloc-{})", classes::size(class)))
    }

    #[cold]
    #[inline(never)]
    fn free_slow(at: *mut u8) {
        let Some(object) = Object::at(at) else { return };
        let home = Native::home(at);
        if home.is_none() {
            match interrupted::free(at) {
                Freed::Yes => return,
                Freed::Not => {
                    misuse(format_args!("free of {at:p}: not allocated, of what signal handlers get"))
                }
                Freed::Elsewhere => {}
            }
        }
        if Native::interrupted() {
            // SAFETY: the caller's promise.
            return unsafe { interrupted::keep(at) };
        }
        free_waiting();
        free_now(object, home);
    }

    /// What signal handlers freed in the middle of something.
    #[inline]
    fn free_waiting() {
        if interrupted::any_waits() {
            free_all_waiting();
        }
    }

    #[cold]
    #[inline(never)]
    fn free_all_waiting() {
        interrupted::waiting()
            .filter_map(Object::at)
            .for_each(|object| free_now(object, Native::home(object.as_ptr())));
    }

    #[inline]
    fn free_now(object: Object, home: Option<Home>) {
        let at = object.as_ptr();
        if home.is_none() && huge::free(at) {
            return;
        }
        with_heap!(heap => heap.free_slow(object, home), none => misuse(format_args!("free of {at:p}: not in the heap, which nothing is in yet")));
    }

    /// Bytes that may be used at an address that was allocated; 0 for null.
    pub fn usable(at: *const u8) -> usize {
        if at.is_null() {
            return 0;
        }
        match Native::home(at) {
            Some(home) => with_heap!(heap => heap.usable(home), none => 0),
            None => interrupted::usable(at.addr()).or_else(|| huge::usable(at.addr())).unwrap_or_else(|| {
                misuse(format_args!("malloc_usable_size of {at:p}: not in the heap, or in an empty slab"))
            }),
        }
    }

    /// Moves an allocation to another size; null without memory, and then the old one stays.
    ///
    /// # Safety
    /// Nobody else uses the memory.
    pub unsafe fn realloc(at: *mut u8, bytes: usize, align: usize) -> *mut u8 {
        let usable = usable(at);
        // It stays where it is if it fits and does not waste half.
        if bytes <= usable && (bytes >= usable / 2 || usable <= 64) {
            return at;
        }
        let moved = alloc_aligned(bytes, align);
        if !moved.is_null() {
            // SAFETY: both are allocated, and have that many bytes; the old one is the caller's to give.
            unsafe {
                ptr::copy_nonoverlapping(at, moved, usable.min(bytes));
                free(at);
            }
        }
        moved
    }

    /// Bytes of a page.
    pub fn page_size() -> usize {
        system::page_size()
    }

    /// Gives back all memory that can be given back. Answers whether any was.
    pub fn trim() -> bool {
        with_heap!(heap => heap.trim() > 0, none => false)
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
    unsafe fn dealloc(&self, at: *mut u8, _layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { api::free(at) }
    }
    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { api::realloc(at, bytes, layout.align()) }
    }
}
