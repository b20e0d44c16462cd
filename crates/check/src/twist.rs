//! Any world with one thing changed.
//!
//! [`Twisted`] forwards the contract to the world inside; a [`Twist`] says, by overriding a function, what is different.
//! What cannot be overridden is forwarded as it is.

use slablab_platform::conformance::{Racer, Testable, Verdict};
use slablab_platform::{
    Context, CpuId, Event, Frame, Gfp, HotArray, HotList, Local, NodeId, PerCpu, Pfn, Platform, Rank,
    Reclaim, Want, Work,
};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// World `P` with the twist `T`.
#[derive(Debug)]
pub struct Twisted<P, T>(PhantomData<(P, T)>);

/// What is different. Every function does by default what the world inside does.
pub trait Twist<P: Testable>: Sized + 'static {
    /// Whether an idle slot is served.
    const SERVES: bool = P::SERVES;

    /// [`Platform::cpu_memory_node`].
    fn cpu_memory_node(cpu: CpuId) -> NodeId {
        P::cpu_memory_node(cpu)
    }
    /// [`Platform::distance`].
    fn distance(from: NodeId, to: NodeId) -> u32 {
        P::distance(from, to)
    }
    /// [`Platform::node_frames`].
    fn node_frames(node: NodeId) -> (Pfn, u32) {
        P::node_frames(node)
    }
    /// The frame whose descriptor [`Platform::with_frame`] gives.
    fn frame(pfn: Pfn) -> Pfn {
        pfn
    }
    /// [`Platform::locate`].
    fn locate(object: P::Ptr) -> (Pfn, u32) {
        P::locate(object)
    }
    /// The object whose link [`Platform::link`] and [`Platform::set_link`] take.
    fn linked(object: P::Ptr) -> P::Ptr {
        object
    }
    /// [`Platform::set_link`].
    fn set_link(object: P::Ptr, offset: u32, next: Option<P::Ptr>) {
        P::set_link(Self::linked(object), offset, next);
    }
    /// [`Platform::set_half`].
    fn set_half(at: P::Ptr, value: u16) {
        P::set_half(at, value);
    }
    /// Called after a frame was looked at, before a link or storage is read, and before [`Testable::on_cpu`] goes elsewhere.
    fn settle() {}
    /// [`Platform::storage_attach`].
    fn storage_attach(object: P::Ptr, words: u32) {
        P::storage_attach(object, words);
    }
    /// [`Platform::storage_store`].
    fn storage_store(object: P::Ptr, index: u32, value: Option<P::Ptr>) {
        P::storage_store(object, index, value);
    }
    /// [`Platform::fill`].
    fn fill(at: P::Ptr, bytes: u32, value: u8) {
        P::fill(at, bytes, value);
    }
    /// [`Platform::mark_live`].
    fn mark_live(object: P::Ptr, live: bool) -> bool {
        P::mark_live(object, live)
    }
    /// [`Platform::now`].
    fn now() -> u64 {
        P::now()
    }
    /// [`Platform::random`].
    fn random() -> u32 {
        P::random()
    }
    /// [`Platform::defer`].
    fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
        P::defer(cpu, delay_ns, work);
    }
    /// [`Platform::after_grace_period`].
    fn after_grace_period(work: Work) {
        P::after_grace_period(work);
    }
    /// [`Platform::permit`].
    fn permit(order: u8, gfp: Gfp) -> bool {
        P::permit(order, gfp)
    }
    /// [`Platform::count`].
    fn count(event: Event, n: u64) {
        P::count(event, n);
    }

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
    /// Whether [`PerCpu::local`] asks the world inside at all.
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
    /// What [`Local::set_list`] sets.
    fn list(list: HotList<P::Ptr>) -> HotList<P::Ptr> {
        list
    }
}

impl<P: Testable, T: Twist<P>> Platform for Twisted<P, T> {
    type Ptr = P::Ptr;
    type Ground = Self;
    type Word = P::Word;
    type Field = P::Field;
    type Lock<R: Rank, V> = P::Lock<R, V>;
    type PerCpu<C: Default> = TwistedSlots<P, T, C>;
    type PerNode<C: Default> = P::PerNode<C>;
    type CpuShared<C: Default> = P::CpuShared<C>;

    fn cpus() -> u16 {
        P::cpus()
    }
    fn nodes() -> u16 {
        P::nodes()
    }
    fn page_shift() -> u32 {
        P::page_shift()
    }
    fn cpu() -> CpuId {
        P::cpu()
    }
    fn cpu_node(cpu: CpuId) -> NodeId {
        P::cpu_node(cpu)
    }
    fn cpu_memory_node(cpu: CpuId) -> NodeId {
        T::cpu_memory_node(cpu)
    }
    fn distance(from: NodeId, to: NodeId) -> u32 {
        T::distance(from, to)
    }
    fn node_frames(node: NodeId) -> (Pfn, u32) {
        T::node_frames(node)
    }
    fn cpu_online(cpu: CpuId) -> bool {
        P::cpu_online(cpu)
    }

