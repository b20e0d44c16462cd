//! The report as a document: everything. Units are in the keys.

use super::columns;
use super::parts::PARTS;
use super::words::{damaged, evidence};
use crate::act::Report;
use crate::act::actions::Action;
use crate::act::knobs::knobs;
use crate::act::verdict::Verdict;
use crate::find::{Finding, Kind};
use crate::measure::cgroups::Charged;
use crate::measure::each::EachSlab;
use crate::measure::grown::Grown;
use crate::measure::history::{Growth, History};
use crate::measure::meminfo::Meminfo;
use crate::measure::reclaim::Reclaim;
use crate::measure::rounding::Rounding;
use crate::measure::split::{Metadata, Split};
use crate::measure::{Line, Measured};
use crate::state::{Cache, Missing, State};
use crate::what::{CorruptionDocument, Damaged, Failure, Known, MessageDocument};
use crate::whatif::Kernel;
use crate::whatif::normal::{Bytes, Normal};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use slablab_report::Document;
use slablab_report::column::Columns;
use std::borrow::Cow;

/// Where the slab memory of a machine goes, and what would help.
#[derive(Serialize, JsonSchema)]
pub(in crate::output) struct DoctorDocument<'a> {
    /// What this kernel lets its user do, most likely savings first.
    actions: Vec<ActionDocument<'a>>,
    /// Whether the input has all caches of the machine.
    all_caches: bool,
    /// The kernel's random number of this boot.
    boot_id: Option<&'a str>,
    /// Every cache, in the order of the input.
    caches: Vec<LineDocument<'a>>,
    /// Memory cgroups without children.
    cgroups: Vec<CgroupDocument<'a>>,
    /// Reports of damaged or lost objects.
    corruptions: Vec<CorruptionDocument<'a>>,
    /// CPUs that were online.
    cpus_online: Option<u32>,
    /// Removed cgroups that still hold memory.
    dying_cgroups: Option<u64>,
    /// Slabs of each cache that a recorder read one by one; empty for other inputs.
    each_slab: Vec<EachSlab>,
    /// The limits of the answer, in sentences.
    evidence: Vec<String>,
    findings: Vec<FindingDocument<'a>>,
    /// What grew since the first snapshot.
    growth: Option<HistoryDocument<'a>>,
    host: Option<&'a str>,
    /// The path that was examined; / for the running machine.
    input: String,
    /// The cost of kmalloc's classes, by a recording.
    kmalloc: Option<RoundingDocument>,
    /// What this kernel lets its user change.
    knobs: Vec<KnobDocument>,
    meminfo: Option<MeminfoDocument>,
    /// Messages of the kernel about slabs.
    messages: Vec<MessageDocument<'a>>,
    /// Files that were not there: why, what that costs, and the command that gets the file.
    missing: &'a [Missing],
    nodes: usize,
    /// What a machine takes that has only booted, with these CPUs and pages; null if that is not known.
    normal: Option<NormalDocument>,
    /// Caches whose object size without padding the input does not have.
    object_sizes_unknown: usize,
    /// Bytes of a page.
    page_size_bytes: u64,
    /// The release of the kernel, as `uname -r` prints it.
    release: Option<&'a str>,
    /// When the dump was taken, in seconds since 1970.
    taken_s: Option<u64>,
    /// The split of all caches.
    #[schemars(schema_with = "split_schema")]
    total: Map<String, Value>,
    /// How long the kernel had run, in seconds.
    up_s: Option<f64>,
    verdict: &'a Verdict,
}

#[derive(Serialize, JsonSchema)]
struct ActionDocument<'a> {
    /// How the range is known.
    basis: &'a str,
    /// The findings that it is for.
    because: &'a [Kind],
    /// The command to type, or the words to add to the kernel's command line.
    command: &'a str,
    cost: &'a str,
    knob: &'static str,
    /// Nothing needs it: it is for those who want memory back all the same.
    optional: bool,
    /// Below 0 it takes memory.
    saves_high_bytes: i64,
    saves_low_bytes: i64,
    when: &'static str,
}

