//! `recording`: the tasks of any recording, which wait for each other.

use super::kernel::{KERNEL, sample, with_kernel};
use crate::recorded::Recorded;
use crate::workload::{Estimate, Kind, Metric, Object, Observed, Parameter, Values, Workload, ppm};
use slablab_model::MachineSpec;
use slablab_sim::programs::recording::{self, Load};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::sync::Arc;

/// The workload.
pub(super) const RECORDING: Workload = Workload {
    name: "recording",
    about: "the tasks of a recording do its allocations and frees again, and wait for each other's objects",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores,
    check,
    estimate,
    observe,
    suite: &[],
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "file",
        about: "the recording, as `slablab import` reads it, in the experiment's folder",
        source: "given",
        kind: Kind::File,
    },
    Parameter {
        name: "placement",
        about: "scheduled: the scheduler chooses each task's CPU; recorded: each event happens on its CPU of \
                the recording",
        source: "assumed",
        kind: Kind::Word(&["scheduled", "recorded"]),
    },
    Parameter {
        name: "ahead",
        about: "events of the recording by which a task may be ahead of the oldest that is not done: it \
                stands for waits that no recording has, as for a full pipe; 0: any number",
        source: "assumed",
        kind: Kind::Number { least: 0, most: 1 << 30, defaults: [10_000; 3] },
    },
    Parameter {
        name: "gap_max_us",
        about: "the longest time between two events of a CPU that counts as computing; the rest of a longer \
                gap is left out",
        source: "assumed",
        kind: Kind::Number { least: 0, most: 1_000_000, defaults: [100; 3] },
    },
    Parameter {
        name: "compute_percent",
        about: "computing between two events, in percent of the recorded time, which has the cost of the \
                recorder and of the recorded kernel's allocator in it",
        source: "assumed",
        kind: Kind::Number { least: 0, most: 10_000, defaults: [100; 3] },
    },
];

const METRICS: [Metric; 7 + KERNEL.len()] = with_kernel([
    Metric {
        name: "elapsed_ps",
        about: "time from the start of the tasks to the end of the last",
        better: Some(Better::Lower),
        unit: "ms",
        per_unit: 1e9,
        decimals: 3,
    },
    Metric {
        name: "event_ps",
        about: "the same for each allocation and free",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 1,
    },
    Metric {
        name: "operation_ps",
        about: "time of an allocation or a free in the allocator, waits for locks included",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 1,
    },
    Metric::each("object_waits_milli", "waits for an object of another task, for one allocation or free"),
    Metric::each("ahead_waits_milli", "waits of tasks that are too far ahead, for one allocation or free"),
    Metric {
        name: "recorded_elapsed_ps",
        about: "time of the recording itself, from its first event to its last",
        better: None,
        unit: "ms",
        per_unit: 1e9,
        decimals: 3,
    },
    Metric::percent(
        "recorded_elsewhere_ppm",
        "frees on another CPU than that of the allocation in the recording itself",
        None,
    ),
]);

fn objects(_release: Release) -> Vec<Object> {
    vec![Object {
        cache: "those of the recording",
        bytes: 0,
        per_operation: "as recorded; a kmalloc is of the engine's class for its bytes".into(),
        source: "the recording",
    }]
}

/// Tasks are there from the start, send nothing and touch no page.
fn ignores(cost: &str) -> bool {
    ["copy_kib", "page_fault", "fork", "exit"].contains(&cost)
}

fn check(machine: &MachineSpec, values: &Values) -> Result<(), String> {
    let recorded = values.file("file").recorded()?;
    let (cpus, needed) = (machine.cpu_node.len(), usize::from(recorded.script.cpus()));
    if values.word("placement") == "recorded" && cpus < needed {
        return Err(format!("placement = recorded: expected at least {needed} CPUs, found {cpus}"));
    }
    Ok(())
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// An event with its share of waits and switches (measured: 0.5 to 1.5 us).
    const EVENT_NS: u64 = 1_500;
    /// A step, an object, and what the kernel counts of it.
    const EVENT_BYTES: u64 = 64;
    let steps = values.file("file").recorded().map_or(0, |recorded| u64::from(recorded.script.steps));
    let slabs = Estimate::of_operations(machine, 0, 64 << 20);
    Estimate { host_ns: steps * EVENT_NS, host_bytes: slabs.host_bytes + steps * EVENT_BYTES }
}

/// A repeat draws how long each task computes: an eighth more or less than recorded.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let recorded = values.file("file").recorded().map_err(Failed::Machine)?;
    let load = Load {
        as_recorded: values.word("placement") == "recorded",
        ahead: values.number("ahead") as u32,
        gap_max_ns: values.number("gap_max_us") as u32 * 1_000,
        compute_percent: values.number("compute_percent") as u32,
    };
    let outcome = recording::run_recorded(setup, &recorded.script, &load, seed, recorder)?;
    Ok(observed(outcome, &recorded))
}

fn observed(outcome: recording::Outcome, recorded: &Arc<Recorded>) -> Observed {
    let events = outcome.kernel.messages.max(1);
    let own = [
        ("elapsed_ps", outcome.kernel.elapsed),
        ("event_ps", outcome.kernel.elapsed / events),
        ("operation_ps", outcome.operations / events),
        ("object_waits_milli", outcome.object_waits * 1_000 / events),
        ("ahead_waits_milli", outcome.ahead_waits * 1_000 / events),
        ("recorded_elapsed_ps", recorded.elapsed_ns * 1_000),
        ("recorded_elsewhere_ppm", ppm(recorded.elsewhere, recorded.frees)),
    ];
    Observed { sample: sample(&METRICS, &outcome.kernel, &own), profile: Some(outcome.kernel.profile) }
}
