//! The diagnosis as text, JSON, CSV, Prometheus metrics and a page.

mod columns;
mod csv;
mod json;
mod page;
mod prometheus;
mod table;

pub use csv::{doctor_csv, doctor_frame};
pub use json::doctor_json;
pub use page::doctor_page;
pub(super) use page::machine;
pub use prometheus::doctor_prometheus;
pub use table::{Shown, doctor_table};

use crate::act::Report;
use crate::measure::reclaim::Reclaim;
use crate::measure::split::Split;
use crate::state::{Missing, State};
use crate::what::Failure;
use crate::words::{counted, size};
use std::path::Path;

/// A part of the split.
pub(crate) struct Part {
    /// Its name for people.
    pub(crate) name: &'static str,
    /// Its key for programs.
    pub(crate) key: &'static str,
    /// How many other parts it is inside of.
    pub(crate) depth: usize,
    /// When tables and pages show it.
    when: When,
    /// Its bytes; `None` if the input does not tell.
    get: fn(&Split) -> Option<i64>,
}

/// When tables and pages show a part. JSON and CSV always have it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// If it is not zero.
    Rare,
    /// If the input tells what CPUs hold: else the bounds say nothing.
    ParkedKnown,
}

const fn part(depth: usize, name: &'static str, key: &'static str, get: fn(&Split) -> Option<i64>) -> Part {
    Part { name, key, depth, when: When::Always, get }
}

const fn rare(depth: usize, name: &'static str, key: &'static str, get: fn(&Split) -> Option<i64>) -> Part {
    Part { name, key, depth, when: When::Rare, get }
}

const fn parked(name: &'static str, key: &'static str, get: fn(&Split) -> Option<i64>) -> Part {
    Part { name, key, depth: 2, when: When::ParkedKnown, get }
}

fn whole(bytes: u64) -> Option<i64> {
    Some(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// The split of one cache or of all, in the order in which it adds up.
pub(crate) const PARTS: [Part; 12] = [
    part(0, "in use", "in_use_bytes", |split| whole(split.in_use)),
    parked("parked with CPUs, at least", "parked_low_bytes", |split| whole(split.parked.low)),
    parked("parked with CPUs, at most", "parked_high_bytes", |split| whole(split.parked.high)),
    part(0, "loss", "loss_bytes", |split| Some(split.loss())),
    part(1, "free in slabs", "free_bytes", |split| whole(split.free)),
    part(1, "tail of slabs", "tail_bytes", |split| whole(split.tail)),
    rare(2, "of smaller slabs, no memory", "tail_overstated_bytes", |split| whole(split.overstated)),
    part(1, "alignment", "alignment_bytes", |split| whole(split.metadata?.alignment)),
    part(1, "free pointers outside", "pointer_bytes", |split| whole(split.metadata?.pointer)),
    part(1, "debugging", "debugging_bytes", |split| whole(split.metadata?.debugging)),
    rare(1, "counted twice, in a race", "raced_bytes", |split| Some(split.raced.min(0))),
    part(0, "all caches", "slab_bytes", |split| whole(split.bytes)),
];

/// The parts that people see, each with its bytes.
pub(crate) fn parts(split: &Split) -> impl Iterator<Item = (&'static Part, i64)> {
    let known = PARTS.iter().filter_map(|part| Some((part, (part.get)(split)?)));
    known.filter(|(part, bytes)| match part.when {
        When::Always => true,
        When::Rare => *bytes != 0,
        When::ParkedKnown => !split.parked_unknown,
    })
}

/// What /proc/meminfo counts as reclaimable, the part of that which no shrinker frees, and what it counts as
/// not reclaimable.
pub(crate) fn meminfo_parts(report: &Report) -> impl Iterator<Item = (&'static str, u64)> {
    let meminfo = report.measured.meminfo.as_ref();
    let held = report.measured.bytes_of(Reclaim::Holder);
    let parts = [
        ("SReclaimable", meminfo.and_then(|meminfo| meminfo.reclaimable)),
        ("  of it held, no shrinker", Some(held).filter(|held| *held > 0)),
        ("SUnreclaim", meminfo.and_then(|meminfo| meminfo.unreclaimable)),
    ];
    parts.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)))
}

