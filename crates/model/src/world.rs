//! The machine's state and its side of the contract.

use crate::level::{Access, Count, Level, Place};
use crate::lock::Ranked;
use crate::memory::{self, Addr, CHUNK, Plain};
use crate::slots::{Cpus, Nodes, Slots};
use crate::spec::{BadSpec, MachineSpec};
use crate::timers::Timers;
use slablab_platform::{
    Context, CpuId, Event, Frame, Frames, Gfp, Hooks, NodeId, Pfn, Platform, Rank, Reclaim, Reclaimed, Time,
    Topology, Work, safe_memory,
};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::marker::PhantomData;

/// A modelled machine of one level. Two machines can alternate on one thread; one machine is on one thread at
/// a time.
#[derive(Debug)]
pub struct MachineAt<L: Level>(pub(crate) State<L>);

/// A machine of level `count`.
pub type Machine = MachineAt<Count>;

/// The world of the machine that the thread has entered. Its functions panic outside [`MachineAt::enter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modelled<L>(PhantomData<L>, Infallible);

/// The world of level `count`.
pub type Model = Modelled<Count>;

/// What belongs to the running call rather than to the machine: a machine whose calls can be suspended
/// switches this with the call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) cpu: Cell<CpuId>,
    context: Cell<Context>,
    /// The levels of the locks held, a bit each.
    held: Cell<u128>,
    /// Whether it frees memory for others (`PF_MEMALLOC`).
    reclaimer: Cell<bool>,
}

impl Call {
    /// A call that holds nothing.
    pub(crate) const fn on(cpu: CpuId) -> Call {
        let (context, held) = (Cell::new(Context::Task), Cell::new(0));
        Call { cpu: Cell::new(cpu), context, held, reclaimer: Cell::new(false) }
    }

    /// Exchanges two calls.
    pub(crate) fn swap(&self, other: &Call) {
        self.cpu.swap(&other.cpu);
        self.context.swap(&other.context);
        self.held.swap(&other.held);
        self.reclaimer.swap(&other.reclaimer);
    }
}

/// The state of a machine.
#[derive(Debug)]
pub struct State<L: Level> {
    /// The running call.
    pub(crate) call: Call,
    now_ns: Cell<u64>,
    next_timer_ns: Cell<u64>,
    pub(crate) memory: memory::Memory<L>,
    /// What the level keeps.
    pub(crate) clocks: L::Clocks,
    counts: Box<[Cell<u64>; Event::COUNT]>,
    timers: RefCell<Timers>,
    random: Cell<u64>,
    cpu_memory_node: Vec<NodeId>,
    node_frames: Vec<(Pfn, u32)>,
    online: Vec<Cell<bool>>,
    /// For each CPU, the bytes that engines counted for its slots.
    pub(crate) reserved: Vec<Cell<u64>>,
    pub(crate) spec: MachineSpec,
}