    fn with_frame<R>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> R) -> R {
        let result = P::with_frame(T::frame(pfn), f);
        T::settle();
        result
    }
    fn address(pfn: Pfn, offset: u64) -> P::Ptr {
        P::address(pfn, offset)
    }
    fn locate(object: P::Ptr) -> (Pfn, u32) {
        T::locate(object)
    }
    fn map_slab(pfn: Pfn, order: u8, size: u32, cache: u32) {
        P::map_slab(pfn, order, size, cache);
    }
    fn unmap_slab(pfn: Pfn, order: u8) {
        P::unmap_slab(pfn, order);
    }
    fn link(object: P::Ptr, offset: u32) -> Option<P::Ptr> {
        T::settle();
        P::link(T::linked(object), offset)
    }
    fn set_link(object: P::Ptr, offset: u32, next: Option<P::Ptr>) {
        T::set_link(object, offset, next);
    }
    fn half(at: P::Ptr) -> u16 {
        P::half(at)
    }
    fn set_half(at: P::Ptr, value: u16) {
        T::set_half(at, value);
    }
    fn storage_attach(object: P::Ptr, words: u32) {
        T::storage_attach(object, words);
    }
    fn storage_load(object: P::Ptr, index: u32) -> Option<P::Ptr> {
        T::settle();
        P::storage_load(object, index)
    }
    fn storage_store(object: P::Ptr, index: u32, value: Option<P::Ptr>) {
        T::storage_store(object, index, value);
    }
    fn storage_detach(object: P::Ptr) {
        P::storage_detach(object);
    }
    fn fill(at: P::Ptr, bytes: u32, value: u8) {
        T::fill(at, bytes, value);
    }
    fn differs(at: P::Ptr, bytes: u32, value: u8) -> Option<(u32, u8)> {
        P::differs(at, bytes, value)
    }
    fn word(at: P::Ptr) -> u64 {
        P::word(at)
    }
    fn set_word(at: P::Ptr, value: u64) {
        P::set_word(at, value);
    }
    fn mark_live(object: P::Ptr, live: bool) -> bool {
        T::mark_live(object, live)
    }

    fn now() -> u64 {
        T::now()
    }
    fn context() -> Context {
        P::context()
    }
    fn random() -> u32 {
        T::random()
    }
    fn secret() -> u64 {
        P::secret()
    }
    fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
        T::defer(cpu, delay_ns, work);
    }
    fn after_grace_period(work: Work) {
        T::after_grace_period(work);
    }

    fn reclaim(ask: Reclaim) -> bool {
        P::reclaim(ask)
    }
    fn permit(order: u8, gfp: Gfp) -> bool {
        T::permit(order, gfp)
    }
    fn count(event: Event, n: u64) {
        T::count(event, n);
    }
}

impl<P: Testable, T: Twist<P>> Testable for Twisted<P, T> {
    const COUNTS: bool = P::COUNTS;
    const SERVES: bool = T::SERVES;
    const STANDS_STILL: bool = P::STANDS_STILL;
    const SYMMETRIC: bool = P::SYMMETRIC;

    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
        // One thread that goes from CPU to CPU leaves nothing undone behind.
        T::settle();
        P::on_cpu(cpu, || {
            let result = f();
            T::settle();
            result
        })
    }
    fn set_online(cpu: CpuId, online: bool) {
        P::set_online(cpu, online);
    }
    fn still<R>(f: impl FnOnce() -> R) -> R {
        P::still(f)
    }
    fn advance(ns: u64) {
        P::advance(ns);
    }
    fn end_grace_period() {
        P::end_grace_period();
    }
    fn due() -> Option<(CpuId, Work)> {
        P::due()
    }
    fn counted(event: Event) -> u64 {
        P::counted(event)
    }
    fn race<S: 'static>(shared: S, first: Racer<S>, second: Racer<S>, last: fn(&S) -> Verdict) -> Verdict {
        P::race(shared, first, second, last)
    }
}

/// A slot of the world inside, held.
pub type Inner<'a, P, C> = <<P as Platform>::PerCpu<C> as PerCpu<P, C>>::Local<'a>;

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

impl<P: Testable, T: Twist<P>, C: Default> PerCpu<Twisted<P, T>, C> for TwistedSlots<P, T, C> {
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

impl<P: Testable, T: Twist<P>, C: Default> Local<Twisted<P, T>, C> for TwistedLocal<'_, P, T, C> {
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
    fn asked(&mut self) -> bool {
        self.inner.asked()
    }
    fn count(&mut self, event: Event, n: u64) {
        self.inner.count(event, n);
    }
}
