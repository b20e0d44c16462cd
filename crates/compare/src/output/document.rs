//! A comparison as a document.

use super::columns::{columns, lines, role};
use super::words::remark;
use crate::answer::Role;
use crate::comparison::{Against, Comparison, Row, Section, Side};
use crate::kinds;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::Document;
use slablab_stats::Interval;
use slablab_stats::table::{Better, Rules, Verdict};
use std::collections::BTreeMap;

#[derive(Serialize, JsonSchema)]
pub(super) struct ComparisonDocument<'a> {
    /// What the tables cannot tell, in sentences.
    cautions: &'a [String],
    /// The names of the results; the first is the base.
    columns: &'a [String],
    /// What differs beside the compared numbers: a value for each result, or null.
    differs: BTreeMap<&'a str, &'a [Option<String>]>,
    /// Engines and rows that only one result has, in sentences.
    not_compared: &'a [String],
    /// Facts that no result says.
    not_said: &'a [String],
    /// The schema of the results.
    of: &'a str,
    /// Facts with one value in all results.
    same: BTreeMap<&'a str, &'a str>,
    tables: Vec<TableDocument>,
}

#[derive(Serialize, JsonSchema)]
struct TableDocument {
    /// The number of tests over which p-values are corrected; 0 without repeats.
    comparisons: usize,
    /// answer: what is asked; detail: what differs most of much else; control: not slablab's code.
    role: &'static str,
    #[schemars(schema_with = "rows")]
    rows: Vec<Map<String, Value>>,
    /// Rows that were compared, and differ less.
    rows_left_out: usize,
    significance: f64,
    /// What the table says, in sentences.
    summary: String,
    /// The test; null without repeats.
    test: Option<String>,
}

impl Document for ComparisonDocument<'_> {
    const NAME: &'static str = "slablab.compare.1";
    const TITLE: &'static str = "slablab compare: results side by side";
}

impl ComparisonDocument<'_> {
    pub(super) fn new(comparison: &Comparison) -> ComparisonDocument<'_> {
        let differs = comparison.differs.iter().map(|(name, values)| (name.as_str(), values.as_slice()));
        let same = comparison.same.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        ComparisonDocument {
            cautions: &comparison.cautions,
            columns: &comparison.columns,
            differs: differs.collect(),
            not_compared: &comparison.alone,
            not_said: &comparison.unknown,
            of: comparison.kind.schema,
            same: same.collect(),
            tables: comparison.sections.iter().map(|section| table(comparison, section)).collect(),
        }
    }
}

fn table(comparison: &Comparison, section: &Section) -> TableDocument {
    let columns = columns();
    TableDocument {
        comparisons: section.tests,
        role: role(section.role),
        rows: lines(comparison, section).iter().map(|line| columns.json(line)).collect(),
        rows_left_out: section.hidden,
        significance: section.rules.significance,
        summary: remark(comparison, section),
        test: (section.tests > 0).then(|| section.rules.test.to_string()),
    }
}

/// The schema of the rows: that of their columns.
fn rows(_: &mut SchemaGenerator) -> Schema {
    let side = Some(Side { n: 1, value: 0.0, sd: 0.0 });
    let pair = Against {
        gain_percent: Some(0.0),
        is_worse_than_0: false,
        interval: Some(Interval { low: 0.0, high: 0.0 }),
        p: Some(1.0),
        p_holm: Some(1.0),
        verdict: Verdict::NoDifference,
        is_withheld: false,
    };
    let row = Row {
        group: String::new(),
        name: String::new(),
        better: Better::Lower,
        decimals: 0,
        sides: vec![side; 2],
        pairs: vec![pair],
    };
    let section =
        Section { role: Role::Answer, rows: vec![row], hidden: 0, tests: 1, rules: Rules::default() };
    let comparison = Comparison {
        kind: &kinds::ALL[0],
        columns: vec![String::new(); 2],
        differs: Vec::new(),
        same: Vec::new(),
        unknown: Vec::new(),
        cautions: Vec::new(),
        alone: Vec::new(),
        sections: vec![section],
    };
    let row = columns().schema(&lines(&comparison, &comparison.sections[0])[0]);
    Schema::try_from(json!({ "type": "array", "items": row })).expect("an object is a schema")
}
