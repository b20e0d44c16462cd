//! Parts of AIM9, as mmtests runs them: page_test, brk_test, exec_test, fork_test.
//!
//! | test | an operation |
//! |---|---|
//! | page | the heap grows by 1 MiB, the program touches each page, the heap shrinks |
//! | brk | the heap grows by 1 MiB, the program touches one page, the heap shrinks |
//! | exec | a child executes a small program, which ends at once; the parent waits |
//! | fork | a child ends at once; the parent waits |
//!
//! Each test is one loop of the benchmark. A task is a process, and may run on every CPU: where its children
//! run is the scheduler's choice.

use super::measures::rows;
use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program};
use super::repeat::{Repeat, Repeats};
use super::repeated::{self, METRICS};
use super::user::User;
use crate::fs::files::{self, Files};
use crate::kernel::Task;
use crate::kernel::objects::Object;
use crate::kernel::tally::Failed;
use crate::params::{params, words};
use crate::process::Kind;
use crate::process::mappings;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{LockTimes, MachineSpec};
use slablab_slabs::Release;
use std::rc::Rc;

/// Which part runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The heap grows, all its pages are touched, and it shrinks.
    Page,
    /// The heap grows and shrinks.
    Brk,
    /// A child executes a program.
    Exec,
    /// A child ends at once.
    Fork,
}

words! { Test { Fork = "fork", Exec = "exec", Page = "page", Brk = "brk" } }

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        test: Test,
            "fork: a child that ends; exec: a child that executes a program; page: 1 MiB of heap, each page \
             touched; brk: 1 MiB of heap, one page touched",
            "AIM9's tests of these names, as mmtests runs them";
        tasks: u32 = [1], 1..=8_192, "processes that run the test, not pinned", "AIM9: 1";
        outside_ns: u64 = repeated::OUTSIDE;
        warm_up_us: u64 = repeated::WARM_UP;
        window_us: u64 = [10_000, 100_000, 15_000_000], 100..=100_000_000, "time that is counted",
            "mmtests: 15 s";
    }
}

impl Params {
    fn repeat(&self) -> Repeat {
        repeated::window(self.tasks, Kind::Process, self.outside_ns, [self.warm_up_us, self.window_us])
    }
}

/// The program: the part that runs, and its files. Its tasks are processes.
pub struct Aim9 {
    test: Test,
    files: Rc<Files>,
}

impl Aim9 {
    /// A part of the benchmark.
    pub fn new(test: Test) -> Aim9 {
        Aim9 { test, files: Rc::default() }
    }
}

impl Program for Aim9 {
    type Params = Params;

    const NAME: &'static str = "aim9";
    const ABOUT: &'static str =
        "processes that grow and shrink their heap, fork, or fork and execute: parts of AIM9";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[Pair {
        machine: "laptop",
        parameters: "test = [\"fork\", \"exec\"]\ntasks = 4",
        why: "children whose objects other CPUs free",
    }];

    fn objects(release: Release) -> Vec<Described> {
        const EACH: &str = "1 for each fork";
        const MAPPED: &str = "1 for each of 20 mappings of a fork, and of an exec; brk and page: 1";
        let objects = [
            (Object::Task, EACH),
            (Object::Pid, EACH),
            (Object::Cred, EACH),
            (Object::Signal, EACH),
            (Object::Sighand, EACH),
            (Object::Files, EACH),
            (Object::Fs, EACH),
            (Object::Mm, "1 for each fork, and for each exec"),
            (Object::Vma, MAPPED),
            (Object::AnonVma, "1 for each of 6 written mappings of a fork and of an exec; brk and page: 1"),
            (
                Object::AnonVmaChain,
                "2 for each of 6 written mappings of a fork, 1 of an exec; brk and page: 1",
            ),
            (Object::MapleNode, "for each change of the mappings"),
            (Object::Name, "4 for each exec"),
            (Object::File, "3 for each exec"),
        ];
        rows(release, &objects)
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        let times = match params.test {
            Test::Fork => [50_000, 55_000],
            Test::Exec => [150_000, 110_000],
            Test::Page => [80_000, 300_000],
            Test::Brk => [1_500, 8_000],
        };
        repeated::estimate(machine, &params.repeat(), times)
    }

    /// A repeat draws the lengths of pieces of work, and what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        repeated::run(setup, &params.repeat(), seed, recorder, &[], |_| Aim9::new(params.test))
    }
}

impl Repeats for Aim9 {
    type Process = User;

    fn process(&self, task: &Task) -> User {
        User::new(task, &self.files)
    }

    fn operation(&self, task: &Task, user: &User) -> u64 {
        match self.test {
            Test::Page => user.heap(task, u64::MAX),
            Test::Brk => user.heap(task, 1),
            Test::Exec => user.child(task, true),
            Test::Fork => user.child(task, false),
        }
        1
    }

    fn end(&self, task: &Task, user: User) {
        user.end(task);
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        files::locks().into_iter().chain([mappings::locks()]).collect()
    }
}
