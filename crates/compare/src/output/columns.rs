//! The columns of a comparison, for programs: CSV and JSON.

use crate::answer::Role;
use crate::comparison::{Comparison, Row, Section, Side};
use serde_json::{Map, Value, json};
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_stats::table::Better;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.compare.1";

/// A quantity of one result against the base.
pub(super) struct Line<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) section: &'a Section,
    pub(super) row: &'a Row,
    pub(super) other: usize,
}

impl Line<'_> {
    pub(super) fn pair(&self) -> &crate::comparison::Against {
        &self.row.pairs[self.other - 1]
    }
}

/// Every line of a table.
pub(super) fn lines<'a>(comparison: &'a Comparison, section: &'a Section) -> Vec<Line<'a>> {
    let others = 1..comparison.columns.len();
    let line = |row| others.clone().map(move |other| Line { comparison, section, row, other });
    section.rows.iter().flat_map(line).collect()
}

/// A comparison in CSV: a row for each quantity and each result but the first.
pub fn csv(comparison: &Comparison) -> String {
    let all: Vec<Line> = comparison.sections.iter().flat_map(|section| lines(comparison, section)).collect();
    columns().csv(all)
}

/// A comparison in JSON.
pub fn json(comparison: &Comparison) -> Value {
    fn table(comparison: &Comparison, section: &Section) -> Value {
        let columns = columns();
        let rows = lines(comparison, section);
        json!({
            "role": role(section.role),
            "test": (section.tests > 0).then(|| section.rules.test.to_string()),
            "significance": section.rules.significance,
            "comparisons": section.tests,
            "rows": rows.iter().map(|line| Value::Object(columns.json(line))).collect::<Vec<_>>(),
            "rows_left_out": section.hidden,
            "summary": super::text::remark(comparison, section),
        })
    }
    let differs = comparison.differs.iter().map(|(name, values)| (name.clone(), json!(values)));
    let same = comparison.same.iter().map(|(name, value)| (name.clone(), json!(value)));
    json!({
        "schema": SCHEMA,
        "of": comparison.kind.schema,
        "columns": comparison.columns,
        "differs": differs.collect::<Map<_, _>>(),
        "same": same.collect::<Map<_, _>>(),
        "not_said": comparison.unknown,
        "cautions": comparison.cautions,
        "not_compared": comparison.alone,
        "tables": comparison.sections.iter().map(|section| table(comparison, section)).collect::<Vec<_>>(),
    })
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
        .add("gain_percent_low_95", "", "from", move |line| number(line.pair().interval.map(|ends| ends.low)))
        .add("gain_percent_high_95", "", "to", move |line| number(line.pair().interval.map(|ends| ends.high)))
        .key("p", move |line| number(line.pair().p))
        .add("p_holm", "", "p, Holm", move |line| {
            line.pair().p_holm.map_or(Cell::Empty, |p| Cell::Number(p, 4))
        })
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
        .add(value, "", head, move |line| {
            get(line).map_or(Cell::Empty, |side| Cell::Number(side.value, line.row.decimals))
        })
        .key(sd, move |line| get(line).map_or(Cell::Empty, |side| Cell::Number(side.sd, 4)))
}
