//! A cache of objects that are only bytes: one cache of one engine, on the process's page allocator.
//!
//! The typed cache ([`crate::ObjectCache`]) and the one that checks its callers ([`crate::checked`]) use this
//! one. Nothing here reads or writes an object.

use crate::deferred_drop::{self, DeferredDrops};
use crate::engine::{self, AnyEngine, WrappedEngine, with};
use crate::limit::Counter;
use crate::shrinker;
pub use crate::spec::{End, LARGEST, LARGEST_ALIGN, Spec};
use crate::spec::{WORD, state_offset};
use crate::{AllocError, CreateError, Stats};
use slablab_malloc::shared::note::Note;
use slablab_malloc::shared::{self, EachCache, Registration, SignalFrees, Tenant};
use slablab_malloc::world::{Native, Process};
use slablab_malloc::{FromHeap, Over};
use slablab_native::{Object, PagemapEntry, SlotArrays, stack};
use slablab_pages::Pages;
use slablab_platform::{CpuId, Gfp, Pfn, Topology, Work, WorkKind};
use slablab_slabs::preset::Choice;
use slablab_slabs::{Backing, Busy, CacheId, Engine, Front, Idle, Misuse, Usage};
use std::fmt;
use std::sync::Arc;

/// A cache of untyped objects.
pub struct Cache {
    /// Shared with the process's registry, until that releases or leaks the registration.
    inner: Arc<Inner>,
    registration: Option<Registration>,
    /// The arrays that serve allocations: of SLUB, without a limit. Else none.
    allocs: SlotArrays<Process>,
    /// The arrays that take objects of any slab: likewise, with one node. Else none.
    frees: SlotArrays<Process>,
}

struct Inner {
    engine: AnyEngine,
    limited: bool,
    limit: Counter,
    number: CacheId,
    spec: Requested,
    deferred_drops: DeferredDrops,
    signal_frees: SignalFrees,
    pages: &'static Pages<Native>,
}

/// The requested options.
struct Requested {
    name: Box<str>,
    size: u32,
    align: u32,
    end: Option<End>,
    kept: bool,
    engine: Choice,
}

/// Upkeep shrinks a cache once in `TURNS` turns.
const TURNS: u32 = slablab_malloc::classes::COUNT as u32;

/// Bytes that a slot must have room for: this cache's, and the page allocator's for each of its nodes.
const SLOT_BYTES: usize = 8192;

