//! Slab memory by memory cgroup.

use slablab_readers::cgroups::{Cgroup, Owners};
use std::collections::HashMap;

/// A cgroup, and how it grew.
#[derive(Clone, Debug)]
pub struct Charged<'a> {
    /// The cgroup.
    pub cgroup: &'a Cgroup,
    /// Its name for people.
    pub name: String,
    /// Bytes of slabs; on version 1, of all kernel memory.
    pub bytes: u64,
    /// Growth since the first snapshot, if that has cgroups.
    pub growth: Option<i64>,
}

/// Cgroups without children that are charged for kernel memory: those that grew most first, else the largest.
pub fn charged<'a>(owners: &'a Owners, first: Option<&Owners>) -> Vec<Charged<'a>> {
    let first = first.map(|first| &first.cgroups).filter(|first| !first.is_empty());
    let first: Option<HashMap<&str, &Cgroup>> =
        first.map(|first| first.iter().map(|cgroup| (cgroup.path.as_str(), cgroup)).collect());
    let charge = |cgroup: &'a Cgroup| {
        let bytes = cgroup.bytes()?;
        let growth = first.as_ref().map(|first| {
            let before = first.get(cgroup.path.as_str()).and_then(|old| old.bytes());
            (i128::from(bytes) - i128::from(before.unwrap_or(0))) as i64
        });
        Some(Charged { cgroup, name: owners.name_of(&cgroup.path), bytes, growth })
    };
    let mut found: Vec<Charged> = owners.leaves().filter_map(charge).collect();
    found.sort_by(|a, b| {
        let growth = b.growth.unwrap_or(0).cmp(&a.growth.unwrap_or(0));
        growth.then(b.bytes.cmp(&a.bytes)).then_with(|| a.cgroup.path.cmp(&b.cgroup.path))
    });
    found
}
