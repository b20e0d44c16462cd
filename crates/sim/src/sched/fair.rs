//! CFS and EEVDF: a queue for each CPU, ordered by virtual time (docs/theory/scheduler.md 3 to 8).
//!
//! The running task of a CPU is not in its tree, but counts in `nr` and in the queue's weight. A sleeper
//! whose dequeue is delayed (EEVDF) is in the tree, but does not count in `nr`.

mod balance;
mod forking;
mod preempt;
mod queue;
mod tally;
mod waking;

use super::decay::Average;
use super::domains::{Affinities, Bits, Domains, IdleSet, Machine};
use super::policy::{Eevdf, FairRules, Queueing};
use super::tree::{Forest, Root};
use super::words::{Affinity, Class, Kick, Leave, Move, Picked, Ps, Spec, TaskId, Why};
use slablab_platform::CpuId;

/// The weight of nice 0.
const NICE_0: u64 = 1024;

/// No task, no buddy.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    New,
    Sleeping,
    /// Sleeping, but still queued (docs/theory/scheduler.md 7.6).
    Delayed,
    Queued,
    Running,
    Gone,
}

#[derive(Clone, Copy, Default)]
struct Task {
    class: Class,
    affinity: Affinity,
    state: State,
    cpu: u16,
    weight: u64,
    /// Virtual run time, relative to its CPU's queue.
    vruntime: i64,
    /// EEVDF: when the task should have got its slice, in virtual time.
    deadline: i64,
    /// EEVDF: how much virtual time it was owed when it left the queue.
    lag: i64,
    slice: Ps,
    /// Run time in total; at the last pick; at the task's last wake-up of another task, plus 1.
    ran: Ps,
    ran_at_pick: Ps,
    ran_at_waking: Ps,
    /// When the task last began to run or was charged.
    charged_at: Ps,
    /// 2.6.29: how long the task runs after it woke another one (docs/theory/scheduler.md 4.1).
    overlap: Ps,
    /// How often the task woke another task than before (docs/theory/scheduler.md 4.2).
    flips: u32,
    flips_halved_at: Ps,
    last_wakee: u32,
    /// The CPU on which it ran before (docs/theory/scheduler.md 4.4).
    recent: u16,
    /// Its decayed load; the input is its weight while it can run.
    load: Average,
}

struct Queue {
    current: Option<u32>,
    root: Root,
    /// Tasks in the tree.
    queued: u32,
    /// Tasks that can run: the running one and the tree's, without delayed ones.
    nr: u32,
    /// Weight of the tasks of `nr`.
    load: u64,
    /// Weight of the tasks in the tree; sum of weight times vruntime of these.
    tree_weight: u64,
    tree_sum: i128,
    /// CFS: a lower bound of virtual times, which only grows. EEVDF: the mean when the queue became empty.
    floor: i64,
    next_buddy: u32,
    last_buddy: u32,
    /// EEVDF: the running task is protected up to this virtual time.
    protected_until: i64,
    kicked: bool,
    idle_since: Ps,
    /// The average time between becoming idle and the next task.
    idle_average: Ps,
    load_average: Average,
    busy_average: Average,
}

/// The scheduler of CFS and EEVDF.
pub(super) struct Fair {
    rules: FairRules,
    tick: Ps,
    tasks: Vec<Task>,
    free: Vec<u32>,
    forest: Forest,
    queues: Vec<Queue>,
    domains: Domains,
    /// For each level and domain.
    totals: Vec<Vec<Total>>,
    idle: IdleSet,
    /// CPUs with two tasks or more.
    crowded: Bits,
    affinities: Affinities,
    order: u64,
    latency: Ps,
    min_granularity: Ps,
    wakeup_granularity: Ps,
    base_slice: Ps,
    /// For each last-level cache: the average time of a search for an idle CPU.
    search_average: Vec<Ps>,
    /// For each CPU and level.
    turns: Vec<balance::Turn>,
    moves: Vec<Move>,
    scratch: Vec<u32>,
}

/// Sums over a domain.
#[derive(Clone, Copy, Default)]
struct Total {
    nr: u32,
    load: u64,
    idle: u32,
    /// CPUs with two tasks or more.
    crowded: u32,
}

