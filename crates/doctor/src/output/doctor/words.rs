//! Words that text and page share: titles, the limits of the answer, savings.

use crate::act::Report;
use crate::act::verdict::Judgement;
use crate::measure::history::Least;
use crate::measure::partial::Partial;
use crate::state::{Missing, State};
use crate::what::{Damaged, Failure};
use crate::whatif::normal::Normal;
use crate::words::{counted, size};
use slablab_report::html::name_of;
use slablab_report::text::grouped;
use slablab_report::visible;
use std::path::Path;

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
    let state = report.measured.state;
    if report.verdict.judgement == Judgement::NotReclaimable && state.dump.pasted.is_none() {
        let why = Normal::of(state).err();
        said.extend(
            why.map(|why| format!("how much a machine takes that has only booted is unknown: {why}")),
        );
    }
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
            None => format!(
                "growth has no rate: {}; {} is taken for the later one",
                history.times_from,
                visible::path(&report.measured.state.path)
            ),
        });
        said.extend(history.least().map(|least| left_out(report, &least)));
    }
    said
}

/// The caches whose growth is unknown, and why.
fn left_out(report: &Report, least: &Least) -> String {
    let caches = report.measured.lines.len();
    let name = visible::path(&least.state.path);
    let why = match least.partial {
        Partial::Few => "has less than half of the caches of another snapshot".into(),
        Partial::Boot => "lacks caches that the kernel has from its boot on".to_string(),
        Partial::Input => "ends too early, or is a text with some of the caches".into(),
    };
    let out = counted((caches - least.compared) as u64, "cache");
    format!(
        "growth is unknown of {out} of {}: new, or not in the snapshot {name}, which {why}",
        grouped(caches as u64)
    )
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
    let memory = state.dump.meminfo.get("MemTotal").map(|kb| kb.saturating_mul(1024));
    let all = Failure::all(&failures.collect::<Vec<_>>(), state.release, state.page_size);
    all.into_iter().map(|failure| failure.beside(memory)).collect()
}

/// The reports of damaged objects in the input.
pub(crate) fn damaged<'a>(report: &Report<'a>) -> Vec<Damaged<'a>> {
    let state = report.measured.state;
    state
        .dump
        .pasted
        .as_ref()
        .map_or_else(Vec::new, |pasted| Damaged::all(&pasted.corruptions, state.release))
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
    let caches = report.measured.lines.len() as u64;
    words.push(if caches == 0 { "caches unknown".into() } else { counted(caches, "cache") });
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

/// Where the state came from, for titles.
pub(crate) fn machine(state: &State) -> String {
    if state.path == Path::new("/") { title(state) } else { name_of(&state.path) }
}
