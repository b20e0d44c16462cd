//! The kernel's core: tasks on CPUs, switches, wake-ups, ticks, deferred work.
//!
//! ```text
//! Kernel::boot(setup, seed) ── Kernel::start(program) ── Kernel::run ── Outcome or Failed
//!   a task's program is Rust that calls Task:
//!     compute, syscall, alloc, free, touch, sleep
//!     WaitQueue::wait ── schedule ── pick ── dispatch   the next task of this CPU continues
//!     WaitQueue::wake ── select_cpu ── enqueue ── kick  an idle CPU starts, or a busy one will schedule
//! ```
//!
//! Each task is a call of the model. A call that has no CPU is parked; so on each CPU at most one call is not
//! parked, beside the calls of interrupts: timers, and work that engines deferred.
//!
//! A running task is preempted at the end of a system call and between pieces of computing
//! ([`Task::preemption_point`]), never inside an engine. What happens between two points where the call can
//! be suspended (a turn, a lock, a park) happens at once for all CPUs.

use crate::heap::{CacheNumber, Heap, Kmalloc};
use crate::kernel::era::Era;
use crate::kernel::messages::Messages;
use crate::kernel::objects::{Held, Object};
use crate::kernel::tally::{CacheTally, Failed, Tally};
use crate::record::pulse::Beat;
use crate::sched::{Idle, Kick, Leave, Scheduler, Spec, TaskId, Why};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use slablab_model::{CallId, Ps, Timed};
use slablab_platform::{CpuId, Topology, Work};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

mod boot;
mod completions;
pub mod era;
mod groups;
mod interrupts;
mod marks;
pub mod messages;
pub mod objects;
mod progress;
mod sampling;
pub mod tally;
mod task;
mod waiting;
mod watch;

pub(crate) use boot::{with_caches, with_messages, with_pages};
pub use boot::{with_kernel, with_recorded_kernel};
pub use groups::{CpuTime, Group};
pub use marks::Mark;
pub(crate) use marks::locks_of;
pub use sampling::AllCpus;
pub(crate) use sampling::Observer;
pub use task::Task;
pub use waiting::WaitQueue;

/// Later than every time.
const NEVER: Ps = Ps::MAX;
/// An idle CPU that slept at least this many times its exit takes the exit's time to wake up; one that slept
/// shorter still polls (assumed; menu's rule compares with a residency of about twice the exit).
const DEEP_SLEEP: u64 = 2;
/// Cycles to look at one CPU, group or queued task when the scheduler searches (assumed).
const SCAN: u64 = 20;

/// One CPU.
struct Processor {
    next_tick: Cell<Ps>,
    /// From when on the running task has to give up the CPU.
    resched_at: Cell<Ps>,
    idle_since: Cell<Ps>,
    /// The address space that was used last.
    mm: Cell<u32>,
    /// An interrupt's work runs on the idle CPU: a task that wakes up here continues after it.
    working: Cell<bool>,
    /// Objects that are freed after their grace period.
    after_grace: RefCell<VecDeque<(Ps, Held)>>,
    /// Work of engines for this CPU.
    works: RefCell<VecDeque<Work>>,
    /// When the first of `after_grace`, `works` and `interrupts` can be done.
    due: Cell<Ps>,
    /// Interrupts of devices.
    interrupts: completions::Interrupts,
    /// The CPU is idle, and has a timer for this time; `NEVER` if it has none.
    armed: Cell<Ps>,
}

/// One task.
struct Entry {
    call: Option<CallId>,
    /// What it runs, before it first runs.
    program: Option<Box<dyn FnOnce()>>,
    mm: u32,
    group: Group,
    /// When it was last given a CPU.
    since: Ps,
    cpu: CpuId,
    /// The price of the switch to it, charged when it continues.
    switch: Ps,
    waiting: Option<Waiting>,
    /// The number of the task's last sleep that has a timer: an older timer does not wake it.
    sleep: u32,
    timed_out: bool,
    /// Its sleep ends at a time, whatever other tasks do.
    has_timer: bool,
    /// A task of the kernel's own, which no program waits for.
    is_daemon: bool,
    alive: bool,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The reason, as "to read from socket".
    pub what: &'static str,
    /// The number of what it waits at.
    pub number: u32,
}

