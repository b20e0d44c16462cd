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
//! Outside of calls nothing is charged, no line moves and no lock takes time: a machine is set up and read
//! there.
//!
//! Between two turns a call runs alone, so what it does to memory is in the order of turns, and not of clocks
//! to the picosecond; locks are taken in the order of clocks, because each takes a turn first.

use crate::calls::CallId;
use crate::clocks::{Clocks, LineId, Lines, LockTimes, LockWait, Paths, ReclaimPolicy, Serves, Spent};
use crate::hardware::{Hardware, Ps};
use crate::level::{Access, Level, Path, Place};
use crate::memory::Addr;
use crate::spec::{BadSpec, MachineSpec};
use crate::state::{Entered, State, WORD};
use crate::waiters::{LockLines, Waiters};
use crate::world::{MachineAt, Modelled};
use slablab_platform::{
    Charged, CpuId, Event, NodeId, Pfn, Rank, Reclaim, Reclaimed, Site, Step, Topology, Touch,
};
use std::cell::Cell;
use std::rc::Rc;

/// Level `cost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {}

/// The world of level `cost`.
pub type Timed = Modelled<Cost>;
/// A machine of level `cost`.
pub type TimedMachine = MachineAt<Cost>;

impl State<Cost> {
    /// The node of the CPU.
    fn node(&self) -> u16 {
        self.spec.cpu_node[self.cpu().0 as usize]
    }

    // These are not inlined: the closures that call them are small, so that the thread's machine is found
    // without a call.

    #[inline(never)]
    fn word(&self, line: LineId, access: Access) {
        if access == Access::Exchange {
            // A locked instruction waits for all earlier lines.
            self.clocks.walks.end();
            self.clocks.charge(self.cpu(), self.clocks.paths.exchange, Spent::Compute);
        }
        self.clocks.line(self.cpu(), line, access);
    }

    #[inline(never)]
    fn path(&self, path: Path, line: LineId) {
        let paths = &self.clocks.paths;
        let price = match path {
            Path::ListPop => paths.list_pop,
            Path::ListPush => paths.list_push,
            Path::ArrayPop => paths.array_pop,
            Path::ArrayPush => paths.array_push,
            Path::Hold => paths.hold,
        };
        self.clocks.charge(self.cpu(), price, Spent::Compute);
        self.clocks.line(self.cpu(), line, Access::Write);
    }

    #[inline(never)]
    fn timed_link(&self, object: Addr) -> Option<Addr> {
        // The next object is known when this link is there.
        self.clocks.walks.chained(|| self.touch_link(object, Access::Read));
        self.memory.link(object)
    }

    #[inline(never)]
    fn set_timed_link(&self, object: Addr, next: Option<Addr>) {
        self.touch_link(object, Access::Write);
        self.memory.set_link(object, next);
    }

    #[inline(never)]
    fn touch_object(&self, object: Addr, bytes: u32, access: Access) {
        self.touch(object, bytes, access);
    }

    /// Charges that a free object's link is touched.
    #[inline]
    fn touch_link(&self, object: Addr, access: Access) {
        if self.clocks.paths.links_in_descriptor {
            self.word(self.memory.descriptor(object), access);
        } else {
            self.touch(object, WORD, access);
        }
    }

    #[inline(never)]
    fn lock<R: Rank>(&self, waiters: &Waiters, lines: LockLines) {
        // A lock that is taken out of order may never come, so the order is checked before the call waits.
        self.check_rank::<R>();
        self.clocks.lock(self.cpu(), waiters, lines, R::LEVEL);
        self.take_rank::<R>();
    }

    /// What `f` charges.
    #[inline]
    fn charged(&self, f: impl FnOnce()) -> Charged {
        let (cpu, clocks) = (self.cpu(), &self.clocks);
        let (ps, lines) = (clocks.clock(cpu), clocks.moved.get());
        f();
        Charged { ps: clocks.clock(cpu) - ps, lines: clocks.moved.get() - lines }
    }

    #[inline(never)]
    fn touched(&self, site: Site, bytes: u32, touch: Touch) -> Charged {
        let (cpu, clocks) = (self.cpu(), &self.clocks);
        clocks.keeps_lines.set(true);
        if clocks.calls.running().is_none() {
            return Charged::default();
        }
        let access = match touch {
            Touch::Read => Access::Read,
            Touch::Fill => Access::Zero,
            Touch::Write | Touch::Exchange => Access::Write,
        };
        self.charged(|| {
            if touch == Touch::Exchange {
                let costs = &clocks.hardware.costs;
                let price = if bytes > WORD { costs.exchange16 } else { costs.locked_exchange };
                clocks.charge(cpu, price, Spent::Compute);
            }
            match site {
                Site::Frame(pfn, offset) => {
                    self.touch(self.memory.address(pfn, offset.into()), bytes, access)
                }
                Site::Descriptor(_) => clocks.line(cpu, self.line_of(site), access),
                Site::Own(at, node) => {
                    let line = u64::from(clocks.caches.line_bytes());
                    for number in at / line..=(at + u64::from(bytes).max(1) - 1) / line {
                        clocks.own(cpu, number * line, node.0, access);
                    }
                }
            }
        })
    }

