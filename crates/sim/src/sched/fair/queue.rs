//! One CPU's queue: order, virtual time, placement, the next task.

use super::super::policy::{Eevdf, Parity, Queueing};
use super::super::tree::{Key, Value};
use super::super::words::{Ps, Why};
use super::{Fair, NICE_0, NONE, State, Task};

impl Fair {
    /// Puts a task into a CPU's tree.
    pub(super) fn insert(&mut self, cpu: u16, task: u32) {
        self.order += 1;
        let entry = &self.tasks[task as usize];
        let key = match self.rules.queueing {
            Queueing::Cfs { .. } => entry.vruntime,
            Queueing::Eevdf(_) => entry.deadline,
        };
        let queue = &mut self.queues[usize::from(cpu)];
        queue.queued += 1;
        queue.tree_weight += entry.weight;
        queue.tree_sum += i128::from(entry.weight) * i128::from(entry.vruntime);
        let value = Value { virtual_time: entry.vruntime, slice: entry.slice };
        self.forest.insert(&mut queue.root, task, Key { key, tie: self.order }, value);
    }

    /// Takes a task out of a CPU's tree.
    pub(super) fn remove(&mut self, cpu: u16, task: u32) {
        let entry = &self.tasks[task as usize];
        let queue = &mut self.queues[usize::from(cpu)];
        queue.queued -= 1;
        queue.tree_weight -= entry.weight;
        queue.tree_sum -= i128::from(entry.weight) * i128::from(entry.vruntime);
        self.forest.remove(&mut queue.root, task);
    }

    /// CFS: the lower bound of virtual times follows the running task and the first queued one.
    pub(super) fn raise_floor(&mut self, cpu: u16) {
        let queue = &self.queues[usize::from(cpu)];
        let of = |task: u32| self.tasks[task as usize].vruntime;
        let least = match (queue.current, self.forest.first(queue.root)) {
            (Some(current), Some(first)) => of(current).min(of(first)),
            (Some(task), None) | (None, Some(task)) => of(task),
            (None, None) => return,
        };
        let queue = &mut self.queues[usize::from(cpu)];
        queue.floor = queue.floor.max(least);
    }

    /// The CFS slice of a task: its share of the period by weight (docs/theory/scheduler.md 3.3).
    pub(super) fn slice(&self, cpu: u16, weight: u64, joins: bool) -> Ps {
        let Queueing::Cfs { nr_latency, .. } = self.rules.queueing else { return 0 };
        let queue = &self.queues[usize::from(cpu)];
        let nr = u64::from(queue.nr) + u64::from(joins);
        let load = queue.load + if joins { weight } else { 0 };
        let period = if nr <= nr_latency { self.latency } else { nr * self.min_granularity };
        (u128::from(period) * u128::from(weight) / u128::from(load.max(1))) as Ps
    }

    /// EEVDF: the mean virtual time of the queue, by weight, rounded down (docs/theory/scheduler.md 7.1).
    pub(super) fn mean(&self, cpu: u16) -> i64 {
        let queue = &self.queues[usize::from(cpu)];
        let (mut weight, mut sum) = (queue.tree_weight, queue.tree_sum);
        if let Some(current) = queue.current {
            let entry = &self.tasks[current as usize];
            weight += entry.weight;
            sum += i128::from(entry.weight) * i128::from(entry.vruntime);
        }
        if weight == 0 {
            return queue.floor;
        }
        // Relative to some task of the queue the sum is small, and a 64-bit division is enough.
        let base = queue.current.or_else(|| self.forest.first(queue.root));
        let base = base.map_or(0, |task| self.tasks[task as usize].vruntime);
        let relative = sum - i128::from(weight) * i128::from(base);
        match i64::try_from(relative) {
            Ok(relative) => base + relative.div_euclid(weight as i64),
            Err(_) => base + relative.div_euclid(i128::from(weight)) as i64,
        }
    }

    /// EEVDF: the virtual time that the queue owes a task, within bounds (docs/theory/scheduler.md 7.4).
    pub(super) fn lag(&self, mean: i64, task: u32) -> i64 {
        let entry = &self.tasks[task as usize];
        let bound = ((entry.slice.max(self.base_slice) + self.tick) * NICE_0 / entry.weight) as i64;
        (mean - entry.vruntime).clamp(-bound, bound)
    }

    /// Gives a task that joins a CPU's queue its virtual time.
    pub(super) fn place(&mut self, cpu: u16, task: u32, why: Why, now: Ps) {
        let from = std::mem::replace(&mut self.tasks[task as usize].cpu, cpu);
        if from != cpu {
            self.tasks[task as usize].recent = from;
            self.carry_load(from, cpu, task, now);
        }
        match self.rules.queueing {
            Queueing::Cfs { credit_shift, .. } => self.place_cfs(from, cpu, task, why, credit_shift),
            Queueing::Eevdf(_) => self.place_eevdf(cpu, task, why),
        }
    }

