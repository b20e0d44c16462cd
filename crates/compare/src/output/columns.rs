//! The columns of a comparison.

use crate::answer::Role;
use crate::comparison::{Against, Comparison, Row, Section, Side};
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_stats::table::Better;

/// A quantity of one result against the base.
pub(super) struct Line<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) section: &'a Section,
    pub(super) row: &'a Row,
    pub(super) other: usize,
}

impl Line<'_> {
    pub(super) fn pair(&self) -> &Against {
        &self.row.pairs[self.other - 1]
    }
}

/// Every line of a table.
pub(super) fn lines<'a>(comparison: &'a Comparison, section: &'a Section) -> Vec<Line<'a>> {
    let others = 1..comparison.columns.len();
    let line = |row| others.clone().map(move |other| Line { comparison, section, row, other });
    section.rows.iter().flat_map(line).collect()
}

pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::Answer => "answer",
        Role::Detail => "detail",
        Role::Control => "control",
    }
}

pub(super) fn columns<'a>() -> Columns<Line<'a>> {
    let number = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(value, 2));
    let base = |line: &Line| line.row.sides[0];
    let other = |line: &Line| line.row.sides[line.other];
    let columns = Columns::<Line>::default()
        .key("table", |line| Cell::Text(role(line.section.role).to_string()))
        .key("group", |line| Cell::Name(line.row.group.clone()))
        .key("row", |line| Cell::Name(line.row.name.clone()))
        .key("better", |line| {
            let lower = line.row.better == Better::Lower;
            Cell::Text(if lower { "lower" } else { "higher" }.to_string())
        })
        .key("base", |line| Cell::Name(line.comparison.columns[0].clone()));
    let columns = side(columns, ["base_n", "base_value", "base_sd"], "base", base)
        .add("other", "", "result", |line| Cell::Name(line.comparison.columns[line.other].clone()))
        .words();
    side(columns, ["other_n", "other_value", "other_sd"], "other", other)
        .add("gain_percent", "", "gain, %", move |line| number(line.pair().gain_percent))
        .or_unknown()
        .described("How much better the other value is than the base, in percent; below 0 if it is worse.")
        .add("gain_percent_low_95", "", "from", move |line| number(line.pair().interval.map(|ends| ends.low)))
        .or_unknown()
        .add("gain_percent_high_95", "", "to", move |line| number(line.pair().interval.map(|ends| ends.high)))
        .or_unknown()
        .key("p", move |line| number(line.pair().p))
        .or_unknown()
        .add("p_holm", "", "p, Holm", move |line| {
            line.pair().p_holm.map_or(Cell::Empty, |p| Cell::Number(p, 4))
        })
        .or_unknown()
        .described("The p-value after Holm's correction over the table.")
        .add("verdict", "", "verdict", |line| Cell::Text(line.pair().verdict.to_string()))
        .words()
}

/// The columns of one result.
fn side<'a>(
    columns: Columns<Line<'a>>,
    [n, value, sd]: [&'static str; 3],
    head: &'static str,
    get: fn(&Line) -> Option<Side>,
) -> Columns<Line<'a>> {
    columns
        .key(n, move |line| get(line).map_or(Cell::Empty, |side| Cell::Count(side.n as u64)))
        .or_unknown()
        .add(value, "", head, move |line| {
            get(line).map_or(Cell::Empty, |side| Cell::Number(side.value, line.row.decimals))
        })
        .or_unknown()
        .key(sd, move |line| get(line).map_or(Cell::Empty, |side| Cell::Number(side.sd, 4)))
        .or_unknown()
}
