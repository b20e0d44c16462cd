//! Findings about a text: what it says beyond a list of caches, and what its one moment can tell.

use super::finding::{Finding, Kind, named, percent, several, size};
use crate::act::report::{Line, Report};
use crate::act::verdict;
use crate::measure::reclaim::Reclaim;
use crate::what::Failure;
use slablab_readers::pasted::{MemoryReport, Pasted};
use slablab_report::text::grouped;

/// What is worth saying of a text; nothing for other inputs.
pub(crate) fn find(report: &Report, worth: u64) -> Vec<Finding> {
    let Some(pasted) = &report.state.dump.pasted else { return Vec::new() };
    let mut found: Vec<Finding> = failures(report, pasted);
    found.extend(pasted.reports.last().and_then(|last| of_report(report, last)));
    found.extend(dentries(report, pasted));
    found.extend(held(report, worth));
    found.extend(together(report));
    found
}

fn machine(kind: Kind, bytes: u64, text: String) -> Finding {
    Finding { kind, caches: Vec::new(), bytes, text }
}

/// Slabs that the kernel could not get. The words of the answer are in a section of their own.
fn failures(report: &Report, pasted: &Pasted) -> Vec<Finding> {
    let failures = Failure::all(&pasted.failures, report.state.release, report.state.page_size);
    let say = |failure: &Failure| machine(Kind::AllocFailed, failure.bytes().unwrap_or(0), failure.summary());
    failures.iter().map(say).collect()
}

/// The OOM killer, or an allocation of pages that failed.
fn of_report(report: &Report, last: &MemoryReport) -> Option<Finding> {
    let page = report.state.page_size;
    let slabs = last.slab_unreclaimable.map(|pages| pages.saturating_mul(page));
    let of =
        last.ram.map_or(String::new(), |pages| format!(" of {} of memory", size(pages.saturating_mul(page))));
    let who = what_happened(last).unwrap_or_else(|| "a report of the kernel".into());
    let of_cgroup = if last.of_cgroup { "; a memory cgroup was at its limit, not the machine" } else { "" };
    let table = if last.has_table {
        "; the kernel lists unreclaimable caches only where they have more pages than all processes and files \
         together: slabs are the cause"
    } else {
        ""
    };
    let bytes = slabs?;
    let reclaimable = last
        .slab_reclaimable
        .map_or(String::new(), |pages| format!(", {} reclaimable", size(pages.saturating_mul(page))));
    let text = format!("{who}: {} of unreclaimable slabs{reclaimable}{of}{of_cgroup}{table}", size(bytes));
    Some(machine(Kind::OutOfMemory, bytes, text))
}

/// What a report of the kernel is about, if the text has that line of it.
pub(crate) fn what_happened(report: &MemoryReport) -> Option<String> {
    match (&report.invoked_by, &report.killed, report.failed_order) {
        (Some(by), Some(killed), _) => Some(format!("{by} invoked the OOM killer, which killed {killed}")),
        (Some(by), None, _) => Some(format!("{by} invoked the OOM killer")),
        (None, Some(killed), _) => Some(format!("the OOM killer killed {killed}")),
        (None, None, Some(order)) => Some(format!("an allocation of pages of order {order} failed")),
        (None, None, None) => None,
    }
}

/// Directory entries: how many of them the kernel can free.
fn dentries(report: &Report, pasted: &Pasted) -> Option<Finding> {
    let state = pasted.dentry_state?;
    let line = report.lines.iter().find(|line| line.cache.name == "dentry" && !line.cache.bytes_only);
    // Unused ones as a part of the slabs.
    let bytes = line.map_or(0, |line| {
        let share = u128::from(line.split.bytes) * u128::from(state.unused) / u128::from(state.all.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    });
    let about = if bytes > 0 { format!(", about {}", size(bytes)) } else { String::new() };
    let negative = match state.negative {
        0 => String::new(),
        count => format!(
            " {} are negative ({}): names that were looked up and do not exist, kept so that the next look-up \
             is fast.",
            grouped(count),
            percent(count, state.all)
        ),
    };
    Some(machine(
        Kind::Dentries,
        bytes,
        format!(
            "of {} directory entries {} are unused ({}){about}: the kernel frees them by itself when it needs \
             memory, and until then they cost nothing else. Many are normal.{negative} A program that looks up \
             ever new names that do not exist makes more",
            grouped(state.all),
            grouped(state.unused),
            percent(state.unused, state.all)
        ),
    ))
}

/// The cache that dominates: whether the kernel can free it, and what one moment says of a leak.
fn held(report: &Report, worth: u64) -> Option<Finding> {
    const PERCENT: u64 = 25;
    let line = report.lines.iter().max_by_key(|line| line.split.bytes)?;
    let entry = line.what?;
    let bytes = line.split.bytes;
    if bytes < worth || bytes < report.total.bytes / 100 * PERCENT {
        return None;
    }
    let name = named(line);
    let grows = entry.grows_with.as_ref().map_or(String::new(), |with| format!(" It grows with {with}."));
    let used = format!("{} of its bytes are objects in use", percent(line.split.in_use, bytes));
    let once = if report.history.is_some() {
        ""
    } else {
        " One moment shows no growth: a second snapshot, hours later, does (--since)"
    };
    if line.reclaim.by_kernel() {
        let how = match line.reclaim {
            Reclaim::WithInodes => "hangs on inodes: the kernel frees it with the unused ones",
            _ => "is reclaimable: the kernel frees what is unused of it",
        };
        let text = format!("{name} {how} when it needs memory; no leak as long as it does.{grows}{once}");
        return Some(several(Kind::Benign, &[line], bytes, text.trim_end_matches('.').to_string()));
    }
    let cannot = entry.cannot_shrink_in(&line.cache.name, report.state.release);
    let cannot = cannot.map_or(String::new(), |why| format!(" {why}"));
    let verdict = match line.reclaim {
        Reclaim::Unknown => "it may be unreclaimable",
        _ => "no shrinker of the kernel frees it",
    };
    let suspect = match verdict::is_little(report) {
        true => ". It is too little to matter now",
        false => ": a suspect of a leak",
    };
    let text = format!("{name}: {used}, and {verdict}{suspect}.{cannot}{grows}{once}");
    Some(several(Kind::Suspect, &[line], bytes, text.trim_end_matches('.').to_string()))
}

/// Caches with nearly the same number of active objects.
pub(crate) struct Group<'a> {
    /// The caches, by their number of active objects.
    pub(crate) lines: Vec<&'a Line<'a>>,
    /// Bytes of all of them.
    pub(crate) bytes: u64,
    /// A cache with twice as many.
    twice: Option<&'a Line<'a>>,
}

