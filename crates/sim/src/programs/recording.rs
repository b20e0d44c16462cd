//! A recording as a closed program: its tasks do its allocations and frees again, and wait for each other.
//!
//! ```text
//! main    start a task for each of the recording's ── wait for their ends
//! task    for each of its steps, in the recording's order
//!           wait while it is too far ahead of the others      Load::ahead
//!           compute for the step's gap
//!           allocate, or wait until the object is allocated and free it
//! ```
//!
//! A recording says which objects a task frees that another allocated. It does not say what else the tasks
//! waited for, as a full pipe. So a task may be at most [`Load::ahead`] steps of the recording ahead of its
//! oldest step that is not done: assumed. The oldest step never waits, for what it frees was allocated in an
//! older one.

use super::repeat::ended;
use crate::heap::Named;
use crate::kernel::objects::Held;
use crate::kernel::tally::{self, Failed};
use crate::kernel::{Task, WaitQueue, Waiting, with_caches};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{Ps, Timed};
use slablab_platform::{CpuId, Topology};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// A recording's tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The recording's named caches.
    pub caches: Vec<Named>,
    /// The tasks.
    pub tasks: Vec<ScriptTask>,
    /// Objects that the steps allocate: their numbers are below this.
    pub objects: u32,
    /// Steps of all tasks.
    pub steps: u32,
}

/// A task of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptTask {
    /// Its name.
    pub name: String,
    /// What it does, in the recording's order.
    pub steps: Vec<Step>,
}

/// An allocation or a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its place among the steps of all tasks.
    pub place: u32,
    /// The object's number.
    pub object: u32,
    /// Nanoseconds before it in which the recording has no event of its CPU or task.
    pub gap_ns: u32,
    /// The CPU that did it in the recording.
    pub cpu: u16,
    /// What it does.
    pub what: What,
}

/// What a step does with its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Allocates it from the named cache at this place.
    Alloc(u16),
    /// Allocates it with kmalloc, so many bytes.
    Kmalloc(u32),
    /// Frees it.
    Free,
}

/// How a recording runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Each step runs on its CPU of the recording; else the scheduler chooses.
    pub as_recorded: bool,
    /// How many steps of the recording a task may be ahead of the oldest that is not done; 0 for any number.
    pub ahead: u32,
    /// The longest gap that is computed; the rest of a longer one is left out.
    pub gap_max_ns: u32,
    /// Computing between steps, in percent of the gaps.
    pub compute_percent: u32,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The kernel's counts; its messages are steps.
    pub kernel: tally::Outcome,
    /// Time in allocations and frees, waits for locks included.
    pub operations: Ps,
    /// How often a task waited for an object of another.
    pub object_waits: u64,
    /// How often a task waited because it was too far ahead.
    pub ahead_waits: u64,
}

/// An object of the recording.
enum Object {
    NotYet,
    Live(Held),
    Freed,
}

struct Run {
    script: Arc<Script>,
    load: Load,
    objects: RefCell<Vec<Object>>,
    /// Tasks that wait for an object.
    wanted: RefCell<BTreeMap<u32, Rc<WaitQueue>>>,
    done: RefCell<Vec<bool>>,
    /// The oldest step that is not done.
    oldest: Cell<u32>,
    /// Tasks that are too far ahead, by the step that they wait at.
    ahead: RefCell<BTreeMap<u32, Rc<WaitQueue>>>,
    left: Cell<u32>,
    ended: WaitQueue,
    operations: Cell<Ps>,
    object_waits: Cell<u64>,
    ahead_waits: Cell<u64>,
}

/// Runs a recording.
///
/// # Errors
/// A machine that cannot be modelled, or lacks a CPU of the recording; no memory.
pub fn run(setup: &Setup, script: &Arc<Script>, load: &Load, seed: u64) -> Result<Outcome, Failed> {
    run_recorded(setup, script, load, seed, &Recorder::default())
}

/// Runs a recording, and tells `recorder` what happens.
///
/// # Errors
/// A machine that cannot be modelled, or lacks a CPU of the recording; no memory.
pub fn run_recorded(
    setup: &Setup,
    script: &Arc<Script>,
    load: &Load,
    seed: u64,
    recorder: &Recorder,
) -> Result<Outcome, Failed> {
    let cpus = setup.spec.cpu_node.len();
    if load.as_recorded && script.cpus() as usize > cpus {
        let what = format!("the recording is of {} CPUs or more, the machine has {cpus}", script.cpus());
        return Err(Failed::Machine(what));
    }
    with_caches(setup, seed, recorder, &script.caches, |kernel| {
        let run = Rc::new(Run {
            script: script.clone(),
            load: *load,
            objects: RefCell::new((0..script.objects).map(|_| Object::NotYet).collect()),
            wanted: RefCell::default(),
            done: RefCell::new(vec![false; script.steps as usize]),
            oldest: Cell::new(0),
            ahead: RefCell::default(),
            left: Cell::new(script.tasks.len() as u32),
            ended: WaitQueue::default(),
            operations: Cell::new(0),
            object_waits: Cell::new(0),
            ahead_waits: Cell::new(0),
        });
        let main_run = run.clone();
        let kernel = ended(kernel, |kernel, result| {
            kernel.start(kernel.new_process(), None, move |main| {
                *result.borrow_mut() = Some(main_run.main(main));
            });
        })?;
        Ok(Outcome {
            kernel,
            operations: run.operations.get(),
            object_waits: run.object_waits.get(),
            ahead_waits: run.ahead_waits.get(),
        })
    })
}

