//! The machine, and its side of the contract.

use crate::count::Count;
use crate::level::Access;
use crate::lock::Ranked;
use crate::memory::{Addr, Plain};
use crate::random::{mixed, split_mix};
use crate::slots::{Cpus, Nodes, Slots};
use crate::spec::{BadSpec, MachineSpec};
use crate::state::{Entered, State, WORD};
use slablab_platform::{
    Charged, Context, CpuId, Event, Frame, Frames, Gfp, Hooks, NodeId, Pfn, Platform, Rank, Reclaim,
    Reclaimed, Site, Step, Time, Topology, Touch, Work, safe_memory,
};
use std::convert::Infallible;
use std::marker::PhantomData;

/// A modelled machine of one level. Two machines can alternate on one thread; one machine is on one thread at
/// a time.
#[derive(Debug)]
pub struct MachineAt<L: Entered>(pub(crate) State<L>);

/// A machine of level `count`.
pub type Machine = MachineAt<Count>;

/// The world of the machine that the thread has entered. Its functions panic outside [`MachineAt::enter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modelled<L>(PhantomData<L>, Infallible);

/// The world of level `count`.
pub type Model = Modelled<Count>;

impl<L: Entered> MachineAt<L> {
    /// A machine with untouched memory and unused slots, and what its level keeps.
    pub(crate) fn with_clocks(spec: MachineSpec, clocks: L::Clocks) -> Result<Self, BadSpec> {
        Ok(MachineAt(State::new(spec, clocks)?))
    }

    /// Runs `f` on this machine.
    pub fn enter<T>(&mut self, f: impl FnOnce() -> T) -> T {
        L::enter(&self.0, f)
    }

    /// Bytes that frames, links and what the level keeps take now.
    pub fn bytes(&self) -> usize {
        self.0.memory.bytes() + L::bytes(&self.0)
    }

    /// The machine's description.
    pub fn spec(&self) -> &MachineSpec {
        &self.0.spec
    }
}

impl Machine {
    /// A machine with untouched memory and unused slots.
    ///
    /// # Errors
    /// A spec whose numbers contradict each other.
    pub fn new(spec: MachineSpec) -> Result<Machine, BadSpec> {
        Self::with_clocks(spec, ())
    }
}

impl<L: Entered> Modelled<L> {
    /// Continues on another CPU.
    #[inline]
    pub fn run_on(cpu: CpuId) {
        L::with(|state| {
            L::moved(state, state.call.cpu.get(), cpu);
            state.call.cpu.set(cpu);
        });
    }

    /// Makes every random number the given one; the seed's again with `None`. Two allocators that do not draw
    /// as often can then be compared.
    pub fn draw(number: Option<u32>) {
        L::with(|state| state.drawn.set(number));
    }

    /// Runs `f` as a task that frees memory for others (`PF_MEMALLOC`): its requests use no watermark and
    /// never reclaim. A reclaim daemon runs in it; the running call of a direct reclaim is one anyway.
    pub fn as_reclaimer<T>(f: impl FnOnce() -> T) -> T {
        let before = L::with(|state| state.call.reclaimer.replace(true));
        let result = f();
        L::with(|state| state.call.reclaimer.set(before));
        result
    }

    /// Time goes to `now_ns`, never back. At level `count` that is event time. At level `cost` it is the
    /// clock of the CPU that the running call is on, and outside of calls every CPU's.
    #[inline]
    pub fn advance_to(now_ns: u64) {
        L::with(|state| L::advance_to(state, now_ns));
    }

    /// When a grace period ends that begins now or later, ns. At level `cost` grace periods follow each other
    /// and are the same for all CPUs, so callbacks of many calls are due at once.
    pub fn grace_period_end() -> u64 {
        L::with(|state| L::grace_period_end(state, L::now_ns(state)))
    }

    /// When the earliest delayed work is due, ns; `u64::MAX` without any.
    #[inline]
    pub fn next_timer_ns() -> u64 {
        L::with(|state| state.next_timer_ns.get())
    }

    /// The earliest delayed work that is due now, and the CPU it is for.
    pub fn next_due() -> Option<(CpuId, Work)> {
        L::with(|state| {
            let mut timers = state.timers.borrow_mut();
            let due = timers.next_due(L::now_ns(state));
            state.next_timer_ns.set(timers.earliest());
            due
        })
    }

