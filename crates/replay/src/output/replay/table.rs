//! The tables of a replay's text.

use super::columns::{self, Row};
use super::figures::{Sums, figures};
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome};
use slablab_report::Answer;
use slablab_report::column::{Columns, Style};
use slablab_report::html::Cell;
use slablab_report::text::{counted, cut};

/// Characters of a cache's name.
const NAME: usize = 31;

/// Columns of caches that are left out on a narrow terminal, in this order.
const LEFT_OUT: [&str; 6] = ["Fallb", "O", "assumed", "Loss K", "Objects", "Free"];

/// All engines side by side, then `top` caches of each.
pub(super) fn engines(answer: Answer, replay: &Replay, top: usize) -> Answer {
    let answer = side_by_side(answer, figures(), ("", replay), &sums(replay), (Style::Units, false));
    replay.outcomes.iter().fold(answer, |answer, outcome| caches(answer, outcome, top, &|_| true))
}

/// What differs between two engines, with the change; then `top` of the caches that differ, of each.
pub(super) fn patched(answer: Answer, replay: &Replay, top: usize) -> Answer {
    let [first, .., last] = replay.outcomes.as_slice() else { return answer };
    let answer = match differences(replay).is_empty() {
        true => answer,
        false => side_by_side(answer, figures(), ("", replay), &sums(replay), (Style::Units, true)),
    };
    let differs = |name: &str| {
        let of = |outcome: &Outcome| outcome.cache(name).map(|cache| (cache.counts.clone(), cache.end));
        of(first) != of(last)
    };
    match first.caches.iter().any(|cache| differs(&cache.name)) {
        true => replay.outcomes.iter().fold(answer, |answer, outcome| caches(answer, outcome, top, &differs)),
        false => answer,
    }
}

/// What differs between the first engine and the last: its name, and both values.
pub(super) fn differences(replay: &Replay) -> Vec<(String, [String; 2])> {
    figures().differences(&sums(replay), Style::Units)
}

fn sums(replay: &Replay) -> Vec<Option<Sums<'_>>> {
    replay.outcomes.iter().map(|outcome| Some(Sums::new(outcome))).collect()
}

/// Every counter of one cache that any engine has, side by side.
pub(super) fn cache(answer: Answer, replay: &Replay, rows: &[Option<Row>]) -> Answer {
    let name = rows.iter().flatten().next().map_or("", |row| row.cache.name.as_str());
    side_by_side(answer, columns::caches(), (&cut(name, NAME), replay), rows, (Style::Bytes, false))
}

/// A line per column, an engine per column; what is the same under all engines becomes one sentence.
fn side_by_side<R>(
    answer: Answer,
    columns: Columns<R>,
    (first, replay): (&str, &Replay),
    rows: &[Option<R>],
    (style, change): (Style, bool),
) -> Answer {
    let (columns, same) = columns.differing(rows, style);
    let engines = replay.outcomes.iter().map(|outcome| outcome.engine().to_string());
    let heads = std::iter::once(first.to_string()).chain(engines);
    let table = match change {
        true => columns.text_rows_and_change(heads.chain(["change".to_string()]), rows, style),
        false => columns.text_rows(heads, rows, style),
    };
    let answer = answer.table(table.heads_in_lines().names(1..replay.outcomes.len() + 1), &[]);
    match same.is_empty() {
        true => answer,
        false => answer.line(format!("The same under all engines: {}.", same.join("; "))),
    }
}

/// The caches of one engine in the columns of `slabinfo -AD`, busiest first.
///
/// `Objects` counts as the kernel does: everything in CPU slabs is in use.
fn caches(answer: Answer, outcome: &Outcome, top: usize, is_listed: &dyn Fn(&str) -> bool) -> Answer {
    let answer = answer.heading(outcome.engine().to_string());
    let all = outcome.caches.iter().filter(|cache| is_listed(&cache.name)).count();
    if top == 0 {
        return answer.line(format!("Caches: none of {all} listed (--top 0)"));
    }
    let listed = busiest(outcome).into_iter().filter(|cache| is_listed(&cache.name));
    let rows: Vec<Row> = listed.take(top).map(|cache| Row::new(outcome, cache)).collect();
    let keys = ["objects", "alloc", "free", "fast_allocs", "fast_frees", "fallbacks"];
    let mut keys = [&keys[..], &["order", "slabs", "slab_bytes", "loss"]].concat();
    if rows.iter().any(|row| row.marked().is_some()) {
        keys.push("mark");
    }
    let name = |row: &Row| Cell::Name(cut(&row.cache.name, NAME));
    let table = columns::caches().text(("Name", &name), &keys, &rows, Style::Kib);
    let answer = answer.table(table, &LEFT_OUT);
    match all.saturating_sub(top) {
        0 => answer,
        more => answer.line(format!("... and {} (--top)", counted(more as u64, "more cache"))),
    }
}

/// One cache under each engine; `None` under one that does not have it.
pub(super) fn of_cache<'a>(replay: &'a Replay, name: &str) -> Vec<Option<Row<'a>>> {
    let row = |outcome: &'a Outcome| outcome.cache(name).map(|cache| Row::new(outcome, cache));
    replay.outcomes.iter().map(row).collect()
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