/// A cache: its counts, its split, its growth.
#[derive(Serialize, JsonSchema)]
struct LineDocument<'a> {
    /// Other names of the cache: it was merged.
    aliases: &'a [String],
    growth: Option<GrowthDocument<'a>>,
    /// What it is for.
    what: Option<&'a str>,
    #[serde(flatten)]
    #[schemars(schema_with = "row_schema")]
    row: Map<String, Value>,
}

#[derive(Serialize, JsonSchema)]
struct CgroupDocument<'a> {
    growth_bytes: Option<i64>,
    /// On version 1 of cgroups, all kernel memory.
    kernel_bytes: Option<u64>,
    /// The name of its container or of its unit.
    name: &'a str,
    path: &'a str,
    reclaimable_bytes: Option<u64>,
    unreclaimable_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct CacheName<'a> {
    cache: &'a str,
    /// Which of several caches of one name: 0 for the first.
    ordinal: u32,
}

#[derive(Serialize, JsonSchema)]
struct FindingDocument<'a> {
    /// 0 where it is not about bytes.
    bytes: u64,
    /// Empty if it is about the machine.
    caches: Vec<CacheName<'a>>,
    kind: Kind,
    text: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct HistoryDocument<'a> {
    /// Caches that grew together.
    groups: Vec<GrownDocument<'a>>,
    /// Hours since the first snapshot; null if the snapshots have no time.
    hours: Option<&'a [f64]>,
    snapshots: usize,
    snapshots_from: Vec<String>,
    /// How the times are known, or why not.
    times_from: &'a str,
    total: GrowthDocument<'a>,
}

#[derive(Serialize, JsonSchema)]
struct GrownDocument<'a> {
    bytes: u64,
    caches: Vec<CacheName<'a>>,
    /// For a merged cache those names that its partners point to.
    names: &'a [String],
    objects: i64,
    /// Whether the kernel frees such objects by itself when it needs memory.
    reclaimable: bool,
    /// Whether each interval has growth; null with fewer than three snapshots.
    steady: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct GrowthDocument<'a> {
    /// Whether several caches of this name are taken together, as their number changed.
    all_of_this_name: bool,
    bytes: i64,
    bytes_per_hour: Option<f64>,
    /// Its standard error; null with two points, which every line fits.
    bytes_per_hour_error: Option<f64>,
    objects: i64,
    points: Option<usize>,
    r2: Option<f64>,
    /// Bytes of slabs in each snapshot, oldest first.
    #[serde(rename = "slab_bytes")]
    snapshots: Cow<'a, [u64]>,
}

