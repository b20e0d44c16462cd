//! The answer in one sentence: memory that the kernel takes back by itself, or that climbs and that only its
//! holder frees. It names the cache or the caches that have most.

pub use super::judgement::Judgement;
use super::judgement::{introduced, with_size};
use super::normal::Compared;
use super::{texts, uncounted};
use crate::find::{dentries, told, who};
use crate::measure::alike::{Alike, alike};
use crate::measure::history::{History, Least};
use crate::measure::partial::Partial;
use crate::measure::reclaim::Reclaim;
use crate::measure::{Line, Measured, named};
use crate::words::{capital, counted, part_of, percent, size};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::html::name_of;
use slablab_report::text::grouped;
use std::cmp::Reverse;

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
/// Per cent of the machine's memory from which on slabs that only their holders free are never no problem.
const MUCH_PERCENT: u64 = 10;
/// Per cent of the machine's memory from which on such slabs are compared with those of a boot, beside more
/// that the kernel frees.
const WORTH_PERCENT: u64 = 1;
/// Per cent of the machine's memory by which the kernel's other memory grew, if that is the answer.
const GREW_PERCENT: u64 = 1;
/// What one moment cannot tell.
const SECOND: &str = "takes a second snapshot";
/// Per cent of the total in slabtop's head below which the verdict says how much the text has: what is
/// missing could then have a cache that dominates, which takes 25 %.
const ENOUGH_PERCENT: u64 = 75;

/// The answer to the question of whether slab memory is a problem.
pub(crate) fn of(measured: &Measured) -> Verdict {
    let pasted = measured.state.dump.pasted.as_ref();
    let said = |(judgement, text)| Verdict { judgement, text, takes_second: false };
    let damaged = pasted.is_some_and(|pasted| !pasted.corruptions.is_empty());
    if let Some(history) = measured.history.as_ref().filter(|_| !damaged) {
        let (judgement, text) = of_growth(measured, history);
        // Two lists in one text, of times that are not known: that they are alike says little.
        let is_still =
            judgement == Judgement::Steady && history.hours.is_none() && !measured.lines.is_empty();
        if pasted.is_some() && is_still {
            let (judgement, now) = of_little(measured).unwrap_or_else(|| of_state(measured));
            let now = now.replace("; whether it climbs takes a second snapshot", "");
            let lead = measured.largest().and_then(|line| Some((line, line.growth.as_ref()?)));
            let lead = lead.map_or(String::new(), |(line, growth)| {
                // Of a cache whose bytes alone are known, they are its objects: slabs would round them to
                // pages.
                let now = line.cache.active_objects;
                let (first, last) = match line.cache.bytes_only {
                    true => (now.saturating_add_signed(growth.objects.saturating_neg()), now),
                    false => {
                        let point = |bytes: Option<&u64>| bytes.copied().unwrap_or(0);
                        (point(growth.points.first()), point(growth.points.last()))
                    }
                };
                let (first, last) = (grouped(first / 1024), grouped(last / 1024));
                format!(" ({}: {first}, then {last} KiB)", named(line))
            });
            let all = of_all(history);
            return said((judgement, format!("{now}; between the snapshots in the text {all}{lead}")));
        }
        let (judgement, text) = with_counters(measured, history, judgement, text);
        return said((judgement, text + &of_memory(measured)));
    }
    if let Some(found) = pasted.and_then(|pasted| texts::of(measured, pasted)) {
        return said(found);
    }
    let (judgement, text) = of_little(measured).unwrap_or_else(|| of_state(measured));
    // What a row that is lost has may be more than what was read.
    let is_doubted = matches!(judgement, Judgement::NoProblem | Judgement::NotReclaimable);
    let (judgement, text) = match lost_row(measured).filter(|_| is_doubted) {
        Some(lost) => (Judgement::Unknown, format!("unknown: {lost}. Without it: {text}")),
        None => (judgement, text),
    };
    let debugged = told::debugged(measured).filter(|_| pasted.is_some());
    let text = text + &debugged.map_or(String::new(), |(why, _)| format!(". {}", capital(&why)));
    let text = text
        + &uncounted::told(&measured.state.dump.meminfo).map_or(String::new(), |said| format!(". {said}"));
    let takes_second = judgement == Judgement::NotReclaimable || text.contains(SECOND);
    Verdict { judgement, text, takes_second }
}

