//! A comparison as an HTML page.

use super::columns::{Line, columns, lines};
use super::text::{remark, title};
use crate::answer::Role;
use crate::comparison::{Comparison, Section};
use slablab_report::html::chart::{Axis, Group, Intervals, Point, Scale};
use slablab_report::html::{Cell, Head, Page, Table};

/// Most rows in a figure; more are in the table.
const ROWS_MAX: usize = 60;

/// The page of a comparison. `command` is the command line that made it.
pub fn page(comparison: &Comparison, command: &str) -> String {
    let [base, others @ ..] = &comparison.columns[..] else { unreachable!("two or more results") };
    let mut page = Page::new(&format!("{} against {base}", others.join(", ")), command);
    let answer = comparison.sections.first().map(|section| remark(comparison, section));
    page.lede(&format!("Results of {}. {}", comparison.kind.words, answer.unwrap_or_default()));
    for caution in &comparison.cautions {
        page.text(&format!("Caution: {caution}."));
    }
    page.section("What differs");
    if comparison.differs.is_empty() {
        page.text("Nothing that the results say.");
    } else {
        page.table("Facts with more than one value.", &facts(comparison));
    }
    for section in &comparison.sections {
        page.section(match section.role {
            Role::Answer => "Result",
            other => title(other),
        });
        gains(comparison, section, &mut page);
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
        let label = |line: &Line| Cell::Name(name(line));
        let rows = lines(comparison, section);
        page.table("A gain above 0 is better.", &columns().html(("row", &label), keys, &rows));
        page.note(&remark(comparison, section));
    }
    let same = comparison.same.iter().map(|(name, value)| format!("The same: {name} {value}."));
    let unknown = comparison.unknown.iter().map(|name| format!("No result says: {name}."));
    let alone = comparison.alone.iter().map(|alone| format!("Not compared: {alone}."));
    page.evidence(&same.chain(unknown).chain(alone).collect::<Vec<_>>());
    page.finish()
}

fn name(line: &Line) -> String {
    let group = &line.row.group;
    if group.is_empty() { line.row.name.clone() } else { format!("{group}: {}", line.row.name) }
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
fn gains(comparison: &Comparison, section: &Section, page: &mut Page) {
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
        .map(|lines| Group { label: name(&lines[0]), points: lines.iter().map(point).collect() })
        .collect();
    if groups.iter().flat_map(|group| &group.points).all(Option::is_none) {
        return;
    }
    let series = comparison.columns[1..].to_vec();
    let chart = Intervals { series, groups, axis: Axis::new("gain", Scale::Percent) };
    let caption = match section.tests {
        0 => format!("Gains against {}.", comparison.columns[0]),
        _ => format!("Gains against {} with 95 % intervals, before the correction.", comparison.columns[0]),
    };
    page.figure(&caption, &chart, &chart.table("row", "result"));
    if section.rows.len() > ROWS_MAX {
        page.note(&format!("{} more rows are in the table.", section.rows.len() - ROWS_MAX));
    }
}
