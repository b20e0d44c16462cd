//! The parts of the split, with their names and keys: one list for text, pages, JSON and CSV.

use crate::act::Report;
use crate::measure::meminfo::Meminfo;
use crate::measure::reclaim::Reclaim;
use crate::measure::split::Split;

/// A part of the split.
pub(crate) struct Part {
    /// Its name for people.
    pub(crate) name: &'static str,
    /// Its key for programs.
    pub(crate) key: &'static str,
    /// How many other parts it is inside of.
    pub(crate) depth: usize,
    /// When tables and pages show it.
    when: When,
    /// Its bytes; `None` if the input does not tell.
    pub(crate) get: fn(&Split) -> Option<i64>,
}

/// When tables and pages show a part. JSON and CSV always have it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// If it is not zero.
    Rare,
    /// If the input tells what CPUs hold: else the bounds say nothing.
    ParkedKnown,
}

const fn part(depth: usize, name: &'static str, key: &'static str, get: fn(&Split) -> Option<i64>) -> Part {
    Part { name, key, depth, when: When::Always, get }
}

const fn rare(depth: usize, name: &'static str, key: &'static str, get: fn(&Split) -> Option<i64>) -> Part {
    Part { name, key, depth, when: When::Rare, get }
}

const fn parked(name: &'static str, key: &'static str, get: fn(&Split) -> Option<i64>) -> Part {
    Part { name, key, depth: 2, when: When::ParkedKnown, get }
}

fn whole(bytes: u64) -> Option<i64> {
    Some(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// The split of one cache or of all, in the order in which it adds up.
pub(crate) const PARTS: [Part; 13] = [
    part(0, "in use", "in_use_bytes", |split| whole(split.in_use)),
    parked("parked with CPUs, at least", "parked_low_bytes", |split| whole(split.parked.low)),
    parked("parked with CPUs, at most", "parked_high_bytes", |split| whole(split.parked.high)),
    part(0, "loss", "loss_bytes", |split| Some(split.loss())),
    part(1, "free in slabs", "free_bytes", |split| whole(split.free)),
    part(1, "tail of slabs", "tail_bytes", |split| whole(split.tail)),
    rare(2, "of smaller slabs, no memory", "tail_overstated_bytes", |split| whole(split.overstated)),
    part(1, "alignment", "alignment_bytes", |split| whole(split.metadata?.alignment)),
    part(1, "free pointers outside", "pointer_bytes", |split| whole(split.metadata?.pointer)),
    part(1, "debugging", "debugging_bytes", |split| whole(split.metadata?.debugging)),
    rare(1, "accounting, in slabs", "accounting_bytes", |split| whole(split.metadata?.accounting)),
    rare(1, "counted twice, in a race", "raced_bytes", |split| Some(split.raced.min(0))),
    part(0, "all caches", "slab_bytes", |split| whole(split.bytes)),
];

/// The parts that people see, each with its bytes.
pub(crate) fn parts(split: &Split) -> impl Iterator<Item = (&'static Part, i64)> {
    let known = PARTS.iter().filter_map(|part| Some((part, (part.get)(split)?)));
    known.filter(|(part, bytes)| match part.when {
        When::Always => true,
        When::Rare => *bytes != 0,
        When::ParkedKnown => !split.parked_unknown,
    })
}

/// What /proc/meminfo counts as reclaimable, the part of that which no shrinker frees, and what it counts as
/// not reclaimable.
pub(crate) fn meminfo_parts(report: &Report) -> impl Iterator<Item = (&'static str, u64)> {
    let meminfo = report.measured.meminfo.as_ref();
    let held = report.measured.bytes_of(Reclaim::Holder);
    let parts = [
        ("SReclaimable", meminfo.and_then(|meminfo| meminfo.reclaimable)),
        ("  of it held, no shrinker", Some(held).filter(|held| *held > 0)),
        ("SUnreclaim", meminfo.and_then(|meminfo| meminfo.unreclaimable)),
    ];
    parts.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)))
}

/// The kernel's counters of slab memory: name, bytes, percent of the machine's memory.
pub(crate) fn meminfo_rows(meminfo: &Meminfo) -> impl Iterator<Item = (&'static str, u64, f64)> {
    let all = meminfo.total.unwrap_or(meminfo.slab).max(1) as f64;
    let rows = [
        ("MemTotal", meminfo.total),
        ("Slab", Some(meminfo.slab)),
        ("  SReclaimable", meminfo.reclaimable),
        ("  SUnreclaim", meminfo.unreclaimable),
    ];
    rows.into_iter().filter_map(move |(name, bytes)| Some((name, bytes?, 100.0 * bytes? as f64 / all)))
}