/// What the kernel itself costs, copied from the machine's costs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    pub(crate) cycle: Ps,
    pub(crate) syscall: Ps,
    pub(crate) copy_kib: Ps,
    switch_mm: Ps,
    switch_thread: Ps,
    wake_local: Ps,
    wake_remote: Ps,
    ipi: Ps,
    ipi_send: Ps,
    idle_exit: Ps,
    pub(crate) fork: Ps,
    pub(crate) exit: Ps,
    tick: Ps,
}

/// A simulated kernel on the machine that is entered.
pub struct Kernel {
    pub(crate) heap: Rc<dyn Heap>,
    /// The release.
    pub era: Era,
    pub(crate) prices: Prices,
    pub(crate) messages: Messages,
    pub(crate) tally: RefCell<Tally>,
    pub(crate) numbers: Vec<Option<u16>>,
    /// The number of the first cache that the program brought.
    own_first: u16,
    /// Bytes of slabs after boot.
    booted_bytes: u64,
    sched: RefCell<Scheduler>,
    tasks: RefCell<Vec<Entry>>,
    groups: RefCell<Vec<groups::Done>>,
    cpus: Vec<Processor>,
    random: RefCell<Pcg64Mcg>,
    processes: Cell<u32>,
    failed: RefCell<Option<Failed>>,
    progress: progress::Progress,
    /// What is recorded; `None` if nothing is.
    watch: Option<watch::Watch>,
    /// Who is told how far the run is.
    beat: Option<Beat>,
}

impl Kernel {
    /// Runs until no task can continue.
    ///
    /// # Errors
    /// Tasks that wait for ever; no memory.
    pub fn run(self: &Rc<Self>) -> Result<(), Failed> {
        Timed::run();
        if let Some(failed) = self.failed.borrow_mut().take() {
            return Err(failed);
        }
        let stuck = self.stuck();
        if !stuck.is_empty() {
            return Err(Failed::Stuck(stuck));
        }
        if let Some(watch) = &self.watch {
            watch.ended(&*self.heap);
        }
        Ok(())
    }

    /// The tasks that have not ended, and what each waits for.
    pub(crate) fn stuck(&self) -> Vec<String> {
        self.tasks_that(|task| task.alive)
    }

    /// The tasks of programs that have not ended, and what each waits for.
    fn stuck_programs(&self) -> Vec<String> {
        self.tasks_that(|task| task.alive && !task.is_daemon)
    }

    fn tasks_that(&self, are: impl Fn(&Entry) -> bool) -> Vec<String> {
        let tasks = self.tasks.borrow();
        let alive = tasks.iter().enumerate().filter(|(_, task)| are(task));
        let text = |(id, task): (usize, &Entry)| match task.waiting {
            Some(Waiting { what, number }) => format!("task {id} on CPU {}: {what} {number}", task.cpu.0),
            None => format!("task {id} on CPU {}: for a CPU", task.cpu.0),
        };
        alive.map(text).collect()
    }

    /// The task that runs on the CPU of the running call; `None` in an interrupt of an idle CPU.
    pub(crate) fn running(self: &Rc<Self>) -> Option<Task> {
        let id = self.sched.borrow().current(Timed::cpu())?;
        Some(Task { kernel: self.clone(), id })
    }

    /// The run has failed: every task stops at its next preemption point.
    pub(crate) fn fail(&self, failed: Failed) {
        self.failed.borrow_mut().get_or_insert(failed);
    }

    /// The run did `done` of `whole` that it will do: a reader may be told, the run is not changed.
    pub(crate) fn has_done(&self, done: u64, whole: u64) {
        if let Some(beat) = &self.beat {
            beat.done(done, whole);
        }
    }

