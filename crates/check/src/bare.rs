//! A world like the native one: real memory, one thread, no checking, no `unsafe`.
//!
//! The world exists so that tests/fastpath.rs can read the machine code of the fast paths. Memory and frames
//! are two static arrays with masked indexes, a slot is part of its cache, and the list's head and count are
//! one word. So an engine's fast path compiles to the instructions that it has over mapped memory, except for
//! a base address.
//!
//! | slot word | while idle | while held |
//! |---|---|---|
//! | `list` | head (48 bits), count (16) | no head, count 65535: a pop finds no object, a push finds no room |
//! | `sizes` | size (32), capacity (32) | 0, 0: a pop finds no object, a push finds no room |
//!
//! So the fast path needs no test for a held slot.

mod slots;

use crate::queue::{Queue, next_random};
use slablab_platform::conformance::{Racer, Testable, Verdict};
use slablab_platform::{
    Base, Context, CpuId, Descriptor, Event, Field, Frame, Frames, Gfp, Hooks, MAP_BYTES, NodeId, Pfn,
    Platform, Rank, Real, RealMemory, Reclaim, Reclaimed, Time, Topology, Work, delegate, safe_memory,
};
pub use slots::{Alone, Cpus, Held, Nodes, Slots};
use std::cell::Cell;
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

/// The world; `COUNT` says whether events are counted in slots.
#[derive(Debug)]
pub enum Bare<const COUNT: bool> {}

const CPUS: usize = 4;
const NODES: usize = 2;
const PAGE_SHIFT: u32 = 12;
const NODE_FRAMES: usize = 1 << 10;
const WORDS: usize = (NODES * NODE_FRAMES) << (PAGE_SHIFT - 3);

static MEMORY: [Real; WORDS] = [const { Real::new(0) }; WORDS];
/// A bit for each word of memory: whether the object that starts at the word is allocated.
static LIVE: [Real; WORDS / 64] = [const { Real::new(0) }; WORDS / 64];
/// A bit for every [`MAP_BYTES`] of memory.
static MAPS: [Real; MAP_WORDS] = [const { Real::new(0) }; MAP_WORDS];
const MAP_WORDS: usize = WORDS * 8 / (64 * MAP_BYTES as usize);
static FRAMES: [Descriptor<Real, Real>; NODES * NODE_FRAMES] = [const {
    Descriptor {
        state: Real::new(0),
        slab: Real::new(0),
        link: Real::new(0),
        owner: Real::new(0),
        extra: Real::new(0),
        block: Real::new(0),
    }
}; NODES * NODE_FRAMES];
static ENTERED: Mutex<()> = Mutex::new(());

thread_local! {
    static CPU: Cell<u16> = const { Cell::new(0) };
    static REST: Rest = const { Rest::new() };
}

/// State that no fast path touches.
struct Rest {
    offline: Cell<u64>,
    still: Cell<bool>,
    now_ns: Cell<u64>,
    random: Cell<u64>,
    counts: [Cell<u64>; Event::COUNT],
    queue: Queue,
}

impl Rest {
    const fn new() -> Rest {
        Rest {
            offline: Cell::new(0),
            still: Cell::new(false),
            now_ns: Cell::new(0),
            random: Cell::new(1),
            counts: [const { Cell::new(0) }; Event::COUNT],
            queue: Queue::new(),
        }
    }
}

/// The length of a grace period in nanoseconds.
const GRACE_NS: u64 = 1_000_000;

impl<const COUNT: bool> Bare<COUNT> {
    /// Runs `f` on CPU 0 with all memory zero. The process has one such memory, so other threads wait.
    pub fn enter<R>(f: impl FnOnce() -> R) -> R {
        // The lock of a check that panicked is still usable: all state is reset below.
        let _entered = ENTERED.lock().unwrap_or_else(PoisonError::into_inner);
        MEMORY.iter().chain(&LIVE).for_each(|word| word.set(0));
        for frame in &FRAMES {
            let words = [&frame.state, &frame.slab, &frame.link, &frame.owner, &frame.extra, &frame.block];
            words.into_iter().for_each(|word| word.set(0));
        }
        CPU.set(0);
        REST.with(|rest| {
            rest.offline.set(0);
            rest.still.set(false);
            rest.now_ns.set(0);
            rest.counts.iter().for_each(|count| count.set(0));
            rest.queue.clear();
        });
        f()
    }
}

/// An object's address: frame number times page size plus offset, and a high bit, so that it is never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(NonZeroU64);

/// The highest of 48 bits. The masks of frame numbers and of indexes into memory remove it.
const BASE: NonZeroU64 = NonZeroU64::new(1 << 47).unwrap();

impl Place {
    #[inline]
    fn raw(place: Option<Place>) -> u64 {
        place.map_or(0, |place| place.0.get())
    }
    #[inline]
    fn from_raw(raw: u64) -> Option<Place> {
        NonZeroU64::new(raw).map(Place)
    }
}

impl<const COUNT: bool> Topology for Bare<COUNT> {
    #[inline]
    fn cpus() -> u16 {
        CPUS as u16
    }
    #[inline]
    fn nodes() -> u16 {
        NODES as u16
    }
    #[inline]
    fn page_shift() -> u32 {
        PAGE_SHIFT
    }
    #[inline]
    fn cpu() -> CpuId {
        CpuId(CPU.get())
    }
    #[inline]
    fn cpu_node(cpu: CpuId) -> NodeId {
        NodeId(cpu.0 / (CPUS / NODES) as u16)
    }
    #[inline]
    fn cpu_memory_node(cpu: CpuId) -> NodeId {
        Self::cpu_node(cpu)
    }
    fn distance(from: NodeId, to: NodeId) -> u32 {
        if from == to { 10 } else { 20 }
    }
    fn node_frames(node: NodeId) -> (Pfn, u32) {
        (Pfn((node.0 as u32 + 1) * NODE_FRAMES as u32), NODE_FRAMES as u32)
    }
    fn cpu_online(cpu: CpuId) -> bool {
        REST.with(|rest| rest.offline.get() & 1 << cpu.0 == 0)
    }
}

