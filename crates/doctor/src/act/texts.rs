//! What messages and other texts say by themselves: reports of the OOM killer, failed allocations, damaged
//! objects, counters of one memory cgroup, call sites.

use super::judgement::{Judgement, with_size};
use crate::find::pasted::what_happened;
use crate::measure::Measured;
use crate::what::{Base, Damaged, Failure, Users, blocks};
use crate::words::{counted, part_of, percent, size};
use slablab_readers::pasted::{Kind, MemoryReport, Pasted};

/// Per cent of memory from which on unreclaimable slabs are the cause if nothing has more.
const MOST_PERCENT: u64 = 50;
/// Per cent below which slabs are not the answer to a report.
const LITTLE_PERCENT: u64 = 10;
/// Per cent of memory from which on a cache whose slab could not be had is the shortage itself.
const SHORTAGE_PERCENT: u64 = 25;

/// The answer of a text that has one besides its caches.
pub(super) fn of(measured: &Measured, pasted: &Pasted) -> Option<(Judgement, String)> {
    if let Some(first) = Damaged::all(&pasted.corruptions, measured.state.release).first() {
        let more = match pasted.corruptions.len() {
            1 => String::new(),
            many => format!("; {} below", counted(many as u64 - 1, "further report")),
        };
        return Some((Judgement::Corruption, format!("{}{more}", first.verdict())));
    }
    let report = Users::telling(&pasted.reports, measured.state.page_size);
    let found = report.and_then(|last| of_report(measured, last)).or_else(|| of_table(measured, pasted));
    let found = found.map(|(judgement, text)| (judgement, text + &further(pasted, report)));
    let found = found.or_else(|| of_failure(measured, pasted)).or_else(|| of_cgroup(pasted));
    let found = found.or_else(|| of_spl(measured, pasted)).or_else(|| of_unreclaimable(pasted));
    found.or_else(|| of_others(measured, pasted))
}

/// The other reports of the text, if there are any that tell something.
fn further(pasted: &Pasted, of: Option<&MemoryReport>) -> String {
    let others = pasted.reports.iter().filter(|report| report.tells()).count().saturating_sub(1) as u64;
    match of.filter(|_| others > 0) {
        Some(report) => {
            format!("; that is the report of line {}, beside {}", report.line, counted(others, "other"))
        }
        None => String::new(),
    }
}

/// A slab that could not be had. With a large part of memory the cache itself is the shortage.
fn of_failure(measured: &Measured, pasted: &Pasted) -> Option<(Judgement, String)> {
    let memory = pasted.meminfo.get("MemTotal").map(|kb| kb.saturating_mul(1024));
    let failures = Failure::all(&pasted.failures, measured.state.release, measured.state.page_size);
    let failures: Vec<Failure> = failures.into_iter().map(|failure| failure.beside(memory)).collect();
    let more = match failures.len() {
        0 | 1 => String::new(),
        many => format!("; {}", counted(many as u64 - 1, "other failure")),
    };
    let widest = failures.iter().max_by_key(|failure| failure.bytes().unwrap_or(0))?;
    if let Some(text) = widest.shortage(SHORTAGE_PERCENT) {
        return Some((Judgement::NotReclaimable, format!("not reclaimable: {text}{more}")));
    }
    if !measured.lines.is_empty() || measured.meminfo.is_some() {
        return None;
    }
    let most = failures.iter().rev().max_by_key(|failure| failure.count())?;
    Some((Judgement::Unknown, format!("{}{more}", most.verdict())))
}

