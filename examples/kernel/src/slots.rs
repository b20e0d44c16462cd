//! What each CPU keeps of each cache, and locks. `unsafe`: says that CPUs share them.
//!
//! A hot operation turns interrupts off for its few instructions. A slot that is held lets interrupts in and
//! refuses them: their allocation takes the engine's path without a slot. A lock keeps interrupts off, so no
//! handler finds a lock that its own CPU holds.

use crate::cpu::{self, CPUS, Off};
use crate::memory::Object;
use crate::world::Kernel;
use core::cell::{Cell, RefCell, RefMut};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use slablab_platform::{
    CpuId, CpuShared, Event, Hooks, HotArray, HotList, Local, Lock, Memory, NodeId, PerCpu, PerNode, Rank,
    Want,
};

/// Counts of events on one CPU.
pub struct Counts([AtomicU64; Event::COUNT]);

impl Counts {
    pub const fn new() -> Counts {
        Counts([const { AtomicU64::new(0) }; Event::COUNT])
    }
    /// Adds without a locked instruction. Only the counts' CPU, with interrupts off.
    #[inline]
    pub fn add(&self, event: Event, n: u64, _off: &Off) {
        let count = &self.0[event as usize];
        count.store(count.load(Relaxed) + n, Relaxed);
    }
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize].load(Relaxed)
    }
    pub fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Relaxed));
    }
}

#[repr(align(64))]
struct Slot<T> {
    held: AtomicBool,
    asked: AtomicBool,
    used: AtomicBool,
    list: Cell<HotList<Object>>,
    array: Cell<HotArray<Object>>,
    cold: RefCell<T>,
    counts: Counts,
}

/// A slot for each CPU, of one cache.
pub struct Slots<T> {
    slots: [Slot<T>; CPUS],
    link_offset: u32,
}

impl<T> Slots<T> {
    /// This CPU's slot, unless it is held. `_off`: an interrupt would see it half changed.
    #[inline]
    fn idle(&self, _off: &Off) -> Option<&Slot<T>> {
        let slot = &self.slots[cpu::current()];
        // Pairs with the release in `Held::drop`, perhaps of a CPU that claimed the slot.
        (!slot.held.load(Acquire)).then_some(slot)
    }
    fn hold(&self, cpu: usize) -> Option<Held<'_, T>> {
        let slot = &self.slots[cpu];
        if slot.held.swap(true, Acquire) {
            return None;
        }
        slot.used.store(true, Relaxed);
        Some(Held { cold: slot.cold.borrow_mut(), slot: Holding(slot), cpu })
    }
}

impl<T: Default> PerCpu<Object, T> for Slots<T> {
    type Local<'a>
        = Held<'a, T>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        let slot = |_| Slot {
            held: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            used: AtomicBool::new(false),
            list: Cell::new(HotList::EMPTY),
            array: Cell::new(HotArray::NONE),
            cold: RefCell::default(),
            counts: Counts::new(),
        };
        Slots { slots: core::array::from_fn(slot), link_offset }
    }
    #[inline]
    fn pop_if(&self, want: Want, event: Event) -> Option<Object> {
        let off = Off::new();
        let slot = self.idle(&off)?;
        let mut list = slot.list.get();
        let object = list.head.filter(|_| want.met(list.tag))?;
        list.head = Kernel::link(object, self.link_offset);
        list.count -= 1;
        slot.list.set(list);
        slot.counts.add(event, 1, &off);
        Some(object)
    }
    #[inline]
    fn push_if(&self, want: Want, limit: u32, object: Object, event: Event) -> bool {
        let off = Off::new();
        let Some(slot) = self.idle(&off) else { return false };
        let mut list = slot.list.get();
        if !want.met(list.tag) || list.count >= limit.min(HotList::<Object>::COUNT_MAX) {
            return false;
        }
        Kernel::set_link(object, self.link_offset, list.head);
        list.head = Some(object);
        list.count += 1;
        slot.list.set(list);
        slot.used.store(true, Relaxed);
        slot.counts.add(event, 1, &off);
        true
    }
    #[inline]
    fn pop(&self, event: Event) -> Option<Object> {
        let off = Off::new();
        let slot = self.idle(&off)?;
        let mut array = slot.array.get();
        array.size = array.size.checked_sub(1)?;
        let object = Kernel::storage_load(array.storage?, HotArray::<Object>::HEADER + array.size);
        slot.array.set(array);
        slot.counts.add(event, 1, &off);
        object
    }
    #[inline]
    fn push(&self, object: Object, event: Event) -> bool {
        let off = Off::new();
        let Some(slot) = self.idle(&off) else { return false };
        let mut array = slot.array.get();
        let Some(storage) = array.storage.filter(|_| array.size < array.capacity) else { return false };
        Kernel::storage_store(storage, HotArray::<Object>::HEADER + array.size, Some(object));
        array.size += 1;
        slot.array.set(array);
        slot.counts.add(event, 1, &off);
        true
    }
    fn local(&self) -> Option<Held<'_, T>> {
        self.hold(cpu::current())
    }
    fn claim(&self, cpu: CpuId) -> Option<Held<'_, T>> {
        let cpu = cpu.0 as usize;
        if cpu::is_online(cpu) && !Kernel::is_stopped() { None } else { self.hold(cpu) }
    }
    fn ask(&self, cpu: CpuId) {
        self.slots[cpu.0 as usize].asked.store(true, Release);
    }
    fn count(&self, event: Event, n: u64) {
        let off = Off::new();
        self.slots[cpu::current()].counts.add(event, n, &off);
    }
    fn counted(&self, cpu: CpuId, event: Event) -> u64 {
        self.slots[cpu.0 as usize].counts.get(event)
    }
    fn used(&self, cpu: CpuId) -> bool {
        let slot = &self.slots[cpu.0 as usize];
        slot.used.load(Relaxed) || slot.counts.0.iter().any(|count| count.load(Relaxed) > 0)
    }
}

