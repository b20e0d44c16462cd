//! An explanation as a document: every measure that is not zero in all combinations, every part and every
//! pair.

use super::columns::{self, Moving, differing};
use super::ends;
use crate::explain::measures::{Measure, Unit};
use crate::explain::{Explained, Explanation};
use crate::output::recording::Recording;
use crate::output::replay::remarks;
use crate::replay::Inference;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use slablab_report::Document;
use slablab_stats::shapley::{Mean, SEED};
use std::collections::BTreeMap;

/// The part of each policy in a difference.
#[derive(Serialize, JsonSchema)]
pub(super) struct ExplainDocument {
    /// The cache that was asked for.
    cache: Option<String>,
    /// The first engine.
    from: String,
    measures: Vec<MeasureDocument>,
    method: Method,
    /// What could not be taken apart, and what does not differ.
    notes: Vec<String>,
    policies: Vec<Policy>,
    #[serde(flatten)]
    recording: Recording,
    /// What the answer lacks, then what it rests on: sentences.
    remarks: Vec<String>,
    /// How the state at the start was inferred; null if it was not.
    start: Option<Inference>,
    /// The second engine.
    to: String,
}

impl Document for ExplainDocument {
    const NAME: &str = "slablab.explain.1";
    const TITLE: &str = "slablab explain RECORDING: the part of each policy in a difference";
}

#[derive(Serialize, JsonSchema)]
struct Method {
    interval_percent: Option<u32>,
    /// `exact` or `sampled`.
    kind: &'static str,
    orders_sampled: Option<usize>,
    replays: usize,
    /// The seed of random numbers.
    seed: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct Policy {
    from: String,
    has_effect: bool,
    policy: String,
    to: String,
    what: String,
}

#[derive(Serialize, JsonSchema)]
struct MeasureDocument {
    #[serde(flatten)]
    #[schemars(schema_with = "measure_schema")]
    columns: Map<String, Value>,
    /// What pairs of policies do beyond what each does without the other.
    interactions: Vec<Pair>,
    /// The part of each policy, by its name.
    parts: BTreeMap<String, Part>,
}

#[derive(Serialize, JsonSchema)]
struct Part {
    /// What it changes alone, in the first engine.
    alone: i64,
    /// What it changes as the last, towards the second engine.
    last: i64,
    #[serde(flatten)]
    mean: MeanDocument,
}

#[derive(Serialize, JsonSchema)]
struct Pair {
    #[serde(flatten)]
    mean: MeanDocument,
    policies: [String; 2],
    /// Times it was seen, where orders were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<usize>,
}

/// A mean as a number and as the fraction it is.
#[derive(Serialize, JsonSchema)]
struct MeanDocument {
    exact: String,
    /// Half of its 95 % interval, where orders were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    give_or_take: Option<f64>,
    value: f64,
}

impl ExplainDocument {
    pub(super) fn new(explained: &Explained) -> ExplainDocument {
        let [from, to] = ends(explained);
        let replay = &explained.replay;
        let policy = |(item, has_effect): columns::Differing| Policy {
            from: item.from.clone(),
            has_effect,
            policy: item.name.clone(),
            to: item.to.clone(),
            what: item.what.clone(),
        };
        let sampled = explained.sampled;
        ExplainDocument {
            cache: explained.cache.clone(),
            from,
            measures: explained.measures.iter().map(|one| measure(explained, one)).collect(),
            method: Method {
                interval_percent: sampled.map(|_| 95),
                kind: if sampled.is_some() { "sampled" } else { "exact" },
                orders_sampled: sampled,
                replays: explained.replays,
                seed: sampled.map(|_| SEED),
            },
            notes: explained.notes.clone(),
            policies: differing(explained).into_iter().map(policy).collect(),
            recording: Recording::new(&replay.path, &replay.metadata),
            remarks: remarks(replay),
            start: replay.start.inference(),
            to,
        }
    }
}

fn measure(explained: &Explained, one: &Explanation) -> MeasureDocument {
    let name = |item: usize| explained.items[item].name.clone();
    let parts = one.parts.iter().enumerate().map(|(item, part)| {
        (name(item), Part { alone: part.alone as i64, last: part.last as i64, mean: mean(&part.mean) })
    });
    let pairs = one.interactions.iter().map(|pair| Pair {
        mean: mean(&pair.mean),
        policies: pair.players.map(name),
        seen: pair.seen,
    });
    MeasureDocument {
        columns: columns::measures(&[]).json(&Moving::new(one)),
        interactions: pairs.collect(),
        parts: parts.collect(),
    }
}

fn mean(mean: &Mean) -> MeanDocument {
    MeanDocument { exact: mean.exact(), give_or_take: mean.give_or_take, value: mean.value() }
}

/// The schema of a measure: that of its columns.
fn measure_schema(_: &mut SchemaGenerator) -> Schema {
    let one = Explanation {
        measure: Measure { name: String::new(), unit: Unit::Count },
        from: 0,
        to: 0,
        parts: Vec::new(),
        interactions: Vec::new(),
    };
    columns::measures(&[]).schema(&Moving::new(&one)).try_into().expect("an object is a schema")
}
