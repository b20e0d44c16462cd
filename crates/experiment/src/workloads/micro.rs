//! `micro`: one size, one pattern of allocations and frees.

use super::kernel::{FAST_ALLOCS, FAST_FREES};
use crate::workload::{
    Estimate, Kind, Metric, OF_TASKS, Object, Observed, Pair, Parameter, Sample, Values, Workload,
};
use slablab_model::{LockTimes, MachineSpec};
use slablab_platform::{CpuId, Rank, rank};
use slablab_sim::paths;
use slablab_sim::programs::micro::{Crowd, Load, Measured, Pattern, measure_at};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::borrow::Cow;

/// The workload.
pub(super) const MICRO: Workload = Workload {
    name: "micro",
    about: "what a microbenchmark of kmalloc would measure: pairs, batches, frees on another CPU, all \
            CPUs at once, programs of many threads",
    parameters: PARAMETERS,
    metrics: METRICS,
    objects,
    ignores,
    check,
    estimate,
    observe,
    suite: SUITE,
};

const PATTERNS: &[&str] =
    &["pair", "batch", "shuffled", "one-way", "concurrent", "churn", "larson", "xmalloc", "mstress"];

const SUITE: &[Pair] = &[
    Pair {
        machine: "laptop",
        parameters: "pattern = [\"pair\", \"batch\", \"one-way\"]\nbytes = [64, 1024]",
        why: "the cost of one object, alone, in batches, and freed on another CPU",
    },
    Pair {
        machine: "numa8",
        parameters: "pattern = \"one-way\"\nto_cpu = [4, 16]",
        why: "frees on a node without memory, and on another socket",
    },
];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "pattern",
        about: "pair: an object is allocated and freed, again and again; batch: `batch` objects are \
                allocated, then all are freed; shuffled: freed in an order that is drawn; one-way: CPU 0 \
                allocates, CPU `to_cpu` frees; concurrent: `cpus` CPUs at once do a batch, and wait for each \
                other between its halves; churn: `cpus` CPUs do batches and wait for none; larson: they \
                replace random objects of tables of batch / 4, which go to the next CPU after each batch; \
                xmalloc: half of them allocate batches, half free them; mstress: they allocate and free at \
                random, and swap objects at random",
        source: "shuffled: V. Babka, 2025; concurrent: the module of C. Lameter that J. Kim used in 2016; \
                 larson, xmalloc, mstress: in the manner of these benchmarks, with numbers chosen here",
        kind: Kind::Word(PATTERNS),
    },
    Parameter {
        name: "bytes",
        about: "bytes of an object",
        source: "assumed",
        kind: Kind::Number { least: 8, most: 4 << 20, defaults: [64; 3] },
    },
    Parameter {
        name: "batch",
        about: "objects of a batch, for each CPU; objects between the two CPUs of one-way",
        source: "assumed",
        kind: Kind::Number { least: 1, most: 1 << 20, defaults: [100; 3] },
    },
    Parameter {
        name: "to_cpu",
        about: "the CPU that frees in the pattern one-way",
        source: "assumed",
        kind: Kind::Number { least: 1, most: u16::MAX as u64 - 1, defaults: [1; 3] },
    },
    Parameter {
        name: "cpus",
        about: "CPUs of the patterns from concurrent on; 0: all",
        source: "assumed",
        kind: Kind::Number { least: 0, most: u16::MAX as u64 - 1, defaults: [0; 3] },
    },
    Parameter {
        name: "sheaf_capacity",
        about: "0: objects of kmalloc's class; else objects of a cache of their own, which asks for sheaves \
                of this capacity. Only 6.18 lets caches ask",
        source: "V. Babka, 2025: 32",
        kind: Kind::Number { least: 0, most: 1024, defaults: [0; 3] },
    },
    Parameter {
        name: "prices",
        about: "what an operation costs beside the lines that it touches: in the kernel, or in a program with a \
                slot for each thread",
        source: "crates/sim/src/heap/paths.rs; an instruction of a program takes a third of a cycle (assumed)",
        kind: Kind::Word(PRICES),
    },
    Parameter {
        name: "objects",
        about: "objects that are counted, in whole batches, after as many or 20,000 to warm up; from churn on \
                for each CPU, after as many",
        source: "assumed",
        kind: Kind::Number { least: 1_000, most: 1 << 32, defaults: [20_000, 200_000, 2_000_000] },
    },
];