impl Cache {
    /// Creates a cache. It has no slabs yet.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create(spec: &Spec<'_>) -> Result<Cache, CreateError> {
        if spec.size == 0 || spec.size > LARGEST {
            return Err(CreateError::Size(spec.size));
        }
        if !spec.align.is_power_of_two() || spec.align > LARGEST_ALIGN {
            return Err(CreateError::Align(spec.align));
        }
        slablab_malloc::api::start_now();
        let (Some(pages), Some(own)) = (shared::pages(), shared::choice()) else {
            return Err(CreateError::NoMemory);
        };
        let engine = engine::choice(spec, own)?;
        if !Native::has_room(SLOT_BYTES) {
            return Err(CreateError::TooMany);
        }
        let mut registration = shared::register().ok_or(CreateError::TooMany)?;
        let number = CacheId(registration.first());
        let cache = AnyEngine::create(number, spec, &engine);
        let limit = Counter::new(spec.limit, with!(&cache, cache => cache.geometry().size));
        let inner = Arc::new(Inner {
            limited: limit.most().is_some(),
            limit,
            engine: cache,
            number,
            spec: Requested {
                name: spec.name.into(),
                size: spec.size as u32,
                align: spec.align as u32,
                end: spec.end.clone(),
                kept: spec.kept,
                engine,
            },
            deferred_drops: DeferredDrops::default(),
            signal_frees: SignalFrees::default(),
            pages,
        });
        shared::publish(&mut registration, inner.clone());
        let (allocs, takes_any) = match &inner.engine {
            AnyEngine::Slub(cache) if !inner.limited => (cache.arrays(), cache.takes_from_anywhere()),
            _ => (SlotArrays::NONE, false),
        };
        let frees = if takes_any { allocs } else { SlotArrays::NONE };
        Ok(Cache { inner, registration: Some(registration), allocs, frees })
    }

    /// Allocates an object.
    ///
    /// # Errors
    /// There is no memory, or the cache's limit is reached.
    #[inline(always)]
    pub fn alloc(&self) -> Result<Object, AllocError> {
        match self.alloc_fast() {
            Some(object) => Ok(object),
            None => self.inner.alloc_slow(),
        }
    }

    /// Allocates an object from this thread's array. `None` means "call [`Cache::alloc`]", not "out of
    /// memory".
    #[inline(always)]
    pub fn alloc_fast(&self) -> Option<Object> {
        self.allocs.pop()
    }

    /// Frees an object of this cache.
    #[inline(always)]
    pub fn free(&self, object: Object) {
        if !self.frees.push(object) {
            self.inner.free_slow(object);
        }
    }

    /// The object of this cache that starts at the address of a pagemap entry. `None` if none starts there,
    /// or if that cannot be found out fast.
    #[inline(always)]
    pub fn starts_at_fast(&self, entry: PagemapEntry) -> Option<Object> {
        let (slab, offset) = entry.place();
        match &self.inner.engine {
            AnyEngine::Slub(cache)
                if entry.cache() == self.inner.number.0 && cache.starts_at(slab, offset) =>
            {
                Some(entry.object())
            }
            _ => None,
        }
    }

    /// The object of this cache that the address of a pagemap entry is in, allocated or not, and its slab.
    pub fn find(&self, entry: PagemapEntry) -> Option<(Object, Pfn)> {
        if entry.cache() != self.inner.number.0 {
            return None;
        }
        let ((slab, offset), object) = (entry.place(), entry.object());
        let starts = with!(&self.inner.engine, cache => cache.starts_at(slab, offset));
        (starts || self.owns(object).is_ok()).then_some((object, slab))
    }

    /// Frees an object of this cache in memory of this thread's node into the thread's slot. `false` if the
    /// slot refuses it.
    #[inline(always)]
    pub fn free_fast(&self, object: Object) -> bool {
        self.allocs.push(object)
    }

    /// Frees the object at an address in `slab`.
    ///
    /// # Errors
    /// No object of this cache starts there. The error says what the address is.
    pub fn try_free(&self, object: Object, slab: Pfn) -> Result<(), Misuse> {
        let inner = &*self.inner;
        if !inner.limited && with!(&inner.engine, cache => cache.free_slow_slot(object, slab)) {
            return Ok(());
        }
        inner.try_free(object)
    }

    /// Checks that an object of this cache, allocated or not, starts at an address of the heap.
    ///
    /// # Errors
    /// There is none. The error says what the address is.
    pub fn owns(&self, object: Object) -> Result<(), Misuse> {
        with!(&self.inner.engine, cache => cache.owns(object))
    }

    /// Allocates an object for each place of `out`.
    ///
    /// # Errors
    /// As [`Cache::alloc`]; then no object was taken.
    pub fn alloc_bulk(&self, out: &mut [Option<Object>]) -> Result<(), AllocError> {
        self.inner.alloc_bulk(out)
    }

    /// Frees objects of this cache.
    pub fn free_bulk(&self, objects: &[Object]) {
        self.inner.free_bulk(objects);
    }

    /// Frees every slab without a live object, as far as this thread can reach. Returns the bytes of those
    /// slabs.
    pub fn shrink(&self) -> u64 {
        self.inner.end_signal_frees();
        let before = self.usage().frames;
        with!(&self.inner.engine, cache => cache.shrink(&self.inner.backing(cache)));
        self.inner.end_works();
        before.saturating_sub(self.usage().frames) << Native::page_shift()
    }

    /// Frees every slab and destroys the cache. It must not be called again.
    ///
    /// # Errors
    /// Objects are still allocated. They stay, and so does the cache.
    pub fn destroy(&mut self) -> Result<(), Busy> {
        let Some(mut registration) = self.registration.take() else { return Ok(()) };
        self.inner.end_signal_frees();
        shared::withdraw(&mut registration);
        let inner = &*self.inner;
        let done = with!(&inner.engine, cache => cache.destroy(&inner.backing(cache)));
        shared::end_works(|| {
            inner.end_works();
            while done.is_ok() && Native::work_of(inner.number.0, WorkKind::Reap).is_some() {}
        });
        match done {
            Ok(()) => shared::release(registration),
            Err(_) => {
                shared::publish(&mut registration, self.inner.clone());
                self.registration = Some(registration);
            }
        }
        done
    }

    /// The cache's name.
    pub fn name(&self) -> &str {
        &self.inner.spec.name
    }

    /// The cache's number, which is in the descriptors of its slabs' page frames.
    #[inline(always)]
    pub fn number(&self) -> CacheId {
        self.inner.number
    }

    /// Requested bytes of an object.
    pub fn size(&self) -> usize {
        self.inner.spec.size as usize
    }

    /// Bytes from an object's start to the word of state behind it, in a cache whose contents survive a free.
    pub fn state_offset(&self) -> usize {
        state_offset(self.size())
    }

    /// Whether its engine is wrapped. Then the wrapper finds double frees.
    pub fn is_wrapped(&self) -> bool {
        self.inner.engine.is_wrapped()
    }

    /// The offset at which the owner of an object may keep a link of its own: that of a free object's link,
    /// if it is inside of the object.
    pub(crate) fn link_offset(&self) -> u32 {
        self.inner.link_offset()
    }

    /// The cache's statistics.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    pub(crate) fn usage(&self) -> Usage {
        with!(&self.inner.engine, cache => cache.usage())
    }
}

