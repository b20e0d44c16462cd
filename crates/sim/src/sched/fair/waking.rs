//! Where a waking task is queued (docs/theory/scheduler.md 4).

use super::super::domains::{Bits, Kind, Level};
use super::super::policy::{Bound, Waking};
use super::super::words::{Chosen, MS, Ps, TaskId, Why};
use super::{Fair, State, approach};
use slablab_platform::CpuId;

/// The percentage by which the waker's CPU may be more loaded than the previous one, under 2.6.29.
const AFFINE_PERCENT: u64 = 112;

/// The imbalance percentage of a domain since 5.x; wake-ups take half of what is above 100.
const IMBALANCE_PERCENT: u64 = 117;

impl Fair {
    pub(in super::super) fn select_cpu(&mut self, TaskId(task): TaskId, why: Why, now: Ps) -> Chosen {
        let prev = self.tasks[task as usize].cpu;
        let (cpu, scanned) = match why {
            Why::Fork { from } => self.idlest(task, from.0),
            Why::Exec => self.idlest(task, prev),
            Why::Move => (prev, 0),
            Why::Wake { .. } if self.tasks[task as usize].state == State::Delayed => (prev, 0),
            Why::Wake { from, sync } => self.select_for_waking(task, prev, from.0, sync, now),
        };
        let affinity = self.tasks[task as usize].affinity;
        let cpu = if self.affinities.allow(affinity, cpu) { cpu } else { self.nearest_allowed(task, prev) };
        Chosen { cpu: CpuId(cpu), scanned }
    }

    fn select_for_waking(&mut self, task: u32, prev: u16, this: u16, sync: bool, now: Ps) -> (u16, u32) {
        let wide = self.record_wakee(this, task, now);
        let affine = this != prev && self.shares_affine_domain(task, this, prev);
        match self.rules.waking {
            Waking::ByLoad if affine && self.load_allows(task, this, prev, sync) => (this, 0),
            Waking::ByLoad => self.wake_idle(task, prev),
            Waking::IdleSibling { prefers_idle_prev, .. } => {
                let target = match affine && !wide {
                    true => self.wake_affine(task, this, prev, sync, prefers_idle_prev, now),
                    false => prev,
                };
                self.select_idle_sibling(task, this, prev, target)
            }
        }
    }

    /// Whether the two CPUs share a domain in which wake-ups may move a task to the waker's CPU.
    fn shares_affine_domain(&self, task: u32, this: u16, prev: u16) -> bool {
        let common = self.domains.common(this, prev);
        self.affinities.allow(self.tasks[task as usize].affinity, this)
            && common.is_some_and(|level| match level.kind {
                Kind::Nodes(_) if self.rules.waking == Waking::ByLoad => false,
                _ => self.places_tasks(level),
            })
    }

    /// Whether fork and exec choose among the CPUs of a domain (docs/theory/scheduler.md 6.1).
    pub(super) fn places_tasks(&self, level: &Level) -> bool {
        match level.kind {
            Kind::Nodes(distance) if self.rules.waking != Waking::ByLoad => {
                distance <= self.domains.reclaim_distance
            }
            _ => true,
        }
    }

    /// The first allowed CPU of the previous CPU's node, else of the machine.
    fn nearest_allowed(&self, task: u32, prev: u16) -> u16 {
        let affinity = self.tasks[task as usize].affinity;
        let allowed = |cpu: &u16| self.affinities.allow(affinity, *cpu);
        let node = self.domains.levels.iter().rfind(|level| !matches!(level.kind, Kind::Nodes(_)));
        let near = node.map(|level| &level.domains[usize::from(level.of[usize::from(prev)])].cpus);
        let found = near.and_then(|cpus| cpus.iter().copied().find(allowed));
        found.unwrap_or_else(|| self.affinities.any(affinity, prev))
    }

    /// 2.6.29: whether loads allow the waker's CPU (docs/theory/scheduler.md 4.1).
    fn load_allows(&self, task: u32, this: u16, prev: u16, sync: bool) -> bool {
        let queue = &self.queues[usize::from(this)];
        let wakee = &self.tasks[task as usize];
        let waker = queue.current.map(|current| &self.tasks[current as usize]);
        let short = |overlap: Ps| overlap <= self.rules.migration_cost;
        let sync = sync && short(wakee.overlap) && waker.is_none_or(|waker| short(waker.overlap));
        let leaves = waker.filter(|_| sync).map_or(0, |waker| waker.weight);
        let here = queue.load - leaves;
        let there = self.queues[usize::from(prev)].load;
        let each = queue.load / u64::from(queue.nr.max(1));
        let balanced = 100 * (here + wakee.weight) <= AFFINE_PERCENT * there;
        balanced || (here <= there && here + there <= each)
    }

