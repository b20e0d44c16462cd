//! Block I/O of 2026 on a null ublk device: what M. Lei's report runs.
//!
//! | module | contents |
//! |---|---|
//! | `device` | submitters, servers, and the bios between them |

mod device;

use super::draws::Draws;
use super::measures::{FAST_ALLOCS, FAST_FREES};
use super::program::{
    Estimate, Metric, NS, OF_TASKS, Object as Described, Observed, Pair, Program, Sample, US, ppm,
};
use crate::kernel::tally::Failed;
use crate::params::params;
use crate::record::Recorder;
use crate::setup::Setup;
use device::{Load, Outcome};
use slablab_model::{MachineSpec, Spent};
use slablab_platform::{CpuId, Event};
use slablab_slabs::Release;
use slablab_stats::table::Better;

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        queues: u16 = [16], 1..=1_024,
            "submitters, each on a CPU of its own; queue q has its server on CPU 2q and its submitter on \
             CPU 2q + 1",
            "M. Lei, 24 February 2026: 16 queues, submitters on CPUs 0 to 31, servers on the even ones";
        depth: u32 = [128], 1..=4_096, "I/Os in flight of one submitter", "the default of fio's t/io_uring";
        batch: u32 = [32], 1..=4_096, "I/Os that are submitted, and reaped, at a time",
            "the default of fio's t/io_uring";
        outside_ns: u64 = [300], 0..=1_000_000,
            "CPU time of an I/O on the submitter outside of the allocator", "assumed: an experiment fits it";
        serve_percent: u64 = [80], 0..=1_000,
            "CPU time of an I/O on the server outside of the allocator, in percent of outside_ns",
            "assumed: the null target does less than the submitter";
        warm_up_us: u64 = [600, 1_000, 10_000], 0..=10_000_000,
            "time before counting begins; a repeat adds up to a quarter of it",
            "assumed: the share of fast operations no longer changes";
        counted_us: u64 = [400, 1_000, 100_000], 10..=10_000_000, "time that is counted", "assumed";
    }
}

/// The program.
#[derive(Debug)]
pub enum Ublk {}

impl Program for Ublk {
    type Params = Params;

    const NAME: &'static str = "ublk";
    const ABOUT: &'static str =
        "block I/O on a null ublk device: io_uring submitters allocate bios, server threads free them";
    const METRICS: &'static [Metric] = METRICS;
    const SUITE: &'static [Pair] = &[
        Pair {
            machine: "numa8",
            parameters: "",
            why: "bios that the other CPU frees, memory on 2 of 8 nodes",
        },
        Pair {
            machine: "numa8-full",
            parameters: "",
            why: "bios that the other CPU frees, memory everywhere",
        },
    ];

    fn objects(_release: Release) -> Vec<Described> {
        vec![Described {
            cache: "bio-264",
            bytes: 264,
            per_operation: "1: the submitter allocates it, the server frees it; each CPU's own cache of 256 \
                            bios comes first"
                .into(),
            source: "a dump of 6.18 for the size (320 apart); that it is the only object: assumed",
        }]
    }

    fn ignores(cost: &str) -> bool {
        OF_TASKS.contains(&cost)
    }

    fn check(machine: &MachineSpec, params: &Params) -> Result<(), String> {
        let Params { queues, batch, depth, .. } = *params;
        let cpus = machine.cpu_node.len();
        if usize::from(queues) * 2 > cpus {
            return Err(format!("queues = {queues}: expected at most {}, half of the CPUs", cpus / 2));
        }
        if batch > depth {
            return Err(format!("batch = {batch}: expected at most depth = {depth}"));
        }
        Ok(())
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        let us = params.warm_up_us * 5 / 4 + params.counted_us;
        // No I/O is done in less than 50 ns.
        let each = params.outside_ns.max(50);
        let ios = u64::from(params.queues) * us * 1_000 / each;
        let live = u64::from(params.queues) * (u64::from(params.depth) + 512) * 320;
        Estimate::of_operations(machine, ios * 2, live)
    }

    /// A repeat draws the order in which the queues begin, and how long the warm-up is.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let mut draws = Draws(seed);
        let pair = |queue| (CpuId(2 * queue + 1), CpuId(2 * queue));
        let mut pairs: Vec<_> = (0..params.queues).map(pair).collect();
        draws.shuffle(&mut pairs);
        let warm_up = params.warm_up_us * US;
        let load = Load {
            pairs,
            depth: params.depth,
            batch: params.batch,
            submit: params.outside_ns * NS,
            serve: params.outside_ns * NS * params.serve_percent / 100,
            warm_up: warm_up + draws.below(warm_up / 4 + 1),
            counted: params.counted_us * US,
        };
        let outcome = device::run(setup, &load, recorder)?;
        Ok(Observed { sample: sample(&outcome), profile: Some(outcome.profile) })
    }
}

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
