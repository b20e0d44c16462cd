//! Findings about the machine around the slabs: meminfo, nodes, free blocks.

use super::finding::{Finding, Kind};
use crate::measure::Measured;
use crate::measure::reclaim::Reclaim;
use crate::words::{counted, part_of, percent, size};

/// What is worth saying about the machine.
pub(crate) fn find(measured: &Measured, worth: u64) -> Vec<Finding> {
    let found = [
        gap(measured, worth),
        memoryless(measured),
        high_order(measured, worth),
        reclaimable(measured, worth),
        unreclaimable(measured),
    ];
    found.into_iter().flatten().collect()
}

/// The sum of the caches and meminfo's Slab: large kmallocs where they cannot be anything else.
fn gap(measured: &Measured, worth: u64) -> Option<Finding> {
    let meminfo = measured.meminfo.as_ref().filter(|_| measured.state.has_all_caches())?;
    let (gap, lag) = (meminfo.gap, meminfo.lag.unwrap_or(u64::MAX));
    let bytes = gap.unsigned_abs();
    if bytes < worth {
        return None;
    }
    if meminfo.has_large && gap > 0 && bytes > lag {
        return Some(Finding::of_machine(
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
    Some(Finding::of_machine(
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
fn memoryless(measured: &Measured) -> Option<Finding> {
    let nodes = &measured.state.dump.nodes;
    let without: Vec<_> = nodes.iter().filter(|node| !node.has_memory && !node.cpus.is_empty()).collect();
    let cpus: usize = without.iter().map(|node| node.cpus.len()).sum();
    let ids: Vec<String> = without.iter().map(|node| node.id.to_string()).collect();
    (!without.is_empty()).then(|| {
        Finding::of_machine(Kind::MemorylessNodes, 0, format!(
            "{} of {} nodes with CPUs have no memory (node {}): the slabs of their {cpus} CPUs are on other \
             nodes, and every allocation there is remote",
            without.len(), nodes.iter().filter(|node| !node.cpus.is_empty()).count(), ids.join(", ")
        ))
    })
}

/// Caches whose next slab will not be of the preferred order: no free block is that large.
fn high_order(measured: &Measured, worth: u64) -> Option<Finding> {
    let blocks = &measured.state.dump.buddyinfo;
    if blocks.is_empty() {
        return None;
    }
    let largest = blocks.iter().flat_map(|zone| zone.blocks.iter().enumerate());
    let largest = largest.filter(|(_, count)| **count > 0).map(|(order, _)| order as u32).max();
    let above = |order: u32| largest.is_none_or(|largest| order > largest);
    let lines: Vec<_> =
        measured.lines.iter().filter(|line| line.cache.slabs > 0 && above(line.cache.order)).collect();
    let bytes = lines.iter().map(|line| line.split.bytes).sum();
    let largest = largest.map_or("none at all".into(), |order| format!("the largest is of order {order}"));
    (bytes >= worth).then(|| {
        let mut lines = lines;
        lines.sort_by_key(|line| std::cmp::Reverse(line.split.bytes));
        Finding::of_caches(Kind::HighOrder, &lines, bytes, format!(
            "no free block is large enough for the next slab of {}, which have {} ({largest}): their slabs \
             will fall back to smaller ones or cost compaction",
            counted(lines.len() as u64, "cache"), size(bytes)
        ))
    })
}

/// A third of the slabs can be reclaimed.
fn reclaimable(measured: &Measured, worth: u64) -> Option<Finding> {
    const PERCENT: u64 = 33;
    let meminfo = measured.meminfo.as_ref()?;
    let bytes = meminfo.reclaimable?;
    let held = measured.bytes_of(Reclaim::Holder);
    let held = match held >= worth {
        true => format!("; {} of it are held (caches marked so), and no shrinker frees them", size(held)),
        false => String::new(),
    };
    (bytes >= worth && bytes >= meminfo.slab / 100 * PERCENT).then(|| {
        Finding::of_machine(
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
fn unreclaimable(measured: &Measured) -> Option<Finding> {
    const PERCENT: u64 = 10;
    let meminfo = measured.meminfo.as_ref()?;
    let (bytes, total) = (meminfo.unreclaimable?, meminfo.total?);
    (total > 0 && bytes >= total / 100 * PERCENT).then(|| {
        Finding::of_machine(
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
