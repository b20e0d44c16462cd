//! A suite as a document.

use super::lines::{Line, NOISE_PERCENT, columns, engines, failures, summaries};
use crate::judge::differences::Difference;
use crate::output::rows::{ABOUT_GAIN, ABOUT_HOLM, array_of, row_schema};
use crate::suite::SuiteResults;
use crate::workloads::WORKLOADS;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::Document;
use slablab_report::html::Cell;
use slablab_stats::Interval;
use slablab_stats::table::{Better, Cell as Measured, Pair as Compared, Row, Rules, Table};

/// Two engines over every workload, as a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct SuiteDocument {
    base: String,
    other: String,
    size: Option<&'static str>,
    /// Runs of each cell.
    repeats: Option<u32>,
    /// The seed of random numbers.
    seed: Option<u64>,
    test: String,
    significance: f64,
    /// Differences of means below this cannot be told on a real machine.
    noise_percent: f64,
    #[schemars(schema_with = "rows")]
    rows: Vec<Map<String, Value>>,
    summary: String,
    /// Why pairs have no numbers.
    failed: Vec<String>,
}

impl Document for SuiteDocument {
    const NAME: &str = "slablab.suite.1";
    const TITLE: &str = "slablab suite: two engines over every workload";
}

impl SuiteDocument {
    pub(super) fn new(suite: &SuiteResults, lines: &[Line]) -> SuiteDocument {
        let [base, other] = engines(suite);
        let (columns, rules) = (columns(engines(suite)), Rules::default());
        let row = |line: &Line| {
            let mut row = columns.json(line);
            row.insert("differences".into(), json!(line.differences));
            row.insert("why".into(), line.why.into());
            row
        };
        let plan = suite.results.iter().flatten().next().map(|results| &results.plan);
        SuiteDocument {
            base,
            other,
            size: plan.map(|plan| plan.size.name()),
            repeats: plan.map(|plan| plan.repeats.least),
            seed: plan.map(|plan| plan.seed),
            test: rules.test.to_string(),
            significance: rules.significance,
            noise_percent: NOISE_PERCENT,
            rows: lines.iter().map(row).collect(),
            summary: summaries(lines).join(" "),
            failed: failures(suite),
        }
    }
}

/// The schema of the rows: that of their columns, what else differs, and what the pair shows.
fn rows(generator: &mut SchemaGenerator) -> Schema {
    let mut table = Table::new(["base", "other"]);
    let row = |cells| Row { name: String::new(), better: Better::Lower, cells };
    let nothing = Measured::Nothing(String::new());
    table.row(row(vec![nothing.clone(), nothing])).expect("two cells");
    let untested = table.compare(Rules::default()).remove(0);
    let line = |compared: Compared, moments: [Cell; 3]| Line {
        workload: "",
        machine: String::new(),
        parameters: String::new(),
        why: "",
        metric: &WORKLOADS[0].metrics[0],
        moments: [moments.clone(), moments],
        compared,
        differences: Vec::new(),
    };
    let least = line(untested.clone(), [Cell::Empty, Cell::Empty, Cell::Empty]);
    let ends = Interval { low: 0.0, high: 0.0 };
    let tested = Compared {
        gain_percent: Some(0.0),
        gain_percent_95: Some(ends),
        p: Some(0.0),
        p_holm: Some(0.0),
        ..untested
    };
    let full = line(tested, [Cell::Count(2), Cell::Number(0.0, 4), Cell::Number(0.0, 4)]);
    let about = [("gain_percent", ABOUT_GAIN), ("p_holm", ABOUT_HOLM)];
    let mut row = row_schema(&columns([const { String::new() }; 2]), [&full, &least], &about);
    row["properties"]["differences"] = generator.subschema_for::<Vec<Difference>>().to_value();
    row["properties"]["why"] = json!({ "type": "string", "description": "What the pair shows." });
    row["required"].as_array_mut().expect("a list").extend([json!("differences"), json!("why")]);
    array_of(row)
}
