//! The process's heap: of which engine it is, and how it starts. `unsafe`: refers to statics that one thread
//! wrote, and to a mapping in which this file makes a heap.
//!
//! The environment chooses the engine. SLUB with nothing around it, the default, has room in [`OnceHeap`],
//! at an address that is known when the program is linked. Any other heap is in a mapping of its own
//! ([`placed`]), and is called through a table, so that the default pays nothing for it. [`OnceHeap::get`]
//! says which is there.

use crate::caches::Caches;
use crate::classes;
use crate::env;
use crate::fast::{self, Freed, Given, GivenEntry, Resized};
use crate::hardened::{Guards, Hardened};
use crate::heap::Heap;
use crate::policy::slub_here;
use crate::shared::{self, Tenant};
use crate::world::{FixedSlots, Native, Over};
use crate::wrapped::{Encoded, Serves, Wrapped, around};
use slablab_native::{Object, Place, report, system};
use slablab_pages::Pages;
use slablab_platform::Gfp;
use slablab_slabs::engines::slab::SlabEngine;
use slablab_slabs::engines::slqb::Slqb;
use slablab_slabs::engines::slub::{Slub, SlubPolicy};
use slablab_slabs::preset::Choice;
use slablab_slabs::{Front, Metadata, Preset};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::*};

type SlubHeap = Heap<Slub<Native>>;

/// The first cache number of a SLUB heap with nothing around it: a constant, so that a fast free compares
/// with it.
const FIRST: u32 = shared::OWN * shared::NUMBERS;

const NONE: u8 = 0;
const STARTING: u8 = 1;
const IS_SLUB: u8 = 2;
const IS_OTHER: u8 = 3;

// The fast paths turn a class's number into its cache's address by one shift. The caches have 256 bytes.
const _: () = assert!(size_of::<Slub<Native>>().is_power_of_two());
// Its slot's address is known from the number alone: the places of the lowest numbers are `slub`'s.
const _: () = assert!(FIRST == 0 && classes::COUNT <= Native::FIXED_CACHES);

/// Room for a SLUB heap with nothing around it, and for where any other heap is.
///
/// Invariant: a room is written once, by the thread that changed `state` from `NONE` to `STARTING`, before
/// that thread stores the room's value in `state`, by a Release, and before the heap makes its first slab.
/// Nothing writes a room later. So a thread that loaded such a value with Acquire may refer to the room.
#[repr(C)]
pub(crate) struct OnceHeap {
    state: AtomicU8,
    other: UnsafeCell<MaybeUninit<&'static dyn Serves>>,
    /// The last, for most of it is never written.
    slub: UnsafeCell<MaybeUninit<SlubHeap>>,
}

// SAFETY: the invariant of `OnceHeap`: no thread refers to a room before it is written for good, and heaps
// are `Sync`.
unsafe impl Sync for OnceHeap {}

/// The process's heap.
pub(crate) static HEAP: OnceHeap = OnceHeap {
    state: AtomicU8::new(NONE),
    slub: UnsafeCell::new(MaybeUninit::uninit()),
    other: UnsafeCell::new(MaybeUninit::uninit()),
};