impl Fair {
    pub(super) fn new(rules: FairRules, tick: Ps, machine: &Machine) -> Fair {
        let domains = Domains::new(machine);
        let cpus = domains.cpus;
        let idle = IdleSet::new(machine);
        let total = |cpus: &Vec<u16>| Total { idle: cpus.len() as u32, ..Total::default() };
        let totals = domains
            .levels
            .iter()
            .map(|level| level.domains.iter().map(|domain| total(&domain.cpus)).collect());
        let queue = |_| Queue {
            current: None,
            root: Root::default(),
            queued: 0,
            nr: 0,
            load: 0,
            tree_weight: 0,
            tree_sum: 0,
            floor: 0,
            next_buddy: NONE,
            last_buddy: NONE,
            protected_until: i64::MIN,
            kicked: false,
            idle_since: 0,
            idle_average: 2 * rules.migration_cost,
            load_average: Average::default(),
            busy_average: Average::default(),
        };
        let base_slice = match rules.queueing {
            Queueing::Eevdf(eevdf) => eevdf.base_slice * rules.scaling.factor(cpus),
            Queueing::Cfs { .. } => 0,
        };
        Fair {
            rules,
            tick,
            tasks: Vec::new(),
            free: Vec::new(),
            forest: Forest::default(),
            queues: (0..cpus).map(queue).collect(),
            totals: totals.collect(),
            crowded: Bits::new(cpus),
            affinities: Affinities::new(cpus),
            order: 0,
            latency: rules.scaling.latency(rules.latency, cpus),
            min_granularity: rules.scaling.latency(rules.min_granularity, cpus),
            wakeup_granularity: rules.wakeup_granularity * rules.scaling.factor(cpus),
            base_slice,
            search_average: vec![0; idle.caches.len()],
            turns: balance::turns(&domains, &rules),
            moves: Vec::new(),
            scratch: Vec::new(),
            idle,
            domains,
        }
    }

    pub(super) fn affinity(&mut self, cpus: &[CpuId]) -> Affinity {
        self.affinities.add(cpus)
    }

