//! A calibration as a document, with every series and its quartiles.

use crate::costs::{Cost, Value, costs, doubts};
use crate::host::Host;
use crate::rig::Calibration;
use crate::series::Series;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::Document;

#[derive(Serialize, JsonSchema)]
pub(super) struct CalibrationDocument<'a> {
    /// The costs of a machine file.
    costs: Vec<CostDocument>,
    cpu_model: &'a str,
    cpus: usize,
    /// What contradicts what is known of every machine, in sentences.
    doubts: Vec<String>,
    kernel: &'a str,
    /// What disturbed the run.
    noise: NoiseDocument,
    /// What was left out, and why.
    notes: &'a [String],
    /// How often all probes ran.
    rounds: usize,
    seconds: f64,
    series: Vec<SeriesDocument>,
    virtual_machine: bool,
}

#[derive(Serialize, JsonSchema)]
struct CostDocument {
    /// The quartiles, and how they were got; empty for what was not measured.
    comment: String,
    /// The node distance, for a cost that depends on it.
    distance: Option<u32>,
    /// The name in a machine file.
    name: &'static str,
    source: String,
    value: ValueDocument,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ValueDocument {
    Ns(f64),
    Bytes(u64),
    Number(u64),
    Kind(&'static str),
    /// A kernel's release: major and minor number.
    Release(String),
}

#[derive(Serialize, JsonSchema)]
struct NoiseDocument {
    /// The share of blocks that took more than 1.5 times the median of their series; 0 to 1.
    disturbed: f64,
    /// Load average before and after.
    load: [f64; 2],
    /// The share of the CPUs' time that other programs used; 0 to 1.
    other_programs: f64,
    /// The share of the CPUs' time that the hypervisor gave to others; 0 to 1.
    stolen: f64,
}

/// What was measured: the median of the blocks, and the quartiles.
#[derive(Serialize, JsonSchema)]
struct SeriesDocument {
    blocks: usize,
    ns: f64,
    ns_high: f64,
    ns_low: f64,
    series: String,
}

impl Document for CalibrationDocument<'_> {
    const NAME: &'static str = "slablab.calibrate.1";
    const TITLE: &'static str = "slablab calibrate: what this host's parts cost";
}

impl CalibrationDocument<'_> {
    pub(super) fn new(run: &Calibration) -> CalibrationDocument<'_> {
        let Calibration { host, samples, noise, .. } = run;
        CalibrationDocument {
            costs: costs(host, samples).into_iter().map(|one| cost(one, host)).collect(),
            cpu_model: &host.model,
            cpus: host.cpus.len(),
            doubts: doubts(host, samples),
            kernel: &host.kernel,
            noise: NoiseDocument {
                disturbed: noise.disturbed,
                load: noise.load,
                other_programs: noise.others,
                stolen: noise.stolen,
            },
            notes: &run.notes,
            rounds: run.rounds,
            seconds: run.seconds,
            series: samples.series().filter_map(|one| series(run, one)).collect(),
            virtual_machine: host.virtual_machine,
        }
    }
}

fn cost(cost: Cost, host: &Host) -> CostDocument {
    let value = match cost.value {
        Value::Ns(ns) => ValueDocument::Ns(ns),
        Value::Bytes(bytes) => ValueDocument::Bytes(bytes),
        Value::Number(number) => ValueDocument::Number(number),
        Value::Kind(kind) => ValueDocument::Kind(kind),
        Value::Release(major, minor) => ValueDocument::Release(format!("{major}.{minor}")),
    };
    let source = cost.basis.source(&host.model);
    CostDocument { comment: cost.comment, distance: cost.distance, name: cost.name, source, value }
}

fn series(run: &Calibration, series: Series) -> Option<SeriesDocument> {
    let spread = run.samples.spread(series)?;
    Some(SeriesDocument {
        blocks: spread.blocks,
        ns: spread.median,
        ns_high: spread.high,
        ns_low: spread.low,
        series: series.to_string(),
    })
}