    /// Delayed work that waits, in time order.
    pub fn waiting() -> Vec<(CpuId, Work)> {
        L::with(|state| state.timers.borrow().waiting().collect())
    }

    /// Frames that hold objects of slabs: now, and the most so far.
    pub fn mapped_frames() -> (u64, u64) {
        L::with(|state| state.memory.mapped())
    }

    /// Sets where code runs from here.
    pub fn set_context(context: Context) {
        L::with(|state| state.call.context.set(context));
    }

    /// Takes a CPU up or down. Its slots stay; the assembler moves what they hold.
    pub fn set_online(cpu: CpuId, online: bool) {
        L::with(|state| state.online[cpu.0 as usize].set(online));
    }

    /// How often an event that belongs to no cache was counted.
    pub fn counted(event: Event) -> u64 {
        L::with(|state| state.counts[event as usize].get())
    }
}

impl<L: Entered> Topology for Modelled<L> {
    fn cpus() -> u16 {
        L::with(State::cpus)
    }
    fn nodes() -> u16 {
        L::with(State::nodes)
    }
    #[inline]
    fn page_shift() -> u32 {
        L::with(|state| state.spec.page_shift)
    }
    #[inline]
    fn cpu() -> CpuId {
        L::with(State::cpu)
    }
    #[inline]
    fn cpu_node(cpu: CpuId) -> NodeId {
        L::with(|state| state.cpu_node(cpu))
    }
    #[inline]
    fn cpu_memory_node(cpu: CpuId) -> NodeId {
        L::with(|state| state.cpu_memory_node[cpu.0 as usize])
    }
    fn distance(from: NodeId, to: NodeId) -> u32 {
        L::with(|state| state.spec.distance(from.0 as usize, to.0 as usize))
    }
    fn node_frames(node: NodeId) -> (Pfn, u32) {
        L::with(|state| state.node_frames[node.0 as usize])
    }
    fn cpu_online(cpu: CpuId) -> bool {
        L::with(|state| state.online[cpu.0 as usize].get())
    }
}

impl<L: Entered> Frames for Modelled<L> {
    type Ptr = Addr;
    type Word = Plain<L>;
    type Field = Plain<L>;
    #[inline]
    fn with_frame<T>(pfn: Pfn, f: impl FnOnce(&Frame<Self>) -> T) -> T {
        L::with(|state| f(state.memory.frame(pfn)))
    }
    fn with_map<T>(pfn: Pfn, index: u32, f: impl FnOnce(&Plain<L>) -> T) -> T {
        L::with(|state| state.memory.with_map(pfn, index, f))
    }
    #[inline]
    fn address(pfn: Pfn, offset: u64) -> Addr {
        L::with(|state| state.memory.address(pfn, offset))
    }
    #[inline]
    fn locate(object: Addr) -> (Pfn, u32) {
        L::with(|state| state.memory.locate(object))
    }
    fn map_slab(pfn: Pfn, order: u8, size: u32, _cache: u32) {
        L::with(|state| state.memory.map(pfn, order, size));
    }
    fn unmap_slab(pfn: Pfn, order: u8) {
        L::with(|state| state.memory.unmap(pfn, order));
    }
}

