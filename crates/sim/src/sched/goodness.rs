//! Linux 2.4: one queue of all runnable tasks, searched whole for the best goodness
//! (docs/theory/scheduler.md 2).
//!
//! The kernel walks its list. Here trees find the same task: goodness is a part of the task (time left, nice)
//! plus a bonus for the CPU and one for the address space, so there is one tree for each combination of
//! bonuses, and the best of their first tasks is the best of all. [`Picked::scanned`] is the length of the
//! kernel's walk. Tasks with a set of CPUs are few, and kept in a list.

use super::domains::{Affinities, Machine};
use super::policy::GoodnessRules;
use super::tree::{Forest, Key, Root, Value};
use super::words::{Affinity, Balance, Chosen, Idle, Kick, Leave, Picked, Ps, Spec, TaskId, Why};
use slablab_platform::CpuId;

/// Above every goodness without bonuses, so that `BEST - goodness` is positive: better tasks come first.
const BEST: i64 = 1 << 10;

/// Keys of one CPU in the trees by address space and CPU.
const BY_CPU: i64 = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Sleeping,
    Queued,
    Running,
    Gone,
}

#[derive(Clone, Copy, Default)]
struct Task {
    spec: Spec,
    /// Ticks left.
    counter: i64,
    state: State,
    cpu: u16,
    /// The place in the list: greater is nearer to the head.
    order: u64,
}

impl Task {
    /// Goodness without the bonuses; 0 if the task has no time left.
    fn own_goodness(&self) -> i64 {
        if self.counter == 0 { 0 } else { self.counter + 20 - i64::from(self.spec.nice) }
    }
}

/// Ticks that a task gets at each recalculation.
fn ticks(nice: i8) -> i64 {
    (20 - i64::from(nice)) / 4 + 1
}

#[derive(Clone, Copy, Default)]
struct Cpu {
    current: Option<u32>,
    /// The address space that the CPU has loaded: an idle CPU keeps the last one.
    mm: u32,
    idle_since: Ps,
    kicked: bool,
}

/// A forest and its trees.
#[derive(Default)]
struct Family {
    forest: Forest,
    roots: Vec<Root>,
}

impl Family {
    fn root(&mut self, tree: usize) -> &mut Root {
        if self.roots.len() <= tree {
            self.roots.resize_with(tree + 1, Root::default);
        }
        &mut self.roots[tree]
    }

    fn insert(&mut self, tree: usize, task: u32, key: Key) {
        self.root(tree);
        self.forest.insert(&mut self.roots[tree], task, key, Value::default());
    }

    fn remove(&mut self, tree: usize, task: u32) {
        self.forest.remove(&mut self.roots[tree], task);
    }

    fn first(&self, tree: usize) -> Option<u32> {
        self.forest.first(*self.roots.get(tree)?)
    }
}

/// The scheduler of 2.4.
pub(super) struct Goodness {
    rules: GoodnessRules,
    tasks: Vec<Task>,
    free: Vec<u32>,
    cpus: Vec<Cpu>,
    affinities: Affinities,
    /// Queued tasks with time left and without a set of CPUs, in four families of trees.
    all: Family,
    by_cpu: Family,
    by_mm: Family,
    by_mm_and_cpu: Family,
    /// Queued tasks with a set of CPUs.
    restricted: Vec<u32>,
    /// Queued tasks without time left and without a set of CPUs.
    spent: u32,
    /// Queued and running tasks: the length of the kernel's list.
    runnable: u32,
    idle: usize,
    order: u64,
}

impl Goodness {
    pub(super) fn new(rules: GoodnessRules, machine: &Machine) -> Goodness {
        let cpus = machine.core.len();
        Goodness {
            rules,
            tasks: Vec::new(),
            free: Vec::new(),
            cpus: vec![Cpu::default(); cpus],
            affinities: Affinities::new(cpus),
            all: Family::default(),
            by_cpu: Family::default(),
            by_mm: Family::default(),
            by_mm_and_cpu: Family::default(),
            restricted: Vec::new(),
            spent: 0,
            runnable: 0,
            idle: cpus,
            order: 0,
        }
    }

    pub(super) fn affinity(&mut self, cpus: &[CpuId]) -> Affinity {
        self.affinities.add(cpus)
    }