/// A report of the OOM killer or of a failed allocation of pages.
fn of_report(measured: &Measured, last: &MemoryReport) -> Option<(Judgement, String)> {
    let happened = what_happened(last).unwrap_or_else(|| "a report of the kernel about memory".into());
    if last.of_cgroup {
        return Some(of_limit(last, &happened));
    }
    let Some(users) = Users::of(last, measured.state.page_size) else {
        return Some(without_counters(last, &happened));
    };
    let share = users.share();
    if let Some(found) = of_order(measured, last, &happened, &users) {
        return Some(found);
    }
    if let Some(found) = of_low_memory(&happened, &users) {
        return Some(found);
    }
    if let Some(found) = of_reclaimable(&happened, &users) {
        return Some(found);
    }
    let is_most = users.unreclaimable >= users.base / 100 * MOST_PERCENT;
    let is_little = users.unreclaimable < users.base / 100 * LITTLE_PERCENT;
    // The counters of a text that is cut are no whole: slabs are the first of what is counted.
    if users.slabs_are_first() && users.from == Base::Counted && !is_little {
        let text = format!(
            "not reclaimable: {happened}; slabs are the largest user that the text counts: {share} are unreclaimable \
             slabs, {} with the reclaimable ones; {}",
            percent(users.slabs, users.base),
            users.words()
        );
        return Some((Judgement::NotReclaimable, text));
    }
    if users.slabs_are_first() && !is_little && (is_most || last.has_table) {
        let most = most(measured, &users);
        let text = format!(
            "not reclaimable, and slabs are the cause: {happened}; {share} are unreclaimable slabs{most}{}",
            also(&users)
        );
        return Some((Judgement::NotReclaimable, text));
    }
    if is_little {
        let text = format!(
            "no problem of slabs: {happened}, but only {share} are unreclaimable slabs{}",
            others(&users)
        );
        return Some((Judgement::NoProblem, text));
    }
    if users.ranked.len() < 2 {
        let text = format!(
            "not reclaimable: {happened}; {share} are unreclaimable slabs, and the text does not count what has the rest"
        );
        return Some((Judgement::NotReclaimable, text));
    }
    let place = if users.slabs_are_first() {
        "and slabs are the first of what is counted"
    } else {
        "but slabs are not the largest user"
    };
    let text =
        format!("not reclaimable, {place}: {happened}; {share} are unreclaimable slabs; {}", users.words());
    Some((Judgement::NotReclaimable, text))
}

/// A 32-bit machine whose low memory slabs fill: what is free above it is no use to the kernel.
fn of_low_memory(happened: &str, users: &Users) -> Option<(Judgement, String)> {
    let low = users.low.filter(|low| users.unreclaimable >= low / 100 * LITTLE_PERCENT)?;
    let (part, share) = (part_of(users.unreclaimable, low), percent(users.unreclaimable, low));
    let cause = match users.unreclaimable >= low / 100 * MOST_PERCENT {
        true => "not reclaimable, and slabs are the cause",
        false => "not reclaimable",
    };
    let text = format!(
        "{cause}: {happened}; {part} of low memory ({share}) are unreclaimable slabs, and slabs cannot be in high memory, \
         whatever is free there; {}",
        users.words()
    );
    Some((Judgement::NotReclaimable, text))
}

/// Slabs have most and are reclaimable, and the kernel ran out of memory all the same.
fn of_reclaimable(happened: &str, users: &Users) -> Option<(Judgement, String)> {
    let reclaimable = users.slabs.saturating_sub(users.unreclaimable);
    let is_much = users.slabs >= users.base / 100 * MOST_PERCENT || users.from == Base::Counted;
    if !users.slabs_are_first() || reclaimable <= users.unreclaimable || !is_much {
        return None;
    }
    let text = format!(
        "not reclaimed, and slabs are the cause: {happened}; {} ({}) are slabs, {} of them counted as reclaimable, which \
         the kernel did not free: their users hold them (open files, mounts, inodes with pages), or they could not be \
         freed in time (a caller without __GFP_FS); {} are unreclaimable{}",
        part_of(users.slabs, users.base),
        percent(users.slabs, users.base),
        size(reclaimable),
        size(users.unreclaimable),
        also(users)
    );
    Some((Judgement::NotReclaimable, text))
}

/// Which cache has most, and of how much of the slabs the list tells.
fn most(measured: &Measured, users: &Users) -> String {
    let Some(line) = measured.largest() else { return String::new() };
    let list = measured.total.bytes;
    match list >= users.unreclaimable / 2 {
        true => format!(", most in {}", with_size(line)),
        false => format!("; the list in the text has only {} of them", part_of(list, users.unreclaimable)),
    }
}

/// The next user, where it has much too.
fn also(users: &Users) -> String {
    let next = users.first_other().filter(|(_, bytes)| *bytes >= users.base / 100 * LITTLE_PERCENT);
    next.map_or(String::new(), |(name, bytes)| format!("; next are {name} with {}", size(bytes)))
}

fn others(users: &Users) -> String {
    if users.ranked.len() < 2 { String::new() } else { format!("; {}", users.words()) }
}

