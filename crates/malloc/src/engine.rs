//! The process's heap: of which engine it is, and how it starts. `unsafe`: refers to statics that one thread
//! wrote, and to a mapping in which this file makes a heap.
//!
//! The environment chooses the engine. [`OnceHeap`] has room for a heap of each engine; [`OnceHeap::get`]
//! says which is there. A heap with something around its engine is in a mapping of its own
//! ([`placed`]), so that the others pay nothing for it.

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
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::*};

type SlubHeap = Heap<Slub<Native>>;

/// The first cache number of a SLUB heap with nothing around it: a constant, so that a fast free compares
/// with it.
const FIRST: u32 = shared::OWN * shared::NUMBERS;

const NONE: u8 = 0;
const STARTING: u8 = 1;
const IS_SLUB: u8 = 2;
const IS_SLQB: u8 = 3;
const IS_SLAB: u8 = 4;
const IS_WRAPPED: u8 = 5;
const IS_HARDENED: u8 = 6;

// The fast paths turn a class's number into its cache's address by one shift. The caches have 256 bytes.
const _: () = assert!(size_of::<Slub<Native>>().is_power_of_two());
// Its slot's address is known from the number alone: the places of the lowest numbers are `slub`'s.
const _: () = assert!(FIRST == 0 && classes::COUNT <= Native::FIXED_CACHES);

/// Room for one heap of each engine.
///
/// Invariant: a room is written once, by the thread that changed `state` from `NONE` to `STARTING`, before
/// that thread stores the room's value in `state`, by a Release, and before the heap makes its first slab.
/// Nothing writes a room later. So a thread that loaded such a value with Acquire may refer to the room.
pub(crate) struct OnceHeap {
    state: AtomicU8,
    slub: UnsafeCell<MaybeUninit<SlubHeap>>,
    slqb: UnsafeCell<MaybeUninit<Heap<Slqb<Native>>>>,
    slab: UnsafeCell<MaybeUninit<Heap<SlabEngine<Native>>>>,
    /// The hardened heap is in a mapping of its own.
    hardened: UnsafeCell<MaybeUninit<&'static Hardened>>,
}

// SAFETY: the invariant of `OnceHeap`: no thread refers to a room before it is written for good, and heaps
// are `Sync`.
unsafe impl Sync for OnceHeap {}

/// The process's heap.
pub(crate) static HEAP: OnceHeap = OnceHeap {
    state: AtomicU8::new(NONE),
    slub: UnsafeCell::new(MaybeUninit::uninit()),
    slqb: UnsafeCell::new(MaybeUninit::uninit()),
    slab: UnsafeCell::new(MaybeUninit::uninit()),
    hardened: UnsafeCell::new(MaybeUninit::uninit()),
};

