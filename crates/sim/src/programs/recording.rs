//! A recording as a closed program: its tasks do its allocations and frees again, and wait for each other.
//!
//! ```text
//! main    start a task for each of the recording's ── wait for their ends
//! task    for each of its steps, in the recording's order
//!           wait while it is too far ahead of the others      Params::ahead
//!           compute for the step's gap
//!           allocate, or wait until the object is allocated and free it
//! ```
//!
//! A recording says which objects a task frees that another allocated. It does not say what else the tasks
//! waited for, as a full pipe. So a task may be at most [`Params::ahead`] steps of the recording ahead of its
//! oldest step that is not done: assumed. The oldest step never waits, for what it frees was allocated in an
//! older one.

use super::measures::{KERNEL, sample, with_kernel};
use super::program::{Estimate, Metric, Object as Described, Observed, Program, ppm};
use super::repeat::ended;
use crate::kernel::objects::Held;
use crate::kernel::tally::{self, Failed};
use crate::kernel::{Task, WaitQueue, Waiting, with_caches};
use crate::params::{File, params, words};
use crate::record::Recorder;
use crate::recorded::{Recorded, Script, Step, What};
use crate::setup::Setup;
use slablab_model::{MachineSpec, Ps, Timed};
use slablab_platform::{CpuId, Topology};
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Where the steps of a task run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The scheduler chooses each task's CPU.
    Scheduled,
    /// Each step runs on its CPU of the recording.
    Recorded,
}

words! { Placement { Scheduled = "scheduled", Recorded = "recorded" } }

params! {
    /// The program's parameters.
    pub struct Params {
        file: File, "the recording, as `slablab import` reads it, in the experiment's folder", "given";
        placement: Placement,
            "scheduled: the scheduler chooses each task's CPU; recorded: each event happens on its CPU of \
             the recording",
            "assumed";
        ahead: u32 = [10_000], 0..=1_073_741_824,
            "events of the recording by which a task may be ahead of the oldest that is not done: it \
             stands for waits that no recording has, as for a full pipe; 0: any number",
            "assumed";
        gap_max_us: u32 = [100], 0..=1_000_000,
            "the longest time between two events of a CPU that counts as computing; the rest of a longer \
             gap is left out",
            "assumed";
        compute_percent: u32 = [100], 0..=10_000,
            "computing between two events, in percent of the recorded time, which has the cost of the \
             recorder and of the recorded kernel's allocator in it",
            "assumed";
    }
}

/// The program.
#[derive(Debug)]
pub enum Recording {}

impl Program for Recording {
    type Params = Params;

    const NAME: &'static str = "recording";
    const ABOUT: &'static str =
        "the tasks of a recording do its allocations and frees again, and wait for each other's objects";
    const METRICS: &'static [Metric] = &METRICS;

    fn objects(_release: Release) -> Vec<Described> {
        vec![Described {
            cache: "those of the recording",
            bytes: 0,
            per_operation: "as recorded; a kmalloc is of the engine's class for its bytes".into(),
            source: "the recording",
        }]
    }

    /// Tasks are there from the start, send nothing and touch no page.
    fn ignores(cost: &str) -> bool {
        ["copy_kib", "page_fault", "fork", "exit"].contains(&cost)
    }

    fn check(machine: &MachineSpec, params: &Params) -> Result<(), String> {
        let recorded = params.file.as_ref().map_err(Clone::clone)?;
        let (cpus, needed) = (machine.cpu_node.len(), usize::from(recorded.script.cpus()));
        if params.placement == Placement::Recorded && cpus < needed {
            return Err(format!("placement = recorded: expected at least {needed} CPUs, found {cpus}"));
        }
        Ok(())
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// An event with its share of waits and switches (measured: 0.5 to 1.5 us).
        const EVENT_NS: u64 = 1_500;
        /// A step, an object, and what the kernel counts of it.
        const EVENT_BYTES: u64 = 64;
        let steps = params.file.as_ref().map_or(0, |recorded| u64::from(recorded.script.steps));
        let slabs = Estimate::of_operations(machine, 0, 64 << 20);
        Estimate { host_ns: steps * EVENT_NS, host_bytes: slabs.host_bytes + steps * EVENT_BYTES }
    }

