//! Links that nobody can forge: `SLAB_FREELIST_HARDENED` (4.14) as a world around a world.
//!
//! What is stored in a free object is the link, exclusive-or the world's secret, exclusive-or the
//! byte-swapped address of the word it is stored in (docs/theory/slub.md 7). An engine over [`Hardened`]
//! knows nothing of it: links are the world's. Who overwrites a link, or copies one, makes it lead to where
//! no slab of the cache is; that is seen when the link is followed, and ends the program, as a list that is
//! broken cannot be gone on with.
//!
//! A world and not an engine's wrapper because the links are made inside engines and read by slots: the one place that sees
//! all of them is [`Platform::link`]. The price: the slot's one-store operations read the link themselves, so here they are
//! done while the slot is held.

use crate::zones::ahead;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use slablab_pages::Pages;
use slablab_platform::conformance::{Racer, Testable, Verdict};
use slablab_platform::{
    Context, CpuId, Event, Field, Frame, FrameKind, Gfp, HotArray, HotList, Local, NodeId, PerCpu, Pfn,
    Platform, Rank, Reclaim, Want, Work,
};

/// World `P` with encoded links.
#[derive(Debug)]
pub struct Hardened<P>(PhantomData<P>);

impl<P: Platform> Hardened<P> {
    /// An address as a number that is never 0.
    fn number(at: P::Ptr) -> u64 {
        let (pfn, offset) = P::locate(at);
        ((pfn.0 as u64) << P::page_shift()) + offset as u64
    }

    fn key(word: P::Ptr) -> u64 {
        P::secret() ^ Self::number(word).swap_bytes()
    }

    /// The object that a decoded number stands for, if that can be one of the cache whose object it was read from.
    fn followed(object: P::Ptr, number: u64) -> Option<P::Ptr> {
        let frame = u32::try_from(number >> P::page_shift()).ok()?;
        let is_memory = |(first, count): (Pfn, u32)| (first.0..first.0 + count).contains(&frame);
        let exists = (0..P::nodes()).any(|node| is_memory(P::node_frames(NodeId(node))));
        if !exists || !number.is_multiple_of(8) {
            return None;
        }
        let next = P::address(Pfn(frame), number & ((1 << P::page_shift()) - 1));
        // Objects of one list are in slabs of one cache, whose number is in the low 24 bits of what an engine keeps of an
        // owner; only SLOB, which knows no caches, has objects with pages of their own as well.
        let block_of = |object| {
            let (head, state) = Pages::<P>::block_of(object)?;
            Some((state.kind, P::with_frame(head, |frame| frame.owner.get()) & 0xff_ffff))
        };
        let fits = match (block_of(object), block_of(next)) {
            (Some((FrameKind::Slab, own)), Some((FrameKind::Slab, other))) => own == other,
            (Some((FrameKind::Slab | FrameKind::Large, _)), other) => {
                matches!(other, Some((FrameKind::Slab | FrameKind::Large, _)))
            }
            // The checks of the contract map slabs without a page allocator.
            (own, other) => own == other,
        };
        fits.then_some(next)
    }
}

impl<P: Platform> Platform for Hardened<P> {
    type Ptr = P::Ptr;
    type Ground = P::Ground;
    type Word = P::Word;
    type Field = P::Field;
    type Lock<R: Rank, T> = P::Lock<R, T>;
    type PerCpu<T: Default> = HardenedSlots<P, T>;
    type PerNode<T: Default> = P::PerNode<T>;
    type CpuShared<T: Default> = P::CpuShared<T>;

