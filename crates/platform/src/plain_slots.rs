//! Slots for worlds that turn interrupts off: the simplest that the contract allows, to use or to begin with.
//!
//! A hot operation turns interrupts off for its few instructions. A slot that is held lets interrupts in and
//! refuses them: their allocation takes the engine's path without a slot. Between two hot operations a slot
//! is touched by its own CPU alone; a holder on another CPU has claimed it ([`PerCpu::claim`]).

use crate::{CpuId, Event, HotArray, HotList, Local, Memory, PerCpu, Topology, Want};
use core::array;
use core::cell::{Cell, RefCell, RefMut};
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};

/// What a world says of its CPUs, for [`PlainSlots`].
pub trait Interrupts: Memory + Topology {
    /// Interrupts are off on this CPU while one of these lives, and no other code runs on it. They nest.
    type Off;
    /// Turns interrupts off.
    fn off() -> Self::Off;
    /// Whether a CPU cannot use its slots now: it is down, or the whole world stands still.
    fn stands_still(cpu: CpuId) -> bool;
    /// The slots are asked something: a place where a test lets an interrupt in.
    #[inline(always)]
    fn asked() {}
    /// A slot was held already: a test counts them.
    #[inline(always)]
    fn refused() {}
}

/// Counts of events on one CPU.
pub struct Counts([AtomicU64; Event::COUNT]);

impl Counts {
    /// All 0.
    pub const fn new() -> Counts {
        Counts([const { AtomicU64::new(0) }; Event::COUNT])
    }

    /// Adds without a locked instruction. Only the counts' CPU, with interrupts off.
    #[inline]
    pub fn add<Off>(&self, event: Event, n: u64, _off: &Off) {
        let count = &self.0[event as usize];
        count.store(count.load(Relaxed) + n, Relaxed);
    }

    /// How often an event was counted.
    pub fn get(&self, event: Event) -> u64 {
        self.0[event as usize].load(Relaxed)
    }

    /// Forgets all counts.
    pub fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Relaxed));
    }

    fn is_any(&self) -> bool {
        self.0.iter().any(|count| count.load(Relaxed) > 0)
    }
}

impl Default for Counts {
    fn default() -> Counts {
        Counts::new()
    }
}

impl fmt::Debug for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|count| count.load(Relaxed))).finish()
    }
}

#[repr(align(64))]
struct Slot<P: Interrupts, T> {
    held: AtomicBool,
    asked: AtomicBool,
    used: AtomicBool,
    list: Cell<HotList<P::Ptr>>,
    array: Cell<HotArray<P::Ptr>>,
    cold: RefCell<T>,
    counts: Counts,
}

/// A slot of one cache for each of `CPUS` CPUs, inside the cache itself.
///
/// Its cells are for the slot's CPU with interrupts off, or for the slot's holder. So a world may share
/// caches between CPUs, which takes its own `unsafe impl Sync`.
pub struct PlainSlots<P: Interrupts, T, const CPUS: usize> {
    slots: [Slot<P, T>; CPUS],
    link_offset: u32,
}

impl<P: Interrupts, T, const CPUS: usize> PlainSlots<P, T, CPUS> {
    /// This CPU's slot, unless it is held. `_off`: an interrupt would see it half changed.
    #[inline]
    fn idle(&self, _off: &P::Off) -> Option<&Slot<P, T>> {
        let slot = self.slot(P::cpu());
        // Pairs with the release in `Holding::drop`, perhaps of a CPU that claimed the slot.
        (!slot.held.load(Acquire)).then_some(slot)
    }

    #[inline]
    fn slot(&self, cpu: CpuId) -> &Slot<P, T> {
        &self.slots[cpu.0 as usize]
    }

    fn hold(&self, cpu: CpuId) -> Option<PlainHeld<'_, P, T>> {
        P::asked();
        let slot = self.slot(cpu);
        // Pairs with the release in `Holding::drop`. An interrupt between the look and the store has let go
        // again when it returns.
        if slot.held.swap(true, Acquire) {
            P::refused();
            return None;
        }
        slot.used.store(true, Relaxed);
        Some(PlainHeld { cold: slot.cold.borrow_mut(), slot: Holding(slot), cpu })
    }
}