impl<L: Level> MachineAt<L> {
    /// A machine with untouched memory and unused slots, and what its level keeps.
    pub(crate) fn with_clocks(spec: MachineSpec, clocks: L::Clocks) -> Result<Self, BadSpec> {
        spec.check()?;
        // Each node starts at a multiple of the largest block. The first block stays unused: address 0 is no
        // object's.
        let mut next = CHUNK;
        let mut node_frames = Vec::new();
        for node in &spec.nodes {
            let frames = (node.bytes >> spec.page_shift) as u32;
            node_frames.push((Pfn(next), frames));
            next = (next + frames).next_multiple_of(CHUNK);
        }
        let memory_node =
            |node: &u16| NodeId(if spec.memoryless_nodes { spec.nearest_memory(*node) } else { *node });
        Ok(MachineAt(State {
            call: Call::on(CpuId(0)),
            now_ns: Cell::new(0),
            next_timer_ns: Cell::new(u64::MAX),
            memory: memory::Memory::new(spec.page_shift, next, &node_frames),
            counts: Box::new([const { Cell::new(0) }; Event::COUNT]),
            timers: RefCell::default(),
            random: Cell::new(spec.seed),
            cpu_memory_node: spec.cpu_node.iter().map(memory_node).collect(),
            node_frames,
            online: (0..spec.cpu_node.len())
                .map(|cpu| Cell::new(spec.cpu_online.get(cpu).copied().unwrap_or(true)))
                .collect(),
            reserved: spec.cpu_node.iter().map(|_| Cell::new(0)).collect(),
            clocks,
            spec,
        }))
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

impl<L: Level> State<L> {
    pub(crate) fn take_rank<R: Rank>(&self) {
        let held = self.call.held.get();
        let bit = 1u128 << R::LEVEL;
        self.check_rank::<R>();
        self.call.held.set(held | bit);
        self.count(R::EVENT, 1);
    }

    #[inline]
    pub(crate) fn check_rank<R: Rank>(&self) {
        let (held, bit) = (self.call.held.get(), 1u128 << R::LEVEL);
        assert!(held < bit, "{} (level {}) taken while holding level {}", R::NAME, R::LEVEL, held.ilog2());
    }

    pub(crate) fn drop_rank<R: Rank>(&self) {
        self.call.held.set(self.call.held.get() & !(1u128 << R::LEVEL));
    }

    /// Charges that `bytes` bytes of an object of a slab are touched.
    #[inline]
    pub(crate) fn touch(&self, at: Addr, bytes: u32, access: Access) {
        if L::TIMED {
            let (beside, home) = self.memory.beside(at, L::line_bytes(self));
            L::object(self, beside, Place { address: at.0.get(), home }, bytes, access);
        }
    }

    #[inline]
    pub(crate) fn set_event_ns(&self, now_ns: u64) {
        self.now_ns.set(self.now_ns.get().max(now_ns));
    }

    /// Event time.
    #[inline]
    pub(crate) fn event_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn count(&self, event: Event, n: u64) {
        let count = &self.counts[event as usize];
        count.set(count.get() + n);
    }

    fn defer(&self, cpu: CpuId, delay_ns: u64, work: Work) {
        let mut timers = self.timers.borrow_mut();
        timers.defer(L::now_ns(self) + delay_ns, cpu, work);
        self.next_timer_ns.set(timers.earliest());
    }
}

impl<L: Level> Modelled<L> {
    /// Continues on another CPU.
    #[inline]
    pub fn run_on(cpu: CpuId) {
        L::with(|state| {
            L::moved(state, state.call.cpu.get(), cpu);
            state.call.cpu.set(cpu);
        });
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

/// Bytes of a word.
pub(crate) const WORD: u32 = 8;

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state that grows by this, passes BigCrush.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The next state of a stream, and a number of it.
pub(crate) fn split_mix(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(GOLDEN);
    (state, mixed(state))
}

fn mixed(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl<L: Level> Topology for Modelled<L> {
    fn cpus() -> u16 {
        L::with(|state| state.spec.cpu_node.len() as u16)
    }
    fn nodes() -> u16 {
        L::with(|state| state.spec.nodes.len() as u16)
    }
    #[inline]
    fn page_shift() -> u32 {
        L::with(|state| state.spec.page_shift)
    }
    #[inline]
    fn cpu() -> CpuId {
        L::with(|state| state.call.cpu.get())
    }
    #[inline]
    fn cpu_node(cpu: CpuId) -> NodeId {
        L::with(|state| NodeId(state.spec.cpu_node[cpu.0 as usize]))
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

impl<L: Level> Frames for Modelled<L> {
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

safe_memory! { impl[L: Level] Modelled<L>;
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
        L::with(|state| {
            state.memory.stored(object, index, |storage, word| {
                L::storage(state, storage, index, Access::Read);
                word.get().try_into().ok().map(Addr)
            })
        })
    }
    #[inline]
    fn storage_store(object: Addr, index: u32, value: Option<Addr>) {
        L::with(|state| {
            state.memory.stored(object, index, |storage, word| {
                L::storage(state, storage, index, Access::Write);
                word.set(value.map_or(0, |value| value.0.get()));
            });
        });
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

impl<L: Level> Time for Modelled<L> {
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

impl<L: Level> Hooks for Modelled<L> {
    fn random() -> u32 {
        L::with(|state| {
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

impl<L: Level> Platform for Modelled<L> {
    type Ground = Self;
    type Lock<R: Rank, T> = Ranked<L, R, T>;
    type PerCpu<T: Default> = Slots<L, T>;
    type PerNode<T: Default> = Nodes<L, T>;
    type CpuShared<T: Default> = Cpus<L, T>;
}
