//! What a CPU pulls from others (docs/theory/scheduler.md 6).

use super::super::domains::{Domains, Kind};
use super::super::policy::{FairRules, Waking};
use super::super::words::{Balance, Idle, MS, Move, Ps, TaskId, Why};
use super::{Fair, NICE_0, State};
use slablab_platform::CpuId;

/// Tasks of a queue that one balance looks at.
const LOOKS: usize = 32;

/// When a CPU balances a domain.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    next: Ps,
    interval: Ps,
    least: Ps,
    most: Ps,
    busy_factor: u64,
    /// Balances in a row that found an imbalance and moved no task.
    failed: u32,
}

/// The first turns, by CPU and level (docs/theory/scheduler.md 6.2).
pub(super) fn turns(domains: &Domains, rules: &FairRules) -> Vec<Turn> {
    let mut turns = Vec::new();
    for cpu in 0..domains.cpus {
        for level in &domains.levels {
            let size = level.domains[usize::from(level.of[cpu])].cpus.len() as u64;
            let between = matches!(level.kind, Kind::Nodes(_));
            let (least, most) = match level.kind {
                _ if rules.interval_by_size => (size, 2 * size),
                Kind::Core => (1, 2),
                Kind::Llc | Kind::Node => (1, 4),
                Kind::Nodes(_) => (8, 32),
            };
            let factor = if between { rules.busy_factor.1 } else { rules.busy_factor.0 };
            let (least, most, busy_factor) = (least * MS, most * MS, factor.into());
            turns.push(Turn { next: least, interval: least, least, most, busy_factor, failed: 0 });
        }
    }
    turns
}

/// What to take from the busiest group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Load(u64),
    Tasks(u32),
}

impl Fair {
    pub(in super::super) fn balance(&mut self, CpuId(cpu): CpuId, idle: Idle, now: Ps) -> Balance {
        self.moves.clear();
        self.charge(cpu, now);
        let mut balance = Balance::default();
        // Without a CPU that has two tasks there is nothing to pull, and most newly idle CPUs look no
        // further.
        if idle == Idle::Newly && (self.crowded.is_empty() || self.idles_too_shortly(cpu)) {
            return balance;
        }
        for level in 0..self.domains.levels.len() {
            let between = matches!(self.domains.levels[level].kind, Kind::Nodes(_));
            let at = usize::from(cpu) * self.domains.levels.len() + level;
            if idle == Idle::Newly {
                if between && self.rules.waking == Waking::ByLoad {
                    break;
                }
                self.balance_domain(cpu, level, idle, now, &mut balance);
                if balance.moved > 0 {
                    break;
                }
                continue;
            }
            if now < self.turns[at].next {
                continue;
            }
            let found = self.balances_for_group(cpu, level)
                && self.balance_domain(cpu, level, idle, now, &mut balance);
            let turn = &mut self.turns[at];
            turn.interval = if found { turn.least } else { (2 * turn.interval).min(turn.most) };
            let factor = if idle == Idle::Busy { turn.busy_factor } else { 1 };
            turn.next = now + turn.interval * factor;
            if self.is_cache_level(level) {
                self.update_limit(cpu, now);
            }
        }
        balance
    }

    /// Whether the CPU's idle times are shorter than a migration is worth (docs/theory/scheduler.md 6.5).
    fn idles_too_shortly(&self, cpu: u16) -> bool {
        let by_load = self.rules.waking == Waking::ByLoad;
        !by_load && self.queues[usize::from(cpu)].idle_average < self.rules.migration_cost
    }

    /// Whether a level's domains are the last-level caches.
    fn is_cache_level(&self, level: usize) -> bool {
        let is_near = |kind| matches!(kind, Kind::Core | Kind::Llc);
        let above = self.domains.levels.get(level + 1);
        is_near(self.domains.levels[level].kind) && above.is_none_or(|above| !is_near(above.kind))
    }

    /// One CPU of a group balances for it: the first idle one, else the first.
    fn balances_for_group(&self, cpu: u16, level: usize) -> bool {
        let cpus = self.domains.group_cpus(level, self.domains.group_of(level, cpu));
        let first = cpus.iter().copied().find(|cpu| self.idle.is_idle(*cpu)).unwrap_or(cpus[0]);
        first == cpu
    }

    /// Pulls tasks from the busiest group of a CPU's domain. True if there was an imbalance.
    fn balance_domain(&mut self, cpu: u16, level: usize, idle: Idle, now: Ps, balance: &mut Balance) -> bool {
        let domain = self.domains.levels[level].of[usize::from(cpu)];
        balance.scanned += self.domains.levels[level].domains[usize::from(domain)].groups.len() as u32;
        let Some((group, amount)) = self.imbalance(cpu, level, idle) else { return false };
        balance.scanned += self.domains.group_cpus(level, group).len() as u32;
        let Some(from) = self.busiest_queue(level, group) else { return false };
        let at = usize::from(cpu) * self.domains.levels.len() + level;
        let force = self.turns[at].failed > 0;
        let before = balance.moved;
        let amount = if idle == Idle::Newly { Amount::Tasks(1) } else { amount };
        self.pull(from, cpu, amount, force, now, balance);
        let turn = &mut self.turns[at];
        if balance.moved > before {
            turn.failed = 0;
        } else if idle != Idle::Newly {
            turn.failed += 1;
        }
        true
    }

