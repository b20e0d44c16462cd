//! Slots, node values and locks of the world like the native one. Lock order: none, as there is one thread.

use super::{Bare, CPUS, NODES, Place, REST, add};
use slablab_platform::{
    CpuId, CpuShared, Event, HotArray, HotList, Local, Lock, Memory, NodeId, PerCpu, PerNode, Rank, Topology,
    Want,
};
use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// One slot per CPU, inside the cache itself.
pub struct Slots<T, const COUNT: bool> {
    slots: [Slot<T>; CPUS],
    link_offset: u32,
}

#[repr(align(64))]
struct Slot<T> {
    /// Head in the upper 48 bits, count in the lower 16.
    list: Cell<u64>,
    tag: Cell<u64>,
    /// Size in the lower half, capacity in the upper.
    sizes: Cell<u64>,
    storage: Cell<u64>,
    asked: Cell<bool>,
    used: Cell<bool>,
    counts: [Cell<u64>; Event::COUNT],
    cold: RefCell<T>,
}

const COUNT_BITS: u32 = 16;
const HELD_LIST: u64 = HotList::<Place>::COUNT_MAX as u64;
const HELD_SIZES: u64 = 0;
const CAPACITY: u32 = 32;

/// The offset of the `index`-th address of an array in its storage, in bytes.
const fn word_at(index: u64) -> u32 {
    (HotArray::<Place>::HEADER + index as u32) * 8
}

impl<T: Default> Slot<T> {
    fn new() -> Self {
        Slot {
            list: Cell::new(0),
            tag: Cell::new(0),
            sizes: Cell::new(0),
            storage: Cell::new(0),
            asked: Cell::new(false),
            used: Cell::new(false),
            counts: [const { Cell::new(0) }; Event::COUNT],
            cold: RefCell::default(),
        }
    }
}

impl<T> Slot<T> {
    fn hold<const COUNT: bool>(&self, cpu: CpuId) -> Option<Held<'_, T, COUNT>> {
        let cold = self.cold.try_borrow_mut().ok()?;
        self.used.set(true);
        let (list, sizes) = (self.list.replace(HELD_LIST), self.sizes.replace(HELD_SIZES));
        Some(Held { slot: self, cpu, cold, list, sizes })
    }
}

impl<T, const COUNT: bool> Slots<T, COUNT> {
    #[inline]
    fn slot(&self, cpu: CpuId) -> &Slot<T> {
        &self.slots[cpu.0 as usize & (CPUS - 1)]
    }

    #[inline]
    fn mine(&self) -> &Slot<T> {
        self.slot(Bare::<COUNT>::cpu())
    }
}

impl<T: Default, const COUNT: bool> PerCpu<Place, T> for Slots<T, COUNT> {
    type Local<'a>
        = Held<'a, T, COUNT>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        Slots { slots: std::array::from_fn(|_| Slot::new()), link_offset }
    }

    #[inline]
    fn pop_if(&self, want: Want, event: Event) -> Option<Place> {
        let slot = self.mine();
        let list = slot.list.get();
        let object = Place::from_raw(list >> COUNT_BITS)?;
        if !want.met(slot.tag.get()) {
            return None;
        }
        let next = Place::raw(Bare::<COUNT>::link(object, self.link_offset));
        slot.list.set(next << COUNT_BITS | ((list & HELD_LIST) - 1));
        if COUNT {
            add(&slot.counts, event, 1);
        }
        Some(object)
    }

    #[inline]
    fn push_if(&self, want: Want, limit: u32, object: Place, event: Event) -> bool {
        let slot = self.mine();
        let list = slot.list.get();
        if !want.met(slot.tag.get()) || list & HELD_LIST >= limit as u64 {
            return false;
        }
        Bare::<COUNT>::set_link(object, self.link_offset, Place::from_raw(list >> COUNT_BITS));
        slot.list.set(object.0.get() << COUNT_BITS | ((list & HELD_LIST) + 1));
        if COUNT {
            add(&slot.counts, event, 1);
        }
        true
    }

    #[inline]
    fn pop(&self, event: Event) -> Option<Place> {
        let slot = self.mine();
        let sizes = slot.sizes.get();
        if sizes as u32 == 0 {
            return None;
        }
        let storage = Place::from_raw(slot.storage.get())?;
        let object = Bare::<COUNT>::link(storage, word_at(sizes as u32 as u64 - 1));
        slot.sizes.set(sizes - 1);
        if COUNT {
            add(&slot.counts, event, 1);
        }
        object
    }

    #[inline]
    fn push(&self, object: Place, event: Event) -> bool {
        let slot = self.mine();
        let sizes = slot.sizes.get();
        if sizes as u32 as u64 >= sizes >> CAPACITY {
            return false;
        }
        let Some(storage) = Place::from_raw(slot.storage.get()) else { return false };
        Bare::<COUNT>::set_link(storage, word_at(sizes as u32 as u64), Some(object));
        slot.sizes.set(sizes + 1);
        if COUNT {
            add(&slot.counts, event, 1);
        }
        true
    }

    fn local(&self) -> Option<Held<'_, T, COUNT>> {
        let cpu = Bare::<COUNT>::cpu();
        self.slot(cpu).hold(cpu)
    }

    fn claim(&self, cpu: CpuId) -> Option<Held<'_, T, COUNT>> {
        let live = Bare::<COUNT>::cpu_online(cpu) && !REST.with(|rest| rest.still.get());
        if live { None } else { self.slot(cpu).hold(cpu) }
    }

    fn ask(&self, cpu: CpuId) {
        self.slot(cpu).asked.set(true);
    }

    #[inline]
    fn count(&self, event: Event, n: u64) {
        if COUNT {
            add(&self.mine().counts, event, n);
        }
    }

    fn counted(&self, cpu: CpuId, event: Event) -> u64 {
        self.slot(cpu).counts[event as usize].get()
    }

    fn used(&self, cpu: CpuId) -> bool {
        let slot = self.slot(cpu);
        slot.used.get() || slot.list.get() != 0 || slot.counts.iter().any(|count| count.get() != 0)
    }
}

