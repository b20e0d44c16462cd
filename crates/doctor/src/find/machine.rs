//! Findings about the machine around the slabs: meminfo, nodes, free blocks.

use super::finding::{Finding, Kind, counted, part_of, percent, size};
use crate::act::report::Report;
use crate::measure::reclaim::{Reclaim, bytes_of};

/// What is worth saying about the machine.
pub(crate) fn find(report: &Report, worth: u64) -> Vec<Finding> {
    let found = [
        gap(report, worth),
        memoryless(report),
        high_order(report, worth),
        reclaimable(report, worth),
        unreclaimable(report),
    ];
    found.into_iter().flatten().collect()
}

fn machine(kind: Kind, bytes: u64, text: String) -> Finding {
    Finding { kind, caches: Vec::new(), bytes, text }
}

/// The sum of the caches and meminfo's Slab: large kmallocs where they cannot be anything else.
fn gap(report: &Report, worth: u64) -> Option<Finding> {
    let meminfo = report.meminfo.as_ref().filter(|_| report.state.has_all_caches())?;
    let (gap, lag) = (meminfo.gap, meminfo.lag.unwrap_or(u64::MAX));
    let bytes = gap.unsigned_abs();
    if bytes < worth {
        return None;
    }
    if meminfo.has_large && gap > 0 && bytes > lag {
        return Some(machine(
            Kind::LargeKmalloc,
            bytes,
            format!(
                "{} of slab memory are in no cache: kmallocs that are too large for one ({} to {}, as CPUs \
                 keep up to {} of the counters' changes to themselves)",
                size(bytes),
                size(bytes - lag),
                size(bytes + lag),
                size(lag)
            ),
        ));
    }
    let more = if gap > 0 { "more" } else { "less" };
    Some(machine(
        Kind::MeminfoGap,
        bytes,
        format!(
            "/proc/meminfo says {} {more} than the caches add up to: {}",
            size(bytes),
            meminfo.explanation()
        ),
    ))
}

/// Nodes with CPUs and without memory.
fn memoryless(report: &Report) -> Option<Finding> {
    let nodes = &report.state.dump.nodes;
    let without: Vec<_> = nodes.iter().filter(|node| !node.has_memory && !node.cpus.is_empty()).collect();
    let cpus: usize = without.iter().map(|node| node.cpus.len()).sum();
    let ids: Vec<String> = without.iter().map(|node| node.id.to_string()).collect();
    (!without.is_empty()).then(|| {
        machine(Kind::MemorylessNodes, 0, format!(
            "{} of {} nodes with CPUs have no memory (node {}): the slabs of their {cpus} CPUs are on other \
             nodes, and every allocation there is remote",
            without.len(), nodes.iter().filter(|node| !node.cpus.is_empty()).count(), ids.join(", ")
        ))
    })
}

/// Caches whose next slab will not be of the preferred order: no free block is that large.
fn high_order(report: &Report, worth: u64) -> Option<Finding> {
    let blocks = &report.state.dump.buddyinfo;
    if blocks.is_empty() {
        return None;
    }
    let largest = blocks.iter().flat_map(|zone| zone.blocks.iter().enumerate());
    let largest = largest.filter(|(_, count)| **count > 0).map(|(order, _)| order as u32).max();
    let above = |order: u32| largest.is_none_or(|largest| order > largest);
    let lines: Vec<_> =
        report.lines.iter().filter(|line| line.cache.slabs > 0 && above(line.cache.order)).collect();
    let bytes = lines.iter().map(|line| line.split.bytes).sum();
    let largest = largest.map_or("none at all".into(), |order| format!("the largest is of order {order}"));
    (bytes >= worth).then(|| {
        let mut lines = lines;
        lines.sort_by_key(|line| std::cmp::Reverse(line.split.bytes));
        super::finding::several(Kind::HighOrder, &lines, bytes, format!(
            "no free block is large enough for the next slab of {}, which have {} ({largest}): their slabs \
             will fall back to smaller ones or cost compaction",
            counted(lines.len() as u64, "cache"), size(bytes)
        ))
    })
}

/// A third of the slabs can be reclaimed.
fn reclaimable(report: &Report, worth: u64) -> Option<Finding> {
    const PERCENT: u64 = 33;
    let meminfo = report.meminfo.as_ref()?;
    let bytes = meminfo.reclaimable?;
    let held = bytes_of(&report.lines, Reclaim::Holder);
    let held = match held >= worth {
        true => format!("; {} of it are held (caches marked so), and no shrinker frees them", size(held)),
        false => String::new(),
    };
    (bytes >= worth && bytes >= meminfo.slab / 100 * PERCENT).then(|| {
        machine(
            Kind::Reclaimable,
            bytes,
            format!(
                "{} of {} of slab memory ({}) are reclaimable, as directory entries, inodes and buffer \
             heads are: the kernel frees unused ones by itself when it needs memory{held}",
                size(bytes),
                size(meminfo.slab),
                percent(bytes, meminfo.slab)
            ),
        )
    })
}

/// A tenth of the machine's memory is in slabs that cannot be reclaimed.
fn unreclaimable(report: &Report) -> Option<Finding> {
    const PERCENT: u64 = 10;
    let meminfo = report.meminfo.as_ref()?;
    let (bytes, total) = (meminfo.unreclaimable?, meminfo.total?);
    (total > 0 && bytes >= total / 100 * PERCENT).then(|| {
        machine(
            Kind::Unreclaimable,
            bytes,
            format!(
                "{} of the machine's memory ({}) are unreclaimable slabs: only the code that \
             allocated the objects can free them",
                part_of(bytes, total),
                percent(bytes, total)
            ),
        )
    })
}