safe_memory! { impl[L: Entered] Modelled<L>;
    #[inline]
    fn link(object: Addr, _offset: u32) -> Option<Addr> {
        L::with(|state| L::link(state, object))
    }
    #[inline]
    fn set_link(object: Addr, _offset: u32, next: Option<Addr>) {
        L::with(|state| L::set_link(state, object, next));
    }
    #[inline]
    fn half(at: Addr) -> u16 {
        L::with(|state| {
            state.touch(at, WORD, Access::Read);
            state.memory.half(at)
        })
    }
    #[inline]
    fn set_half(at: Addr, value: u16) {
        L::with(|state| {
            state.touch(at, WORD, Access::Write);
            state.memory.set_half(at, value);
        });
    }
    fn storage_attach(object: Addr, words: u32) {
        L::with(|state| state.memory.attach(object, words));
    }
    #[inline]
    fn storage_load(object: Addr, index: u32) -> Option<Addr> {
        L::with(|state| state.storage_load(object, index))
    }
    #[inline]
    fn storage_store(object: Addr, index: u32, value: Option<Addr>) {
        L::with(|state| state.storage_store(object, index, value));
    }
    fn storage_detach(object: Addr) {
        L::with(|state| state.memory.detach(object));
    }
    fn fill(at: Addr, bytes: u32, value: u8) {
        L::with(|state| {
            state.touch(at, bytes, if value == 0 { Access::Zero } else { Access::Write });
            state.memory.fill(at, bytes, value);
        });
    }
    fn differs(at: Addr, bytes: u32, value: u8) -> Option<(u32, u8)> {
        L::with(|state| {
            state.touch(at, bytes, Access::Read);
            state.memory.differs(at, bytes, value)
        })
    }
    fn word(at: Addr) -> u64 {
        L::with(|state| {
            state.touch(at, WORD, Access::Read);
            state.memory.word(at)
        })
    }
    fn set_word(at: Addr, value: u64) {
        L::with(|state| {
            state.touch(at, WORD, Access::Write);
            state.memory.set_word(at, value);
        });
    }
    fn mark_live(object: Addr, live: bool) -> bool {
        L::with(|state| state.memory.mark(object, live))
    }
}

impl<L: Entered> Time for Modelled<L> {
    fn now() -> u64 {
        L::with(|state| L::now_ns(state))
    }
    fn context() -> Context {
        L::with(|state| state.call.context.get())
    }
    fn defer(cpu: CpuId, delay_ns: u64, work: Work) {
        L::with(|state| state.defer(cpu, delay_ns, work));
    }
    fn after_grace_period(work: Work) {
        L::with(|state| {
            let now = L::now_ns(state);
            state.defer(state.call.cpu.get(), L::grace_period_end(state, now) - now, work);
        });
    }
}

impl<L: Entered> Hooks for Modelled<L> {
    fn random() -> u32 {
        L::with(|state| {
            if let Some(drawn) = state.drawn.get() {
                return drawn;
            }
            let (seed, drawn) = split_mix(state.random.get());
            state.random.set(seed);
            (drawn >> 32) as u32
        })
    }
    fn secret() -> u64 {
        L::with(|state| mixed(!state.spec.seed))
    }
    fn reclaim(ask: Reclaim) -> Reclaimed {
        if ask.step.frees() { Self::as_reclaimer(|| L::reclaim(ask)) } else { L::reclaim(ask) }
    }
    fn clean_frames(node: NodeId, zone: u8) -> u64 {
        L::clean_frames(node, zone)
    }
    fn keeps_freed(pfn: Pfn, order: u8) -> bool {
        L::keeps_freed(pfn, order)
    }
    fn charges() -> bool {
        L::TIMED
    }
    #[inline]
    fn touched(site: Site, bytes: u32, touch: Touch) -> Charged {
        L::touched(site, bytes, touch)
    }
    #[inline]
    fn ran(step: Step, times: u64) -> Charged {
        L::ran(step, times)
    }
    fn made_at<T>(site: Site, make: impl FnOnce() -> T) -> T {
        L::made_at(site, make)
    }
    #[inline]
    fn aside<T>(f: impl FnOnce() -> T) -> T {
        L::aside(f)
    }
    #[inline]
    fn walk<T>(f: impl FnOnce() -> T) -> T {
        L::walk(f)
    }
    #[inline]
    fn visits() {
        L::visits();
    }
    fn is_reclaimer() -> bool {
        L::with(|state| state.call.reclaimer.get())
    }
    fn permit(order: u8, _gfp: Gfp) -> bool {
        L::requested(order);
        L::with(|state| state.spec.fail_order.is_none_or(|fail| order < fail))
    }
    #[inline]
    fn count(event: Event, n: u64) {
        L::with(|state| state.count(event, n));
    }
}

impl<L: Entered> Platform for Modelled<L> {
    type Ground = Self;
    type Lock<R: Rank, T> = Ranked<L, R, T>;
    type PerCpu<T: Default> = Slots<L, T>;
    type PerNode<T: Default> = Nodes<L, T>;
    type CpuShared<T: Default> = Cpus<L, T>;
}
