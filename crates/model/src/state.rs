//! The state of a machine, and the hooks of its level that take it.

use crate::level::{Access, Level, Place};
use crate::memory::{Addr, CHUNK, Memory};
use crate::spec::{BadSpec, MachineSpec};
use crate::timers::Timers;
use slablab_platform::{Context, CpuId, Event, NodeId, Pfn, Rank, Work};
use std::cell::{Cell, RefCell};

/// A level whose machines a thread enters. The functions are hooks that the world calls.
pub trait Entered: Level {
    /// Calls `f` with the state of the machine that this thread has entered.
    fn with<T>(f: impl FnOnce(&State<Self>) -> T) -> T;
    /// Runs `f` with `state` entered.
    fn enter<T>(state: &State<Self>, f: impl FnOnce() -> T) -> T;

    /// When a grace period ends that begins at `now_ns` or later. At level `count` each caller has its own.
    fn grace_period_end(state: &State<Self>, now_ns: u64) -> u64 {
        now_ns + state.spec.grace_period_ns
    }
    /// Bytes of a cache line.
    #[inline(always)]
    fn line_bytes(_state: &State<Self>) -> u32 {
        64
    }
    /// A free object's link.
    #[inline(always)]
    fn link(state: &State<Self>, object: Addr) -> Option<Addr> {
        state.memory.link(object)
    }
    /// Writes a free object's link.
    #[inline(always)]
    fn set_link(state: &State<Self>, object: Addr, next: Option<Addr>) {
        state.memory.set_link(object, next);
    }
    /// `bytes` bytes from a place on are touched.
    #[inline(always)]
    fn object(_state: &State<Self>, _beside: &Self::Beside, _at: Place, _bytes: u32, _access: Access) {}
    /// Whether each line of an object is kept by itself, because code touches single lines of it.
    #[inline(always)]
    fn keeps_lines(_state: &State<Self>) -> bool {
        false
    }
    /// Word `index` of storage is touched.
    #[inline(always)]
    fn storage(_state: &State<Self>, _lines: &Self::Lines, _index: u32, _access: Access) {}
    /// A line is touched together with the one before it.
    #[inline(always)]
    fn next_line(_state: &State<Self>, _beside: &Self::Beside, _at: Place, _bytes: u32, _access: Access) {}
    /// Now, nanoseconds.
    fn now_ns(state: &State<Self>) -> u64;
    /// Time goes to `now_ns`, never back.
    fn advance_to(state: &State<Self>, now_ns: u64);
    /// The running code goes on on CPU `to`.
    #[inline(always)]
    fn moved(_state: &State<Self>, _from: CpuId, _to: CpuId) {}
    /// Bytes of what the level keeps of a machine.
    fn bytes(_state: &State<Self>) -> usize {
        0
    }
}

/// What belongs to the running call rather than to the machine: a machine whose calls can be suspended
/// switches this with the call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) cpu: Cell<CpuId>,
    pub(crate) context: Cell<Context>,
    /// The levels of the locks held, a bit each.
    pub(crate) held: Cell<u128>,
    /// Whether it frees memory for others (`PF_MEMALLOC`).
    pub(crate) reclaimer: Cell<bool>,
}

impl Call {
    /// A call that holds nothing.
    pub(crate) const fn on(cpu: CpuId) -> Call {
        let (context, held) = (Cell::new(Context::Task), Cell::new(0));
        Call { cpu: Cell::new(cpu), context, held, reclaimer: Cell::new(false) }
    }

    /// Exchanges two calls.
    #[cfg(feature = "cost")]
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
    pub(crate) now_ns: Cell<u64>,
    pub(crate) next_timer_ns: Cell<u64>,
    pub(crate) memory: Memory<L>,
    /// What the level keeps.
    #[cfg_attr(not(feature = "cost"), expect(dead_code, reason = "level `count` keeps nothing"))]
    pub(crate) clocks: L::Clocks,
    pub(crate) counts: Box<[Cell<u64>; Event::COUNT]>,
    pub(crate) timers: RefCell<Timers>,
    pub(crate) random: Cell<u64>,
    /// What every random number is, instead of the seed's.
    pub(crate) drawn: Cell<Option<u32>>,
    pub(crate) cpu_memory_node: Vec<NodeId>,
    pub(crate) node_frames: Vec<(Pfn, u32)>,
    pub(crate) online: Vec<Cell<bool>>,
    /// For each CPU, the bytes that engines counted for its slots.
    pub(crate) reserved: Vec<Cell<u64>>,
    pub(crate) spec: MachineSpec,
}

