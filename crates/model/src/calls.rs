//! Calls: stackful coroutines that run on the machine's CPUs in the order of their clocks.
//!
//! A call is the unit that can wait: it is suspended where it lets an earlier call go first, in a lock's
//! queue, and where it parks itself, and continues there. The call with the smallest clock goes next; of
//! equal clocks, that on the CPU with the smallest number.

use crate::coroutine::{Coroutine, Stack, suspend};
use crate::hardware::Ps;
use crate::state::Call;
use slablab_platform::CpuId;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A call's number. Numbers of ended calls are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u32);

/// Bytes of address space of a call's stack. Memory is used as it is touched.
const STACK_BYTES: usize = 128 << 10;
/// Stacks of ended calls that are kept.
const SPARE_STACKS: usize = 4096;

/// When a call continues: its clock (64 bits), its CPU (16), its number (32). One number, as turns are
/// compared all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u128);

impl Turn {
    /// Later than every turn.
    const NEVER: Turn = Turn(u128::MAX);

    #[inline]
    fn new(at: Ps, cpu: CpuId, id: u32) -> Turn {
        Turn((at as u128) << 64 | (cpu.0 as u128) << 32 | id as u128)
    }

    fn at(self) -> Ps {
        (self.0 >> 64) as Ps
    }

    fn cpu(self) -> CpuId {
        CpuId((self.0 >> 32) as u16)
    }

    fn id(self) -> u32 {
        self.0 as u32
    }

    /// Whether it comes before all turns of a CPU at a time.
    fn is_before(self, at: Ps, cpu: CpuId) -> bool {
        self < Turn::new(at, cpu, 0)
    }
}

/// One call that does not run.
struct Slot {
    resumable: Option<Coroutine>,
    call: Call,
    parked: bool,
}

/// All calls of one machine.
pub(crate) struct Calls {
    slots: RefCell<Vec<Slot>>,
    spare_slots: RefCell<Vec<u32>>,
    spare_stacks: RefCell<Vec<Stack>>,
    queue: RefCell<BinaryHeap<Reverse<Turn>>>,
    /// The earliest turn of a call that waits to continue.
    next: Cell<Turn>,
    /// The turn that was taken from the queue for the call that is continued now.
    taken: Cell<Option<Turn>>,
    running: Cell<Option<CallId>>,
    switches: Cell<u64>,
    /// Calls are being ended: none continues any more.
    ending: Cell<bool>,
}

impl Default for Calls {
    fn default() -> Self {
        Calls {
            slots: RefCell::default(),
            spare_slots: RefCell::default(),
            spare_stacks: RefCell::default(),
            queue: RefCell::default(),
            next: Cell::new(Turn::NEVER),
            taken: Cell::new(None),
            running: Cell::new(None),
            switches: Cell::new(0),
            ending: Cell::new(false),
        }
    }
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls")
            .field("running", &self.running)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// The running call. When it is suspended, ends or panics, the code that continued it runs on: outside of
/// calls, or in a call of another machine.
struct Running<'a> {
    calls: &'a Calls,
    running: &'a Call,
    id: u32,
    /// The call ended, or panicked.
    ended: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.calls.running.set(None);
        self.running.swap(&self.calls.slots.borrow()[self.id as usize].call);
        if self.ended {
            self.calls.spare_slots.borrow_mut().push(self.id);
        }
    }
}

impl Calls {
    /// The running call; `None` outside of calls.
    #[inline]
    pub(crate) fn running(&self) -> Option<CallId> {
        self.running.get()
    }

    /// Runs `f` as code outside of calls.
    pub(crate) fn outside<T>(&self, f: impl FnOnce() -> T) -> T {
        let running = self.running.take();
        let result = f();
        self.running.set(running);
        result
    }

    /// How often a call was continued.
    pub(crate) fn switches(&self) -> u64 {
        self.switches.get()
    }

    /// Makes a call that begins on `cpu` at `at`.
    pub(crate) fn spawn(&self, cpu: CpuId, at: Ps, f: impl FnOnce() + 'static) -> CallId {
        let stack = self.spare_stacks.borrow_mut().pop().unwrap_or_else(|| Stack::new(STACK_BYTES));
        let resumable = Coroutine::new(stack, f);
        let slot = Slot { resumable: Some(resumable), call: Call::on(cpu), parked: false };
        let mut slots = self.slots.borrow_mut();
        let id = match self.spare_slots.borrow_mut().pop() {
            Some(id) => {
                slots[id as usize] = slot;
                id
            }
            None => {
                slots.push(slot);
                slots.len() as u32 - 1
            }
        };
        drop(slots);
        self.enqueue(Turn::new(at, cpu, id));
        CallId(id)
    }

    fn enqueue(&self, turn: Turn) {
        self.queue.borrow_mut().push(Reverse(turn));
        self.next.set(self.next.get().min(turn));
    }

    /// Lets calls with earlier clocks go first. Outside of calls nothing happens.
    #[inline]
    pub(crate) fn turn(&self, clock: Ps, cpu: CpuId) {
        let Some(CallId(id)) = self.running.get() else { return };
        if self.next.get() < Turn::new(clock, cpu, id) {
            self.wait_until(clock, cpu);
        }
    }