/// A failed allocation of an order that no free block has, although pages are free: fragmentation.
fn of_order(
    measured: &Measured,
    last: &MemoryReport,
    happened: &str,
    users: &Users,
) -> Option<(Judgement, String)> {
    let order = last.failed_order.filter(|order| *order > 0)?;
    let bytes = measured.state.page_size.checked_shl(order)?;
    let (fitting, free) = blocks(last, bytes)?;
    if fitting > 0 || free < bytes {
        return None;
    }
    let text = format!(
        "no problem of slabs, but fragmentation: {happened} ({}){} with {} free, no block of {} or more among it; {} \
         are unreclaimable slabs",
        size(bytes),
        for_whom(last),
        size(free),
        size(bytes),
        users.share()
    );
    Some((Judgement::NoProblem, text))
}

fn for_whom(last: &MemoryReport) -> String {
    caller(last).map_or(String::new(), |caller| format!(", asked for by {caller},"))
}

/// The code that asked, in words.
fn caller(last: &MemoryReport) -> Option<String> {
    let mut callers = last.callers();
    let first = callers.next()?;
    let by = callers.next().map_or(String::new(), |second| format!(", called by {second}"));
    let is_network = last
        .callers()
        .take(4)
        .any(|name| name.contains("skb") || name.contains("napi") || name.contains("_rx_"));
    let path = if is_network { " (network receive path)" } else { "" };
    Some(format!("{first}{by}{path}"))
}

/// A report whose counters are not in the text.
fn without_counters(last: &MemoryReport, happened: &str) -> (Judgement, String) {
    const NEEDED: &str = "the text ends before the counters: the lines from \"Mem-Info:\" on are needed \
                          (slab_unreclaimable:, free:, \"pages RAM\", \"Unreclaimable slab info\")";
    if let Some(text) = for_a_slab(last) {
        return (Judgement::Unknown, format!("{text}; {NEEDED}"));
    }
    // Of the end of a report: its counters stand before it.
    if last.invoked_by.is_none() && last.failed_order.is_none() {
        let text = format!(
            "unknown what holds memory: {happened}; the text begins after the counters: the lines of the report before it \
             are needed, from \"invoked oom-killer\" and \"Mem-Info:\" on"
        );
        return (Judgement::Unknown, text);
    }
    let caller = for_whom(last);
    (
        Judgement::Unknown,
        format!("unknown what holds memory: {happened}{}; {NEEDED}", caller.trim_end_matches(',')),
    )
}

/// What it means that the pages were for a new slab.
fn for_a_slab(last: &MemoryReport) -> Option<String> {
    let order = last.failed_order.filter(|_| last.for_slab())?;
    let caller = caller(last).map_or(String::new(), |caller| format!(" for {caller}"));
    let atomic =
        last.gfp_names.as_deref().is_some_and(|names| names.contains("ATOMIC") || names.contains("NOWAIT"));
    let cannot = if atomic { ", whose caller could not wait (atomic)" } else { "" };
    let pages = counted(1 << order.min(20), "page");
    Some(match order {
        0 => format!(
            "an allocation failed: not a single page for a new slab{caller}{cannot}; no free page was left above the \
             reserve (vm.min_free_kbytes, or all free pages are CMA's), it is not fragmentation"
        ),
        1..=3 => format!(
            "an allocation failed: no {pages} in one block (order {order}) for a new slab{caller}{cannot}; the kernel \
             tries a smaller slab next if the object fits one"
        ),
        _ => format!(
            "an allocation failed: no {pages} in one block (order {order}, {}) for a new slab{caller}{cannot}; an object \
             that takes such a slab is too large for a slab cache: kvmalloc, or a mempool, would not need the block",
            size(4096u64.saturating_mul(1 << order.min(30)))
        ),
    })
}

