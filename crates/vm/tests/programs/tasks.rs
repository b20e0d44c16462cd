//! A machine of tasks: programs, kswapd and a flusher. A task stops wherever it may sleep, and the next one
//! is drawn at random, as is the request of the device that ends. So each seed is another interleaving.
//!
//! ```text
//! turn ── a task that can run: on to its next stop          a task stops: alloc, free, submit, resched
//!      └─ a request of the device: it ends, waiters wake     it waits: a frame's lock or write, a throttle
//! nobody can run and no request is under way: a wake-up was lost
//! ```

use crate::machine::{Bench, Machine, account, memory};
use crate::reference::Random;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use slablab_vm::counters::Counter;
use slablab_vm::mm::{self, Rules, Why};
use slablab_vm::{
    Ask, Flags, Frame, Host, Io, Mark, Place, Purpose, Replacement, Shrinker, Shrunk, Throttle, Vm, Waited,
    Work,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Watermarks: min, low, high.
const MARKS: [u64; 3] = [4, 8, 16];
/// Steps of each program.
const STEPS: u32 = 200;
/// Turns after which a run is without an end.
const TURNS: u64 = 20_000_000;

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// A frame, until somebody wakes it.
    Frame(Frame, Waited),
    /// The time when a throttle ends by itself.
    Until(u64),
    /// A daemon without work.
    Idle,
    Ended,
}

struct Request {
    place: Place,
    frames: Vec<Frame>,
    write: bool,
}

/// What tasks share.
struct World {
    vm: Rc<Vm>,
    free: RefCell<Vec<Frame>>,
    requests: RefCell<Vec<Request>>,
    /// Frames whose pages have a buffer head.
    buffers: RefCell<BTreeSet<u32>>,
    states: RefCell<Vec<State>>,
    random: RefCell<Random>,
    now: Cell<u64>,
    /// The places of kswapd and the flusher among the tasks.
    kswapd: usize,
    flusher: usize,
    /// The daemons end.
    stopping: Cell<bool>,
}

impl World {
    fn below(&self, n: usize) -> usize {
        self.random.borrow_mut().below(n as u32) as usize
    }

    fn wake_task(&self, task: usize) {
        let state = &mut self.states.borrow_mut()[task];
        if *state == State::Idle {
            *state = State::Ready;
        }
    }

    /// A request of the device ends.
    fn end_request(self: &Rc<Self>) {
        let at = self.below(self.requests.borrow().len());
        let Request { place, frames, write } = self.requests.borrow_mut().swap_remove(at);
        let io = Io { place, frames: &frames, write, sync: false, reclaim: false };
        let interrupt =
            Task { world: self.clone(), number: usize::MAX, stops: None, reclaims: Cell::new(true) };
        if write { self.vm.write_done(&interrupt, io) } else { self.vm.read_done(&interrupt, io) }
    }
}

/// The host, as one task sees it; an interrupt cannot stop.
struct Task<'y> {
    world: Rc<World>,
    number: usize,
    stops: Option<&'y Yielder<(), ()>>,
    reclaims: Cell<bool>,
}

impl Task<'_> {
    /// Others run, until this task can go on.
    fn stop(&self, state: State) {
        if let Some(stops) = self.stops {
            self.world.states.borrow_mut()[self.number] = state;
            stops.suspend(());
        }
    }

    /// A daemon: works whenever it is woken.
    fn serve(&self, work: impl Fn()) {
        while !self.world.stopping.get() {
            self.stop(State::Idle);
            work();
        }
    }

    /// Perhaps others run.
    fn may_stop(&self) {
        if self.world.below(3) == 0 {
            self.stop(State::Ready);
        }
    }

    fn take_free(&self) -> Option<Frame> {
        self.world.free.borrow_mut().pop()
    }

    /// Reclaims until a page is free, or nothing is gained any more.
    fn reclaim(&self, vm: &Vm, purpose: Purpose) -> Option<Frame> {
        self.reclaims.set(true);
        let fs = purpose != Purpose::ReadAhead;
        let ask = Ask { node: 0, class: 0, order: 0, io: true, fs, space: None, group: false };
        let mut page = None;
        for _ in 0..64 {
            page = vm.policy.steal_clean(vm, self, 0);
            if page.is_none() {
                page = vm.policy.direct(vm, self, &ask).page;
            }
            if page.is_some() || self.free_frames() as u64 > MARKS[0] {
                break;
            }
            self.world.wake_task(self.world.kswapd);
            self.stop(State::Until(self.world.now.get() + 1_000_000));
        }
        self.reclaims.set(false);
        page
    }
}

