//! `ublk`: block I/O of 2026.

use super::kernel::{FAST_ALLOCS, FAST_FREES};
use crate::workload::{
    Draws, Estimate, Kind, Metric, OF_TASKS, Object, Observed, Pair, Parameter, Sample, Values, Workload,
    ppm, ps,
};
use slablab_model::{MachineSpec, Spent};
use slablab_platform::{CpuId, Event};
use slablab_sim::block::ublk::{self, Outcome};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::borrow::Cow;

/// The workload.
pub(super) const UBLK: Workload = Workload {
    name: "ublk",
    about: "block I/O on a null ublk device: io_uring submitters allocate bios, server threads free them",
    parameters: PARAMETERS,
    metrics: METRICS,
    objects,
    ignores,
    check,
    estimate,
    observe,
    suite: SUITE,
};

const SUITE: &[Pair] = &[
    Pair { machine: "numa8", parameters: "", why: "bios that the other CPU frees, memory on 2 of 8 nodes" },
    Pair { machine: "numa8-full", parameters: "", why: "bios that the other CPU frees, memory everywhere" },
];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "queues",
        about: "submitters, each on a CPU of its own; queue q has its server on CPU 2q and its submitter on \
                CPU 2q + 1",
        source: "M. Lei, 24 February 2026: 16 queues, submitters on CPUs 0 to 31, servers on the even ones",
        kind: Kind::Number { least: 1, most: 1024, defaults: [16; 3] },
    },
    Parameter {
        name: "depth",
        about: "I/Os in flight of one submitter",
        source: "the default of fio's t/io_uring",
        kind: Kind::Number { least: 1, most: 4096, defaults: [128; 3] },
    },
    Parameter {
        name: "batch",
        about: "I/Os that are submitted, and reaped, at a time",
        source: "the default of fio's t/io_uring",
        kind: Kind::Number { least: 1, most: 4096, defaults: [32; 3] },
    },
    Parameter {
        name: "outside_ns",
        about: "CPU time of an I/O on the submitter outside of the allocator",
        source: "assumed: an experiment fits it",
        kind: Kind::Number { least: 0, most: 1_000_000, defaults: [300; 3] },
    },
    Parameter {
        name: "serve_percent",
        about: "CPU time of an I/O on the server outside of the allocator, in percent of outside_ns",
        source: "assumed: the null target does less than the submitter",
        kind: Kind::Number { least: 0, most: 1_000, defaults: [80; 3] },
    },
    Parameter {
        name: "warm_up_us",
        about: "time before counting begins; a repeat adds up to a quarter of it",
        source: "assumed: the share of fast operations no longer changes",
        kind: Kind::Number { least: 0, most: 10_000_000, defaults: [600, 1_000, 10_000] },
    },
    Parameter {
        name: "counted_us",
        about: "time that is counted",
        source: "assumed",
        kind: Kind::Number { least: 10, most: 10_000_000, defaults: [400, 1_000, 100_000] },
    },
];

const METRICS: &[Metric] = &[
    Metric {
        name: "iops",
        about: "I/Os completed in a second, all submitters together",
        better: Some(Better::Higher),
        unit: "M",
        per_unit: 1e6,
        decimals: 2,
    },
    Metric {
        name: "io_ps",
        about: "time of one I/O and submitter",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 0,
    },
    FAST_ALLOCS,
    FAST_FREES,
    Metric::percent(
        "allocating_ppm",
        "part of the CPUs' busy time inside kmem_cache_alloc",
        Some(Better::Lower),
    ),
    Metric::percent(
        "bio_allocating_ppm",
        "part of the CPUs' busy time inside bio_alloc_bioset: the allocation and the writes to the bio",
        Some(Better::Lower),
    ),
    Metric::percent(
        "other_nodes_ppm",
        "part of the CPUs' busy time in slow allocations on nodes without memory: get_from_any_partial",
        Some(Better::Lower),
    ),
    Metric::percent("freeing_ppm", "part of the CPUs' busy time inside kmem_cache_free", Some(Better::Lower)),
    Metric::percent(
        "list_lock_ppm",
        "part of the CPUs' busy time in waits for a list_lock",
        Some(Better::Lower),
    ),
    Metric::percent(
        "barn_lock_ppm",
        "part of the CPUs' busy time in waits for a barn's lock",
        Some(Better::Lower),
    ),
    Metric::percent(
        "moved_lines_ppm",
        "part of the CPUs' busy time in lines of other caches",
        Some(Better::Lower),
    ),
];