#[derive(Serialize, JsonSchema)]
struct RoundingDocument {
    allocated_bytes: u64,
    classes: Vec<ClassDocument>,
    events_lost: u64,
    live_objects: u64,
    recording: String,
    requested_bytes: u64,
    rounding_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct ClassDocument {
    live_objects: u64,
    object_bytes: u32,
    requested_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct KnobDocument {
    /// Its name for programs, equal for all releases.
    knob: &'static str,
    name: &'static str,
    when: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct MeminfoDocument {
    /// How much the counters behind `Slab` may lag.
    counters_lag_bytes: Option<u64>,
    explanation: Option<String>,
    /// `Slab` less the sum of the caches; null if the input does not have all of them.
    outside_caches_bytes: Option<i64>,
    reclaimable_bytes: Option<u64>,
    slab_bytes: u64,
    unreclaimable_bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct NormalDocument {
    /// The CPUs of the boots that were measured.
    boots_cpus: Vec<u32>,
    cpus: u32,
    /// The kernel of the boots.
    kernel: Kernel,
    /// All slabs.
    slabs: Bytes,
    /// Slabs that no shrinker frees.
    unreclaimable: Bytes,
}

impl Document for DoctorDocument<'_> {
    const NAME: &'static str = "slablab.doctor.1";
    const TITLE: &'static str = "slablab doctor: where a machine's slab memory goes, and what would help";
}

impl<'a> DoctorDocument<'a> {
    /// The document of a report with these messages of the kernel.
    pub(super) fn new(report: &'a Report, messages: &'a [Failure]) -> DoctorDocument<'a> {
        let Report { measured, found, verdict, actions } = report;
        let (state, columns) = (measured.state, columns::caches());
        DoctorDocument {
            actions: actions.iter().map(action).collect(),
            all_caches: state.has_all_caches(),
            boot_id: state.dump.boot_id.as_deref(),
            caches: measured.lines.iter().map(|line| cache(&columns, line)).collect(),
            cgroups: measured.charged.iter().map(cgroup).collect(),
            corruptions: damaged(report).iter().map(Damaged::document).collect(),
            cpus_online: state.cpus.map(|cpus| cpus.online),
            dying_cgroups: state.dump.owners.dying(),
            each_slab: EachSlab::all(state),
            evidence: evidence(report),
            findings: found.findings.iter().map(finding).collect(),
            growth: measured.history.as_ref().map(|history| growths(measured, history)),
            host: state.dump.host.as_deref(),
            input: state.path.display().to_string(),
            kmalloc: measured.rounding.map(kmalloc),
            knobs: knobs(state)
                .map(|knob| KnobDocument { knob: knob.key, name: knob.name, when: knob.way.words() })
                .collect(),
            meminfo: measured.meminfo.as_ref().map(|known| meminfo(known, state)),
            messages: messages.iter().map(|failure| failure.document(Known::builtin())).collect(),
            missing: &state.missing,
            nodes: state.dump.nodes.len(),
            normal: Normal::of(state).ok().map(normal),
            object_sizes_unknown: measured.unknown_sizes,
            page_size_bytes: state.page_size,
            release: state.dump.release.as_deref(),
            taken_s: state.taken_s,
            total: split(&measured.total),
            up_s: state.up_s,
            verdict,
        }
    }
}

fn normal(normal: Normal) -> NormalDocument {
    let Normal { kernel, boots, cpus, slabs, unreclaimable } = normal;
    NormalDocument { boots_cpus: boots, cpus, kernel, slabs, unreclaimable }
}

fn action(action: &Action) -> ActionDocument<'_> {
    ActionDocument {
        basis: &action.basis,
        because: &action.because,
        command: &action.command,
        cost: &action.cost,
        knob: action.knob,
        optional: action.optional,
        saves_high_bytes: action.saves.1,
        saves_low_bytes: action.saves.0,
        when: action.way.words(),
    }
}

fn cache<'a>(columns: &Columns<Line<'a>>, line: &'a Line<'a>) -> LineDocument<'a> {
    LineDocument {
        aliases: &line.cache.aliases,
        growth: line.growth.as_ref().map(|known| growth(known, known.points.as_slice().into())),
        what: line.what.map(|entry| entry.what.as_str()),
        row: columns.json(line),
    }
}

fn cgroup<'a>(charged: &'a Charged) -> CgroupDocument<'a> {
    CgroupDocument {
        growth_bytes: charged.growth,
        kernel_bytes: charged.cgroup.kernel,
        name: &charged.name,
        path: &charged.cgroup.path,
        reclaimable_bytes: charged.cgroup.reclaimable,
        unreclaimable_bytes: charged.cgroup.unreclaimable,
    }
}

fn finding(finding: &Finding) -> FindingDocument<'_> {
    FindingDocument {
        bytes: finding.bytes,
        caches: finding
            .caches
            .iter()
            .map(|(cache, ordinal)| CacheName { cache, ordinal: *ordinal })
            .collect(),
        kind: finding.kind,
        text: &finding.text,
    }
}

/// Growth of all caches together, and the caches that grew together.
fn growths<'a>(measured: &'a Measured, history: &'a History) -> HistoryDocument<'a> {
    let total = history.total();
    HistoryDocument {
        groups: measured.grown.iter().map(|group| grown(measured, group)).collect(),
        hours: history.hours.as_deref(),
        snapshots: history.points(),
        snapshots_from: history.states().iter().map(|state| state.path.display().to_string()).collect(),
        times_from: &history.times_from,
        total: growth(&total, total.points.clone().into()),
    }
}

