//! Twists: worlds that refuse slots or pages, and worlds with one planted fault.
//!
//! A refusing world keeps the contract, because a slot may be unavailable at any time. Each other world
//! breaks one rule, and tests/broken.rs names the check that finds the fault. Faults of memory ordering are
//! orderings of the loom kit.

mod late;
#[cfg(feature = "tools")]
mod orders;
#[cfg(feature = "tools")]
mod torn;

use crate::kit::{Explored, Job, Kit, Limits, Running};
use crate::solo::{self, Solo};
use crate::twist::{Inner, Twist, TwistedSlots};
use slablab_pages::Pages;
use slablab_platform::conformance::Testable;
use slablab_platform::{CpuId, Event, Gfp, HotList, Local, NodeId, PerCpu, Pfn, Want, Word, Work};
use std::cell::RefCell;
use std::collections::BTreeMap;

pub use late::{LateHeader, LateLink};
#[cfg(feature = "tools")]
pub use orders::{RelaxedExchange, RelaxedLoad, RelaxedStore, ReleaseExchange};
#[cfg(feature = "tools")]
pub use torn::TornExchange;

/// Slots always refuse: engines take their slotless paths.
#[derive(Debug)]
pub enum Refuse {}

impl<P: Testable> Twist<P> for Refuse {
    const SERVES: bool = false;
    fn pop_if<C: Default>(_: &TwistedSlots<P, Self, C>, _: Want, _: Event) -> Option<P::Ptr> {
        None
    }
    fn push_if<C: Default>(_: &TwistedSlots<P, Self, C>, _: Want, _: u32, _: P::Ptr, _: Event) -> bool {
        false
    }
    fn pop<C: Default>(_: &TwistedSlots<P, Self, C>, _: Event) -> Option<P::Ptr> {
        None
    }
    fn push<C: Default>(_: &TwistedSlots<P, Self, C>, _: P::Ptr, _: Event) -> bool {
        false
    }
    fn local_asks() -> bool {
        false
    }
}

/// The slots of CPU `CPU` refuse: its slotless paths run beside CPUs that hold theirs.
#[derive(Debug)]
pub enum RefuseOn<const CPU: u16> {}

impl<P: Testable, const CPU: u16> Twist<P> for RefuseOn<CPU> {
    const SERVES: bool = false;
    fn pop_if<C: Default>(slots: &TwistedSlots<P, Self, C>, want: Want, event: Event) -> Option<P::Ptr> {
        if P::cpu().0 == CPU { None } else { slots.inner.pop_if(want, event) }
    }
    fn push_if<C: Default>(
        slots: &TwistedSlots<P, Self, C>,
        want: Want,
        limit: u32,
        object: P::Ptr,
        event: Event,
    ) -> bool {
        P::cpu().0 != CPU && slots.inner.push_if(want, limit, object, event)
    }
    fn pop<C: Default>(slots: &TwistedSlots<P, Self, C>, event: Event) -> Option<P::Ptr> {
        if P::cpu().0 == CPU { None } else { slots.inner.pop(event) }
    }
    fn push<C: Default>(slots: &TwistedSlots<P, Self, C>, object: P::Ptr, event: Event) -> bool {
        P::cpu().0 != CPU && slots.inner.push(object, event)
    }
    fn local_asks() -> bool {
        P::cpu().0 != CPU
    }
}

/// Every page allocation fails.
#[derive(Debug)]
pub enum Starve {}
impl<P: Testable> Twist<P> for Starve {
    fn permit(_order: u8, _gfp: Gfp) -> bool {
        false
    }
}

/// Where the second half of a page of 4096 bytes begins.
const HALF_PAGE: u32 = 2048;

// The halves that [`NoGrowth`] wrote, by frame and offset.
thread_local!(static HALVES: RefCell<BTreeMap<(Pfn, u32), u16>> = const { RefCell::new(BTreeMap::new()) });

/// Declares faults: a name, a doc comment that describes the fault, and the functions that cause it.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident { $($body:tt)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}
        impl<P: Testable> Twist<P> for $name { $($body)* }
    )*};
}

