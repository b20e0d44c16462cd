//! Predictions of one machine as a document. Units are in the keys.

use super::columns::{columns, labels, lines};
use crate::state::{Missing, State};
use crate::whatif::errors::{COVERAGE, Range};
use crate::whatif::{Against, Change, Prediction, Row, Rules, Total, evidence, missing};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::Document;

#[derive(Serialize, JsonSchema)]
pub(super) struct WhatifDocument<'a> {
    /// The prediction beside a boot that had the change; null if no such boot was given.
    against: Option<&'a Against>,
    /// CPUs that were online.
    cpus_online: Option<u32>,
    /// What was assumed of the input, in sentences.
    evidence: Vec<String>,
    input: String,
    /// Files that were not there: why, what that costs, and the command that gets the file.
    missing: Vec<&'a Missing>,
    /// Bytes of a page.
    page_size_bytes: u64,
    /// The release of the kernel, as `uname -r` prints it.
    release: Option<&'a str>,
    /// Every cache of every change: each figure today, and with the change under its key with `whatif`.
    #[schemars(schema_with = "rows")]
    rows: Vec<Map<String, Value>>,
    /// The changes.
    variants: Vec<Variant<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct Variant<'a> {
    /// What the numbers of this change assume, in sentences.
    assumed: &'a [String],
    change: ChangeDocument,
    /// Whether boots measured predictions of this kind.
    measured: bool,
    /// Where `total_low_bytes` and `total_high_bytes` are from. Null if the change has no effect (`measured`
    /// is true), or if slab memory is not predicted (`measured` is false; `unknown` says why).
    range: Option<RangeDocument>,
    /// What chooses orders today.
    rules: RulesDocument,
    /// What chooses orders with the change.
    rules_whatif: RulesDocument,
    /// All caches today.
    today: Total,
    /// All caches with the change.
    total: Total,
    /// Caches whose order today is not what the rules give.
    unexplained: &'a [String],
    /// Why slab memory is not predicted: `total` is then for the objects of today. Null if it is predicted.
    unknown: Option<&'static str>,
    /// The change in words.
    whatif: String,
}

/// What is different; null is as today.
#[derive(Serialize, JsonSchema)]
struct ChangeDocument {
    config: Option<String>,
    cpus: Option<u32>,
    debug: Option<String>,
    engine: Option<String>,
    max_order: Option<u8>,
    merge: Option<bool>,
    min_objects: Option<u32>,
    min_order: Option<u8>,
    page_size_bytes: Option<u64>,
    policy: Option<&'static str>,
    sheaf_capacity: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct RangeDocument {
    /// Whether the dump was taken after a load; this and the other two are null for a guess.
    after_load: Option<bool>,
    /// The share of measured boots that fall inside.
    coverage: Option<f64>,
    /// The ends are the prediction divided by this, and multiplied by it; null where the two differ.
    factor: Option<f64>,
    more_than_8_cpus: Option<bool>,
    /// What kind of change was measured.
    question: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
struct RulesDocument {
    /// CPUs that are present.
    cpus: u32,
    max_order: u8,
    min_objects: u32,
    min_order: u8,
    page_size_bytes: u64,
    /// The order rule, by the name that `--policy` takes.
    rule: &'static str,
}

impl Document for WhatifDocument<'_> {
    const NAME: &'static str = "slablab.whatif.1";
    const TITLE: &'static str = "slablab whatif: slab memory with other settings";
}

impl WhatifDocument<'_> {
    pub(super) fn new<'a>(
        state: &'a State,
        predictions: &'a [Prediction],
        against: Option<&'a Against>,
    ) -> WhatifDocument<'a> {
        let labels = labels(predictions);
        let columns = columns();
        WhatifDocument {
            against,
            cpus_online: state.cpus.map(|cpus| cpus.online),
            evidence: evidence(state).collect(),
            input: state.path.display().to_string(),
            missing: missing(state).collect(),
            page_size_bytes: state.page_size,
            release: state.dump.release.as_deref(),
            rows: lines(predictions, &labels).map(|line| columns.json(&line)).collect(),
            variants: predictions.iter().map(variant).collect(),
        }
    }
}

fn variant(prediction: &Prediction) -> Variant<'_> {
    Variant {
        assumed: &prediction.assumed,
        change: change(&prediction.change),
        measured: prediction.range.is_measured(),
        range: range(prediction.range),
        rules: rules(&prediction.rules),
        rules_whatif: rules(&prediction.rules_whatif),
        today: prediction.today,
        total: prediction.whatif,
        unexplained: &prediction.unexplained,
        unknown: prediction.range.unknown(),
        whatif: prediction.change.to_string(),
    }
}

fn range(range: Range) -> Option<RangeDocument> {
    let class = match range {
        Range::Unchanged | Range::Unknown(_) => return None,
        Range::Measured { class, .. } => Some(class),
        Range::Guess { .. } | Range::Modelled { .. } => None,
    };
    Some(RangeDocument {
        after_load: class.map(|class| class.loaded),
        coverage: class.map(|_| COVERAGE),
        factor: (!matches!(range, Range::Modelled { .. })).then(|| range.ln().exp()),
        more_than_8_cpus: class.map(|class| class.large),
        question: class.map(|class| class.question.name()),
    })
}

fn change(change: &Change) -> ChangeDocument {
    ChangeDocument {
        config: change.config.map(|config| config.to_string()),
        cpus: change.cpus,
        debug: change.debug.map(|debug| debug.to_string()),
        engine: change.engine.map(|engine| engine.to_string()),
        max_order: change.max_order,
        merge: change.merge,
        min_objects: change.min_objects,
        min_order: change.min_order,
        page_size_bytes: change.page_size,
        policy: change.policy.map(|policy| policy.name()),
        sheaf_capacity: change.sheaf_capacity.map(|capacity| capacity.to_string()),
    }
}

fn rules(rules: &Rules) -> RulesDocument {
    RulesDocument {
        cpus: rules.cpus.present,
        max_order: rules.max_order,
        min_objects: rules.min_objects,
        min_order: rules.min_order,
        page_size_bytes: rules.page_size,
        rule: rules.rule.name(),
    }
}

/// The schema of the rows: that of their columns.
fn rows(_: &mut SchemaGenerator) -> Schema {
    let row = Row::default();
    let row = columns().schema(&("", &row));
    Schema::try_from(json!({ "type": "array", "items": row })).expect("an object is a schema")
}
