//! What differs between releases: constants and rules, each with its section of docs/theory/scheduler.md,
//! where its source stands.

use super::words::{MS, Ps, US};
use std::fmt;

/// The scheduler of one release, as values that can be changed one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The release that the rules describe: the newest described one that is not newer than the wanted one.
    pub describes: (u16, u16, u16),
    /// The time between two timer interrupts (docs/theory/scheduler.md 1.3).
    pub tick: Ps,
    /// The rules.
    pub rules: Rules,
}

/// The rules of a policy's family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// 2.4: one queue, goodness.
    Goodness(GoodnessRules),
    /// CFS and EEVDF: a queue for each CPU, ordered by virtual time.
    Fair(FairRules),
}

/// 2.4 (docs/theory/scheduler.md 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodnessRules {
    /// Added for the CPU on which the task ran last.
    pub same_cpu: i64,
    /// Added for the address space that the CPU runs in.
    pub same_mm: i64,
}

/// CFS and EEVDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairRules {
    /// CFS: constants of slice and placement. EEVDF uses `scaling` alone.
    pub latency: Ps,
    /// The least slice where many tasks share a CPU (CFS).
    pub min_granularity: Ps,
    /// How far behind in virtual time the waking task must be to preempt (CFS).
    pub wakeup_granularity: Ps,
    /// How constants grow with the number of CPUs.
    pub scaling: Scaling,
    /// A task that ran within this time is hot; also the bound of what counts as a short overlap.
    pub migration_cost: Ps,
    /// The queue's order.
    pub queueing: Queueing,
    /// Where a waking task is queued.
    pub waking: Waking,
    /// A wake-up for a CPU with another last-level cache is queued by an interrupt there.
    pub queue_by_interrupt: bool,
    /// A busy CPU balances this many times more rarely than an idle one: within a node, between nodes.
    pub busy_factor: (u32, u32),
    /// A domain's interval of balancing is 1 ms for each of its CPUs; else it is by the level's kind.
    pub interval_by_size: bool,
    /// Fork, exec and balance compare idle CPUs before loads.
    pub counts_idle: bool,
}

/// How constants grow with the number of CPUs (docs/theory/scheduler.md 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// 1 + floor(log2 CPUs); latency and minimum granularity at most 200 ms.
    AllCpus,
    /// 1 + floor(log2 min(CPUs, 8)).
    EightCpus,
}

impl Scaling {
    /// The factor for a machine.
    pub fn factor(self, cpus: usize) -> u64 {
        let counted = match self {
            Scaling::AllCpus => cpus,
            Scaling::EightCpus => cpus.min(8),
        };
        1 + u64::from(counted.max(1).ilog2())
    }

    /// A scaled latency or minimum granularity.
    pub fn latency(self, base: Ps, cpus: usize) -> Ps {
        let scaled = base * self.factor(cpus);
        if self == Scaling::AllCpus { scaled.min(200 * MS) } else { scaled }
    }
}

/// The order of a CPU's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// By virtual run time (docs/theory/scheduler.md 3).
    Cfs {
        /// Up to so many tasks share one latency; above, each gets the minimum granularity.
        nr_latency: u64,
        /// A sleeper's credit is the latency shifted right by this.
        credit_shift: u32,
        /// A forked child runs before its parent on the same CPU.
        child_first: bool,
        /// A waking task becomes the "next" buddy, and the running one the "last" buddy, at each wake-up.
        /// Else only the preempted task becomes "last" buddy, on a queue with `nr_latency` tasks.
        eager_buddies: bool,
        /// By whose weight the wake-up granularity is scaled.
        granularity: Granularity,
        /// A tick also preempts a task that is a whole slice ahead of the first queued one.
        tick_by_lead: bool,
    },
    /// By deadline among the eligible tasks (docs/theory/scheduler.md 7).
    Eevdf(Eevdf),
}

/// By whose weight the wake-up granularity is scaled (docs/theory/scheduler.md 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// The running task's, if it is heavier than nice 0.
    Running,
    /// The waking task's.
    Waking,
}

/// EEVDF's own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eevdf {
    /// The slice before scaling.
    pub base_slice: Ps,
    /// How long the running task is protected.
    pub parity: Parity,
    /// A waking task with a shorter slice preempts a protected one.
    pub preempt_short: bool,
    /// A sleeper with negative lag stays queued.
    pub delayed_dequeue: bool,
}

