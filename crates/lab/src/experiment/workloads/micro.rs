//! `micro`: one size, one pattern of allocations and frees.

use super::kernel::{FAST_ALLOCS, FAST_FREES};
use crate::experiment::workload::{
    Estimate, Kind, Metric, OF_TASKS, Object, Observed, Parameter, Sample, Values, Workload,
};
use slablab_model::MachineSpec;
use slablab_platform::CpuId;
use slablab_sim::micro::{Pattern, Setup, measure};
use slablab_sim::record::Recorder;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// The workload.
pub(super) const MICRO: Workload = Workload {
    name: "micro",
    about: "what a microbenchmark of kmalloc would measure: pairs, batches, frees on another CPU",
    parameters: PARAMETERS,
    metrics: METRICS,
    objects,
    ignores,
    check,
    estimate,
    observe,
    suite: &[],
};

const PATTERNS: &[&str] = &["pair", "batch", "one-way"];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "pattern",
        about: "pair: an object is allocated and freed, again and again; batch: `batch` objects are \
                allocated, then all are freed; one-way: CPU 0 allocates, CPU `to_cpu` frees",
        source: "assumed",
        kind: Kind::Word(PATTERNS),
    },
    Parameter {
        name: "bytes",
        about: "bytes of a request: the class of kmalloc that serves it",
        source: "assumed",
        kind: Kind::Number { least: 8, most: 4 << 20, defaults: [64; 3] },
    },
    Parameter {
        name: "batch",
        about: "objects of a batch; objects between the two CPUs of one-way",
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
        name: "objects",
        about: "objects that are counted, after as many or 20,000 to warm up",
        source: "assumed",
        kind: Kind::Number { least: 1_000, most: 1 << 32, defaults: [20_000, 200_000, 2_000_000] },
    },
];

const METRICS: &[Metric] = &[
    Metric {
        name: "cpu_ps",
        about: "CPU time of one object, allocation and free, on all CPUs",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 2,
    },
    Metric {
        name: "wall_ps",
        about: "time from the start to the end, for one object",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 2,
    },
    FAST_ALLOCS,
    FAST_FREES,
];

const OBJECTS: &[Object] = &[Object {
    cache: "kmalloc-<bytes>",
    bytes: 0,
    per_operation: "1, of the size that `bytes` asks for",
    source: "the parameter",
}];

fn objects(_release: Release) -> Vec<Object> {
    OBJECTS.to_vec()
}

fn ignores(cost: &str) -> bool {
    OF_TASKS.contains(&cost)
}

fn check(machine: &MachineSpec, values: &Values) -> Result<(), String> {
    let (to, cpus) = (values.number("to_cpu"), machine.cpu_node.len() as u64);
    if values.word("pattern") == "one-way" && to >= cpus {
        return Err(format!("to_cpu = {to}: expected a CPU below {cpus}"));
    }
    Ok(())
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    let objects = values.number("objects");
    let live = values.number("batch").min(objects) * values.number("bytes");
    Estimate::of_operations(machine, (objects + objects.min(20_000)) * 2, live)
}

/// Nothing of this workload is drawn: only a free list in random order depends on the seed.
fn observe(setup: &Setup, values: &Values, _seed: u64, _recorder: &Recorder) -> Result<Observed, Failed> {
    let batch = values.number("batch") as u32;
    let pattern = match values.word("pattern") {
        "pair" => Pattern::Pair,
        "batch" => Pattern::Batch(batch),
        _ => Pattern::OneWay { to: CpuId(values.number("to_cpu") as u16), window: batch },
    };
    let bytes = values.number("bytes") as u32;
    let found = measure(setup, pattern, bytes, values.number("objects"))?;
    let numbers = [
        ("cpu_ps", found.cpu),
        ("wall_ps", found.wall),
        ("fast_allocs_ppm", found.fast_allocs * 1_000),
        ("fast_frees_ppm", found.fast_frees * 1_000),
    ];
    let metrics = numbers.map(|(name, number)| (name.to_string(), number));
    let sample = Sample { metrics: metrics.into(), ..Sample::default() };
    Ok(Observed { sample, profile: None })
}

/// The words of the parameter `pattern` are those that a run knows.
const _: () = assert!(PATTERNS.len() == 3);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::workload::Value;

    #[test]
    fn a_free_needs_a_cpu_of_the_machine() {
        let machine = MachineSpec::uniform(2, 1, 1 << 30);
        let check = |pattern: &str, to: u64, expected: Result<(), String>| {
            let values = [("pattern", Value::Word(pattern.into())), ("to_cpu", Value::Number(to))];
            assert_eq!(super::check(&machine, &Values(values.into())), expected, "{pattern} to {to}");
        };
        check("one-way", 1, Ok(()));
        check("pair", 7, Ok(()));
        check("one-way", 2, Err("to_cpu = 2: expected a CPU below 2".into()));
    }
}