impl Script {
    /// One above the largest number of a CPU.
    pub fn cpus(&self) -> u16 {
        let steps = self.tasks.iter().flat_map(|task| &task.steps);
        steps.map(|step| step.cpu + 1).max().unwrap_or(0)
    }
}

impl Run {
    fn main(self: &Rc<Self>, main: &Task) -> tally::Outcome {
        let mark = main.kernel.mark();
        for at in 0..self.script.tasks.len() {
            let run = self.clone();
            main.fork(move |task| run.task(task, at));
            main.preemption_point();
        }
        main.syscall(|| {
            while self.left.get() > 0 {
                self.ended.wait(main, Waiting { what: "for tasks to end, left", number: self.left.get() });
            }
        });
        main.kernel.outcome(&mark)
    }

    fn task(&self, task: &Task, at: usize) {
        let script = self.script.clone();
        task.call_it(|| script.tasks[at].name.clone());
        for step in &script.tasks[at].steps {
            if self.load.as_recorded && Timed::cpu() != CpuId(step.cpu) {
                task.pin(CpuId(step.cpu));
            }
            self.wait_for_others(task, step);
            task.compute(self.gap(task, step));
            Timed::turn();
            self.operate(task, step);
            self.done(task, step.place);
            task.preemption_point();
        }
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            self.ended.wake_one(&task.kernel, false);
        }
    }

    /// How long the task computes before a step: an eighth more or less than recorded, at random.
    fn gap(&self, task: &Task, step: &Step) -> Ps {
        let gap_ns = step.gap_ns.min(self.load.gap_max_ns);
        let gap = Ps::from(gap_ns) * Ps::from(self.load.compute_percent) * 10;
        gap - gap / 8 + task.kernel.random(gap / 4 + 1)
    }

    fn operate(&self, task: &Task, step: &Step) {
        if step.what == What::Free {
            let held = self.take(task, step.object);
            self.timed(|| task.free(held));
        } else {
            let held = self.timed(|| match step.what {
                What::Alloc(cache) => task.alloc_from(task.kernel.own(cache)),
                What::Kmalloc(bytes) => task.alloc_bytes(bytes),
                What::Free => unreachable!("freed above"),
            });
            self.objects.borrow_mut()[step.object as usize] = Object::Live(held);
            let wanted = self.wanted.borrow_mut().remove(&step.object);
            if let Some(queue) = wanted {
                queue.wake_all(&task.kernel, false);
            }
        }
        task.kernel.count_message();
    }

    fn timed<T>(&self, operation: impl FnOnce() -> T) -> T {
        let from = Timed::clock();
        let result = operation();
        self.operations.set(self.operations.get() + Timed::clock() - from);
        result
    }

    /// Waits until an object is allocated, and takes it.
    fn take(&self, task: &Task, object: u32) -> Held {
        loop {
            let found = std::mem::replace(&mut self.objects.borrow_mut()[object as usize], Object::Freed);
            match found {
                Object::Live(held) => return held,
                Object::Freed => panic!("object {object} of the recording is freed twice"),
                Object::NotYet => self.objects.borrow_mut()[object as usize] = Object::NotYet,
            }
            self.object_waits.set(self.object_waits.get() + 1);
            let queue = self.wanted.borrow_mut().entry(object).or_default().clone();
            queue.wait(task, Waiting { what: "for the allocation of object", number: object });
        }
    }

    /// Waits while the step is too far ahead.
    fn wait_for_others(&self, task: &Task, step: &Step) {
        let ahead = self.load.ahead;
        if ahead > 0 && step.place - self.oldest.get().min(step.place) >= ahead {
            self.ahead_waits.set(self.ahead_waits.get() + 1);
            let queue = self.ahead.borrow_mut().entry(step.place).or_default().clone();
            queue.wait(task, Waiting { what: "to be less far ahead, at step", number: step.place });
        }
    }

    /// A step is done. Tasks that wait at a step which is less than half as far ahead as it may be go on.
    fn done(&self, task: &Task, place: u32) {
        let mut done = self.done.borrow_mut();
        done[place as usize] = true;
        if place != self.oldest.get() {
            return;
        }
        let oldest = (place..).find(|at| done.get(*at as usize) != Some(&true)).unwrap_or(u32::MAX);
        drop(done);
        self.oldest.set(oldest);
        let until = oldest.saturating_add(self.load.ahead.div_ceil(2));
        loop {
            let first = self.ahead.borrow().first_key_value().map(|(place, _)| *place);
            let Some(first) = first.filter(|first| *first < until) else { return };
            let queue = self.ahead.borrow_mut().remove(&first).expect("just seen");
            queue.wake_all(&task.kernel, false);
        }
    }
}
