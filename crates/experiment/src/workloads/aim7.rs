//! `aim7`: users that run jobs of a mix.

use super::kernel::{KERNEL, rows, sample, with_kernel};

const SUITE: &[Pair] =
    &[Pair { machine: "laptop", parameters: "", why: "forks, files and messages at a time" }];
use super::repeat::{TASKS, WARM_UP, WINDOW};
use crate::workload::{Estimate, Kind, Metric, Object, Observed, Pair, Parameter, Values, Workload, ps};
use slablab_model::MachineSpec;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::process;
use slablab_sim::programs::aim7::{self, Aim7, MIXES};
use slablab_sim::programs::repeat::{Length, Repeat};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// The workload.
pub(super) const AIM7: Workload = Workload {
    name: "aim7",
    about: "users that each run jobs in random order: forks, execs, heaps, files, pipes and sockets",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores: |_| false,
    check: |_, _| Ok(()),
    estimate,
    observe,
    suite: SUITE,
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        about: "users, processes that are not pinned",
        source: "AIM7's results are curves over the number of tasks",
        kind: Kind::Number { least: 1, most: 10_000, defaults: [8, 16, 100] },
        ..TASKS
    },
    Parameter {
        name: "mix",
        about: "jobs: shared has each of 12 once; compute has arithmetic, forks and heaps; files has files alone",
        source: "assumed; AIM7's mixes have these names and about 50 jobs",
        kind: Kind::Word(&[MIXES[0].0, MIXES[1].0, MIXES[2].0]),
    },
    Parameter {
        source: "assumed: some jobs",
        kind: Kind::Number { least: 0, most: 100_000_000, defaults: [5_000, 20_000, 100_000] },
        ..WARM_UP
    },
    Parameter {
        source: "assumed; the real one runs for minutes",
        kind: Kind::Number { least: 10, most: 100_000_000, defaults: [30_000, 200_000, 10_000_000] },
        ..WINDOW
    },
];

const METRICS: [Metric; 2 + KERNEL.len()] = with_kernel([
    Metric {
        name: "jobs_per_min",
        about: "jobs in a minute, of all users; a job is a thousandth of the benchmark's",
        better: Some(Better::Higher),
        unit: "1/min",
        per_unit: 1.0,
        decimals: 0,
    },
    Metric {
        name: "job_ps",
        about: "time of a job of one user",
        better: Some(Better::Lower),
        unit: "us",
        per_unit: 1e6,
        decimals: 1,
    },
]);

fn objects(release: Release) -> Vec<Object> {
    let objects = [
        (Kernel::Task, "1 for each child of the jobs fork (8) and exec (4)"),
        (Kernel::Mm, "1 for each of these children, and 1 for each exec"),
        (Kernel::Vma, "20 for each of these children and of these execs; 1 for each change of the heap"),
        (Kernel::Name, "1 for each lookup, open and removal"),
        (Kernel::File, "1 for each open"),
        (Kernel::Dentry, "1 for each file that is created"),
        (Kernel::FileInode, "1 for each file that is created"),
        (Kernel::BufferHead, "64 for each of the jobs write, copy and sync"),
        (Kernel::JournalHandle, "1 for each file made or removed; ext3: 1 for each page written"),
        (Kernel::Bio, "64 for each job sync"),
        (Kernel::SkBuff, "300 for each job stream, with data from kmalloc"),
    ];
    rows(release, &objects)
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// A microsecond of a busy CPU takes this long on the host (measured).
    const HOST_NS: u64 = 1_500;
    let busy = values.number("tasks").min(machine.cpu_node.len() as u64);
    let us = values.number("warm_up_us") + values.number("window_us");
    let slabs = Estimate::of_operations(machine, 0, 64 << 20);
    let host_bytes = slabs.host_bytes + values.number("tasks") * (256 << 10);
    Estimate { host_ns: busy.saturating_mul(us).saturating_mul(HOST_NS), host_bytes }
}

/// A repeat draws the jobs, the lengths of pieces of work, and what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let us = |name: &str| ps(values.number(name) * 1_000);
    let length = Length::Window { warm_up: us("warm_up_us"), counted: us("window_us") };
    let tasks = values.number("tasks") as u32;
    let mix = MIXES.iter().position(|(name, _)| *name == values.word("mix")).unwrap_or(0);
    let repeat = Repeat { tasks, kind: process::Kind::Process, outside: 0, length };
    let outcome = aim7::run_recorded(setup, &Aim7 { repeat, mix }, seed, recorder)?;
    let wide = u128::from(outcome.messages) * 60_000_000_000_000;
    let own = [
        ("jobs_per_min", (wide / u128::from(outcome.elapsed.max(1))) as u64),
        ("job_ps", outcome.elapsed.saturating_mul(u64::from(tasks)) / outcome.messages.max(1)),
    ];
    Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
}
