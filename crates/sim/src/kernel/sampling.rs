//! An observer that reads the kernel at fixed times, and changes nothing.
//!
//! It is called from the first step of a call or an interrupt at or after each time, before that step changes
//! anything: so it sees what was there at that time. No call of the model waits for it, and it costs nothing
//! in the model.

use super::{Kernel, NEVER, Waiting};
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_platform::{CpuId, Topology};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What reads the kernel.
pub(crate) trait Observer {
    /// Reads the kernel as it was at `at`.
    fn sample(&self, at: Ps);
    /// Whether a task that waits for this waits for I/O.
    fn is_io(&self, waiting: &Waiting) -> bool;
}

/// Time of all CPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllCpus {
    /// Programs in themselves.
    pub user: Ps,
    /// All work of the CPUs: `user`, and the kernel.
    pub busy: Ps,
    /// Idle CPUs while a task waited for I/O.
    pub waited: Ps,
    /// CPUs times time.
    pub all: Ps,
}

/// The observer, and what is counted for it.
pub(super) struct Sampling {
    observer: RefCell<Option<Rc<dyn Observer>>>,
    every: Cell<Ps>,
    next: Cell<Ps>,
    /// The CPU time of each task that has left its CPU.
    ran: RefCell<Vec<Ps>>,
    /// Tasks that wait for I/O.
    blocked: Cell<u32>,
    /// For each CPU that idles: since when, and whether a task waited for I/O then.
    idle: Vec<Cell<Option<(Ps, bool)>>>,
    waited: Cell<Ps>,
}

impl Sampling {
    pub(super) fn new() -> Sampling {
        Sampling {
            observer: RefCell::default(),
            every: Cell::new(NEVER),
            next: Cell::new(NEVER),
            ran: RefCell::default(),
            blocked: Cell::new(0),
            idle: (0..Timed::cpus()).map(|_| Cell::new(Some((0, false)))).collect(),
            waited: Cell::new(0),
        }
    }

    fn is_io(&self, waiting: &Waiting) -> bool {
        self.observer.borrow().as_ref().is_some_and(|observer| observer.is_io(waiting))
    }

    /// A task waits from now on.
    pub(super) fn blocks(&self, waiting: &Waiting) {
        self.blocked.set(self.blocked.get() + u32::from(self.is_io(waiting)));
    }

    /// A task that waited for this is awake.
    pub(super) fn wakes(&self, waiting: &Waiting) {
        self.blocked.set(self.blocked.get() - u32::from(self.is_io(waiting)));
    }

    /// A CPU runs a task from now on.
    pub(super) fn resumed(&self, cpu: CpuId) {
        let Some((since, waits)) = self.idle[cpu.0 as usize].take() else { return };
        let time = Timed::clock().saturating_sub(since);
        self.waited.set(self.waited.get() + if waits { time } else { 0 });
    }

    /// A CPU does not run a task any more that it ran since `since`.
    pub(super) fn left(&self, cpu: CpuId, task: TaskId, since: Ps) {
        let now = Timed::clock();
        let mut ran = self.ran.borrow_mut();
        let at = task.0 as usize;
        if ran.len() <= at {
            ran.resize(at + 1, 0);
        }
        ran[at] += now.saturating_sub(since);
        self.idle[cpu.0 as usize].set(Some((now, self.blocked.get() > 0)));
    }

    /// Calls the observer for each time that has come.
    #[cold]
    fn sample(&self, now: Ps) {
        let Some(observer) = self.observer.borrow().clone() else { return };
        while self.next.get() <= now {
            let at = self.next.get();
            self.next.set(at + self.every.get());
            observer.sample(at);
        }
    }
}

impl Kernel {
    /// Sets the observer, which reads the kernel now and then every `every` picoseconds. Nothing happens
    /// without a recorder.
    pub(crate) fn set_observer(&self, every: Ps, observer: Rc<dyn Observer>) {
        let Some(watch) = &self.watch else { return };
        let sampling = &watch.sampling;
        *sampling.observer.borrow_mut() = Some(observer);
        sampling.every.set(every.max(1));
        sampling.next.set(Timed::clock());
        self.observe();
    }

    /// A step of a call or an interrupt begins: the observer reads what was there until now, if it is time.
    #[inline]
    pub(crate) fn observe(&self) {
        if let Some(watch) = &self.watch
            && watch.sampling.next.get() <= Timed::clock()
        {
            watch.sampling.sample(Timed::clock());
        }
    }

    /// CPU time until `at`.
    pub(crate) fn all_cpus(&self, at: Ps) -> AllCpus {
        let Some(watch) = &self.watch else { return AllCpus::default() };
        let sampling = &watch.sampling;
        let idles = |idle: &Cell<Option<(Ps, bool)>>| match idle.get() {
            Some((since, true)) => at.saturating_sub(since),
            _ => 0,
        };
        let cpus = (0..Timed::cpus()).map(CpuId);
        AllCpus {
            user: self.user_time(),
            busy: cpus.map(|cpu| Timed::spent(cpu).iter().sum::<Ps>()).sum(),
            waited: sampling.waited.get() + sampling.idle.iter().map(idles).sum::<Ps>(),
            all: at * Ps::from(Timed::cpus()),
        }
    }

    /// The CPU time of a task until `at`.
    pub(crate) fn ran(&self, task: TaskId, at: Ps) -> Ps {
        let Some(watch) = &self.watch else { return 0 };
        let ended = watch.sampling.ran.borrow().get(task.0 as usize).copied().unwrap_or(0);
        let sched = self.sched.borrow();
        let runs = (0..Timed::cpus()).map(CpuId).find(|cpu| sched.current(*cpu) == Some(task));
        let since = runs.map(|cpu| watch.since[cpu.0 as usize].get());
        ended + since.map_or(0, |since| at.saturating_sub(since))
    }

    /// Tasks that run or wait for a CPU, and tasks that wait for I/O.
    pub(crate) fn running_and_blocked(&self) -> (u32, u32) {
        let runs = self.tasks.borrow().iter().filter(|task| task.alive && task.waiting.is_none()).count();
        (runs as u32, self.watch.as_ref().map_or(0, |watch| watch.sampling.blocked.get()))
    }

    /// Switches to tasks so far.
    pub(crate) fn switches(&self) -> u64 {
        self.tally.borrow().switches
    }
}