/// How long the running task is protected (docs/theory/scheduler.md 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Until its deadline.
    Deadline,
    /// Until it used the shortest slice in the queue.
    ShortestSlice,
}

/// Where a waking task is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// The waker's CPU if loads allow, else the previous one or an idle SMT sibling of it
    /// (docs/theory/scheduler.md 4.1).
    ByLoad,
    /// An idle CPU near the waker's or the previous one (docs/theory/scheduler.md 4.2 to 4.5).
    IdleSibling {
        /// An idle previous CPU is taken before loads are compared.
        prefers_idle_prev: bool,
        /// One pass looks for idle cores and idle CPUs, instead of three passes.
        one_pass: bool,
        /// How many CPUs the search looks at.
        bound: Bound,
        /// What looking at one CPU costs, for [`Bound::IdleTime`].
        scan_cost: Ps,
    },
}

/// How many CPUs the search for an idle one looks at (docs/theory/scheduler.md 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// SIS_PROP: from the CPU's average idle time and the cost of searches.
    IdleTime,
    /// SIS_UTIL: from the utilisation of the last-level cache's CPUs.
    Utilisation,
}

/// A release whose scheduler is not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotBuilt(pub (u16, u16, u16));

impl fmt::Display for NotBuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.0;
        write!(f, "no scheduler for Linux {major}.{minor}.{patch}: give 2.4, or 2.6.23 and later")
    }
}

impl std::error::Error for NotBuilt {}

impl Policy {
    /// The scheduler of a release.
    ///
    /// # Errors
    ///
    /// [`NotBuilt`] for releases before 2.4 and for the O(1) scheduler of 2.5 to 2.6.22.
    pub fn for_release(release: (u16, u16, u16)) -> Result<Policy, NotBuilt> {
        if !(((2, 4, 0)..(2, 5, 0)).contains(&release) || release >= (2, 6, 23)) {
            return Err(NotBuilt(release));
        }
        if release < (2, 5, 0) {
            let rules = Rules::Goodness(GoodnessRules { same_cpu: 15, same_mm: 1 });
            return Ok(Policy { describes: (2, 4, 0), tick: 10 * MS, rules });
        }
        let mut policy = Policy { describes: (2, 6, 29), tick: 4 * MS, rules: Rules::Fair(CFS_2_6_29) };
        for (since, change) in CHANGES.iter().filter(|(since, _)| *since <= release) {
            policy.describes = *since;
            if let Rules::Fair(rules) = &mut policy.rules {
                change(rules);
            }
        }
        Ok(policy)
    }
}

/// CFS as of 2.6.29.
const CFS_2_6_29: FairRules = FairRules {
    latency: 20 * MS,
    min_granularity: 4 * MS,
    wakeup_granularity: 5 * MS,
    scaling: Scaling::AllCpus,
    migration_cost: MS / 2,
    queueing: Queueing::Cfs {
        nr_latency: 5,
        credit_shift: 0,
        child_first: true,
        eager_buddies: true,
        granularity: Granularity::Running,
        tick_by_lead: false,
    },
    waking: Waking::ByLoad,
    queue_by_interrupt: false,
    busy_factor: (64, 32),
    interval_by_size: false,
    counts_idle: false,
};

/// Applies what a release changed.
type Change = fn(&mut FairRules);