impl<P: Interrupts, T: Default, const CPUS: usize> PerCpu<P::Ptr, T> for PlainSlots<P, T, CPUS> {
    type Local<'a>
        = PlainHeld<'a, P, T>
    where
        Self: 'a,
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
        PlainSlots { slots: array::from_fn(slot), link_offset }
    }
    #[inline]
    fn pop_if(&self, want: Want, event: Event) -> Option<P::Ptr> {
        P::asked();
        let off = P::off();
        let slot = self.idle(&off)?;
        let mut list = slot.list.get();
        let object = list.head.filter(|_| want.met(list.tag))?;
        list.head = P::link(object, self.link_offset);
        list.count -= 1;
        slot.list.set(list);
        slot.counts.add(event, 1, &off);
        Some(object)
    }
    #[inline]
    fn push_if(&self, want: Want, limit: u32, object: P::Ptr, event: Event) -> bool {
        P::asked();
        let off = P::off();
        let Some(slot) = self.idle(&off) else { return false };
        let mut list = slot.list.get();
        if !want.met(list.tag) || list.count >= limit.min(HotList::<P::Ptr>::COUNT_MAX) {
            return false;
        }
        P::set_link(object, self.link_offset, list.head);
        list.head = Some(object);
        list.count += 1;
        slot.list.set(list);
        slot.used.store(true, Relaxed);
        slot.counts.add(event, 1, &off);
        true
    }
    #[inline]
    fn pop(&self, event: Event) -> Option<P::Ptr> {
        P::asked();
        let off = P::off();
        let slot = self.idle(&off)?;
        let mut array = slot.array.get();
        array.size = array.size.checked_sub(1)?;
        let object = P::storage_load(array.storage?, HotArray::<P::Ptr>::HEADER + array.size);
        slot.array.set(array);
        slot.counts.add(event, 1, &off);
        object
    }
    #[inline]
    fn push(&self, object: P::Ptr, event: Event) -> bool {
        P::asked();
        let off = P::off();
        let Some(slot) = self.idle(&off) else { return false };
        let mut array = slot.array.get();
        let Some(storage) = array.storage.filter(|_| array.size < array.capacity) else { return false };
        P::storage_store(storage, HotArray::<P::Ptr>::HEADER + array.size, Some(object));
        array.size += 1;
        slot.array.set(array);
        slot.counts.add(event, 1, &off);
        true
    }
    fn local(&self) -> Option<PlainHeld<'_, P, T>> {
        self.hold(P::cpu())
    }
    fn claim(&self, cpu: CpuId) -> Option<PlainHeld<'_, P, T>> {
        if P::stands_still(cpu) { self.hold(cpu) } else { None }
    }
    fn ask(&self, cpu: CpuId) {
        // Pairs with the exchange in `Local::asked`.
        self.slot(cpu).asked.store(true, Release);
    }
    #[inline]
    fn count(&self, event: Event, n: u64) {
        let off = P::off();
        self.slot(P::cpu()).counts.add(event, n, &off);
    }
    fn counted(&self, cpu: CpuId, event: Event) -> u64 {
        self.slot(cpu).counts.get(event)
    }
    fn used(&self, cpu: CpuId) -> bool {
        let slot = self.slot(cpu);
        slot.used.load(Relaxed) || slot.counts.is_any()
    }
}

impl<P: Interrupts, T: fmt::Debug, const CPUS: usize> fmt::Debug for PlainSlots<P, T, CPUS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.slots.iter().map(|slot| &slot.cold)).finish()
    }
}

/// A slot held exclusively. The fields end in this order: the slot is free when nothing refers into it.
pub struct PlainHeld<'a, P: Interrupts, T> {
    cold: RefMut<'a, T>,
    slot: Holding<'a, P, T>,
    cpu: CpuId,
}

struct Holding<'a, P: Interrupts, T>(&'a Slot<P, T>);

impl<P: Interrupts, T> Drop for Holding<'_, P, T> {
    fn drop(&mut self) {
        P::asked();
        // Pairs with the looks in `idle` and `hold`.
        self.0.held.store(false, Release);
        P::asked();
    }
}

impl<P: Interrupts, T> Deref for PlainHeld<'_, P, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.cold
    }
}

impl<P: Interrupts, T> DerefMut for PlainHeld<'_, P, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.cold
    }
}

impl<P: Interrupts, T> Local<P::Ptr, T> for PlainHeld<'_, P, T> {
    fn cpu(&self) -> CpuId {
        self.cpu
    }
    fn list(&self) -> HotList<P::Ptr> {
        P::asked();
        self.slot.0.list.get()
    }
    fn set_list(&mut self, list: HotList<P::Ptr>) {
        P::asked();
        self.slot.0.list.set(list);
    }
    fn array(&self) -> HotArray<P::Ptr> {
        P::asked();
        self.slot.0.array.get()
    }
    fn set_array(&mut self, array: HotArray<P::Ptr>) {
        P::asked();
        self.slot.0.array.set(array);
    }
    fn asked(&mut self) -> bool {
        // Pairs with the store in `ask`.
        self.slot.0.asked.swap(false, Acquire)
    }
    fn count(&mut self, event: Event, n: u64) {
        self.slot.0.counts.add(event, n, &P::off());
    }
}

impl<P: Interrupts, T: fmt::Debug> fmt::Debug for PlainHeld<'_, P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainHeld").field("cpu", &self.cpu).field("cold", &*self.cold).finish()
    }
}
