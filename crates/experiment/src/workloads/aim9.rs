//! `aim9`: page_test, brk_test, exec_test and fork_test.

use super::kernel::rows;
use super::repeat::{self, METRICS, OUTSIDE, TASKS, WARM_UP, WINDOW};

const SUITE: &[Pair] = &[Pair {
    machine: "laptop",
    parameters: "test = [\"fork\", \"exec\"]\ntasks = 4",
    why: "children whose objects other CPUs free",
}];
use crate::workload::{Estimate, Kind, Object, Observed, Pair, Parameter, Values, Workload, ps};
use slablab_model::MachineSpec;
use slablab_sim::objects::Object as Kernel;
use slablab_sim::process;
use slablab_sim::programs::aim9::{self, Aim9, Test};
use slablab_sim::programs::repeat::{Length, Repeat};
use slablab_sim::record::Recorder;
use slablab_sim::setup::Setup;
use slablab_sim::tally::Failed;
use slablab_slabs::Release;

/// The workload.
pub(super) const AIM9: Workload = Workload {
    name: "aim9",
    about: "processes that grow and shrink their heap, fork, or fork and execute: parts of AIM9",
    parameters: PARAMETERS,
    metrics: &METRICS,
    objects,
    ignores: |_| false,
    check: |_, _| Ok(()),
    estimate,
    observe,
    suite: SUITE,
};

const TESTS: [(&str, Test); 4] =
    [("fork", Test::Fork), ("exec", Test::Exec), ("page", Test::Page), ("brk", Test::Brk)];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "test",
        about: "fork: a child that ends; exec: a child that executes a program; page: 1 MiB of heap, each page \
                touched; brk: 1 MiB of heap, one page touched",
        source: "AIM9's tests of these names, as mmtests runs them",
        kind: Kind::Word(&[TESTS[0].0, TESTS[1].0, TESTS[2].0, TESTS[3].0]),
    },
    Parameter { about: "processes that run the test, not pinned", source: "AIM9: 1", ..TASKS },
    OUTSIDE,
    WARM_UP,
    Parameter {
        source: "mmtests: 15 s",
        kind: Kind::Number { least: 100, most: 100_000_000, defaults: [10_000, 100_000, 15_000_000] },
        ..WINDOW
    },
];

fn objects(release: Release) -> Vec<Object> {
    const EACH: &str = "1 for each fork";
    const MAPPED: &str = "1 for each of 20 mappings of a fork, and of an exec; brk and page: 1";
    let objects = [
        (Kernel::Task, EACH),
        (Kernel::Pid, EACH),
        (Kernel::Cred, EACH),
        (Kernel::Signal, EACH),
        (Kernel::Sighand, EACH),
        (Kernel::Files, EACH),
        (Kernel::Fs, EACH),
        (Kernel::Mm, "1 for each fork, and for each exec"),
        (Kernel::Vma, MAPPED),
        (Kernel::AnonVma, "1 for each of 6 written mappings of a fork and of an exec; brk and page: 1"),
        (Kernel::AnonVmaChain, "2 for each of 6 written mappings of a fork, 1 of an exec; brk and page: 1"),
        (Kernel::MapleNode, "for each change of the mappings"),
        (Kernel::Name, "4 for each exec"),
        (Kernel::File, "3 for each exec"),
    ];
    rows(release, &objects)
}

fn test(values: &Values) -> Test {
    let word = values.word("test");
    TESTS.iter().find(|(name, _)| *name == word).map_or(Test::Fork, |(_, test)| *test)
}

fn estimate(machine: &MachineSpec, values: &Values) -> Estimate {
    let (least_ns, host_ns) = match test(values) {
        Test::Fork => (50_000, 55_000),
        Test::Exec => (150_000, 110_000),
        Test::Page => (80_000, 300_000),
        Test::Brk => (1_500, 8_000),
    };
    repeat::estimate(machine, values, [least_ns, host_ns])
}

/// A repeat draws the lengths of pieces of work, and what the scheduler draws.
fn observe(setup: &Setup, values: &Values, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
    let us = |name: &str| ps(values.number(name) * 1_000);
    let length = Length::Window { warm_up: us("warm_up_us"), counted: us("window_us") };
    let (tasks, outside) = (values.number("tasks") as u32, ps(values.number("outside_ns")));
    let repeat = Repeat { tasks, kind: process::Kind::Process, outside, length };
    let outcome = aim9::run_recorded(setup, &Aim9 { repeat, test: test(values) }, seed, recorder)?;
    Ok(repeat::observed(outcome, values))
}