/// What changed since 2.6.29, by release (docs/theory/scheduler.md 1.2).
const CHANGES: &[((u16, u16, u16), Change)] = &[
    ((2, 6, 32), |rules| {
        (rules.latency, rules.min_granularity, rules.wakeup_granularity) = (5 * MS, MS, MS);
        rules.queueing = Queueing::Cfs {
            nr_latency: 5,
            credit_shift: 1,
            child_first: false,
            eager_buddies: false,
            granularity: Granularity::Waking,
            tick_by_lead: true,
        };
        rules.waking = Waking::IdleSibling {
            prefers_idle_prev: false,
            one_pass: false,
            bound: Bound::IdleTime,
            scan_cost: US / 20,
        };
    }),
    ((2, 6, 35), |rules| {
        (rules.latency, rules.min_granularity, rules.wakeup_granularity) = (6 * MS, 3 * MS / 4, MS);
        rules.scaling = Scaling::EightCpus;
        (rules.busy_factor, rules.interval_by_size) = ((32, 32), true);
        if let Queueing::Cfs { nr_latency, .. } = &mut rules.queueing {
            *nr_latency = 8;
        }
    }),
    ((3, 0, 0), |rules| rules.queue_by_interrupt = true),
    ((5, 5, 0), |rules| rules.counts_idle = true),
    ((5, 11, 0), |rules| {
        rules.busy_factor = (16, 16);
        if let Waking::IdleSibling { prefers_idle_prev, .. } = &mut rules.waking {
            *prefers_idle_prev = true;
        }
    }),
    ((5, 12, 0), |rules| {
        if let Waking::IdleSibling { one_pass, .. } = &mut rules.waking {
            *one_pass = true;
        }
    }),
    ((6, 0, 0), |rules| {
        if let Waking::IdleSibling { bound, .. } = &mut rules.waking {
            *bound = Bound::Utilisation;
        }
    }),
    ((6, 6, 0), |rules| {
        rules.queueing = Queueing::Eevdf(Eevdf {
            base_slice: 3 * MS / 4,
            parity: Parity::Deadline,
            preempt_short: false,
            delayed_dequeue: false,
        });
    }),
    ((6, 12, 0), |rules| {
        if let Queueing::Eevdf(eevdf) = &mut rules.queueing {
            (eevdf.preempt_short, eevdf.delayed_dequeue) = (true, true);
        }
    }),
    ((6, 15, 0), |rules| {
        if let Queueing::Eevdf(eevdf) = &mut rules.queueing {
            eevdf.base_slice = 7 * MS / 10;
        }
    }),
    ((6, 17, 0), |rules| {
        if let Queueing::Eevdf(eevdf) = &mut rules.queueing {
            eevdf.parity = Parity::ShortestSlice;
        }
    }),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn fair(release: (u16, u16, u16)) -> FairRules {
        match Policy::for_release(release).map(|policy| policy.rules) {
            Ok(Rules::Fair(rules)) => rules,
            other => panic!("{release:?}: {other:?}"),
        }
    }

    /// Latency, minimum and wake-up granularity in microseconds.
    #[track_caller]
    fn check(release: (u16, u16, u16), cpus: usize, expected: [u64; 3]) {
        let rules = fair(release);
        let scaled = [
            rules.scaling.latency(rules.latency, cpus),
            rules.scaling.latency(rules.min_granularity, cpus),
            rules.wakeup_granularity * rules.scaling.factor(cpus),
        ];
        assert_eq!(scaled.map(|ps| ps / US), expected);
    }

    #[test]
    fn constants_grow_with_the_cpus_of_the_release() {
        check((2, 6, 29), 1, [20_000, 4_000, 5_000]);
        check((2, 6, 29), 8, [80_000, 16_000, 20_000]);
        check((2, 6, 29), 16, [100_000, 20_000, 25_000]);
        check((2, 6, 29), 1024, [200_000, 44_000, 55_000]);
        check((2, 6, 32), 16, [25_000, 5_000, 5_000]);
        check((5, 10, 0), 2, [12_000, 1_500, 2_000]);
        check((5, 10, 0), 8, [24_000, 3_000, 4_000]);
        check((6, 5, 0), 224, [24_000, 3_000, 4_000]);
    }

    #[test]
    fn a_release_gets_the_newest_described_one_before_it() {
        let described = |release| Policy::for_release(release).map(|policy| policy.describes);
        assert_eq!(described((2, 4, 20)), Ok((2, 4, 0)));
        assert_eq!(described((2, 6, 31)), Ok((2, 6, 29)));
        assert_eq!(described((5, 4, 0)), Ok((3, 0, 0)));
        assert_eq!(described((6, 5, 13)), Ok((6, 0, 0)));
        assert_eq!(described((7, 1, 0)), Ok((6, 17, 0)));
        for missing in [(2, 2, 0), (2, 5, 0), (2, 6, 22)] {
            assert_eq!(described(missing), Err(NotBuilt(missing)));
        }
    }
}
