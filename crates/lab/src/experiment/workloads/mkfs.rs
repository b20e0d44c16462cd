//! `mkfs`: file systems made on many disks at once, as traced in the mail of September 2009.

use super::kernel::{KERNEL, sample, with_kernel};
use crate::experiment::workload::{
    Estimate, Kind, Metric, Object, Observed, Parameter, Values, Workload, ppm, ps,
};
use slablab_model::MachineSpec;
use slablab_platform::Event;
use slablab_sim::era::Era;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::programs::mkfs::{self, Interrupts, Mkfs, pages};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::{Failed, Outcome};
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// The workload.
pub(super) const MKFS: Workload = Workload {
    name: "mkfs",
    about: "processes that each write a file system's tables through the page cache of a disk",
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
        name: "processes",
        about: "processes, each with a disk of its own",
        source: "the mail of September 2009: about 100",
        kind: Kind::Number { least: 1, most: 2_000, defaults: [10, 100, 100] },
    },
    Parameter {
        name: "mib",
        about: "MiB of each disk: 2 MiB of tables for each 128",
        source: "assumed",
        kind: Kind::Number { least: 1, most: 1 << 20, defaults: [512, 1_024, 16_384] },
    },
    Parameter {
        name: "block_bytes",
        about: "bytes of a block of a disk's page cache: a page has a buffer_head for each",
        source: "assumed",
        kind: Kind::Number { least: 512, most: 65_536, defaults: [4_096; 3] },
    },
    Parameter {
        name: "dirty_kib",
        about: "KiB that a process has dirty when it writes them back",
        source: "assumed",
        kind: Kind::Number { least: 64, most: 1 << 20, defaults: [4_096; 3] },
    },
    Parameter {
        name: "interrupts",
        about: "the CPU that completes a request: one for each disk, the submitter's, each in turn",
        source: "assumed",
        kind: Kind::Word(&["disk", "submitter", "turns"]),
    },
    Parameter {
        name: "latency_us",
        about: "time of a request without its data, which takes 40 us for each KiB",
        source: "assumed",
        kind: Kind::Number { least: 1, most: 1_000_000, defaults: [1_000; 3] },
    },
];

const fn share(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit: "1", per_unit: 1e6, decimals: 3 }
}

const METRICS: [Metric; 10 + KERNEL.len()] = with_kernel([
    Metric {
        name: "elapsed_ps",
        about: "time from the first process's begin to the end of the last one",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 4,
    },
    share("grows_per_refill_ppm", "SLAB: attempts to make a slab for each refill of a CPU's array"),
    share("fallbacks_per_refill_ppm", "SLAB: searches of other nodes for each refill of a CPU's array"),
    Metric {
        better: Some(Better::Higher),
        ..share("own_node_per_refill_ppm", "SLAB: refills that did not have to search other nodes")
    },
    share("refills_per_alloc_ppm", "SLAB: refills of a CPU's array for each allocation"),
    share("calls_per_alloc_ppm", "SLAB: functions that an allocation enters, as the mail traced them"),
    Metric {
        name: "alloc_ps",
        about: "time of an allocation",
        better: Some(Better::Lower),
        unit: "us",
        per_unit: 1e6,
        decimals: 3,
    },
    count("refills", "SLAB: refills of a CPU's array"),
    count("grows", "SLAB: attempts to make a slab"),
    count("fallbacks", "SLAB: searches of other nodes for an object"),
]);

const fn count(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit: "1", per_unit: 1.0, decimals: 0 }
}

fn objects(release: Release) -> Vec<Object> {
    let used = [
        (Kernel::BufferHead, "1 for each block of a page that is written"),
        (Kernel::Bio, "1 for each block that is written back"),
        (Kernel::Request, "1 for each request of up to 512 KiB"),
        (Kernel::ScsiCommand, "1 for each request of up to 512 KiB"),
        (Kernel::ScatterList, "1 for each request of up to 512 KiB"),
        (Kernel::TreeNode, "1 for each 64 pages of a disk"),
    ];
    let object = |(object, per_operation): (Kernel, &'static str)| {
        let row = object.row(Era { release })?;
        Some(Object {
            cache: row.name,
            bytes: row.bytes,
            per_operation: per_operation.into(),
            source: row.source,
        })
    };
    used.into_iter().filter_map(object).collect()
}