    /// A repeat draws how long each task computes: an eighth more or less than recorded.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let recorded = params.file.clone().map_err(Failed::Machine)?;
        let outcome = run(setup, &recorded.script, params, seed, recorder)?;
        Ok(observed(outcome, &recorded))
    }
}

const METRICS: [Metric; 7 + KERNEL.len()] = with_kernel([
    Metric {
        name: "elapsed_ps",
        about: "time from the start of the tasks to the end of the last",
        better: Some(Better::Lower),
        unit: "ms",
        per_unit: 1e9,
        decimals: 3,
    },
    Metric {
        name: "event_ps",
        about: "the same for each allocation and free",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 1,
    },
    Metric {
        name: "operation_ps",
        about: "time of an allocation or a free in the allocator, waits for locks included",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 1,
    },
    Metric::each("object_waits_milli", "waits for an object of another task, for one allocation or free"),
    Metric::each("ahead_waits_milli", "waits of tasks that are too far ahead, for one allocation or free"),
    Metric {
        name: "recorded_elapsed_ps",
        about: "time of the recording itself, from its first event to its last",
        better: None,
        unit: "ms",
        per_unit: 1e9,
        decimals: 3,
    },
    Metric::percent(
        "recorded_elsewhere_ppm",
        "frees on another CPU than that of the allocation in the recording itself",
        None,
    ),
]);

fn observed(outcome: Outcome, recorded: &Recorded) -> Observed {
    let events = outcome.kernel.messages.max(1);
    let own = [
        ("elapsed_ps", outcome.kernel.elapsed),
        ("event_ps", outcome.kernel.elapsed / events),
        ("operation_ps", outcome.operations / events),
        ("object_waits_milli", outcome.object_waits * 1_000 / events),
        ("ahead_waits_milli", outcome.ahead_waits * 1_000 / events),
        ("recorded_elapsed_ps", recorded.elapsed_ns * 1_000),
        ("recorded_elsewhere_ppm", ppm(recorded.elsewhere, recorded.frees)),
    ];
    Observed { sample: sample(&METRICS, &outcome.kernel, &own), profile: Some(outcome.kernel.profile) }
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
    params: Params,
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

/// Runs a recording, and tells `recorder` what happens.
///
/// # Errors
/// A machine that cannot be modelled, or lacks a CPU of the recording; no memory.
pub fn run(
    setup: &Setup,
    script: &Arc<Script>,
    params: &Params,
    seed: u64,
    recorder: &Recorder,
) -> Result<Outcome, Failed> {
    let cpus = setup.spec.cpu_node.len();
    if params.placement == Placement::Recorded && script.cpus() as usize > cpus {
        let what = format!("the recording is of {} CPUs or more, the machine has {cpus}", script.cpus());
        return Err(Failed::Machine(what));
    }
    with_caches(setup, seed, recorder, &script.caches, |kernel| {
        let run = Rc::new(Run {
            script: script.clone(),
            params: params.clone(),
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
            if self.params.placement == Placement::Recorded && Timed::cpu() != CpuId(step.cpu) {
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
        let gap_ns = step.gap_ns.min(self.params.gap_max_us * 1_000);
        let gap = Ps::from(gap_ns) * Ps::from(self.params.compute_percent) * 10;
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
        let ahead = self.params.ahead;
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
        let until = oldest.saturating_add(self.params.ahead.div_ceil(2));
        loop {
            let first = self.ahead.borrow().first_key_value().map(|(place, _)| *place);
            let Some(first) = first.filter(|first| *first < until) else { return };
            let queue = self.ahead.borrow_mut().remove(&first).expect("just seen");
            queue.wake_all(&task.kernel, false);
        }
    }
}
