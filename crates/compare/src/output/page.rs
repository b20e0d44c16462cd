//! The page of a comparison.

use super::columns::{Line, columns, lines};
use super::words::{name, remark, title};
use crate::comparison::{Comparison, Section};
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Group, Intervals, Point, Scale};
use slablab_report::html::{Cell, Head, Table};

/// Most rows in a figure; more are in the table.
const ROWS_MAX: usize = 60;

/// The facts with more than one value.
pub(super) fn differs(answer: Answer, comparison: &Comparison) -> Answer {
    let answer = answer.section("What differs");
    match comparison.differs.is_empty() {
        true => answer.paragraph("Nothing that the results say."),
        false => answer.page_table("Facts with more than one value.", facts(comparison)),
    }
}

/// A table, its figure, and what it says.
pub(super) fn section(answer: Answer, comparison: &Comparison, section: &Section) -> Answer {
    let answer = gains(answer.section(title(section.role)), comparison, section);
    let keys = [
        "other",
        "base_value",
        "other_value",
        "gain_percent",
        "gain_percent_low_95",
        "gain_percent_high_95",
        "p_holm",
        "verdict",
    ];
    let keys = if section.tests == 0 { &keys[..4] } else { &keys[..] };
    let label = |line: &Line| Cell::Name(name(line.row));
    let rows = lines(comparison, section);
    answer
        .page_table("A gain above 0 is better.", columns().html(("row", &label), keys, &rows))
        .paragraph(&remark(comparison, section))
}

fn facts(comparison: &Comparison) -> Table {
    let heads = std::iter::once("").chain(comparison.columns.iter().map(String::as_str));
    let mut table = Table::new(heads.map(Head::text));
    for (name, values) in &comparison.differs {
        let values = values.iter().map(|value| Cell::Name(value.clone().unwrap_or("not said".to_string())));
        table.row(std::iter::once(Cell::Text(name.clone())).chain(values));
    }
    table
}

/// Gains with their intervals.
fn gains(answer: Answer, comparison: &Comparison, section: &Section) -> Answer {
    let point = |line: &Line| {
        let pair = line.pair();
        let value = pair.gain_percent?;
        let [low, high] = pair.interval.map_or([value; 2], |ends| [ends.low, ends.high]);
        Some(Point { value, low, high })
    };
    let lines = lines(comparison, section);
    let others = comparison.columns.len() - 1;
    let groups: Vec<Group> = lines
        .chunks(others)
        .take(ROWS_MAX)
        .map(|lines| Group { label: name(lines[0].row), points: lines.iter().map(point).collect() })
        .collect();
    if groups.iter().flat_map(|group| &group.points).all(Option::is_none) {
        return answer;
    }
    let series = comparison.columns[1..].to_vec();
    let chart = Intervals { series, groups, axis: Axis::new("gain", Scale::Percent) };
    let caption = match section.tests {
        0 => format!("Gains against {}.", comparison.columns[0]),
        _ => format!("Gains against {} with 95 % intervals, before the correction.", comparison.columns[0]),
    };
    let table = chart.table("row", "result");
    let answer = answer.figure(&caption, chart, table);
    match section.rows.len().saturating_sub(ROWS_MAX) {
        0 => answer,
        1 => answer.paragraph("1 more row is in the table."),
        more => answer.paragraph(&format!("{more} more rows are in the table.")),
    }
}
