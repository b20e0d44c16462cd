//! What the CPU keeps for itself of each cache, values made when first asked for, and locks.
//!
//! A slot's hot operations turn interrupts off for a few instructions. A slot that is held lets them in, and
//! refuses them.

use crate::cpu::{Off, asked};
use crate::memory::Object;
use crate::world::{Kernel, count};
use core::cell::{Cell, OnceCell, RefCell, RefMut};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};
use slablab_platform::{
    CpuId, CpuShared, Event, Hooks, HotArray, HotList, Local, Lock, Memory, NodeId, PerCpu, PerNode, Rank,
    Topology, Want,
};

/// The CPU's slot of one cache.
#[derive(Debug)]
pub struct Slots<T> {
    held: Cell<bool>,
    list: Cell<HotList<Object>>,
    array: Cell<HotArray<Object>>,
    asked: Cell<bool>,
    used: Cell<bool>,
    counts: [Cell<u64>; Event::COUNT],
    cold: RefCell<T>,
    link_offset: u32,
}

impl<T> Slots<T> {
    fn hold(&self) -> Option<Held<'_, T>> {
        asked();
        // An interrupt between the look and the store has let go again when it returns.
        if self.held.replace(true) {
            #[cfg(test)]
            crate::tests::machine::refused();
            return None;
        }
        compiler_fence(SeqCst);
        self.used.set(true);
        Some(Held { cold: self.cold.borrow_mut(), slot: Holding(self) })
    }
}

impl<T: Default> PerCpu<Object, T> for Slots<T> {
    type Local<'a>
        = Held<'a, T>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        Slots {
            held: Cell::new(false),
            list: Cell::new(HotList::EMPTY),
            array: Cell::new(HotArray::NONE),
            asked: Cell::new(false),
            used: Cell::new(false),
            counts: [const { Cell::new(0) }; Event::COUNT],
            cold: RefCell::default(),
            link_offset,
        }
    }

    #[inline]
    fn pop_if(&self, want: Want, event: Event) -> Option<Object> {
        asked();
        let _off = Off::new();
        let mut list = self.list.get();
        let object = list.head?;
        if self.held.get() || !want.met(list.tag) {
            return None;
        }
        list.head = Kernel::link(object, self.link_offset);
        list.count -= 1;
        self.list.set(list);
        count(&self.counts, event, 1);
        Some(object)
    }

    #[inline]
    fn push_if(&self, want: Want, limit: u32, object: Object, event: Event) -> bool {
        asked();
        let _off = Off::new();
        let mut list = self.list.get();
        if self.held.get() || !want.met(list.tag) || list.count >= limit.min(HotList::<Object>::COUNT_MAX) {
            return false;
        }
        Kernel::set_link(object, self.link_offset, list.head);
        list.head = Some(object);
        list.count += 1;
        self.list.set(list);
        self.used.set(true);
        count(&self.counts, event, 1);
        true
    }

    #[inline]
    fn pop(&self, event: Event) -> Option<Object> {
        asked();
        let _off = Off::new();
        let mut array = self.array.get();
        if self.held.get() || array.size == 0 {
            return None;
        }
        array.size -= 1;
        let object = Kernel::storage_load(array.storage?, HotArray::<Object>::HEADER + array.size);
        self.array.set(array);
        count(&self.counts, event, 1);
        object
    }

    #[inline]
    fn push(&self, object: Object, event: Event) -> bool {
        asked();
        let _off = Off::new();
        let mut array = self.array.get();
        let Some(storage) = array.storage.filter(|_| !self.held.get() && array.size < array.capacity) else {
            return false;
        };
        Kernel::storage_store(storage, HotArray::<Object>::HEADER + array.size, Some(object));
        array.size += 1;
        self.array.set(array);
        count(&self.counts, event, 1);
        true
    }

    fn local(&self) -> Option<Held<'_, T>> {
        self.hold()
    }

    fn claim(&self, cpu: CpuId) -> Option<Held<'_, T>> {
        if Kernel::cpu_online(cpu) { None } else { self.hold() }
    }

    fn ask(&self, _cpu: CpuId) {
        self.asked.set(true);
    }

    #[inline]
    fn count(&self, event: Event, n: u64) {
        count(&self.counts, event, n);
    }

    fn counted(&self, _cpu: CpuId, event: Event) -> u64 {
        self.counts[event as usize].get()
    }

    fn used(&self, _cpu: CpuId) -> bool {
        self.used.get() || self.counts.iter().any(|count| count.get() > 0)
    }
}

