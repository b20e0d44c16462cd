//! A world around the model that tells where each free object of one cache is.
//!
//! Engines and model are as they are: what a slot's operations, the words of storage and the mapping of slabs
//! say is enough. Read here, an object is
//!
//! | place | since |
//! |---|---|
//! | on a CPU's list | `push_if`, or `set_list` with a list that has it |
//! | in a CPU's array | `push`, or `set_array` with storage that has it |
//! | in other storage (a spare sheaf, a barn, a shared array) | a store into storage that no CPU has |
//! | free in its slab | all else: it was taken out of one of these |
//!
//! Whether an object is allocated, the replay says ([`Note`]).

use super::identity::Identity;
use super::watcher::{ELSEWHERE, IN_ARRAY, ON_LIST, Watcher};
use crate::replay::run::{Note, Replayed, RunOne, World};
use slablab_model::{Addr, Model};
use slablab_platform::{
    CpuId, Event, HotArray, HotList, Local, PerCpu, Pfn, Platform, Rank, SlotOf, Want, delegate,
};
use slablab_slabs::wrap::Hardened;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

thread_local! {
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
    static IDENTITY: RefCell<Option<Identity>> = const { RefCell::new(None) };
}

/// Runs `f` while an identity sees which slabs serve this thread, and returns both.
pub(super) fn identifying<R>(identity: Identity, f: impl FnOnce() -> R) -> (R, Identity) {
    IDENTITY.set(Some(identity));
    let result = f();
    (result, IDENTITY.take().expect("it was set above"))
}

fn identify(f: impl FnOnce(&mut Identity)) {
    IDENTITY.with_borrow_mut(|identity| {
        if let Some(identity) = identity {
            f(identity);
        }
    });
}

/// Runs `f` while a watcher sees what happens on this thread, and returns both.
pub(super) fn watching<R>(watcher: Watcher, f: impl FnOnce() -> R) -> (R, Watcher) {
    WATCHER.set(Some(watcher));
    let result = f();
    (result, WATCHER.take().expect("it was set above"))
}

fn tell(f: impl FnOnce(&mut Watcher)) {
    WATCHER.with_borrow_mut(|watcher| {
        if let Some(watcher) = watcher {
            f(watcher);
        }
    });
}

/// World `P`, watched.
#[derive(Debug)]
pub(crate) struct Watched<P>(PhantomData<P>);

impl World for Watched<Model> {
    fn noted(note: Note<'_>) {
        tell(|watcher| watcher.noted::<Model>(note));
        identify(|identity| identity.noted(note));
    }
    fn registered(table: &Replayed) -> RunOne {
        table.watched
    }
}

impl World for Watched<Hardened<Model>> {
    fn noted(note: Note<'_>) {
        tell(|watcher| watcher.noted::<Hardened<Model>>(note));
        identify(|identity| identity.noted(note));
    }
    fn registered(table: &Replayed) -> RunOne {
        table.watched_hardened
    }
}

delegate! { impl[P: Platform] Topology for Watched<P> => P }
delegate! { impl[P: Platform] Time for Watched<P> => P }
delegate! { impl[P: Platform] Hooks for Watched<P> => P }
delegate! { impl[P: Platform<Ptr = Addr>] Frames for Watched<P> => P: with_frame with_map address locate
        commit_descriptors commit_frames has_memory;
    fn map_slab(pfn: Pfn, order: u8, size: u32, cache: u32) {
        P::map_slab(pfn, order, size, cache);
        tell(|watcher| watcher.slab_taken(pfn, (1 << order, P::page_shift()), size, cache));
        identify(|identity| identity.taken(pfn, 1 << order));
    }
    fn unmap_slab(pfn: Pfn, order: u8) {
        P::unmap_slab(pfn, order);
        tell(|watcher| watcher.slab_returned(pfn, 1 << order));
        identify(|identity| identity.returned(pfn, 1 << order));
    }
}
delegate! { impl[P: Platform<Ptr = Addr>] Memory for Watched<P> => P: link set_link half set_half storage_attach
        storage_detach fill differs word set_word mark_live;
    fn storage_load(object: Addr, index: u32) -> Option<Addr> {
        let found = P::storage_load(object, index);
        if index >= HotArray::<Addr>::HEADER {
            tell(|watcher| watcher.leaves::<P>(found, &[IN_ARRAY, ELSEWHERE]));
        }
        found
    }
    fn storage_store(object: Addr, index: u32, value: Option<Addr>) {
        P::storage_store(object, index, value);
        if index >= HotArray::<Addr>::HEADER {
            tell(|watcher| watcher.is_at::<P>(value, ELSEWHERE, None));
        }
    }
}

impl<P: Platform<Ptr = Addr>> Platform for Watched<P> {
    type Ground = P::Ground;
    type Lock<R: Rank, T> = P::Lock<R, T>;
    type PerCpu<T: Default> = WatchedSlots<P, T>;
    type PerNode<T: Default> = P::PerNode<T>;
    type CpuShared<T: Default> = P::CpuShared<T>;
}

/// Slots that tell what enters and leaves them.
pub(crate) struct WatchedSlots<P: Platform, T: Default> {
    slots: P::PerCpu<T>,
    link_offset: u32,
}

