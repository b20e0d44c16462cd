//! The CPUs as the scheduler sees them: scheduling domains, and the set of idle CPUs of each last-level cache
//! (docs/theory/scheduler.md 6.1).

use super::words::Affinity;
use slablab_platform::CpuId;
use std::collections::BTreeMap;

/// A machine's CPUs: each vector has one element for each CPU, `distances` one row for each node.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The core of each CPU. CPUs with the same core, cache and node are SMT siblings.
    pub core: Vec<u16>,
    /// The last-level cache of each CPU.
    pub llc: Vec<u16>,
    /// The node of each CPU.
    pub node: Vec<u16>,
    /// The distance from each node to each other one: 10 from a node to itself.
    pub distances: Vec<Vec<u32>>,
    /// Nodes farther apart than this share no domain in which fork, exec and wake-ups choose a CPU
    /// (docs/theory/scheduler.md 6.1); 30, and 32 on machines of AMD's Zen.
    pub reclaim_distance: u32,
}

/// What the CPUs of a domain have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Core,
    Llc,
    Node,
    /// Nodes at this distance at most.
    Nodes(u32),
}

/// One level of domains: a partition of all CPUs. Each domain is a union of domains of the level below, which
/// are its groups.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) kind: Kind,
    /// The domain of each CPU.
    pub(super) of: Vec<u16>,
    pub(super) domains: Vec<Domain>,
}

#[derive(Debug)]
pub(super) struct Domain {
    /// In ascending order.
    pub(super) cpus: Vec<u16>,
    /// Domains of the level below; CPUs for the lowest level.
    pub(super) groups: Vec<u16>,
}

/// All levels from the lowest up, without levels that add nothing to the one below.
#[derive(Debug)]
pub(super) struct Domains {
    pub(super) levels: Vec<Level>,
    pub(super) cpus: usize,
    pub(super) reclaim_distance: u32,
    /// All CPUs: the groups of the lowest level are slices of it.
    singles: Vec<u16>,
}

impl Domains {
    pub(super) fn new(machine: &Machine) -> Domains {
        let cpus = machine.core.len();
        let lengths = [machine.llc.len(), machine.node.len()];
        assert!(lengths == [cpus; 2], "{cpus} CPUs in `core`, but {lengths:?} in `llc` and `node`");
        let nodes = machine.distances.len();
        let known = machine.node.iter().all(|node| usize::from(*node) < nodes);
        assert!(known, "`distances` has {nodes} rows: some CPU's node has none");
        let mut distances: Vec<u32> = machine.distances.iter().flatten().copied().collect();
        distances.sort_unstable();
        distances.dedup();
        let triple = |cpu: usize| [machine.node[cpu], machine.llc[cpu], machine.core[cpu]];
        let mut levels: Vec<Level> = Vec::new();
        let mut add = |kind, key: &dyn Fn(usize) -> [u16; 3]| {
            let below = levels.last().map(|level| level.of.as_slice());
            let level = level(kind, cpus, below, key);
            let before = levels.last().map_or(cpus, |level| level.domains.len());
            if level.domains.len() < before {
                levels.push(level);
            }
        };
        add(Kind::Core, &triple);
        add(Kind::Llc, &|cpu| [machine.node[cpu], machine.llc[cpu], 0]);
        add(Kind::Node, &|cpu| [machine.node[cpu], 0, 0]);
        for distance in distances.into_iter().filter(|distance| *distance > 10) {
            if let Some(clusters) = clusters(&machine.distances, distance) {
                add(Kind::Nodes(distance), &|cpu| [clusters[usize::from(machine.node[cpu])], 0, 0]);
            }
        }
        let singles = (0..cpus as u16).collect();
        Domains { levels, cpus, reclaim_distance: machine.reclaim_distance, singles }
    }

    /// The lowest level at which two CPUs share a domain.
    pub(super) fn common(&self, a: u16, b: u16) -> Option<&Level> {
        self.levels.iter().find(|level| level.of[usize::from(a)] == level.of[usize::from(b)])
    }

    /// The CPUs of a group of a level: of a domain of the level below, or one CPU.
    pub(super) fn group_cpus(&self, level: usize, group: u16) -> &[u16] {
        match level.checked_sub(1) {
            Some(below) => &self.levels[below].domains[usize::from(group)].cpus,
            None => std::slice::from_ref(&self.singles[usize::from(group)]),
        }
    }

    /// The group of a level that a CPU is in.
    pub(super) fn group_of(&self, level: usize, cpu: u16) -> u16 {
        level.checked_sub(1).map_or(cpu, |below| self.levels[below].of[usize::from(cpu)])
    }
}

