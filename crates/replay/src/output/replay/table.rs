//! Tables for people.

use super::columns::{self, Row};
use super::figures::{Sums, figures};
use super::{MARK_ABOVE_PERCENT, violations};
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome};
use slablab_report::column::Style;
use slablab_report::html::{Cell, Page};
use slablab_report::visible;
use slablab_trace::Metadata;

/// One row per figure, one column per engine.
pub fn engines_table(replay: &Replay) -> String {
    let sums: Vec<_> = replay.outcomes.iter().map(|outcome| Some(Sums::new(outcome))).collect();
    figures().text_rows(heads("", replay), &sums, Style::Units).print()
}

/// The heads of a table with an engine per column.
fn heads(first: &str, replay: &Replay) -> impl Iterator<Item = String> {
    let engines = replay.outcomes.iter().map(|outcome| outcome.engine().to_string());
    std::iter::once(first.to_string()).chain(engines)
}

/// The caches of one engine in the columns of `slabinfo -AD`, busiest first.
///
/// `Objects` counts as the kernel does: everything in CPU slabs is in use.
pub fn caches_table(outcome: &Outcome, limit: usize) -> String {
    let rows = rows(outcome, limit);
    let keys = [
        "objects",
        "alloc",
        "free",
        "fast_allocs",
        "fast_frees",
        "fallbacks",
        "order",
        "slabs",
        "slab_bytes",
        "loss",
        "mark",
    ];
    columns::caches()
        .text(("Name", &|row: &Row| Cell::Name(row.cache.name.clone())), &keys, &rows, Style::Kib)
        .print()
}

/// The `limit` busiest caches as rows.
pub(super) fn rows(outcome: &Outcome, limit: usize) -> Vec<Row<'_>> {
    busiest(outcome).into_iter().take(limit).map(|cache| Row::new(outcome, cache)).collect()
}

/// The caches, most events first.
pub(crate) fn busiest(outcome: &Outcome) -> Vec<&CacheOutcome> {
    let mut caches: Vec<_> = outcome.caches.iter().collect();
    caches.sort_by_key(|cache| {
        (
            std::cmp::Reverse(cache.counts.allocs() + cache.counts.frees()),
            std::cmp::Reverse(cache.end.frames),
            cache.index,
        )
    });
    caches
}

/// One cache: every counter that any engine has, side by side.
pub fn cache_table(replay: &Replay, name: &str) -> Option<String> {
    let row = |outcome| Outcome::cache(outcome, name).map(|cache| Row::new(outcome, cache));
    let rows: Vec<_> = replay.outcomes.iter().map(row).collect();
    let heads = heads(&rows.iter().flatten().next()?.cache.name, replay);
    Some(columns::caches().text_rows(heads, &rows, Style::Bytes).print())
}

/// What leads the answer: what the recording lacks, then the replay's warnings, one line each. They are the
/// first of the remarks.
fn leading(replay: &Replay) -> Vec<String> {
    let gaps = replay.metadata.gaps().into_iter().map(|gap| format!("INCOMPLETE: {gap}"));
    let lines = gaps.chain(replay.warnings.iter().map(|text| format!("warning: {text}")));
    lines.map(|line| visible::lines(&line).into_owned()).collect()
}

/// Says on a page, first of all, what the recording lacks.
pub(in crate::output) fn warn(metadata: &Metadata, page: &mut Page) {
    for gap in metadata.gaps() {
        page.warning(&format!("Incomplete: {gap}."));
    }
}

/// The limits of the result: first what the recording lacks and the replay's warnings, one line each, then
/// assumptions, and caches with many assumed events.
pub fn remarks(replay: &Replay) -> Vec<String> {
    let mut remarks = leading(replay);
    remarks.extend(replay.metadata.warnings.iter().cloned());
    remarks.extend(replay.machine.assumed.iter().map(|text| format!("assumed: {text}")));
    remarks.extend(replay.assumed.iter().map(|text| match text.starts_with("inferred: ") {
        true => text.clone(),
        false => format!("assumed: {text}"),
    }));
    if !replay.hotplug.is_empty() {
        remarks.push(plugged(replay));
    }
    if let Some(outcome) = replay.outcomes.first() {
        let marked: Vec<_> = busiest(outcome)
            .into_iter()
            .filter(|cache| cache.traffic.assumed_percent() > MARK_ABOVE_PERCENT)
            .map(|cache| cache.name.as_str())
            .collect();
        if !marked.is_empty() {
            remarks.push(format!(
                "more than {MARK_ABOVE_PERCENT} % of the events of these caches are not in the recording \
                 (bulk and RCU paths): {}",
                marked.join(", ")
            ));
        }
    }
    remarks.extend(replay.outcomes.iter().flat_map(violations::lines));
    remarks.iter().map(|remark| visible::lines(remark).into_owned()).collect()
}

/// The hotplug commands, and the rows they moved to other CPUs. Both are equal for all engines.
fn plugged(replay: &Replay) -> String {
    let commands: Vec<String> = replay.hotplug.iter().map(|command| command.to_string()).collect();
    let elsewhere = replay.outcomes.first().map_or_else(Default::default, |outcome| outcome.elsewhere);
    let mut text = format!(
        "assumed: {} rows of CPUs that were off ({}) ran on the next CPU of their node",
        elsewhere.rows,
        commands.join(", ")
    );
    if elsewhere.rows_other_node > 0 {
        text += &format!(", {} of them on the nearest node with a CPU", elsewhere.rows_other_node);
    }
    text
}
