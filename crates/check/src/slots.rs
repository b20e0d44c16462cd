//! Per-CPU slots, per-node values and ranked locks of the checking world.
//!
//! Lock order: none, because threads only try to lock a slot's mutex and never wait for it. The thread that
//! creates a cache also creates its slots and values. If they were created later, that would need an
//! ordering, which could hide a missing ordering of the engine.

use crate::kit::Kit;
use crate::machine::{Address, Machine};
use slablab_platform::{
    CpuId, CpuShared, Event, HotArray, HotList, Local, Lock, NodeId, PerCpu, PerNode, Rank, Shortcut, Want,
    Word,
};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// One slot per CPU.
pub struct Slots<K: Kit, T> {
    slots: Vec<Slot<K, T>>,
    link_offset: u32,
}

/// A hot operation is one `try_lock` of the mutex. So other threads run before or after the operation, never
/// inside it (loom), or are refused if they run inside it (shuttle). A restartable sequence guarantees this
/// too.
struct Slot<K: Kit, T> {
    state: K::Mutex<State<T>>,
    asked: K::Word,
    counts: [Cell<u64>; Event::COUNT],
    used: Cell<bool>,
}

struct State<T> {
    list: HotList<Address>,
    array: HotArray<Address>,
    cold: T,
}

type StateGuard<'a, K, T> = <<K as Kit>::Mutex<State<T>> as Lock<State<T>>>::Guard<'a>;

impl<K: Kit, T: Default> Slot<K, T> {
    fn new() -> Self {
        let state = State { list: HotList::EMPTY, array: HotArray::NONE, cold: T::default() };
        Slot {
            state: K::Mutex::new(state),
            asked: K::Word::new(0),
            counts: [const { Cell::new(0) }; Event::COUNT],
            used: Cell::new(false),
        }
    }
}

impl<K: Kit, T> Slot<K, T> {
    /// The slot's state, or `None` if the slot is held.
    fn idle(&self) -> Option<StateGuard<'_, K, T>> {
        self.used.set(true);
        self.state.try_lock()
    }

    fn hold(&self, cpu: CpuId) -> Option<Held<'_, K, T>> {
        self.idle().map(|state| Held { slot: self, state, cpu })
    }

    fn count(&self, event: Event, n: u64) {
        self.used.set(true);
        let count = &self.counts[event as usize];
        count.set(count.get() + n);
    }
}

/// The CPU that this thread runs on.
fn cpu<K: Kit>() -> CpuId {
    CpuId(K::running(|running| running.cpu.get()))
}

impl<K: Kit, T> Slots<K, T> {
    fn slot(&self, cpu: CpuId) -> &Slot<K, T> {
        &self.slots[cpu.0 as usize]
    }

    fn mine(&self) -> &Slot<K, T> {
        self.slot(cpu::<K>())
    }
}

