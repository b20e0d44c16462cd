//! Per-CPU slots, per-node values and locks of the model.
//!
//! Locks are never contended here, because one CPU runs at a time. The order in which they are taken is
//! checked.

use crate::memory::Addr;
use crate::world::{Model, state};
use slablab_platform::{
    CpuId, CpuShared, Event, HotArray, HotList, Local, Lock, Memory, NodeId, PerCpu, PerNode, Rank, Shortcut,
    Topology, Want,
};
use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// One slot per CPU, made when first used.
pub struct Slots<T> {
    slots: Box<[OnceCell<Box<Slot<T>>>]>,
}

struct Slot<T> {
    held: Cell<bool>,
    asked: Cell<bool>,
    list: Cell<HotList<Addr>>,
    array: Cell<HotArray<Addr>>,
    counts: [Cell<u64>; Event::COUNT],
    cold: RefCell<T>,
}

impl<T: Default> Slots<T> {
    #[inline]
    fn slot(&self, cpu: CpuId) -> &Slot<T> {
        match self.slots[cpu.0 as usize].get() {
            Some(slot) => slot,
            None => self.fresh_slot(cpu),
        }
    }

    #[cold]
    #[inline(never)]
    fn fresh_slot(&self, cpu: CpuId) -> &Slot<T> {
        self.slots[cpu.0 as usize].get_or_init(|| {
            Box::new(Slot {
                held: Cell::new(false),
                asked: Cell::new(false),
                list: Cell::new(HotList::EMPTY),
                array: Cell::new(HotArray::NONE),
                counts: [const { Cell::new(0) }; Event::COUNT],
                cold: RefCell::new(T::default()),
            })
        })
    }

    #[inline]
    fn mine(&self) -> &Slot<T> {
        self.slot(Model::cpu())
    }

    fn hold(&self, cpu: CpuId) -> Option<Held<'_, T>> {
        let slot = self.slot(cpu);
        if slot.held.replace(true) {
            return None;
        }
        Some(Held { slot, cpu, cold: slot.cold.borrow_mut() })
    }
}

impl<T> Slot<T> {
    #[inline]
    fn count(&self, event: Event, n: u64) {
        let count = &self.counts[event as usize];
        count.set(count.get() + n);
    }
}

impl<T: Default> PerCpu<Addr, T> for Slots<T> {
    type Local<'a>
        = Held<'a, T>
    where
        T: 'a;

    fn new(_link_offset: u32) -> Self {
        Slots { slots: (0..Model::cpus()).map(|_| OnceCell::new()).collect() }
    }

    #[inline]
    fn pop_if(&self, want: Want, event: Event) -> Option<Addr> {
        let slot = self.mine();
        let list = slot.list.get();
        let object = list.head?;
        if !want.met(list.tag) || slot.held.get() {
            return None;
        }
        slot.list.set(HotList { head: Model::link(object, 0), count: list.count - 1, tag: list.tag });
        slot.count(event, 1);
        Some(object)
    }

    #[inline]
    fn push_if(&self, want: Want, limit: u32, object: Addr, event: Event) -> bool {
        let slot = self.mine();
        let list = slot.list.get();
        if !want.met(list.tag) || list.count >= limit || slot.held.get() {
            return false;
        }
        Model::set_link(object, 0, list.head);
        slot.list.set(HotList { head: Some(object), count: list.count + 1, tag: list.tag });
        slot.count(event, 1);
        true
    }

    #[inline]
    fn pop(&self, event: Event) -> Option<Addr> {
        let slot = self.mine();
        let array = slot.array.get();
        if array.size == 0 || slot.held.get() {
            return None;
        }
        let size = array.size - 1;
        let object = Model::storage_load(array.storage?, HotArray::<Addr>::HEADER + size);
        slot.array.set(HotArray { size, ..array });
        slot.count(event, 1);
        object
    }

    #[inline]
    fn push(&self, object: Addr, event: Event) -> bool {
        let slot = self.mine();
        let array = slot.array.get();
        let (Some(storage), true) = (array.storage, array.size < array.capacity && !slot.held.get()) else {
            return false;
        };
        Model::storage_store(storage, HotArray::<Addr>::HEADER + array.size, Some(object));
        slot.array.set(HotArray { size: array.size + 1, ..array });
        slot.count(event, 1);
        true
    }

