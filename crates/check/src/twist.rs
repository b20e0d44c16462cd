//! Any world with one change.
//!
//! [`Twisted`] forwards the contract to the world inside. A [`Twist`] overrides the functions that change.
//! [`Twisted`] forwards all functions that a twist cannot override.

use slablab_platform::conformance::Testable;
use slablab_platform::{
    CpuId, Event, Frame, HotArray, HotList, Local, PerCpu, Pfn, Platform, Rank, SlotOf, Want, delegate,
};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// World `P` with the twist `T`.
#[derive(Debug)]
pub struct Twisted<P, T>(PhantomData<(P, T)>);

/// The change. Each function that an implementation does not define forwards to the world inside.
pub trait Twist<P: Testable>: Sized + 'static {
    /// Whether operations on an idle slot succeed.
    const SERVES: bool = P::SERVES;

    /// The frame whose descriptor [`Frames::with_frame`](slablab_platform::Frames::with_frame) passes on.
    fn frame(pfn: Pfn) -> Pfn {
        pfn
    }
    /// The place of the word of a map that [`Frames::with_map`](slablab_platform::Frames::with_map) passes
    /// on.
    fn map_word(index: u32) -> u32 {
        index
    }
    /// The object whose link the contract's `link` and `set_link` read and write.
    fn linked(object: P::Ptr) -> P::Ptr {
        object
    }
    /// [`Memory::set_link`](slablab_platform::Memory::set_link).
    fn set_link(object: P::Ptr, offset: u32, next: Option<P::Ptr>) {
        P::set_link(Self::linked(object), offset, next);
    }
    /// Called after a descriptor was read or written, before a link or storage is read, and before
    /// [`Testable::on_cpu`] changes the CPU.
    fn settle() {}

    // The functions of the contract by their names.
    delegate! { P: cpu_memory_node distance node_frames locate set_half storage_attach storage_store fill mark_live
    now random defer after_grace_period permit count }

    /// [`PerCpu::pop_if`].
    fn pop_if<C: Default>(slots: &TwistedSlots<P, Self, C>, want: Want, event: Event) -> Option<P::Ptr> {
        slots.inner.pop_if(want, event)
    }
    /// [`PerCpu::push_if`].
    fn push_if<C: Default>(
        slots: &TwistedSlots<P, Self, C>,
        want: Want,
        limit: u32,
        object: P::Ptr,
        event: Event,
    ) -> bool {
        slots.inner.push_if(want, limit, object, event)
    }
    /// [`PerCpu::pop`].
    fn pop<C: Default>(slots: &TwistedSlots<P, Self, C>, event: Event) -> Option<P::Ptr> {
        slots.inner.pop(event)
    }
    /// [`PerCpu::push`].
    fn push<C: Default>(slots: &TwistedSlots<P, Self, C>, object: P::Ptr, event: Event) -> bool {
        slots.inner.push(object, event)
    }
    /// Whether [`PerCpu::local`] calls the world inside. If not, it returns `None`.
    fn local_asks() -> bool {
        true
    }
    /// [`PerCpu::claim`].
    fn claim<C: Default>(slots: &TwistedSlots<P, Self, C>, cpu: CpuId) -> Option<Inner<'_, P, C>> {
        slots.inner.claim(cpu)
    }
    /// [`PerCpu::ask`].
    fn ask<C: Default>(slots: &TwistedSlots<P, Self, C>, cpu: CpuId) {
        slots.inner.ask(cpu);
    }
    /// [`PerCpu::count`].
    fn count_in_slot<C: Default>(slots: &TwistedSlots<P, Self, C>, event: Event, n: u64) {
        slots.inner.count(event, n);
    }
    /// The list that [`Local::set_list`] sets.
    fn list(list: HotList<P::Ptr>) -> HotList<P::Ptr> {
        list
    }
}

delegate! { impl[P: Testable, T: Twist<P>] Topology for Twisted<P, T> => P:
        cpus nodes page_shift cpu cpu_node cpu_online;
    delegate! { P => T: cpu_memory_node distance node_frames }
}
delegate! { impl[P: Testable, T: Twist<P>] Frames for Twisted<P, T> => P:
        address commit_descriptors commit_frames has_memory map_slab unmap_slab;
    delegate! { P => T: locate }
    fn with_map<R>(pfn: Pfn, index: u32, f: impl FnOnce(&P::Word) -> R) -> R {
        P::with_map(pfn, T::map_word(index), f)
    }
    fn with_frame<R>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> R) -> R {
        let result = P::with_frame(T::frame(pfn), f);
        T::settle();
        result
    }
}
delegate! { impl[P: Testable, T: Twist<P>] Memory for Twisted<P, T> => P: half storage_detach differs word set_word;
    delegate! { P => T: set_link set_half storage_attach storage_store fill mark_live }
    fn link(object: P::Ptr, offset: u32) -> Option<P::Ptr> {
        T::settle();
        P::link(T::linked(object), offset)
    }
    fn storage_load(object: P::Ptr, index: u32) -> Option<P::Ptr> {
        T::settle();
        P::storage_load(object, index)
    }
}
delegate! { impl[P: Testable, T: Twist<P>] Time for Twisted<P, T> => P: context;
    delegate! { P => T: now defer after_grace_period }
}
delegate! { impl[P: Testable, T: Twist<P>] Hooks for Twisted<P, T> => P: secret reclaim is_reclaimer
        clean_frames keeps_freed broken;
    delegate! { P => T: random permit count }
}
delegate! { impl[P: Testable, T: Twist<P>] Testable for Twisted<P, T> => P: COUNTS STANDS_STILL SYMMETRIC
        claims_live set_online still advance end_grace_period due counted race;
    const SERVES: bool = T::SERVES;
    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
        // The thread does all delayed writes before it changes the CPU.
        T::settle();
        P::on_cpu(cpu, || {
            let result = f();
            T::settle();
            result
        })
    }
}

