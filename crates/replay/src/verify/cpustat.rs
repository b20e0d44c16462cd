//! What a kernel with SLAB counted: `globalstat` and `cpustat` of /proc/slabinfo, before and after.

use slablab_platform::Event;
use slablab_readers::counters::parse_slabinfos;
use slablab_readers::slabinfo::{Slabinfo, SlabinfoRow};
use slablab_report::error::{At, Error, Result};
use slablab_report::{Limit, read_at_most};
use std::collections::BTreeMap;
use std::path::Path;

/// A table of counters. Those of 48 CPUs and all statistics have some MiB.
pub(super) const COUNTERS: Limit = Limit::mib("a table of counters (CSV)", 256);

/// By cache and counter, how often a kernel counted something during a workload.
pub(super) type RealCounts = BTreeMap<String, BTreeMap<String, i64>>;

const FILE: &str = "slabinfo.csv";

/// The counters.
pub(super) const EVENTS: &[Event] = &[
    Event::SlabAllocHit,
    Event::SlabAllocMiss,
    Event::SlabFreeHit,
    Event::SlabFreeMiss,
    Event::SlabNodeAlloc,
    Event::SlabNodeFree,
    Event::SlabNodeOverflow,
    Event::SlabGrown,
    Event::SlabReaped,
];

/// Whether a folder is a counters run of a kernel with SLAB.
pub(super) fn is_run(run: &Path) -> bool {
    run.join(FILE).is_file() && !run.join("slub_const.csv").is_file()
}

/// /proc/slabinfo as the workload began.
///
/// # Errors
/// A file that is damaged, or has nothing of the workload.
pub(super) fn start(run: &Path, label: &str) -> Result<Slabinfo> {
    at(run, label, "before")
}

/// What the workload made the kernel count.
///
/// # Errors
/// As [`start`]; and a kernel without statistics.
pub(super) fn counted(run: &Path, label: &str) -> Result<RealCounts> {
    let (before, after) = (at(run, label, "before")?, at(run, label, "after")?);
    let mut real = RealCounts::new();
    for row in after.rows.iter().filter(|row| row.ordinal == 0) {
        let Some(ends) = counts(row) else {
            let lacks =
                format!("{} has no globalstat and cpustat: expected a kernel built with them", row.name);
            return Err(Error::new(run.join(FILE), lacks));
        };
        let begins = before.rows.iter().find(|begin| begin.name == row.name && begin.ordinal == 0);
        let begins = begins.and_then(counts).unwrap_or_default();
        let deltas = EVENTS
            .iter()
            .zip(ends.iter().zip(begins))
            .map(|(event, (end, begin))| (event.name().to_string(), end.wrapping_sub(begin) as i64));
        real.insert(row.name.clone(), deltas.collect());
    }
    Ok(real)
}

/// A row's counters, in the order of [`EVENTS`].
fn counts(row: &SlabinfoRow) -> Option<[u64; EVENTS.len()]> {
    let (node, cpu) = (row.global?, row.cpu?);
    Some([
        cpu.allochit,
        cpu.allocmiss,
        cpu.freehit,
        cpu.freemiss,
        node.nodeallocs,
        node.nodefrees,
        node.overflows,
        node.grown,
        node.reaped,
    ])
}

fn at(run: &Path, label: &str, phase: &str) -> Result<Slabinfo> {
    let path = run.join(FILE);
    let all = parse_slabinfos(&*read_at_most(&path, COUNTERS)?).at(&path)?;
    let mut found = all.iter().filter(|at| at.label == label && at.phase == phase);
    let Some(found) = found.next() else {
        let mut labels: Vec<&str> = all.iter().map(|at| at.label.as_str()).collect();
        labels.dedup();
        let labels = labels.join(", ");
        return Err(Error::new(&path, format!("no rows of \"{label}\", {phase}; it has {labels}")));
    };
    Ok(found.slabinfo.clone())
}
