//! Level `cost`: a clock for each CPU, prices for memory that is touched, and locks that are waited for.
//!
//! ```text
//! Timed::spawn(cpu, at, f)       a call: f runs on cpu, from at on
//! Timed::run()                   until no call can continue
//!   Timed::clock()               in a call: its CPU's clock, picoseconds
//!   Timed::charge(ps)            computes
//!   Timed::turn()                lets calls with earlier clocks go first
//!   Timed::park(), unpark(..)    waits for another call
//! ```
//!
//! Outside of calls nothing is charged: a machine is set up and read there.
//!
//! Between two turns a call runs alone, so what it does to memory is in the order of turns, and not of clocks
//! to the picosecond; locks are taken in the order of clocks, because each takes a turn first.

use crate::calls::{CallId, Calls};
use crate::coherence::{self, Caches, Source};
use crate::hardware::{Handover, Hardware, Ps};
use crate::level::{Access, Level, Path};
use crate::memory::Addr;
use crate::spec::{BadSpec, MachineSpec};
use crate::world::{MachineAt, Modelled, State};
use slablab_platform::{CpuId, NodeId, Reclaim, Topology};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Level `cost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {}

/// The world of level `cost`.
pub type Timed = Modelled<Cost>;
/// A machine of level `cost`.
pub type TimedMachine = MachineAt<Cost>;

/// What an engine's operations cost beside the lines they touch, by its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// An allocation from the CPU's free list.
    pub list_pop: Ps,
    /// A free to the CPU's free list.
    pub list_push: Ps,
    /// An allocation from the CPU's array.
    pub array_pop: Ps,
    /// A free to the CPU's array.
    pub array_push: Ps,
    /// The way into a slow path.
    pub hold: Ps,
    /// An exchange of a slab's word: a locked exchange of 16 bytes, or the bit lock around two writes.
    pub exchange: Ps,
    /// Taking a free spinlock whose line this CPU has, and giving it back; with interrupts off, that too.
    pub lock: Ps,
}

/// Kinds of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Spent {
    /// Instructions, and lines that were in the CPU's caches.
    Compute = 0,
    /// Lines that other CPUs' caches had.
    Transfer = 1,
    /// Lines that memory had.
    Memory = 2,
    /// Waiting for locks.
    LockWait = 3,
}

impl Spent {
    /// Number of kinds.
    pub const COUNT: usize = 4;
}

/// What a machine's locks of one rank did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockTimes {
    /// How often one was taken.
    pub taken: u64,
    /// How often a call waited for it.
    pub waited: u64,
    /// How long calls waited.
    pub wait: Ps,
    /// How long calls held it.
    pub hold: Ps,
}

impl std::ops::Sub for LockTimes {
    type Output = LockTimes;

    fn sub(self, earlier: LockTimes) -> LockTimes {
        LockTimes {
            taken: self.taken - earlier.taken,
            waited: self.waited - earlier.waited,
            wait: self.wait - earlier.wait,
            hold: self.hold - earlier.hold,
        }
    }
}

/// Calls that wait for a lock, and when it is free.
#[derive(Debug, Default)]
pub struct Waiters {
    /// A call holds it that is suspended.
    taken: Cell<bool>,
    /// The next holder: the lock is on its way to it.
    promised: Cell<Option<CallId>>,
    waiting: RefCell<VecDeque<CallId>>,
    /// When it was taken, and when given back.
    since: Cell<Ps>,
    free_at: Cell<Ps>,
    holder: Cell<u16>,
}

impl Waiters {
    /// Whether a call holds the lock, or is about to.
    fn is_busy(&self) -> bool {
        self.taken.get() || self.promised.get().is_some()
    }
}

/// The words of the lines of an object that is storage.
type Lines = Box<[Cell<u64>]>;

/// A policy for requests that find no page.
type ReclaimPolicy = Rc<dyn Fn(Reclaim) -> bool>;

/// A number of a cache line that holds words of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineId(u32);

/// Words of 8 bytes in a line of the allocator's own data. Larger lines only make words share that do not
/// here.
const WORDS: u32 = 8;
/// Levels of ranks.
const RANKS: usize = 128;

/// What a machine of level `cost` keeps.
pub struct Clocks {
    clock: Vec<Cell<Ps>>,
    caches: Caches,
    hardware: Hardware,
    paths: Paths,
    pub(crate) calls: Calls,
    /// Words of lines, and where the next word goes.
    lines: RefCell<Vec<Cell<u64>>>,
    words_left: Cell<u32>,
    groups: Cell<u32>,
    reclaim: RefCell<Option<ReclaimPolicy>>,
    locks: RefCell<Vec<LockTimes>>,
    spent: Vec<[Cell<Ps>; Spent::COUNT]>,
    moved: Cell<u64>,
    /// Waits for locks by CPU and rank, for the heat map.
    waits: RefCell<Vec<Vec<Ps>>>,
    /// The random stream of unfair locks.
    random: Cell<u64>,
}

impl std::fmt::Debug for Clocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clocks")
            .field("calls", &self.calls)
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

impl Clocks {
    #[inline]
    fn charge(&self, cpu: CpuId, ps: Ps, kind: Spent) {
        if self.calls.running().is_none() {
            return;
        }
        let clock = &self.clock[cpu.0 as usize];
        clock.set(clock.get() + ps);
        let spent = &self.spent[cpu.0 as usize][kind as usize];
        spent.set(spent.get() + ps);
    }

    fn clock(&self, cpu: CpuId) -> Ps {
        self.clock[cpu.0 as usize].get()
    }

    /// A CPU's clock goes to `at`, never back.
    fn advance(&self, cpu: u16, at: Ps) {
        let clock = &self.clock[cpu as usize];
        clock.set(clock.get().max(at));
    }

    #[inline]
    fn touch(&self, word: &Cell<u64>, cpu: CpuId, lines: u64, access: Access) {
        let (after, price, source) = self.caches.touch(word.get(), cpu.0, lines, access);
        word.set(after);
        let kind = match source {
            Source::Hit => Spent::Compute,
            Source::Transfer => Spent::Transfer,
            Source::Memory => Spent::Memory,
        };
        if source != Source::Hit {
            self.moved.set(self.moved.get() + lines);
        }
        self.charge(cpu, price, kind);
    }

    /// A new line whose memory is on node `home`.
    fn fresh_line(&self, home: u16) {
        self.lines.borrow_mut().push(Cell::new(coherence::untouched(home)));
        self.words_left.set(WORDS);
    }

    /// The price of a lock that goes from one CPU to another while `waiting` calls wait, the next holder
    /// among them.
    fn handover(&self, from: u16, to: u16, waiting: u64) -> Ps {
        let one = self.caches.between(from, to);
        match self.hardware.costs.handover {
            Handover::Queued => one,
            // Every waiter reads the word again after it was written: the next holder is served in the middle
            // of them.
            Handover::Ticket => one * (waiting + 1) / 2,
            // The holder needs the line back before it can write it.
            Handover::TestAndSet => one + one * (waiting + 1) / 2,
        }
    }

    fn lock_times(&self, level: u8, change: impl FnOnce(&mut LockTimes)) {
        change(&mut self.locks.borrow_mut()[level as usize]);
    }
}

impl State<Cost> {
    fn cpu(&self) -> CpuId {
        self.call.cpu.get()
    }

    fn turn(&self) {
        let cpu = self.cpu();
        self.clocks.calls.turn(self.clocks.clock(cpu), cpu);
    }

    fn line(&self, line: LineId, touch: impl FnOnce(&Cell<u64>)) {
        touch(&self.clocks.lines.borrow()[line.0 as usize]);
    }

    /// The running call becomes the holder.
    fn hold(&self, waiters: &Waiters, line: LineId, level: u8) {
        let cpu = self.cpu();
        waiters.promised.set(None);
        waiters.taken.set(true);
        waiters.holder.set(cpu.0);
        self.clocks.charge(cpu, self.clocks.paths.lock, Spent::Compute);
        self.line(line, |word| self.clocks.touch(word, cpu, 1, Access::Write));
        waiters.since.set(self.clocks.clock(cpu));
        self.clocks.lock_times(level, |times| times.taken += 1);
    }

    /// The running call waits for a lock that another one holds, or that is free later than now.
    #[cold]
    fn wait(&self, waiters: &Waiters, line: LineId, level: u8) {
        let cpu = self.cpu();
        let arrived = self.clocks.clock(cpu);
        let me = self.clocks.calls.running().expect("outside of calls no lock is contended");
        if waiters.is_busy() {
            waiters.waiting.borrow_mut().push_back(me);
            self.clocks.calls.park();
        } else {
            waiters.promised.set(Some(me));
            let price = self.clocks.handover(waiters.holder.get(), cpu.0, 1);
            self.clocks.calls.wait_until(waiters.free_at.get() + price, cpu);
        }
        self.line(line, |word| word.set(coherence::handed_over(word.get(), cpu.0, &self.clocks.caches)));
        let waited = self.clocks.clock(cpu) - arrived;
        let spent = &self.clocks.spent[cpu.0 as usize][Spent::LockWait as usize];
        spent.set(spent.get() + waited);
        self.clocks.lock_times(level, |times| {
            times.waited += 1;
            times.wait += waited;
        });
        self.clocks.waits.borrow_mut()[cpu.0 as usize][level as usize] += waited;
    }

    /// Which waiter is next: the first, or with unfair locks one of the nearest.
    fn next_holder(&self, waiters: &Waiters) -> Option<CallId> {
        let mut waiting = waiters.waiting.borrow_mut();
        if self.clocks.hardware.costs.handover != Handover::TestAndSet || waiting.len() < 2 {
            return waiting.pop_front();
        }
        let from = waiters.holder.get();
        let price = |call: &CallId| self.clocks.caches.between(from, self.clocks.calls.cpu_of(*call).0);
        let nearest = waiting.iter().map(price).min()?;
        let near = waiting.iter().filter(|call| price(call) == nearest).count() as u64;
        let (seed, drawn) = crate::world::split_mix(self.clocks.random.get());
        self.clocks.random.set(seed);
        let at = waiting.iter().enumerate().filter(|(_, call)| price(call) == nearest);
        let at = at.map(|(at, _)| at).nth((drawn % near) as usize)?;
        waiting.remove(at)
    }
}

scoped_tls::scoped_thread_local!(static MACHINE: State<Cost>);

/// Ends a machine's calls while the machine is still entered.
struct Ending<'a>(&'a State<Cost>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.clocks.calls.end(&self.0.call);
    }
}

impl Level for Cost {
    const TIMED: bool = true;
    type Line = LineId;
    type Beside = Cell<u64>;
    type Lines = Lines;
    type Waiters = Waiters;
    type Held<'a> = (&'a Waiters, LineId);
    type Clocks = Clocks;

    #[inline]
    fn with<T>(f: impl FnOnce(&State<Self>) -> T) -> T {
        MACHINE.with(f)
    }

    fn enter<T>(state: &State<Self>, f: impl FnOnce() -> T) -> T {
        MACHINE.set(state, || {
            let _ending = Ending(state);
            f()
        })
    }

    fn line() -> LineId {
        Self::with(|state| {
            let clocks = &state.clocks;
            if clocks.words_left.get() == 0 || clocks.groups.get() == 0 {
                clocks.fresh_line(state.spec.cpu_node[state.cpu().0 as usize]);
            }
            clocks.words_left.set(clocks.words_left.get() - 1);
            LineId(clocks.lines.borrow().len() as u32 - 1)
        })
    }

    fn together<T>(home: Option<NodeId>, make: impl FnOnce() -> T) -> T {
        Self::with(|state| {
            let clocks = &state.clocks;
            let home = home.map_or_else(|| state.spec.cpu_node[state.cpu().0 as usize], |node| node.0);
            clocks.fresh_line(home);
            clocks.groups.set(clocks.groups.get() + 1);
            let made = make();
            clocks.groups.set(clocks.groups.get() - 1);
            // What the outer group makes afterwards starts a line.
            clocks.words_left.set(0);
            made
        })
    }

    #[inline]
    fn word(line: LineId, access: Access) {
        Self::with(|state| {
            let cpu = state.cpu();
            if access == Access::Exchange {
                state.clocks.charge(cpu, state.clocks.paths.exchange, Spent::Compute);
            }
            state.line(line, |word| state.clocks.touch(word, cpu, 1, access));
        });
    }

    #[inline]
    fn object(state: &State<Self>, beside: &Cell<u64>, home: u16, bytes: u32, access: Access) {
        if beside.get() == 0 {
            beside.set(coherence::untouched(home));
        }
        let line = state.clocks.hardware.costs.line_bytes.max(1);
        state.clocks.touch(beside, state.cpu(), bytes.div_ceil(line).max(1) as u64, access);
    }

    fn lines(words: u32, home: u16) -> Lines {
        (0..words.div_ceil(WORDS)).map(|_| Cell::new(coherence::untouched(home))).collect()
    }

    #[inline]
    fn storage(state: &State<Self>, lines: &Lines, index: u32, access: Access) {
        state.clocks.touch(&lines[(index / WORDS) as usize], state.cpu(), 1, access);
    }

    #[inline]
    fn path(path: Path) {
        Self::with(|state| {
            let paths = &state.clocks.paths;
            let price = match path {
                Path::ListPop => paths.list_pop,
                Path::ListPush => paths.list_push,
                Path::ArrayPop => paths.array_pop,
                Path::ArrayPush => paths.array_push,
                Path::Hold => paths.hold,
            };
            state.clocks.charge(state.cpu(), price, Spent::Compute);
        });
    }

    fn lock(waiters: &Waiters, line: LineId, level: u8) -> (&Waiters, LineId) {
        Self::with(|state| {
            state.turn();
            let later = waiters.free_at.get() > state.clocks.clock(state.cpu());
            if waiters.is_busy() || later && state.clocks.calls.running().is_some() {
                state.wait(waiters, line, level);
            }
            state.hold(waiters, line, level);
        });
        (waiters, line)
    }

    fn try_lock(waiters: &Waiters, line: LineId, level: u8) -> Option<(&Waiters, LineId)> {
        Self::with(|state| {
            if waiters.is_busy() || waiters.free_at.get() > state.clocks.clock(state.cpu()) {
                let cpu = state.cpu();
                state.line(line, |word| state.clocks.touch(word, cpu, 1, Access::Read));
                return None;
            }
            state.hold(waiters, line, level);
            Some((waiters, line))
        })
    }

    fn unlock((waiters, _): (&Waiters, LineId), level: u8) {
        Self::with(|state| {
            let clocks = &state.clocks;
            let now = clocks.clock(state.cpu());
            waiters.taken.set(false);
            waiters.free_at.set(now);
            clocks.lock_times(level, |times| times.hold += now.saturating_sub(waiters.since.get()));
            let waiting = waiters.waiting.borrow().len() as u64;
            if let Some(next) = state.next_holder(waiters) {
                let cpu = clocks.calls.cpu_of(next);
                waiters.promised.set(Some(next));
                clocks.calls.unpark(next, cpu, now + clocks.handover(waiters.holder.get(), cpu.0, waiting));
            }
        });
    }

    fn now_ns(state: &State<Self>) -> u64 {
        state.clocks.clock(state.cpu()) / 1000
    }

    fn advance_to(state: &State<Self>, now_ns: u64) {
        let at = now_ns * 1000;
        match state.clocks.calls.running() {
            Some(_) => state.clocks.advance(state.cpu().0, at),
            None => (0..state.clocks.clock.len()).for_each(|cpu| state.clocks.advance(cpu as u16, at)),
        }
    }

    fn reclaim(ask: Reclaim) -> bool {
        let policy = Self::with(|state| state.clocks.reclaim.borrow().clone());
        policy.is_some_and(|policy| policy(ask))
    }
}

impl TimedMachine {
    /// A machine with untouched memory, unused slots, and clocks at 0.
    ///
    /// # Errors
    /// Numbers that contradict each other, more than 4,096 CPUs.
    pub fn new(spec: MachineSpec, hardware: Hardware, paths: Paths) -> Result<TimedMachine, BadSpec> {
        spec.check()?;
        let cpus = spec.cpu_node.len();
        let clocks = Clocks {
            clock: vec![Cell::new(0); cpus],
            caches: Caches::new(&spec, &hardware)?,
            hardware,
            paths,
            calls: Calls::default(),
            lines: RefCell::default(),
            words_left: Cell::new(0),
            groups: Cell::new(0),
            reclaim: RefCell::new(None),
            locks: RefCell::new(vec![LockTimes::default(); RANKS]),
            spent: (0..cpus).map(|_| Default::default()).collect(),
            moved: Cell::new(0),
            waits: RefCell::new(vec![vec![0; RANKS]; cpus]),
            random: Cell::new(!spec.seed),
        };
        Self::with_clocks(spec, clocks)
    }
}

impl Timed {
    /// Makes a call that runs `f` on `cpu` from `at` on, or from the CPU's clock on if that is later.
    pub fn spawn(cpu: CpuId, at: Ps, f: impl FnOnce() + 'static) -> CallId {
        Cost::with(|state| state.clocks.calls.spawn(cpu, at, f))
    }

    /// Continues calls until none can. Returns the calls that are parked for ever.
    pub fn run() -> Vec<CallId> {
        Self::run_until(Ps::MAX);
        Cost::with(|state| state.clocks.calls.parked())
    }

    /// Continues calls as long as one can at or before `last`.
    pub fn run_until(last: Ps) {
        Cost::with(|state| {
            state.clocks.calls.run(&state.call, last, |cpu, at| state.clocks.advance(cpu, at));
        });
    }

    /// The running call; `None` outside of calls.
    pub fn current() -> Option<CallId> {
        Cost::with(|state| state.clocks.calls.running())
    }

    /// The clock of the CPU this code runs on.
    #[inline]
    pub fn clock() -> Ps {
        Cost::with(|state| state.clocks.clock(state.cpu()))
    }

    /// The clock of any CPU.
    pub fn clock_of(cpu: CpuId) -> Ps {
        Cost::with(|state| state.clocks.clock(cpu))
    }

    /// Computes for `ps` picoseconds.
    #[inline]
    pub fn charge(ps: Ps) {
        Cost::with(|state| state.clocks.charge(state.cpu(), ps, Spent::Compute));
    }

    /// Computes for `cycles` of the CPU's cycles.
    #[inline]
    pub fn cycles(cycles: u64) {
        Cost::with(|state| {
            state.clocks.charge(state.cpu(), cycles * state.clocks.hardware.costs.cycle, Spent::Compute);
        });
    }

    /// Touches the first `bytes` bytes of an object of a slab.
    pub fn touch(object: Addr, bytes: u32, access: Access) {
        Cost::with(|state| state.touch(object, bytes, access));
    }

    /// Lets calls with earlier clocks go first.
    #[inline]
    pub fn turn() {
        Cost::with(State::turn);
    }

    /// Suspends the running call until another one unparks it.
    pub fn park() {
        Cost::with(|state| state.clocks.calls.park());
    }

    /// Continues a parked call on `cpu`, not before `at`.
    ///
    /// # Panics
    /// If the call is not parked.
    pub fn unpark(call: CallId, cpu: CpuId, at: Ps) {
        Cost::with(|state| state.clocks.calls.unpark(call, cpu, at));
    }

    /// Sets the policy for requests that find no page. It runs in the call that asks, and may park it.
    pub fn set_reclaim(policy: impl Fn(Reclaim) -> bool + 'static) {
        Cost::with(|state| *state.clocks.reclaim.borrow_mut() = Some(Rc::new(policy)));
    }

    /// What the parts of the machine cost.
    pub fn hardware<T>(f: impl FnOnce(&Hardware) -> T) -> T {
        Cost::with(|state| f(&state.clocks.hardware))
    }

    /// How a CPU spent its time so far.
    pub fn spent(cpu: CpuId) -> [Ps; Spent::COUNT] {
        Cost::with(|state| state.clocks.spent[cpu.0 as usize].each_ref().map(Cell::get))
    }

    /// What the locks of a rank did so far.
    pub fn lock_times<R: slablab_platform::Rank>() -> LockTimes {
        Cost::with(|state| state.clocks.locks.borrow()[R::LEVEL as usize])
    }

    /// How long calls on a CPU waited for locks of a rank.
    pub fn lock_waits<R: slablab_platform::Rank>(cpu: CpuId) -> Ps {
        Cost::with(|state| state.clocks.waits.borrow()[cpu.0 as usize][R::LEVEL as usize])
    }

    /// Cache lines that came from other CPUs' caches or from memory.
    pub fn lines_moved() -> u64 {
        Cost::with(|state| state.clocks.moved.get())
    }

    /// How often a call was continued.
    pub fn switches() -> u64 {
        Cost::with(|state| state.clocks.calls.switches())
    }

    /// The latest clock of all CPUs.
    pub fn latest() -> Ps {
        (0..Self::cpus()).map(|cpu| Self::clock_of(CpuId(cpu))).max().unwrap_or(0)
    }
}
