//! A heap of one engine: the classes, on the process's pages.

use crate::caches::Caches;
use crate::classes;
use crate::freed_blocks;
use crate::kept_blocks;
use crate::mappings;
use crate::probes;
use crate::report;
use crate::shared::note::Note;
use crate::shared::{self, EachCache, METADATA_BYTES, Named, Tenant};
use crate::world::{Native, Over};
use crate::zeroing;
use slablab_native::report::misuse;
use slablab_native::{Location, Object, stack, system};
use slablab_pages::Pages;
use slablab_platform::{CpuId, Frames, Gfp, Hooks, NO_CACHE, Pfn, Topology, Work};
use slablab_slabs::{Backing, CacheId, Front, Idle, Metadata, Misuse, Usage};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

/// A heap: one cache of engine `E` per size class, in world `W`. `C`: what each process writes comes first.
#[repr(C)]
pub struct Heap<E: Front<W>, W: Over = Native> {
    pub(crate) pages: &'static Pages<Native>,
    pub(crate) common: E::Common,
    /// The first class's cache number.
    pub(crate) first: u32,
    pub(crate) policy: E::Policy,
    pub(crate) classes: Caches<E>,
}

/// The owner number of a large block. The owner number of a slab is its cache's number.
const LARGE: u32 = NO_CACHE;
/// The owner number of a large block whose free is deferred.
const DEFERRED: u32 = LARGE + 1;

impl<W: Over, E: Front<W>> Heap<E, W> {
    /// Makes a heap that has no memory yet. Its caches have the numbers from `first` on.
    pub(crate) fn new(pages: &'static Pages<Native>, first: u32, policy: &E::Policy) -> Self {
        let (common, policy) = (E::Common::default(), policy.clone());
        let heap = Heap { pages, common, first, policy, classes: Caches::new() };
        heap.make_all();
        heap
    }

    /// Makes the caches of all classes, for a heap whose slots have no fixed places: later, other caches may
    /// have taken all of the areas.
    pub(crate) fn make_all(&self) {
        for class in 0..classes::COUNT {
            self.class(class);
        }
    }

    /// Makes the cache of a class.
    fn new_class(&self, class: usize) -> E {
        const { assert!(E::KNOWS_OWNERS, "a free has the address alone") };
        const { assert!(classes::COUNT <= shared::NUMBERS as usize) };
        let mut cache = E::create(CacheId(self.first + class as u32), &classes::spec(class), &self.policy);
        cache.tell(report::print);
        cache
    }

    /// The cache of the slab at `location`. `None` if it is not a slab of this heap.
    #[inline(always)]
    fn class_of(&self, location: Location) -> Option<&E> {
        self.classes.get(location.cache.wrapping_sub(self.first) as usize)
    }

    /// The class number and the cache of the slab at `location`. `None` if it is a large block, or not of
    /// this heap.
    pub(crate) fn class_at(&self, location: Location) -> Option<(usize, &E)> {
        let number = location.cache.wrapping_sub(self.first) as usize;
        Some((number, self.classes.get(number)?))
    }

    /// The cache of a class; it is made if no request needed it yet. The caller has a pass, or an object of
    /// the class.
    #[inline(always)]
    pub(crate) fn class(&self, class: usize) -> &E {
        match self.classes.get(class) {
            Some(cache) => cache,
            None => self.classes.make(class, || self.new_class(class)),
        }
    }

    /// The cache of a class, if a request needed it before. For callers who may take no lock.
    #[inline(always)]
    pub(crate) fn made(&self, class: usize) -> Option<&E> {
        self.classes.get(class)
    }