const fn time(name: &'static str, about: &'static str, unit: &'static str, decimals: usize) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit, per_unit: 1e3, decimals }
}

const PRICES: &[&str] = &["kernel", "program"];

/// Of 1,000 objects: the runs count for a million.
const fn of_many(name: &'static str, about: &'static str, unit: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit, per_unit: 1e3, decimals: 2 }
}

const METRICS: &[Metric] = &[
    time("cpu_ps", "CPU time of one object, allocation and free, on all CPUs", "ns", 2),
    time("wall_ps", "time from the start to the end, for one object", "ns", 2),
    time("cpu_mcycles", "CPU time of one object, allocation and free, on all CPUs", "cycles", 1),
    time("alloc_mcycles", "time of one allocation on its CPU, waits for locks included", "cycles", 1),
    time("free_mcycles", "time of one free on its CPU, waits for locks included", "cycles", 1),
    FAST_ALLOCS,
    FAST_FREES,
    time("lock_wait_ps", "waits for locks, for one object", "ns", 2),
    time("barn_wait_ps", "waits for the locks of barns, for one object", "ns", 2),
    time("list_wait_ps", "waits for the locks of nodes' lists, for one object", "ns", 2),
    time("zone_wait_ps", "waits for zones' locks, for one object", "ns", 2),
    of_many("locks_per_million", "locks taken, for 1,000 objects", "locks"),
    of_many("waited_per_million", "locks that a CPU had to wait for, for 1,000 objects", "locks"),
    of_many("barn_locks_per_million", "locks of barns taken, for 1,000 objects", "locks"),
    of_many("list_locks_per_million", "locks of nodes' lists taken, for 1,000 objects", "locks"),
    of_many("zone_locks_per_million", "locks of zones taken, for 1,000 objects", "locks"),
    of_many("lines_per_million", "cache lines from other CPUs or from memory, for 1,000 objects", "lines"),
];

const OBJECTS: &[Object] = &[Object {
    cache: "kmalloc-<bytes>, or micro",
    bytes: 0,
    per_operation: Cow::Borrowed("1, of the size that `bytes` asks for"),
    source: "the parameter",
}];

fn objects(_release: Release) -> Vec<Object> {
    OBJECTS.to_vec()
}

fn ignores(cost: &str) -> bool {
    OF_TASKS.contains(&cost)
}

fn check(machine: &MachineSpec, values: &Values) -> Result<(), String> {
    let cpus = machine.cpu_node.len() as u64;
    let (to, at_once) = (values.number("to_cpu"), values.number("cpus"));
    match values.word("pattern") {
        "one-way" if to >= cpus => Err(format!("to_cpu = {to}: expected a CPU below {cpus}")),
        "pair" | "batch" | "shuffled" | "one-way" => Ok(()),
        _ if at_once > cpus => Err(format!("cpus = {at_once}: expected at most {cpus}, or 0 for all")),
        "xmalloc" if (if at_once == 0 { cpus } else { at_once }) % 2 == 1 => {
            Err(format!("cpus = {at_once}: expected an even number: half of them allocate, half free"))
        }
        "larson" if values.number("batch") < 4 => {
            Err(format!("batch = {}: expected at least 4: a table has a quarter", values.number("batch")))
        }
        _ => Ok(()),
    }
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    let (objects, round) = (objects_of(machine, values), round(machine, values));
    let whole = |objects: u64| objects.max(1).div_ceil(round) * round;
    let live = round * values.number("bytes");
    Estimate::of_operations(machine, (whole(objects) + whole(objects.min(20_000))) * 2, live)
}

/// The crowd of a pattern, if it is one.
fn crowd(values: &Values) -> Option<Crowd> {
    match values.word("pattern") {
        "churn" => Some(Crowd::Churn),
        "larson" => Some(Crowd::Larson),
        "xmalloc" => Some(Crowd::OneWay),
        "mstress" => Some(Crowd::Swap),
        _ => None,
    }
}

/// Objects that are counted.
fn objects_of(machine: &MachineSpec, values: &Values) -> u64 {
    let each = crowd(values).map_or(1, |_| u64::from(cpus(machine, values)));
    values.number("objects") * each
}

/// CPUs of the patterns from `concurrent` on.
fn cpus(machine: &MachineSpec, values: &Values) -> u16 {
    match values.number("cpus") {
        0 => machine.cpu_node.len() as u16,
        cpus => cpus as u16,
    }
}