/// The slab that an object is in.
#[inline(always)]
fn slab_of(object: Object) -> Option<Pfn> {
    Native::location(object.as_ptr()).map(|location| location.slab)
}

impl Drop for Cache {
    fn drop(&mut self) {
        if self.destroy().is_ok() {
            return;
        }
        // Objects were forgotten. Their slabs stay and carry the cache's number, so it is not released.
        if let Some(registration) = &mut self.registration {
            shared::leak(registration);
        }
    }
}

impl Inner {
    fn backing<W: Over, E: Engine<W, Common = ()>>(&self, _cache: &E) -> Backing<'_, W> {
        let site = if self.engine.is_wrapped() { stack::here() } else { 0 };
        Backing { metadata: Some(&FromHeap), site, ..Backing::pages(self.pages) }
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&self) -> Result<Object, AllocError> {
        if !self.limited
            && let Some(object) = with!(&self.engine, cache => cache.alloc_slow_slot())
        {
            return Ok(object);
        }
        self.upkeep()?;
        self.reserve(1)?;
        let alloc = || with!(&self.engine, cache => cache.alloc(&self.backing(cache), Gfp::KERNEL, None));
        alloc().or_else(|| self.short_of(1).then(alloc).flatten()).ok_or_else(|| {
            self.limit.give(1);
            AllocError::NoMemory
        })
    }

    fn alloc_bulk(&self, out: &mut [Option<Object>]) -> Result<(), AllocError> {
        self.upkeep()?;
        let count = out.len() as u64;
        self.reserve(count)?;
        let alloc = |out: &mut [Option<Object>]| with!(&self.engine, cache => cache.alloc_bulk(&self.backing(cache), Gfp::KERNEL, out));
        let mut got = alloc(out);
        if got < out.len() && self.short_of(count - got as u64) {
            got += alloc(&mut out[got..]);
        }
        if got == out.len() {
            return Ok(());
        }
        for object in &mut out[..got] {
            let object = object.take().expect("allocated above");
            with!(&self.engine, cache => cache.free(&self.backing(cache), object)).expect("allocated above");
        }
        self.limit.give(count);
        Err(AllocError::NoMemory)
    }

    /// Counts `count` more objects. At the limit this cache's shrinkers are called first.
    fn reserve(&self, count: u64) -> Result<(), AllocError> {
        let taken = self.limit.take(count) || {
            shrinker::ask(Some(self.number), count);
            self.limit.take(count)
        };
        if taken { Ok(()) } else { Err(AllocError::Limit) }
    }

    /// Calls the shrinkers after an allocation of `count` objects found no memory. `true` if a second try may
    /// succeed.
    fn short_of(&self, count: u64) -> bool {
        shrinker::ask(None, count);
        shared::trim();
        true
    }

    #[cold]
    #[inline(never)]
    fn free_slow(&self, object: Object) {
        if !self.limited
            && let Some(slab) = slab_of(object)
            && with!(&self.engine, cache => cache.free_slow_slot(object, slab))
        {
            return;
        }
        if let Err(misuse) = self.try_free(object) {
            self.report(object, misuse);
        }
    }

    fn report(&self, object: Object, misuse: Misuse) {
        shared::misuse(format_args!("{}: free of {object:?}: {misuse}", self.spec.name));
    }

    fn try_free(&self, object: Object) -> Result<(), Misuse> {
        if self.upkeep().is_err() {
            with!(&self.engine, cache => cache.owns(object))?;
            self.signal_frees.push::<Native>(object, self.link_offset());
            return Ok(());
        }
        self.free_now(object)
    }

    fn free_now(&self, object: Object) -> Result<(), Misuse> {
        with!(&self.engine, cache => cache.free(&self.backing(cache), object))?;
        self.limit.give(1);
        Ok(())
    }

    fn free_bulk(&self, objects: &[Object]) {
        if self.upkeep().is_err() {
            return objects
                .iter()
                .for_each(|object| self.signal_frees.push::<Native>(*object, self.link_offset()));
        }
        if let Err(misuse) = with!(&self.engine, cache => cache.free_bulk(&self.backing(cache), objects)) {
            shared::misuse(format_args!(
                "{}: free of {} objects: one is {misuse}",
                self.spec.name,
                objects.len()
            ));
        }
        self.limit.give(objects.len() as u64);
    }

    /// The upkeep of a slow path: the process's upkeep, frees of signal handlers, and deferred drops of this
    /// cache.
    ///
    /// # Errors
    /// This is a signal handler that interrupted an allocation or a free: no lock may be taken.
    fn upkeep(&self) -> Result<(), AllocError> {
        if Native::interrupted() {
            return Err(AllocError::Interrupted);
        }
        shared::upkeep();
        self.end_signal_frees();
        self.drop_deferred();
        Ok(())
    }

    /// Frees the objects that signal handlers freed while they interrupted an allocation or a free.
    fn end_signal_frees(&self) {
        for object in self.signal_frees.take::<Native>(self.link_offset()) {
            self.free_now(object).unwrap_or_else(|misuse| self.report(object, misuse));
        }
    }

    fn link_offset(&self) -> u32 {
        match &self.engine {
            engine if !engine.is_wrapped() => with!(engine, cache => cache.geometry().link_offset),
            _ if self.spec.kept => (state_offset(self.spec.size as usize) + WORD) as u32,
            _ => 0,
        }
    }

    /// Drops the values in slabs of the list of deferred drops, and frees the slabs.
    fn drop_deferred(&self) {
        let Some(end) = &self.spec.end else { return };
        while let Some(slab) = self.deferred_drops.pop() {
            let geometry = with!(&self.engine, cache => *cache.geometry());
            deferred_drop::objects(slab, self.engine.races(), &geometry, self.engine.link())
                .for_each(|object| end.call(object));
            let work = Work { kind: WorkKind::FreeSlab, cache: self.number.0, argument: slab.0 as u64 };
            with!(&self.engine, cache => cache.work(&self.backing(cache), Native::cpu(), work));
        }
    }

    /// Runs the engine's deferred work for slabs and sheaves now.
    fn end_works(&self) {
        for kind in [WorkKind::FreeSheaf, WorkKind::FreeSlab] {
            while let Some((cpu, work)) = Native::work_of(self.number.0, kind) {
                self.work(cpu, work);
            }
        }
        self.drop_deferred();
    }

    fn stats(&self) -> Stats {
        let usage = with!(&self.engine, cache => cache.usage());
        let geometry = with!(&self.engine, cache => *cache.geometry());
        Stats {
            name: self.spec.name.to_string(),
            engine: self.spec.engine.to_string(),
            object_bytes: self.spec.size as u64,
            align_bytes: self.spec.align as u64,
            spaced_bytes: geometry.size as u64,
            objects_per_slab: geometry.objects as u64,
            slab_bytes: (1 << Native::page_shift()) << geometry.order,
            slabs: usage.slabs,
            bytes: usage.frames << Native::page_shift(),
            objects: usage.total_objects,
            active: self.limit.live().unwrap_or_else(|| usage.live_objects()),
            limit: self.limit.most(),
            found: with!(&self.engine, cache => cache.reports().total),
        }
    }
}