    /// Suspends the running call until all calls with clocks before `at` have gone.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_until(&self, at: Ps, cpu: CpuId) {
        let CallId(id) = self.running.get().expect("outside of a call nothing can wait");
        self.exchange(Turn::new(at, cpu, id));
        suspend();
    }

    /// Puts a turn into the queue, and takes the earliest out if that is another one: the queue is sorted
    /// once for both.
    fn exchange(&self, turn: Turn) {
        let mut queue = self.queue.borrow_mut();
        if queue.peek().is_some_and(|first| first.0 < turn) {
            let mut first = queue.peek_mut().expect("the queue has a first turn");
            self.taken.set(Some(std::mem::replace(&mut first.0, turn)));
        } else {
            queue.push(Reverse(turn));
        }
        self.next.set(queue.peek().map_or(Turn::NEVER, |turn| turn.0));
    }

    /// Suspends the running call until another one unparks it.
    pub(crate) fn park(&self) {
        let CallId(id) = self.running.get().expect("outside of a call nothing can park");
        self.slots.borrow_mut()[id as usize].parked = true;
        suspend();
    }

    /// Continues a parked call on `cpu`, not before `at`.
    pub(crate) fn unpark(&self, CallId(id): CallId, cpu: CpuId, at: Ps) {
        let mut slots = self.slots.borrow_mut();
        let slot = &mut slots[id as usize];
        assert!(std::mem::take(&mut slot.parked), "call {id} is not parked");
        slot.call.cpu.set(cpu);
        drop(slots);
        self.enqueue(Turn::new(at, cpu, id));
    }

    /// Whether the machine's scope ends: no call continues any more.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.get()
    }

    /// The calls that are parked.
    pub(crate) fn parked(&self) -> Vec<CallId> {
        let slots = self.slots.borrow();
        let parked = slots.iter().enumerate().filter(|(_, slot)| slot.parked);
        parked.map(|(id, _)| CallId(id as u32)).collect()
    }

    /// Takes the next turn at or before `last`.
    fn pop(&self, last: Ps) -> Option<Turn> {
        match self.taken.take() {
            Some(turn) if turn.at() <= last => return Some(turn),
            Some(turn) => self.enqueue(turn),
            None => {}
        }
        let mut queue = self.queue.borrow_mut();
        let turn = queue.peek().map(|turn| turn.0).filter(|turn| turn.at() <= last)?;
        queue.pop();
        self.next.set(queue.peek().map_or(Turn::NEVER, |turn| turn.0));
        Some(turn)
    }

    /// Continues calls in the order of their clocks, until none is left that could continue at or before
    /// `last`. `begin` moves the clock of a call's CPU on to when the call continues, and returns that clock.
    pub(crate) fn run(&self, running: &Call, last: Ps, begin: impl Fn(u16, Ps) -> Ps) {
        assert!(self.running.get().is_none(), "calls are run from outside of calls");
        while let Some(turn) = self.pop(last) {
            let (at, cpu, id) = (turn.at(), turn.cpu(), turn.id());
            let clock = begin(cpu.0, at);
            // Another call has moved the clock of this call's CPU: calls before that clock go first. Of calls
            // on one CPU the one that was due first goes first, or a call that computes would hold up its
            // CPU's timers for ever.
            if clock > at && (clock > last || self.next.get().is_before(clock, cpu)) {
                self.enqueue(Turn::new(clock, cpu, id));
                continue;
            }
            self.switches.set(self.switches.get() + 1);
            self.resume(running, id);
        }
    }

    /// Runs a call until it is suspended or ends.
    fn resume(&self, running: &Call, id: u32) {
        let mut resumable = {
            let slot = &mut self.slots.borrow_mut()[id as usize];
            running.swap(&slot.call);
            slot.resumable.take().expect("the call does not run")
        };
        self.running.set(Some(CallId(id)));
        let mut running = Running { calls: self, running, id, ended: true };
        running.ended = resumable.resume();
        let ended = running.ended;
        drop(running);
        if !ended {
            self.slots.borrow_mut()[id as usize].resumable = Some(resumable);
            return;
        }
        let mut stacks = self.spare_stacks.borrow_mut();
        if stacks.len() < SPARE_STACKS {
            stacks.push(resumable.into_stack());
        }
    }

    /// Ends all calls wherever they are suspended. What they hold is dropped, each in its own place.
    pub(crate) fn end(&self, running: &Call) {
        self.ending.set(true);
        for slot in std::mem::take(&mut *self.slots.borrow_mut()) {
            running.swap(&slot.call);
            match slot.resumable {
                // A second panic would end the program.
                Some(resumable) if std::thread::panicking() => std::mem::forget(resumable),
                resumable => drop(resumable),
            }
        }
        running.swap(&Call::on(CpuId(0)));
        self.queue.borrow_mut().clear();
        self.spare_slots.borrow_mut().clear();
        self.next.set(Turn::NEVER);
        self.taken.set(None);
        self.running.set(None);
        self.ending.set(false);
    }
}