/// The nodes by cluster, if "at this distance at most" divides them into clusters; else none.
fn clusters(distances: &[Vec<u32>], most: u32) -> Option<Vec<u16>> {
    let near = |a: usize| -> Vec<usize> {
        (0..distances.len()).filter(|b| distances[a][*b].max(distances[*b][a]) <= most).collect()
    };
    let all: Vec<Vec<usize>> = (0..distances.len()).map(near).collect();
    let agree = all.iter().all(|near| near.iter().all(|other| all[*other] == *near));
    agree.then(|| all.iter().map(|near| near[0] as u16).collect())
}

fn level(kind: Kind, cpus: usize, below: Option<&[u16]>, key: &dyn Fn(usize) -> [u16; 3]) -> Level {
    let mut numbers = BTreeMap::new();
    let mut domains: Vec<Domain> = Vec::new();
    let mut of = Vec::with_capacity(cpus);
    for cpu in 0..cpus {
        let number = *numbers.entry(key(cpu)).or_insert_with(|| {
            domains.push(Domain { cpus: Vec::new(), groups: Vec::new() });
            domains.len() - 1
        });
        let domain = &mut domains[number];
        domain.cpus.push(cpu as u16);
        let group = below.map_or(cpu as u16, |below| below[cpu]);
        if !domain.groups.contains(&group) {
            domain.groups.push(group);
        }
        of.push(number as u16);
    }
    Level { kind, of, domains }
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(count: usize) -> Bits {
        Bits(vec![0; count.div_ceil(64)])
    }

    pub(super) fn set(&mut self, at: usize, on: bool) {
        let bit = 1 << (at % 64);
        if on {
            self.0[at / 64] |= bit;
        } else {
            self.0[at / 64] &= !bit;
        }
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The first member at `from` or above.
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut index = from / 64;
        let mut word = self.0.get(index)? & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.0.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }
}

/// The CPUs that each task may run on: sets, by number. Set 0 is "all".
#[derive(Debug)]
pub(super) struct Affinities {
    sets: Vec<Option<Bits>>,
    cpus: usize,
}

impl Affinities {
    pub(super) fn new(cpus: usize) -> Affinities {
        Affinities { sets: vec![None], cpus }
    }

    pub(super) fn add(&mut self, cpus: &[CpuId]) -> Affinity {
        if cpus.is_empty() {
            return Affinity::default();
        }
        let mut bits = Bits::new(self.cpus);
        cpus.iter().for_each(|cpu| bits.set(usize::from(cpu.0), true));
        let same = self.sets.iter().position(|set| set.as_ref().is_some_and(|set| set.0 == bits.0));
        let number = same.unwrap_or_else(|| {
            self.sets.push(Some(bits));
            self.sets.len() - 1
        });
        Affinity(u16::try_from(number).expect("at most 65,535 sets of CPUs"))
    }

    pub(super) fn allow(&self, affinity: Affinity, cpu: u16) -> bool {
        self.sets[usize::from(affinity.0)].as_ref().is_none_or(|set| set.has(usize::from(cpu)))
    }

    /// The first allowed CPU at `from` or above, else the first allowed of all.
    pub(super) fn any(&self, affinity: Affinity, from: u16) -> u16 {
        let set = self.sets[usize::from(affinity.0)].as_ref();
        let found = set.and_then(|set| set.next(usize::from(from)).or_else(|| set.next(0)));
        found.map_or(from, |cpu| cpu as u16)
    }
}

/// The CPUs under one last-level cache, and which of them are idle. Bits are places in `cpus`.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) cpus: Vec<u16>,
    pub(super) idle: Bits,
    /// CPUs of cores whose CPUs are all idle.
    pub(super) idle_cores: Bits,
    /// The hint that a core may be idle: set when a core becomes idle, cleared by a search without success.
    pub(super) hint: bool,
    /// How many CPUs a search may look at (SIS_UTIL).
    pub(super) limit: u32,
}

/// The idle CPUs of the machine.
#[derive(Debug)]
pub(super) struct IdleSet {
    pub(super) caches: Vec<Cache>,
    /// The cache of each CPU, as a place in `caches`.
    pub(super) cache: Vec<u16>,
    /// The place of each CPU in its cache's list.
    pub(super) place: Vec<u16>,
    /// The siblings of each CPU, itself included, by core.
    pub(super) cores: Vec<Vec<u16>>,
    pub(super) core: Vec<u16>,
    idle_in_core: Vec<u16>,
}

impl IdleSet {
    /// All CPUs are idle.
    pub(super) fn new(machine: &Machine) -> IdleSet {
        let cpus = machine.core.len();
        let caches = level(Kind::Llc, cpus, None, &|cpu| [machine.node[cpu], machine.llc[cpu], 0]);
        let cores =
            level(Kind::Core, cpus, None, &|cpu| [machine.node[cpu], machine.llc[cpu], machine.core[cpu]]);
        let mut place = vec![0; cpus];
        let mut lists = Vec::new();
        for domain in caches.domains {
            domain.cpus.iter().enumerate().for_each(|(at, cpu)| place[usize::from(*cpu)] = at as u16);
            let count = domain.cpus.len();
            let limit = count as u32;
            let (idle, idle_cores) = (Bits::new(count), Bits::new(count));
            lists.push(Cache { cpus: domain.cpus, idle, idle_cores, hint: false, limit });
        }
        let idle_in_core = vec![0; cores.domains.len()];
        let siblings = cores.domains.into_iter().map(|domain| domain.cpus).collect();
        let (cache, core) = (caches.of, cores.of);
        let mut set = IdleSet { caches: lists, cache, place, cores: siblings, core, idle_in_core };
        (0..cpus).for_each(|cpu| set.set(cpu as u16, true));
        set
    }