    /// The first class's cache number.
    #[inline(always)]
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// Whether this is the process's own heap.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        shared::is_own(self.first / shared::NUMBERS)
    }

    pub(crate) fn backing(&self) -> Backing<'_, W, E::Common> {
        // Only debugging around the engine stores the call site.
        let site = if E::GUARDS { stack::here() } else { 0 };
        Backing { metadata: Some(self), site, ..Backing::new(self.pages, &self.common) }
    }

    /// Cold rung of an allocation: the engine's `alloc_sized`, for a request of `bytes` bytes of a class.
    #[cold]
    pub(crate) fn alloc_cold_engine(&self, class: usize, bytes: usize) -> Option<Object> {
        // At least a word: a deferred free links the object by its first word.
        let bytes = bytes.max(size_of::<usize>()) as u32;
        let alloc = || self.class(class).alloc_sized(&self.backing(), bytes, Gfp::KERNEL, None);
        alloc().or_else(|| {
            shared::empty_caches();
            alloc()
        })
    }

    /// The size to request for `bytes` bytes aligned to `align`, a power of two. `None` if no class has such
    /// objects: the request needs page frames. Slabs of SLAB and SLQB start at a colour, and a red zone moves
    /// the object behind it, so only the engine knows how its objects are aligned.
    #[inline]
    pub(crate) fn aligned(&self, bytes: usize, align: usize) -> Option<usize> {
        let sized = classes::aligned(bytes, align)?;
        let class = classes::of(sized);
        let make = || system::keeping_errno(|| Native::pass().map(|_pass| self.class(class)));
        let cache = self.made(class).or_else(make)?;
        (cache.object_align() as usize >= align).then_some(sized)
    }

    /// Cold rung of a free: the engine's `free`, or the free of a large block or a mapping. Does upkeep
    /// first. Ends the process with a report if `object` is not an allocation.
    #[cold]
    pub(crate) fn free_cold_engine(&self, object: Object, location: Option<Location>) {
        if location.is_none() {
            probes::freed(object.addr());
            if mappings::free(object.as_ptr()) {
                return;
            }
        }
        shared::upkeep();
        let Some(location) = location else {
            let in_heap = Native::pagemap(object.as_ptr()).is_some();
            if E::GUARDS && in_heap && freed_blocks::is_kept(Native::locate(object)) {
                double_free_of_block(object);
            }
            not_here("free", object.as_ptr())
        };
        match location.cache {
            LARGE => return self.free_large(object, location),
            DEFERRED => double_free_of_block(object),
            kept_blocks::FIRST if location.offset == 0 => double_free_of_block(object),
            kept_blocks::FIRST | kept_blocks::LAST => not_here("free", object.as_ptr()),
            _ => {}
        }
        let Some(class) = self.class_of(location) else {
            misuse(format_args!("free of {object:?}: an object of {}, not of malloc", Named(location.cache)))
        };
        let bytes = class.geometry().object_size;
        match class.free(&self.backing(), object) {
            Ok(()) => {}
            Err(Misuse::AlreadyFree) => misuse(format_args!("double free of {object:?} (malloc-{bytes})")),
            Err(Misuse::NotAnObject) => misuse(format_args!(
                "free of {object:?}: not the start of an object: at offset {} in a slab of malloc-{bytes}",
                location.offset
            )),
            Err(other) => misuse(format_args!("free of {object:?} (malloc-{bytes}): {other}")),
        }
    }

    /// A large block: page frames for a request above the classes, aligned to `align`. The flag is true if
    /// the block reads as zeros. Does upkeep first.
    #[cold]
    pub(crate) fn alloc_large(&self, bytes: usize, align: usize) -> Option<(Object, bool)> {
        shared::before_block(bytes);
        self.take_large(bytes, align)
    }

    /// With `debug=` and the letter P: keeps a freed block, without access, for a while. `false`: the caller
    /// gives the block back.
    fn keep_freed(&self, slab: Pfn) -> bool {
        E::GUARDS
            && shared::choice().is_some_and(|choice| choice.wrap.letters.poison)
            && freed_blocks::keep(self.pages, slab)
    }

    /// As [`Heap::alloc_large`], without upkeep.
    fn take_large(&self, bytes: usize, align: usize) -> Option<(Object, bool)> {
        let shift = Native::page_shift();
        let frames = u32::try_from(bytes.max(1).checked_add((1 << shift) - 1)? >> shift).ok()?;
        let align_order = (align >> shift).max(1).ilog2() as u8;
        let node = Native::cpu_memory_node(Native::cpu());
        let take = || {
            let taken = self.pages.alloc_exact(Gfp::KERNEL, frames, align_order, node)?;
            kept_blocks::allow_huge_pages(taken.0, frames);
            Some(taken)
        };
        let kept = kept_blocks::take(self.pages, frames, align_order, node).map(|pfn| (pfn, false));
        let (pfn, untouched) = kept.or_else(take)?;
        shared::note_used(self.pages);
        Native::map_slab(pfn, 0, 0, LARGE);
        Some((Native::address(pfn, 0), untouched))
    }

    /// Resizes the block at `location` in place, to a size above the classes. `false` if that cannot be done.
    #[cold]
    pub(crate) fn resize_large(&self, location: Location, bytes: usize) -> bool {
        let shift = Native::page_shift();
        let frames = bytes.div_ceil(1 << shift);
        if zeroing::is_on()
            || location.cache != LARGE
            || location.offset != 0
            || bytes > Native::largest_block()
        {
            return false;
        }
        let resized = kept_blocks::resize(self.pages, location.slab, frames as u32);
        shared::note_used(self.pages);
        shared::give_back(shared::end_epoch());
        resized
    }

    fn free_large(&self, object: Object, location: Location) {
        if location.offset != 0 {
            misuse(format_args!(
                "free of {object:?}: not the start of an allocation: {} bytes into a large block",
                location.offset
            ));
        }
        probes::freed(object.addr());
        // What was free until now may have been idle; this block was not.
        let idle = shared::end_epoch();
        if kept_blocks::is_large(location.slab) {
            shared::note_block_free();
        }
        Native::unmap_slab(location.slab, 0);
        zeroing::forget(location.slab);
        if !self.keep_freed(location.slab) {
            kept_blocks::keep(location.slab);
        }
        shared::give_back(idle);
        shared::after_free();
    }

    /// Frees a large block at once, without upkeep.
    fn put_large(&self, location: Location) {
        Native::unmap_slab(location.slab, 0);
        zeroing::forget(location.slab);
        self.pages.free_exact(location.slab);
    }

    /// Marks the large block that starts at `object` as one whose free is deferred, so that a second free of
    /// it is reported. Takes no lock. Anything else than a live block ends the process with a report.
    pub(crate) fn defer_block(&self, object: Object, location: Location) {
        if location.cache == DEFERRED {
            double_free_of_block(object);
        }
        self.live_block("free", object, location);
        Native::map_slab(location.slab, 0, 0, DEFERRED);
    }

    /// Frees an object or large block whose free was deferred.
    #[cold]
    pub(crate) fn free_deferred_one(&self, object: Object) {
        match Native::location(object.as_ptr()) {
            Some(location) if location.cache == DEFERRED => self.free_large(object, location),
            location => self.free_cold_engine(object, location),
        }
    }

    /// The usable bytes of the large block that starts at `object`. Anything else ends the process with a
    /// report that names `call`.
    pub(crate) fn live_block(&self, call: &str, object: Object, location: Location) -> usize {
        if location.cache == DEFERRED || location.cache == kept_blocks::FIRST && location.offset == 0 {
            misuse(format_args!("{call} of {object:?}: already freed (a large block)"));
        }
        if matches!(location.cache, kept_blocks::FIRST | kept_blocks::LAST) {
            not_here(call, object.as_ptr());
        }
        if location.cache != LARGE {
            misuse(format_args!(
                "{call} of {object:?}: an object of {}, not of malloc",
                Named(location.cache)
            ));
        }
        if location.offset != 0 {
            misuse(format_args!(
                "{call} of {object:?}: not the start of an allocation: {} bytes into a large block",
                location.offset
            ));
        }
        block_bytes(location) as usize
    }
}