/// The limits of the answer: files that could not be read, and assumptions.
pub(crate) fn evidence(report: &Report) -> Vec<String> {
    let mut said: Vec<String> = report.measured.state.found();
    if report.measured.unknown_sizes > 0 {
        said.push(format!(
            "the object size without padding is not in the input for {} of {} caches: their alignment and \
             metadata count as in use and free, and their loss is against objsize",
            report.measured.unknown_sizes,
            report.measured.lines.len()
        ));
    }
    if report.measured.meminfo.is_none() && report.measured.state.dump.pasted.is_none() {
        said.push("/proc/meminfo is not in the input: large kmallocs cannot be told".into());
    }
    let lacking =
        |missing: &Missing| format!("{}: {}; unknown: {}", missing.file, missing.why, missing.costs);
    said.extend(report.measured.missing().map(lacking));
    said.extend(report.measured.state.assumed.iter().map(|text| format!("assumed: {text}")));
    if let Some(history) = &report.measured.history {
        said.push(match &history.hours {
            Some(hours) => format!(
                "growth is over {:.3} hours and {} snapshots, by {}{}",
                hours[hours.len() - 1],
                history.points(),
                history.times_from,
                match history.has_rates() {
                    true => "",
                    false => ": too short a time for growth an hour, which takes 10 minutes",
                }
            ),
            None => format!("growth has no rate: {}", history.times_from),
        });
    }
    said
}

/// The commands that make missing files readable, each once.
pub(crate) fn remedies<'a>(report: &'a Report) -> Vec<&'a str> {
    let mut commands: Vec<&str> =
        report.measured.missing().filter_map(|missing| missing.command.as_deref()).collect();
    commands.sort();
    commands.dedup();
    commands
}

/// The messages of the kernel in the input.
pub(crate) fn messages(report: &Report) -> Vec<Failure> {
    let state = report.measured.state;
    let failures = state.dump.pasted.iter().flat_map(|pasted| &pasted.failures).cloned();
    Failure::all(&failures.collect::<Vec<_>>(), state.release, state.page_size)
}

/// The examined input in titles: its path, or the name of the running machine.
pub(crate) fn title(state: &State) -> String {
    match (state.path == Path::new("/"), &state.dump.host) {
        (true, Some(host)) => host.clone(),
        (true, None) => "this machine".into(),
        (false, _) => state.path.display().to_string(),
    }
}

/// One line that describes the examined input.
pub(crate) fn subject(report: &Report) -> String {
    let state = report.measured.state;
    let mut words = vec![match &state.dump.release {
        Some(release) => format!("Linux {release}"),
        None => "an unknown kernel".into(),
    }];
    if let Some(cpus) = state.cpus {
        words.push(counted(u64::from(cpus.online), "CPU"));
    }
    if !state.dump.nodes.is_empty() {
        words.push(counted(state.dump.nodes.len() as u64, "node"));
    }
    words.push(format!("{} K pages", state.page_size / 1024));
    words.push(counted(report.measured.lines.len() as u64, "cache"));
    words.join(", ")
}

/// What an action saves, in words.
pub(crate) fn saving((low, high): (i64, i64)) -> String {
    let bytes = |bytes: i64| size(bytes.unsigned_abs());
    match (low, high) {
        (..0, ..=0) => format!("takes up to {}", bytes(low)),
        (..0, _) => format!("between {} more and {} less", bytes(low), bytes(high)),
        (0, _) => format!("saves up to {}", bytes(high)),
        _ if low == high => format!("saves {}", bytes(low)),
        _ => format!("saves {} to {}", bytes(low), bytes(high)),
    }
}