/// The heap that a process has.
pub(crate) enum Which {
    Slub(&'static SlubHeap),
    Slqb(&'static Heap<Slqb<Native>>),
    Slab(&'static Heap<SlabEngine<Native>>),
    /// SLUB with the hardened profile.
    Hardened(&'static Hardened),
    /// Something is around the engine.
    Wrapped(&'static dyn Serves),
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
                IS_SLQB => Which::Slqb(Self::room(&self.slqb)),
                IS_SLAB => Which::Slab(Self::room(&self.slab)),
                IS_HARDENED => Which::Hardened((*self.hardened.get()).assume_init()),
                IS_WRAPPED => Which::Wrapped(wrapped_heap()),
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
        self.push_marked(&entry, slots, fast::mark_free_fixed(&entry, || self.secret_of_slab()))
    }

    /// [`OnceHeap::free_fast`] for an object whose caller says how many bytes it asked for.
    #[inline(always)]
    pub(crate) fn free_fast_sized(&'static self, at: &Given, bytes: usize) -> Freed {
        let Some((entry, slots)) = at.pagemap_and_slots() else { return Freed::No };
        let marked = fast::mark_free_sized(&entry, bytes, || self.secret_of_slab());
        self.push_marked(&entry, slots, marked)
    }

    /// Whether a live object of a SLUB heap with nothing around it starts at an address, and is as large as
    /// an object of `bytes` bytes would be. `false` may also mean that only a slower look can tell.
    #[inline(always)]
    pub(crate) fn is_live_of_class(&'static self, at: &Given, bytes: usize) -> bool {
        bytes <= classes::LISTED_MAX
            && at
                .pagemap()
                .is_some_and(|entry| fast::is_live_of_class(&entry, bytes, || self.secret_of_slab()))
    }

    /// Gives a live object of a SLUB heap with nothing around it another size, if both sizes are those of
    /// objects, and this thread's array has one.
    #[inline]
    pub(crate) fn resize(&'static self, at: &Given, bytes: usize) -> Resized {
        match at.pagemap() {
            Some(entry) if bytes <= classes::LISTED_MAX => {
                fast::resize(&entry, bytes, || self.secret_of_slab())
            }
            _ => Resized::No,
        }
    }

    /// The secret of the SLUB heap, for a caller that found a slab with a number of its caches.
    #[inline(always)]
    fn secret_of_slab(&'static self) -> u64 {
        // SAFETY: a slab has a cache number from `FIRST` on only after the room was written.
        unsafe { Self::room(&self.slub) }.secret
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
        let is_slub = matches!(choice.preset, Preset::Slub(_)) && !choice.wrap.is_on_anywhere();
        let mut registration = shared::register_own(is_slub);
        let first = registration.first();
        if let (true, Preset::Slub(policy)) = (choice.wrap.hardened, choice.preset) {
            let Some(heap) = placed_hardened(pages, first, policy) else {
                shared::release(registration);
                return None;
            };
            // SAFETY: the invariant of `OnceHeap`: this thread changed `state` to `STARTING`, so it alone
            // refers to the rooms.
            unsafe { (*self.hardened.get()).write(heap) };
            shared::publish_static(&mut registration, heap);
            return Some(IS_HARDENED);
        }
        if choice.wrap.is_on_anywhere() {
            let Some(heap) = placed_wrapped(pages, first, choice) else {
                shared::release(registration);
                return None;
            };
            let heap = WRAPPED.get_or_init(|| heap);
            shared::publish_static(&mut registration, heap.tenant());
            return Some(IS_WRAPPED);
        }
        // SAFETY: the invariant of `OnceHeap`: this thread changed `state` to `STARTING`, so it alone refers
        // to the rooms.
        let (heap, is): (&dyn Tenant, u8) = unsafe {
            match choice.preset {
                Preset::Slub(policy) => {
                    (make_in(&mut *self.slub.get(), pages, first, &slub_here(policy, false)), IS_SLUB)
                }
                Preset::Slqb(policy) => (make_in(&mut *self.slqb.get(), pages, first, &policy), IS_SLQB),
                Preset::Slab(policy) => (make_in(&mut *self.slab.get(), pages, first, &policy), IS_SLAB),
                Preset::Slob(_) | Preset::Registered(_) => return None,
            }
        };
        shared::publish_static(&mut registration, heap);
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
        Native::on_child(shared::forget_other_threads);
        Native::watch_forks();
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
        (&raw mut (*heap).secret).write(system::secret());
        for class in 0..classes::COUNT {
            (&raw mut (*heap).classes[class]).write(Heap::<E, W>::new_class(class, first, policy));
        }
        room.assume_init_ref()
    }
}

/// A heap in a mapping of its own, which stays.
pub(crate) fn placed<E: Front<W>, W: Over>(
    pages: &'static Pages<Native>,
    first: u32,
    policy: &E::Policy,
) -> Option<&'static Heap<E, W>> {
    let bytes = size_of::<Heap<E, W>>().next_multiple_of(system::page_size());
    let mut room = system::map_block(bytes, system::page_size())?.cast::<MaybeUninit<Heap<E, W>>>();
    // SAFETY: the block is new, aligned and large enough, and nothing unmaps it.
    Some(make_in(unsafe { room.as_mut() }, pages, first, policy))
}

/// The hardened heap, in a mapping of its own.
#[cold]
#[inline(never)]
fn placed_hardened(
    pages: &'static Pages<Native>,
    first: u32,
    policy: SlubPolicy,
) -> Option<&'static Hardened> {
    let bytes = size_of::<Hardened>().next_multiple_of(system::page_size());
    let mut room = system::map_block(bytes, system::page_size())?.cast::<MaybeUninit<Hardened>>();
    // SAFETY: the block is new, aligned and large enough, and nothing unmaps it. Both fields are written
    // before the heap is referred to. A field is its `MaybeUninit`.
    unsafe {
        let hardened = room.as_mut().as_mut_ptr();
        (&raw mut (*hardened).guards).write(Guards::new(first));
        let inside: *mut MaybeUninit<SlubHeap> = (&raw mut (*hardened).heap).cast();
        make_in(&mut *inside, pages, first, &slub_here(policy, false));
        Some(&*hardened)
    }
}

/// The process's heap, if something is around its engine.
static WRAPPED: OnceLock<&'static dyn Serves> = OnceLock::new();

/// The process's wrapped heap.
///
/// # Panics
/// If it was not made.
fn wrapped_heap() -> &'static dyn Serves {
    *WRAPPED.get().expect("the heap was made")
}

/// A heap with what the choice puts around its engine, in a mapping of its own. `None` without memory, and
/// for engines that cannot serve malloc.
#[cold]
#[inline(never)]
pub(crate) fn placed_wrapped(
    pages: &'static Pages<Native>,
    first: u32,
    choice: &Choice,
) -> Option<&'static dyn Serves> {
    if choice.wrap.encoded {
        placed_wrapped_in::<Encoded>(pages, first, choice)
    } else {
        placed_wrapped_in::<Native>(pages, first, choice)
    }
}

fn placed_wrapped_in<W: Over>(
    pages: &'static Pages<Native>,
    first: u32,
    choice: &Choice,
) -> Option<&'static dyn Serves>
where
    Wrapped<Slub<W>, W>: Sync,
    Wrapped<Slqb<W>, W>: Sync,
    Wrapped<SlabEngine<W>, W>: Sync,
{
    match choice.preset {
        Preset::Slub(policy) => {
            let policy = around(slub_here(policy, choice.wrap.encoded), choice);
            Some(placed::<Wrapped<Slub<W>, W>, W>(pages, first, &policy)?)
        }
        Preset::Slqb(policy) => {
            Some(placed::<Wrapped<Slqb<W>, W>, W>(pages, first, &around(policy, choice))?)
        }
        Preset::Slab(policy) => {
            Some(placed::<Wrapped<SlabEngine<W>, W>, W>(pages, first, &around(policy, choice))?)
        }
        Preset::Slob(_) | Preset::Registered(_) => None,
    }
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
        Which::Slqb(heap) => Some(heap),
        Which::Slab(heap) => Some(heap),
        Which::Hardened(heap) => Some(heap.metadata()),
        Which::Wrapped(heap) => Some(heap.metadata()),
        Which::None => None,
    }
}

extern "C" fn print_stats() {
    let settings = env::settings();
    shared::print_stats_to(&settings.choice, settings);
}
