//! The page of a suite: gains with intervals, the table, and what else differs.

use super::lines::{Line, columns, engines, failures, shown, summaries, what_ran};
use crate::suite::{SuiteResults, pairs};
use slablab_report::Answer;
use slablab_report::html::chart::{Axis, Group, Intervals, Point, Scale};
use slablab_report::html::{Cell, Head, Table};

/// Most rows in the figure; more are in the table.
const ROWS_MAX: usize = 80;

/// Adds the blocks of the page.
pub(super) fn page_blocks(answer: Answer, suite: &SuiteResults, lines: &[Line]) -> Answer {
    let engines = engines(suite);
    let count =
        |wanted: fn(&Line) -> bool| Cell::Count(lines.iter().filter(|line| wanted(line)).count() as u64);
    let answer = answer
        .paragraph(&format!("{}. All times are predicted by the model.", what_ran(suite)))
        .facts([
            ("Rows", count(|_| true)),
            ("Better", count(|line| line.gains(|gain| gain > 0.0))),
            ("Worse", count(|line| line.gains(|gain| gain < 0.0))),
            ("Not tested", count(|line| line.compared.is_unscattered())),
            ("No difference can be told", count(|line| !line.changes())),
        ])
        .section("Result");
    let keys = ["base_shown", "other_shown", "unit", "gain_percent", "gain_interval", "verdict"];
    let label = |line: &Line| Cell::Name(line.name());
    let caption = "Means of the main metric of each workload. A gain above 0 is better.";
    let table = columns(engines.clone()).html(("Row", &label), &keys, lines);
    let mut answer = gains(answer, lines).page_table(caption, table);
    answer = summaries(lines).iter().fold(answer, |answer, line| answer.paragraph(line));
    if lines.iter().any(|line| !line.differences.is_empty()) {
        answer = answer.section("What else differs").page_table(
            "In the rows that differ: the shares, counts, locks and events that differ most.",
            reasons(&engines, lines),
        );
    }
    let failed = failures(suite);
    if !failed.is_empty() {
        answer = answer.section("Cells without numbers");
    }
    answer = failed.iter().fold(answer, |answer, why| {
        answer.paragraph(&why.lines().map(str::trim).collect::<Vec<_>>().join("; "))
    });
    answer.section("Pairs of workload and machine").page_table("What each pair shows.", why())
}

/// Gains with their intervals.
fn gains(answer: Answer, lines: &[Line]) -> Answer {
    let point = |line: &Line| {
        let (value, ends) = (line.compared.gain_percent?, line.compared.gain_percent_95);
        let [low, high] = ends.map_or([value; 2], |ends| [ends.low, ends.high]);
        Some(Point { value, low, high })
    };
    let group = |line: &Line| Group { label: line.name(), points: vec![point(line)] };
    let groups: Vec<Group> = lines.iter().take(ROWS_MAX).map(group).collect();
    if groups.iter().all(|group| group.points[0].is_none()) {
        return answer.paragraph("No row has a number.");
    }
    let chart = Intervals { series: vec!["gain".into()], groups, axis: Axis::new("gain", Scale::Percent) };
    let table = chart.table("row", "what");
    let answer = answer.figure("Gains with 95 % intervals, before Holm's correction.", chart, table);
    match lines.len().saturating_sub(ROWS_MAX) {
        0 => answer,
        1 => answer.paragraph("1 more row is in the table."),
        more => answer.paragraph(&format!("{more} more rows are in the table.")),
    }
}

fn reasons([base, other]: &[String; 2], lines: &[Line]) -> Table {
    let heads =
        [Head::text("Row"), Head::text("What"), Head::number(base), Head::number(other), Head::text("Unit")];
    let mut table = Table::new(heads);
    for line in lines {
        for one in &line.differences {
            let cell = |number: f64| Cell::Text(shown(number));
            table.row([
                Cell::Name(line.name()),
                Cell::Text(one.name.clone()),
                cell(one.base),
                cell(one.other),
                Cell::Text(one.unit.into()),
            ]);
        }
    }
    table
}

fn why() -> Table {
    let mut table = Table::new(["Workload", "Machine", "Parameters", "What it shows"].map(Head::text));
    for (workload, pair) in pairs() {
        let words = [workload.name, pair.machine, &pair.parameters.replace('\n', ", "), pair.why];
        table.row(words.map(|word| Cell::Text(word.to_string())));
    }
    table
}