impl Bench for Task<'_> {
    fn settle(&self, _vm: &Vm) {
        while !self.world.requests.borrow().is_empty() {
            match self.stops {
                Some(_) => self.stop(State::Ready),
                None => self.world.end_request(),
            }
        }
    }

    fn free_frames(&self) -> usize {
        self.world.free.borrow().len()
    }

    fn check_buffers(&self, vm: &Vm) -> Result<(), String> {
        let buffers = self.world.buffers.borrow();
        vm.with(|state| {
            let has = |frame: &u32| state.frames.has(Frame(*frame), Flags::BUFFERS);
            let wrong = (0..state.frames.count()).find(|frame| has(frame) != buffers.contains(frame));
            wrong.map_or(Ok(()), |frame| Err(format!("buffers of frame {frame}: {}", has(&frame))))
        })
    }
}

impl Host for Task<'_> {
    fn now(&self) -> u64 {
        self.world.now.get()
    }

    fn work(&self, _work: Work, n: u32) {
        self.world.now.set(self.world.now.get() + 100 * u64::from(n));
    }

    fn resched(&self) {
        self.may_stop();
    }

    fn alloc(&self, vm: &Vm, purpose: Purpose) -> Option<Frame> {
        self.may_stop();
        let mut page = None;
        if !self.reclaims.get() && self.free_frames() as u64 <= MARKS[1] {
            self.world.wake_task(self.world.kswapd);
            if self.free_frames() as u64 <= MARKS[0] {
                page = self.reclaim(vm, purpose);
            }
        }
        let page = page.or_else(|| self.take_free());
        vm.with(|state| state.counters.add(Counter::PgAlloc, page.is_some().into()));
        self.may_stop();
        page
    }

    fn free(&self, vm: &Vm, frame: Frame) {
        self.may_stop();
        vm.with(|state| state.count(Counter::PgFree));
        self.world.buffers.borrow_mut().remove(&frame.0);
        let free = &mut self.world.free.borrow_mut();
        assert!(!free.contains(&frame), "{frame:?} is freed twice");
        free.push(frame);
    }

    fn submit(&self, _vm: &Vm, io: Io<'_>) {
        let Io { place, frames, write, .. } = io;
        self.world.requests.borrow_mut().push(Request { place, frames: frames.to_vec(), write });
        self.may_stop();
    }

    fn wait(&self, vm: &Vm, frame: Frame, waited: Waited) {
        let flag = match waited {
            Waited::Locked => Flags::LOCKED,
            Waited::Writeback => Flags::WRITEBACK,
        };
        while vm.with(|state| state.frames.has(frame, flag)) {
            assert!(self.stops.is_some(), "an interrupt waits for {frame:?}");
            self.stop(State::Frame(frame, waited));
        }
    }

    fn wake(&self, frame: Frame) {
        for state in self.world.states.borrow_mut().iter_mut() {
            if matches!(state, State::Frame(of, _) if *of == frame) {
                *state = State::Ready;
            }
        }
    }

    fn throttle(&self, _why: Throttle, most: u64) {
        self.stop(State::Until(self.world.now.get() + most));
    }

    fn wake_flushers(&self, _pages: u64) {
        self.world.wake_task(self.world.flusher);
    }

    fn wake_kswapd(&self, _node: u16, _order: u8, _class: u8) {
        self.world.wake_task(self.world.kswapd);
    }

    fn mark(&self, _zone: usize, mark: Mark) -> u64 {
        MARKS[mark as usize]
    }

    fn free_pages(&self, _zone: usize) -> u64 {
        self.free_frames() as u64
    }

    fn is_above(&self, zone: usize, mark: Mark, _order: u8, _class: u8) -> bool {
        self.free_pages(zone) > MARKS[mark as usize]
    }

    fn shrinkers(&self) -> Vec<Shrinker> {
        self.may_stop();
        Vec::new()
    }

    fn shrinkable(&self, _shrinker: usize) -> u64 {
        0
    }

    fn shrink(&self, _vm: &Vm, _shrinker: usize, _n: u64) -> Shrunk {
        Shrunk::default()
    }

    fn reap_slabs(&self) -> u64 {
        0
    }

    fn pageblock_frames(&self) -> u32 {
        64
    }

    fn buffers_created(&self, _vm: &Vm, frame: Frame) -> bool {
        self.may_stop();
        assert!(self.world.buffers.borrow_mut().insert(frame.0), "{frame:?} has a buffer head");
        true
    }

    fn buffers_freed(&self, frame: Frame) {
        assert!(self.world.buffers.borrow_mut().remove(&frame.0), "{frame:?} has no buffer head");
    }

    fn buffers_moved(&self, from: Frame, to: Frame) {
        self.buffers_freed(from);
        self.world.buffers.borrow_mut().insert(to.0);
    }

    fn is_kswapd(&self) -> bool {
        self.number == self.world.kswapd
    }

    fn is_congested(&self, _place: Place) -> bool {
        self.world.requests.borrow().len() > 24
    }
}