impl<L: Level> State<L> {
    /// A machine with untouched memory and unused slots, and what its level keeps.
    pub(crate) fn new(spec: MachineSpec, clocks: L::Clocks) -> Result<Self, BadSpec> {
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
        Ok(State {
            call: Call::on(CpuId(0)),
            now_ns: Cell::new(0),
            next_timer_ns: Cell::new(u64::MAX),
            memory: Memory::new(spec.page_shift, next, &node_frames),
            counts: Box::new([const { Cell::new(0) }; Event::COUNT]),
            timers: RefCell::default(),
            random: Cell::new(spec.seed),
            drawn: Cell::new(None),
            cpu_memory_node: spec.cpu_node.iter().map(memory_node).collect(),
            node_frames,
            online: (0..spec.cpu_node.len())
                .map(|cpu| Cell::new(spec.cpu_online.get(cpu).copied().unwrap_or(true)))
                .collect(),
            reserved: spec.cpu_node.iter().map(|_| Cell::new(0)).collect(),
            clocks,
            spec,
        })
    }

    #[inline]
    pub(crate) fn cpu(&self) -> CpuId {
        self.call.cpu.get()
    }

    #[inline]
    pub(crate) fn cpus(&self) -> u16 {
        self.spec.cpu_node.len() as u16
    }

    #[inline]
    pub(crate) fn nodes(&self) -> u16 {
        self.spec.nodes.len() as u16
    }

    #[inline]
    pub(crate) fn cpu_node(&self, cpu: CpuId) -> NodeId {
        NodeId(self.spec.cpu_node[cpu.0 as usize])
    }

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

    #[inline]
    pub(crate) fn set_event_ns(&self, now_ns: u64) {
        self.now_ns.set(self.now_ns.get().max(now_ns));
    }

    /// Event time.
    #[inline]
    pub(crate) fn event_ns(&self) -> u64 {
        self.now_ns.get()
    }

    pub(crate) fn count(&self, event: Event, n: u64) {
        let count = &self.counts[event as usize];
        count.set(count.get() + n);
    }
}

impl<L: Entered> State<L> {
    /// Charges that `bytes` bytes of an object of a slab are touched.
    #[inline]
    pub(crate) fn touch(&self, at: Addr, bytes: u32, access: Access) {
        if L::TIMED {
            if bytes > L::line_bytes(self) && L::keeps_lines(self) {
                return self.touch_lines(at, bytes, access);
            }
            let (beside, home) = self.memory.beside(at, L::line_bytes(self));
            L::object(self, beside, Place { address: at.0.get(), home }, bytes, access);
        }
    }

    /// [`State::touch`], line by line.
    #[cold]
    #[inline(never)]
    fn touch_lines(&self, at: Addr, bytes: u32, access: Access) {
        let line = u64::from(L::line_bytes(self));
        let (first, end) = (at.0.get(), at.0.get() + u64::from(bytes));
        let starts = std::iter::successors(Some(first), |at| Some((at / line + 1) * line));
        for start in starts.take_while(|start| *start < end) {
            let Some(address) = std::num::NonZeroU64::new(start) else { continue };
            let (beside, home) = self.memory.beside(Addr(address), line as u32);
            let place = Place { address: start, home };
            let bytes = line.min(end - start) as u32;
            match start == first {
                true => L::object(self, beside, place, bytes, access),
                false => L::next_line(self, beside, place, bytes, access),
            }
        }
    }

    /// Word `index` of storage.
    #[inline]
    pub(crate) fn storage_load(&self, object: Addr, index: u32) -> Option<Addr> {
        self.memory.stored(object, index, |storage, word| {
            L::storage(self, storage, index, Access::Read);
            word.get().try_into().ok().map(Addr)
        })
    }

    #[inline]
    pub(crate) fn storage_store(&self, object: Addr, index: u32, value: Option<Addr>) {
        self.memory.stored(object, index, |storage, word| {
            L::storage(self, storage, index, Access::Write);
            word.set(value.map_or(0, |value| value.0.get()));
        });
    }

    pub(crate) fn defer(&self, cpu: CpuId, delay_ns: u64, work: Work) {
        let mut timers = self.timers.borrow_mut();
        timers.defer(L::now_ns(self) + delay_ns, cpu, work);
        self.next_timer_ns.set(timers.earliest());
    }
}

/// Bytes of a word.
pub(crate) const WORD: u32 = 8;
