//! The blocks of a replay's page.

use super::basis::recorded;
use super::columns::{self, Row};
use super::figures::{Sums, figures};
use super::table;
use crate::replay::Replay;
use crate::replay::outcome::{CacheOutcome, Outcome, Split};
use crate::replay::timeline::Sample;
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Bar, Bars, Lines, Scale, Series, Shape};
use slablab_report::html::{Cell, Head, Table};

/// Times in the table of the time line, the end included.
const TIMES: usize = 11;

/// The page's blocks: memory over time, where it goes, the caches that waste most, `top` of them, and every
/// counter.
pub(super) fn blocks(answer: Answer, replay: &Replay, top: usize) -> Answer {
    let every = replay.outcomes.iter().map(|outcome| outcome.timeline.every_ns).max().unwrap_or(0);
    let mut answer = answer
        .facts(recorded(replay))
        .section("Slab memory over time")
        .figure("Bytes in slabs, and in allocated objects.", memory_lines(replay), memory_table(replay))
        .paragraph(&format!(
            "Sampled every {}. A peak between samples is not in the figure; the peak in the table of engines \
             below is exact.",
            Scale::Seconds.print(every as f64 / 1e9)
        ))
        .section("Where slab memory goes at the end")
        .figure("All slabs by what is in them, for each engine.", split_bars(replay), split_table(replay))
        .section("Caches that waste most");
    for outcome in &replay.outcomes {
        answer = waste_figure(answer, outcome, top);
    }
    answer = answer
        .section("Engines")
        .page_table("All caches together.", engines_table(replay))
        .section("Busiest caches");
    for outcome in &replay.outcomes {
        let caption = format!(
            "{}: the {} caches with most events, in the terms of slabinfo -AD.",
            outcome.engine(),
            top.min(outcome.caches.len())
        );
        answer = answer.page_table(&caption, caches_table(outcome, top));
    }
    answer
}

/// One cache under all engines.
pub(super) fn cache_block(answer: Answer, replay: &Replay, rows: &[Option<Row>]) -> Answer {
    let name = rows.iter().flatten().next().map_or("", |row| row.cache.name.as_str());
    let table = columns::caches().html_rows(heads(replay), rows);
    answer.section(name).page_table("One cache under each engine.", table)
}

fn heads(replay: &Replay) -> impl Iterator<Item = Head> {
    let engines = replay.outcomes.iter().map(|outcome| Head::number(&outcome.engine().to_string()));
    std::iter::once(Head::text("")).chain(engines)
}

fn memory_lines(replay: &Replay) -> Lines {
    let line = |outcome: &Outcome, name: String, of: fn(&Sample) -> u64| Series {
        name,
        points: outcome
            .timeline
            .samples
            .iter()
            .map(|sample| (sample.time_ns as f64 / 1e9, of(sample) as f64))
            .collect(),
        band: Vec::new(),
    };
    let slabs = replay
        .outcomes
        .iter()
        .map(|outcome| line(outcome, format!("{} slabs", outcome.engine()), |sample| sample.slab_bytes));
    let mut series: Vec<Series> = slabs.collect();
    // Every engine holds the same objects; those of the first stand for all.
    series.extend(
        replay
            .outcomes
            .first()
            .map(|outcome| line(outcome, "live objects".into(), |sample| sample.live_bytes)),
    );
    Lines {
        x: Axis::new("time", Scale::Seconds),
        y: Axis::new("memory", Scale::Bytes),
        shape: Shape::Steps,
        series,
    }
}

/// What was held at one time: the latest sample not after it.
fn at_time(outcome: &Outcome, time_ns: u64) -> Sample {
    let samples = &outcome.timeline.samples;
    let after = samples.partition_point(|sample| sample.time_ns <= time_ns);
    samples[after.saturating_sub(1)]
}

fn memory_table(replay: &Replay) -> Table {
    let mut table = Table::new([Head::number("time")]);
    for outcome in &replay.outcomes {
        table.columns.push(Head::number(&format!("{} slabs", outcome.engine())));
    }
    table.columns.push(Head::number("live objects"));
    let ends = replay.outcomes.iter().filter_map(|outcome| outcome.timeline.samples.last());
    let end = ends.map(|sample| sample.time_ns).max().unwrap_or(0);
    for step in 0..TIMES as u64 {
        let time = (u128::from(end) * u128::from(step) / (TIMES as u128 - 1)) as u64;
        let samples: Vec<Sample> = replay.outcomes.iter().map(|outcome| at_time(outcome, time)).collect();
        let slabs = samples.iter().map(|sample| Cell::Bytes(sample.slab_bytes));
        let live = samples.first().map_or(Cell::Empty, |sample| Cell::Bytes(sample.live_bytes));
        let time = Cell::Text(Scale::Seconds.print(time as f64 / 1e9));
        table.row(std::iter::once(time).chain(slabs).chain([live]));
    }
    table
}

