//! `tbench`: clients and servers over TCP.

use super::kernel::{self, KERNEL, LINES, with_kernel};
use super::tcp;
use crate::workload::{
    Estimate, Kind, Metric, Object, Observed, Parameter, Sample, Values, Workload, ppm, ps,
};
use slablab_model::MachineSpec;
use slablab_sim::programs::tbench::{self, Outcome, Tbench};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// The workload.
pub(super) const TBENCH: Workload = Workload {
    name: "tbench",
    about: "clients that play a file server's load over TCP and loopback, each with a server process",
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
        name: "clients",
        about: "clients, each with a connection and a server process",
        source: "mmtests: 1 to twice the CPUs",
        kind: Kind::Number { least: 1, most: 4_096, defaults: [2, 8, 8] },
    },
    Parameter {
        name: "warm_up_us",
        about: "time before the window",
        source: "assumed",
        kind: Kind::Number { least: 1_000, most: 100_000_000, defaults: [10_000, 20_000, 1_000_000] },
    },
    Parameter {
        name: "window_us",
        about: "time that is counted",
        source: "mmtests: 120 s",
        kind: Kind::Number { least: 1_000, most: 200_000_000, defaults: [20_000, 60_000, 120_000_000] },
    },
    Parameter {
        name: "think_cycles",
        about: "cycles of a client in its own program for each operation: it reads a line of the load's file",
        source: "assumed",
        kind: Kind::Number { least: 0, most: 10_000_000, defaults: [2_000; 3] },
    },
    Parameter {
        name: "serve_cycles",
        about: "cycles of a server in its own program for each operation",
        source: "assumed",
        kind: Kind::Number { least: 0, most: 10_000_000, defaults: [200; 3] },
    },
];

const METRICS: [Metric; 5 + KERNEL.len()] = with_kernel([
    Metric {
        name: "bytes_per_s",
        about: "data of reads and writes in a second; nothing else counts, as tbench counts",
        better: Some(Better::Higher),
        unit: "MB/s",
        per_unit: 1e6,
        decimals: 2,
    },
    Metric {
        name: "operations_per_s",
        about: "operations in a second, of all kinds",
        better: Some(Better::Higher),
        unit: "1/s",
        per_unit: 1.0,
        decimals: 0,
    },
    tcp::ACKS,
    tcp::LOCKS,
    LINES,
]);

fn objects(release: Release) -> Vec<Object> {
    tcp::objects(
        release,
        "2 and more for each operation: 1 for each 16,384 bytes, from 3.7 on for each 65,483",
    )
}

fn ignores(cost: &str) -> bool {
    cost == "page_fault"
}

fn check(_machine: &MachineSpec, _values: &Values) -> Result<(), String> {
    Ok(())
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// A pair of CPUs needs at least this long for an operation, and the host so long (measured).
    const LEAST_NS: u64 = 12_000;
    const HOST_NS: u64 = 20_000;
    let us = values.number("warm_up_us") + values.number("window_us");
    let clients = values.number("clients");
    let busy = clients.min(machine.cpu_node.len() as u64);
    let slabs = Estimate::of_operations(machine, 0, clients << 20);
    Estimate { host_ns: busy * (us * 1_000 / LEAST_NS) * HOST_NS, ..slabs }
}

/// A repeat draws when each client begins, its operations, and what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let load = Tbench {
        clients: values.number("clients") as u32,
        warm_up: ps(values.number("warm_up_us") * 1_000),
        window: ps(values.number("window_us") * 1_000),
        think: values.number("think_cycles"),
        serve: values.number("serve_cycles"),
    };
    let outcome = tbench::run_recorded(setup, &load, seed, recorder)?;
    Ok(Observed { sample: sample(&outcome), profile: Some(outcome.kernel.profile) })
}

fn sample(Outcome { kernel, bytes }: &Outcome) -> Sample {
    let per_s = |count: u64| ppm(count, kernel.elapsed / 1_000_000);
    let own = [
        ("bytes_per_s", per_s(*bytes)),
        ("operations_per_s", per_s(kernel.messages)),
        (tcp::ACKS.name, tcp::acks(kernel)),
        (tcp::LOCKS.name, tcp::locks(kernel)),
    ];
    kernel::sample(&METRICS, kernel, &own)
}
