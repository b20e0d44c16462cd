//! `make-music`: a kernel build beside a player of music in September 2001.

use super::desktop::{
    BUFFER, DISK, GAP_LONGEST, GAPS, IN, KSWAPD, MEMORY, OUT, SKIPS, VM, estimate, music, objects, run,
    seconds,
};
use super::kernel::{KERNEL, sample, with_kernel};
use crate::workload::{Kind, Metric, Observed, Pair, Parameter, Values, Workload};
use slablab_sim::programs::desktop::make::Make;
use slablab_sim::programs::desktop::{Habits, Test};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;

/// The workload.
pub(super) const MAKE_MUSIC: Workload = Workload {
    name: "make-music",
    about: "make -j of a kernel beside a player of wav files, under a VM of 2.4",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores: |_| false,
    check: |_, _| Ok(()),
    estimate,
    observe,
    suite: &[Pair {
        machine: "kulesa-2001",
        parameters: "memory_mib = 64\nobjects = 20",
        why: "a build whose files do not stay in memory",
    }],
};

const PARAMETERS: &[Parameter] = &[
    VM,
    MEMORY,
    DISK,
    BUFFER,
    Parameter {
        name: "objects",
        about: "objects that are compiled",
        source: "assumed: 1,000, with the faults and the user time of the mail divided by it",
        kind: Kind::Number { least: 1, most: 100_000, defaults: [50, 1_000, 1_000] },
    },
    Parameter {
        name: "jobs",
        about: "objects at a time: make -j",
        source: "LKML, 18 September 2001: -j4",
        kind: Kind::Number { least: 1, most: 64, defaults: [4; 3] },
    },
];

const METRICS: [Metric; 9 + KERNEL.len()] = with_kernel([
    Metric { name: "make_ps", about: "time of the build", ..seconds() },
    SKIPS,
    GAP_LONGEST,
    GAPS,
    OUT,
    IN,
    KSWAPD,
    Metric { name: "pgfault", about: "page faults", better: None, ..SKIPS },
    Metric { name: "pgmajfault", about: "page faults that wait for a disk", better: None, ..SKIPS },
]);

fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let [objects, jobs] = ["objects", "jobs"].map(|name| values.number(name) as u32);
    let test = Test::Make(Make { objects, jobs });
    let answer = run((setup, seed, recorder), values, (&test, true, Habits::USUAL))?;
    let (swapped_out, swapped_in) = answer.swapped();
    let counter = |name: &str| answer.counters.iter().find(|(one, _)| *one == name).map_or(0, |(_, n)| *n);
    let mut own = vec![
        ("make_ps", answer.step("make").map_or(0, |step| step.elapsed)),
        (OUT.name, swapped_out * 4),
        (IN.name, swapped_in * 4),
        (KSWAPD.name, answer.kswapd),
        ("pgfault", counter("pgfault")),
        ("pgmajfault", counter("pgmajfault")),
    ];
    own.extend(music(answer.played()));
    let outcome = answer.outcome.expect("a test that ended has an outcome");
    Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
}