/// The largest group of caches with nearly the same number of objects: one thing has one object in each.
pub(crate) fn group<'a>(report: &'a Report) -> Option<Group<'a>> {
    // Objects that make chance unlikely, caches that make a group, and the part of slab memory of it.
    const OBJECTS: u64 = 10_000;
    const CACHES: usize = 3;
    const PERCENT: u64 = 10;
    let mut lines: Vec<&Line> = report
        .lines
        .iter()
        .filter(|line| !line.cache.bytes_only && line.cache.active_objects >= OBJECTS)
        .collect();
    lines.sort_by_key(|line| line.cache.active_objects);
    let objects = |line: &Line| line.cache.active_objects;
    // Within 2 %.
    let near = |low: u64, high: u64| (high - low) * 50 <= high;
    let mut sums = vec![0u64];
    sums.extend(lines.iter().scan(0u64, |sum, line| {
        *sum = sum.saturating_add(line.split.bytes);
        Some(*sum)
    }));
    let group = |start: usize| {
        let count = lines[start..].partition_point(|line| near(objects(lines[start]), objects(line)));
        (start, start + count)
    };
    let groups = (0..lines.len()).map(group).filter(|(start, end)| end - start >= CACHES);
    let (start, end) =
        groups.max_by_key(|&(start, end)| (sums[end] - sums[start], std::cmp::Reverse(start)))?;
    let (bytes, most, least) = (sums[end] - sums[start], objects(lines[end - 1]), objects(lines[start]));
    if bytes < report.total.bytes / 100 * PERCENT {
        return None;
    }
    let twice = lines[end..].iter().copied().find(|line| {
        let half = objects(line) / 2;
        half >= least - least / 50 && half <= most + most / 50
    });
    Some(Group { lines: lines[start..end].to_vec(), bytes, twice })
}

impl Group<'_> {
    /// The names of the first caches in an order, and how many more there are.
    pub(crate) fn names(lines: &[&Line]) -> String {
        const NAMED: usize = 8;
        let mut names: Vec<String> = lines.iter().take(NAMED).map(|line| named(line)).collect();
        if lines.len() > NAMED {
            names.push(format!("{} more", grouped((lines.len() - NAMED) as u64)));
        }
        names.join(", ")
    }
}

/// The group, and how to find the code that has an object in each of its caches.
fn together(report: &Report) -> Option<Finding> {
    let Group { lines, bytes, twice } = group(report)?;
    let objects = |line: Option<&&Line>| line.map_or(0, |line| line.cache.active_objects);
    let twice = twice.map_or(String::new(), |line| format!(", and {} twice as many", named(line)));
    let kmalloc = lines.iter().any(|line| line.cache.name.starts_with("kmalloc"));
    let who = if kmalloc {
        ". kmalloc has no name for them: `perf record -e kmem:kmalloc -a -g -- sleep 10` while they grow names the \
         code"
    } else {
        ""
    };
    Some(several(
        Kind::Together,
        &lines,
        bytes,
        format!(
            "{} have nearly the same number of active objects ({} to {}){twice}: probably one kind of thing that \
             has an object in each, {} with all its parts{who}",
            Group::names(&lines),
            grouped(objects(lines.first())),
            grouped(objects(lines.last())),
            size(bytes)
        ),
    ))
}