    /// The line of a site. Of a frame's bytes the line of its descriptor: no word of ours lies in a frame.
    fn line_of(&self, site: Site) -> LineId {
        match site {
            Site::Frame(pfn, _) | Site::Descriptor(pfn) => self.memory.own_descriptor(pfn),
            Site::Own(address, node) => self.clocks.own_line(address, node.0),
        }
    }

    #[inline(never)]
    fn ran(&self, step: Step, times: u64) -> Charged {
        let costs = &self.clocks.hardware.costs;
        let ps = match step {
            Step::Instruction => times * costs.cycle / INSTRUCTIONS_PER_CYCLE,
            Step::Interrupts => times * costs.interrupts,
            Step::LocalExchange => times * costs.local_exchange,
        };
        self.charged(|| self.clocks.charge(self.cpu(), ps, Spent::Compute))
    }

    #[inline(never)]
    fn unlock<R: Rank>(&self, waiters: &Waiters) {
        self.drop_rank::<R>();
        self.clocks.unlock(self.cpu(), waiters, R::LEVEL);
    }
}

/// Instructions of reported code that a CPU does in a cycle, beside its loads that hit (assumed: SLUB's fast
/// path does as many, crates/sim/src/heap/paths.rs).
const INSTRUCTIONS_PER_CYCLE: u64 = 3;

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
    type LockLines = LockLines;
    type Beside = Cell<u64>;
    type Lines = Lines;
    type Waiters = Waiters;
    type Held<'a> = &'a Waiters;
    type Clocks = Clocks;

    fn line() -> LineId {
        Self::with(|state| state.clocks.new_word(state.node()))
    }

    fn together<T>(home: Option<NodeId>, make: impl FnOnce() -> T) -> T {
        Self::with(|state| {
            let home = home.map_or_else(|| state.node(), |node| node.0);
            state.clocks.group(home, make)
        })
    }

    // Not inlined, as `with` below: the thread's machine is found without a call then.
    fn word(line: LineId, access: Access) {
        Self::with(|state| state.word(line, access));
    }

    fn lines(words: u32, home: u16) -> Lines {
        Self::with(|state| state.clocks.storage_lines(words, home))
    }

    fn path(path: Path, line: LineId) {
        Self::with(|state| state.path(path, line));
    }

    #[inline]
    fn counted(event: Event) {
        let watch = Self::with(|state| {
            let clocks = &state.clocks;
            clocks.watches_events.get().then(|| clocks.events.borrow().clone()).flatten()
        });
        if let Some(watch) = watch {
            watch(event);
        }
    }

    fn lock_lines() -> LockLines {
        LockLines { word: Self::line(), data: Self::line() }
    }

    fn lock<R: Rank>(waiters: &Waiters, lines: LockLines) -> &Waiters {
        Self::with(|state| state.lock::<R>(waiters, lines));
        waiters
    }

    fn try_lock<R: Rank>(waiters: &Waiters, lines: LockLines) -> Option<&Waiters> {
        Self::with(|state| {
            let taken = state.clocks.try_lock(state.cpu(), waiters, lines, R::LEVEL);
            taken.then(|| state.take_rank::<R>())
        })?;
        Some(waiters)
    }

    fn unlock<R: Rank>(waiters: &Waiters) {
        Self::with(|state| state.unlock::<R>(waiters));
    }

    fn reclaim(ask: Reclaim) -> Reclaimed {
        reclaim_policy().map_or(Reclaimed::NOTHING, |policy| policy.reclaim(ask))
    }

    fn requested(order: u8) {
        if let Some(policy) = reclaim_policy() {
            policy.requested(order);
        }
    }

    fn clean_frames(node: NodeId, zone: u8) -> u64 {
        reclaim_policy().map_or(0, |policy| policy.clean_frames(node, zone))
    }

    fn touched(site: Site, bytes: u32, touch: Touch) -> Charged {
        Self::with(|state| state.touched(site, bytes, touch))
    }

    fn ran(step: Step, times: u64) -> Charged {
        Self::with(|state| state.ran(step, times))
    }

    fn made_at<T>(site: Site, make: impl FnOnce() -> T) -> T {
        Self::with(|state| state.clocks.on_line(state.line_of(site), make))
    }

    fn aside<T>(f: impl FnOnce() -> T) -> T {
        Self::with(|state| state.clocks.calls.outside(f))
    }

    fn walk<T>(f: impl FnOnce() -> T) -> T {
        let answer = f();
        Self::with(|state| state.clocks.walks.end());
        answer
    }

    fn visits() {
        Self::with(|state| state.clocks.walks.visit());
    }

    fn keeps_freed(pfn: Pfn, order: u8) -> bool {
        reclaim_policy().is_some_and(|policy| policy.keeps_freed(pfn, order))
    }
}

impl Entered for Cost {
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