/// The heap that a process has.
pub(crate) enum Which {
    /// SLUB with nothing around it: the default.
    Slub(&'static SlubHeap),
    /// Another engine, or something is around it.
    Other(&'static dyn Serves),
    /// The heap did not start yet.
    None,
}

impl OnceHeap {
    /// # Safety
    /// The room was written: see the invariant of [`OnceHeap`].
    #[inline(always)]
    unsafe fn room<H>(room: &'static UnsafeCell<MaybeUninit<H>>) -> &'static H {
        // SAFETY: the section Safety above: the room was written. The invariant of `OnceHeap`: nothing writes
        // it later.
        unsafe { (*room.get()).assume_init_ref() }
    }

    /// The heap there is.
    #[inline(always)]
    pub(crate) fn get(&'static self) -> Which {
        // SAFETY: the invariant of `OnceHeap`: each arm refers to the room whose value was loaded with
        // Acquire.
        unsafe {
            match self.state.load(Acquire) {
                IS_SLUB => Which::Slub(Self::room(&self.slub)),
                IS_OTHER => Which::Other(*Self::room(&self.other)),
                _ => Which::None,
            }
        }
    }

    /// The heap there is, if it is SLUB with nothing around it: the default.
    #[inline(always)]
    pub(crate) fn slub(&'static self) -> Option<&'static SlubHeap> {
        match self.get() {
            Which::Slub(heap) => Some(heap),
            _ => None,
        }
    }

    /// Frees an object of a SLUB heap with nothing around it into this thread's array, if it has room.
    #[inline(always)]
    pub(crate) fn free_fast(&'static self, at: &Given) -> Freed {
        let Some((entry, slots)) = at.pagemap_and_slots() else { return Freed::No };
        let marked = fast::mark_free_fixed(&entry, &slots);
        self.push_marked(&entry, slots, marked)
    }

    /// [`OnceHeap::free_fast`] for an object whose caller says how many bytes it asked for.
    #[inline(always)]
    pub(crate) fn free_fast_sized(&'static self, at: &Given, bytes: usize) -> Freed {
        let Some((entry, slots)) = at.pagemap_and_slots() else { return Freed::No };
        let marked = fast::mark_free_sized(&entry, bytes, &slots);
        self.push_marked(&entry, slots, marked)
    }

    /// The place of the class of the live object of a SLUB heap with nothing around it that starts at an
    /// address. `None` may also mean that only a slower look can tell.
    #[inline(always)]
    pub(crate) fn live_place_fast(&'static self, at: &Given) -> Option<Place> {
        let (entry, slots) = at.pagemap_and_slots()?;
        fast::live_place(&entry, &slots)
    }

    /// [`OnceHeap::live_place_fast`] for memory of any node, and for threads without a slot of their own.
    #[inline]
    pub(crate) fn live_place(&'static self, at: &Given) -> Option<Place> {
        fast::live_place_anywhere(&at.pagemap()?)
    }

    /// Gives a live object of the class with a place, of the SLUB heap with nothing around it, another size
    /// of at most [`classes::LISTED_MAX`] bytes, if this thread's array has an object.
    #[inline(always)]
    pub(crate) fn resize(&'static self, at: &Given, class: Place, bytes: usize) -> Resized {
        fast::resize(at, class, bytes)
    }

    #[inline(always)]
    fn push_marked(&self, entry: &GivenEntry, slots: FixedSlots, marked: Result<Place, Freed>) -> Freed {
        match marked {
            Ok(place) if slots.push(place, entry.get().object()) => Freed::Yes,
            Ok(_) => Freed::Marked,
            Err(what) => what,
        }
    }

    /// Makes the heap that the environment chose; `None` without memory. The caller changed `state` to
    /// `STARTING`.
    fn make(&'static self, choice: &Choice) -> Option<u8> {
        let pages = shared::pages()?;
        let slub = match choice.preset {
            Preset::Slub(policy) if !choice.wrap.is_on_anywhere() => Some(policy),
            _ => None,
        };
        let mut registration = shared::register_own(slub.is_some());
        let first = registration.first();
        let (tenant, is): (&dyn Tenant, u8) = match slub {
            Some(policy) => {
                // SAFETY: the invariant of `OnceHeap`: this thread changed `state` to `STARTING`, so it alone
                // refers to the rooms.
                let room = unsafe { &mut *self.slub.get() };
                (make_in(room, pages, first, &slub_here(policy, false)), IS_SLUB)
            }
            None => {
                let Some(heap) = placed(pages, first, choice) else {
                    shared::release(registration);
                    return None;
                };
                // SAFETY: as above.
                unsafe { (*self.other.get()).write(heap) };
                (heap.tenant(), IS_OTHER)
            }
        };
        shared::publish_static(&mut registration, tenant);
        Some(is)
    }

    /// Starts the heap, once; answers whether there is one. Signals are blocked meanwhile: a handler that
    /// allocates would wait for its own thread.
    #[cold]
    pub(crate) fn start(&'static self) -> bool {
        system::keeping_errno(|| system::without_signals(|| self.start_once()))
    }

    fn start_once(&'static self) -> bool {
        if self.state.compare_exchange(NONE, STARTING, AcqRel, Acquire).is_err() {
            while self.state.load(Acquire) == STARTING {
                system::pause();
            }
            return self.state.load(Acquire) != NONE;
        }
        let settings = env::settings();
        report::name_caches(shared::write_cache_name);
        let started = shared::start(settings.wanted);
        let Some(engine) = started.then(|| self.make(&settings.choice)).flatten() else {
            say_no_memory();
            // The next request tries again.
            self.state.store(NONE, Release);
            return false;
        };
        self.state.store(engine, Release);
        shared::open_directory((!settings.is_default).then_some(&settings.choice));
        // These allocate: from here on the heap serves them.
        Native::on_thread_exit(shared::thread_exit);
        Native::spare_slots(SLOTLESS);
        Native::on_child(shared::forget_other_threads);
        Native::watch_forks();
        if settings.background {
            shared::helper::want();
        }
        if !shared::limit::start(&settings.limit) {
            shared::say(format_args!(
                "SLABLAB_LIMIT=cgroup: no cgroup with memory.current or memory.usage_in_bytes; there is no limit"
            ));
        }
        if settings.stats != env::Stats::Off {
            system::keep_standard_error();
            system::at_exit(print_stats);
        }
        true
    }
}

/// Makes a heap in its room and not on the stack: the stack of the thread that allocates first may be small,
/// and the pages of it that were touched stay.
fn make_in<'a, E: Front<W>, W: Over>(
    room: &'a mut MaybeUninit<Heap<E, W>>,
    pages: &'static Pages<Native>,
    first: u32,
    policy: &E::Policy,
) -> &'a Heap<E, W> {
    let heap = room.as_mut_ptr();
    // SAFETY: the room is borrowed, so the fields are this function's to write; each is written before the
    // heap is referred to.
    unsafe {
        (&raw mut (*heap).pages).write(pages);
        (&raw mut (*heap).common).write(E::Common::default());
        (&raw mut (*heap).first).write(first);
        (&raw mut (*heap).policy).write(policy.clone());
        Caches::place(&raw mut (*heap).classes);
        let heap = room.assume_init_ref();
        if first != FIRST {
            heap.make_all();
        }
        heap
    }
}

/// Room in a mapping of its own, which stays. `None` without memory.
fn mapped<T>() -> Option<&'static mut MaybeUninit<T>> {
    let bytes = size_of::<T>().next_multiple_of(system::page_size());
    let mut room = system::map_block(bytes, system::page_size())?.cast::<MaybeUninit<T>>();
    // SAFETY: the block is new, aligned and large enough, and nothing unmaps it.
    Some(unsafe { room.as_mut() })
}

/// The heap of a choice in a mapping of its own, with what the choice puts around its engine. `None` without
/// memory, and for engines that cannot serve malloc.
#[cold]
#[inline(never)]
pub(crate) fn placed(
    pages: &'static Pages<Native>,
    first: u32,
    choice: &Choice,
) -> Option<&'static dyn Serves> {
    match choice.preset {
        Preset::Slub(policy) if choice.wrap.hardened => {
            Some(hardened(mapped()?, pages, first, &slub_here(policy, false)))
        }
        _ if choice.wrap.encoded => wrapped::<Encoded>(pages, first, choice),
        _ if choice.wrap.is_on_anywhere() => wrapped::<Native>(pages, first, choice),
        Preset::Slub(policy) => {
            Some(make_in::<Slub<Native>, Native>(mapped()?, pages, first, &slub_here(policy, false)))
        }
        Preset::Slqb(policy) => Some(make_in::<Slqb<Native>, Native>(mapped()?, pages, first, &policy)),
        Preset::Slab(policy) => Some(make_in::<SlabEngine<Native>, Native>(mapped()?, pages, first, &policy)),
        Preset::Slob(_) | Preset::Registered(_) => None,
    }
}

