//! Machines that stand out: a cache has a larger part of their memory than on the others of their group.

use super::machine::Machine;
use super::read::Fleet;
use super::sums::CacheSum;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Machines of a group from which on its middle says something; smaller groups are seen as one.
const GROUP: usize = 8;
/// Per cent of the machine's memory that a cache has at least more than on the machine in the middle.
const LEAST_PERCENT: f64 = 1.0;
/// How many times the scatter of the group it is above the middle.
const SCATTERS: f64 = 8.0;
/// From the median of absolute deviations to the standard deviation of a normal distribution.
const MAD: f64 = 1.4826;

/// A cache of a machine that stands out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    /// The index of the machine.
    pub machine: usize,
    /// The number of the cache's name.
    pub cache: u32,
    /// Its bytes there.
    pub bytes: u64,
    /// Its part of that machine's memory, in per cent.
    pub percent: f64,
    /// Its part of the memory of the machine in the middle of the group.
    pub median_percent: f64,
    /// Whether the kernel frees its objects when it needs memory.
    pub reclaimable: bool,
}

/// Caches of machines that stand out: those that no shrinker frees first, then those furthest above the
/// middle.
pub fn outliers(fleet: &Fleet, caches: &[CacheSum]) -> Vec<Outlier> {
    let mut found: Vec<Outlier> = Vec::new();
    let groups = grouped(&fleet.machines);
    // A cache with less on every machine stands out on none.
    let large = |cache: &&CacheSum| {
        let least = fleet.machines.iter().map(|machine| machine.memory).filter(|memory| *memory > 0).min();
        least.is_some_and(|least| cache.most as f64 >= least as f64 * LEAST_PERCENT / 100.0)
    };
    for cache in caches.iter().filter(large) {
        for members in &groups {
            of_cache(fleet, members, cache.id, &mut found);
        }
    }
    let above = |outlier: &Outlier| {
        let memory = fleet.machines[outlier.machine].memory as f64;
        ((outlier.percent - outlier.median_percent) / 100.0 * memory) as u64
    };
    found.sort_by_key(|outlier| {
        (
            outlier.reclaimable,
            Reverse(above(outlier)),
            outlier.machine,
            fleet.names[outlier.cache as usize].clone(),
        )
    });
    found
}

fn of_cache(fleet: &Fleet, members: &[usize], cache: u32, found: &mut Vec<Outlier>) {
    let part = |machine: &Machine| {
        let bytes = machine.cache(cache).map_or(0, |(bytes, _)| bytes);
        100.0 * bytes as f64 / machine.memory as f64
    };
    let parts: Vec<f64> = members.iter().map(|at| part(&fleet.machines[*at])).collect();
    let Some(middle) = median(&parts) else { return };
    let deviations: Vec<f64> = parts.iter().map(|part| (part - middle).abs()).collect();
    let scatter = median(&deviations).unwrap_or(0.0) * MAD;
    let limit = middle + (SCATTERS * scatter).max(LEAST_PERCENT);
    for (at, percent) in members.iter().zip(parts).filter(|(_, percent)| *percent > limit) {
        let Some((bytes, reclaimable)) = fleet.machines[*at].cache(cache) else { continue };
        let median_percent = middle;
        found.push(Outlier { machine: *at, cache, bytes, percent, median_percent, reclaimable });
    }
}

/// Machines of each group that is large enough, and all others together; those whose memory is known.
fn grouped(machines: &[Machine]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, machine) in machines.iter().enumerate().filter(|(_, machine)| machine.memory > 0) {
        groups.entry(&machine.group).or_default().push(at);
    }
    let (mut large, small): (Vec<_>, Vec<_>) = groups.into_values().partition(|group| group.len() >= GROUP);
    let rest: Vec<usize> = small.into_iter().flatten().collect();
    if rest.len() >= GROUP {
        large.push(rest);
    }
    large
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