/// A row of a table that could not be read: what it has may be the answer. meminfo counts it all the same.
fn lost_row(measured: &Measured) -> Option<String> {
    let (line, text) = measured.state.dump.pasted.as_ref()?.lost.first()?;
    measured
        .meminfo
        .is_none()
        .then(|| format!("line {line} looks like a row of the table and could not be read: `{text}`"))
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

fn of_growth(measured: &Measured, history: &History) -> (Judgement, String) {
    let worth = measured.worth;
    let sum = |benign: bool| {
        let groups = measured.grown.iter().filter(|group| group.benign == benign);
        groups.fold(0u64, |sum, group| sum.saturating_add(group.bytes))
    };
    let (climbed, cached, all) = (sum(false), sum(true), of_all(history));
    if let Some(found) = of_counters(measured, history, climbed) {
        return found;
    }
    if let Some(lead) = measured.grown.iter().find(|group| !group.benign && measured.is_worth(group)) {
        let most = match lead.names.len() {
            1 => lead.names[0].clone(),
            count => {
                format!("{} and {} that grew with it", lead.names[0], counted(count as u64 - 1, "cache"))
            }
        };
        let by = lead.who.as_ref().map_or(String::new(), |who| format!(", {}", who::briefly(who)));
        let text = format!(
            "climbing and not reclaimable: {} of growth in caches that no shrinker frees, most in {most}{by}; {all}",
            size(climbed)
        );
        return (Judgement::Climbing, text);
    }
    let nothing = measured.lines.is_empty();
    let (judgement, words) =
        match nothing || history.compared_bytes() < measured.total.bytes / 100 * MOST_PERCENT {
            true => (Judgement::Unknown, "unknown"),
            false if cached >= worth => (Judgement::NoProblem, "no problem"),
            false => (Judgement::Steady, "steady"),
        };
    let found = match cached >= worth {
        true => {
            let negative = dentries::more(measured).map_or(String::new(), |more| {
                format!(", with {} directory entries of names that do not exist", grouped(more))
            });
            format!("{} of growth is what the kernel frees when it needs memory{negative}", size(cached))
        }
        false => format!("no cache grew by {} or more", size(worth)),
    };
    (judgement, format!("{words}: {found}; {all}"))
}

/// The answer about slabs, after what grew of the kernel's other memory, if that is much.
fn with_counters(measured: &Measured, history: &History, of: Judgement, text: String) -> (Judgement, String) {
    let total = history.counter("MemTotal").map_or(0, |(_, now)| now);
    let much = (total / 100 * GREW_PERCENT).max(measured.worth);
    let Some(most) = measured.counters.first().filter(|most| total > 0 && most.grown() >= much) else {
        return (of, text);
    };
    let (grown, before, now) = (size(most.grown()), size(most.before), size(most.now));
    let span = history.span_words();
    if of == Judgement::Climbing {
        return (of, format!("{text}; {} grew too, by {grown} to {now}, which is no slabs", most.name));
    }
    let (name, what) = (most.name, most.what);
    let slabs = text.split_once(": ").map_or(text.as_str(), |(_, slabs)| slabs);
    let said = format!(
        "climbing, but not in slabs: {name} grew by {grown}{span}, from {before} to {now} ({what}). \
         Of slabs {slabs}"
    );
    (Judgement::Climbing, said)
}

/// How the counters of /proc/meminfo grew, where they say more than the caches: a text may have no caches,
/// and large kmallocs are in none.
fn of_counters(measured: &Measured, history: &History, climbed: u64) -> Option<(Judgement, String)> {
    let (before, now) = history.counter("SUnreclaim").or_else(|| history.counter("Slab"))?;
    let grown = now.saturating_sub(before);
    let span = history.span_words();
    let has_caches = !measured.lines.is_empty();
    if grown >= measured.worth.max(now / 100) && grown > climbed.saturating_mul(2) {
        let rate = match history.span_hours().filter(|_| history.has_rates()) {
            Some(hours) => format!(", {} an hour", size((grown as f64 / hours) as u64)),
            None => String::new(),
        };
        let caches = match (has_caches, climbed) {
            (false, _) => String::new(),
            (true, 0) => "; no cache has it: large kmallocs, which are in none".into(),
            (true, climbed) => format!("; caches have {} of it", size(climbed)),
        };
        let text = format!(
            "climbing and not reclaimable: unreclaimable slab memory grew by {}{span}, from {} to {}{rate} \
             (/proc/meminfo){caches}",
            size(grown),
            size(before),
            size(now)
        );
        return Some((Judgement::Climbing, text));
    }
    (!has_caches).then(|| {
        let (first, last) = history.counter("Slab").unwrap_or((before, now));
        let grew = match last.checked_sub(first) {
            Some(0) => "did not grow".to_string(),
            Some(grown) => format!("grew by {}", size(grown)),
            None => format!("shrank by {}", size(first - last)),
        };
        let what = "what the kernel does not free did not grow by something worth it";
        (Judgement::Steady, format!("steady: slab memory {grew}{span} (/proc/meminfo), and {what}"))
    })
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
    const FEW_PERCENT: u64 = 5;
    let total = measured.meminfo.as_ref().and_then(|meminfo| meminfo.total);
    if let Some(total) =
        total.filter(|total| known.is_none() && measured.all_bytes() < total / 100 * FEW_PERCENT)
    {
        let all = measured.all_bytes();
        let (part, share) = (part_of(all, total), percent(all, total));
        return (
            Judgement::NoProblem,
            format!("no problem: slabs have {part} of the machine's memory ({share})"),
        );
    }
    if free.saturating_add(stays) == 0 || of(Reclaim::Unknown) > all / 2 {
        let most = measured.largest().map_or(String::new(), |line| format!("; most is {}", with_size(line)));
        let text =
            format!("unknown: the input does not tell which slabs can be reclaimed{most}{part}{memory}");
        return (Judgement::Unknown, text);
    }
    let boot = Compared::of(measured.state, stays);
    let of_boot = |text: String| match &boot {
        Some(boot) => format!("{text}. That is {}", boot.words()),
        None => text,
    };
    let is_much = total.is_some_and(|total| stays >= total / 100 * MUCH_PERCENT);
    if let Some(total) = total.filter(|_| free >= stays && is_much) {
        let text = format!(
            "not reclaimable: {} ({} of the machine's memory) can only be freed by what holds it, beside {} that \
             the kernel frees when it needs memory; whether it climbs {SECOND}{part}",
            size(stays),
            percent(stays, total),
            size(free)
        );
        return (Judgement::NotReclaimable, of_boot(text) + &memory);
    }
    if free >= stays {
        let is_worth = total.is_some_and(|total| stays >= total / 100 * WORTH_PERCENT);
        let lines = measured.lines.iter().filter(|line| line.reclaim.by_kernel() && line.split.bytes > 0);
        let lead = lines.max_by_key(|line| line.split.bytes);
        let most = lead.map_or(String::new(), |line| format!("; most is {}", with_size(line)));
        let text = format!(
            "no problem: {} of {sum}, {}, is counted as reclaimable and has a shrinker: the kernel frees \
             unused entries when it needs memory{most}{part}{}",
            percent(free, all),
            size(free),
            of_rest(boot.as_ref().filter(|_| is_worth), stays)
        );
        return (Judgement::NoProblem, text + &memory);
    }
    let of_one = lead_of(measured).is_some_and(|line| line.split.bytes >= all / 100 * MOST_PERCENT);
    if let Some(boot) = boot.as_ref().filter(|boot| boot.fits() && !is_much && !of_one) {
        let most = lead_of(measured).map_or(String::new(), |line| format!("; most is {}", with_size(line)));
        let text = format!(
            "no problem: the {} that no shrinker frees are no more than a boot takes: {}{most}{memory}",
            size(stays),
            boot.boot()
        );
        return (Judgement::NoProblem, text);
    }
    let text =
        format!("not reclaimable: {}; whether it climbs {SECOND}{part}", holders(measured, sum, stays, all));
    (Judgement::NotReclaimable, of_boot(text) + &memory)
}

/// What is said of slabs that no shrinker frees, beside more that one does.
fn of_rest(boot: Option<&Compared>, stays: u64) -> String {
    boot.filter(|boot| boot.is_much()).map_or(String::new(), |boot| {
        format!(
            ". The {} that no shrinker frees are {}: whether they climb {SECOND}",
            size(stays),
            boot.words()
        )
    })
}

/// The cache with most of what no shrinker frees.
fn lead_of<'a, 'b>(measured: &'b Measured<'a>) -> Option<&'b Line<'a>> {
    let lines = measured.lines.iter().filter(|line| !line.reclaim.by_kernel());
    lines.max_by_key(|line| line.split.bytes)
}

/// What has the memory that nothing but its holder frees: one cache, caches that go together, or many.
fn holders(measured: &Measured, sum: &str, stays: u64, all: u64) -> String {
    let stuck = |line: &&Line| !line.reclaim.by_kernel();
    let lead = lead_of(measured);
    let is_most = |bytes: u64| bytes >= all / 100 * MOST_PERCENT;
    if let Some(line) = lead.filter(|line| is_most(line.split.bytes)) {
        let bytes = line.split.bytes;
        let pasted = measured.state.dump.pasted.is_some();
        let copies = told::copies(measured).filter(|_| line.cache.name == "kmem_cache");
        if let Some(why) = copies.or_else(|| told::no_suspect(line)).filter(|_| pasted) {
            let (of, percent) = (part_of(bytes, all), percent(bytes, all));
            return format!(
                "{} holds {of} ({percent}), and no shrinker frees it. {}",
                introduced(line),
                capital(&why)
            );
        }
        return format!(
            "{} holds {} ({}), and no shrinker frees it: suspect of a leak{}",
            introduced(line),
            part_of(bytes, all),
            percent(bytes, all),
            held_by(measured, line)
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
    let most = lead
        .map_or(String::new(), |line| format!(", most by {}{}", with_size(line), held_by(measured, line)));
    format!("{} of {sum}, {}, can only be freed by what holds it{most}", percent(stays, all), size(stays))
}

/// What holds the objects of a cache now, in a few words; empty if that is not known.
fn held_by(measured: &Measured, line: &Line) -> String {
    let is_it = |at: &usize| std::ptr::eq(&measured.lines[*at], line);
    let held = measured.held.iter().find(|held| held.lines.iter().any(is_it));
    held.map_or(String::new(), |held| format!(", {}", who::briefly(&held.who)))
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
    let Some(meminfo) = meminfo else { return String::new() };
    match meminfo.total.filter(|total| *total > 0) {
        Some(total) => {
            let part = 100.0 * meminfo.slab as f64 / total as f64;
            format!(". Slabs have {part:.1} % of the machine's {}", size(total))
        }
        // Of /proc/vmstat, or of a few lines: then the bytes are what is known.
        None if measured.state.dump.pasted.is_some() => format!(". Slabs have {}", size(meminfo.slab)),
        None => String::new(),
    }
}