impl<W: Over, E: Front<W> + Sync> Tenant for Heap<E, W>
where
    E::Common: Sync,
{
    fn work(&self, cpu: CpuId, work: Work) {
        if let Some(class) = self.made(work.cache.wrapping_sub(self.first) as usize) {
            class.work(&self.backing(), cpu, work);
        }
    }
    fn thread_exit(&self, cpu: CpuId) {
        self.classes.iter().for_each(|class| class.cpu_down(&self.backing(), cpu));
    }
    fn shrink(&self, turn: u32, idle: Idle) -> bool {
        self.made(turn as usize % classes::COUNT)
            .is_some_and(|class| class.shrink_idle(&self.backing(), idle))
    }
    fn shrink_all(&self) {
        if E::GUARDS {
            freed_blocks::release_all(self.pages);
        }
        for class in self.classes.iter() {
            class.shrink(&self.backing());
        }
    }
    fn barn_bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.barn_bytes()).sum()
    }
    fn each_usage(&self, each: &mut dyn FnMut(&Usage, u32)) {
        self.classes.iter().for_each(|class| each(&class.usage(), class.geometry().object_size));
    }
    fn each_cache(&self, each: &mut EachCache<'_>) {
        for class in (0..classes::COUNT).map(|class| self.class(class)) {
            let geometry = class.geometry();
            each(format_args!("malloc-{}", geometry.object_size), &class.usage(), geometry);
        }
    }
    fn note(&self) -> Note {
        // The first class's place is that of all. Classes that are not made are zeros, which say so.
        Note::of::<W, E>(self.class(0), classes::COUNT, "")
    }
    fn write_name(&self, cache: u32, to: &mut dyn fmt::Write) -> fmt::Result {
        match self.made(cache.wrapping_sub(self.first) as usize) {
            Some(class) => write!(to, "malloc-{}", class.geometry().object_size),
            None => to.write_str("a destroyed cache"),
        }
    }
}