    fn local(&self) -> Option<Held<'_, T>> {
        self.hold(Model::cpu())
    }

    fn claim(&self, cpu: CpuId) -> Option<Held<'_, T>> {
        // Between two events the modelled world stands still: every slot that is not held can be taken.
        self.hold(cpu)
    }

    fn ask(&self, cpu: CpuId) {
        self.slot(cpu).asked.set(true);
    }

    #[inline]
    fn count(&self, event: Event, n: u64) {
        self.mine().count(event, n);
    }

    fn counted(&self, cpu: CpuId, event: Event) -> u64 {
        self.slots[cpu.0 as usize].get().map_or(0, |slot| slot.counts[event as usize].get())
    }

    fn used(&self, cpu: CpuId) -> bool {
        self.slots[cpu.0 as usize].get().is_some()
    }
}

/// A slot held exclusively.
pub struct Held<'a, T> {
    slot: &'a Slot<T>,
    cpu: CpuId,
    cold: RefMut<'a, T>,
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.slot.held.set(false);
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

/// No operation has a cheaper first part here. Tests call on the model what a malloc calls on its own world.
impl<T: Default> Shortcut<Addr, T> for Slots<T> {}

impl<T> Local<Addr, T> for Held<'_, T> {
    fn cpu(&self) -> CpuId {
        self.cpu
    }
    fn list(&self) -> HotList<Addr> {
        self.slot.list.get()
    }
    fn set_list(&mut self, list: HotList<Addr>) {
        debug_assert!(list.count <= HotList::<Addr>::COUNT_MAX, "{} objects on a hot list", list.count);
        debug_assert_eq!(list.head.is_some(), list.count > 0, "head and count disagree");
        self.slot.list.set(list);
    }
    fn array(&self) -> HotArray<Addr> {
        self.slot.array.get()
    }
    fn set_array(&mut self, array: HotArray<Addr>) {
        debug_assert!(array.size <= array.capacity, "{} of {} in a hot array", array.size, array.capacity);
        self.slot.array.set(array);
    }
    fn asked(&mut self) -> bool {
        self.slot.asked.replace(false)
    }
    fn count(&mut self, event: Event, n: u64) {
        self.slot.count(event, n);
    }
}

/// One value per node, made when first asked for.
pub struct Nodes<T>(Box<[OnceCell<Box<T>>]>);

impl<T: Default> PerNode<T> for Nodes<T> {
    fn new() -> Self {
        Nodes((0..Model::nodes()).map(|_| OnceCell::new()).collect())
    }
    #[inline]
    fn get(&self, node: NodeId) -> &T {
        self.0[node.0 as usize].get_or_init(Box::default)
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.0[node.0 as usize].get().map(|value| &**value)
    }
}

/// One value per CPU, made when first asked for.
pub struct Cpus<T>(Box<[OnceCell<Box<T>>]>);

impl<T: Default> CpuShared<T> for Cpus<T> {
    fn new() -> Self {
        Cpus((0..Model::cpus()).map(|_| OnceCell::new()).collect())
    }
    #[inline]
    fn get(&self, cpu: CpuId) -> &T {
        self.0[cpu.0 as usize].get_or_init(Box::default)
    }
    fn peek(&self, cpu: CpuId) -> Option<&T> {
        self.0[cpu.0 as usize].get().map(|value| &**value)
    }
}

/// A lock that checks its place in the order and counts.
pub struct Ranked<R, T> {
    value: RefCell<T>,
    rank: PhantomData<fn() -> R>,
}

/// A lock held.
pub struct Guard<'a, R: Rank, T> {
    value: RefMut<'a, T>,
    rank: PhantomData<fn() -> R>,
}

impl<R: Rank, T> Lock<T> for Ranked<R, T> {
    type Guard<'a>
        = Guard<'a, R, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Ranked { value: RefCell::new(value), rank: PhantomData }
    }

    fn lock(&self) -> Guard<'_, R, T> {
        self.try_lock().unwrap_or_else(|| panic!("{} taken twice: deadlock", R::NAME))
    }

    fn try_lock(&self) -> Option<Guard<'_, R, T>> {
        let value = self.value.try_borrow_mut().ok()?;
        state(|state| state.take_rank::<R>());
        Some(Guard { value, rank: PhantomData })
    }
}

impl<R: Rank, T> Drop for Guard<'_, R, T> {
    fn drop(&mut self) {
        state(|state| state.drop_rank::<R>());
    }
}

impl<R: Rank, T> Deref for Guard<'_, R, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<R: Rank, T> DerefMut for Guard<'_, R, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
