//! What grows everywhere: caches that grew on nearly all machines with two dumps or more.

use super::machine::Machine;
use super::read::Fleet;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Machines with two dumps from which on "everywhere" says something.
const MACHINES: usize = 3;
/// Per cent of these machines on which a cache grew, at least.
const EVERYWHERE_PERCENT: usize = 80;
/// Per cent of the machine's slab memory by which a cache grew, at least.
const GREW_PERCENT: u64 = 1;

/// A cache that grew on nearly all machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Climbing {
    /// The number of its name.
    pub cache: u32,
    /// Machines on which it grew.
    pub machines: usize,
    /// Machines with two dumps or more.
    pub of: usize,
    /// Bytes by which it grew on all of them.
    pub bytes: u64,
    /// Bytes a day on the machine in the middle, of those on which it grew; `None` where times are not known.
    pub bytes_per_day: Option<f64>,
    /// Whether the kernel frees its objects when it needs memory.
    pub reclaimable: bool,
}

/// The caches that grew on nearly all machines: what no shrinker frees first, then most bytes.
pub fn climbing(fleet: &Fleet) -> Vec<Climbing> {
    let pairs: Vec<(&Machine, &Machine)> = fleet
        .machines
        .iter()
        .enumerate()
        .filter_map(|(at, now)| Some((fleet.earlier.get(&at)?.first()?, now)))
        .collect();
    if pairs.len() < MACHINES {
        return Vec::new();
    }
    let mut grown: FxHashMap<u32, Vec<(u64, Option<f64>, bool)>> = FxHashMap::default();
    for (first, now) in &pairs {
        for (id, bytes, by_kernel) in &now.caches {
            let more = bytes.saturating_sub(first.cache(*id).map_or(0, |(bytes, _)| bytes));
            if more > 0 && more >= now.slabs / 100 * GREW_PERCENT {
                let days = now.taken_s.zip(first.taken_s).map(|(now, first)| now.saturating_sub(first));
                let days = days.filter(|seconds| *seconds > 0).map(|seconds| seconds as f64 / 86_400.0);
                grown.entry(*id).or_default().push((more, days.map(|days| more as f64 / days), *by_kernel));
            }
        }
    }
    grown.retain(|_, on| on.len() * 100 >= pairs.len() * EVERYWHERE_PERCENT);
    let of = |(cache, on): (u32, Vec<(u64, Option<f64>, bool)>)| {
        let mut rates: Vec<f64> = on.iter().filter_map(|(_, rate, _)| *rate).collect();
        rates.sort_by(f64::total_cmp);
        Climbing {
            cache,
            machines: on.len(),
            of: pairs.len(),
            bytes: on.iter().fold(0, |sum, (more, ..)| sum.saturating_add(*more)),
            bytes_per_day: rates.get(rates.len() / 2).copied(),
            reclaimable: on.iter().all(|(.., by_kernel)| *by_kernel),
        }
    };
    let mut found: Vec<Climbing> = grown.into_iter().map(of).collect();
    found.sort_by_key(|one| (one.reclaimable, Reverse(one.bytes), fleet.names[one.cache as usize].clone()));
    found
}
