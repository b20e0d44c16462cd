//! The contract, over the array and the one CPU.

use crate::cpu::{self, Off, asked};
use crate::memory::{self, FIRST, FRAME_COUNT, Object, OneCpu, Owned, PAGE, Shared};
use crate::slots::{Made, Quiet, Slots};
use core::cell::Cell;
use slablab_platform::{
    Context, CpuId, Event, Frame, Frames, Gfp, Hooks, NodeId, Pfn, Platform, Rank, Reclaim, Reclaimed, Time,
    Topology, Work,
};

/// The world: one CPU, one node, memory from boot on. Public, because a kernel names it where it declares its
/// allocator; a kernel is one program and trusts its crates to leave the contract's functions to the engines.
#[derive(Debug)]
pub enum Kernel {}

/// Deferred work, and when it is due.
type Waiting = Cell<Option<(u64, Work)>>;

/// The delay of work that waits for readers: [`Kernel::nobody_reads`] ends it.
const WHEN_NOBODY_READS: u64 = u64::MAX;

/// Two works of each cache wait at most, as each kind waits once.
static WAITING: OneCpu<[Waiting; 64]> = OneCpu([const { Cell::new(None) }; 64]);
static COUNTS: OneCpu<[Cell<u64>; Event::COUNT]> = OneCpu([const { Cell::new(0) }; Event::COUNT]);
static STOPPED: OneCpu<Cell<bool>> = OneCpu(Cell::new(false));

/// Adds to a count; an interrupt does not come in between.
fn count(counts: &[Cell<u64>; Event::COUNT], event: Event, n: u64) {
    let _off = Off::new();
    let count = &counts[event as usize];
    count.set(count.get() + n);
}

impl Kernel {
    /// With `true`: no task or interrupt allocates until a call with `false`, so every slot can be claimed.
    pub fn stop(stopped: bool) {
        STOPPED.0.set(stopped);
    }

    /// Ends the grace periods that run. To be said where no task is in the middle of reading: on one CPU,
    /// when it idles.
    pub fn nobody_reads() {
        let _off = Off::new();
        for place in &WAITING.0 {
            place.set(place.get().map(|(due, work)| (if due == WHEN_NOBODY_READS { 0 } else { due }, work)));
        }
    }

    /// Takes a deferred work that is due.
    pub fn due() -> Option<Work> {
        let _off = Off::new();
        let now = cpu::now_ns();
        let is_due = |place: &&Waiting| place.get().is_some_and(|(due, _)| due <= now);
        let place = WAITING.0.iter().filter(is_due).min_by_key(|place| place.get().map(|(due, _)| due))?;
        place.take().map(|(_, work)| work)
    }

    /// How often an event was counted that belongs to no cache.
    pub fn counted(event: Event) -> u64 {
        COUNTS.0[event as usize].get()
    }
}

impl Topology for Kernel {
    fn cpus() -> u16 {
        1
    }
    fn nodes() -> u16 {
        1
    }
    fn page_shift() -> u32 {
        PAGE.ilog2()
    }
    fn cpu() -> CpuId {
        CpuId(0)
    }
    fn cpu_node(_cpu: CpuId) -> NodeId {
        NodeId(0)
    }
    fn cpu_memory_node(_cpu: CpuId) -> NodeId {
        NodeId(0)
    }
    fn distance(_from: NodeId, _to: NodeId) -> u32 {
        10
    }
    fn node_frames(_node: NodeId) -> (Pfn, u32) {
        (Pfn(FIRST), FRAME_COUNT as u32)
    }
    fn cpu_online(_cpu: CpuId) -> bool {
        asked();
        !STOPPED.0.get()
    }
}

impl Frames for Kernel {
    type Ptr = Object;
    type Word = Shared;
    type Field = Owned;
    #[inline]
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T {
        asked();
        f(memory::frame(pfn))
    }
    #[inline]
    fn with_map<T>(pfn: Pfn, index: u32, f: impl FnOnce(&Shared) -> T) -> T {
        asked();
        f(memory::map_word(pfn, index))
    }
    #[inline]
    fn address(pfn: Pfn, offset: u64) -> Object {
        asked();
        memory::address(pfn, offset)
    }
    #[inline]
    fn locate(object: Object) -> (Pfn, u32) {
        asked();
        memory::locate(object)
    }
    fn map_slab(pfn: Pfn, _order: u8, _size: u32, cache: u32) {
        asked();
        memory::owner(pfn).set(cache);
    }
    fn unmap_slab(_pfn: Pfn, _order: u8) {
        asked();
    }
}

impl Time for Kernel {
    fn now() -> u64 {
        asked();
        cpu::now_ns()
    }
    fn context() -> Context {
        asked();
        if cpu::in_interrupt() { Context::Hardirq } else { Context::Task }
    }
    fn defer(_cpu: CpuId, delay_ns: u64, work: Work) {
        asked();
        let _off = Off::new();
        let waits = |place: &Waiting| place.get().is_some_and(|(_, other)| other == work);
        if !WAITING.0.iter().any(waits) {
            let room = WAITING.0.iter().find(|place| place.get().is_none());
            room.expect("room for deferred work").set(Some((cpu::now_ns().saturating_add(delay_ns), work)));
        }
    }
    fn after_grace_period(work: Work) {
        Self::defer(Self::cpu(), WHEN_NOBODY_READS, work);
    }
}

impl Hooks for Kernel {
    fn random() -> u32 {
        asked();
        // Not random, and no engine needs it to be: Knuth's constant spreads the clock.
        (cpu::now_ns().wrapping_mul(6_364_136_223_846_793_005) >> 32) as u32
    }
    fn secret() -> u64 {
        // A kernel draws it at boot. A constant encodes nothing.
        0x5EC2_E700_5EC2_E700
    }
    fn reclaim(_ask: Reclaim) -> Reclaimed {
        asked();
        // A kernel with caches of its own (pages, names) frees of them here, and answers `true` if it freed
        // any.
        Reclaimed::NOTHING
    }
    fn permit(_order: u8, _gfp: Gfp) -> bool {
        asked();
        true
    }
    fn count(event: Event, n: u64) {
        count(&COUNTS.0, event, n);
    }
}

impl Platform for Kernel {
    type Ground = Self;
    type Lock<R: Rank, T> = Quiet<R, T>;
    type PerCpu<T: Default> = Slots<T>;
    type PerNode<T: Default> = Made<T>;
    type CpuShared<T: Default> = Made<T>;
}

/// The world as it is at boot.
#[cfg(test)]
pub(crate) fn forget() {
    memory::forget();
    WAITING.0.iter().for_each(|place| place.set(None));
    COUNTS.0.iter().for_each(|count| count.set(0));
    Kernel::stop(false);
}