impl<K: Kit, T: Default> PerCpu<Address, T> for Slots<K, T> {
    type Local<'a>
        = Held<'a, K, T>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        Slots { slots: (0..Machine::<K>::entered().cpus()).map(|_| Slot::new()).collect(), link_offset }
    }

    fn pop_if(&self, want: Want, event: Event) -> Option<Address> {
        let slot = self.mine();
        let mut state = slot.idle()?;
        let object = state.list.head.filter(|_| want.met(state.list.tag))?;
        state.list.head = Machine::<K>::entered().read(object, self.link_offset);
        state.list.count -= 1;
        slot.count(event, 1);
        Some(object)
    }

    fn push_if(&self, want: Want, limit: u32, object: Address, event: Event) -> bool {
        assert!(limit <= HotList::<Address>::COUNT_MAX, "limit {limit}: a count would run into the head");
        let slot = self.mine();
        let Some(mut state) = slot.idle() else { return false };
        if !want.met(state.list.tag) || state.list.count >= limit {
            return false;
        }
        Machine::<K>::entered().write(object, self.link_offset, state.list.head);
        state.list.head = Some(object);
        state.list.count += 1;
        slot.count(event, 1);
        true
    }

    fn pop(&self, event: Event) -> Option<Address> {
        let slot = self.mine();
        let mut state = slot.idle()?;
        let size = state.array.size.checked_sub(1)?;
        let object = Machine::<K>::entered().load(state.array.storage?, HotArray::<Address>::HEADER + size);
        state.array.size = size;
        slot.count(event, 1);
        object
    }

    fn push(&self, object: Address, event: Event) -> bool {
        let slot = self.mine();
        let Some(mut state) = slot.idle() else { return false };
        let HotArray { storage, size, capacity } = state.array;
        let (Some(storage), true) = (storage, size < capacity) else { return false };
        Machine::<K>::entered().store(storage, HotArray::<Address>::HEADER + size, Some(object));
        state.array.size = size + 1;
        slot.count(event, 1);
        true
    }

    fn local(&self) -> Option<Held<'_, K, T>> {
        let cpu = cpu::<K>();
        self.slot(cpu).hold(cpu)
    }

    fn claim(&self, cpu: CpuId) -> Option<Held<'_, K, T>> {
        let machine = Machine::<K>::entered();
        let live = machine.online[cpu.0 as usize].get() && !machine.still.get();
        if live { None } else { self.slot(cpu).hold(cpu) }
    }

    fn ask(&self, cpu: CpuId) {
        self.slot(cpu).asked.store_release(1);
    }

    fn count(&self, event: Event, n: u64) {
        self.mine().count(event, n);
    }

    fn counted(&self, cpu: CpuId, event: Event) -> u64 {
        self.slot(cpu).counts[event as usize].get()
    }

    fn used(&self, cpu: CpuId) -> bool {
        self.slot(cpu).used.get()
    }
}

impl<K: Kit, T: Default> Shortcut<Address, T> for Slots<K, T> {
    type Arrays = ();
    fn arrays(&self) {}

    fn swaps_arrays() -> bool {
        true
    }

    fn swap_array<R>(
        &self,
        f: impl FnOnce(&T, HotArray<Address>) -> Option<(HotArray<Address>, R)>,
    ) -> Option<R> {
        let mut state = self.mine().idle()?;
        let (after, answer) = f(&state.cold, state.array)?;
        assert!(after.storage.is_some() && after.size <= after.capacity, "{after:?} for {:?}", state.array);
        state.array = after;
        Some(answer)
    }
}

/// A slot held exclusively.
pub struct Held<'a, K: Kit, T> {
    slot: &'a Slot<K, T>,
    state: StateGuard<'a, K, T>,
    cpu: CpuId,
}

impl<K: Kit, T> Deref for Held<'_, K, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.state.cold
    }
}

impl<K: Kit, T> DerefMut for Held<'_, K, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.state.cold
    }
}

impl<K: Kit, T> Local<Address, T> for Held<'_, K, T> {
    fn cpu(&self) -> CpuId {
        self.cpu
    }
    fn list(&self) -> HotList<Address> {
        self.state.list
    }
    fn set_list(&mut self, list: HotList<Address>) {
        assert!(list.count <= HotList::<Address>::COUNT_MAX, "{} objects on a hot list", list.count);
        assert_eq!(list.head.is_some(), list.count > 0, "head and count disagree");
        self.state.list = list;
    }
    fn array(&self) -> HotArray<Address> {
        self.state.array
    }
    fn set_array(&mut self, array: HotArray<Address>) {
        assert!(array.size <= array.capacity, "{} of {} in a hot array", array.size, array.capacity);
        assert!(
            array.storage.is_some() || array.capacity == 0,
            "capacity {} without storage",
            array.capacity
        );
        self.state.array = array;
    }
    fn reserved(&self) -> u64 {
        Machine::<K>::entered().reserved[self.cpu.0 as usize].get()
    }
    fn reserve(&mut self, bytes: i64) {
        let machine = Machine::<K>::entered();
        let reserved = &machine.reserved[self.cpu.0 as usize];
        let after = reserved.get().checked_add_signed(bytes);
        reserved.set(after.expect("no more bytes are taken off than were counted"));
    }
    fn asked(&mut self) -> bool {
        self.slot.asked.compare_exchange(1, 0).is_ok()
    }
    fn count(&mut self, event: Event, n: u64) {
        self.slot.count(event, n);
    }
}

