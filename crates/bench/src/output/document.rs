//! A report as a document, with every sample.

use crate::host::{Host, host};
use crate::memory::FIGURES;
use crate::report::{Memory, Report, Row};
use crate::subject::Role;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::Document;
use std::collections::BTreeMap;

#[derive(Serialize, JsonSchema)]
pub(super) struct BenchDocument<'a> {
    /// Complete blocks.
    blocks: usize,
    /// CPUs that the process may use.
    cpus: usize,
    /// Workloads in which slablab differs from its twin, which is the same code.
    false_alarms: usize,
    host: Host,
    /// What the intervals contain.
    interval_percent: u8,
    /// Runnable processes after the run.
    load_after: f64,
    /// Runnable processes before the run.
    load_before: f64,
    memory: Vec<MemoryDocument>,
    /// Live bytes of the memory workload.
    memory_live_bytes: u64,
    /// Why the run gives no verdict; empty if it gives verdicts.
    no_verdict: &'a [String],
    /// Workloads and samples that were left out, with the reason.
    notes: &'a [String],
    /// The factor on the usual number of operations.
    scale: f64,
    /// The seed of random numbers.
    seed: u64,
    /// Workloads with a twin.
    twins: usize,
    workloads: &'a [Row],
}

/// Resident memory of an allocator.
#[derive(Serialize, JsonSchema)]
struct MemoryDocument {
    /// Medians over the processes, by name and unit; null for what was not measured.
    #[schemars(with = "BTreeMap<String, Option<f64>>")]
    figures: BTreeMap<String, f64>,
    name: &'static str,
    processes: usize,
    role: Role,
}

impl Document for BenchDocument<'_> {
    const NAME: &'static str = "slablab.bench.1";
    const TITLE: &'static str = "slablab bench: allocators side by side";
}

impl BenchDocument<'_> {
    pub(super) fn new(report: &Report) -> BenchDocument<'_> {
        let (false_alarms, twins) = report.false_alarms();
        BenchDocument {
            blocks: report.blocks,
            cpus: report.cpus,
            false_alarms,
            host: host(),
            interval_percent: 95,
            load_after: report.load[1],
            load_before: report.load[0],
            memory: report.memory.iter().map(memory).collect(),
            memory_live_bytes: report.memory_live_bytes,
            no_verdict: &report.no_verdict,
            notes: &report.notes,
            scale: report.scale,
            seed: report.seed,
            twins,
            workloads: &report.rows,
        }
    }
}

fn memory(one: &Memory) -> MemoryDocument {
    let figures = FIGURES.iter().zip(&one.figures).map(|((name, unit, _), value)| (key(name, unit), *value));
    MemoryDocument { figures: figures.collect(), name: one.name, processes: one.processes, role: one.role }
}

/// The JSON key of a figure: `90 % freed` in MB becomes `90_percent_freed_mb`.
fn key(name: &str, unit: &str) -> String {
    let unit = unit.to_lowercase().replace('/', "_per_");
    format!("{}_{unit}", name.replace('%', "percent").replace(' ', "_"))
}
