//! Where a forked task, or one that executes a new program, runs (docs/theory/scheduler.md 5).

use super::super::domains::Kind;
use super::{Fair, NICE_0, Total};

/// A group must be this much less loaded than the local one, in percent.
const PERCENT: u64 = 112;

impl Fair {
    /// From the widest domain down: the best group, and the best CPU of that group. Also returns how many
    /// groups and CPUs were looked at.
    pub(super) fn idlest(&self, task: u32, from: u16) -> (u16, u32) {
        let (mut cpu, mut looked) = (from, 0);
        for at in (0..self.domains.levels.len()).rev() {
            let level = &self.domains.levels[at];
            if !self.places_tasks(level) {
                continue;
            }
            let domain = &level.domains[usize::from(level.of[usize::from(cpu)])];
            looked += domain.groups.len() as u32;
            if let Some(group) = self.better_group(task, at, cpu, &domain.groups) {
                let cpus = self.domains.group_cpus(at, group);
                looked += cpus.len() as u32;
                cpu = self.idlest_of(task, cpus).unwrap_or(cpu);
            }
        }
        (cpu, looked)
    }

    /// The sums over a group of a level.
    pub(super) fn total(&self, level: usize, group: u16) -> Total {
        match level.checked_sub(1) {
            Some(below) => self.totals[below][usize::from(group)],
            None => {
                let queue = &self.queues[usize::from(group)];
                let (idle, crowded) = (self.idle.is_idle(group).into(), (queue.nr > 1).into());
                Total { nr: queue.nr, load: queue.load, idle, crowded }
            }
        }
    }

    /// A group that is better than the one of `cpu`.
    fn better_group(&self, task: u32, level: usize, cpu: u16, groups: &[u16]) -> Option<u16> {
        let own = self.domains.group_of(level, cpu);
        let affinity = self.tasks[task as usize].affinity;
        let size = |group: u16| self.domains.group_cpus(level, group).len() as u64;
        let load = |group: u16| self.total(level, group).load * NICE_0 / size(group);
        let allowed = |group: u16| {
            self.domains.group_cpus(level, group).iter().any(|cpu| self.affinities.allow(affinity, *cpu))
        };
        let others = groups.iter().copied().filter(|group| *group != own && allowed(*group));
        if !allowed(own) {
            return others.min_by_key(|group| load(*group));
        }
        let local = self.total(level, own);
        if self.rules.counts_idle && u64::from(local.nr) < size(own) {
            let near = matches!(self.domains.levels[level].kind, Kind::Nodes(_));
            if near && u64::from(local.nr) < size(own) / 8 {
                return None;
            }
            let best =
                others.max_by_key(|group| (self.total(level, *group).idle, std::cmp::Reverse(*group)))?;
            return (self.total(level, best).idle > local.idle).then_some(best);
        }
        let best = others.min_by_key(|group| load(*group))?;
        (100 * load(own) > PERCENT * load(best)).then_some(best)
    }

    /// The least loaded allowed CPU of a group; the one that became idle last, if the release counts idle
    /// CPUs.
    fn idlest_of(&self, task: u32, cpus: &[u16]) -> Option<u16> {
        let affinity = self.tasks[task as usize].affinity;
        let allowed = cpus.iter().copied().filter(|cpu| self.affinities.allow(affinity, *cpu));
        let queue = |cpu: u16| &self.queues[usize::from(cpu)];
        let latest = |cpu: u16| match self.rules.counts_idle && self.idle.is_idle(cpu) {
            true => u64::MAX - queue(cpu).idle_since,
            false => u64::MAX,
        };
        allowed.min_by_key(|cpu| (queue(*cpu).load, latest(*cpu)))
    }
}