/// Makes the hardened heap in its room.
fn hardened(
    room: &'static mut MaybeUninit<Hardened>,
    pages: &'static Pages<Native>,
    first: u32,
    policy: &SlubPolicy,
) -> &'static Hardened {
    // SAFETY: the room is borrowed, so the fields are this function's to write; both are written before the
    // heap is referred to. A field is its `MaybeUninit`.
    unsafe {
        let hardened = room.as_mut_ptr();
        (&raw mut (*hardened).guards).write(Guards::new(first));
        let inside: *mut MaybeUninit<SlubHeap> = (&raw mut (*hardened).heap).cast();
        make_in(&mut *inside, pages, first, policy);
        &*hardened
    }
}

/// A heap whose engine has something around it.
fn wrapped<W: Over>(pages: &'static Pages<Native>, first: u32, choice: &Choice) -> Option<&'static dyn Serves>
where
    Wrapped<Slub<W>, W>: Sync,
    Wrapped<Slqb<W>, W>: Sync,
    Wrapped<SlabEngine<W>, W>: Sync,
{
    match choice.preset {
        Preset::Slub(policy) => {
            let policy = around(slub_here(policy, choice.wrap.encoded), choice);
            Some(make_in::<Wrapped<Slub<W>, W>, W>(mapped()?, pages, first, &policy))
        }
        Preset::Slqb(policy) => {
            let policy = around(policy, choice);
            Some(make_in::<Wrapped<Slqb<W>, W>, W>(mapped()?, pages, first, &policy))
        }
        Preset::Slab(policy) => {
            let policy = around(policy, choice);
            Some(make_in::<Wrapped<SlabEngine<W>, W>, W>(mapped()?, pages, first, &policy))
        }
        Preset::Slob(_) | Preset::Registered(_) => None,
    }
}

/// A thread does without a slot for so many of its slow paths. Each takes some 800 instructions, so that is
/// as long as it takes to start a few threads.
const SLOTLESS: u32 = 256;

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

/// Starts the process's heap, if no thread has allocated yet.
pub(crate) fn start_now() {
    if let Which::None = HEAP.get() {
        HEAP.start();
    }
}

/// Metadata memory from the process's heap, for tenants without classes of their own.
pub struct FromHeap;

impl<W: Over> Metadata<W> for FromHeap {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Object> {
        metadata()?.alloc(bytes, gfp)
    }
    fn free(&self, object: Object) {
        // The heap that allocated it does not end before the process.
        if let Some(heap) = metadata() {
            heap.free(object);
        }
    }
}

/// The heap as metadata memory of others; `None` before it started.
fn metadata() -> Option<&'static dyn Metadata<Native>> {
    match HEAP.get() {
        Which::Slub(heap) => Some(heap),
        Which::Other(heap) => Some(heap.metadata()),
        Which::None => None,
    }
}

extern "C" fn print_stats() {
    let settings = env::settings();
    shared::print_stats_to(&settings.choice, settings);
}