impl<P: Platform<Ptr = Addr>, T: Default> PerCpu<Addr, T> for WatchedSlots<P, T> {
    type Local<'a>
        = WatchedLocal<'a, P, T>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        WatchedSlots { slots: P::PerCpu::new(link_offset), link_offset }
    }
    fn pop_if(&self, want: Want, event: Event) -> Option<Addr> {
        let object = self.slots.pop_if(want, event);
        tell(|watcher| watcher.leaves::<P>(object, &[ON_LIST]));
        object
    }
    fn push_if(&self, want: Want, limit: u32, object: Addr, event: Event) -> bool {
        let served = self.slots.push_if(want, limit, object, event);
        tell(|watcher| watcher.is_at::<P>(Some(object).filter(|_| served), ON_LIST, Some(P::cpu())));
        served
    }
    fn pop(&self, event: Event) -> Option<Addr> {
        let object = self.slots.pop(event);
        tell(|watcher| watcher.leaves::<P>(object, &[IN_ARRAY]));
        object
    }
    fn push(&self, object: Addr, event: Event) -> bool {
        let served = self.slots.push(object, event);
        tell(|watcher| watcher.is_at::<P>(Some(object).filter(|_| served), IN_ARRAY, Some(P::cpu())));
        served
    }
    fn local(&self) -> Option<Self::Local<'_>> {
        Some(WatchedLocal { local: self.slots.local()?, link_offset: self.link_offset })
    }
    fn claim(&self, cpu: CpuId) -> Option<Self::Local<'_>> {
        Some(WatchedLocal { local: self.slots.claim(cpu)?, link_offset: self.link_offset })
    }
    fn close(&self, closed: bool) {
        self.slots.close(closed);
    }
    fn ask(&self, cpu: CpuId) {
        self.slots.ask(cpu);
    }
    fn count(&self, event: Event, n: u64) {
        self.slots.count(event, n);
    }
    fn counted(&self, cpu: CpuId, event: Event) -> u64 {
        self.slots.counted(cpu, event)
    }
    fn used(&self, cpu: CpuId) -> bool {
        self.slots.used(cpu)
    }
}

/// A held slot that tells which lists and arrays it gets.
pub(crate) struct WatchedLocal<'a, P: Platform<Ptr = Addr> + 'a, T: Default + 'a> {
    local: SlotOf<'a, P, T>,
    link_offset: u32,
}

impl<P: Platform<Ptr = Addr>, T: Default> Deref for WatchedLocal<'_, P, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.local
    }
}

impl<P: Platform<Ptr = Addr>, T: Default> DerefMut for WatchedLocal<'_, P, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.local
    }
}

impl<P: Platform<Ptr = Addr>, T: Default> WatchedLocal<'_, P, T> {
    /// Calls `f` with each object of a list.
    fn each(&self, list: HotList<Addr>, mut f: impl FnMut(Addr)) {
        let mut next = list.head;
        for _ in 0..list.count {
            let Some(object) = next else { return };
            f(object);
            next = P::link(object, self.link_offset);
        }
    }
}

impl<P: Platform<Ptr = Addr>, T: Default> Local<Addr, T> for WatchedLocal<'_, P, T> {
    fn cpu(&self) -> CpuId {
        self.local.cpu()
    }
    fn list(&self) -> HotList<Addr> {
        self.local.list()
    }
    fn set_list(&mut self, list: HotList<Addr>) {
        let cpu = self.local.cpu();
        // An engine links the objects of a list that it gives up before it replaces the list, so the old list
        // cannot be followed: the watcher knows who was on it.
        tell(|watcher| watcher.list_ends(cpu));
        self.local.set_list(list);
        self.each(list, |object| tell(|watcher| watcher.is_at::<P>(Some(object), ON_LIST, Some(cpu))));
    }
    fn array(&self) -> HotArray<Addr> {
        self.local.array()
    }
    fn set_array(&mut self, array: HotArray<Addr>) {
        let (cpu, old) = (self.local.cpu(), self.local.array());
        self.local.set_array(array);
        let words = |array: HotArray<Addr>, from: u32| {
            let storage = array.storage.filter(|_| array.size > from);
            let first = HotArray::<Addr>::HEADER;
            storage.into_iter().flat_map(move |storage| {
                (first + from..first + array.size).filter_map(move |index| P::storage_load(storage, index))
            })
        };
        if old.storage == array.storage {
            words(old, array.size).for_each(|object| tell(|w| w.leaves::<P>(Some(object), &[IN_ARRAY])));
        } else {
            words(old, 0).for_each(|object| tell(|watcher| watcher.moves::<P>(object, IN_ARRAY, ELSEWHERE)));
        }
        words(array, 0)
            .for_each(|object| tell(|watcher| watcher.is_at::<P>(Some(object), IN_ARRAY, Some(cpu))));
    }
    fn reserved(&self) -> u64 {
        self.local.reserved()
    }
    fn reserve(&mut self, bytes: i64) {
        self.local.reserve(bytes);
    }
    fn asked(&mut self) -> bool {
        self.local.asked()
    }
    fn count(&mut self, event: Event, n: u64) {
        self.local.count(event, n);
    }
}