    /// An event of the run, for those who are told how far it is.
    #[inline]
    fn beat_at(&self, now: Ps) {
        if self.beat.as_ref().is_some_and(|beat| beat.at(now)) {
            self.fail(Failed::Broken("cancelled".into()));
        }
    }

    /// The number of a new process.
    pub fn new_process(&self) -> u32 {
        self.processes.set(self.processes.get() + 1);
        self.processes.get()
    }

    /// A random number below `bound`.
    pub(crate) fn random(&self, bound: u64) -> u64 {
        self.random.borrow_mut().next_u64() % bound.max(1)
    }

    /// Makes a task of process `mm` that runs `program`.
    pub fn start(
        self: &Rc<Self>,
        mm: u32,
        parent: Option<TaskId>,
        program: impl FnOnce(&Task) + 'static,
    ) -> TaskId {
        self.start_as(Spec { mm, ..Spec::default() }, parent, program)
    }

    /// Makes a task with these words for the scheduler that runs `program`.
    pub(crate) fn start_as(
        self: &Rc<Self>,
        spec: Spec,
        parent: Option<TaskId>,
        program: impl FnOnce(&Task) + 'static,
    ) -> TaskId {
        let mm = spec.mm;
        let (id, now) = (self.sched.borrow_mut().add(spec, parent), Timed::clock());
        if let Some(watch) = &self.watch {
            watch.name(id, || format!("task {}", id.0));
        }
        let task = Task { kernel: self.clone(), id };
        let body = move || {
            task.kernel.resumed(id);
            program(&task);
            task.kernel.end(id);
        };
        let mut tasks = self.tasks.borrow_mut();
        let group = parent.map_or(Group::NONE, |parent| tasks[parent.0 as usize].group);
        let cpu = Timed::cpu();
        let program: Option<Box<dyn FnOnce()>> = Some(Box::new(body));
        let entry = Entry {
            call: None,
            program,
            mm,
            group,
            since: Timed::clock(),
            cpu,
            switch: 0,
            waiting: None,
            sleep: tasks.get(id.0 as usize).map_or(0, |old| old.sleep + 1),
            timed_out: false,
            has_timer: false,
            is_daemon: false,
            alive: true,
        };
        match tasks.get_mut(id.0 as usize) {
            Some(old) => *old = entry,
            None => tasks.push(entry),
        }
        drop(tasks);
        let why = Why::Fork { from: cpu };
        let chosen = self.sched.borrow_mut().select_cpu(id, why, now);
        let kick = self.sched.borrow_mut().enqueue(chosen.cpu, id, why, now);
        self.kick(kick, now);
        id
    }

    fn end(self: &Rc<Self>, id: TaskId) {
        self.tasks.borrow_mut()[id.0 as usize].alive = false;
        self.schedule(id, Some(Leave::Exit));
    }

    /// The running task `me` gives up its CPU: it leaves as `how` says, or stays in the queue. Returns when
    /// it runs again; after an exit, at once.
    fn schedule(self: &Rc<Self>, me: TaskId, how: Option<Leave>) {
        let cpu = Timed::cpu();
        if let Some(how) = how {
            self.sched.borrow_mut().leave(cpu, how, Timed::clock());
        }
        if self.next_task(cpu) == Some(me) && how.is_none() {
            return;
        }
        if how.is_none() {
            if let Some(watch) = &self.watch {
                watch.preempts();
            }
            self.tally.borrow_mut().preemptions += 1;
        }
        self.left(cpu, me);
        if how != Some(Leave::Exit) {
            self.suspend(me);
        }
    }

