//! The hot part of a cache in an area ([`crate::arrays`] reads and writes its array). `unsafe`: reaches
//! into areas.
//!
//! | word | while idle | while held, or never used |
//! |---|---|---|
//! | `list` | head shifted by 16, count + 1 in the 17 bits below (objects are aligned to words) | 0: a pop finds nothing, a push no room |
//! | `sizes`, with slots per CPU | size (32), capacity (32) | 0: likewise |
//! | `top`, `sizes`, with slots per thread | places of the array ([`crate::arrays`]) | 0: likewise |
//!
//! **Signal handlers.** A hot operation hides the thread's area while it runs: a handler that interrupts it
//! finds a refusing area.
//!
//! The fast path needs no branch for any of these: slot held, thread without a slot, signal handler running.
//! With slots per CPU every thread reads the refusing area first, and the operation that fails there is tried
//! by a restartable sequence, so slots per thread cost nothing for this second way.

use crate::area::{self, Area};
use crate::arrays::Array;
use crate::current::{self, Hidden};
use crate::fork::{Pass, Section};
use crate::hot::Hot;
use crate::object::Object;
use crate::per_cpu::{self, Places};
use crate::region::{Cache, HeapAccess, Trusted};
use crate::sequence;
use crate::slot_arrays::SlotArrays;
use crate::slot_space;
use crate::starts;
use crate::thread::{self, Claim};
use slablab_platform::{CpuId, Event, HotArray, HotList, Local, PerCpu, Shortcut, Want};
use std::cell::UnsafeCell;
use std::hint::cold_path;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*, compiler_fence};

/// For the directory: where a cache's [`Slots`] say which lines are its own, and where the parts of a slot
/// are. The engine's part is of words.
pub(crate) const OFFSET_AT: usize = offset_of!(Slots<(), u64>, cache) + Cache::OFFSET_AT;
pub(crate) const LIST_AT: usize = offset_of!(Slot<u64>, hot) + offset_of!(Hot, list);
pub(crate) const SIZES_AT: usize = offset_of!(Slot<u64>, hot) + offset_of!(Hot, sizes);
pub(crate) const TOP_AT: usize = offset_of!(Slot<u64>, hot) + offset_of!(Hot, top);
pub(crate) const STORAGE_AT: usize = offset_of!(Slot<u64>, hot) + offset_of!(Hot, storage);
pub(crate) const COLD_AT: usize = offset_of!(Slot<u64>, cold);

/// A cache's lines in all areas, in the program `A`.
#[derive(Debug)]
#[repr(C)]
pub struct Slots<A, T> {
    cache: Cache,
    /// No thread uses the cache any more.
    closed: AtomicBool,
    cold: PhantomData<fn() -> (A, T)>,
}

/// A cache's lines in one area. Zeros are a slot that was never used.
#[repr(C, align(64))]
struct Slot<T> {
    hot: Hot,
    asked: AtomicBool,
    held: AtomicBool,
    /// Whether `cold` was made.
    used: AtomicBool,
    cold: UnsafeCell<MaybeUninit<T>>,
}

const HEAD_SHIFT: u32 = 16;
const COUNT_MASK: u64 = (1 << 17) - 1;
/// The word of a list without objects.
const EMPTY: u64 = 1;

#[inline]
fn head(list: u64) -> u64 {
    list >> HEAD_SHIFT & !7
}

const CAPACITY: u32 = 32;

/// The size and the capacity in a word of sizes.
fn halves(sizes: u64) -> (u32, u32) {
    (sizes as u32, (sizes >> CAPACITY) as u32)
}

/// How often a thread tries again with the next CPU's slot if it is moved while it takes its CPU's.
const TRIES: u32 = 3;

impl<A: Trusted, T> Slots<A, T> {
    const HEAP: HeapAccess = HeapAccess::of::<A>();

