//! `mmap1`: will-it-scale's program of this name.

use super::repeat::{self, KIND, METRICS, NODES, OUTSIDE, TASKS, WARM_UP, WINDOW, observed, repeat};
use crate::workload::{Observed, Pair, Parameter, Values, Workload};
use slablab_sim::era::Era;
use slablab_sim::programs::mmap1::{Mmap1, describe, run_recorded};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;

/// The workload.
pub(super) const MMAP1: Workload = Workload {
    name: "mmap1",
    about: "each task maps 128 MiB of anonymous memory and unmaps it, without touching it",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects: |release| repeat::objects(describe(Era { release }, &Mmap1::default())),
    ignores: repeat::ignores,
    check: |_, _| Ok(()),
    estimate: |machine, values| repeat::estimate(machine, values, [1_500, 3_000]),
    observe,
    suite: SUITE,
};

const SUITE: &[Pair] = &[
    Pair { machine: "laptop", parameters: "tasks = 8", why: "mappings and their tree, a task on each CPU" },
    Pair {
        machine: "spr224",
        parameters: "tasks = 56",
        why: "a quarter of many CPUs, each with its own process",
    },
];

const PARAMETERS: &[Parameter] = &[TASKS, KIND, NODES, OUTSIDE, WARM_UP, WINDOW];

/// A repeat draws what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let load = Mmap1 { repeat: repeat(values), nodes: values.number("nodes") as u32 };
    Ok(observed(run_recorded(setup, &load, seed, recorder)?, values))
}
