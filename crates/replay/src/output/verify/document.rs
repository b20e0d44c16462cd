//! A verification as a document.

use super::change_columns;
use crate::map::Same;
use crate::replay::{Inference, Replay};
use crate::verify::judged::Group;
use crate::verify::seeds::Spread;
use crate::verify::truth::Truth;
use crate::verify::{CacheCounters, Change, Counted, Counter, Dumps, Skill, SlabPages, Tally};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::Document;
use slablab_trace::CutOff;
use std::collections::BTreeMap;

/// The change between two dumps, real and predicted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct ChangeDocument {
    /// Caches that changed or should have, the most wrong first.
    #[schemars(schema_with = "rows")]
    caches: Vec<Map<String, Value>>,
    /// Where the recording was cut off; null for a whole one.
    cut_off: Option<CutOff>,
    /// The engine that predicts.
    engine: String,
    /// Events that the recording lost, as far as it says.
    events_lost: u64,
    /// What predictions without an engine get.
    null_models: NullModels,
    /// Whether frees of page frames set the start.
    page_frees_used: bool,
    /// The recording's path.
    recording: String,
    /// A hash of the recording's content.
    recording_fingerprint: String,
    /// Events of the recording.
    recording_rows: u64,
    /// The release of the kernel, as `uname -r` prints it.
    release: Option<String>,
    /// Which slabs serve and go, beside the kernel's; null if the recording's addresses do not tell slabs.
    same_slabs: Option<Same>,
    /// Ranges over other seeds, by name; empty for one seed.
    seeds: BTreeMap<String, SpreadDocument>,
    /// 1 - sum |predicted - real| / sum |real|, in bytes of active objects.
    skill_active_bytes: f64,
    /// 1 - sum |predicted - real| / sum |real|, in bytes of slabs.
    skill_slab_bytes: f64,
    /// Slabs that page events show; null for a recording without page events.
    slab_pages: Option<PagesDocument>,
    /// What snapshots of every slab add; null for a recording without them.
    snapshots: Option<Truth>,
    /// What of the start was inferred; null if nothing was.
    start: Option<Inference>,
    /// Caches in three groups: all, some or none of their allocations and frees have events.
    traced: Vec<TracedDocument>,
}