    /// The array of the cache in a thread's area.
    #[inline(always)]
    fn array(&self, area: &'static Area) -> Array<'_> {
        Array { heap: Self::HEAP, area, hot: &self.at(area).hot }
    }
}

impl<A, T> Slots<A, T> {
    #[inline(always)]
    fn at(&self, area: &'static Area) -> &Slot<T> {
        // SAFETY: `new` took the lines from `offset` on, in every area, from `slot_space`, which gives them
        // to one cache at a time and within an area's bytes; `Slots` is a type of its `T`, and zeros are a
        // slot.
        unsafe { &*std::ptr::from_ref(area).byte_add(self.cache.offset() as usize).cast() }
    }

    #[inline(always)]
    fn mine(&self) -> &Slot<T> {
        self.at(current::area())
    }

    fn of(&self, cpu: CpuId) -> &Slot<T> {
        self.at(area::of(cpu))
    }
}

impl<A: Trusted, T: Default> Slots<A, T> {
    /// The slots of a cache, from the lines that `slot_space` gave it.
    fn at_offset(offset: Option<usize>, link_offset: u32) -> Self {
        let offset = offset.expect("areas have room for this cache");
        Slots {
            // SAFETY: `slot_space` gave the lines at `offset` to this cache alone, and a `Slot` begins with
            // its `Hot`. Engines put their own free objects there, with the link that they name here
            // (`Trusted`).
            cache: unsafe { Cache::new(offset as u32, link_offset) },
            closed: AtomicBool::new(false),
            cold: PhantomData,
        }
    }

    /// Runs `f` as a hot operation, on the part of this thread's slot that the cache put there. `None`, and
    /// `f` is not called, if the slot is held or was never used, for signal handlers that interrupted a hot
    /// operation, and with slots per CPU: then hold the slot ([`PerCpu::local`]).
    ///
    /// `f` must leave the part consistent after each of its stores: a fork of another thread may copy the
    /// process between two of them. It must call nothing that allocates or frees.
    #[inline(always)]
    pub fn hot<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
        self.hot_slot(|_, _, part| f(part))
    }

    /// [`Slots::hot`] with the area and the slot.
    #[inline(always)]
    fn hot_slot<R>(&self, f: impl FnOnce(&'static Area, &Slot<T>, &T) -> R) -> Option<R> {
        let hidden = Hidden::new();
        let slot = self.at(hidden.area());
        // 0 while held, before the first use, and in the refusing area.
        if slot.hot.list.load(Relaxed) == 0 {
            return None;
        }
        // SAFETY: a list other than 0: `Slot::held` made `cold`, and its `Held` was dropped. Until this
        // function hides the area no longer, nothing makes another: this thread runs `f`, a handler that
        // interrupts it finds the refusing area, and other threads hold slots of threads that ended alone
        // (`claim`).
        let part = unsafe { (*slot.cold.get()).assume_init_ref() };
        Some(f(hidden.area(), slot, part))
    }

    /// Holds this CPU's slot. If the thread is moved meanwhile, it holds the first CPU's slot, or none.
    fn hold_here(&self, places: &Places) -> Option<Held<'_, T>> {
        for _ in 0..TRIES {
            let cpu = per_cpu::cpu().filter(|cpu| area::open(*cpu))?;
            if let Some(held) = self.of(cpu).hold_mine(cpu, places) {
                return Some(held);
            }
        }
        None
    }

    /// Prepares a slot for use. `false` if it was used before.
    #[cold]
    #[inline(never)]
    fn open(&self) -> bool {
        // A free must not wait for a fork here: its slow path gets a pass, or works without one.
        let Some(_pass) = Pass::now() else { return false };
        match per_cpu::cpu() {
            Some(cpu) => !self.of(cpu).used.load(Relaxed) && self.local().is_some(),
            None => thread::enter() && !self.mine().used.load(Relaxed) && self.local().is_some(),
        }
    }

    #[cold]
    #[inline(never)]
    fn push_if_opened(&self, want: Want, limit: u32, object: Object, event: Event) -> bool {
        self.open() && self.push_if(want, limit, object, event)
    }
}

impl<T> Slot<T> {
    /// The array's storage.
    fn storage(&self) -> Option<Object> {
        Object::from_raw(self.hot.storage.load(Relaxed))
    }
}