impl<P: Testable, T: Twist<P>> Platform for Twisted<P, T> {
    type Ground = Self;
    type Lock<R: Rank, V> = P::Lock<R, V>;
    type PerCpu<C: Default> = TwistedSlots<P, T, C>;
    type PerNode<C: Default> = P::PerNode<C>;
    type CpuShared<C: Default> = P::CpuShared<C>;
}

/// A slot of the world inside, held.
pub type Inner<'a, P, C> = SlotOf<'a, P, C>;

/// The slots of a twisted world.
pub struct TwistedSlots<P: Testable, T, C: Default> {
    /// The slots of the world inside.
    pub inner: P::PerCpu<C>,
    /// Where objects keep their link.
    pub link_offset: u32,
    /// How many slots are held now.
    pub held: Cell<u32>,
    twist: PhantomData<T>,
}

impl<P: Testable, T: Twist<P>, C: Default> TwistedSlots<P, T, C> {
    fn held<'a>(&'a self, inner: Inner<'a, P, C>) -> TwistedLocal<'a, P, T, C> {
        self.held.set(self.held.get() + 1);
        TwistedLocal { inner, held: &self.held, twist: PhantomData }
    }
}

impl<P: Testable, T: Twist<P>, C: Default> PerCpu<P::Ptr, C> for TwistedSlots<P, T, C> {
    type Local<'a>
        = TwistedLocal<'a, P, T, C>
    where
        C: 'a;

    fn new(link_offset: u32) -> Self {
        let inner = P::PerCpu::new(link_offset);
        TwistedSlots { inner, link_offset, held: Cell::new(0), twist: PhantomData }
    }
    fn pop_if(&self, want: Want, event: Event) -> Option<P::Ptr> {
        T::pop_if(self, want, event)
    }
    fn push_if(&self, want: Want, limit: u32, object: P::Ptr, event: Event) -> bool {
        T::push_if(self, want, limit, object, event)
    }
    fn pop(&self, event: Event) -> Option<P::Ptr> {
        T::pop(self, event)
    }
    fn push(&self, object: P::Ptr, event: Event) -> bool {
        T::push(self, object, event)
    }
    fn local(&self) -> Option<Self::Local<'_>> {
        let inner = if T::local_asks() { self.inner.local() } else { None };
        inner.map(|inner| self.held(inner))
    }
    fn claim(&self, cpu: CpuId) -> Option<Self::Local<'_>> {
        T::claim(self, cpu).map(|inner| self.held(inner))
    }
    fn ask(&self, cpu: CpuId) {
        T::ask(self, cpu);
    }
    fn count(&self, event: Event, n: u64) {
        T::count_in_slot(self, event, n);
    }
    fn counted(&self, cpu: CpuId, event: Event) -> u64 {
        self.inner.counted(cpu, event)
    }
    fn used(&self, cpu: CpuId) -> bool {
        self.inner.used(cpu)
    }
}

/// A slot of a twisted world, held.
pub struct TwistedLocal<'a, P: Testable, T, C: Default + 'a> {
    inner: Inner<'a, P, C>,
    held: &'a Cell<u32>,
    twist: PhantomData<T>,
}

impl<P: Testable, T, C: Default> Drop for TwistedLocal<'_, P, T, C> {
    fn drop(&mut self) {
        self.held.set(self.held.get() - 1);
    }
}

impl<P: Testable, T, C: Default> Deref for TwistedLocal<'_, P, T, C> {
    type Target = C;
    fn deref(&self) -> &C {
        &self.inner
    }
}

impl<P: Testable, T, C: Default> DerefMut for TwistedLocal<'_, P, T, C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.inner
    }
}

impl<P: Testable, T: Twist<P>, C: Default> Local<P::Ptr, C> for TwistedLocal<'_, P, T, C> {
    fn cpu(&self) -> CpuId {
        self.inner.cpu()
    }
    fn list(&self) -> HotList<P::Ptr> {
        self.inner.list()
    }
    fn set_list(&mut self, list: HotList<P::Ptr>) {
        self.inner.set_list(T::list(list));
    }
    fn array(&self) -> HotArray<P::Ptr> {
        self.inner.array()
    }
    fn set_array(&mut self, array: HotArray<P::Ptr>) {
        self.inner.set_array(array);
    }
    fn reserved(&self) -> u64 {
        self.inner.reserved()
    }
    fn reserve(&mut self, bytes: i64) {
        self.inner.reserve(bytes);
    }
    fn asked(&mut self) -> bool {
        self.inner.asked()
    }
    fn count(&mut self, event: Event, n: u64) {
        self.inner.count(event, n);
    }
}
