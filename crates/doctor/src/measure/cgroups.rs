//! Slab memory by memory cgroup, and removed cgroups that still hold some.

use crate::act::report::Report;
use crate::find::finding::{Finding, Kind};
use slablab_readers::cgroups::{Cgroup, Owners};
use slablab_report::text::grouped;
use std::collections::HashMap;

/// Dying cgroups from which their number is worth saying.
const DYING_FROM: u64 = 100;

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

/// Many removed cgroups.
pub(crate) fn find(report: &Report) -> Option<Finding> {
    let owners = &report.state.dump.owners;
    let dying = owners.dying().filter(|dying| *dying >= DYING_FROM)?;
    let before = report.history.as_ref().and_then(|history| history.first().dump.owners.dying());
    let more = before.filter(|before| dying > *before).map_or(String::new(), |before| {
        format!(", {} more than in the first snapshot", grouped(dying - before))
    });
    Some(Finding {
        kind: Kind::DyingCgroups,
        caches: Vec::new(),
        bytes: 0,
        text: format!(
            "{} removed cgroups still hold memory{more}: each stays, with its slabs, until the last page and \
             object charged to it is freed",
            grouped(dying)
        ),
    })
}