impl<T: Default> Slot<T> {
    /// Holds a thread's slot, unless this thread was interrupted while it held it.
    fn hold<'a>(&'a self, array: Array<'a>, cpu: CpuId, claim: Option<Claim>) -> Option<Held<'a, T>> {
        let section = Section::enter();
        // Only this thread uses the slot: no atomic operation is needed.
        if self.held.load(Relaxed) {
            return None;
        }
        self.held.store(true, Relaxed);
        compiler_fence(SeqCst);
        let hidden = Hidden::new();
        let list = self.hot.list.load(Relaxed);
        let HotArray { size, capacity, .. } = array.read();
        self.hot.list.store(0, Relaxed);
        array.refuse();
        drop(hidden);
        Some(self.held(Some(array), cpu, list, (size, capacity), claim, section))
    }

    /// Holds the slot of the CPU that this thread runs on. `None` if another thread holds it, or if this one
    /// was moved.
    fn hold_mine(&self, cpu: CpuId, places: &Places) -> Option<Held<'_, T>> {
        let section = Section::enter();
        if self.held.swap(true, Acquire) {
            return None;
        }
        let take = |word: &AtomicU64| sequence::take(places, cpu, word);
        let words = take(&self.hot.list).map(|list| (list, take(&self.hot.sizes)));
        match words {
            Some((list, Some(sizes))) => Some(self.held(None, cpu, list, halves(sizes), None, section)),
            moved => {
                moved.inspect(|(list, _)| self.hot.list.store(*list, Release));
                self.held.store(false, Release);
                None
            }
        }
    }

    /// Holds a slot of any CPU.
    fn hold_remote(&self, cpu: CpuId) -> Option<Held<'_, T>> {
        let section = Section::enter();
        if self.held.swap(true, Acquire) {
            return None;
        }
        let mut words = (0, 0);
        // A sequence that stores after the exchange read the words before it.
        let latest = |word: &AtomicU64, before: u64| match word.swap(0, AcqRel) {
            0 => before,
            now => now,
        };
        while self.hot.list.load(Relaxed) != 0 || self.hot.sizes.load(Relaxed) != 0 {
            words = (latest(&self.hot.list, words.0), latest(&self.hot.sizes, words.1));
            if !per_cpu::fence(cpu) {
                // A sequence that was running may have stored a word again.
                let _ = self.hot.list.compare_exchange(0, words.0, AcqRel, Relaxed);
                let _ = self.hot.sizes.compare_exchange(0, words.1, AcqRel, Relaxed);
                self.held.store(false, Release);
                return None;
            }
        }
        Some(self.held(None, cpu, words.0, halves(words.1), None, section))
    }

    fn held<'a>(
        &'a self,
        array: Option<Array<'a>>,
        cpu: CpuId,
        mut list: u64,
        (size, capacity): (u32, u32),
        claim: Option<Claim>,
        section: Section,
    ) -> Held<'a, T> {
        if !self.used.load(Relaxed) {
            // SAFETY: the caller set `held` just now (`hold`, `hold_mine`, `hold_remote`), and only a `Held`
            // refers to `cold`.
            unsafe { (*self.cold.get()).write(T::default()) };
            list = EMPTY;
            area::use_slot(cpu);
            self.used.store(true, Release);
        }
        Held { slot: self, array, cpu, list, size, capacity, _claim: claim, _section: section }
    }
}

impl<A: Trusted, T: Default> Shortcut<Object, T> for Slots<A, T> {
    type Arrays = SlotArrays<A>;

    #[inline(always)]
    fn arrays(&self) -> SlotArrays<A> {
        SlotArrays::at(self.cache)
    }

    #[inline(always)]
    fn pop_first(&self, _event: Event) -> Option<Object> {
        self.arrays().pop()
    }

    #[inline(always)]
    fn push_first(&self, object: Object, _event: Event) -> bool {
        self.arrays().push(object)
    }

    #[inline]
    fn swaps_arrays() -> bool {
        !per_cpu::on()
    }

