//! Scheduler policies of Linux by release: 2.4, CFS of 2.6.29, CFS of 5.x to 6.5, EEVDF.
//!
//! A [`Scheduler`] decides where a woken or forked task runs ([`Scheduler::select_cpu`]), whether it preempts
//! ([`Scheduler::enqueue`]), which task runs next ([`Scheduler::pick`]), when the running task has used its
//! slice ([`Scheduler::account`], [`Scheduler::tick`]), and what a CPU pulls from others
//! ([`Scheduler::balance`]). docs/theory/scheduler.md has the rules, with the source of each constant.
//!
//! The scheduler has no clock, no random number, no floating-point number and no thread. The caller passes
//! `now` in picoseconds. The same calls give the same decisions. Times of different CPUs may differ: a `now`
//! before the last call of a CPU counts as no time passed.
//!
//! The life of a task, as the caller sees it:
//!
//! ```text
//! add ── select_cpu(Fork) ── enqueue(Fork) ─┐
//!                                           ├─ pick ── account, tick ── leave(Sleep) ── select_cpu(Wake) ── enqueue(Wake) ─┐
//!                                           └──────────────────────────────────────────────────────────────────────────┘
//! leave(Exit): the task is gone, its number is used again
//! ```

mod decay;
mod domains;
mod fair;
mod goodness;
mod policy;
mod tree;
mod words;

pub use domains::Machine;
pub use policy::{
    Bound, Eevdf, FairRules, GoodnessRules, Granularity, NotBuilt, Parity, Policy, Queueing, Rules, Scaling,
    Waking,
};
pub use words::{
    Affinity, Balance, Chosen, Class, Idle, Kick, Leave, MS, Move, Picked, Ps, Spec, TaskId, US, Why,
};

use fair::Fair;
use goodness::Goodness;
use slablab_platform::CpuId;

/// The scheduler of one machine under one policy. Tasks are numbered by [`Scheduler::add`].
pub struct Scheduler {
    policy: Policy,
    kind: Kind,
}

enum Kind {
    Goodness(Box<Goodness>),
    Fair(Box<Fair>),
}

/// Calls the function of the same name of the policy in use.
macro_rules! forward {
    ($self:ident.$name:ident($($argument:expr),*)) => {
        match &mut $self.kind {
            Kind::Goodness(goodness) => goodness.$name($($argument),*),
            Kind::Fair(fair) => fair.$name($($argument),*),
        }
    };
}

impl Scheduler {
    /// A scheduler without tasks: every CPU of `machine` is idle since time 0.
    ///
    /// # Panics
    ///
    /// If the vectors of `machine` have different lengths, or name a node without distances.
    pub fn new(policy: Policy, machine: &Machine) -> Scheduler {
        let kind = match &policy.rules {
            Rules::Goodness(rules) => Kind::Goodness(Box::new(Goodness::new(*rules, machine))),
            Rules::Fair(rules) => Kind::Fair(Box::new(Fair::new(*rules, policy.tick, machine))),
        };
        Scheduler { policy, kind }
    }

    /// The policy in use.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The name for a set of CPUs that a task may run on (`sched_setaffinity`). An empty set means all CPUs.
    pub fn affinity(&mut self, cpus: &[CpuId]) -> Affinity {
        forward!(self.affinity(cpus))
    }

    /// A new task that is not queued yet. `parent` gives the time left (2.4); without one the task starts
    /// with a full slice.
    pub fn add(&mut self, spec: Spec, parent: Option<TaskId>) -> TaskId {
        forward!(self.add(spec, parent))
    }

    /// Changes the CPUs that a task may run on, from its next [`Scheduler::select_cpu`] on. To move a running
    /// task at once, the caller lets it leave with [`Leave::Move`] and queues it again.
    pub fn set_affinity(&mut self, task: TaskId, affinity: Affinity) {
        forward!(self.set_affinity(task, affinity));
    }

