//! Per-CPU slots and per-node values of the model.

use crate::level::{Access, Path};
use crate::memory::Addr;
use crate::state::{Entered, State};
use slablab_platform::{
    CpuId, CpuShared, Event, HotArray, HotList, Local, NodeId, PerCpu, PerNode, Shortcut, Want,
};
use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// One slot per CPU, made when first used.
pub struct Slots<L: Entered, T> {
    slots: Box<[LazySlot<L, T>]>,
}

type LazySlot<L, T> = OnceCell<Box<Slot<L, T>>>;

struct Slot<L: Entered, T> {
    line: L::Line,
    held: Cell<bool>,
    asked: Cell<bool>,
    list: Cell<HotList<Addr>>,
    array: Cell<HotArray<Addr>>,
    counts: [Cell<u64>; Event::COUNT],
    cold: RefCell<T>,
}

impl<L: Entered, T: Default> Slots<L, T> {
    #[inline]
    fn slot(&self, cpu: CpuId) -> &Slot<L, T> {
        match self.slots[cpu.0 as usize].get() {
            Some(slot) => slot,
            None => self.fresh_slot(cpu),
        }
    }

    #[cold]
    #[inline(never)]
    fn fresh_slot(&self, cpu: CpuId) -> &Slot<L, T> {
        self.slots[cpu.0 as usize].get_or_init(|| {
            Box::new(Slot {
                line: L::together(Some(L::with(|state| state.cpu_node(cpu))), L::line),
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
    fn mine(&self) -> &Slot<L, T> {
        self.slot(L::with(State::cpu))
    }

    fn hold(&self, cpu: CpuId) -> Option<Held<'_, L, T>> {
        let slot = self.slot(cpu);
        if slot.held.replace(true) {
            return None;
        }
        slot.charged(Path::Hold);
        Some(Held { slot, cpu, cold: slot.cold.borrow_mut() })
    }
}

impl<L: Entered, T> Slot<L, T> {
    /// Charges an operation on the slot.
    #[inline]
    fn charged(&self, path: Path) {
        L::path(path, self.line);
    }

    #[inline]
    fn count(&self, event: Event, n: u64) {
        let count = &self.counts[event as usize];
        count.set(count.get() + n);
        L::counted(event);
    }
}

impl<L: Entered, T: Default> PerCpu<Addr, T> for Slots<L, T> {
    type Local<'a>
        = Held<'a, L, T>
    where
        T: 'a;

    fn new(_link_offset: u32) -> Self {
        Slots { slots: (0..L::with(State::cpus)).map(|_| OnceCell::new()).collect() }
    }

    #[inline]
    fn pop_if(&self, want: Want, event: Event) -> Option<Addr> {
        let slot = self.mine();
        let list = slot.list.get();
        let object = list.head?;
        if !want.met(list.tag) || slot.held.get() {
            return None;
        }
        slot.charged(Path::ListPop);
        let head = L::with(|state| L::link(state, object));
        slot.list.set(HotList { head, count: list.count - 1, tag: list.tag });
        if let (true, Some(next)) = (L::TIMED, head) {
            L::with(|state| state.memory.warm(next));
        }
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
        slot.charged(Path::ListPush);
        L::with(|state| L::set_link(state, object, list.head));
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
        slot.charged(Path::ArrayPop);
        let size = array.size - 1;
        let storage = array.storage?;
        let object = L::with(|state| state.storage_load(storage, HotArray::<Addr>::HEADER + size));
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
        slot.charged(Path::ArrayPush);
        let index = HotArray::<Addr>::HEADER + array.size;
        L::with(|state| state.storage_store(storage, index, Some(object)));
        slot.array.set(HotArray { size: array.size + 1, ..array });
        slot.count(event, 1);
        true
    }

    fn local(&self) -> Option<Held<'_, L, T>> {
        self.hold(L::with(State::cpu))
    }

    fn claim(&self, cpu: CpuId) -> Option<Held<'_, L, T>> {
        // Between two events the modelled world stands still: every slot that is not held can be taken.
        self.hold(cpu)
    }

    fn ask(&self, cpu: CpuId) {
        let slot = self.slot(cpu);
        L::word(slot.line, Access::Write);
        slot.asked.set(true);
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
pub struct Held<'a, L: Entered, T> {
    slot: &'a Slot<L, T>,
    cpu: CpuId,
    cold: RefMut<'a, T>,
}

impl<L: Entered, T> Drop for Held<'_, L, T> {
    fn drop(&mut self) {
        self.slot.held.set(false);
    }
}

impl<L: Entered, T> Deref for Held<'_, L, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.cold
    }
}

impl<L: Entered, T> DerefMut for Held<'_, L, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.cold
    }
}

/// No operation has a cheaper first part here. Tests call on the model what a malloc calls on its own world.
impl<L: Entered, T: Default> Shortcut<Addr, T> for Slots<L, T> {
    type Arrays = ();
    fn arrays(&self) {}
}

impl<L: Entered, T> Local<Addr, T> for Held<'_, L, T> {
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
    fn reserved(&self) -> u64 {
        L::with(|state| state.reserved[self.cpu.0 as usize].get())
    }
    fn reserve(&mut self, bytes: i64) {
        L::with(|state| {
            let reserved = &state.reserved[self.cpu.0 as usize];
            reserved.set(reserved.get().wrapping_add_signed(bytes));
        });
    }
    fn asked(&mut self) -> bool {
        self.slot.asked.replace(false)
    }
    fn count(&mut self, event: Event, n: u64) {
        self.slot.count(event, n);
    }
}

/// One value per node, made when first asked for.
pub struct Nodes<L, T> {
    values: Box<[OnceCell<Box<T>>]>,
    level: PhantomData<L>,
}

impl<L: Entered, T: Default> PerNode<T> for Nodes<L, T> {
    fn new() -> Self {
        let values = (0..L::with(State::nodes)).map(|_| OnceCell::new()).collect();
        Nodes { values, level: PhantomData }
    }
    #[inline]
    fn get(&self, node: NodeId) -> &T {
        self.values[node.0 as usize].get_or_init(|| L::together(Some(node), Box::default))
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.values[node.0 as usize].get().map(|value| &**value)
    }
}

/// One value per CPU, made when first asked for.
pub struct Cpus<L, T> {
    values: Box<[OnceCell<Box<T>>]>,
    level: PhantomData<L>,
}

impl<L: Entered, T: Default> CpuShared<T> for Cpus<L, T> {
    fn new() -> Self {
        let values = (0..L::with(State::cpus)).map(|_| OnceCell::new()).collect();
        Cpus { values, level: PhantomData }
    }
    #[inline]
    fn get(&self, cpu: CpuId) -> &T {
        let made = || L::together(Some(L::with(|state| state.cpu_node(cpu))), Box::default);
        self.values[cpu.0 as usize].get_or_init(made)
    }
    fn peek(&self, cpu: CpuId) -> Option<&T> {
        self.values[cpu.0 as usize].get().map(|value| &**value)
    }
}