    /// A child gets half of its parent's time left (docs/theory/scheduler.md 2.3).
    pub(super) fn add(&mut self, spec: Spec, parent: Option<TaskId>) -> TaskId {
        let mut task = Task { spec, counter: ticks(spec.nice), ..Task::default() };
        if let Some(TaskId(parent)) = parent {
            let parent = &mut self.tasks[parent as usize];
            debug_assert_ne!(parent.state, State::Queued, "a parent that forks is running");
            (task.counter, parent.counter) = ((parent.counter + 1) / 2, parent.counter / 2);
            task.cpu = parent.cpu;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(Task::default());
            self.tasks.len() as u32 - 1
        });
        self.tasks[id as usize] = task;
        for family in [&mut self.all, &mut self.by_cpu, &mut self.by_mm, &mut self.by_mm_and_cpu] {
            family.forest.grow(id);
        }
        TaskId(id)
    }

    pub(super) fn set_affinity(&mut self, TaskId(task): TaskId, affinity: Affinity) {
        let queued = self.tasks[task as usize].state == State::Queued;
        if queued {
            self.unlink(task);
        }
        self.tasks[task as usize].spec.affinity = affinity;
        if queued {
            self.link(task);
        }
    }

    /// There is one queue: the task stays where it ran last.
    pub(super) fn select_cpu(&mut self, TaskId(task): TaskId, why: Why, _: Ps) -> Chosen {
        let cpu = match why {
            Why::Fork { from } => from.0,
            _ => self.tasks[task as usize].cpu,
        };
        Chosen { cpu: CpuId(cpu), scanned: 0 }
    }

    pub(super) fn enqueue(&mut self, cpu: CpuId, TaskId(task): TaskId, why: Why, _: Ps) -> Option<Kick> {
        debug_assert_eq!(self.tasks[task as usize].state, State::Sleeping, "task {task} is queued twice");
        self.order += 1;
        let entry = &mut self.tasks[task as usize];
        (entry.cpu, entry.order) = (cpu.0, self.order);
        self.runnable += 1;
        self.link(task);
        match why {
            Why::Wake { sync: true, .. } => None,
            _ => self.find_cpu(task),
        }
    }

    /// Puts a task into the trees.
    fn link(&mut self, task: u32) {
        let entry = &mut self.tasks[task as usize];
        entry.state = State::Queued;
        let Task { spec, cpu, order, .. } = *entry;
        let own = entry.own_goodness();
        if spec.affinity != Affinity::default() {
            self.restricted.push(task);
        } else if own == 0 {
            self.spent += 1;
        } else {
            let (cpu, mm) = (usize::from(cpu), spec.mm as usize);
            let key = Key { key: BEST - own, tie: !order };
            self.all.insert(0, task, key);
            self.by_cpu.insert(cpu, task, key);
            self.by_mm.insert(mm, task, key);
            self.by_mm_and_cpu.insert(mm, task, Key { key: cpu as i64 * BY_CPU + key.key, ..key });
        }
    }

    /// Takes a queued task out of the trees.
    fn unlink(&mut self, task: u32) {
        let Task { spec, cpu, .. } = self.tasks[task as usize];
        if spec.affinity != Affinity::default() {
            self.restricted.retain(|other| *other != task);
        } else if self.tasks[task as usize].own_goodness() == 0 {
            self.spent -= 1;
        } else {
            self.all.remove(0, task);
            self.by_cpu.remove(usize::from(cpu), task);
            self.by_mm.remove(spec.mm as usize, task);
            self.by_mm_and_cpu.remove(spec.mm as usize, task);
        }
    }

    /// The goodness of a task on a CPU that has the address space `mm` loaded.
    fn goodness(&self, task: u32, cpu: u16, mm: u32) -> i64 {
        let entry = &self.tasks[task as usize];
        match entry.own_goodness() {
            0 => 0,
            own => {
                let same_cpu = if entry.cpu == cpu { self.rules.same_cpu } else { 0 };
                own + same_cpu + if entry.spec.mm == mm { self.rules.same_mm } else { 0 }
            }
        }
    }

    /// The CPU that should run a task which was just queued (docs/theory/scheduler.md 2.4).
    fn find_cpu(&mut self, task: u32) -> Option<Kick> {
        let Task { spec, cpu: last, .. } = self.tasks[task as usize];
        let allowed = |cpu: &usize| self.affinities.allow(spec.affinity, *cpu as u16);
        let is_idle = |cpu: &usize| self.cpus[*cpu].current.is_none();
        let last = usize::from(last);
        let mut found = Some(last).filter(is_idle).filter(allowed);
        if found.is_none() && self.idle > 0 {
            let idle = (0..self.cpus.len()).filter(is_idle).filter(allowed);
            found = idle.min_by_key(|cpu| self.cpus[*cpu].idle_since);
        }
        if found.is_none() {
            let mut most = 1;
            for cpu in (0..self.cpus.len()).filter(allowed) {
                let Some(current) = self.cpus[cpu].current else { continue };
                let mm = self.cpus[cpu].mm;
                let gain = self.goodness(task, cpu as u16, mm) - self.goodness(current, cpu as u16, mm);
                if gain > most {
                    (most, found) = (gain, Some(cpu));
                }
            }
        }
        let cpu = found?;
        let told = std::mem::replace(&mut self.cpus[cpu].kicked, true);
        (!told).then(|| Kick { cpu: CpuId(cpu as u16), idle: self.cpus[cpu].current.is_none() })
    }

    /// Time is counted in ticks.
    pub(super) fn account(&mut self, _: CpuId, _: Ps) -> bool {
        false
    }

    pub(super) fn tick(&mut self, cpu: CpuId, _: Ps) -> bool {
        let Some(current) = self.cpus[usize::from(cpu.0)].current else { return false };
        let counter = &mut self.tasks[current as usize].counter;
        *counter = (*counter - 1).max(0);
        *counter == 0
    }

    pub(super) fn leave(&mut self, cpu: CpuId, how: Leave, _: Ps) -> TaskId {
        let task = self.cpus[usize::from(cpu.0)].current.take().expect("a task runs on the CPU");
        // Until the CPU picks, it is not idle: `idle` counts it, but the caller picks next.
        self.idle += 1;
        self.runnable -= 1;
        let entry = &mut self.tasks[task as usize];
        entry.state = if how == Leave::Exit { State::Gone } else { State::Sleeping };
        if how == Leave::Exit {
            self.free.push(task);
        }
        TaskId(task)
    }

    pub(super) fn pick(&mut self, cpu: CpuId, now: Ps) -> Picked {
        let here = usize::from(cpu.0);
        let scanned = self.runnable;
        let prev = self.cpus[here].current;
        self.cpus[here].kicked = false;
        let mut recalculated = 0;
        let next = loop {
            let best = self.best(prev, cpu.0);
            let Some((goodness, task)) = best else { break None };
            if goodness > 0 {
                break Some(task);
            }
            recalculated += self.recalculate();
        };
        let mut picked = Picked { task: next.map(TaskId), scanned, recalculated, kick: None };
        if next == prev {
            if next.is_none() {
                self.cpus[here].idle_since = now;
            }
            return picked;
        }
        if let Some(next) = next {
            self.unlink(next);
            let entry = &mut self.tasks[next as usize];
            (entry.state, entry.cpu) = (State::Running, cpu.0);
            self.cpus[here].mm = entry.spec.mm;
            self.idle -= usize::from(prev.is_none());
        }
        self.cpus[here].current = next;
        if let Some(prev) = prev {
            self.link(prev);
            picked.kick = self.find_cpu(prev);
        }
        picked
    }

    /// The task with the best goodness for a CPU, the running one first, then in the list's order.
    fn best(&self, prev: Option<u32>, cpu: u16) -> Option<(i64, u32)> {
        let mm = self.cpus[usize::from(cpu)].mm;
        let mut best = prev.map(|task| (self.goodness(task, cpu, mm), u64::MAX, task));
        let mut consider = |task: Option<u32>| {
            let Some(task) = task else { return };
            let found = (self.goodness(task, cpu, mm), self.tasks[task as usize].order, task);
            if best.is_none_or(|best| found > best) {
                best = Some(found);
            }
        };
        consider(self.all.first(0));
        consider(self.by_cpu.first(usize::from(cpu)));
        consider(self.by_mm.first(mm as usize));
        let both = self.by_mm_and_cpu.roots.get(mm as usize);
        let from = i64::from(cpu) * BY_CPU;
        let both = both.and_then(|root| self.by_mm_and_cpu.forest.first_from(*root, from));
        consider(both.filter(|task| self.tasks[*task as usize].cpu == cpu));
        let allowed = |task: &u32| self.affinities.allow(self.tasks[*task as usize].spec.affinity, cpu);
        self.restricted.iter().copied().filter(allowed).for_each(|task| consider(Some(task)));
        match best {
            None if self.spent > 0 => Some((0, u32::MAX)),
            best => best.map(|(goodness, _, task)| (goodness, task)),
        }
    }

    /// Gives every task of the system new time (docs/theory/scheduler.md 2.3).
    fn recalculate(&mut self) -> u32 {
        let mut count = 0;
        for task in 0..self.tasks.len() as u32 {
            let Task { state, spec, .. } = self.tasks[task as usize];
            if state == State::Gone {
                continue;
            }
            if state == State::Queued {
                self.unlink(task);
            }
            let counter = &mut self.tasks[task as usize].counter;
            *counter = *counter / 2 + ticks(spec.nice);
            if state == State::Queued {
                self.link(task);
            }
            count += 1;
        }
        count
    }

    /// There is nothing to balance: one queue.
    pub(super) fn balance(&mut self, _: CpuId, _: Idle, _: Ps) -> Balance {
        Balance::default()
    }

    pub(super) fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[usize::from(cpu.0)].current.map(TaskId)
    }

    pub(super) fn cpu_of(&self, TaskId(task): TaskId) -> CpuId {
        CpuId(self.tasks[task as usize].cpu)
    }

    pub(super) fn position(&self, TaskId(task): TaskId) -> i64 {
        self.tasks[task as usize].own_goodness()
    }
}