    #[inline]
    fn swap_array<R>(
        &self,
        f: impl FnOnce(&T, HotArray<Object>) -> Option<(HotArray<Object>, R)>,
    ) -> Option<R> {
        self.hot_slot(|area, slot, part| {
            // A fork waits for the section's end.
            let _section = Section::try_enter()?;
            // A signal handler may run while this thread takes or lets go of the slot.
            if slot.held.load(Relaxed) {
                return None;
            }
            let array = self.array(area);
            let (after, answer) = f(part, array.read())?;
            slot.hot.storage.store(Object::to_raw(after.storage), Relaxed);
            array.write(after.size, after.capacity);
            Some(answer)
        })?
    }
}

impl<A: Trusted, T: Default> PerCpu<Object, T> for Slots<A, T> {
    type Local<'a>
        = Held<'a, T>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        Slots::at_offset(slot_space::take(size_of::<Slot<T>>()), link_offset)
    }

    /// With slots at a fixed place if the number has one.
    fn of_cache(cache: u32, link_offset: u32) -> Self {
        let bytes = size_of::<Slot<T>>();
        let offset = slot_space::take_fixed(cache, bytes).or_else(|| slot_space::take(bytes));
        Slots::at_offset(offset, link_offset)
    }

    #[inline]
    fn pop_if(&self, want: Want, _event: Event) -> Option<Object> {
        let hidden = Hidden::new();
        let hot = &self.at(hidden.area()).hot;
        let list = hot.list.load(Relaxed);
        let Some(object) = Object::from_raw(head(list)) else {
            cold_path();
            drop(hidden);
            return sequence::pop_if(per_cpu::places()?, self.cache, want);
        };
        if !want.met(hot.tag.load(Relaxed)) {
            return None;
        }
        let next = Self::HEAP.word(object, self.cache.link()).load(Relaxed);
        hot.list.store(next << HEAD_SHIFT | ((list & COUNT_MASK) - 1), Relaxed);
        Some(object)
    }

    #[inline]
    fn push_if(&self, want: Want, limit: u32, object: Object, event: Event) -> bool {
        let hidden = Hidden::new();
        let hot = &self.at(hidden.area()).hot;
        let list = hot.list.load(Relaxed);
        if !want.met(hot.tag.load(Relaxed)) || ((list & COUNT_MASK) as u32).wrapping_sub(1) >= limit {
            cold_path();
            drop(hidden);
            if let Some(places) = per_cpu::places() {
                let done = sequence::push_if(places, self.cache, want, limit, object);
                return done || self.push_if_opened(want, limit, object, event);
            }
            return list == 0 && self.push_if_opened(want, limit, object, event);
        }
        Self::HEAP.word(object, self.cache.link()).store(head(list), Relaxed);
        hot.list.store(Object::to_raw(Some(object)) << HEAD_SHIFT | ((list & COUNT_MASK) + 1), Relaxed);
        true
    }

    #[inline]
    fn pop(&self, event: Event) -> Option<Object> {
        if let Some(object) = self.pop_first(event) {
            return Some(object);
        }
        cold_path();
        sequence::pop(per_cpu::places()?, self.cache)
    }

    #[inline]
    fn push(&self, object: Object, event: Event) -> bool {
        if self.push_first(object, event) {
            return true;
        }
        cold_path();
        let Some(places) = per_cpu::places() else { return false };
        sequence::push(places, self.cache, object)
    }

    fn local(&self) -> Option<Held<'_, T>> {
        if !thread::enter() {
            return None;
        }
        match per_cpu::places() {
            Some(places) => self.hold_here(places),
            // A signal handler may run before the thread has its area, or while the area is hidden.
            None if !current::has_area() => None,
            None => self.mine().hold(self.array(current::area()), current::slot(), None),
        }
    }

    /// With slots per CPU also a slot in use: its CPU is fenced.
    fn claim(&self, cpu: CpuId) -> Option<Held<'_, T>> {
        if !area::open(cpu) {
            return None;
        }
        if per_cpu::on() {
            return self.of(cpu).hold_remote(cpu);
        }
        let claim = Claim::new(cpu);
        // A thread may take its own slot; and any thread any slot of a cache that is not used.
        let free = claim.is_some() || self.closed.load(Relaxed) || thread::is_mine(cpu);
        if free { self.of(cpu).hold(self.array(area::of(cpu)), cpu, claim) } else { None }
    }

    fn close(&self, closed: bool) {
        self.closed.store(closed, Relaxed);
    }

    fn ask(&self, cpu: CpuId) {
        if area::open(cpu) {
            self.of(cpu).asked.store(true, Release);
        }
    }

    #[inline]
    fn count(&self, _event: Event, _n: u64) {}

    fn counted(&self, _cpu: CpuId, _event: Event) -> u64 {
        0
    }

    fn used(&self, cpu: CpuId) -> bool {
        self.of(cpu).used.load(Acquire)
    }
}