faults! {
    /// Every CPU's memory node is the last node with memory, instead of the nearest.
    FarMemory {
        fn cpu_memory_node(_cpu: CpuId) -> NodeId {
            let nodes = (0..P::nodes()).rev().map(NodeId);
            { nodes }.find(|node| P::node_frames(*node).1 > 0).expect("some node has memory")
        }
    }
    /// Every CPU's memory node is the last one, with memory or without.
    LostMemory {
        fn cpu_memory_node(_cpu: CpuId) -> NodeId {
            NodeId(P::nodes() - 1)
        }
    }
    /// The memory node of CPUs with odd numbers is their own node, that of the others the nearest with
    /// memory.
    MixedMemory {
        fn cpu_memory_node(cpu: CpuId) -> NodeId {
            if cpu.0 % 2 == 1 { P::cpu_node(cpu) } else { P::cpu_memory_node(cpu) }
        }
    }
    /// The distance from a node to itself is 0, not 10.
    DistanceFromZero {
        fn distance(from: NodeId, to: NodeId) -> u32 {
            P::distance(from, to) - 10
        }
    }
    /// Every node lacks its first frame.
    CrookedNode {
        fn node_frames(node: NodeId) -> (Pfn, u32) {
            let (first, count) = P::node_frames(node);
            (first.plus(1), count.saturating_sub(1))
        }
    }
    /// Two frames share a descriptor.
    SharedFrame {
        fn frame(pfn: Pfn) -> Pfn {
            Pfn(pfn.0 & !1)
        }
    }
    /// Two words of a map are one.
    SharedMapWord {
        fn map_word(index: u32) -> u32 {
            index & !1
        }
    }
    /// `locate` returns an even frame for an address in an odd frame.
    FirstFrameOnly {
        fn locate(object: P::Ptr) -> (Pfn, u32) {
            let (pfn, offset) = P::locate(object);
            (Pfn(pfn.0 & !1), offset)
        }
    }
    /// Objects closer than 32 bytes share a link.
    SharedLink {
        fn linked(object: P::Ptr) -> P::Ptr {
            let (pfn, offset) = P::locate(object);
            P::address(pfn, (offset & !31) as u64)
        }
    }
    /// A write of a half also writes the other half of the same 32 bits.
    WideHalf {
        fn set_half(at: P::Ptr, value: u16) {
            let (pfn, offset) = P::locate(at);
            P::set_half(P::address(pfn, (offset ^ 2) as u64), value);
            P::set_half(at, value);
        }
    }
    /// An array loses an object of another node if the object is at the start of a page's second half.
    ForgetfulArray {
        fn storage_store(object: P::Ptr, index: u32, value: Option<P::Ptr>) {
            let other_node = |value: &P::Ptr| {
                let state = Pages::<P>::block_of(*value).map(|(_, state)| state);
                state.is_some_and(|state| state.node != P::cpu_memory_node(P::cpu()))
            };
            if value.filter(other_node).is_none_or(|value| P::locate(value).1 != HALF_PAGE) {
                P::storage_store(object, index, value);
            }
        }
    }
    /// A list ends at an object at the start of a page's second half.
    CutList {
        fn set_link(object: P::Ptr, offset: u32, next: Option<P::Ptr>) {
            P::set_link(object, offset, next.filter(|_| P::locate(object).1 != HALF_PAGE));
        }
    }
    /// A half that was written before never grows. So a freed block does not grow when its neighbours are
    /// freed.
    NoGrowth {
        fn set_half(at: P::Ptr, value: u16) {
            let written = HALVES.with_borrow_mut(|halves| {
                let (pfn, offset) = P::locate(at);
                let written = halves.entry((pfn, offset)).or_insert(value);
                *written = value.min(*written);
                *written
            });
            P::set_half(at, written);
        }
    }
    /// A fill also writes the byte after its range.
    WideFill {
        fn fill(at: P::Ptr, bytes: u32, value: u8) {
            P::fill(at, bytes + !bytes.is_multiple_of(8) as u32, value);
        }
    }
    /// Objects that start within one unit of 32 bytes share a mark.
    SharedMark {
        fn mark_live(object: P::Ptr, live: bool) -> bool {
            let (pfn, offset) = P::locate(object);
            P::mark_live(P::address(pfn, (offset & !31) as u64), live)
        }
    }
    /// The last word of new storage is not empty.
    DirtyStorage {
        fn storage_attach(object: P::Ptr, words: u32) {
            P::storage_attach(object, words);
            P::storage_store(object, words - 1, Some(object));
        }
    }
    /// Time runs backwards.
    ClockBack {
        fn now() -> u64 {
            u64::MAX - P::now()
        }
    }
    /// Every random number is 4.
    NotRandom {
        fn random() -> u32 {
            4
        }
    }
    /// Deferred work is due after 99 % of its delay.
    DeferEarly {
        fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
            P::defer(cpu, delay_ns - delay_ns / 100, work);
        }
    }
    /// All deferred work runs on CPU 0.
    DeferOnFirst {
        fn defer(_cpu: CpuId, delay_ns: u64, work: Work) {
            P::defer(CpuId(0), delay_ns, work);
        }
    }
    /// Grace periods end at once, without waiting for readers.
    NoGrace {
        fn after_grace_period(work: Work) {
            P::defer(P::cpu(), 0, work);
        }
    }
    /// One percent of each count outside of caches is lost.
    CountLost {
        fn count(event: Event, n: u64) {
            P::count(event, n - n / 100);
        }
    }
    /// The list of a slot is first in, first out.
    Fifo {
        fn pop_if<C: Default>(slots: &TwistedSlots<P, Self, C>, want: Want, event: Event) -> Option<P::Ptr> {
            let mut local = slots.inner.local()?;
            let list = local.list();
            let (mut before, mut last) = (None, list.head.filter(|_| want.met(list.tag))?);
            while let Some(next) = P::link(last, slots.link_offset) {
                (before, last) = (Some(last), next);
            }
            if let Some(before) = before {
                P::set_link(before, slots.link_offset, None);
            }
            let head = before.and(list.head);
            local.set_list(HotList { head, count: list.count - 1, ..list });
            local.count(event, 1);
            Some(last)
        }
    }
    /// A slot's list takes one object more than the limit.
    LimitOffByOne {
        fn push_if<C: Default>(
            slots: &TwistedSlots<P, Self, C>,
            want: Want,
            limit: u32,
            object: P::Ptr,
            event: Event,
        ) -> bool {
            let above = (limit + 1).min(HotList::<P::Ptr>::COUNT_MAX);
            slots.inner.push_if(want, above, object, event)
        }
    }
    /// A pop takes an object from a list with the wrong tag.
    TagIgnored {
        fn pop_if<C: Default>(slots: &TwistedSlots<P, Self, C>, _want: Want, event: Event) -> Option<P::Ptr> {
            slots.inner.pop_if(Want::ANY, event)
        }
    }
    /// All CPUs pop from CPU 0's list.
    OneList {
        fn pop_if<C: Default>(slots: &TwistedSlots<P, Self, C>, want: Want, event: Event) -> Option<P::Ptr> {
            P::on_cpu(CpuId(0), || slots.inner.pop_if(want, event))
        }
    }
    /// A list that a caller sets in a slot loses its tag.
    TagLost {
        fn list(list: HotList<P::Ptr>) -> HotList<P::Ptr> {
            HotList { tag: 0, ..list }
        }
    }
    /// A full array accepts one more object, and loses it.
    FullArray {
        fn push<C: Default>(slots: &TwistedSlots<P, Self, C>, object: P::Ptr, event: Event) -> bool {
            let array = slots.inner.local().map(|local| local.array());
            slots.inner.push(object, event) || array.is_some_and(|array| array.storage.is_some())
        }
    }
    /// A push succeeds while the slot is held.
    LocalShares {
        fn push_if<C: Default>(
            slots: &TwistedSlots<P, Self, C>,
            want: Want,
            limit: u32,
            object: P::Ptr,
            event: Event,
        ) -> bool {
            slots.inner.push_if(want, limit, object, event) || slots.held.get() > 0
        }
    }
    /// A live slot can be claimed.
    ClaimLive {
        fn claim<C: Default>(slots: &TwistedSlots<P, Self, C>, cpu: CpuId) -> Option<Inner<'_, P, C>> {
            P::still(|| slots.inner.claim(cpu))
        }
    }
    /// No slot can ever be claimed.
    ClaimNever {
        fn claim<C: Default>(_: &TwistedSlots<P, Self, C>, _cpu: CpuId) -> Option<Inner<'_, P, C>> {
            None
        }
    }
    /// A request to the owner of a slot is lost.
    AskLost {
        fn ask<C: Default>(_: &TwistedSlots<P, Self, C>, _cpu: CpuId) {}
    }
    /// Counts in slots lose all bits but the lower eight.
    SlotCountLost {
        fn count_in_slot<C: Default>(slots: &TwistedSlots<P, Self, C>, event: Event, n: u64) {
            slots.inner.count(event, n & 0xff);
        }
    }
    /// A refused push is counted.
    RefusalCounted {
        fn push_if<C: Default>(
            slots: &TwistedSlots<P, Self, C>,
            want: Want,
            limit: u32,
            object: P::Ptr,
            event: Event,
        ) -> bool {
            let pushed = slots.inner.push_if(want, limit, object, event);
            slots.inner.count(event, !pushed as u64);
            pushed
        }
    }
}