impl Tenant for Inner {
    fn work(&self, cpu: CpuId, work: Work) {
        if work.kind == WorkKind::FreeSlab && self.spec.end.is_some() {
            return self.deferred_drops.push(Pfn(work.argument as u32));
        }
        with!(&self.engine, cache => cache.work(&self.backing(cache), cpu, work));
    }
    fn thread_exit(&self, cpu: CpuId) {
        with!(&self.engine, cache => cache.cpu_down(&self.backing(cache), cpu));
    }
    fn shrink(&self, turn: u32, idle: Idle) -> bool {
        // There are many caches: each takes its turn.
        turn % TURNS == self.number.0 / shared::NUMBERS % TURNS
            && with!(&self.engine, cache => cache.shrink_idle(&self.backing(cache), idle))
    }
    fn shrink_all(&self) {
        with!(&self.engine, cache => cache.shrink(&self.backing(cache)));
    }
    fn barn_bytes(&self) -> u64 {
        with!(&self.engine, cache => cache.barn_bytes())
    }
    fn each_usage(&self, each: &mut dyn FnMut(&Usage, u32)) {
        with!(&self.engine, cache => each(&cache.usage(), cache.geometry().object_size));
    }
    fn each_cache(&self, each: &mut EachCache<'_>) {
        with!(&self.engine, cache => {
            each(format_args!("{}", self.spec.name), &cache.usage(), cache.geometry());
        });
    }
    fn note(&self) -> Note {
        with!(&self.engine, cache => Note::of(cache, 1, &self.spec.name))
    }
    fn write_name(&self, _cache: u32, to: &mut dyn fmt::Write) -> fmt::Result {
        to.write_str(&self.spec.name)
    }
}