    #[inline]
    fn line_bytes(state: &State<Self>) -> u32 {
        state.clocks.caches.line_bytes()
    }

    #[inline]
    fn object(state: &State<Self>, beside: &Cell<u64>, at: Place, bytes: u32, access: Access) {
        state.clocks.object(state.cpu(), beside, at, bytes, access);
    }

    #[inline]
    fn keeps_lines(state: &State<Self>) -> bool {
        state.clocks.keeps_lines.get()
    }

    fn next_line(state: &State<Self>, beside: &Cell<u64>, at: Place, bytes: u32, access: Access) {
        state.clocks.next_line(state.cpu(), beside, at, bytes, access);
    }

    #[inline]
    fn storage(state: &State<Self>, lines: &Lines, index: u32, access: Access) {
        state.clocks.storage(state.cpu(), lines, index, access);
    }

    #[inline]
    fn link(state: &State<Self>, object: Addr) -> Option<Addr> {
        state.timed_link(object)
    }

    #[inline]
    fn set_link(state: &State<Self>, object: Addr, next: Option<Addr>) {
        state.set_timed_link(object, next);
    }

    fn now_ns(state: &State<Self>) -> u64 {
        state.clocks.clock(state.cpu()) / 1000
    }

    /// Grace periods follow each other: the first one that begins later ends two boundaries from now.
    fn grace_period_end(state: &State<Self>, now_ns: u64) -> u64 {
        let length = state.spec.grace_period_ns.max(1);
        (now_ns / length + 2) * length
    }

    fn advance_to(state: &State<Self>, now_ns: u64) {
        let at = now_ns.saturating_mul(1000);
        let cpus = match state.clocks.calls.running() {
            Some(_) => state.cpu().0..state.cpu().0 + 1,
            None => 0..state.clocks.clock.len() as u16,
        };
        for cpu in cpus {
            state.clocks.advance(cpu, at);
        }
    }

    fn moved(state: &State<Self>, from: CpuId, to: CpuId) {
        if state.clocks.calls.running().is_some() {
            state.clocks.advance(to.0, state.clocks.clock(from));
        }
    }

    fn bytes(state: &State<Self>) -> usize {
        state.clocks.bytes()
    }
}

/// The machine's reclaim policy; it may be set anew while it runs.
fn reclaim_policy() -> Option<Rc<dyn ReclaimPolicy>> {
    Cost::with(|state| state.clocks.reclaim.borrow().clone())
}

impl TimedMachine {
    /// A machine with untouched memory, unused slots, and clocks at 0.
    ///
    /// # Errors
    /// Numbers that contradict each other, more than 4,096 CPUs.
    pub fn new(spec: MachineSpec, hardware: Hardware, paths: Paths) -> Result<TimedMachine, BadSpec> {
        spec.check()?;
        let clocks = Clocks::new(&spec, hardware, paths)?;
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
        Cost::with(|state| state.touch_object(object, bytes, access));
    }

    /// Announces that an object will be touched soon: the host's caches get what the model keeps of it. In
    /// the model nothing happens.
    pub fn warm(object: Addr) {
        Cost::with(|state| state.memory.warm(object));
    }

    /// Runs `f`, which reads the machine in the middle of a call, as code outside of calls: nothing is
    /// charged and no line moves. `f` takes no lock and lets no call go first.
    pub fn outside<T>(f: impl FnOnce() -> T) -> T {
        Cost::with(|state| state.clocks.calls.outside(f))
    }

    /// Lets calls with earlier clocks go first.
    #[inline]
    pub fn turn() {
        Cost::with(|state| state.clocks.turn(state.cpu()));
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

    /// Sets the policy for requests that find no page. It runs in the call that asks, and may park it. In
    /// every step that may wait the call is a reclaimer.
    pub fn set_reclaim(policy: impl Fn(Reclaim) -> Reclaimed + 'static) {
        Self::set_reclaim_policy(Serves(policy));
    }

    /// [`Timed::set_reclaim`] for a policy that also has clean pages, or task-local ones.
    pub fn set_reclaim_policy(policy: impl ReclaimPolicy + 'static) {
        Cost::with(|state| *state.clocks.reclaim.borrow_mut() = Some(Rc::new(policy)));
    }

    /// Calls `watch` at the end of each wait for a lock, in the call that waited. `watch` must not park it.
    pub fn watch_locks(watch: impl Fn(LockWait) + 'static) {
        Cost::with(|state| *state.clocks.watch.borrow_mut() = Some(Rc::new(watch)));
    }

    /// Calls `watch` at each event that an engine counts, in the call that counts it. `watch` must not park
    /// it.
    pub fn watch_events(watch: impl Fn(Event) + 'static) {
        Cost::with(|state| {
            state.clocks.watches_events.set(true);
            *state.clocks.events.borrow_mut() = Some(Rc::new(watch));
        });
    }

    /// The node that an object's memory is on. Nothing is charged.
    pub fn home_of(object: Addr) -> NodeId {
        Cost::with(|state| state.memory.home_of(state.memory.locate(object).0))
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
