//! Sums and averages that follow each task that comes or goes: loads, idle CPUs, decayed loads.

use super::super::words::Ps;
use super::{Fair, NICE_0, approach};

impl Fair {
    /// A CPU found no task to run.
    pub(super) fn become_idle(&mut self, cpu: u16, now: Ps) {
        if self.idle.is_idle(cpu) {
            return;
        }
        self.queues[usize::from(cpu)].busy_average.advance(now, NICE_0);
        self.queues[usize::from(cpu)].idle_since = now;
        self.set_idle(cpu, true);
    }

    /// Marks a CPU that begins or ceases to have two tasks.
    fn set_crowded(&mut self, cpu: u16, crowded: bool) {
        self.crowded.set(cpu.into(), crowded);
        for (level, totals) in self.domains.levels.iter().zip(&mut self.totals) {
            let total = &mut totals[usize::from(level.of[usize::from(cpu)])];
            total.crowded = if crowded { total.crowded + 1 } else { total.crowded - 1 };
        }
    }

    /// Marks a CPU idle or busy, in its cache's set and in the sums of its domains.
    fn set_idle(&mut self, cpu: u16, idle: bool) {
        self.idle.set(cpu, idle);
        for (level, totals) in self.domains.levels.iter().zip(&mut self.totals) {
            let total = &mut totals[usize::from(level.of[usize::from(cpu)])];
            total.idle = if idle { total.idle + 1 } else { total.idle - 1 };
        }
    }

    /// Counts a task that begins or ceases to be able to run on a CPU.
    pub(super) fn count(&mut self, cpu: u16, task: u32, comes: bool, now: Ps) {
        let queue = &mut self.queues[usize::from(cpu)];
        let entry = &mut self.tasks[task as usize];
        entry.load.advance(now, if comes { 0 } else { entry.weight });
        queue.load_average.advance(now, queue.load);
        let change = |nr: &mut u32, load: &mut u64| {
            if comes {
                (*nr, *load) = (*nr + 1, *load + entry.weight);
            } else {
                (*nr, *load) = (*nr - 1, *load - entry.weight);
            }
        };
        change(&mut queue.nr, &mut queue.load);
        let nr = queue.nr;
        for (level, totals) in self.domains.levels.iter().zip(&mut self.totals) {
            let total = &mut totals[usize::from(level.of[usize::from(cpu)])];
            change(&mut total.nr, &mut total.load);
        }
        if nr == 2 - u32::from(!comes) {
            self.set_crowded(cpu, comes);
        }
        if comes && nr == 1 && self.idle.is_idle(cpu) {
            let queue = &mut self.queues[usize::from(cpu)];
            queue.busy_average.advance(now, 0);
            let idle = now.saturating_sub(queue.idle_since);
            // A CPU that pulls a task as soon as it has none was not idle.
            if idle > 0 {
                queue.idle_average = approach(queue.idle_average, idle).min(2 * self.rules.migration_cost);
            }
            self.set_idle(cpu, false);
        }
    }

    /// A task that changes its CPU takes its part of the decayed load with it.
    pub(super) fn carry_load(&mut self, from: u16, cpu: u16, task: u32, now: Ps) {
        let entry = &mut self.tasks[task as usize];
        entry.load.advance(now, 0);
        for (cpu, comes) in [(from, false), (cpu, true)] {
            let queue = &mut self.queues[usize::from(cpu)];
            queue.load_average.advance(now, queue.load);
            if comes {
                queue.load_average.attach(&entry.load);
            } else {
                queue.load_average.detach(&entry.load);
            }
        }
    }
}
