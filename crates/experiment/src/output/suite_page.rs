//! The page of a suite: gains with intervals, the table, and what else differs.

use super::suite::{Line, columns, failures, head, lines, remarks, shown};
use crate::suite::{Answer, pairs};
use slablab_report::html::chart::{Axis, Group, Intervals, Point, Scale};
use slablab_report::html::{Cell, Head, Page, Table};

/// Most rows in the figure; more are in the table.
const ROWS_MAX: usize = 80;

/// A suite as a page; `command` is what made it.
pub fn suite_page(answer: &Answer, command: &str) -> String {
    let (lines, _) = lines(answer);
    let [base, other] = &answer.suite.engines;
    let mut page = Page::new(&format!("{} against {}", other.0, base.0), command);
    page.lede(&format!("{} All times are predicted by the model.", head(answer).trim()));
    let count =
        |wanted: fn(&Line) -> bool| Cell::Count(lines.iter().filter(|line| wanted(line)).count() as u64);
    page.facts([
        ("Rows", count(|_| true)),
        ("Better", count(|line| line.differs() && line.compared.gain_percent.is_some_and(|gain| gain > 0.0))),
        ("Worse", count(|line| line.differs() && line.compared.gain_percent.is_some_and(|gain| gain < 0.0))),
        ("No difference can be told", count(|line| !line.differs())),
    ]);
    page.section("Result");
    gains(&lines, &mut page);
    let keys = ["base_shown", "other_shown", "unit", "gain_percent", "gain_interval", "verdict"];
    let label = |line: &Line| Cell::Name(line.name());
    let caption = "Means of the main metric of each workload. A gain above 0 is better.";
    page.table(caption, &columns(answer).html(("Row", &label), &keys, &lines));
    remarks(&lines).iter().for_each(|remark| {
        page.text(remark);
    });
    if lines.iter().any(|line| !line.differences.is_empty()) {
        page.section("What else differs");
        page.table(
            "In the rows that differ: the shares, counts, locks and events that differ most.",
            &reasons(answer, &lines),
        );
    }
    page.section("Pairs of workload and machine");
    page.table("What each pair shows.", &why());
    let mut evidence = vec![
        "Costs of the machines are documented or assumed: slablab list machines NAME. Intervals show the \
         scatter of the model's repeats, not that of a real machine."
            .to_string(),
    ];
    evidence.extend(
        failures(answer).into_iter().map(|why| why.lines().map(str::trim).collect::<Vec<_>>().join("; ")),
    );
    page.evidence(&evidence);
    page.finish()
}

/// Gains with their intervals.
fn gains(lines: &[Line], page: &mut Page) {
    let point = |line: &Line| {
        let (value, ends) = (line.compared.gain_percent?, line.compared.gain_percent_95);
        let [low, high] = ends.map_or([value; 2], |ends| [ends.low, ends.high]);
        Some(Point { value, low, high })
    };
    let group = |line: &Line| Group { label: line.name(), points: vec![point(line)] };
    let groups: Vec<Group> = lines.iter().take(ROWS_MAX).map(group).collect();
    if groups.iter().all(|group| group.points[0].is_none()) {
        page.text("No row has a number.");
        return;
    }
    let chart = Intervals { series: vec!["gain".into()], groups, axis: Axis::new("gain", Scale::Percent) };
    page.figure("Gains with 95 % intervals, before Holm's correction.", &chart, &chart.table("row", "what"));
    if lines.len() > ROWS_MAX {
        page.note(&format!("{} more rows are in the table.", lines.len() - ROWS_MAX));
    }
}

fn reasons(answer: &Answer, lines: &[Line]) -> Table {
    let [base, other] = &answer.suite.engines;
    let heads = [
        Head::text("Row"),
        Head::text("What"),
        Head::number(&base.0),
        Head::number(&other.0),
        Head::text("Unit"),
    ];
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
