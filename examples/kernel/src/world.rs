//! The contract: the world `Kernel`, in the order of docs/porting.md.

use crate::cpu::{self, CPUS, Off};
use crate::memory::{self, FIRST, FRAME_COUNT, Object, PAGE};
use crate::slots::{AllCpus, Made, Slots, Spin};
use core::sync::atomic::{AtomicBool, Ordering::*};
use slablab_platform::{
    Context, Counts, CpuId, Event, Frame, Frames, Gfp, Hooks, NodeId, Pfn, Platform, Rank, Real, Reclaim,
    Reclaimed, Time, Topology, Work,
};

pub enum Kernel {}

/// Deferred work, its CPU, and what it waits for.
#[derive(Clone, Copy)]
struct Deferred {
    work: Work,
    cpu: CpuId,
    due_ns: u64,
    /// The CPUs, one bit each, on which readers may still run.
    readers: u32,
}

static COUNTS: [Counts; CPUS] = [const { Counts::new() }; CPUS];
static STOPPED: AtomicBool = AtomicBool::new(false);
/// A work for each kind, cache and CPU, and one for each slab of an RCU cache that waits for its readers:
/// this kernel has no such caches. One that has them needs a list without a limit.
static WAITING: AllCpus<Spin<(), [Option<Deferred>; 128]>> = AllCpus(Spin::around([None; 128]));

impl Kernel {
    /// With `true`: no CPU allocates until a call with `false`, so every slot can be claimed.
    pub fn stop(stopped: bool) {
        STOPPED.store(stopped, Release);
    }
    pub fn is_stopped() -> bool {
        STOPPED.load(Acquire)
    }
    /// Says that no reader runs on this CPU now. A kernel says it when a CPU idles or goes to user mode.
    pub fn quiescent(cpu: CpuId) {
        let mut waiting = WAITING.0.wait("the timers");
        waiting.iter_mut().flatten().for_each(|deferred| deferred.readers &= !(1 << cpu.0));
    }
    /// Takes a work that is due, for one of the CPUs that `takes` names.
    pub fn due(takes: impl Fn(CpuId) -> bool) -> Option<(CpuId, Work)> {
        let mut waiting = WAITING.0.wait("the timers");
        let now = Kernel::now();
        let due =
            |deferred: &Deferred| deferred.due_ns <= now && deferred.readers == 0 && takes(deferred.cpu);
        let first = waiting.iter_mut().filter(|place| place.as_ref().is_some_and(due));
        let taken = first.min_by_key(|place| place.map(|deferred| deferred.due_ns))?.take()?;
        Some((taken.cpu, taken.work))
    }
    fn wait(deferred: Deferred) {
        let mut waiting = WAITING.0.wait("the timers");
        let same = |other: &Deferred| (other.work, other.cpu) == (deferred.work, deferred.cpu);
        if !waiting.iter().flatten().any(same) {
            let room = waiting.iter_mut().find(|place| place.is_none());
            *room.expect("no more than 128 works wait") = Some(deferred);
        }
    }
    /// How often an event was counted that belongs to no cache.
    pub fn counted(event: Event) -> u64 {
        COUNTS.iter().map(|counts| counts.get(event)).sum()
    }
    /// The world as at boot.
    pub fn forget() {
        memory::forget();
        WAITING.0.wait("the timers").fill(None);
        COUNTS.iter().for_each(Counts::clear);
    }
}

impl Topology for Kernel {
    fn cpus() -> u16 {
        CPUS as u16
    }
    fn nodes() -> u16 {
        1
    }
    fn page_shift() -> u32 {
        PAGE.ilog2()
    }
    #[inline]
    fn cpu() -> CpuId {
        CpuId(cpu::current() as u16)
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
    fn cpu_online(cpu: CpuId) -> bool {
        cpu::is_online(cpu.0 as usize)
    }
}

impl Frames for Kernel {
    type Ptr = Object;
    type Word = Real;
    type Field = Real;
    #[inline]
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T {
        f(memory::frame(pfn))
    }
    #[inline]
    fn with_map<T>(pfn: Pfn, index: u32, f: impl FnOnce(&Real) -> T) -> T {
        f(memory::map_word(pfn, index))
    }
    #[inline]
    fn address(pfn: Pfn, offset: u64) -> Object {
        memory::address(pfn, offset)
    }
    #[inline]
    fn locate(object: Object) -> (Pfn, u32) {
        memory::locate(object)
    }
    fn map_slab(pfn: Pfn, _order: u8, _size: u32, cache: u32) {
        memory::owner(pfn).store(cache, Relaxed);
    }
    fn unmap_slab(_pfn: Pfn, _order: u8) {}
}

impl Time for Kernel {
    fn now() -> u64 {
        cpu::now_ns()
    }
    fn context() -> Context {
        if cpu::in_interrupt() { Context::Hardirq } else { Context::Task }
    }
    fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
        Kernel::wait(Deferred { work, cpu, due_ns: Kernel::now() + delay_ns, readers: 0 });
    }
    fn after_grace_period(work: Work) {
        let readers = (0..CPUS).filter(|cpu| cpu::is_online(*cpu)).map(|cpu| 1 << cpu).sum();
        Kernel::wait(Deferred { work, cpu: Kernel::cpu(), due_ns: 0, readers });
    }
}

impl Hooks for Kernel {
    fn random() -> u32 {
        (cpu::ticks().wrapping_mul(6_364_136_223_846_793_005) >> 32) as u32
    }
    fn secret() -> u64 {
        // A kernel draws it at boot. A constant encodes nothing.
        0x5EC2_E700_5EC2_E700
    }
    fn reclaim(_ask: Reclaim) -> Reclaimed {
        // A kernel with caches of its own frees of them here.
        Reclaimed::NOTHING
    }
    fn permit(_order: u8, _gfp: Gfp) -> bool {
        true
    }
    fn count(event: Event, n: u64) {
        let off = Off::new();
        COUNTS[cpu::current()].add(event, n, &off);
    }
}

impl Platform for Kernel {
    type Ground = Self;
    type Lock<R: Rank, T> = Spin<R, T>;
    type PerCpu<T: Default> = Slots<T>;
    type PerNode<T: Default> = Made<T, 1>;
    type CpuShared<T: Default> = Made<T, CPUS>;
}
