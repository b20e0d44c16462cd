//! Findings about a text: what it says beyond a list of caches, and what its one moment can tell.

use super::finding::{Finding, Kind};
use super::told;
use crate::measure::alike::{Alike, alike};
use crate::measure::reclaim::Reclaim;
use crate::measure::{Line, Measured, named};
use crate::what::{Damaged, Failure, Users};
use crate::words::{capital, counted, listed, percent, size};
use slablab_readers::allocinfo::AllocSite;
use slablab_readers::pasted::{MemoryReport, Pasted};
use slablab_report::text::grouped;

/// What is worth saying of a text; nothing for other inputs.
pub(crate) fn find(measured: &Measured, worth: u64) -> Vec<Finding> {
    let Some(pasted) = &measured.state.dump.pasted else { return Vec::new() };
    let mut found: Vec<Finding> = failures(measured, pasted);
    let report = Users::telling(&pasted.reports, measured.state.page_size);
    found.extend(report.and_then(|last| of_report(measured, last)));
    found.extend(corruptions(measured, pasted));
    found.extend(call_sites(pasted));
    found.extend(unread(pasted));
    found.extend(
        told::debugged(measured).map(|(text, bytes)| Finding::of_machine(Kind::Debugging, bytes, text)),
    );
    found.extend(held(measured, worth));
    found.extend(together(measured));
    found
}

/// Damaged or lost objects. The words of the explanation are in a section of their own.
fn corruptions(measured: &Measured, pasted: &Pasted) -> Vec<Finding> {
    const MOST: usize = 10;
    let all = Damaged::all(&pasted.corruptions, measured.state.release);
    let say = |one: &Damaged| Finding::of_machine(Kind::Corruption, 0, one.summary());
    all.iter().take(MOST).map(say).collect()
}

/// The lines of code with most memory, of /proc/allocinfo or of the kernel's report.
fn call_sites(pasted: &Pasted) -> Option<Finding> {
    const MOST: usize = 3;
    let mut sites: Vec<&AllocSite> = pasted.alloc_sites.iter().collect();
    sites.sort_by_key(|site| std::cmp::Reverse(site.bytes));
    let first = sites.first()?;
    let say = |site: &&AllocSite| {
        let module = site.module.as_ref().map_or(String::new(), |module| format!(" [{module}]"));
        format!("{}{module} {}", site.function, size(site.bytes.unsigned_abs()))
    };
    let words: Vec<String> = sites.iter().take(MOST).map(say).collect();
    let text = format!(
        "the {} of code that the text lists hold most in {}; `slablab sites FILE` lists all",
        counted(sites.len() as u64, "line"),
        listed(&words)
    );
    Some(Finding::of_machine(Kind::CallSites, first.bytes.unsigned_abs(), text))
}

/// Rows that could not be read: what they have is missing.
fn unread(pasted: &Pasted) -> Option<Finding> {
    let (line, text) = pasted.lost.first()?;
    let text = format!(
        "{} inside of a table could not be read, the first is line {line}: `{text}`. What they have is in no sum here",
        counted(pasted.lost.len() as u64, "line")
    );
    Some(Finding::of_machine(Kind::UnreadRow, 0, text))
}

/// Slabs that the kernel could not get. The words of the answer are in a section of their own.
fn failures(measured: &Measured, pasted: &Pasted) -> Vec<Finding> {
    let failures = Failure::all(&pasted.failures, measured.state.release, measured.state.page_size);
    let say = |failure: &Failure| {
        Finding::of_machine(Kind::AllocFailed, failure.bytes().unwrap_or(0), failure.summary())
    };
    failures.iter().map(say).collect()
}