    /// The CPU on which `task` is to be queued. The caller passes it to [`Scheduler::enqueue`].
    pub fn select_cpu(&mut self, task: TaskId, why: Why, now: Ps) -> Chosen {
        forward!(self.select_cpu(task, why, now))
    }

    /// Queues `task` on `cpu`. Returns the CPU that has to schedule, if one has to and was not told before.
    pub fn enqueue(&mut self, cpu: CpuId, task: TaskId, why: Why, now: Ps) -> Option<Kick> {
        forward!(self.enqueue(cpu, task, why, now))
    }

    /// Charges the running task of `cpu` for the time since the last charge. True if it has used its slice
    /// and the CPU has to schedule. All other functions charge by themselves.
    pub fn account(&mut self, cpu: CpuId, now: Ps) -> bool {
        forward!(self.account(cpu, now))
    }

    /// The timer interrupt of `cpu`, each [`Policy::tick`]. True if the CPU has to schedule.
    pub fn tick(&mut self, cpu: CpuId, now: Ps) -> bool {
        forward!(self.tick(cpu, now))
    }

    /// The running task of `cpu` sleeps, moves or exits. The caller picks next.
    ///
    /// # Panics
    ///
    /// If no task runs on `cpu`.
    pub fn leave(&mut self, cpu: CpuId, how: Leave, now: Ps) -> TaskId {
        forward!(self.leave(cpu, how, now))
    }

    /// Chooses the task that `cpu` runs from now on. The task that ran there, if it did not leave, competes.
    pub fn pick(&mut self, cpu: CpuId, now: Ps) -> Picked {
        forward!(self.pick(cpu, now))
    }

    /// Pulls tasks to `cpu`: after a pick that found none ([`Idle::Newly`]), and at each tick. If it moved
    /// tasks to an idle CPU, the caller picks. [`Scheduler::moves`] lists the moved tasks until the next
    /// call.
    pub fn balance(&mut self, cpu: CpuId, idle: Idle, now: Ps) -> Balance {
        forward!(self.balance(cpu, idle, now))
    }

    /// The tasks that the last [`Scheduler::balance`] moved.
    pub fn moves(&self) -> &[Move] {
        match &self.kind {
            Kind::Goodness(_) => &[],
            Kind::Fair(fair) => fair.moves(),
        }
    }

    /// Whether a wake-up by `from` is queued by an interrupt on `cpu` instead of by the waker.
    pub fn queues_by_interrupt(&self, from: CpuId, cpu: CpuId) -> bool {
        match &self.kind {
            Kind::Goodness(_) => false,
            Kind::Fair(fair) => fair.queues_by_interrupt(from, cpu),
        }
    }

    /// The task that runs on `cpu`.
    pub fn current(&self, cpu: CpuId) -> Option<TaskId> {
        match &self.kind {
            Kind::Goodness(goodness) => goodness.current(cpu),
            Kind::Fair(fair) => fair.current(cpu),
        }
    }

    /// Tasks that can run on `cpu`: the running one and those queued there. Under 2.4, which has one queue,
    /// the running one only.
    pub fn runnable(&self, cpu: CpuId) -> u32 {
        match &self.kind {
            Kind::Goodness(goodness) => u32::from(goodness.current(cpu).is_some()),
            Kind::Fair(fair) => fair.runnable(cpu),
        }
    }

    /// The CPU on which `task` runs, is queued, or ran last.
    pub fn cpu_of(&self, task: TaskId) -> CpuId {
        match &self.kind {
            Kind::Goodness(goodness) => goodness.cpu_of(task),
            Kind::Fair(fair) => fair.cpu_of(task),
        }
    }

    /// The priority of a queued task as a number, for tests and traces: goodness under 2.4, else the virtual
    /// run time in picoseconds.
    pub fn position(&self, task: TaskId) -> i64 {
        match &self.kind {
            Kind::Goodness(goodness) => goodness.position(task),
            Kind::Fair(fair) => fair.position(task),
        }
    }
}
