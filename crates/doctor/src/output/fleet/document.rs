//! The answer about many dumps for programs. Units are in the keys.

use super::sums::Sums;
use crate::act::verdict::Judgement;
use crate::fleet::{Fleet, Group, Machine, Saved};
use crate::whatif::Change;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::Document;

/// Slab memory of many machines.
#[derive(Serialize, JsonSchema)]
pub(in crate::output) struct FleetDocument<'a> {
    /// All machines.
    all: GroupDocument<'a>,
    /// Caches over all machines, most bytes first.
    caches: Vec<CacheDocument<'a>>,
    /// Caches that grew on nearly all machines with two dumps or more.
    climbing: Vec<ClimbingDocument<'a>>,
    groups: Vec<GroupDocument<'a>>,
    machines: Vec<MachineDocument<'a>>,
    /// Caches of machines that have far more of the memory than on the others of their group.
    outliers: Vec<OutlierDocument<'a>>,
    /// Dumps that could not be read, and why.
    unread: Vec<UnreadDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct GroupDocument<'a> {
    loss_bytes: i64,
    machines: usize,
    memory_bytes: u64,
    name: &'a str,
    saves: Vec<SavesDocument>,
    slab_bytes: u64,
    unreclaimable_bytes: u64,
}

/// What a change saves; below 0 it takes memory.
#[derive(Serialize, JsonSchema)]
struct SavesDocument {
    /// As `max_order=0`.
    change: String,
    high_bytes: i64,
    likely_bytes: i64,
    low_bytes: i64,
    /// Machines on which it is predicted.
    machines: usize,
}

#[derive(Serialize, JsonSchema)]
struct CacheDocument<'a> {
    bytes: u64,
    machines: usize,
    median_bytes: u64,
    most_bytes: u64,
    name: &'a str,
    /// Whether the kernel frees its objects when it needs memory.
    reclaimable: bool,
}

#[derive(Serialize, JsonSchema)]
struct ClimbingDocument<'a> {
    bytes: u64,
    /// On the machine in the middle; null where times are not known.
    bytes_per_day: Option<f64>,
    cache: &'a str,
    machines: usize,
    /// Machines with two dumps or more.
    of: usize,
    reclaimable: bool,
}

#[derive(Serialize, JsonSchema)]
struct MachineDocument<'a> {
    dump: String,
    group: &'a str,
    loss_bytes: i64,
    /// 0 if the dump does not tell.
    memory_bytes: u64,
    name: &'a str,
    slab_bytes: u64,
    /// Seconds since 1970.
    taken_s: Option<u64>,
    unreclaimable_bytes: u64,
    verdict: Judgement,
}

#[derive(Serialize, JsonSchema)]
struct OutlierDocument<'a> {
    bytes: u64,
    cache: &'a str,
    machine: &'a str,
    /// The part of memory on the machine in the middle of the group.
    median_percent: f64,
    /// The part of the machine's memory.
    memory_percent: f64,
    reclaimable: bool,
}

#[derive(Serialize, JsonSchema)]
struct UnreadDocument<'a> {
    dump: String,
    why: &'a str,
}

impl Document for FleetDocument<'_> {
    const NAME: &'static str = "slablab.fleet.1";
    const TITLE: &'static str = "slablab fleet: slab memory of many machines";
}

impl<'a> FleetDocument<'a> {
    pub(super) fn new(fleet: &'a Fleet, sums: &'a Sums) -> FleetDocument<'a> {
        let name = |cache: u32| fleet.names[cache as usize].as_str();
        let caches = sums.caches.iter().map(|cache| CacheDocument {
            bytes: cache.bytes,
            machines: cache.machines,
            median_bytes: cache.median,
            most_bytes: cache.most,
            name: &cache.name,
            reclaimable: cache.reclaimable,
        });
        let climbing = sums.climbing.iter().map(|one| ClimbingDocument {
            bytes: one.bytes,
            bytes_per_day: one.bytes_per_day,
            cache: name(one.cache),
            machines: one.machines,
            of: one.of,
            reclaimable: one.reclaimable,
        });
        let outliers = sums.outliers.iter().map(|outlier| OutlierDocument {
            bytes: outlier.bytes,
            cache: name(outlier.cache),
            machine: &fleet.machines[outlier.machine].name,
            median_percent: outlier.median_percent,
            memory_percent: outlier.percent,
            reclaimable: outlier.reclaimable,
        });
        let unread = fleet.unread.iter();
        FleetDocument {
            all: group(&fleet.changes, &sums.all),
            caches: caches.collect(),
            climbing: climbing.collect(),
            groups: sums.groups.iter().map(|one| group(&fleet.changes, one)).collect(),
            machines: fleet.machines.iter().map(machine).collect(),
            outliers: outliers.collect(),
            unread: unread
                .map(|unread| UnreadDocument { dump: unread.path.display().to_string(), why: &unread.why })
                .collect(),
        }
    }
}

fn group<'a>(changes: &[Change], group: &'a Group) -> GroupDocument<'a> {
    let saves = changes.iter().zip(&group.saved).map(|(change, (saved, machines))| {
        let Saved { low, likely, high } = *saved;
        SavesDocument {
            change: change.to_string(),
            high_bytes: high,
            likely_bytes: likely,
            low_bytes: low,
            machines: *machines,
        }
    });
    GroupDocument {
        loss_bytes: group.loss,
        machines: group.machines,
        memory_bytes: group.memory,
        name: &group.name,
        saves: saves.collect(),
        slab_bytes: group.slabs,
        unreclaimable_bytes: group.unreclaimable,
    }
}

fn machine(machine: &Machine) -> MachineDocument<'_> {
    MachineDocument {
        dump: machine.path.display().to_string(),
        group: &machine.group,
        loss_bytes: machine.loss,
        memory_bytes: machine.memory,
        name: &machine.name,
        slab_bytes: machine.slabs,
        taken_s: machine.taken_s,
        unreclaimable_bytes: machine.unreclaimable,
        verdict: machine.judgement,
    }
}
