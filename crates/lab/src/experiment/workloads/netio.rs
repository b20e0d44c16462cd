//! `netio`: fio's example netio.

use super::kernel::{self, KERNEL, LINES, with_kernel};
use super::tcp;
use crate::experiment::workload::{
    Estimate, Kind, Metric, Object, Observed, Parameter, Sample, Values, Workload,
};
use slablab_model::MachineSpec;
use slablab_sim::programs::netio::{self, Netio};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::{Failed, Outcome};
use slablab_slabs::Release;
use slablab_stats::table::Better;

/// The workload.
pub(super) const NETIO: Workload = Workload {
    name: "netio",
    about: "fio's netio: one process sends blocks over TCP and loopback, another receives them",
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
        name: "block",
        about: "bytes of a write, and the most of a read",
        source: "fio's example netio: bs=4k",
        kind: Kind::Number { least: 1, most: 1 << 20, defaults: [4_096; 3] },
    },
    Parameter {
        name: "mib",
        about: "MiB that are sent",
        source: "fio's example netio today: 100 GiB, in 2009 less; scaled down here: times are of a MiB",
        kind: Kind::Number { least: 1, most: 1 << 20, defaults: [8, 64, 4_096] },
    },
    Parameter {
        name: "think_cycles",
        about: "cycles of a process in its own program for each block: fio takes the time of each",
        source: "assumed",
        kind: Kind::Number { least: 0, most: 1_000_000, defaults: [500; 3] },
    },
];

const METRICS: [Metric; 5 + KERNEL.len()] = with_kernel([
    Metric {
        name: "mib_ps",
        about: "time of a MiB, from the first write to the last read",
        better: Some(Better::Lower),
        unit: "us",
        per_unit: 1e6,
        decimals: 2,
    },
    Metric {
        name: "elapsed_ps",
        about: "time from the first write to the last read",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 4,
    },
    tcp::ACKS,
    tcp::LOCKS,
    LINES,
]);

fn objects(release: Release) -> Vec<Object> {
    tcp::objects(release, "1 for 4 blocks of 4,096 bytes or more, from 3.7 on for 16: blocks wait for others")
}

fn ignores(cost: &str) -> bool {
    cost == "page_fault"
}

fn check(_machine: &MachineSpec, _values: &Values) -> Result<(), String> {
    Ok(())
}

fn blocks(values: &Values) -> u64 {
    (values.number("mib") << 20).div_ceil(values.number("block"))
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    /// A block on the host (measured).
    const BLOCK_NS: u64 = 10_000;
    let slabs = Estimate::of_operations(machine, 0, 8 << 20);
    Estimate { host_ns: blocks(values).saturating_mul(BLOCK_NS), ..slabs }
}

/// A repeat draws when the sender begins, lengths of pieces of work, and what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let load = Netio {
        block: values.number("block") as u32,
        blocks: blocks(values),
        think: values.number("think_cycles"),
    };
    let outcome = netio::run_recorded(setup, &load, seed, recorder)?;
    Ok(Observed { sample: sample(&outcome, values.number("mib")), profile: Some(outcome.profile) })
}

fn sample(outcome: &Outcome, mib: u64) -> Sample {
    let own = [
        ("mib_ps", outcome.elapsed / mib),
        ("elapsed_ps", outcome.elapsed),
        (tcp::ACKS.name, tcp::acks(outcome)),
        (tcp::LOCKS.name, tcp::locks(outcome)),
    ];
    kernel::sample(&METRICS, outcome, &own)
}