/// The kit of one thread, with a word whose `compare_exchange` ignores the upper half.
#[derive(Debug)]
pub enum HalfExchange {}

impl Kit for HalfExchange {
    type Word = Half;
    type Field = solo::Plain;
    type Mutex<T> = solo::Mutex<T>;

    fn running<R>(f: impl FnOnce(&Running) -> R) -> R {
        Solo::running(f)
    }
    fn together(jobs: Vec<Job>) {
        Solo::together(jobs);
    }
    fn schedules(limits: Limits, body: impl Fn() + Send + Sync + 'static) -> Explored {
        Solo::schedules(limits, body)
    }
}

/// A word whose `compare_exchange` ignores the upper half.
#[derive(Debug)]
pub struct Half(solo::Plain);

impl Word for Half {
    fn new(value: u64) -> Self {
        Half(Word::new(value))
    }
    fn load(&self) -> u64 {
        self.0.load()
    }
    fn load_acquire(&self) -> u64 {
        self.0.load_acquire()
    }
    fn store(&self, value: u64) {
        self.0.store(value);
    }
    fn store_release(&self, value: u64) {
        self.0.store_release(value);
    }
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        let found = self.0.load();
        let same = found as u32 == current as u32;
        self.0.compare_exchange(if same { found } else { current }, new)
    }
}
