//! Findings of growth: which caches grew, whether along a line, what for, and who holds the objects.

use super::finding::{Finding, Kind};
use super::made_of;
use super::who::held_by;
use crate::measure::grown::Grown;
use crate::measure::history::{Fit, Growth, History};
use crate::measure::{Line, Measured, named};
use crate::what::Entry;
use crate::words::{counted, listed, size};
use slablab_report::text::grouped;

/// Least part of the variance that a line must explain to make a suspect.
const SUSPECT_R2: f64 = 0.9;
/// Least snapshots, the examined state included, of which a line says something.
const SUSPECT_POINTS: usize = 3;

/// What grew, caches of equal growth in one finding; what the kernel does not free by itself first.
pub(crate) fn find(measured: &Measured, worth: u64) -> Vec<Finding> {
    let Some(history) = &measured.history else { return Vec::new() };
    let worthy = measured.grown.iter().filter(|group| measured.is_worth(group));
    let of_caches = worthy.map(|group| finding(measured, history, group));
    of_caches.chain(of_counters(measured, history, worth)).collect()
}

/// What grew of the kernel's memory that is in no cache.
fn of_counters(measured: &Measured, history: &History, worth: u64) -> Option<Finding> {
    let grown: Vec<_> = measured.counters.iter().filter(|counter| counter.grown() >= worth).collect();
    let most = grown.first()?;
    let words = grown.iter().map(|counter| {
        let (grew, before, now) = (size(counter.grown()), size(counter.before), size(counter.now));
        format!("{} by {grew}, from {before} to {now} ({})", counter.name, counter.what)
    });
    let words = words.collect::<Vec<_>>().join("; ");
    let text = format!("beside the slabs the kernel's own memory grew{}: {words}", history.span_words());
    Some(Finding::of_machine(Kind::KernelMemory, most.grown(), text))
}

fn finding(measured: &Measured, history: &History, group: &Grown) -> Finding {
    let lines: Vec<&Line> = group.lines.iter().map(|at| &measured.lines[*at]).collect();
    let (kind, course) = course(history, group, lines[0].growth.as_ref());
    let (names, bytes, span) = (listed(&group.names), size(group.bytes), history.span_words());
    let objects = grouped(group.objects.unsigned_abs());
    let more = if group.objects < 0 { "fewer" } else { "more" };
    let mut text = match lines.len() {
        1 if lines[0].growth.as_ref().is_some_and(|growth| growth.is_new) => {
            format!("{names}, new or not in the earlier snapshot, has {bytes} and {objects} active objects")
        }
        1 => format!("{names} grew by {bytes}{span}, with {objects} active objects {more}"),
        count if group.spreads => {
            let others = counted(count as u64 - 1, "cache");
            format!(
                "{names} grew by {objects} objects, and {others} grew with it, up to {bytes} together{span}"
            )
        }
        count => {
            format!("{names} grew together, by {objects} objects each: {bytes} in {count} caches{span}")
        }
    };
    text += &course;
    if group.benign {
        text += "; the kernel frees unused ones when it needs memory";
    } else {
        text += "; no shrinker frees them";
        if !group.arrays.is_empty() {
            let arrays: Vec<String> = group.arrays.iter().map(|at| named(&measured.lines[*at])).collect();
            text += &format!(" ({}: arrays of cgroups, one for each of their slabs)", listed(&arrays));
        }
        text += &group.what.map_or(String::new(), about);
        text += &group.who.as_ref().map_or(String::new(), |who| format!(". Who: {}", held_by(measured, who)));
        text += &made_of::module(measured, &lines).map_or(String::new(), |made| format!(". {made}"));
    }
    text += &made_of::code(measured, &group.lines).map_or(String::new(), |code| format!(". Code: {code}"));
    Finding::of_caches(kind, &lines, group.bytes, text)
}

/// What kind of growth this is, and how fast.
fn course(history: &History, group: &Grown, growth: Option<&Growth>) -> (Kind, String) {
    let points = history.points();
    let suspect = if group.benign { Kind::CacheGrowth } else { Kind::Leak };
    let grew = if group.benign { Kind::CacheGrowth } else { Kind::Growth };
    let possibly = if group.benign { "along a line" } else { "possibly a leak" };
    match growth.and_then(|growth| growth.fit) {
        Some(Fit { bytes_per_hour, error: Some(error), r2: Some(r2), points }) => {
            let along = points >= SUSPECT_POINTS && r2 >= SUSPECT_R2 && bytes_per_hour > 2.0 * error;
            if along && group.objects > 0 {
                let (rate, error) = (size(bytes_per_hour as u64), size(error as u64));
                let text = format!(
                    ": {possibly}, {rate} an hour, plus or minus {error} (R2 {r2:.3} of {points} snapshots)"
                );
                return (suspect, text);
            }
            let rate = size(bytes_per_hour.max(0.0) as u64);
            (grew, format!(", {rate} an hour, but not along a line (R2 {r2:.3} of {points} snapshots)"))
        }
        Some(fit) => {
            let rate = size(fit.bytes_per_hour.max(0.0) as u64);
            (grew, format!(", {rate} an hour; two snapshots fit any line"))
        }
        None if group.steady == Some(true) => {
            (suspect, format!(": {possibly}, more in each of {points} snapshots"))
        }
        None if group.steady == Some(false) => {
            (grew, format!(", but not in each interval of {points} snapshots"))
        }
        None => (grew, String::new()),
    }
}

/// What the objects are, and with what they grow.
fn about(entry: &Entry) -> String {
    let what = entry.what.split_once(". ").map_or(entry.what.as_str(), |(first, _)| first);
    let grows = entry.grows_with.as_ref().map_or(String::new(), |with| format!("; grows with {with}"));
    format!(". {}{grows}", what.trim_end_matches('.'))
}
