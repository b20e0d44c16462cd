//! `netatalk`: clients of a file server in September 2001.

use super::desktop::{DISK, IN, KSWAPD, MEMORY, OUT, VM, estimate, objects, run, seconds};
use super::kernel::{KERNEL, sample, with_kernel};
use crate::workload::{Kind, Metric, Observed, Pair, Parameter, Values, Workload};
use slablab_sim::programs::desktop::server::Server;
use slablab_sim::programs::desktop::{Habits, Test};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;

/// The workload.
pub(super) const NETATALK: Workload = Workload {
    name: "netatalk",
    about: "clients of a file server that write a file over one link and read it back, under a VM of 2.4",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores: |_| false,
    check: |_, _| Ok(()),
    estimate,
    observe,
    suite: &[Pair {
        machine: "kulesa-2001",
        parameters: "memory_mib = 64\nclients = 2\nrounds = 1",
        why: "a file server whose memory does not hold the files",
    }],
};

const SOURCE: &str = "R. Cohen, 27 September 2001: 5 clients, 10 times, 30 MB";

const PARAMETERS: &[Parameter] = &[
    VM,
    MEMORY,
    DISK,
    Parameter {
        name: "clients",
        about: "clients",
        source: SOURCE,
        kind: Kind::Number { least: 1, most: 100, defaults: [2, 5, 5] },
    },
    Parameter {
        name: "rounds",
        about: "times that a client writes its file and reads it",
        source: SOURCE,
        kind: Kind::Number { least: 1, most: 1_000, defaults: [1, 10, 10] },
    },
    Parameter {
        name: "file_mib",
        about: "MiB of a file",
        source: SOURCE,
        kind: Kind::Number { least: 1, most: 1_024, defaults: [30; 3] },
    },
];

const METRICS: [Metric; 5 + KERNEL.len()] = with_kernel([
    Metric { name: "last_ps", about: "time until the last client has done its work", ..seconds() },
    Metric { name: "first_ps", about: "time until the first client has done its work", ..seconds() },
    OUT,
    IN,
    KSWAPD,
]);

fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let [clients, rounds, mib] = ["clients", "rounds", "file_mib"].map(|name| values.number(name) as u32);
    let test = Test::Server(Server { clients, rounds, mib });
    let answer = run((setup, seed, recorder), values, (&test, false, Habits::USUAL))?;
    let (swapped_out, swapped_in) = answer.swapped();
    let own = [
        ("last_ps", answer.ended.last().copied().unwrap_or_default()),
        ("first_ps", answer.ended.first().copied().unwrap_or_default()),
        (OUT.name, swapped_out * 4),
        (IN.name, swapped_in * 4),
        (KSWAPD.name, answer.kswapd),
    ];
    let outcome = answer.outcome.expect("a test that ended has an outcome");
    Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
}
