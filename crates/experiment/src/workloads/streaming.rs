//! `streaming`: the streaming test of September 2001.

use super::desktop::{
    BUFFER, DISK, GAP_LONGEST, GAPS, IN, KSWAPD, MEMORY, OUT, SKIPS, VM, estimate, music, objects, run,
    seconds,
};
use super::kernel::{KERNEL, sample, with_kernel};
use crate::workload::{Kind, Metric, Observed, Pair, Parameter, Values, Workload, ppm};
use slablab_sim::programs::desktop::streams::Streams;
use slablab_sim::programs::desktop::{Answer, Habits, Test};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;

/// The workload.
pub(super) const STREAMING: Workload = Workload {
    name: "streaming",
    about: "dbench, a large file written and then read, beside an mp3 player and a user",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores: |_| false,
    check: |_, _| Ok(()),
    estimate,
    observe,
    suite: &[Pair {
        machine: "kulesa-2001",
        parameters: "memory_mib = 64\nclients = 1\nfile_mib = 64",
        why: "a PC whose disk is busy with writes",
    }],
};

const PARAMETERS: &[Parameter] = &[
    VM,
    MEMORY,
    DISK,
    BUFFER,
    Parameter {
        name: "clients",
        about: "clients of dbench",
        source: "the mail does not tell",
        kind: Kind::Number { least: 0, most: 1_000, defaults: [1, 4, 4] },
    },
    Parameter {
        name: "file_mib",
        about: "MiB of the file that dd writes and cat reads",
        source: "the mail: bs=1024k count=512",
        kind: Kind::Number { least: 1, most: 4_096, defaults: [64, 512, 512] },
    },
];

/// The parts of the test.
const PARTS: [(&str, [&str; 2]); 3] = [
    ("dbench", ["dbench_ps", "dbench_skips"]),
    ("dd", ["dd_ps", "dd_skips"]),
    ("cat", ["cat_ps", "cat_skips"]),
];

const fn time(at: usize) -> Metric {
    Metric { name: PARTS[at].1[0], about: "time of this part of the test", ..seconds() }
}

const fn skips(at: usize) -> Metric {
    Metric {
        name: PARTS[at].1[1],
        about: "times in this part that the sound card had nothing to play",
        ..SKIPS
    }
}

const METRICS: [Metric; 14 + KERNEL.len()] = with_kernel([
    SKIPS,
    GAP_LONGEST,
    GAPS,
    skips(0),
    skips(1),
    skips(2),
    time(0),
    time(1),
    time(2),
    Metric { name: "answer_longest_ps", about: "the slowest answer to the user", ..seconds() },
    OUT,
    IN,
    KSWAPD,
    Metric::percent("daemons_ppm", "pages of idle daemons that are resident at the end", None),
]);

fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let (clients, mib) = (values.number("clients") as u32, values.number("file_mib") as u32);
    let test = Test::Streams(Streams { clients, mib });
    let answer = run((setup, seed, recorder), values, (&test, true, Habits::USUAL))?;
    let own = own(&answer);
    let outcome = answer.outcome.expect("a test that ended has an outcome");
    Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
}

fn own(answer: &Answer) -> Vec<(&'static str, u64)> {
    let (swapped_out, swapped_in) = answer.swapped();
    let (resident, pages) = answer.resident("cat", "daemon");
    let mut own = vec![
        (OUT.name, swapped_out * 4),
        (IN.name, swapped_in * 4),
        (KSWAPD.name, answer.kswapd),
        ("daemons_ppm", ppm(resident, pages)),
        ("answer_longest_ps", answer.answer_longest),
    ];
    own.extend(music(answer.played()));
    for (part, [time, skips]) in PARTS {
        let step = answer.step(part);
        own.push((time, step.map_or(0, |step| step.elapsed)));
        own.push((skips, step.map_or(0, |step| step.played.skips)));
    }
    own
}