    pub(super) fn add(&mut self, spec: Spec, parent: Option<TaskId>) -> TaskId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(Task::default());
            self.tasks.len() as u32 - 1
        });
        self.forest.grow(id);
        let cpu = parent.map_or(0, |TaskId(parent)| self.tasks[parent as usize].cpu);
        let slice = spec.slice.map_or(self.base_slice, |slice| slice.clamp(SLICES.0, SLICES.1));
        let (class, affinity) = (spec.class, spec.affinity);
        let weight = if class == Class::Idle { 3 } else { weight(spec.nice) };
        let (last_wakee, recent) = (NONE, cpu);
        self.tasks[id as usize] =
            Task { class, affinity, cpu, weight, slice, last_wakee, recent, ..Task::default() };
        TaskId(id)
    }

    pub(super) fn set_affinity(&mut self, TaskId(task): TaskId, affinity: Affinity) {
        self.tasks[task as usize].affinity = affinity;
    }

    pub(super) fn enqueue(&mut self, cpu: CpuId, TaskId(task): TaskId, why: Why, now: Ps) -> Option<Kick> {
        let cpu = cpu.0;
        let expired = self.charge(cpu, now);
        self.note_waking(why);
        let old = self.tasks[task as usize].cpu;
        if self.tasks[task as usize].state == State::Delayed && old != cpu {
            // Its set of CPUs changed while it slept.
            self.end_delay(old, task);
        }
        let entry = &self.tasks[task as usize];
        if entry.state != State::Delayed {
            debug_assert!(
                [State::New, State::Sleeping].contains(&entry.state),
                "task {task} is queued twice"
            );
            self.place(cpu, task, why, now);
            self.insert(cpu, task);
        }
        self.tasks[task as usize].state = State::Queued;
        self.count(cpu, task, true, now);
        let preempts = match (self.queues[usize::from(cpu)].current, why) {
            (None, _) => true,
            (Some(current), Why::Fork { from })
                if from.0 == cpu && self.child_goes_first(cpu, task, current) =>
            {
                true
            }
            (Some(current), _) => self.wakeup_preempts(cpu, task, current),
        };
        self.kick(cpu, expired || preempts)
    }

    /// The CPU has to schedule, if `needed` and if it was not told before.
    fn kick(&mut self, cpu: u16, needed: bool) -> Option<Kick> {
        let queue = &mut self.queues[usize::from(cpu)];
        let told = queue.kicked;
        queue.kicked |= needed;
        (needed && !told).then_some(Kick { cpu: CpuId(cpu), idle: queue.current.is_none() })
    }

    pub(super) fn account(&mut self, CpuId(cpu): CpuId, now: Ps) -> bool {
        self.charge(cpu, now)
    }

    /// Charges the running task of a CPU. True if an EEVDF task used its slice while others wait.
    fn charge(&mut self, cpu: u16, now: Ps) -> bool {
        let queue = &mut self.queues[usize::from(cpu)];
        let Some(current) = queue.current else { return false };
        let entry = &mut self.tasks[current as usize];
        let span = now.saturating_sub(entry.charged_at);
        if span == 0 {
            return false;
        }
        entry.charged_at = now;
        entry.ran += span;
        entry.vruntime += (if entry.weight == NICE_0 { span } else { span * NICE_0 / entry.weight }) as i64;
        let eevdf = matches!(self.rules.queueing, Queueing::Eevdf(_));
        if !eevdf {
            self.raise_floor(cpu);
            return false;
        }
        let expired = entry.vruntime >= entry.deadline.min(queue.protected_until);
        if entry.vruntime >= entry.deadline {
            entry.deadline = entry.vruntime + (entry.slice * NICE_0 / entry.weight) as i64;
            queue.protected_until = queue.protected_until.min(entry.vruntime);
        }
        expired && queue.queued > 0
    }

    pub(super) fn tick(&mut self, CpuId(cpu): CpuId, now: Ps) -> bool {
        let expired = self.charge(cpu, now);
        match self.queues[usize::from(cpu)].current {
            Some(current) => expired || self.tick_preempts(cpu, current),
            None => false,
        }
    }

    pub(super) fn leave(&mut self, CpuId(cpu): CpuId, how: Leave, now: Ps) -> TaskId {
        self.charge(cpu, now);
        let task = self.queues[usize::from(cpu)].current.expect("a task runs on the CPU");
        self.count(cpu, task, false, now);
        self.forget_buddy(cpu, task);
        let eevdf = self.eevdf();
        let mean = eevdf.map_or(0, |_| self.mean(cpu));
        let lag = eevdf.map_or(0, |_| self.lag(mean, task));
        self.tasks[task as usize].lag = lag;
        let delays = eevdf.is_some_and(|rules| rules.delayed_dequeue) && how == Leave::Sleep && lag < 0;
        self.queues[usize::from(cpu)].current = None;
        if delays {
            self.insert(cpu, task);
        } else if eevdf.is_some() && self.queues[usize::from(cpu)].queued == 0 {
            self.queues[usize::from(cpu)].floor = mean;
        }
        let entry = &mut self.tasks[task as usize];
        if how == Leave::Sleep && entry.ran_at_waking > 0 {
            let span = entry.ran + 1 - entry.ran_at_waking;
            entry.overlap = approach(entry.overlap, span);
            entry.ran_at_waking = 0;
        }
        entry.state = match how {
            Leave::Sleep if delays => State::Delayed,
            Leave::Sleep | Leave::Move => State::Sleeping,
            Leave::Exit => State::Gone,
        };
        if how == Leave::Exit {
            self.free.push(task);
        }
        TaskId(task)
    }

    pub(super) fn pick(&mut self, CpuId(cpu): CpuId, now: Ps) -> Picked {
        self.charge(cpu, now);
        let prev = self.queues[usize::from(cpu)].current;
        self.queues[usize::from(cpu)].kicked = false;
        let next = loop {
            let next = self.choose(cpu);
            match next {
                Some(task) if self.tasks[task as usize].state == State::Delayed => self.end_delay(cpu, task),
                next => break next,
            }
        };
        if next != prev {
            if let Some(prev) = prev {
                self.tasks[prev as usize].state = State::Queued;
                self.queues[usize::from(cpu)].current = None;
                self.insert(cpu, prev);
            }
            if let Some(next) = next {
                self.remove(cpu, next);
                self.tasks[next as usize].state = State::Running;
            }
            self.queues[usize::from(cpu)].current = next;
        }
        match next {
            Some(next) => self.start(cpu, next, now),
            None => self.become_idle(cpu, now),
        }
        Picked { task: next.map(TaskId), scanned: next.is_some().into(), recalculated: 0, kick: None }
    }

    fn eevdf(&self) -> Option<Eevdf> {
        match self.rules.queueing {
            Queueing::Eevdf(rules) => Some(rules),
            Queueing::Cfs { .. } => None,
        }
    }

    pub(super) fn moves(&self) -> &[Move] {
        &self.moves
    }

    pub(super) fn queues_by_interrupt(&self, from: CpuId, cpu: CpuId) -> bool {
        self.rules.queue_by_interrupt && !self.idle.share_cache(from.0, cpu.0)
    }

    pub(super) fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.queues[usize::from(cpu.0)].current.map(TaskId)
    }

    pub(super) fn runnable(&self, cpu: CpuId) -> u32 {
        self.queues[usize::from(cpu.0)].nr
    }

    pub(super) fn cpu_of(&self, TaskId(task): TaskId) -> CpuId {
        CpuId(self.tasks[task as usize].cpu)
    }

    pub(super) fn position(&self, TaskId(task): TaskId) -> i64 {
        self.tasks[task as usize].vruntime
    }
}

/// The slices that a task may ask for.
const SLICES: (Ps, Ps) = (super::words::MS / 10, 100 * super::words::MS);

/// An average that takes an eighth of each new sample.
fn approach(average: Ps, sample: Ps) -> Ps {
    average - average / 8 + sample / 8
}

/// The weight of a nice level: 1.25 times that of the next one (docs/theory/scheduler.md 3.1).
fn weight(nice: i8) -> u64 {
    let nice = nice.clamp(-20, 19);
    let power = |base: u128| base.pow(u32::from(nice.unsigned_abs()));
    let (up, down) = if nice < 0 { (power(5), power(4)) } else { (power(4), power(5)) };
    ((u128::from(NICE_0) * up + down / 2) / down) as u64
}