    /// 2.6.29: the previous CPU or an idle SMT sibling of it (docs/theory/scheduler.md 4.1).
    fn wake_idle(&self, task: u32, prev: u16) -> (u16, u32) {
        if self.queues[usize::from(prev)].nr != 1 {
            return (prev, 1);
        }
        let siblings = self.idle.siblings(prev);
        (self.idle_sibling(task, prev).unwrap_or(prev), siblings.len() as u32)
    }

    /// Counts how often wakers change their wakee; whether the waker wakes so many tasks that they should not
    /// be pulled to its cache (docs/theory/scheduler.md 4.2).
    fn record_wakee(&mut self, this: u16, task: u32, now: Ps) -> bool {
        let Some(current) = self.queues[usize::from(this)].current else { return false };
        let waker = &mut self.tasks[current as usize];
        if now > waker.flips_halved_at + 1000 * MS {
            waker.flips /= 2;
            waker.flips_halved_at = now;
        }
        if waker.last_wakee != task {
            waker.last_wakee = task;
            waker.flips += 1;
        }
        let flips = (u64::from(waker.flips), u64::from(self.tasks[task as usize].flips));
        let (most, least) = (flips.0.max(flips.1), flips.0.min(flips.1));
        let size = self.idle.caches[usize::from(self.idle.cache[usize::from(this)])].cpus.len() as u64;
        least >= size && most >= least * size
    }

    /// The waker's CPU or the previous one (docs/theory/scheduler.md 4.3).
    fn wake_affine(&mut self, task: u32, this: u16, prev: u16, sync: bool, idle_prev: bool, now: Ps) -> u16 {
        if self.idle.is_idle(this) && self.idle.share_cache(this, prev) {
            return if self.idle.is_idle(prev) { prev } else { this };
        }
        if sync && self.queues[usize::from(this)].nr == 1 {
            return this;
        }
        if idle_prev && self.idle.is_idle(prev) {
            return prev;
        }
        let [mut here, there] = [this, prev].map(|cpu| {
            let queue = &mut self.queues[usize::from(cpu)];
            queue.load_average.advance(now, queue.load);
            queue.load_average.value()
        });
        if let Some(current) = self.queues[usize::from(this)].current.filter(|_| sync) {
            let waker = &mut self.tasks[current as usize];
            waker.load.advance(now, waker.weight);
            if waker.load.value() > here {
                return this;
            }
            here -= waker.load.value();
        }
        let wakee = &mut self.tasks[task as usize];
        wakee.load.advance(now, 0);
        let load = wakee.load.value();
        let allowed = there.saturating_sub(load) * (100 + (IMBALANCE_PERCENT - 100) / 2);
        if (here + load) * 100 < allowed { this } else { prev }
    }

    /// An idle CPU under the target's last-level cache, else the target (docs/theory/scheduler.md 4.4).
    fn select_idle_sibling(&mut self, task: u32, this: u16, prev: u16, target: u16) -> (u16, u32) {
        let Waking::IdleSibling { one_pass, bound, scan_cost, .. } = self.rules.waking else {
            return (target, 0);
        };
        let entry = &self.tasks[task as usize];
        let (affinity, recent) = (entry.affinity, entry.recent);
        let good = |cpu: u16| {
            self.idle.share_cache(cpu, target)
                && self.idle.is_idle(cpu)
                && self.affinities.allow(affinity, cpu)
        };
        for (looked, cpu) in (1..).zip([target, prev, recent]) {
            if good(cpu) {
                return (cpu, looked);
            }
        }
        let mut looked = 3;
        let at = usize::from(self.idle.cache[usize::from(target)]);
        let cache = &self.idle.caches[at];
        let size = cache.cpus.len() as u32;
        let siblings = self.idle.has_siblings(target);
        let hint = siblings && cache.hint;
        if hint {
            let (core, scanned) = self.search(task, target, &cache.idle_cores, size);
            looked += scanned;
            if let Some(core) = core {
                return (core, looked);
            }
        } else if one_pass && siblings && self.idle.share_cache(prev, target) {
            looked += self.idle.siblings(prev).len() as u32;
            if let Some(sibling) = self.idle_sibling(task, prev) {
                return (sibling, looked);
            }
        }
        let limit = match bound {
            _ if hint && one_pass => size,
            Bound::IdleTime => self.limit_by_idle_time(this, at),
            Bound::Utilisation => cache.limit,
        };
        let (found, scanned) = self.search(task, target, &cache.idle, limit);
        let sibling = if one_pass { None } else { self.idle_sibling(task, target) };
        looked += if hint && one_pass { 0 } else { scanned };
        if hint {
            self.idle.caches[at].hint = false;
        }
        self.search_average[at] = approach(self.search_average[at], u64::from(scanned) * scan_cost);
        (found.or(sibling).unwrap_or(target), looked)
    }