/// A slot held exclusively. The fields end in this order: the slot is free when nothing refers into it.
pub struct Held<'a, T> {
    cold: RefMut<'a, T>,
    slot: Holding<'a, T>,
    cpu: usize,
}

struct Holding<'a, T>(&'a Slot<T>);

impl<T> Drop for Holding<'_, T> {
    fn drop(&mut self) {
        self.0.held.store(false, Release);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.cold
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.cold
    }
}

impl<T> Local<Object, T> for Held<'_, T> {
    fn cpu(&self) -> CpuId {
        CpuId(self.cpu as u16)
    }
    fn list(&self) -> HotList<Object> {
        self.slot.0.list.get()
    }
    fn set_list(&mut self, list: HotList<Object>) {
        self.slot.0.list.set(list);
    }
    fn array(&self) -> HotArray<Object> {
        self.slot.0.array.get()
    }
    fn set_array(&mut self, array: HotArray<Object>) {
        self.slot.0.array.set(array);
    }
    fn asked(&mut self) -> bool {
        self.slot.0.asked.swap(false, Acquire)
    }
    fn count(&mut self, event: Event, n: u64) {
        self.slot.0.counts.add(event, n, &Off::new());
    }
}

/// Values for nodes or CPUs, made at once; `get` says that one is in use.
pub struct Made<T, const N: usize>([(T, AtomicBool); N]);

impl<T: Default, const N: usize> Made<T, N> {
    fn new() -> Self {
        Made(core::array::from_fn(|_| (T::default(), AtomicBool::new(false))))
    }
    fn get(&self, index: u16) -> &T {
        let (value, asked) = &self.0[index as usize];
        asked.store(true, Relaxed);
        value
    }
    fn peek(&self, index: u16) -> Option<&T> {
        let (value, asked) = &self.0[index as usize];
        asked.load(Relaxed).then_some(value)
    }
}

impl<T: Default> PerNode<T> for Made<T, 1> {
    fn new() -> Self {
        Made::new()
    }
    fn get(&self, node: NodeId) -> &T {
        self.get(node.0)
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.peek(node.0)
    }
}

impl<T: Default> CpuShared<T> for Made<T, CPUS> {
    fn new() -> Self {
        Made::new()
    }
    fn get(&self, cpu: CpuId) -> &T {
        self.get(cpu.0)
    }
    fn peek(&self, cpu: CpuId) -> Option<&T> {
        self.peek(cpu.0)
    }
}

/// A lock: spins with interrupts off.
pub struct Spin<R, T> {
    /// 0, or the holder's number plus 1.
    holder: AtomicUsize,
    value: RefCell<T>,
    rank: PhantomData<fn() -> R>,
}

/// A lock held. The fields end in this order: the value's use, the lock, interrupts off.
pub struct Guard<'a, T> {
    value: RefMut<'a, T>,
    _unlock: Unlock<'a>,
    _off: Off,
}

struct Unlock<'a>(&'a AtomicUsize);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

impl<R, T> Spin<R, T> {
    pub const fn around(value: T) -> Self {
        Spin { holder: AtomicUsize::new(0), value: RefCell::new(value), rank: PhantomData }
    }
    fn attempt(&self) -> Option<Guard<'_, T>> {
        let off = Off::new();
        self.holder.compare_exchange(0, cpu::current() + 1, Acquire, Relaxed).ok()?;
        Some(Guard { value: self.value.borrow_mut(), _unlock: Unlock(&self.holder), _off: off })
    }
    pub fn wait(&self, name: &str) -> Guard<'_, T> {
        loop {
            if let Some(guard) = self.attempt() {
                return guard;
            }
            let me = cpu::current() + 1;
            assert!(self.holder.load(Relaxed) != me, "CPU {} takes {name} twice", me - 1);
            core::hint::spin_loop();
        }
    }
}

impl<R: Rank, T> Lock<T> for Spin<R, T> {
    type Guard<'a>
        = Guard<'a, T>
    where
        R: 'a,
        T: 'a;

    fn new(value: T) -> Self {
        Spin::around(value)
    }
    fn lock(&self) -> Guard<'_, T> {
        let guard = self.wait(R::NAME);
        Kernel::count(R::EVENT, 1);
        guard
    }
    fn try_lock(&self) -> Option<Guard<'_, T>> {
        let guard = self.attempt()?;
        Kernel::count(R::EVENT, 1);
        Some(guard)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// What all CPUs use at once.
pub struct AllCpus<T>(pub T);

impl<T> AllCpus<T> {
    pub fn get(&self) -> &T {
        &self.0
    }
}

// SAFETY: for heaps, caches and the checks' values alone. What they share is in words, locks and slots. A
// slot's cells are for its CPU with interrupts off, or for its holder; a lock's value is for its holder.
unsafe impl<T> Sync for AllCpus<T> {}
