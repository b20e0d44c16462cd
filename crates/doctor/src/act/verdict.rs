//! The answer in one sentence: memory that the kernel takes back by itself, or that climbs and that only its
//! holder frees. It names the cache or the caches that have most.

use crate::find::pasted::what_happened;
use crate::measure::alike::{Alike, alike};
use crate::measure::history::{History, Least};
use crate::measure::partial::Partial;
use crate::measure::reclaim::Reclaim;
use crate::measure::{Line, Measured, named};
use crate::what::{Entry, Failure};
use crate::words::{counted, part_of, percent, size};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::pasted::{MemoryReport, Pasted};
use slablab_report::html::name_of;
use slablab_report::text::grouped;
use std::cmp::Reverse;

/// The kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It grew, and the kernel does not free what grew.
    Climbing,
    /// What is large, or grew, is what the kernel frees when it needs memory; or slabs are too little to
    /// matter.
    #[serde(rename = "benign_cache")]
    NoProblem,
    /// It did not grow.
    Steady,
    /// Most of it can only be freed by its holders; whether it grows takes a second snapshot.
    NotReclaimable,
    /// The input does not tell what can be reclaimed, or what grew.
    Unknown,
}

/// An answer and its words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The kind.
    #[serde(rename = "kind")]
    pub judgement: Judgement,
    /// The sentence.
    pub text: String,
    /// Whether a second snapshot would tell more.
    #[serde(skip)]
    pub takes_second: bool,
}

/// Per cent of all slabs from which on one cache, or one group of caches, is the answer.
const MOST_PERCENT: u64 = 50;
/// Per cent of the total in slabtop's head below which the verdict says how much the text has: what is
/// missing could then have a cache that dominates, which takes 25 %.
const ENOUGH_PERCENT: u64 = 75;

/// The answer to the question of whether slab memory is a problem.
pub(crate) fn of(measured: &Measured) -> Verdict {
    let pasted = measured.state.dump.pasted.as_ref();
    let said = |(judgement, text)| Verdict { judgement, text, takes_second: false };
    if let Some(history) = &measured.history {
        let (judgement, text) = of_growth(measured, history);
        return said((judgement, text + &of_memory(measured)));
    }
    let messages = pasted.and_then(|pasted| of_messages(measured, pasted));
    if let Some(found) = messages.or_else(|| of_little(measured)) {
        return said(found);
    }
    let (judgement, text) = of_state(measured);
    Verdict { judgement, text, takes_second: judgement == Judgement::NotReclaimable }
}

fn of_little(measured: &Measured) -> Option<(Judgement, String)> {
    let all = measured.all_bytes();
    if all == 0 || !measured.is_little() {
        return None;
    }
    let of = match measured.meminfo.as_ref().and_then(|meminfo| meminfo.total) {
        Some(total) => {
            format!("slabs have {} of the machine's memory ({})", part_of(all, total), percent(all, total))
        }
        None => {
            format!("{} have {}", measured.sum_name(), size(all)).replace("slab memory have", "slabs have")
        }
    };
    let cgroup = match measured.state.dump.pasted.as_ref().is_some_and(|pasted| pasted.of_cgroup) {
        true => " to the machine (a limit of the memory cgroup may be lower still)",
        false => "",
    };
    let most = measured.largest().map_or(String::new(), |line| format!("; most is {}", with_size(line)));
    Some((Judgement::NoProblem, format!("no problem: {of}, too little to matter{cgroup}{most}")))
}

/// A cache's name and its purpose in a few words.
fn introduced(line: &Line) -> String {
    let purpose = line.what.map(purpose);
    purpose.map_or_else(|| named(line), |purpose| format!("{} ({purpose})", named(line)))
}

fn with_size(line: &Line) -> String {
    format!("{}, {}", introduced(line), size(line.split.bytes))
}

/// What a cache is for: the first words of the sentence that says it, or its subsystem.
fn purpose(entry: &Entry) -> String {
    const LONGEST: usize = 50;
    let sentence = entry.what.split_once(". ").map_or(entry.what.as_str(), |(first, _)| first);
    let sentence = sentence.trim_end_matches('.');
    let end = match sentence.len() <= LONGEST {
        true => Some(sentence.len()),
        false => {
            sentence.match_indices([':', ',', ';']).map(|(at, _)| at).take_while(|at| *at <= LONGEST).last()
        }
    };
    let words = end.map_or(entry.subsystem.as_str(), |end| &sentence[..end]);
    // A name in capitals stays as it is.
    let mut chars = words.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain([second]).chain(chars).collect()
        }
        _ => words.to_string(),
    }
}