/// The OOM killer, or an allocation of pages that failed.
fn of_report(measured: &Measured, last: &MemoryReport) -> Option<Finding> {
    let page = measured.state.page_size;
    let users = Users::of(last, page);
    let has = users.as_ref().map_or(String::new(), |users| match users.ranked.len() {
        0 | 1 => String::new(),
        _ => format!("; by its own counters: {}", users.words()),
    });
    let slabs = last.slab_unreclaimable.map(|pages| pages.saturating_mul(page));
    let of =
        last.ram.map_or(String::new(), |pages| format!(" of {} of memory", size(pages.saturating_mul(page))));
    let who = what_happened(last).unwrap_or_else(|| "a report of the kernel".into());
    let of_cgroup = if last.of_cgroup { "; a memory cgroup was at its limit, not the machine" } else { "" };
    let table = if last.has_table {
        let first = users.as_ref().is_none_or(Users::slabs_are_first);
        match first {
            true => {
                "; the kernel lists unreclaimable caches only where they have more pages than all processes and files \
                 together: slabs are the cause"
            }
            false => {
                "; the kernel lists unreclaimable caches where they have more pages than all processes and files \
                 together, but slabs are not what has most"
            }
        }
    } else {
        ""
    };
    let bytes = slabs?;
    let reclaimable = last
        .slab_reclaimable
        .map_or(String::new(), |pages| format!(", {} reclaimable", size(pages.saturating_mul(page))));
    let text =
        format!("{who}: {} of unreclaimable slabs{reclaimable}{of}{of_cgroup}{table}{has}", size(bytes));
    Some(Finding::of_machine(Kind::OutOfMemory, bytes, text))
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

/// The cache that dominates: whether the kernel can free it, and what one moment says of a leak.
fn held(measured: &Measured, worth: u64) -> Option<Finding> {
    const PERCENT: u64 = 25;
    let line = measured.lines.iter().max_by_key(|line| line.split.bytes)?;
    let entry = line.what?;
    let bytes = line.split.bytes;
    if bytes < worth || bytes < measured.total.bytes / 100 * PERCENT {
        return None;
    }
    let name = named(line);
    let grows = entry.grows_with.as_ref().map_or(String::new(), |with| format!(" It grows with {with}."));
    let used = format!("{} of its bytes are objects in use", percent(line.split.in_use, bytes));
    let once = if measured.history.is_some() {
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
        return Some(Finding::of_caches(
            Kind::Benign,
            &[line],
            bytes,
            text.trim_end_matches('.').to_string(),
        ));
    }
    let cannot = entry.cannot_shrink_in(&line.cache.name, measured.state.release);
    let cannot = cannot.map_or(String::new(), |why| format!(" {why}"));
    let verdict = match line.reclaim {
        Reclaim::Unknown => "it may be unreclaimable",
        _ => "no shrinker of the kernel frees it",
    };
    let weak = told::no_suspect(line).or_else(|| told::copies(measured).filter(|_| name == "kmem_cache"));
    let suspect = match (measured.is_little(), weak) {
        (true, _) => ". It is too little to matter now".to_string(),
        (false, Some(why)) => format!(". {}", capital(&why)),
        (false, None) => ": a suspect of a leak".to_string(),
    };
    let text = format!("{name}: {used}, and {verdict}{suspect}.{cannot}{grows}{once}");
    Some(Finding::of_caches(Kind::Suspect, &[line], bytes, text.trim_end_matches('.').to_string()))
}

/// The group, and how to find the code that has an object in each of its caches.
fn together(measured: &Measured) -> Option<Finding> {
    let Alike { lines, bytes, twice } = alike(measured)?;
    let objects = |line: Option<&&Line>| line.map_or(0, |line| line.cache.active_objects);
    let twice = twice.map_or(String::new(), |line| format!(", and {} twice as many", named(line)));
    let kmalloc = lines.iter().any(|line| line.cache.name.starts_with("kmalloc"));
    let who = if kmalloc {
        ". kmalloc has no name for them: `perf record -e kmem:kmalloc -a -g -- sleep 10` while they grow names the \
         code"
    } else {
        ""
    };
    Some(Finding::of_caches(
        Kind::Together,
        &lines,
        bytes,
        format!(
            "{} have nearly the same number of active objects ({} to {}){twice}: probably one kind of thing that \
             has an object in each, {} with all its parts{who}",
            Alike::names(&lines),
            grouped(objects(lines.first())),
            grouped(objects(lines.last())),
            size(bytes)
        ),
    ))
}