impl<const COUNT: bool> Frames for Bare<COUNT> {
    type Ptr = Place;
    type Word = Real;
    type Field = Real;
    #[inline]
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T {
        f(&FRAMES[pfn.0 as usize & (NODES * NODE_FRAMES - 1)])
    }
    #[inline]
    fn with_map<T>(pfn: Pfn, index: u32, f: impl FnOnce(&Real) -> T) -> T {
        let first = pfn.0 << PAGE_SHIFT >> 6 >> MAP_BYTES.ilog2();
        f(&MAPS[(first + index) as usize & (MAP_WORDS - 1)])
    }
    #[inline]
    fn address(pfn: Pfn, offset: u64) -> Place {
        Place(BASE | (((pfn.0 as u64) << PAGE_SHIFT) + offset))
    }
    #[inline]
    fn locate(object: Place) -> (Pfn, u32) {
        let raw = object.0.get();
        (Pfn((raw >> PAGE_SHIFT) as u32), raw as u32 & ((1 << PAGE_SHIFT) - 1))
    }
    fn map_slab(_pfn: Pfn, _order: u8, _size: u32, _cache: u32) {}
    fn unmap_slab(_pfn: Pfn, _order: u8) {}
}

safe_memory! { impl[const COUNT: bool] Bare<COUNT>;
    delegate! { Bare<COUNT> => RealMemory<Bare<COUNT>>: link set_link half set_half storage_attach storage_load
        storage_store storage_detach fill differs word set_word mark_live }
}

impl<const COUNT: bool> Base for Bare<COUNT> {
    #[inline]
    fn at(object: Place, offset: u32) -> &'static Real {
        &MEMORY[((object.0.get() + offset as u64) >> 3) as usize & (WORDS - 1)]
    }
    #[inline]
    fn to_raw(object: Place) -> u64 {
        object.0.get()
    }
    #[inline]
    fn from_raw(raw: u64) -> Option<Place> {
        Place::from_raw(raw)
    }
    fn mark(object: Place) -> (&'static Real, u32) {
        let index = (object.0.get() >> 3) as usize & (WORDS - 1);
        (&LIVE[index / 64], index as u32 % 64)
    }
}

impl<const COUNT: bool> Time for Bare<COUNT> {
    fn now() -> u64 {
        REST.with(|rest| rest.now_ns.get())
    }
    fn context() -> Context {
        Context::Task
    }
    fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
        REST.with(|rest| rest.queue.defer(rest.now_ns.get() + delay_ns, cpu, work));
    }
    fn after_grace_period(work: Work) {
        Self::defer(Self::cpu(), GRACE_NS, work);
    }
}

impl<const COUNT: bool> Hooks for Bare<COUNT> {
    fn random() -> u32 {
        REST.with(|rest| next_random(&rest.random))
    }
    fn secret() -> u64 {
        // A constant, so that a failing run can be repeated.
        0x5EC2_E700_5EC2_E700
    }
    fn reclaim(_ask: Reclaim) -> Reclaimed {
        Reclaimed::NOTHING
    }
    fn permit(_order: u8, _gfp: Gfp) -> bool {
        true
    }
    fn count(event: Event, n: u64) {
        REST.with(|rest| add(&rest.counts, event, n));
    }
}

impl<const COUNT: bool> Platform for Bare<COUNT> {
    type Ground = Self;
    type Lock<R: Rank, T> = Alone<R, T>;
    type PerCpu<T: Default> = Slots<T, COUNT>;
    type PerNode<T: Default> = Nodes<T>;
    type CpuShared<T: Default> = Cpus<T>;
}

fn add(counts: &[Cell<u64>; Event::COUNT], event: Event, n: u64) {
    let count = &counts[event as usize];
    count.set(count.get() + n);
}

impl<const COUNT: bool> Testable for Bare<COUNT> {
    const COUNTS: bool = COUNT;

    fn on_cpu<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
        let before = CPU.replace(cpu.0);
        let result = f();
        CPU.set(before);
        result
    }
    fn set_online(cpu: CpuId, online: bool) {
        let bit = 1 << cpu.0;
        REST.with(|rest| {
            let offline = rest.offline.get();
            rest.offline.set(if online { offline & !bit } else { offline | bit });
        });
    }
    fn still<R>(f: impl FnOnce() -> R) -> R {
        REST.with(|rest| rest.still.set(true));
        let result = f();
        REST.with(|rest| rest.still.set(false));
        result
    }
    fn advance(ns: u64) {
        REST.with(|rest| rest.now_ns.set(rest.now_ns.get() + ns));
    }
    fn end_grace_period() {
        Self::advance(GRACE_NS);
    }
    fn due() -> Option<(CpuId, Work)> {
        REST.with(|rest| rest.queue.due(rest.now_ns.get()))
    }
    fn counted(event: Event) -> u64 {
        REST.with(|rest| rest.counts[event as usize].get())
    }
    fn race<S: 'static>(shared: S, first: Racer<S>, second: Racer<S>, last: fn(&S) -> Verdict) -> Verdict {
        Self::on_cpu(first.0, || (first.1)(&shared))?;
        Self::on_cpu(second.0, || (second.1)(&shared))?;
        last(&shared)
    }
}