/// A memory cgroup at its limit: its own counters tell.
fn of_limit(last: &MemoryReport, happened: &str) -> (Judgement, String) {
    let counted = last.cgroup.as_ref().filter(|cgroup| cgroup.usage.is_some() || !cgroup.bytes.is_empty());
    let Some(cgroup) = counted else {
        let name =
            last.cgroup.as_ref().and_then(|cgroup| cgroup.name.as_deref()).unwrap_or("a memory cgroup");
        let text = format!(
            "unknown what holds memory: {happened}: {name} was at its limit, not the machine; its counters, which stand \
             before in the report, are needed (\"memory: usage\", \"Memory cgroup stats\")"
        );
        return (Judgement::Unknown, text);
    };
    let name = cgroup.name.as_deref().unwrap_or("a memory cgroup");
    let usage =
        cgroup.usage.map_or(String::new(), |(usage, limit)| format!(" ({} of {})", size(usage), size(limit)));
    let of = |keys: &[&str]| keys.iter().find_map(|key| cgroup.bytes.get(*key).copied());
    let slabs = of(&["slab_unreclaimable"]);
    // Version 1 counts shared memory in the cache.
    let shmem = of(&["shmem"]).unwrap_or(0);
    let file = of(&["file", "cache"]).unwrap_or(0).saturating_sub(shmem);
    let kernel = cgroup.kernel.or_else(|| of(&["kernel"])).or_else(|| of(&["slab"])).unwrap_or(0);
    let mut ranked = vec![
        ("processes", of(&["anon", "rss"]).unwrap_or(0)),
        ("shmem", shmem),
        ("files", file),
        ("kernel memory", kernel),
    ];
    ranked.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    ranked.retain(|(_, bytes)| *bytes > 0);
    let all =
        cgroup.usage.map(|(usage, _)| usage).or_else(|| ranked.first().map(|(_, bytes)| *bytes)).unwrap_or(0);
    let words: Vec<String> = ranked
        .iter()
        .map(|(name, bytes)| format!("{name} {} ({})", size(*bytes), percent(*bytes, all)))
        .collect();
    let slabs = match (of(&["slab_reclaimable"]).filter(|bytes| *bytes > 0), slabs) {
        (_, None) => String::new(),
        (None, Some(stays)) => format!("; of kernel memory {} are unreclaimable slabs", size(stays)),
        (Some(free), Some(stays)) => format!(
            "; of kernel memory {} are reclaimable slabs{}, {} are unreclaimable slabs",
            size(free),
            if free > stays {
                ", which the kernel did not free in time or whose users hold them"
            } else {
                ""
            },
            size(stays)
        ),
    };
    let (kind, answer) = match ranked.first() {
        Some(("kernel memory", _)) => (Judgement::NotReclaimable, "kernel memory is the answer".to_string()),
        Some((first, _)) => (
            Judgement::NoProblem,
            format!("{first} is the answer, not slabs")
                .replace("processes is", "processes are")
                .replace("files is", "files are"),
        ),
        None => (Judgement::Unknown, "its counters are not in the text".into()),
    };
    let lead = if kind == Judgement::NoProblem { "no problem of slabs: " } else { "" };
    (kind, format!("{lead}the limit of {name} was reached{usage}: {}; {answer}{slabs}", words.join(", ")))
}

/// Rows of a report's list without its counters: the kernel prints it only where slabs have most.
fn of_table(measured: &Measured, pasted: &Pasted) -> Option<(Judgement, String)> {
    let has_counters = pasted.reports.iter().any(|report| report.slab_unreclaimable.is_some());
    let table = pasted.tables.iter().find(|table| table.kind == Kind::Oom).filter(|_| !has_counters)?;
    let line = measured.largest()?;
    let rows = counted(table.last().rows.len() as u64, "row");
    let text = format!(
        "not reclaimable: the kernel lists unreclaimable caches only where they have more pages than all processes \
         and files together; the text has {rows} of that list, most in {}, {} of it in use",
        with_size(line),
        percent(line.split.in_use.min(line.split.bytes), line.split.bytes)
    );
    Some((Judgement::NotReclaimable, text))
}