    /// Whether two CPUs share their last-level cache.
    pub(super) fn share_cache(&self, a: u16, b: u16) -> bool {
        self.cache[usize::from(a)] == self.cache[usize::from(b)]
    }

    pub(super) fn is_idle(&self, cpu: u16) -> bool {
        self.caches[usize::from(self.cache[usize::from(cpu)])]
            .idle
            .has(usize::from(self.place[usize::from(cpu)]))
    }

    /// Whether cores have several CPUs.
    pub(super) fn has_siblings(&self, cpu: u16) -> bool {
        self.siblings(cpu).len() > 1
    }

    /// The CPUs of a CPU's core.
    pub(super) fn siblings(&self, cpu: u16) -> &[u16] {
        &self.cores[usize::from(self.core[usize::from(cpu)])]
    }

    /// Marks a CPU idle or busy. The caller does so only when that changes.
    pub(super) fn set(&mut self, cpu: u16, idle: bool) {
        let core = usize::from(self.core[usize::from(cpu)]);
        let cache = &mut self.caches[usize::from(self.cache[usize::from(cpu)])];
        cache.idle.set(usize::from(self.place[usize::from(cpu)]), idle);
        let count = &mut self.idle_in_core[core];
        let all = self.cores[core].len() as u16;
        let was = *count == all;
        *count = if idle { *count + 1 } else { *count - 1 };
        let is = *count == all;
        if was != is {
            for sibling in &self.cores[core] {
                cache.idle_cores.set(usize::from(self.place[usize::from(*sibling)]), is);
            }
            cache.hint |= is;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(machine: Machine, expected: &[(Kind, usize, usize)]) {
        let domains = Domains::new(&machine);
        let found = domains.levels.iter().map(|level| {
            let first = &level.domains[0];
            (level.kind, level.domains.len(), first.groups.len())
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    /// Kind, domains of the level, groups of its first domain.
    #[test]
    fn levels_that_add_nothing_are_dropped() {
        let flat = |cpus: u16| Machine {
            core: (0..cpus).collect(),
            llc: vec![0; cpus.into()],
            node: vec![0; cpus.into()],
            distances: vec![vec![10]],
            reclaim_distance: 30,
        };
        check(flat(1), &[]);
        check(flat(4), &[(Kind::Llc, 1, 4)]);
        let smt = Machine { core: vec![0, 1, 0, 1], ..flat(4) };
        check(smt, &[(Kind::Core, 2, 2), (Kind::Llc, 1, 2)]);
        let caches = Machine { llc: vec![0, 0, 1, 1], ..flat(4) };
        check(caches, &[(Kind::Llc, 2, 2), (Kind::Node, 1, 2)]);
        let nodes = |far| {
            vec![vec![10, 12, 32, far], vec![12, 10, far, 32], vec![32, far, 10, 12], vec![far, 32, 12, 10]]
        };
        let two = |far| Machine {
            node: (0..8).map(|cpu| cpu / 2).collect(),
            llc: (0..8).map(|cpu| cpu / 2).collect(),
            distances: nodes(far),
            ..flat(8)
        };
        check(two(32), &[(Kind::Llc, 4, 2), (Kind::Nodes(12), 2, 2), (Kind::Nodes(32), 1, 2)]);
        // At distance 32 at most, node 0 is near 1 and 2, but these are not near each other: no level.
        check(two(40), &[(Kind::Llc, 4, 2), (Kind::Nodes(12), 2, 2), (Kind::Nodes(40), 1, 2)]);
    }

    #[test]
    fn a_core_is_idle_when_all_its_cpus_are() {
        let machine = Machine {
            core: vec![0, 1, 0, 1],
            llc: vec![0; 4],
            node: vec![0; 4],
            distances: vec![vec![10]],
            reclaim_distance: 30,
        };
        let mut set = IdleSet::new(&machine);
        let cores = |set: &IdleSet| (0..4).filter(|at| set.caches[0].idle_cores.has(*at)).collect::<Vec<_>>();
        assert_eq!(cores(&set), [0, 1, 2, 3]);
        set.set(2, false);
        assert_eq!(cores(&set), [1, 3]);
        set.caches[0].hint = false;
        set.set(2, true);
        assert!(set.caches[0].hint && set.is_idle(2));
    }
}
