//! Sums over all machines, and over each group.

use super::machine::{Machine, Saved};
use super::read::Fleet;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Machines of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Machines.
    pub machines: usize,
    /// Bytes of their memory, of those whose memory is known.
    pub memory: u64,
    /// Bytes of slabs.
    pub slabs: u64,
    /// Bytes of slabs that no shrinker frees.
    pub unreclaimable: u64,
    /// Bytes of slabs that are not objects in use.
    pub loss: i64,
    /// What each change saves, and on how many machines that is predicted.
    pub saved: Vec<(Saved, usize)>,
}

impl Group {
    fn add(&mut self, machine: &Machine) {
        self.machines += 1;
        self.memory = self.memory.saturating_add(machine.memory);
        self.slabs = self.slabs.saturating_add(machine.slabs);
        self.unreclaimable = self.unreclaimable.saturating_add(machine.unreclaimable);
        self.loss = self.loss.saturating_add(machine.loss);
        self.saved.resize(machine.saved.len(), Default::default());
        for (sum, saved) in self.saved.iter_mut().zip(&machine.saved) {
            if let Some(saved) = saved {
                // One kernel errs the same way on all machines: errors are added, and do not cancel out.
                sum.0.low = sum.0.low.saturating_add(saved.low);
                sum.0.likely = sum.0.likely.saturating_add(saved.likely);
                sum.0.high = sum.0.high.saturating_add(saved.high);
                sum.1 += 1;
            }
        }
    }
}

/// The groups, most slab memory first.
pub fn groups(fleet: &Fleet) -> Vec<Group> {
    let mut found: BTreeMap<&str, Group> = BTreeMap::new();
    for machine in &fleet.machines {
        let group = found.entry(&machine.group).or_default();
        group.name.clone_from(&machine.group);
        group.add(machine);
    }
    let mut found: Vec<Group> = found.into_values().collect();
    found.sort_by_key(|group| Reverse(group.slabs));
    found
}

/// All machines as one group.
pub fn saved(fleet: &Fleet) -> Group {
    let mut all = Group { name: "all".into(), ..Group::default() };
    fleet.machines.iter().for_each(|machine| all.add(machine));
    all
}

/// A cache over all machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSum {
    /// Its name.
    pub name: String,
    /// Its number in [`Fleet::names`].
    pub id: u32,
    /// Bytes on all machines.
    pub bytes: u64,
    /// Machines that have it.
    pub machines: usize,
    /// Bytes on the machine in the middle, of those that have it.
    pub median: u64,
    /// Bytes on the machine with most.
    pub most: u64,
    /// Whether the kernel frees its objects when it needs memory.
    pub reclaimable: bool,
}

/// The caches, most bytes first.
pub fn caches(fleet: &Fleet) -> Vec<CacheSum> {
    let mut of_cache: Vec<Vec<u64>> = vec![Vec::new(); fleet.names.len()];
    let mut freed = vec![true; fleet.names.len()];
    for (id, bytes, by_kernel) in fleet.machines.iter().flat_map(|machine| &machine.caches) {
        of_cache[*id as usize].push(*bytes);
        freed[*id as usize] &= by_kernel;
    }
    let sum = |(id, mut bytes): (usize, Vec<u64>)| {
        bytes.sort_unstable();
        Some(CacheSum {
            name: fleet.names[id].clone(),
            id: id as u32,
            bytes: bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            machines: bytes.len(),
            median: *bytes.get(bytes.len() / 2)?,
            most: *bytes.last()?,
            reclaimable: freed[id],
        })
    };
    let mut found: Vec<CacheSum> = of_cache.into_iter().enumerate().filter_map(sum).collect();
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    found
}