/// A slot held. The fields end in this order: the slot is free when nothing refers into it.
#[derive(Debug)]
pub struct Held<'a, T> {
    cold: RefMut<'a, T>,
    slot: Holding<'a, T>,
}

#[derive(Debug)]
struct Holding<'a, T>(&'a Slots<T>);

impl<T> Drop for Holding<'_, T> {
    fn drop(&mut self) {
        asked();
        compiler_fence(SeqCst);
        self.0.held.set(false);
        asked();
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
        CpuId(0)
    }
    fn list(&self) -> HotList<Object> {
        asked();
        self.slot.0.list.get()
    }
    fn set_list(&mut self, list: HotList<Object>) {
        asked();
        self.slot.0.list.set(list);
    }
    fn array(&self) -> HotArray<Object> {
        asked();
        self.slot.0.array.get()
    }
    fn set_array(&mut self, array: HotArray<Object>) {
        asked();
        self.slot.0.array.set(array);
    }
    fn asked(&mut self) -> bool {
        self.slot.0.asked.replace(false)
    }
    fn count(&mut self, event: Event, n: u64) {
        count(&self.slot.0.counts, event, n);
    }
}

/// A value made when first asked for: there is one node, and one CPU.
#[derive(Debug)]
pub struct Made<T>(OnceCell<T>);

impl<T: Default> Made<T> {
    fn made(&self) -> &T {
        asked();
        // An interrupt must not come while it is made and ask for it.
        self.0.get().unwrap_or_else(|| {
            let _off = Off::new();
            self.0.get_or_init(T::default)
        })
    }
}

impl<T: Default> PerNode<T> for Made<T> {
    fn new() -> Self {
        Made(OnceCell::new())
    }
    fn get(&self, _node: NodeId) -> &T {
        self.made()
    }
    fn peek(&self, _node: NodeId) -> Option<&T> {
        self.0.get()
    }
}

impl<T: Default> CpuShared<T> for Made<T> {
    fn new() -> Self {
        Made(OnceCell::new())
    }
    fn get(&self, _cpu: CpuId) -> &T {
        self.made()
    }
    fn peek(&self, _cpu: CpuId) -> Option<&T> {
        self.0.get()
    }
}

/// A lock. On one CPU it is interrupts turned off; who finds it held has a fault.
#[derive(Debug)]
pub struct Quiet<R, T>(RefCell<T>, PhantomData<fn() -> R>);

/// A lock held. The value is let go first, then interrupts come.
#[derive(Debug)]
pub struct Guard<'a, T>(RefMut<'a, T>, Off);

impl<R: Rank, T> Lock<T> for Quiet<R, T> {
    type Guard<'a>
        = Guard<'a, T>
    where
        R: 'a,
        T: 'a;

    fn new(value: T) -> Self {
        Quiet(RefCell::new(value), PhantomData)
    }
    fn lock(&self) -> Guard<'_, T> {
        self.try_lock().unwrap_or_else(|| panic!("{} is held: by whoever asks for it", R::NAME))
    }
    fn try_lock(&self) -> Option<Guard<'_, T>> {
        asked();
        let off = Off::new();
        let value = self.0.try_borrow_mut().ok()?;
        Kernel::count(R::EVENT, 1);
        Some(Guard(value, off))
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