/// memory.stat of one cgroup.
fn of_cgroup(pasted: &Pasted) -> Option<(Judgement, String)> {
    let stat = &pasted.cgroup_stat;
    if stat.is_empty() {
        return None;
    }
    let of = |keys: &[&str]| keys.iter().find_map(|key| stat.get(*key).copied());
    let (free, stays) = (of(&["slab_reclaimable"]), of(&["slab_unreclaimable"]));
    let Some((free, stays)) = free.zip(stays) else {
        let text = "unknown: memory.stat of cgroup version 1 does not count slabs; memory.kmem.usage_in_bytes beside it \
                    does, and memory.kmem.slabinfo (3.8 to 5.8)";
        return Some((Judgement::Unknown, text.into()));
    };
    let kernel = of(&["kernel"]).unwrap_or(free.saturating_add(stays)).max(free.saturating_add(stays));
    let user = of(&["anon"]).unwrap_or(0).saturating_add(of(&["file"]).unwrap_or(0));
    let all = kernel.saturating_add(user);
    let rest = format!(
        "{} of {} of kernel memory of the cgroup are reclaimable slabs ({}), {} are not; processes and files have {}",
        precise(free),
        precise(kernel),
        percent(free, kernel),
        size(stays),
        size(user)
    );
    let before = pasted.cgroup_before.as_ref().and_then(|before| before.get("slab_unreclaimable").copied());
    if let Some((before, grown)) = before.and_then(|before| Some((before, stays.checked_sub(before)?)))
        && grown >= all / 100
        && grown > 0
    {
        let text = format!(
            "climbing and not reclaimable: unreclaimable slabs of the cgroup grew by {}, from {} to {}, between the first \
             and the last memory.stat of the text; {rest}",
            size(grown),
            size(before),
            size(stays)
        );
        return Some((Judgement::Climbing, text));
    }
    if stays >= all / 100 * LITTLE_PERCENT && stays > free {
        return Some((
            Judgement::NotReclaimable,
            format!("not reclaimable: {rest}; a second memory.stat tells whether it climbs"),
        ));
    }
    let counts = "reclaimable slabs count into the cgroup's working set, and the kernel frees them before it kills a \
                  process at the limit";
    Some((Judgement::NoProblem, format!("no problem: {rest}; {counts}")))
}

/// Bytes with two places, where one would say that a part is the whole.
fn precise(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    if bytes < GIB { size(bytes) } else { format!("{:.2} GiB", bytes as f64 / GIB as f64) }
}

/// Caches of SPL alone: memory of ZFS, beside the kernel's own.
fn of_spl(measured: &Measured, pasted: &Pasted) -> Option<(Judgement, String)> {
    if pasted.tables.is_empty() || pasted.tables.iter().any(|table| table.kind != Kind::Spl) {
        return None;
    }
    let line = measured.largest()?;
    let (used, all) = (line.split.in_use, line.split.bytes);
    let text = format!(
        "unknown what ZFS can give back: its own slabs (SPL, beside /proc/slabinfo) have {}, most in {}, of which {} is in \
         use ({}); the rest is free objects inside of slabs. The ARC's shrinker frees buffers when memory is short \
         (zfs_arc_max limits it)",
        size(measured.total.bytes),
        with_size(line),
        size(used.min(all)),
        percent(used.min(all), all)
    );
    Some((Judgement::Unknown, text))
}

/// `SUnreclaim` without `Slab`: what no shrinker frees is known, and nothing else.
fn of_unreclaimable(pasted: &Pasted) -> Option<(Judgement, String)> {
    let bytes = |name: &str| pasted.meminfo.get(name).map(|kb| kb.saturating_mul(1024));
    let stays = bytes("SUnreclaim").filter(|_| bytes("Slab").is_none() && pasted.tables.is_empty())?;
    let Some(total) = bytes("MemTotal").filter(|total| *total >= stays) else {
        let text =
            format!("unknown how much of the machine that is: {} are unreclaimable slabs", size(stays));
        return Some((Judgement::Unknown, text));
    };
    let (judgement, lead) = match stays >= total / 100 * LITTLE_PERCENT {
        true => (Judgement::NotReclaimable, "not reclaimable"),
        false => (Judgement::NoProblem, "no problem"),
    };
    let (part, share) = (part_of(stays, total), percent(stays, total));
    let text = format!("{lead}: {part} of memory ({share}) are unreclaimable slabs (SUnreclaim)");
    Some((judgement, text))
}

/// Texts of other tools, where nothing else is in the text.
fn of_others(measured: &Measured, pasted: &Pasted) -> Option<(Judgement, String)> {
    if !measured.lines.is_empty() || measured.meminfo.is_some() || pasted.dentry_state.is_some() {
        return None;
    }
    if let Some(most) = pasted.alloc_sites.iter().max_by_key(|site| site.bytes) {
        let module = most.module.as_ref().map_or(String::new(), |module| format!(" [{module}]"));
        let text = format!(
            "unknown what climbs: {} of /proc/allocinfo, most in {}{module}, {} ({}:{}); `slablab sites FILE` lists them, \
             and what grew with --since",
            counted(pasted.alloc_sites.len() as u64, "line"),
            most.function,
            size(most.bytes.unsigned_abs()),
            most.file,
            most.line
        );
        return Some((Judgement::Unknown, text));
    }
    pasted.asides.answer().map(|text| {
        let judgement =
            if text.starts_with("memory is not short") { Judgement::NoProblem } else { Judgement::Unknown };
        (judgement, text)
    })
}