/// Objects that are live at once.
fn round(machine: &MachineSpec, values: &Values) -> u64 {
    match values.word("pattern") {
        "pair" => 1,
        "batch" | "shuffled" | "one-way" => values.number("batch"),
        _ => values.number("batch") * u64::from(cpus(machine, values)),
    }
}

/// The seed draws the order of shuffled frees, and that of a free list which is in random order.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let batch = values.number("batch") as u32;
    let pattern = match values.word("pattern") {
        "pair" => Pattern::Pair,
        "batch" => Pattern::Batch(batch),
        "shuffled" => Pattern::Shuffled(batch),
        "concurrent" => Pattern::Concurrent { cpus: cpus(&setup.spec, values), each: batch },
        _ if let Some(of) = crowd(values) => {
            Pattern::Crowd { of, cpus: cpus(&setup.spec, values), each: batch }
        }
        _ => Pattern::OneWay { to: CpuId(values.number("to_cpu") as u16), window: batch },
    };
    let load = Load {
        pattern,
        bytes: values.number("bytes") as u32,
        sheaf_capacity: values.number("sheaf_capacity") as u32,
        objects: objects_of(&setup.spec, values),
        seed,
    };
    let costs = &setup.hardware.costs;
    let prices = match values.word("prices") {
        "program" => paths::native(&setup.preset, costs, costs.cycle * 1_000 / 3),
        _ => paths::paths(&setup.preset, costs),
    };
    let found = measure_at(setup, prices, &load, recorder)?;
    let mcycles = |ps: u64| ps * 1_000 / setup.hardware.costs.cycle;
    let numbers = [
        ("cpu_ps", found.cpu),
        ("wall_ps", found.wall),
        ("cpu_mcycles", mcycles(found.cpu)),
        ("alloc_mcycles", mcycles(found.alloc)),
        ("free_mcycles", mcycles(found.free)),
        ("fast_allocs_ppm", found.fast_allocs * 1_000),
        ("fast_frees_ppm", found.fast_frees * 1_000),
    ];
    let metrics = numbers.into_iter().chain(of_locks(&found));
    let metrics = metrics.map(|(name, number)| (name.to_string(), number)).collect();
    let sample = Sample { metrics, ..Sample::default() };
    Ok(Observed { sample, profile: Some(found.profile) })
}

/// What locks did, and lines that moved.
fn of_locks(found: &Measured) -> [(&'static str, u64); 10] {
    let of = |rank: Option<&str>, what: fn(&LockTimes) -> u64| -> u64 {
        let locks = found.locks.iter().filter(|(name, _)| rank.is_none_or(|rank| rank == *name));
        locks.map(|(_, times)| what(times)).sum()
    };
    let wait = |rank| of(rank, |times| times.wait) / found.objects;
    let million = |count: u64| count * 1_000_000 / found.objects;
    let taken = |rank| million(of(rank, |times| times.taken));
    let [barn, list, zone] = [rank::Barn::NAME, rank::NodeList::NAME, rank::Zone::NAME].map(Some);
    [
        ("lock_wait_ps", wait(None)),
        ("barn_wait_ps", wait(barn)),
        ("list_wait_ps", wait(list)),
        ("zone_wait_ps", wait(zone)),
        ("locks_per_million", taken(None)),
        ("waited_per_million", million(of(None, |times| times.waited))),
        ("barn_locks_per_million", taken(barn)),
        ("list_locks_per_million", taken(list)),
        ("zone_locks_per_million", taken(zone)),
        ("lines_per_million", million(found.lines)),
    ]
}

/// The words of the parameter `pattern` are those that a run knows.
const _: () = assert!(PATTERNS.len() == 9);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Value;

    #[test]
    fn a_free_needs_a_cpu_of_the_machine() {
        let machine = MachineSpec::uniform(2, 1, 1 << 30);
        let check = |pattern: &str, to: u64, expected: Result<(), String>| {
            let values = [
                ("pattern", Value::Word(pattern.into())),
                ("to_cpu", Value::Number(to)),
                ("cpus", Value::Number(to)),
            ];
            assert_eq!(super::check(&machine, &Values(values.into())), expected, "{pattern} to {to}");
        };
        check("one-way", 1, Ok(()));
        check("pair", 7, Ok(()));
        check("concurrent", 2, Ok(()));
        check("concurrent", 3, Err("cpus = 3: expected at most 2, or 0 for all".into()));
        check("one-way", 2, Err("to_cpu = 2: expected a CPU below 2".into()));
    }
}
