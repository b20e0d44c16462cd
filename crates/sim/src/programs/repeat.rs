//! Tasks that repeat one operation, each pinned to a CPU: will-it-scale's frame.
//!
//! ```text
//! main    start the tasks ── wait until all are ready ── wake all
//!         wait for the tasks' ends
//! task n  pin to CPU n modulo CPUs ── ready ── wait to be woken ── repeat the operation
//!         the first task after warm_up starts counting, the first at the end stops it
//! ```
//!
//! Processes share nothing that belongs to a process; threads share one process's address space and files.

use crate::heap::Named;
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Mark, Task, WaitQueue, Waiting, with_caches};
use crate::process::{Children, Kind};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{LockTimes, Ps, Timed};
use slablab_platform::{CpuId, Topology};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How long the tasks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Operations are counted for a time.
    Window {
        /// Time before counting begins.
        warm_up: Ps,
        /// Time that is counted.
        counted: Ps,
    },
    /// Each task repeats its operation this many times. The time until the last task has ended is measured.
    Rounds(u64),
}

/// The parameters that all such programs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Tasks.
    pub tasks: u32,
    /// Processes or threads.
    pub kind: Kind,
    /// CPU time of an operation of the program that nothing else here stands for.
    pub outside: Ps,
    /// How long they run.
    pub length: Length,
}

/// A program of such tasks.
pub trait Repeats: 'static {
    /// What the tasks of a process share.
    type Process: 'static;
    /// Makes a process's own things.
    fn process(&self, task: &Task) -> Self::Process;
    /// Does the operation once. Returns how many operations it counts as.
    fn operation(&self, task: &Task, process: &Self::Process) -> u64;
    /// Frees a process's own things.
    fn end(&self, task: &Task, process: Self::Process);
    /// The locks that the program adds to the outcome.
    fn locks(&self) -> Vec<(&'static str, LockTimes)>;
}

/// What all tasks of a run share.
struct Run<P: Repeats> {
    program: P,
    repeat: Repeat,
    /// The process whose threads the tasks are.
    shared: RefCell<Option<Rc<P::Process>>>,
    ready: Cell<u32>,
    all_ready: WaitQueue,
    has_begun: Cell<bool>,
    begun: WaitQueue,
    /// When counting begins and ends.
    window: Cell<(Ps, Ps)>,
    is_counting: Cell<bool>,
    /// Operations since counting began; messages that they pass are not counted.
    operations: Cell<u64>,
    mark: RefCell<Option<Mark>>,
    counted: RefCell<Option<Outcome>>,
}

/// Runs a program that `make` makes on the simulated kernel, which has `own` caches too, and records the
/// counted part.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
pub fn run<P: Repeats>(
    setup: &Setup,
    repeat: &Repeat,
    seed: u64,
    recorder: &Recorder,
    own: &[Named],
    make: impl FnOnce(&Rc<Kernel>) -> P,
) -> Result<Outcome, Failed> {
    with_caches(setup, seed, recorder, own, |kernel| {
        let run = Rc::new(Run {
            program: make(kernel),
            repeat: *repeat,
            shared: RefCell::default(),
            ready: Cell::new(0),
            all_ready: WaitQueue::default(),
            has_begun: Cell::new(false),
            begun: WaitQueue::default(),
            window: Cell::new((0, 0)),
            is_counting: Cell::new(false),
            operations: Cell::new(0),
            mark: RefCell::default(),
            counted: RefCell::default(),
        });
        ended(kernel, |kernel, result| {
            kernel.start(kernel.new_process(), None, move |main| {
                let outcome = run.main(main);
                *result.borrow_mut() = Some(outcome);
            });
        })
    })
}

/// Lets `start` start a main task that leaves its outcome; runs until no task can continue. Counts of caches
/// are those after the last grace period.
pub(crate) fn ended(
    kernel: &Rc<Kernel>,
    start: impl FnOnce(&Rc<Kernel>, Rc<RefCell<Option<Outcome>>>),
) -> Result<Outcome, Failed> {
    let result: Rc<RefCell<Option<Outcome>>> = Rc::default();
    let begin = kernel.mark();
    start(kernel, result.clone());
    kernel.run()?;
    let outcome = result.borrow_mut().take().expect("main ended");
    let caches = kernel.outcome(&begin).caches;
    Ok(Outcome { caches, ..outcome })
}

impl<P: Repeats> Run<P> {
    fn main(self: &Rc<Self>, main: &Task) -> Outcome {
        let children = Rc::new(Children::default());
        if self.repeat.kind == Kind::Thread {
            *self.shared.borrow_mut() = Some(Rc::new(self.program.process(main)));
        }
        for number in 0..self.repeat.tasks {
            let run = self.clone();
            children.start(main, self.repeat.kind, move |task| run.task(task, number));
            main.preemption_point();
        }
        main.syscall(|| {
            if self.ready.get() < self.repeat.tasks {
                let number = self.repeat.tasks;
                self.all_ready.wait(main, Waiting { what: "for tasks to be ready", number });
            }
        });
        let start = Timed::clock();
        let window = match self.repeat.length {
            Length::Window { warm_up, counted } => (start + warm_up, start + warm_up + counted),
            Length::Rounds(_) => (start, Ps::MAX),
        };
        self.window.set(window);
        main.syscall(|| {
            self.has_begun.set(true);
            self.begun.wake_all(&main.kernel, false);
        });
        main.syscall(|| children.wait(main));
        let counted = self.counted.borrow_mut().take();
        counted.unwrap_or_else(|| self.outcome(main))
    }

    /// What happened since counting began.
    fn outcome(&self, task: &Task) -> Outcome {
        let mark = self.mark.borrow_mut().take().unwrap_or_else(|| task.kernel.mark());
        let mut outcome = task.kernel.outcome(&mark);
        outcome.messages = self.operations.get();
        outcome.locks.extend(self.program.locks());
        outcome
    }

    fn task(&self, task: &Task, number: u32) {
        task.pin(CpuId((number % u32::from(Timed::cpus())) as u16));
        let shared = self.shared.borrow().clone();
        let process = shared.unwrap_or_else(|| Rc::new(self.program.process(task)));
        task.syscall(|| {
            self.ready.set(self.ready.get() + 1);
            if self.ready.get() == self.repeat.tasks {
                // Main is the last user of the process that threads share, beside the threads.
                self.shared.borrow_mut().take();
                self.all_ready.wake_one(&task.kernel, false);
            }
        });
        task.syscall(|| {
            if !self.has_begun.get() {
                self.begun.wait(task, Waiting { what: "to begin, task", number });
            }
        });
        let mut rounds = 0;
        while self.goes_on(task, rounds) {
            task.compute(self.repeat.outside);
            let operations = self.program.operation(task, &process);
            self.operations.set(self.operations.get() + operations);
            rounds += 1;
        }
        if let Some(last) = Rc::into_inner(process) {
            self.program.end(task, last);
        }
    }

    /// The first task that reaches the window's start begins counting; the first at its end stops it.
    fn goes_on(&self, task: &Task, rounds: u64) -> bool {
        let (start, end) = self.window.get();
        if Timed::clock() >= start && !self.is_counting.replace(true) {
            *self.mark.borrow_mut() = Some(task.kernel.mark());
            self.operations.set(0);
        }
        if let Length::Rounds(all) = self.repeat.length {
            return rounds < all;
        }
        if Timed::clock() >= end && self.counted.borrow().is_none() {
            let outcome = self.outcome(task);
            *self.counted.borrow_mut() = Some(outcome);
        }
        Timed::clock() < end
    }
}