/// Messages of the kernel answer by themselves: what memory was short for, and whether slabs are the cause.
fn of_messages(measured: &Measured, pasted: &Pasted) -> Option<(Judgement, String)> {
    if let Some(found) = pasted.reports.last().and_then(|last| of_report(measured, last)) {
        return Some(found);
    }
    if !measured.lines.is_empty() || measured.meminfo.is_some() {
        return None;
    }
    let failures = Failure::all(&pasted.failures, measured.state.release, measured.state.page_size);
    let most = failures.iter().rev().max_by_key(|failure| failure.count())?;
    let more = match failures.len() {
        1 => String::new(),
        many => format!("; {}", counted(many as u64 - 1, "other failure")),
    };
    Some((Judgement::Unknown, format!("{}{more}", most.verdict())))
}

/// A report of the OOM killer: slabs are the cause if they have most of memory, or if the kernel says so by
/// printing the table of caches. They are not if they have little.
fn of_report(measured: &Measured, last: &MemoryReport) -> Option<(Judgement, String)> {
    const LITTLE: u64 = 10;
    let bytes = |pages: u64| pages.saturating_mul(measured.state.page_size);
    let (slabs, ram) = (last.slab_unreclaimable.map(bytes)?, last.ram.map(bytes));
    let happened = what_happened(last)?;
    let of = match ram {
        Some(ram) => format!("{} of memory ({})", part_of(slabs, ram), percent(slabs, ram)),
        None => size(slabs),
    };
    if last.has_table || ram.is_some_and(|ram| slabs >= ram / 100 * MOST_PERCENT) {
        let most = measured.largest().map_or(String::new(), |line| format!(", most in {}", with_size(line)));
        let text = format!(
            "not reclaimable, and slabs are the cause: {happened}; {of} are unreclaimable slabs{most}"
        );
        return Some((Judgement::NotReclaimable, text));
    }
    let little = ram.is_some_and(|ram| slabs < ram / 100 * LITTLE);
    little.then(|| {
        let text = format!("no problem of slabs: {happened}, but only {of} are unreclaimable slabs");
        (Judgement::NoProblem, text)
    })
}

fn of_growth(measured: &Measured, history: &History) -> (Judgement, String) {
    let worth = measured.worth;
    let sum = |benign: bool| {
        let groups = measured.grown.iter().filter(|group| group.benign == benign);
        groups.fold(0u64, |sum, group| sum.saturating_add(group.bytes))
    };
    let (climbed, cached, all) = (sum(false), sum(true), of_all(history));
    if let Some(lead) = measured.grown.iter().find(|group| !group.benign && group.bytes >= worth) {
        let most = match lead.names.len() {
            1 => lead.names[0].clone(),
            count => {
                format!("{} and {} that grew with it", lead.names[0], counted(count as u64 - 1, "cache"))
            }
        };
        let text = format!(
            "climbing and not reclaimable: {} of growth in caches that no shrinker frees, most in {most}; {all}",
            size(climbed)
        );
        return (Judgement::Climbing, text);
    }
    let (judgement, words) = match history.compared_bytes() < measured.total.bytes / 100 * MOST_PERCENT {
        true => (Judgement::Unknown, "unknown"),
        false if cached >= worth => (Judgement::NoProblem, "no problem"),
        false => (Judgement::Steady, "steady"),
    };
    let found = match cached >= worth {
        true => format!("{} of growth is what the kernel frees when it needs memory", size(cached)),
        false => format!("no cache grew by {} or more", size(worth)),
    };
    (judgement, format!("{words}: {found}; {all}"))
}

/// How all caches whose growth is known grew; which snapshot has a part of them, if one has.
fn of_all(history: &History) -> String {
    let (bytes, span) = (history.total().bytes, history.span_words());
    let grew = match bytes {
        0 => format!("did not grow{span}"),
        ..0 => format!("shrank by {}{span}", size(bytes.unsigned_abs())),
        1.. => format!("grew by {}{span}", size(bytes.unsigned_abs())),
    };
    let Some(Least { state, partial, compared, of }) = history.least() else {
        return format!("slab memory {grew}");
    };
    let (name, has) = (name_of(&state.path), grouped(state.caches.len() as u64));
    let of = counted(of as u64, "cache");
    let cut = match partial {
        Partial::Few | Partial::Boot => format!("{name} is cut off: it has {has} of {of}"),
        Partial::Input => format!("{name} may have a part of the caches: {has}, and another snapshot {of}"),
    };
    let snapshots = if history.points() == 2 { "both snapshots have" } else { "every snapshot has" };
    match compared {
        0 => format!("{cut}, none of which can be compared"),
        1 => format!("the one cache that {snapshots} {grew}; {cut}"),
        many => format!("the {} that {snapshots} {grew}; {cut}", counted(many as u64, "cache")),
    }
}