    /// The busiest group of a domain, and how much of it belongs here (docs/theory/scheduler.md 6.3).
    fn imbalance(&self, cpu: u16, level: usize, idle: Idle) -> Option<(u16, Amount)> {
        let kind = self.domains.levels[level].kind;
        let domain =
            &self.domains.levels[level].domains[usize::from(self.domains.levels[level].of[usize::from(cpu)])];
        let own = self.domains.group_of(level, cpu);
        let size = |group: u16| self.domains.group_cpus(level, group).len() as u64;
        let load = |group: u16| self.total(level, group).load * NICE_0 / size(group);
        let crowded = |group: &u16| *group != own && self.total(level, *group).crowded > 0;
        let others = domain.groups.iter().copied().filter(crowded);
        let busiest = others.max_by_key(|group| (load(*group), std::cmp::Reverse(*group)))?;
        let (local, theirs) = (self.total(level, own), self.total(level, busiest));
        if self.rules.counts_idle && u64::from(local.nr) < size(own) {
            let crowd = u64::from(theirs.nr) > size(busiest);
            let half = theirs.nr.saturating_sub(local.nr) / 2;
            let few = matches!(kind, Kind::Nodes(_)) && u64::from(local.nr) < size(own) / 8 && half <= 2;
            return match (crowd, half) {
                (true, half) => Some((busiest, Amount::Tasks(half.clamp(1, local.idle.max(1))))),
                (false, half) if half == 0 || few => None,
                (false, half) => Some((busiest, Amount::Tasks(half))),
            };
        }
        let percent = if kind == Kind::Core { 110 } else { 125 };
        let percent = if self.rules.counts_idle && kind != Kind::Core { 117 } else { percent };
        let (here, there) = (load(own), load(busiest));
        let cpus = domain.cpus.len() as u64;
        let mean =
            domain.groups.iter().map(|group| self.total(level, *group).load).sum::<u64>() * NICE_0 / cpus;
        if here >= there || here >= mean || 100 * there <= percent * here {
            return None;
        }
        // The busiest group may be below the mean: groups without a waiting task are not looked at.
        let excess = there.saturating_sub(mean) * size(busiest);
        let amount = excess.min((mean - here) * size(own)) / NICE_0;
        let each = theirs.load / u64::from(theirs.nr);
        // Less than one task: one moves if the groups then differ less than before.
        let one_helps = (there - here) / NICE_0 >= each / size(own).min(size(busiest));
        match amount < each {
            true if one_helps || idle == Idle::Newly => Some((busiest, Amount::Tasks(1))),
            true => None,
            false => Some((busiest, Amount::Load(amount))),
        }
    }

    /// The CPU of a group with the most load among those with two tasks or more.
    fn busiest_queue(&self, level: usize, group: u16) -> Option<u16> {
        let (mut from, mut best) = (0, None);
        while let Some(cpu) = self.crowded.next(from) {
            from = cpu + 1;
            let load = self.queues[cpu].load;
            if self.domains.group_of(level, cpu as u16) == group && best.is_none_or(|(most, _)| load > most) {
                best = Some((load, cpu as u16));
            }
        }
        best.map(|(_, cpu)| cpu)
    }

    /// Moves queued tasks from one CPU to another.
    fn pull(&mut self, from: u16, to: u16, amount: Amount, force: bool, now: Ps, balance: &mut Balance) {
        self.charge(from, now);
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        self.forest.list(self.queues[usize::from(from)].root, LOOKS, &mut found);
        let mut left = amount;
        for task in &found {
            balance.scanned += 1;
            let nothing = matches!(left, Amount::Load(0) | Amount::Tasks(0));
            if nothing || self.queues[usize::from(from)].nr < 2 {
                break;
            }
            let entry = &self.tasks[*task as usize];
            let weight = entry.weight;
            // A task moves if half of it is wanted: else a load of less than one task would never move.
            let fits = !matches!(left, Amount::Load(load) if weight / 2 > load);
            let movable = entry.state == State::Queued && self.affinities.allow(entry.affinity, to);
            if !fits || !movable || (!force && self.is_hot(from, to, *task, now)) {
                continue;
            }
            balance.preempts |= self.carry(from, to, *task, now);
            balance.moved += 1;
            left = match left {
                Amount::Load(load) => Amount::Load(load.saturating_sub(weight)),
                Amount::Tasks(tasks) => Amount::Tasks(tasks - 1),
            };
        }
        self.scratch = found;
    }

    /// Whether a task's data is probably still in its CPU's cache (docs/theory/scheduler.md 6.4).
    fn is_hot(&self, from: u16, to: u16, task: u32, now: Ps) -> bool {
        let queue = &self.queues[usize::from(from)];
        let is_buddy = queue.next_buddy == task || queue.last_buddy == task;
        let siblings = self.rules.waking != Waking::ByLoad && self.idle.siblings(from).contains(&to);
        let ran = now.saturating_sub(self.tasks[task as usize].charged_at);
        is_buddy || (!siblings && self.tasks[task as usize].ran > 0 && ran < self.rules.migration_cost)
    }

    /// Moves one queued task. True if it preempts the task that runs on the new CPU.
    fn carry(&mut self, from: u16, to: u16, task: u32, now: Ps) -> bool {
        self.forget_buddy(from, task);
        if self.eevdf().is_some() {
            let mean = self.mean(from);
            self.tasks[task as usize].lag = self.lag(mean, task);
        }
        self.remove(from, task);
        self.count(from, task, false, now);
        self.place(to, task, Why::Move, now);
        self.insert(to, task);
        self.count(to, task, true, now);
        self.moves.push(Move { task: TaskId(task), from: CpuId(from) });
        let current = self.queues[usize::from(to)].current;
        current.is_some_and(|current| self.wakeup_preempts(to, task, current))
    }
}