    /// The CPU goes on with the next task, or idles.
    fn next_task(self: &Rc<Self>, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.0 as usize].resched_at.set(NEVER);
        let before = self.sched.borrow().current(cpu);
        let next = self.pick(cpu, Timed::clock());
        match next {
            Some(task) if next != before => self.dispatch(task, cpu, Timed::clock()),
            Some(_) => {}
            None => self.go_idle(cpu),
        }
        next
    }

    /// Suspends the running task `me` until it is dispatched.
    fn suspend(&self, me: TaskId) {
        self.tasks.borrow_mut()[me.0 as usize].call = Timed::current();
        Timed::park();
        self.resumed(me);
    }

    /// The task that `cpu` runs from now on; pulls one from other CPUs if it has none.
    fn pick(&self, cpu: CpuId, now: Ps) -> Option<TaskId> {
        let mut sched = self.sched.borrow_mut();
        let mut picked = sched.pick(cpu, now);
        let mut scanned = picked.scanned.saturating_sub(1) + picked.recalculated;
        if picked.task.is_none() {
            let balance = sched.balance(cpu, Idle::Newly, now);
            scanned += balance.scanned;
            if balance.moved > 0 {
                picked = sched.pick(cpu, now);
            }
        }
        drop(sched);
        if cpu == Timed::cpu() {
            Timed::cycles(u64::from(scanned) * SCAN);
        }
        self.kick(picked.kick, now);
        picked.task
    }

    /// Lets `task` continue on `cpu` at `at`.
    fn dispatch(&self, task: TaskId, cpu: CpuId, at: Ps) {
        let processor = &self.cpus[cpu.0 as usize];
        let mut tasks = self.tasks.borrow_mut();
        let entry = &mut tasks[task.0 as usize];
        let mut tally = self.tally.borrow_mut();
        tally.switches += 1;
        let first = entry.program.take();
        if entry.cpu != cpu && first.is_none() {
            tally.migrations += 1;
        }
        entry.cpu = cpu;
        let same = processor.mm.replace(entry.mm) == entry.mm;
        entry.switch = if same { self.prices.switch_thread } else { self.prices.switch_mm };
        match (first, entry.call.take()) {
            (Some(program), _) => drop(Timed::spawn(cpu, at, program)),
            (None, Some(call)) => Timed::unpark(call, cpu, at),
            // The task is about to park: it continues after that.
            (None, None) => {
                let call = Timed::current().expect("a task without a parked call runs");
                Timed::spawn(cpu, at, move || Timed::unpark(call, cpu, Timed::clock()));
            }
        }
    }

    /// A task begins to run, or runs again.
    fn resumed(&self, me: TaskId) {
        self.observe();
        let (switch, is_time) = {
            let entry = &mut self.tasks.borrow_mut()[me.0 as usize];
            entry.call = None;
            entry.since = Timed::clock();
            entry.has_timer = false;
            (std::mem::take(&mut entry.switch), self.progress.runs(entry.is_daemon))
        };
        if let Some(watch) = &self.watch {
            watch.resumed(me);
        }
        Timed::charge(switch);
        if is_time {
            self.look_for_progress();
        }
    }

    /// `cpu` does not run `task` any more.
    #[inline]
    fn left(&self, cpu: CpuId, task: TaskId) {
        self.observe();
        self.beat_at(Timed::clock());
        self.count_cpu(task);
        if let Some(watch) = &self.watch {
            watch.left(cpu, task, self.heap.slab_bytes());
        }
    }

    fn go_idle(self: &Rc<Self>, cpu: CpuId) {
        let processor = &self.cpus[cpu.0 as usize];
        processor.idle_since.set(Timed::clock());
        self.arm(cpu, processor.due.get());
    }

    /// Tells a CPU that it has to schedule.
    fn kick(&self, kick: Option<Kick>, now: Ps) {
        let Some(Kick { cpu, idle }) = kick else { return };
        let processor = &self.cpus[cpu.0 as usize];
        let here = cpu == Timed::cpu();
        let sent = if here { now } else { now + self.prices.ipi };
        let send = || {
            if !here {
                Timed::charge(self.prices.ipi_send);
            }
        };
        if !idle {
            send();
            processor.resched_at.set(processor.resched_at.get().min(sent));
        } else if !processor.working.get() {
            let slept = now.saturating_sub(processor.idle_since.get());
            let deep = slept >= DEEP_SLEEP * self.prices.idle_exit;
            // A CPU that polls sees the flag without an interrupt.
            let at = if deep { sent + self.prices.idle_exit } else { now };
            if deep {
                send();
            }
            self.start_idle(cpu, at.max(Timed::clock_of(cpu)));
        }
    }

    /// An idle CPU looks for a task to run from `at` on.
    fn start_idle(&self, cpu: CpuId, at: Ps) {
        if let Some(next) = self.pick(cpu, at) {
            self.dispatch(next, cpu, at);
        }
    }

    /// Wakes a task that waits. `sync`: the waker will sleep soon.
    fn wake(&self, task: TaskId, sync: bool) {
        let woken = self.tasks.borrow_mut()[task.0 as usize].waiting.take();
        let woken = woken.unwrap_or_else(|| panic!("task {} does not wait", task.0));
        let here = Timed::cpu();
        let why = Why::Wake { from: here, sync };
        let chosen = self.sched.borrow_mut().select_cpu(task, why, Timed::clock());
        let price = if chosen.cpu == here { self.prices.wake_local } else { self.prices.wake_remote };
        Timed::charge(price + u64::from(chosen.scanned) * SCAN * self.prices.cycle);
        let now = Timed::clock();
        let kick = self.sched.borrow_mut().enqueue(chosen.cpu, task, why, now);
        self.tally.borrow_mut().wakeups += 1;
        if let Some(watch) = &self.watch {
            watch.wakes(task, &woken);
        }
        self.kick(kick, now);
    }

    /// The running task `me` waits until another one wakes it.
    fn block(self: &Rc<Self>, me: TaskId, waiting: Waiting) {
        self.tasks.borrow_mut()[me.0 as usize].waiting = Some(waiting);
        if let Some(watch) = &self.watch {
            watch.sampling.blocks(&waiting);
        }
        self.schedule(me, Some(Leave::Sleep));
    }

    /// The running task `me` found no memory: the run fails, and the task waits for ever.
    #[cold]
    fn no_memory(self: &Rc<Self>, me: TaskId) -> ! {
        let tally = self.tally.borrow();
        let live = |cache: &CacheTally| (cache.name.clone(), cache.allocs - cache.frees);
        let (events, live): (u64, Vec<_>) = (tally.events.into(), tally.caches.iter().map(live).collect());
        // Before the lists are looked at: that may wait for a lock, and other tasks count meanwhile.
        drop(tally);
        let of = |(number, (name, objects)): (usize, (String, u64))| {
            let frames = self.heap.usage(CacheNumber(number as u16)).frames;
            (name, objects, frames << Timed::page_shift())
        };
        let caches = live.into_iter().enumerate().map(of).filter(|(_, _, bytes)| *bytes > 0).collect();
        self.failed.borrow_mut().get_or_insert(Failed::OutOfMemory { events, caches });
        self.wait_for_ever(me)
    }

    /// The run has failed: the running task `me` does nothing more.
    #[cold]
    fn wait_for_ever(self: &Rc<Self>, me: TaskId) -> ! {
        loop {
            self.block(me, Waiting { what: "for memory", number: 0 });
        }
    }

    /// The cache that serves kmalloc's requests of `bytes` bytes, or the order of the pages that do.
    pub(crate) fn kmalloc(&self, bytes: u32) -> Kmalloc {
        self.heap.kmalloc(bytes)
    }

    /// The cache at this place of those that the program brought.
    pub(crate) fn own(&self, at: u16) -> CacheNumber {
        CacheNumber(self.own_first + at)
    }

    /// Whether this kernel has a cache of such objects.
    pub(crate) fn has(&self, object: Object) -> bool {
        self.numbers[object as usize].is_some()
    }

    pub(crate) fn number(&self, object: Object) -> CacheNumber {
        let number = self.numbers[object as usize];
        CacheNumber(number.unwrap_or_else(|| panic!("{object:?} does not exist in this release")))
    }
}