    /// A link that leads to no object of the cache is [`Platform::broken`]: somebody wrote to a free object.
    fn link(object: P::Ptr, offset: u32) -> Option<P::Ptr> {
        let word = ahead::<P>(object, offset);
        let number = P::word(word) ^ Self::key(word);
        if number == 0 {
            return None;
        }
        let next = Self::followed(object, number);
        if next.is_none() {
            Self::broken(format_args!(
                "BUG: Freechain corrupt: the link of the object at {object:?} leads to {number:#x}, which is in no slab of its cache"
            ));
        }
        next
    }
    fn set_link(object: P::Ptr, offset: u32, next: Option<P::Ptr>) {
        let word = ahead::<P>(object, offset);
        P::set_word(word, next.map_or(0, Self::number) ^ Self::key(word));
    }

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
        P::cpu_memory_node(cpu)
    }
    fn distance(from: NodeId, to: NodeId) -> u32 {
        P::distance(from, to)
    }
    fn node_frames(node: NodeId) -> (Pfn, u32) {
        P::node_frames(node)
    }
    fn cpu_online(cpu: CpuId) -> bool {
        P::cpu_online(cpu)
    }
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T {
        P::with_frame(pfn, f)
    }
    fn address(pfn: Pfn, offset: u64) -> P::Ptr {
        P::address(pfn, offset)
    }
    fn locate(object: P::Ptr) -> (Pfn, u32) {
        P::locate(object)
    }
    fn map_slab(pfn: Pfn, order: u8, size: u32, cache: u32) {
        P::map_slab(pfn, order, size, cache);
    }
    fn unmap_slab(pfn: Pfn, order: u8) {
        P::unmap_slab(pfn, order);
    }
    fn half(at: P::Ptr) -> u16 {
        P::half(at)
    }
    fn set_half(at: P::Ptr, value: u16) {
        P::set_half(at, value);
    }
    fn storage_attach(object: P::Ptr, words: u32) {
        P::storage_attach(object, words);
    }
    fn storage_load(object: P::Ptr, index: u32) -> Option<P::Ptr> {
        P::storage_load(object, index)
    }
    fn storage_store(object: P::Ptr, index: u32, value: Option<P::Ptr>) {
        P::storage_store(object, index, value);
    }
    fn storage_detach(object: P::Ptr) {
        P::storage_detach(object);
    }
    fn fill(at: P::Ptr, bytes: u32, value: u8) {
        P::fill(at, bytes, value);
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
        P::mark_live(object, live)
    }
    fn now() -> u64 {
        P::now()
    }
    fn context() -> Context {
        P::context()
    }
    fn random() -> u32 {
        P::random()
    }
    fn secret() -> u64 {
        P::secret()
    }
    fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
        P::defer(cpu, delay_ns, work);
    }
    fn after_grace_period(work: Work) {
        P::after_grace_period(work);
    }
    fn reclaim(ask: Reclaim) -> bool {
        P::reclaim(ask)
    }
    fn permit(order: u8, gfp: Gfp) -> bool {
        P::permit(order, gfp)
    }
    fn commit_descriptors(first: Pfn, frames: u32) -> bool {
        P::commit_descriptors(first, frames)
    }
    fn commit_frames(first: Pfn, frames: u32) -> bool {
        P::commit_frames(first, frames)
    }
    fn count(event: Event, n: u64) {
        P::count(event, n);
    }
    fn broken(what: fmt::Arguments<'_>) -> ! {
        P::broken(what)
    }
}

/// Slots whose hot lists have encoded links.
pub struct HardenedSlots<P: Platform, T: Default> {
    slots: P::PerCpu<T>,
    link_offset: u32,
}

impl<P: Platform, T: Default> PerCpu<Hardened<P>, T> for HardenedSlots<P, T> {
    type Local<'a>
        = HardenedLocal<<P::PerCpu<T> as PerCpu<P, T>>::Local<'a>>
    where
        T: 'a;

    fn new(link_offset: u32) -> Self {
        HardenedSlots { slots: P::PerCpu::new(link_offset), link_offset }
    }
    fn pop_if(&self, want: Want, event: Event) -> Option<P::Ptr> {
        let mut slot = self.slots.local()?;
        let list = slot.list();
        let head = list.head.filter(|_| want.met(list.tag))?;
        let next = Hardened::<P>::link(head, self.link_offset);
        slot.set_list(HotList { head: next, count: list.count - 1, ..list });
        slot.count(event, 1);
        Some(head)
    }
    fn push_if(&self, want: Want, limit: u32, object: P::Ptr, event: Event) -> bool {
        let Some(mut slot) = self.slots.local() else { return false };
        let list = slot.list();
        let fits = want.met(list.tag) && list.count < limit;
        if fits {
            Hardened::<P>::set_link(object, self.link_offset, list.head);
            slot.set_list(HotList { head: Some(object), count: list.count + 1, ..list });
            slot.count(event, 1);
        }
        fits
    }
    fn pop(&self, event: Event) -> Option<P::Ptr> {
        self.slots.pop(event)
    }
    fn push(&self, object: P::Ptr, event: Event) -> bool {
        self.slots.push(object, event)
    }
    fn local(&self) -> Option<Self::Local<'_>> {
        self.slots.local().map(HardenedLocal)
    }
    fn claim(&self, cpu: CpuId) -> Option<Self::Local<'_>> {
        self.slots.claim(cpu).map(HardenedLocal)
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

/// A slot of the world inside, held.
pub struct HardenedLocal<L>(L);

impl<L: Deref> Deref for HardenedLocal<L> {
    type Target = L::Target;
    fn deref(&self) -> &L::Target {
        &self.0
    }
}

impl<L: DerefMut> DerefMut for HardenedLocal<L> {
    fn deref_mut(&mut self) -> &mut L::Target {
        &mut self.0
    }
}

impl<P: Platform, T, L: Local<P, T>> Local<Hardened<P>, T> for HardenedLocal<L> {
    fn cpu(&self) -> CpuId {
        self.0.cpu()
    }
    fn list(&self) -> HotList<P::Ptr> {
        self.0.list()
    }
    fn set_list(&mut self, list: HotList<P::Ptr>) {
        self.0.set_list(list);
    }
    fn array(&self) -> HotArray<P::Ptr> {
        self.0.array()
    }
    fn set_array(&mut self, array: HotArray<P::Ptr>) {
        self.0.set_array(array);
    }
    fn asked(&mut self) -> bool {
        self.0.asked()
    }
    fn count(&mut self, event: Event, n: u64) {
        self.0.count(event, n);
    }
}

impl<P: Testable> Testable for Hardened<P> {
    const COUNTS: bool = P::COUNTS;
    const SERVES: bool = P::SERVES;
    const STANDS_STILL: bool = P::STANDS_STILL;
    const SYMMETRIC: bool = P::SYMMETRIC;

    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
        P::on_cpu(cpu, f)
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