/// One value per node or per CPU.
pub struct Made<K, T> {
    values: Vec<(T, Cell<bool>)>,
    kit: PhantomData<K>,
}

impl<K: Kit, T: Default> Made<K, T> {
    fn of(count: u16) -> Self {
        Made { values: (0..count).map(|_| (T::default(), Cell::new(false))).collect(), kit: PhantomData }
    }
    fn at(&self, index: u16) -> &T {
        let (value, asked) = &self.values[index as usize];
        asked.set(true);
        value
    }
    fn asked(&self, index: u16) -> Option<&T> {
        let (value, asked) = &self.values[index as usize];
        asked.get().then_some(value)
    }
}

impl<K: Kit, T: Default> PerNode<T> for Made<K, T> {
    fn new() -> Self {
        Made::of(Machine::<K>::entered().nodes())
    }
    fn get(&self, node: NodeId) -> &T {
        self.at(node.0)
    }
    fn peek(&self, node: NodeId) -> Option<&T> {
        self.asked(node.0)
    }
}

impl<K: Kit, T: Default> CpuShared<T> for Made<K, T> {
    fn new() -> Self {
        Made::of(Machine::<K>::entered().cpus())
    }
    fn get(&self, cpu: CpuId) -> &T {
        self.at(cpu.0)
    }
    fn peek(&self, cpu: CpuId) -> Option<&T> {
        self.asked(cpu.0)
    }
}

/// A lock that checks the lock order and counts its acquisitions.
pub struct Ranked<K: Kit, R, T> {
    mutex: K::Mutex<T>,
    rank: PhantomData<fn() -> R>,
}

impl<K: Kit, R: Rank, T> Ranked<K, R, T> {
    const BIT: u128 = 1 << R::LEVEL;

    fn in_order() {
        let held = K::running(|running| running.held.get());
        assert!(
            held < Self::BIT,
            "{} (level {}) taken while holding level {}",
            R::NAME,
            R::LEVEL,
            held.ilog2()
        );
    }

    fn taken<'a>(guard: <K::Mutex<T> as Lock<T>>::Guard<'a>) -> Guard<'a, K, R, T>
    where
        T: 'a,
    {
        K::running(|running| running.held.set(running.held.get() | Self::BIT));
        Machine::<K>::entered().count(R::EVENT, 1);
        Guard { guard, rank: PhantomData }
    }
}

impl<K: Kit, R: Rank, T> Lock<T> for Ranked<K, R, T> {
    type Guard<'a>
        = Guard<'a, K, R, T>
    where
        T: 'a;

    fn new(value: T) -> Self {
        Ranked { mutex: K::Mutex::new(value), rank: PhantomData }
    }
    fn lock(&self) -> Guard<'_, K, R, T> {
        // The check is before the wait, so that a wrong order is not reported as the deadlock that it may
        // cause.
        Self::in_order();
        Self::taken(self.mutex.lock())
    }
    fn try_lock(&self) -> Option<Guard<'_, K, R, T>> {
        let guard = self.mutex.try_lock()?;
        Self::in_order();
        Some(Self::taken(guard))
    }
}

/// A held lock.
pub struct Guard<'a, K: Kit, R: Rank, T: 'a> {
    guard: <K::Mutex<T> as Lock<T>>::Guard<'a>,
    rank: PhantomData<fn() -> R>,
}

impl<K: Kit, R: Rank, T> Drop for Guard<'_, K, R, T> {
    fn drop(&mut self) {
        // During a panic the tool may have no running thread.
        if !std::thread::panicking() {
            K::running(|running| running.held.set(running.held.get() & !Ranked::<K, R, T>::BIT));
        }
    }
}

impl<K: Kit, R: Rank, T> Deref for Guard<'_, K, R, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<K: Kit, R: Rank, T> DerefMut for Guard<'_, K, R, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