const OBJECTS: &[Object] = &[Object {
    cache: "bio-264",
    bytes: 264,
    per_operation: Cow::Borrowed(
        "1: the submitter allocates it, the server frees it; each CPU's own cache of 256 bios \
                    comes first",
    ),
    source: "a dump of 6.18 for the size (320 apart); that it is the only object: assumed",
}];

fn objects(_release: Release) -> Vec<Object> {
    OBJECTS.to_vec()
}

fn ignores(cost: &str) -> bool {
    OF_TASKS.contains(&cost)
}

fn check(machine: &MachineSpec, values: &Values) -> Result<(), String> {
    let (queues, cpus) = (values.number("queues"), machine.cpu_node.len() as u64);
    if queues * 2 > cpus {
        return Err(format!("queues = {queues}: expected at most {}, half of the CPUs", cpus / 2));
    }
    let (batch, depth) = (values.number("batch"), values.number("depth"));
    if batch > depth {
        return Err(format!("batch = {batch}: expected at most depth = {depth}"));
    }
    Ok(())
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    let us = values.number("warm_up_us") * 5 / 4 + values.number("counted_us");
    // No I/O is done in less than 50 ns.
    let each = values.number("outside_ns").max(50);
    let ios = values.number("queues") * us * 1_000 / each;
    let live = values.number("queues") * (values.number("depth") + 512) * 320;
    Estimate::of_operations(machine, ios * 2, live)
}

/// A repeat draws the order in which the queues begin, and how long the warm-up is.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let mut draws = Draws(seed);
    let queues = values.number("queues") as u16;
    let mut pairs: Vec<_> = (0..queues).map(|queue| (CpuId(2 * queue + 1), CpuId(2 * queue))).collect();
    draws.shuffle(&mut pairs);
    let warm_up = ps(values.number("warm_up_us") * 1_000);
    let outside = values.number("outside_ns");
    let load = ublk::Ublk {
        pairs,
        depth: values.number("depth") as u32,
        batch: values.number("batch") as u32,
        submit: ps(outside),
        serve: ps(outside) * values.number("serve_percent") / 100,
        warm_up: warm_up + draws.below(warm_up / 4 + 1),
        counted: ps(values.number("counted_us") * 1_000),
    };
    let outcome = ublk::run_recorded(setup, &load, recorder)?;
    Ok(Observed { sample: sample(&outcome), profile: Some(outcome.profile) })
}

fn sample(outcome: &Outcome) -> Sample {
    let count =
        |wanted: Event| outcome.events.iter().find(|(event, _)| *event == wanted).map_or(0, |(_, n)| *n);
    let share = |fast: Event, slow: Event| ppm(count(fast), count(fast) + count(slow));
    let spent = |kind: Spent| outcome.submitters[kind as usize] + outcome.servers[kind as usize];
    let busy: u64 = outcome.submitters.iter().chain(&outcome.servers).sum();
    let numbers = [
        ("iops", outcome.iops()),
        ("io_ps", outcome.per_io()),
        ("fast_allocs_ppm", share(Event::AllocFastpath, Event::AllocSlowpath)),
        ("fast_frees_ppm", share(Event::FreeFastpath, Event::FreeSlowpath)),
        ("allocating_ppm", ppm(outcome.allocating, busy)),
        ("bio_allocating_ppm", ppm(outcome.bio_allocating, busy)),
        ("other_nodes_ppm", ppm(outcome.from_other_nodes, busy)),
        ("freeing_ppm", ppm(outcome.freeing, busy)),
        ("list_lock_ppm", ppm(outcome.list_lock.wait, busy)),
        ("barn_lock_ppm", ppm(outcome.barn_lock.wait, busy)),
        ("moved_lines_ppm", ppm(spent(Spent::Transfer), busy)),
    ];
    let counters = outcome.events.iter().filter(|(_, count)| *count > 0);
    Sample {
        metrics: numbers.map(|(name, number)| (name.to_string(), number)).into(),
        counters: counters.map(|(event, count)| (event.name().to_string(), *count)).collect(),
        locks: [("list_lock", outcome.list_lock), ("barn", outcome.barn_lock)]
            .map(|(name, times)| (name.to_string(), times))
            .into(),
    }
}
