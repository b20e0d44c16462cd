//! The columns of a contestant's figures on a page, and of a figure in CSV.

use crate::report::{self, Row, Verdict};
use crate::stats::Estimate;
use crate::subject::Role;
use slablab_report::column::Columns;
use slablab_report::html::Cell;

/// A contestant on a workload.
pub(crate) type Line<'a> = (&'a Row, &'a report::Cell);

/// The figures of a contestant on a workload.
pub(crate) fn lines<'a>() -> Columns<Line<'a>> {
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
pub(crate) struct Figure<'a> {
    pub(crate) workload: &'a str,
    pub(crate) group: &'a str,
    pub(crate) contestant: &'a str,
    pub(crate) role: Role,
    pub(crate) figure: &'a str,
    pub(crate) unit: &'a str,
    pub(crate) median: f64,
    /// The ends of the interval.
    pub(crate) ends: Option<[f64; 2]>,
    /// The number of blocks, or of processes.
    pub(crate) samples: usize,
    pub(crate) best_peer: Option<&'a str>,
    pub(crate) verdict: Option<Verdict>,
}

pub(crate) fn figures<'a>() -> Columns<Figure<'a>> {
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
        .key("figure", |one| words(one.figure))
        .key("unit", |one| words(one.unit))
        .key("median", move |one| number(one.median))
        .key("low", move |one| end(one.ends, 0))
        .key("high", move |one| end(one.ends, 1))
        .key("blocks", |one| Cell::Count(one.samples as u64))
        .key("best_peer", |one| words(one.best_peer.unwrap_or("")))
        .key("verdict", |one| words(one.verdict.map_or("", Verdict::name)))
}