/// Ends the process with a report that nothing is allocated at the address that `call` got.
#[cold]
#[inline(never)]
pub(crate) fn not_here(call: &str, at: *mut u8) -> ! {
    misuse(format_args!("{call} of {at:p}: not allocated here: outside the heap, or in an empty slab"))
}

/// Ends the process with a report that a large block was freed before.
#[cold]
#[inline(never)]
pub(crate) fn double_free_of_block(object: Object) -> ! {
    misuse(format_args!("double free of {object:?} (a large block)"))
}

/// Metadata of engines (sheaves, arrays) are objects of the size classes. To allocate and free them, the
/// classes' engines use no further metadata.
impl<V: Over, W: Over, E: Front<W>> Metadata<V> for Heap<E, W> {
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<Object> {
        if bytes as usize > classes::MAX {
            let (object, _) = self.take_large(bytes as usize, 1)?;
            METADATA_BYTES.fetch_add(block_bytes(Native::location(object.as_ptr())?), Relaxed);
            return Some(object);
        }
        let class = classes::of(bytes as usize);
        let object = self.class(class).alloc(&Backing::new(self.pages, &self.common), gfp, None)?;
        METADATA_BYTES.fetch_add(u64::from(classes::size(class)), Relaxed);
        Some(object)
    }
    fn free(&self, object: Object) {
        let Some(location) = Native::location(object.as_ptr()) else {
            damaged_metadata(object, None, format_args!("outside the heap, or in an empty slab"))
        };
        if location.cache == LARGE {
            METADATA_BYTES.fetch_sub(block_bytes(location), Relaxed);
            return self.put_large(location);
        }
        let Some((number, class)) = self.class_at(location) else {
            damaged_metadata(object, Some(location.cache), format_args!("not an object of malloc"))
        };
        METADATA_BYTES.fetch_sub(u64::from(classes::size(number)), Relaxed);
        zeroing::forget_object(object, classes::size(number));
        if let Err(misuse) = class.free(&Backing::new(self.pages, &self.common), object) {
            damaged_metadata(object, Some(location.cache), format_args!("{misuse}"))
        }
    }
}

/// Ends the process with a report: an engine freed metadata at an address where none is, so the engine's note
/// of that address was overwritten.
#[cold]
#[inline(never)]
fn damaged_metadata(object: Object, cache: Option<u32>, why: fmt::Arguments<'_>) -> ! {
    Native::broken(cache, format_args!("free of metadata {object:?}: {why} (overwritten?)"))
}

/// Bytes of the large block at `location`.
fn block_bytes(location: Location) -> u64 {
    u64::from(Pages::<Native>::exact_frames(location.slab)) << Native::page_shift()
}
