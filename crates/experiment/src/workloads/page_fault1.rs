//! `page_fault1`: will-it-scale's program of this name.

use super::repeat::{self, KIND, METRICS, NODES, OUTSIDE, TASKS, WARM_UP, WINDOW, observed, repeat};
use crate::workload::{Kind, Observed, Pair, Parameter, Values, Workload};
use slablab_sim::era::Era;
use slablab_sim::programs::page_fault1::{PageFault1, describe, run_recorded};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;

/// The workload.
pub(super) const PAGE_FAULT1: Workload = Workload {
    name: "page_fault1",
    about: "each task maps anonymous memory, touches each page of it, and unmaps it",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects: |release| repeat::objects(describe(Era { release }, &PageFault1::default(), 12)),
    ignores: repeat::ignores,
    check: |_, _| Ok(()),
    estimate: |machine, values| repeat::estimate(machine, values, [500, 900]),
    observe,
    suite: SUITE,
};

const SUITE: &[Pair] = &[Pair {
    machine: "laptop",
    parameters: "tasks = 8",
    why: "page faults: the page allocator beside the slabs",
}];

const PARAMETERS: &[Parameter] = &[TASKS, KIND, MIB, NODES, OUTSIDE, WARM_UP, WINDOW];

const MIB: Parameter = Parameter {
    name: "mapping_mib",
    about: "MiB of the mapping",
    source: "will-it-scale: 128, a full run's; smaller ones end within the window",
    kind: Kind::Number { least: 1, most: 1 << 20, defaults: [1, 4, 128] },
};

/// A repeat draws what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let load = PageFault1 {
        repeat: repeat(values),
        nodes: values.number("nodes") as u32,
        bytes: values.number("mapping_mib") << 20,
    };
    Ok(observed(run_recorded(setup, &load, seed, recorder)?, values))
}