impl<A, T> Drop for Slots<A, T> {
    fn drop(&mut self) {
        for cpu in (0..area::used()).map(CpuId) {
            let slot = self.of(cpu);
            if slot.used.load(Acquire) {
                // SAFETY: `drop` has the only reference to the cache; `used` says that `cold` was made; zeros
                // are an unused slot.
                unsafe {
                    (*slot.cold.get()).assume_init_drop();
                    std::ptr::from_ref(slot).cast_mut().write_bytes(0, 1);
                }
            }
        }
        slot_space::give(self.cache.offset() as usize, size_of::<Slot<T>>());
    }
}

/// A slot that this thread holds exclusively. The hot part's words are here; dropping it stores them back.
pub struct Held<'a, T> {
    slot: &'a Slot<T>,
    /// The array's words, with slots per thread.
    array: Option<Array<'a>>,
    cpu: CpuId,
    list: u64,
    size: u32,
    capacity: u32,
    /// Released after the words were stored back: fields are dropped after `drop`.
    _claim: Option<Claim>,
    _section: Section,
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.slot.hot.list.store(self.list, Release);
        current::give_credit(self.cpu);
        match self.array {
            Some(array) => {
                array.write(self.size, self.capacity);
                learn_starts(array);
            }
            None => self.slot.hot.sizes.store((self.capacity as u64) << CAPACITY | self.size as u64, Release),
        }
        self.slot.held.store(false, Release);
    }
}

/// Notes in a slot where objects of its cache start, if the area is this thread's own: frees of this thread
/// read it.
fn learn_starts(array: Array<'_>) {
    if ptr::eq(array.area, current::area())
        && !array.hot.starts.are_known()
        && let Some(starts) = array.place().and_then(starts::noted)
    {
        array.hot.starts.set(starts);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: `Slot::held` made `cold` before the first `Held`, and one thread at a time has a `Held`.
        unsafe { (*self.slot.cold.get()).assume_init_ref() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `Slot::held` made `cold` before the first `Held`, and one thread at a time has a `Held`.
        unsafe { (*self.slot.cold.get()).assume_init_mut() }
    }
}

impl<T> Local<Object, T> for Held<'_, T> {
    fn cpu(&self) -> CpuId {
        self.cpu
    }
    fn list(&self) -> HotList<Object> {
        let count = (self.list & COUNT_MASK) - 1;
        HotList {
            head: Object::from_raw(head(self.list)),
            count: count as u32,
            tag: self.slot.hot.tag.load(Relaxed),
        }
    }
    fn set_list(&mut self, list: HotList<Object>) {
        self.list = Object::to_raw(list.head) << HEAD_SHIFT | (list.count as u64 + 1);
        self.slot.hot.tag.store(list.tag, Relaxed);
    }
    fn array(&self) -> HotArray<Object> {
        let (size, capacity) = (self.size, self.capacity);
        HotArray { storage: self.slot.storage(), size, capacity }
    }
    fn set_array(&mut self, array: HotArray<Object>) {
        self.slot.hot.storage.store(Object::to_raw(array.storage), Relaxed);
        (self.size, self.capacity) = (array.size, array.capacity);
    }
    fn reserved(&self) -> u64 {
        area::of(self.cpu).header.reserved.load(Relaxed)
    }
    fn reserve(&mut self, bytes: i64) {
        area::of(self.cpu).header.reserved.fetch_add(bytes as u64, Relaxed);
    }
    fn asked(&mut self) -> bool {
        self.slot.asked.swap(false, Acquire)
    }
    fn count(&mut self, _event: Event, _n: u64) {}
}
