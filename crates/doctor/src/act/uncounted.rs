//! Memory that /proc/meminfo counts in no line: pages that drivers, a hypervisor's balloon or zram took
//! themselves, and part of vmalloc's.

use crate::words::{percent, size};
use slablab_readers::procfs::Numbers;

/// Lines that must be there, or the rest says nothing.
const NEEDED: [&str; 6] = ["MemTotal", "MemFree", "Buffers", "Cached", "AnonPages", "Slab"];
/// Further lines of memory that is in none of those.
const MORE: [&str; 7] =
    ["SwapCached", "KernelStack", "ShadowCallStack", "PageTables", "SecPageTables", "Percpu", "Hugetlb"];
/// Per cent of the memory from which on it is told.
const TOLD_PERCENT: u64 = 10;

/// Lines of the kernel's own memory beside slabs, and of pages that were taken out of it, with words for
/// them.
const BESIDE: [(&str, &str); 4] = [
    ("PageTables", "page tables of processes"),
    ("Percpu", "memory of each CPU: cgroups, BPF maps, counters"),
    ("KernelStack", "stacks of threads"),
    ("Hugetlb", "huge pages that were set aside"),
];
/// Per cent of the memory from which on such a line is the answer, if slabs have less.
const ANSWER_PERCENT: u64 = 25;

/// What else than slabs has much of the memory: a line of the kernel's own, and what is in no line.
pub(super) fn told(meminfo: &Numbers) -> Option<String> {
    let all: Vec<String> = beside(meminfo).into_iter().chain(in_no_line(meminfo)).collect();
    (!all.is_empty()).then(|| all.join(". "))
}

/// The line of the kernel's memory that has a large part of it, and more than slabs.
fn beside(meminfo: &Numbers) -> Option<String> {
    let bytes = |name: &str| meminfo.get(name).map(|kb| kb.saturating_mul(1024));
    let (total, slab) = (bytes("MemTotal")?, bytes("Slab")?);
    let lines = BESIDE.iter().filter_map(|(name, what)| Some((name, what, bytes(name)?)));
    let (name, what, most) = lines.max_by_key(|(_, _, bytes)| *bytes)?;
    let is_answer = most > slab && most >= total / 100 * ANSWER_PERCENT;
    is_answer
        .then(|| format!("{name} has {} ({}), which is no slabs: {what}", size(most), percent(most, total)))
}

/// How much of the memory is in no line, in a sentence, if that is much. `meminfo` has kB.
fn in_no_line(meminfo: &Numbers) -> Option<String> {
    let bytes = |name: &str| meminfo.get(name).map(|kb| kb.saturating_mul(1024));
    let needed = NEEDED.map(bytes);
    let [Some(total), ..] = needed else { return None };
    let counted = needed[1..].iter().copied().try_fold(0u64, |sum, line| Some(sum.saturating_add(line?)))?;
    let more = MORE.iter().filter_map(|name| bytes(name)).fold(0, u64::saturating_add);
    let left = total.checked_sub(counted.saturating_add(more))?;
    if left < total / 100 * TOLD_PERCENT {
        return None;
    }
    let vmalloc = bytes("VmallocUsed").filter(|used| *used >= left / 100 * TOLD_PERCENT);
    let vmalloc = vmalloc.map_or(String::new(), |used| {
        format!("; VmallocUsed, {}, explains {} of it", size(used), percent(used.min(left), left))
    });
    let answer = if bytes("Slab") < Some(left) { "; slabs are less than that" } else { "" };
    Some(format!(
        "{} ({}) of the memory is in no line of /proc/meminfo: pages that drivers, a balloon or zram took \
         themselves{vmalloc}{answer}",
        size(left),
        percent(left, total)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_line_has() {
        #[track_caller]
        fn check(lines: &[(&str, u64)], expected: Option<&str>) {
            const GIB: u64 = 1 << 20;
            let numbers = lines.iter().map(|(name, gib)| (name.to_string(), gib * GIB));
            match (told(&numbers.collect()), expected) {
                (Some(said), Some(expected)) => assert!(said.contains(expected), "{said}"),
                (said, expected) => assert_eq!(said.as_deref(), expected),
            }
        }
        let of = |slab, vmalloc| {
            let plain =
                [("MemTotal", 100), ("MemFree", 20), ("Buffers", 1), ("Cached", 9), ("AnonPages", 20)];
            [&plain[..], &[("Slab", slab), ("VmallocUsed", vmalloc)]].concat()
        };
        check(&of(45, 0), None);
        check(&of(20, 0), Some("30 GiB (30 %) of the memory is in no line"));
        check(&of(20, 0), Some("slabs are less than that"));
        check(&of(40, 0), Some("took themselves"));
        check(&of(20, 15), Some("VmallocUsed, 15 GiB, explains 50 % of it"));
        check(&[&of(20, 0)[..], &[("Hugetlb", 24)]].concat(), None);
        check(
            &[&of(20, 0)[..], &[("Percpu", 30)]].concat(),
            Some("Percpu has 30 GiB (30 %), which is no slabs"),
        );
        check(&[&of(45, 0)[..], &[("PageTables", 26)]].concat(), None);
        // Without a line of them the rest says nothing; nor do lines that are more than all.
        check(&of(20, 0)[1..], None);
        check(&of(60, 0), None);
    }
}