fn grown<'a>(measured: &'a Measured, group: &'a Grown) -> GrownDocument<'a> {
    let caches = group.lines.iter().map(|at| measured.lines[*at].cache);
    GrownDocument {
        bytes: group.bytes,
        caches: caches.map(|cache| CacheName { cache: &cache.name, ordinal: cache.ordinal }).collect(),
        names: &group.names,
        objects: group.objects,
        reclaimable: group.benign,
        steady: group.steady,
    }
}

fn growth<'a>(growth: &Growth, snapshots: Cow<'a, [u64]>) -> GrowthDocument<'a> {
    GrowthDocument {
        all_of_this_name: growth.together,
        bytes: growth.bytes,
        bytes_per_hour: growth.fit.map(|fit| fit.bytes_per_hour),
        bytes_per_hour_error: growth.fit.and_then(|fit| fit.error),
        objects: growth.objects,
        points: growth.fit.map(|fit| fit.points),
        r2: growth.fit.and_then(|fit| fit.r2),
        snapshots,
    }
}

fn kmalloc(rounding: &Rounding) -> RoundingDocument {
    let class = |(allocated, (objects, requested)): (&u32, &(u64, u64))| ClassDocument {
        live_objects: *objects,
        object_bytes: *allocated,
        requested_bytes: *requested,
    };
    RoundingDocument {
        allocated_bytes: rounding.allocated,
        classes: rounding.classes.iter().map(class).collect(),
        events_lost: rounding.losses.events,
        live_objects: rounding.objects,
        recording: rounding.path.display().to_string(),
        requested_bytes: rounding.requested,
        rounding_bytes: rounding.bytes(),
    }
}

fn meminfo(meminfo: &Meminfo, state: &State) -> MeminfoDocument {
    let is_whole = state.has_all_caches();
    MeminfoDocument {
        counters_lag_bytes: meminfo.lag,
        explanation: is_whole.then(|| meminfo.explanation()),
        outside_caches_bytes: is_whole.then_some(meminfo.gap),
        reclaimable_bytes: meminfo.reclaimable,
        slab_bytes: meminfo.slab,
        unreclaimable_bytes: meminfo.unreclaimable,
    }
}

/// Every part; an unknown one is null.
fn split(split: &Split) -> Map<String, Value> {
    PARTS.iter().map(|part| (part.key.to_string(), json!((part.get)(split)))).collect()
}

/// The schema of a split: a part that a split without object sizes does not tell may be null.
fn split_schema(_: &mut SchemaGenerator) -> Schema {
    let unknown = Split::default();
    let part = |part: &super::parts::Part| {
        let kind = if (part.get)(&unknown).is_some() { json!("integer") } else { json!(["integer", "null"]) };
        (part.key.to_string(), json!({ "type": kind, "description": part.name }))
    };
    let properties: Map<String, Value> = PARTS.iter().map(part).collect();
    let required: Vec<&str> = PARTS.iter().map(|part| part.key).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Schema::try_from(schema).expect("an object is a schema")
}

/// The schema of a cache's row, by a cache of which all is known and one of which its bytes are known alone.
fn row_schema(_: &mut SchemaGenerator) -> Schema {
    let whole = Cache { object_size: Some(1), ..Cache::default() };
    let bytes = Cache { bytes_only: true, ..Cache::default() };
    let line = |cache, metadata| Line {
        cache,
        split: Split { metadata, ..Split::default() },
        words: None,
        growth: None,
        what: None,
        reclaim: Reclaim::Unknown,
    };
    let mut schema =
        columns::caches().schema_of(&[line(&whole, Some(Metadata::default())), line(&bytes, None)]);
    for part in &PARTS {
        schema["properties"][part.key]["description"] = part.name.into();
    }
    schema["properties"]["ordinal"]["description"] =
        "Which of several caches of one name: 0 for the first.".into();
    Schema::try_from(schema).expect("an object is a schema")
}