/// Runs programs to their ends. Returns the counters, and the turns that it took.
pub(crate) fn run(
    policy: Box<dyn Replacement>,
    rules: Rules,
    sizes: (u32, u32),
    programs: usize,
    seed: u64,
) -> (Vec<u64>, u64) {
    let vm = memory(policy, sizes);
    let world = Rc::new(World {
        vm: vm.clone(),
        free: RefCell::new((0..sizes.0).rev().map(Frame).collect()),
        requests: RefCell::default(),
        buffers: RefCell::default(),
        states: RefCell::new(vec![State::Ready; programs + 2]),
        random: RefCell::new(Random(seed)),
        now: Cell::new(0),
        kswapd: programs,
        flusher: programs + 1,
        stopping: Cell::new(false),
    });
    let mut tasks: Vec<_> = (0..programs + 2).map(|number| start(&world, rules, number, seed)).collect();
    let mut turns = 0;
    while world.states.borrow()[..programs].iter().any(|state| *state != State::Ended) {
        turns += 1;
        assert!(turns < TURNS, "a run without an end: {:?}", world.states.borrow());
        turn(&world, &mut tasks);
        if turns % 256 == 0 {
            check(&vm);
        }
    }
    world.stopping.set(true);
    while world.states.borrow().iter().any(|state| *state != State::Ended) {
        [world.kswapd, world.flusher].into_iter().for_each(|daemon| world.wake_task(daemon));
        turn(&world, &mut tasks);
    }
    let interrupt = Task { world: world.clone(), number: usize::MAX, stops: None, reclaims: Cell::new(true) };
    interrupt.check_buffers(&vm).unwrap_or_else(|error| panic!("{error}"));
    account(&vm, &interrupt, sizes.0);
    let counters = vm.with(|state| Counter::ALL.iter().map(|counter| state.counters.get(*counter)).collect());
    (counters, turns)
}

fn check(vm: &Vm) {
    let checked = vm.with(|state| state.check().and_then(|()| vm.policy.check(state)));
    checked.unwrap_or_else(|error| panic!("{error}"));
}

type Run = Coroutine<(), (), ()>;

fn start(world: &Rc<World>, rules: Rules, number: usize, seed: u64) -> Run {
    let world = world.clone();
    Coroutine::new(move |stops, ()| {
        let task = Task { world: world.clone(), number, stops: Some(stops), reclaims: Cell::new(false) };
        let vm = world.vm.clone();
        if number == world.kswapd {
            task.reclaims.set(true);
            task.serve(|| vm.policy.kswapd(&vm, &task, 0, 0, 0));
        } else if number == world.flusher {
            task.serve(|| {
                mm::write_back(&vm, &task, &rules, Why::Background);
                mm::write_back(&vm, &task, &rules, Why::Old);
            });
        } else {
            let mut program = Machine::new(&vm, &task, rules, seed * 31 + number as u64);
            program.has_company = true;
            program.steps(STEPS);
            program.end();
        }
        world.states.borrow_mut()[number] = State::Ended;
    })
}

/// One task goes on, or one request ends.
fn turn(world: &Rc<World>, tasks: &mut [Run]) {
    let now = world.now.get();
    let can_run = |state: &State| match state {
        State::Ready => true,
        State::Until(end) => *end <= now,
        _ => false,
    };
    let ready: Vec<usize> = {
        let states = world.states.borrow();
        (0..tasks.len()).filter(|task| can_run(&states[*task])).collect()
    };
    let requests = world.requests.borrow().len();
    let choices = ready.len() + requests.min(2);
    if choices == 0 {
        // Nothing happens before the first throttle ends.
        let states = world.states.borrow();
        let ends = states.iter().filter_map(|state| match state {
            State::Until(end) => Some(*end),
            _ => None,
        });
        let Some(first) = ends.min() else { panic!("everybody waits, and nothing is under way: {states:?}") };
        world.now.set(first);
        return;
    }
    match ready.get(world.below(choices)) {
        Some(task) => {
            world.states.borrow_mut()[*task] = State::Ready;
            let result = tasks[*task].resume(());
            assert!(
                matches!(result, CoroutineResult::Yield(())) || world.states.borrow()[*task] == State::Ended
            );
        }
        None => world.end_request(),
    }
}