/// A slot held exclusively: the hot part's words are here, and put back when dropped.
pub struct Held<'a, T, const COUNT: bool> {
    slot: &'a Slot<T>,
    cpu: CpuId,
    cold: RefMut<'a, T>,
    list: u64,
    sizes: u64,
}

impl<T, const COUNT: bool> Drop for Held<'_, T, COUNT> {
    fn drop(&mut self) {
        self.slot.list.set(self.list);
        self.slot.sizes.set(self.sizes);
    }
}

impl<T, const COUNT: bool> Deref for Held<'_, T, COUNT> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.cold
    }
}

impl<T, const COUNT: bool> DerefMut for Held<'_, T, COUNT> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.cold
    }
}

impl<T, const COUNT: bool> Local<Place, T> for Held<'_, T, COUNT> {
    fn cpu(&self) -> CpuId {
        self.cpu
    }
    fn list(&self) -> HotList<Place> {
        let (head, count) = (self.list >> COUNT_BITS, self.list & HELD_LIST);
        HotList { head: Place::from_raw(head), count: count as u32, tag: self.slot.tag.get() }
    }
    fn set_list(&mut self, list: HotList<Place>) {
        self.list = Place::raw(list.head) << COUNT_BITS | list.count as u64;
        self.slot.tag.set(list.tag);
    }
    fn array(&self) -> HotArray<Place> {
        let (size, capacity) = (self.sizes as u32, (self.sizes >> CAPACITY) as u32);
        HotArray { storage: Place::from_raw(self.slot.storage.get()), size, capacity }
    }
    fn set_array(&mut self, array: HotArray<Place>) {
        self.slot.storage.set(Place::raw(array.storage));
        self.sizes = (array.capacity as u64) << CAPACITY | array.size as u64;
    }
    fn asked(&mut self) -> bool {
        self.slot.asked.replace(false)
    }
    fn count(&mut self, event: Event, n: u64) {
        if COUNT {
            add(&self.slot.counts, event, n);
        }
    }
}

/// One value per node.
pub struct Nodes<T>([OnceCell<T>; NODES]);

impl<T: Default> PerNode<T> for Nodes<T> {
    fn new() -> Self {
        Nodes(std::array::from_fn(|_| OnceCell::new()))
    }
    #[inline]
    fn get(&self, node: NodeId) -> &T {
        self.0[node.0 as usize & (NODES - 1)].get_or_init(T::default)
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.0[node.0 as usize & (NODES - 1)].get()
    }
}

/// One value per CPU.
pub struct Cpus<T>([OnceCell<T>; CPUS]);

impl<T: Default> CpuShared<T> for Cpus<T> {
    fn new() -> Self {
        Cpus(std::array::from_fn(|_| OnceCell::new()))
    }
    #[inline]
    fn get(&self, cpu: CpuId) -> &T {
        self.0[cpu.0 as usize & (CPUS - 1)].get_or_init(T::default)
    }
    fn peek(&self, cpu: CpuId) -> Option<&T> {
        self.0[cpu.0 as usize & (CPUS - 1)].get()
    }
}

/// A lock in a world with one thread. It counts its acquisitions and panics if it is taken twice.
pub struct Alone<R, T>(RefCell<T>, PhantomData<fn() -> R>);

impl<R: Rank, T> Lock<T> for Alone<R, T> {
    type Guard<'a>
        = RefMut<'a, T>
    where
        R: 'a,
        T: 'a;

    fn new(value: T) -> Self {
        Alone(RefCell::new(value), PhantomData)
    }
    fn lock(&self) -> RefMut<'_, T> {
        self.try_lock().expect("deadlock: one thread takes a lock twice")
    }
    fn try_lock(&self) -> Option<RefMut<'_, T>> {
        let guard = self.0.try_borrow_mut().ok()?;
        REST.with(|rest| add(&rest.counts, R::EVENT, 1));
        Some(guard)
    }
}