/// The parts of slabs, as bars and tables name them.
const PARTS: [&str; 4] = ["live objects", "parked at CPUs", "free in slabs", "tail of slabs"];

fn parts(split: &Split) -> [u64; 4] {
    [split.live, split.parked, split.free, split.tail]
}

fn split_bars(replay: &Replay) -> Bars {
    let bar = |outcome: &Outcome| Bar {
        label: outcome.engine().to_string(),
        values: parts(&outcome.split()).map(|bytes| bytes as f64).to_vec(),
    };
    Bars {
        parts: PARTS.map(String::from).to_vec(),
        first_colour: 0,
        bars: replay.outcomes.iter().map(bar).collect(),
        axis: Axis::new("slab memory", Scale::Bytes),
        remainder: false,
    }
}

fn split_table(replay: &Replay) -> Table {
    let mut table = Table::new([Head::text("engine"), Head::number("slabs")]);
    table.columns.extend(PARTS.map(Head::number));
    table.columns.push(Head::number("not live"));
    for outcome in &replay.outcomes {
        let split = outcome.split();
        let percent =
            (split.slabs > 0).then(|| 100.0 * (split.slabs - split.live) as f64 / split.slabs as f64);
        let cells = [Cell::Name(outcome.engine().to_string()), Cell::Bytes(split.slabs)];
        table.row(cells.into_iter().chain(parts(&split).map(Cell::Bytes)).chain([Cell::Percent(percent)]));
    }
    table
}

/// Caches by the bytes of their slabs that no live object is in.
fn wasteful(outcome: &Outcome, top: usize) -> Vec<(&CacheOutcome, Split)> {
    let split = |cache: &CacheOutcome| Split::of(&cache.end, &cache.geometry, outcome.page_size);
    let mut caches: Vec<_> = outcome.caches.iter().map(|cache| (cache, split(cache))).collect();
    caches.retain(|(_, split)| split.slabs > split.live);
    caches.sort_by_key(|(cache, split)| (std::cmp::Reverse(split.slabs - split.live), cache.index));
    caches.truncate(top);
    caches
}

fn waste_figure(answer: Answer, outcome: &Outcome, top: usize) -> Answer {
    let caches = wasteful(outcome, top);
    let bar = |(cache, split): &(&CacheOutcome, Split)| Bar {
        label: cache.name.clone(),
        values: parts(split)[1..].iter().map(|bytes| *bytes as f64).collect(),
    };
    let chart = Bars {
        parts: PARTS[1..].iter().map(|part| (*part).into()).collect(),
        first_colour: 1,
        bars: caches.iter().map(bar).collect(),
        axis: Axis::new("slab memory without live objects", Scale::Bytes),
        remainder: false,
    };
    let keys = ["object_size_bytes", "order", "slabs", "slab_memory", "live"];
    let keys = [&keys[..], &["parked_bytes", "free_bytes", "tail_bytes"]].concat();
    let rows: Vec<Row> = caches.iter().map(|(cache, _)| Row::new(outcome, cache)).collect();
    let table = columns::caches().html(("cache", &name), &keys, &rows);
    let caption = format!(
        "{}: the {} caches with most memory that holds no live object, at the end.",
        outcome.engine(),
        caches.len()
    );
    answer.figure(&caption, chart, table)
}

fn engines_table(replay: &Replay) -> Table {
    let sums: Vec<_> = replay.outcomes.iter().map(|outcome| Some(Sums::new(outcome))).collect();
    figures().html_rows(heads(replay), &sums)
}

fn caches_table(outcome: &Outcome, top: usize) -> Table {
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
        "assumed",
    ];
    let rows = table::rows(outcome, top);
    columns::caches().html(("cache", &name), &keys, &rows)
}

fn name(row: &Row) -> Cell {
    Cell::Name(row.cache.name.clone())
}