fn ignores(cost: &str) -> bool {
    cost == "page_fault"
}

fn check(machine: &MachineSpec, values: &Values) -> Result<(), String> {
    let (block, page) = (values.number("block_bytes"), 1 << machine.page_shift);
    if !block.is_power_of_two() || block > page {
        return Err(format!("block_bytes = {block}: expected a power of two up to the page, {page}"));
    }
    let tables = (values.number("processes") * values.number("mib") / 64) << 20;
    let memory: u64 = machine.nodes.iter().map(|node| node.bytes).sum();
    match tables < memory / 4 * 3 {
        true => Ok(()),
        false => Err(format!(
            "processes and mib write {} MiB of tables: expected less than 3/4 of the machine's {} MiB",
            tables >> 20,
            memory >> 20
        )),
    }
}

fn load(values: &Values) -> Mkfs {
    Mkfs {
        processes: values.number("processes") as u32,
        mib: values.number("mib") as u32,
        block_bytes: values.number("block_bytes") as u32,
        dirty_kib: values.number("dirty_kib") as u32,
        interrupts: match values.word("interrupts") {
            "submitter" => Interrupts::Submitter,
            "turns" => Interrupts::Turns,
            _ => Interrupts::Disk,
        },
        latency: ps(values.number("latency_us") * 1_000),
    }
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// A page with what is written for it (measured).
    const PAGE_NS: u64 = 2_000;
    let load = load(values);
    let pages = pages(&load, machine.page_shift);
    let buffers = pages * (1 << machine.page_shift) / u64::from(load.block_bytes);
    let slabs = Estimate::of_operations(machine, buffers * 4, buffers * 104);
    Estimate {
        host_ns: slabs.host_ns + pages * PAGE_NS,
        host_bytes: slabs.host_bytes + (pages + buffers) * 128,
    }
}

/// A repeat draws when each process begins, and what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let outcome = mkfs::run(setup, &load(values), seed, recorder)?;
    let own = own(&outcome);
    Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
}

/// The workload's own metrics. An allocation enters three functions and one more for each refill, for each
/// attempt to make a slab, on a node's lists and on other nodes.
fn own(outcome: &Outcome) -> [(&'static str, u64); 10] {
    let count = |event: Event| -> u64 {
        let events = outcome.caches.iter().flat_map(|cache| &cache.events);
        events.filter(|(of, _)| *of == event).map(|(_, count)| count).sum()
    };
    let allocs = count(Event::AllocFastpath) + count(Event::AllocSlowpath);
    let refills = count(Event::SlabAllocMiss);
    let (grows, fallbacks) = (count(Event::SlabGrowTry), count(Event::SlabFallback));
    let calls = 3 * allocs + refills + grows + fallbacks + count(Event::SlabNodeTry);
    [
        ("elapsed_ps", outcome.elapsed),
        ("grows_per_refill_ppm", ppm(grows, refills)),
        ("fallbacks_per_refill_ppm", ppm(fallbacks, refills)),
        ("own_node_per_refill_ppm", ppm(refills - fallbacks.min(refills), refills)),
        ("refills_per_alloc_ppm", ppm(refills, allocs)),
        ("calls_per_alloc_ppm", if refills > 0 { ppm(calls, allocs) } else { 0 }),
        (
            "alloc_ps",
            outcome.allocating / outcome.caches.iter().map(|cache| cache.allocs).sum::<u64>().max(1),
        ),
        ("refills", refills),
        ("grows", grows),
        ("fallbacks", fallbacks),
    ]
}
