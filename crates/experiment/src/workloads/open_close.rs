//! `open-close`: will-it-scale's open1.

use super::kernel::rows;
use super::repeat::{self, KIND, METRICS, OUTSIDE, TASKS, WARM_UP, WINDOW};

const SUITE: &[Pair] = &[
    Pair { machine: "laptop", parameters: "tasks = 8", why: "open files and paths, a task on each CPU" },
    Pair { machine: "numa8", parameters: "tasks = 16", why: "CPUs whose node has no memory" },
];
use crate::workload::{Estimate, Object, Observed, Pair, Values, Workload};
use slablab_model::MachineSpec;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::programs::open_close::{self, OpenClose};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;

/// The workload.
pub(super) const OPEN_CLOSE: Workload = Workload {
    name: "open-close",
    about: "tasks that open and close a file each, all in one folder: will-it-scale's open1",
    parameters: &[TASKS, KIND, OUTSIDE, WARM_UP, WINDOW],
    metrics: &METRICS,
    objects,
    ignores: repeat::ignores,
    check: |_, _| Ok(()),
    estimate,
    observe,
    suite: SUITE,
};

fn objects(release: Release) -> Vec<Object> {
    let objects = [
        (Kernel::Name, "1 for each open, until it ends"),
        (Kernel::File, "1 for each open; freed by the close, until 6.6 after a grace period"),
        (Kernel::FileSecurity, "1 for each open"),
        (Kernel::Dentry, "1 for each task's file"),
        (Kernel::FileInode, "1 for each task's file"),
    ];
    rows(release, &objects)
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    repeat::estimate(machine, values, [500, 3_500])
}

/// A repeat draws the lengths of pieces of work.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let load = OpenClose { repeat: repeat::repeat(values) };
    Ok(repeat::observed(open_close::run_recorded(setup, &load, seed, recorder)?, values))
}
