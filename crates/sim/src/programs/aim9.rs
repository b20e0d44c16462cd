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

use super::repeat::{self, Described, Program, Repeat};
use super::user::User;
use crate::fs::files::{self, Files};
use crate::kernel::era::Era;
use crate::kernel::objects::Object;
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Task};
use crate::process::mappings;
use crate::process::{Kind, Shape};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::LockTimes;
use std::rc::Rc;

/// Which part runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Test {
    /// The heap grows, all its pages are touched, and it shrinks.
    Page,
    /// The heap grows and shrinks.
    Brk,
    /// A child executes a program.
    Exec,
    /// A child ends at once.
    #[default]
    Fork,
}

/// The program's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aim9 {
    /// Tasks and time. Tasks are processes, whatever the kind.
    pub repeat: Repeat,
    /// Which part.
    pub test: Test,
}

struct State {
    test: Test,
    files: Rc<Files>,
}

impl Program for State {
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

/// Objects of an operation.
pub fn describe(era: Era, test: Test) -> Vec<Described> {
    let small = Shape::SMALL;
    let mappings = u64::from(small.mappings);
    let of = |counts: &[(Object, u64)]| -> Vec<Described> {
        counts.iter().filter_map(|(object, count)| Described::of(era, *object, *count, 1)).collect()
    };
    match test {
        Test::Page | Test::Brk => of(&[(Object::Vma, 1), (Object::AnonVma, 1), (Object::AnonVmaChain, 1)]),
        Test::Fork => of(&[(Object::Task, 1), (Object::Mm, 1), (Object::Vma, mappings)]),
        // The program, two libraries; one name more for the path that does not exist.
        Test::Exec => of(&[
            (Object::Task, 1),
            (Object::Mm, 2),
            (Object::Vma, 2 * mappings),
            (Object::File, 3),
            (Object::Name, 4),
        ]),
    }
}

/// Runs the program. The outcome's messages are operations.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run(setup: &Setup, aim9: &Aim9, seed: u64) -> Result<Outcome, Failed> {
    run_recorded(setup, aim9, seed, &Recorder::default())
}

/// Runs the program, and records it.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run_recorded(setup: &Setup, aim9: &Aim9, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    let repeat = Repeat { kind: Kind::Process, ..aim9.repeat };
    let state = |_: &Rc<Kernel>| State { test: aim9.test, files: Rc::default() };
    repeat::run_recorded(setup, &repeat, seed, recorder, state)
}
