//! A replay as a document: everything a table shows, and every counter.

use super::basis::remarks;
use super::columns::{self, Row};
use super::figures::{Sums, figures};
use super::violations::Violations;
use crate::output::recording::Recording;
use crate::replay::outcome::{CacheOutcome, Counts, LargeOutcome, Outcome, Traffic};
use crate::replay::timeline::{Sample, Timeline};
use crate::replay::{Inference, Replay};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use slablab_platform::Event;
use slablab_report::Document;
use slablab_slabs::{Geometry, Preset, Usage};
use std::collections::BTreeMap;

/// A recording through engines.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReplayDocument {
    /// The state before the recording that was given; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Before>,
    engines: Vec<Engine>,
    /// CPUs that went off and on.
    hotplug: Vec<Hotplug>,
    machine: Machine,
    #[serde(flatten)]
    recording: Recording,
    /// A hash of the recording's content.
    recording_fingerprint: String,
    /// What the answer lacks, then what it rests on: sentences.
    remarks: Vec<String>,
    /// How the state at the start was inferred; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<Inference>,
}

impl Document for ReplayDocument {
    const NAME: &str = "slablab.replay.1";
    const TITLE: &str = "slablab replay: a recording through engines";
}

#[derive(Serialize, JsonSchema)]
struct Before {
    path: String,
    caches: usize,
    active_objects: u64,
}

#[derive(Serialize, JsonSchema)]
struct Hotplug {
    command: String,
    /// Since the recording's first row.
    time_ns: u64,
}

#[derive(Serialize, JsonSchema)]
struct Machine {
    /// The node of each CPU.
    cpu_node: Vec<u16>,
    cpus: usize,
    node_memory_bytes: Vec<u64>,
    /// Bytes of a page.
    page_size_bytes: u64,
    /// The seed of random numbers.
    seed: u64,
}

#[derive(Serialize, JsonSchema)]
struct Engine {
    caches: Vec<Cache>,
    engine: String,
    /// Counts of events of the page allocator, by their names; those that are 0 are left out.
    pages: Counters,
    rows: u64,
    timeline: Samples,
    /// Sums over all caches.
    #[schemars(schema_with = "total_schema")]
    total: Map<String, Value>,
    /// What debugging found; null if it was off.
    violations: Option<Violations>,
}

#[derive(Serialize, JsonSchema)]
struct Cache {
    /// Other names of it.
    aliases: Vec<String>,
    /// Counts of events, by their names; those that are 0 are left out.
    counters: Counters,
    #[serde(flatten)]
    #[schemars(schema_with = "cache_schema")]
    columns: Map<String, Value>,
}

type Counters = BTreeMap<&'static str, u64>;

/// Slab memory over time: columns of one length.
#[derive(Serialize, JsonSchema)]
struct Samples {
    every_s: f64,
    /// Bytes of allocated objects.
    live_bytes: Vec<u64>,
    /// Bytes of the pages of slabs.
    slab_bytes: Vec<u64>,
    time_s: Vec<f64>,
}

impl ReplayDocument {
    /// The document of a replay, with the caches that are `shown`.
    pub(super) fn new(replay: &Replay, shown: &dyn Fn(&CacheOutcome) -> bool) -> ReplayDocument {
        let spec = &replay.machine.spec;
        let before = replay.before.as_ref().map(|before| Before {
            path: before.path.display().to_string(),
            caches: before.caches,
            active_objects: before.active,
        });
        let hotplug = replay
            .hotplug
            .iter()
            .map(|command| Hotplug { command: command.text.clone(), time_ns: command.time_ns });
        ReplayDocument {
            before,
            engines: replay.outcomes.iter().map(|outcome| engine(outcome, shown)).collect(),
            hotplug: hotplug.collect(),
            machine: Machine {
                cpu_node: spec.cpu_node.clone(),
                cpus: spec.cpu_node.len(),
                node_memory_bytes: spec.nodes.iter().map(|node| node.bytes).collect(),
                page_size_bytes: 1 << spec.page_shift,
                seed: spec.seed,
            },
            recording: Recording::new(&replay.path, &replay.metadata),
            recording_fingerprint: replay.fingerprint.to_string(),
            remarks: remarks(replay),
            start: replay.start.inference(),
        }
    }
}

fn engine(outcome: &Outcome, shown: &dyn Fn(&CacheOutcome) -> bool) -> Engine {
    let columns = columns::caches();
    let caches = outcome.caches.iter().filter(|cache| shown(cache)).map(|cache| Cache {
        aliases: cache.aliases.clone(),
        counters: counters(&cache.counts),
        columns: columns.json(&Row::new(outcome, cache)),
    });
    Engine {
        caches: caches.collect(),
        engine: outcome.engine().to_string(),
        pages: counters(&outcome.global),
        rows: outcome.rows,
        timeline: samples(&outcome.timeline),
        total: figures().json(&Sums::new(outcome)),
        violations: Violations::of(outcome),
    }
}

fn samples(timeline: &Timeline) -> Samples {
    fn column<T>(timeline: &Timeline, of: fn(&Sample) -> T) -> Vec<T> {
        timeline.samples.iter().map(of).collect()
    }
    Samples {
        every_s: timeline.every_ns as f64 / 1e9,
        live_bytes: column(timeline, |sample| sample.live_bytes),
        slab_bytes: column(timeline, |sample| sample.slab_bytes),
        time_s: column(timeline, |sample| sample.time_ns as f64 / 1e9),
    }
}

fn counters(counts: &Counts) -> Counters {
    let counted = Event::ALL.iter().filter(|event| counts.get(**event) > 0 && !event.is_of_model());
    counted.map(|event| (event.name(), counts.get(*event))).collect()
}

/// The schema of sums: that of their columns.
fn total_schema(_: &mut SchemaGenerator) -> Schema {
    let outcome = nothing();
    let schema = figures().schema(&Sums::new(&outcome));
    schema.try_into().expect("an object is a schema")
}

/// The schema of a cache: that of its columns.
fn cache_schema(_: &mut SchemaGenerator) -> Schema {
    let cache = CacheOutcome {
        index: 0,
        name: String::new(),
        aliases: Vec::new(),
        geometry: Geometry {
            object_size: 8,
            size: 8,
            spacing: 8,
            link_offset: 0,
            order: 0,
            objects: 512,
            min_order: 0,
            min_objects: 512,
        },
        counts: Counts::default(),
        traffic: Traffic::default(),
        start: Usage::default(),
        end: Usage::default(),
    };
    let outcome = nothing();
    let schema = columns::caches().schema(&Row::new(&outcome, &cache));
    schema.try_into().expect("an object is a schema")
}

/// The outcome of no rows.
fn nothing() -> Outcome {
    Outcome {
        preset: Preset::parse("slub").expect("an engine"),
        wrap: Default::default(),
        partition: Default::default(),
        of_caches: "",
        violations: Default::default(),
        caches: Vec::new(),
        timeline: Timeline { samples: Vec::new(), every_ns: 0 },
        global: Counts::default(),
        large: LargeOutcome::default(),
        shared: Default::default(),
        no_layout: Vec::new(),
        rows: 0,
        page_size: 0,
        peak_frames: 0,
        start_frames: 0,
        end_frames: 0,
        unknown_frees: 0,
        elsewhere: Default::default(),
        model_bytes: 0,
        elapsed: Default::default(),
    }
}