/// Counters of a kernel beside what an engine counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct CountersDocument {
    /// Counters above 100.
    above_100: usize,
    /// Counters above 100 that are more than 10 % off.
    above_100_over_10_percent: usize,
    /// Counters above 100 that are more than 5 % off.
    above_100_over_5_percent: usize,
    /// Caches whose trace is complete.
    caches: Vec<CacheCounters>,
    /// Sum of the kernel's counters.
    counted_real: u64,
    /// Counters that are compared.
    counters: usize,
    /// Counters that are exact.
    counters_exact: usize,
    /// The engine that predicts.
    engine: String,
    /// Sum of the differences.
    errors: u64,
    /// The workload of the counters run.
    label: String,
    /// Ranges over other seeds, by name; empty for one seed.
    seeds: BTreeMap<String, SpreadDocument>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct NullModels {
    /// Nothing changes.
    nothing_changes: Skills,
    /// The recording's own balance of allocations and frees, in whole slabs.
    own_balance: Skills,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Skills {
    skill_active_bytes: f64,
    skill_slab_bytes: f64,
}

/// A figure over draws of the start.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct SpreadDocument {
    /// What the kernel did, if the figure is a count.
    real: Option<u64>,
    median: f64,
    least: f64,
    most: f64,
    /// The figure of each draw, in rising order.
    by_rank: Vec<f64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct PagesDocument {
    /// By how many pages the prediction is off, in percent of the pages that really moved.
    error_percent: f64,
    /// By how many pages the recording's own balance, in whole slabs, is off, in percent of the pages that
    /// really moved.
    error_percent_own_balance: f64,
    /// The orders of which the kernel or the engine took or returned a slab.
    orders: Vec<OrderDocument>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct OrderDocument {
    order: usize,
    slabs_returned_predicted: u64,
    slabs_returned_real: u64,
    slabs_taken_predicted: u64,
    slabs_taken_real: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct TracedDocument {
    caches: usize,
    error_bytes: u64,
    /// Which of their allocations and frees have events: all, some, none.
    events: &'static str,
    skill_slab_bytes: Option<f64>,
    skill_slab_bytes_own_balance: Option<f64>,
    slab_bytes_changed_real: u64,
}

impl Document for ChangeDocument {
    const NAME: &str = "slablab.verify.1";
    const TITLE: &str = "slablab verify: the model beside dumps around a recording";
}

impl Document for CountersDocument {
    const NAME: &str = "slablab.verify-counters.1";
    const TITLE: &str = "slablab verify: the model beside the kernel's counters";
}

impl ChangeDocument {
    /// The document of `changes`, the skill of whose prediction is `skill`.
    pub(super) fn new(
        replay: &Replay,
        (changes, skill): (&[Change], Skill),
        basis: &Dumps,
    ) -> ChangeDocument {
        let (metadata, outcome) = (&replay.metadata, &replay.outcomes[0]);
        let columns = change_columns();
        let skills =
            |skill: Skill| Skills { skill_active_bytes: skill.objects, skill_slab_bytes: skill.slabs };
        ChangeDocument {
            caches: changes.iter().map(|change| columns.json(change)).collect(),
            cut_off: metadata.cut_off.clone(),
            engine: outcome.engine().to_string(),
            events_lost: metadata.losses.events,
            null_models: NullModels {
                nothing_changes: skills(Skill { slabs: 0.0, objects: 0.0 }),
                own_balance: skills(basis.balance),
            },
            page_frees_used: false,
            recording: replay.path.display().to_string(),
            recording_fingerprint: replay.fingerprint.to_string(),
            recording_rows: outcome.rows,
            release: metadata.release.clone(),
            same_slabs: basis.same,
            seeds: seeds(&basis.spreads),
            skill_active_bytes: skill.objects,
            skill_slab_bytes: skill.slabs,
            slab_pages: basis.pages.as_ref().map(pages),
            snapshots: basis.truth.clone(),
            start: replay.start.inference(),
            traced: basis.groups.iter().map(traced).collect(),
        }
    }
}

impl CountersDocument {
    /// The document of a counters run.
    pub(super) fn new(replay: &Replay, counters: &[Counter], basis: &Counted) -> CountersDocument {
        let tally = Tally::of(counters);
        CountersDocument {
            above_100: tally.many,
            above_100_over_10_percent: tally.off.1,
            above_100_over_5_percent: tally.off.0,
            caches: basis.caches.clone(),
            counted_real: tally.real,
            counters: tally.counters,
            counters_exact: tally.exact,
            engine: replay.outcomes[0].engine().to_string(),
            errors: tally.errors,
            label: basis.label.clone(),
            seeds: seeds(&basis.spreads),
        }
    }
}

fn seeds(spreads: &[Spread]) -> BTreeMap<String, SpreadDocument> {
    let of = |spread: &Spread| {
        let (least, most) = spread.range();
        SpreadDocument {
            real: spread.real,
            median: spread.median(),
            least,
            most,
            by_rank: spread.values.clone(),
        }
    };
    spreads.iter().map(|spread| (spread.name.to_string(), of(spread))).collect()
}

fn pages(pages: &SlabPages) -> PagesDocument {
    let mut orders = Vec::new();
    for (order, (real, predicted)) in pages.real.iter().zip(&pages.predicted).enumerate() {
        if (*real, *predicted) != ((0, 0), (0, 0)) {
            orders.push(OrderDocument {
                order,
                slabs_returned_predicted: predicted.1,
                slabs_returned_real: real.1,
                slabs_taken_predicted: predicted.0,
                slabs_taken_real: real.0,
            });
        }
    }
    PagesDocument {
        error_percent: pages.error_percent(),
        error_percent_own_balance: pages.balance_error_percent(),
        orders,
    }
}

fn traced(group: &Group) -> TracedDocument {
    TracedDocument {
        caches: group.caches,
        error_bytes: group.error_bytes,
        events: group.tracing.word(),
        skill_slab_bytes: group.skills.map(|skills| skills.0),
        skill_slab_bytes_own_balance: group.skills.map(|skills| skills.1),
        slab_bytes_changed_real: group.real_bytes,
    }
}

/// The schema of the rows of caches: that of their columns.
fn rows(_: &mut SchemaGenerator) -> Schema {
    let row = change_columns().schema(&Change::default());
    Schema::try_from(json!({ "type": "array", "items": row })).expect("an object is a schema")
}