fn of_state(measured: &Measured) -> (Judgement, String) {
    let of = |kind| measured.bytes_of(kind);
    let held = of(Reclaim::Holder);
    let known = measured.meminfo.as_ref().and_then(|meminfo| {
        Some((meminfo.reclaimable?.saturating_sub(held), meminfo.unreclaimable?.saturating_add(held)))
    });
    let (free, stays) = known.unwrap_or_else(|| {
        let by_kernel = [Reclaim::Shrinker, Reclaim::PageCache, Reclaim::WithInodes].map(of);
        let free = by_kernel.into_iter().fold(0, u64::saturating_add);
        (free, held.saturating_add(of(Reclaim::No)))
    });
    // The whole has caches too of which the input does not tell who frees them.
    let all = if known.is_some() { free.saturating_add(stays) } else { measured.total.bytes };
    let (sum, memory) =
        (if known.is_some() { "slab memory" } else { measured.sum_name() }, of_memory(measured));
    let part = of_head(measured);
    let covered = |percent: u64| measured.in_head().is_none_or(|head| all >= head / 100 * percent);
    if known.is_none() && !covered(MOST_PERCENT) {
        let most =
            measured.largest().map_or(String::new(), |line| format!("; most of that is {}", with_size(line)));
        return (Judgement::Unknown, format!("unknown: {part}, and so not what holds most{most}"));
    }
    let part = if covered(ENOUGH_PERCENT) || known.is_some() { String::new() } else { format!("; {part}") };
    // Slabs of caches that are known in no way tell nothing.
    if free.saturating_add(stays) == 0 || of(Reclaim::Unknown) > all / 2 {
        let most = measured.largest().map_or(String::new(), |line| format!("; most is {}", with_size(line)));
        let text =
            format!("unknown: the input does not tell which slabs can be reclaimed{most}{part}{memory}");
        return (Judgement::Unknown, text);
    }
    if free >= stays {
        let lines = measured.lines.iter().filter(|line| line.reclaim.by_kernel() && line.split.bytes > 0);
        let lead = lines.max_by_key(|line| line.split.bytes);
        let most = lead.map_or(String::new(), |line| format!("; most is {}", with_size(line)));
        let text = format!(
            "no problem: {} of {sum}, {}, is counted as reclaimable and has a shrinker: the kernel frees \
             unused entries when it needs memory{most}{part}{memory}",
            percent(free, all),
            size(free)
        );
        return (Judgement::NoProblem, text);
    }
    let text = format!(
        "not reclaimable: {}; whether it climbs takes a second snapshot{part}{memory}",
        holders(measured, sum, stays, all)
    );
    (Judgement::NotReclaimable, text)
}

/// What has the memory that nothing but its holder frees: one cache, caches that go together, or many.
fn holders(measured: &Measured, sum: &str, stays: u64, all: u64) -> String {
    let stuck = |line: &&Line| !line.reclaim.by_kernel();
    let lead = measured.lines.iter().filter(stuck).max_by_key(|line| line.split.bytes);
    let is_most = |bytes: u64| bytes >= all / 100 * MOST_PERCENT;
    if let Some(line) = lead.filter(|line| is_most(line.split.bytes)) {
        let bytes = line.split.bytes;
        return format!(
            "{} holds {} ({}), and no shrinker frees it: suspect of a leak",
            introduced(line),
            part_of(bytes, all),
            percent(bytes, all)
        );
    }
    let group = measured.state.dump.pasted.as_ref().and_then(|_| alike(measured));
    if let Some(group) = group.filter(|group| is_most(group.bytes) && group.lines.iter().all(stuck)) {
        let mut lines = group.lines;
        lines.sort_by_key(|line| (Reverse(line.split.bytes), &line.cache.name));
        return format!(
            "{} hold {} ({}) with nearly the same number of objects, probably one kind of thing that has an \
             object in each, and no shrinker frees it: suspect of a leak",
            Alike::names(&lines),
            part_of(group.bytes, all),
            percent(group.bytes, all)
        );
    }
    let most = lead.map_or(String::new(), |line| format!(", most by {}", with_size(line)));
    format!("{} of {sum}, {}, can only be freed by what holds it{most}", percent(stays, all), size(stays))
}

/// How much of the total in slabtop's head the caches of the text have.
fn of_head(measured: &Measured) -> String {
    let (rows, head) = (measured.total.bytes, measured.in_head().unwrap_or(0));
    let of = part_of(rows, head);
    format!("the rows in the text have {of} ({}) by the head of slabtop", percent(rows, head))
}

/// Slab memory as a part of all.
fn of_memory(measured: &Measured) -> String {
    let meminfo = measured.meminfo.as_ref();
    let total = meminfo.and_then(|meminfo| Some((meminfo.slab, meminfo.total.filter(|total| *total > 0)?)));
    total.map_or(String::new(), |(slab, total)| {
        let part = 100.0 * slab as f64 / total as f64;
        format!(". Slabs have {part:.1} % of the machine's {}", size(total))
    })
}
