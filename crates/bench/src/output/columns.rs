//! The columns of a contestant's figures on a page, and of a figure in CSV.

use crate::day::Moment;
use crate::memory::FIGURES;
use crate::report::{self, PROCESS_FIGURES, Report, Row, Verdict};
use crate::stats::Estimate;
use crate::subject::Role;
use crate::times::{Calls, TIMES_FIGURES};
use slablab_report::column::Columns;
use slablab_report::frame::Frame;
use slablab_report::html::Cell;
use std::borrow::Cow;

/// A contestant on a workload.
pub(super) type Line<'a> = (&'a Row, &'a report::Cell);

/// The figures of a contestant on a workload.
pub(super) fn lines<'a>() -> Columns<Line<'a>> {
    let columns = Columns::<Line>::default();
    let columns =
        estimate(columns, ["cpu", "cpu_low", "cpu_high"], ("CPU", "ns"), |line| Some(line.1.cpu_ns));
    let keys = ["ratio", "ratio_low", "ratio_high"];
    estimate(columns, keys, ("over the best peer", ""), |line| line.1.ratio)
        .add("verdict", "", "", |(row, cell)| {
            let best = if row.best_peer == Some(cell.name) { "best peer" } else { "" };
            Cell::Text(cell.verdict.map_or(best, Verdict::name).into())
        })
        .words()
        .add("wall", "", "wall", |line| number(line.1.wall_ns.map(|wall| wall.median), 2))
        .unit("ns")
        .add("trip_before", "", "cache line before", |line| {
            number(line.1.pingpong_ns.map(|trips| trips[0]), 0)
        })
        .unit("ns")
        .add("trip_after", "", "after", |line| number(line.1.pingpong_ns.map(|trips| trips[1]), 0))
        .unit("ns")
        .add("about", "", "what", |line| Cell::Text(line.0.about.into()))
        .words()
}

fn number(number: Option<f64>, places: usize) -> Cell {
    number.map_or(Cell::Empty, |number| Cell::Number(number, places))
}

/// A median and the ends of its interval.
fn estimate<'a>(
    columns: Columns<Line<'a>>,
    [median, low, high]: [&'static str; 3],
    (head, unit): (&'static str, &'static str),
    get: fn(&Line) -> Option<Estimate>,
) -> Columns<Line<'a>> {
    columns
        .add(median, "", head, move |line| number(get(line).map(|value| value.median), 2))
        .unit(unit)
        .add(low, "", "from", move |line| number(get(line).map(|value| value.low), 2))
        .add(high, "", "to", move |line| number(get(line).map(|value| value.high), 2))
}

/// A figure: a row of CSV.
struct Figure<'a> {
    workload: &'a str,
    group: &'a str,
    contestant: &'a str,
    role: Role,
    figure: Cow<'a, str>,
    unit: &'a str,
    median: f64,
    /// The ends of the interval.
    ends: Option<[f64; 2]>,
    /// The number of blocks, or of processes.
    samples: usize,
    best_peer: Option<&'a str>,
    verdict: Option<Verdict>,
}

fn figures<'a>() -> Columns<Figure<'a>> {
    fn words(words: &str) -> Cell {
        Cell::Text(words.into())
    }
    let number = |number: f64| Cell::Text(format!("{number:.4}"));
    let end =
        move |ends: Option<[f64; 2]>, which: usize| ends.map_or(Cell::Empty, |ends| number(ends[which]));
    Columns::<Figure>::default()
        .key("workload", |one| words(one.workload))
        .key("group", |one| words(one.group))
        .key("contestant", |one| words(one.contestant))
        .key("role", |one| words(one.role.name()))
        .key("figure", |one| words(&one.figure))
        .key("unit", |one| words(one.unit))
        .key("median", move |one| number(one.median))
        .key("low", move |one| end(one.ends, 0))
        .key("high", move |one| end(one.ends, 1))
        .key("blocks", |one| Cell::Count(one.samples as u64))
        .key("best_peer", |one| words(one.best_peer.unwrap_or("")))
        .key("verdict", |one| words(one.verdict.map_or("", Verdict::name)))
}

/// The rows of CSV: one for each figure.
pub(super) fn frame(report: &Report) -> Frame {
    let lines = report.rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)));
    let timed = lines.flat_map(|(row, cell)| {
        let figure = move |figure: &'static str, unit, value: Estimate, verdict| Figure {
            workload: row.name,
            group: row.group.name(),
            contestant: cell.name,
            role: cell.role,
            figure: figure.into(),
            unit,
            median: value.median,
            ends: Some([value.low, value.high]),
            samples: cell.samples_ns.len(),
            best_peer: row.best_peer,
            verdict,
        };
        let cpu = figure("cpu", "ns", cell.cpu_ns, None);
        let wall = cell.wall_ns.map(|wall| figure("wall", "ns", wall, None));
        let ratio = cell.ratio.map(|ratio| figure("ratio", "", ratio, cell.verdict));
        let process = cell.process.iter().flat_map(move |process| {
            let peak = figure("peak", "MB", process.peak_mb, None);
            let over = process.peak_ratio;
            let over = over.map(|ratio| Figure {
                best_peer: row.leanest_peer,
                ..figure("peak ratio", "", ratio, process.peak_verdict)
            });
            let others = process.figures.iter().zip(&PROCESS_FIGURES).map(move |(value, (name, unit, _))| {
                let value = Estimate { median: *value, low: *value, high: *value };
                Figure { ends: None, ..figure(name, unit, value, None) }
            });
            [Some(peak), over].into_iter().flatten().chain(others)
        });
        let single = move |name: String, unit, median| Figure {
            figure: name.into(),
            median,
            ends: None,
            ..figure("", unit, cell.cpu_ns, None)
        };
        let calls = cell.calls.iter().flat_map(Calls::each).flat_map(move |(call, times)| {
            TIMES_FIGURES
                .iter()
                .map(move |(name, unit, value)| single(format!("{call} {name}"), unit, value(&times)))
        });
        let day = cell.day.iter().flat_map(move |day| {
            let moment = move |moment: &Moment| {
                [("live", moment.live_mb), ("resident", moment.resident_mb)]
                    .map(|(what, mb)| single(format!("{what} at {:.2}", moment.at), "MB", mb))
            };
            let over = single("mean over live".into(), "", day.over_live());
            day.moments.iter().flat_map(moment).chain([over])
        });
        [Some(cpu), wall, ratio].into_iter().flatten().chain(process).chain(calls).chain(day)
    });
    let memory = report.memory.iter().flat_map(|one| {
        one.figures.iter().zip(&FIGURES).map(|(value, (name, unit, _))| Figure {
            workload: "memory",
            group: "memory",
            contestant: one.name,
            role: one.role,
            figure: (*name).into(),
            unit,
            median: *value,
            ends: None,
            samples: one.processes,
            best_peer: None,
            verdict: None,
        })
    });
    figures().frame(timed.chain(memory))
}