    /// The first allowed CPU of `among`, from a CPU on and around, within `limit` CPUs of its cache; and how
    /// many CPUs were looked at.
    fn search(&self, task: u32, start: u16, among: &Bits, limit: u32) -> (Option<u16>, u32) {
        let affinity = self.tasks[task as usize].affinity;
        let cpus = &self.idle.caches[usize::from(self.idle.cache[usize::from(start)])].cpus;
        let start = usize::from(self.idle.place[usize::from(start)]);
        let limit = (limit as usize).min(cpus.len());
        let mut distance = 0;
        while distance < limit {
            let from = (start + distance) % cpus.len();
            let turn = if start + distance < cpus.len() { cpus.len() } else { start };
            match among.next(from).filter(|place| *place < turn) {
                Some(place) => {
                    distance = (place + cpus.len() - start) % cpus.len();
                    if distance < limit && self.affinities.allow(affinity, cpus[place]) {
                        return (Some(cpus[place]), distance as u32 + 1);
                    }
                    distance += 1;
                }
                None if turn == start => break,
                None => distance = cpus.len() - start,
            }
        }
        (None, limit as u32)
    }

    /// An idle and allowed CPU of a CPU's core.
    fn idle_sibling(&self, task: u32, cpu: u16) -> Option<u16> {
        let affinity = self.tasks[task as usize].affinity;
        let good = |cpu: &u16| self.idle.is_idle(*cpu) && self.affinities.allow(affinity, *cpu);
        self.idle.siblings(cpu).iter().copied().find(good)
    }

    /// SIS_PROP (docs/theory/scheduler.md 4.5).
    fn limit_by_idle_time(&self, this: u16, cache: usize) -> u32 {
        let span =
            self.idle.caches[cache].cpus.len() as u64 * (self.queues[usize::from(this)].idle_average / 512);
        let cost = self.search_average[cache] + 1;
        if span > 4 * cost { u32::try_from(span / cost).unwrap_or(u32::MAX) } else { 4 }
    }

    /// SIS_UTIL: the limit from the utilisation of a cache's CPUs (docs/theory/scheduler.md 4.5).
    pub(super) fn update_limit(&mut self, cpu: u16, now: Ps) {
        let cache = usize::from(self.idle.cache[usize::from(cpu)]);
        let mut busy = 0;
        for at in 0..self.idle.caches[cache].cpus.len() {
            let cpu = self.idle.caches[cache].cpus[at];
            let input = if self.idle.is_idle(cpu) { 0 } else { super::NICE_0 };
            let average = &mut self.queues[usize::from(cpu)].busy_average;
            average.advance(now, input);
            busy += average.value();
        }
        let size = self.idle.caches[cache].cpus.len() as u64;
        self.idle.caches[cache].limit = limit_by_utilisation(size, busy / size) as u32;
    }
}

/// `size * (1 - (1.17 * x)^2)`, for a utilisation x of 0 to 1024 / 1024.
pub(super) fn limit_by_utilisation(size: u64, x: u64) -> u64 {
    let square = x * x * 117 * 117 / (1024 * 10_000);
    size * 1024_u64.saturating_sub(square) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_caches_are_searched_less() {
        // CPUs, busy CPUs of 1024: 0 from 85.5 % on.
        let limits = [0, 256, 512, 768, 870, 876, 1024].map(|busy| limit_by_utilisation(64, busy));
        assert_eq!(limits, [64, 58, 42, 14, 0, 0, 0]);
        assert_eq!(limit_by_utilisation(224, 512), 147);
    }
}