    /// docs/theory/scheduler.md 3.4.
    fn place_cfs(&mut self, from: u16, cpu: u16, task: u32, why: Why, credit_shift: u32) {
        self.raise_floor(cpu);
        let floor = self.queues[usize::from(cpu)].floor;
        let old_floor = self.queues[usize::from(from)].floor;
        let Fair { latency, .. } = *self;
        let weight = self.tasks[task as usize].weight;
        let slice = self.slice(cpu, weight, true) * NICE_0 / weight;
        let entry = &mut self.tasks[task as usize];
        match why {
            Why::Fork { .. } => entry.vruntime = floor + slice as i64,
            Why::Exec | Why::Move => entry.vruntime += floor - old_floor,
            Why::Wake { .. } => {
                let own = entry.vruntime + floor - old_floor;
                entry.vruntime = own.max(floor - (latency >> credit_shift) as i64);
            }
        }
    }

    /// docs/theory/scheduler.md 7.4.
    fn place_eevdf(&mut self, cpu: u16, task: u32, why: Why) {
        let mean = self.mean(cpu);
        let queue = &self.queues[usize::from(cpu)];
        let running = queue.current.map_or(0, |current| self.tasks[current as usize].weight);
        let others = queue.tree_weight + running;
        let entry = &mut self.tasks[task as usize];
        let is_fork = matches!(why, Why::Fork { .. });
        let lag = if is_fork { 0 } else { entry.lag };
        let stretched = match others {
            0 => 0,
            others if lag != 0 => i128::from(lag) * i128::from(others + entry.weight) / i128::from(others),
            _ => 0,
        };
        entry.vruntime = mean - stretched as i64;
        let slice = if is_fork { entry.slice / 2 } else { entry.slice };
        entry.deadline = entry.vruntime + (slice * NICE_0 / entry.weight) as i64;
    }

    /// The task that should run on a CPU now: the running one or one of the tree.
    pub(super) fn choose(&self, cpu: u16) -> Option<u32> {
        match self.rules.queueing {
            Queueing::Cfs { .. } => self.choose_cfs(cpu),
            Queueing::Eevdf(_) => self.choose_eevdf(cpu, true),
        }
    }

    /// The task with the least virtual time, or a buddy that is not much behind (docs/theory/scheduler.md
    /// 3.5).
    fn choose_cfs(&self, cpu: u16) -> Option<u32> {
        let queue = &self.queues[usize::from(cpu)];
        let of = |task: u32| self.tasks[task as usize].vruntime;
        let first = self.forest.first(queue.root);
        // The running task goes back into the queue behind tasks with the same virtual time.
        let first = match (first, queue.current) {
            (Some(first), Some(current)) if of(current) < of(first) => current,
            (Some(first), _) => first,
            (None, current) => return current,
        };
        let near =
            |buddy: u32| buddy != NONE && !self.beyond_granularity(of(buddy) - of(first), buddy, first);
        Some([queue.next_buddy, queue.last_buddy].into_iter().find(|buddy| near(*buddy)).unwrap_or(first))
    }

    /// The eligible task with the earliest deadline; the running task while it is protected
    /// (docs/theory/scheduler.md 7.1, 7.3).
    pub(super) fn choose_eevdf(&self, cpu: u16, parity: bool) -> Option<u32> {
        let queue = &self.queues[usize::from(cpu)];
        match (queue.current, queue.queued) {
            (current, 0) => return current,
            (None, 1) => return self.forest.first(queue.root),
            _ => {}
        }
        let mean = self.mean(cpu);
        let current = queue.current.filter(|current| self.tasks[*current as usize].vruntime <= mean);
        if let Some(current) = current
            && parity
            && self.tasks[current as usize].vruntime < queue.protected_until
        {
            return Some(current);
        }
        match (self.forest.first_below(queue.root, mean), current) {
            (Some(best), Some(current)) => {
                let earlier = self.tasks[current as usize].deadline < self.tasks[best as usize].deadline;
                Some(if earlier { current } else { best })
            }
            (best, current) => best.or(current),
        }
    }

    /// A delayed sleeper was chosen: now it leaves the queue (docs/theory/scheduler.md 7.6).
    pub(super) fn end_delay(&mut self, cpu: u16, task: u32) {
        let mean = self.mean(cpu);
        let lag = self.lag(mean, task).min(0);
        self.remove(cpu, task);
        let entry = &mut self.tasks[task as usize];
        (entry.lag, entry.state) = (lag, State::Sleeping);
        let queue = &mut self.queues[usize::from(cpu)];
        if queue.queued == 0 && queue.current.is_none() {
            queue.floor = mean;
        }
    }

    /// A task begins to run.
    pub(super) fn start(&mut self, cpu: u16, task: u32, now: Ps) {
        self.forget_buddy(cpu, task);
        let shortest = self.forest.shortest_slice(self.queues[usize::from(cpu)].root);
        let entry = &mut self.tasks[task as usize];
        entry.charged_at = now;
        entry.ran_at_pick = entry.ran;
        if let Queueing::Eevdf(rules) = self.rules.queueing {
            self.queues[usize::from(cpu)].protected_until = protection(rules, entry, shortest);
        }
    }
}

/// Up to which virtual time a task that begins to run is protected (docs/theory/scheduler.md 7.3).
fn protection(rules: Eevdf, entry: &Task, shortest: Option<Ps>) -> i64 {
    match rules.parity {
        Parity::Deadline => entry.deadline,
        Parity::ShortestSlice => {
            let slice = shortest.map_or(entry.slice, |shortest| shortest.min(entry.slice));
            entry.deadline.min(entry.vruntime + (slice * NICE_0 / entry.weight) as i64)
        }
    }
}
