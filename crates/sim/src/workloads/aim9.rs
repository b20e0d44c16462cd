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
use crate::era::Era;
use crate::files::{self, Entry, FileTable, Files};
use crate::kernel::{Kernel, Task};
use crate::micro::Setup;
use crate::objects::Object;
use crate::process::{Children, Image, Kind, Libraries, Shape};
use crate::record::Recorder;
use crate::tally::{Failed, Outcome};
use crate::vm;
use slablab_model::{LockTimes, Timed};
use slablab_platform::Topology;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes by which the heap grows.
const HEAP: u64 = 1 << 20;

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

/// A disk of programs and libraries.
struct Disk {
    root: Rc<Entry>,
    program: Rc<Entry>,
    libraries: Rc<Libraries>,
}

struct State {
    test: Test,
    files: Rc<Files>,
}

/// One of the benchmark's processes, with a disk of its own.
pub struct Process {
    /// `None` only while the process ends.
    image: RefCell<Option<Image>>,
    heap: Option<vm::Mapping>,
    disk: Disk,
}

impl Disk {
    fn new(task: &Task) -> Disk {
        let root = Entry::root(task);
        let found = (0..2).map(|_| root.create(task)).collect();
        let libraries = Rc::new(Libraries { found, absent: root.absent(task) });
        Disk { program: root.create(task), libraries, root }
    }

    fn forget(self, task: &Task) {
        let libraries = Rc::into_inner(self.libraries).expect("all children have ended");
        let entries = libraries.found.into_iter().chain([libraries.absent, self.program, self.root]);
        entries.for_each(|entry| entry.forget(task));
    }
}

impl State {
    /// A child that executes the program if `executes`.
    fn child(&self, task: &Task, process: &Process, executes: bool) {
        let children = Rc::new(Children::default());
        let (program, libraries) = (process.disk.program.clone(), process.disk.libraries.clone());
        let files = self.files.clone();
        task.syscall(|| {
            let image = process.image.borrow();
            children.fork(task, image.as_ref().expect("it has not ended"), move |child, image| {
                if !executes {
                    return image;
                }
                let table = FileTable::new(&files);
                image.exec(child, &table, &program, &libraries, Shape::SMALL)
            });
        });
        task.syscall(|| children.wait(task));
    }

    fn heap(&self, task: &Task, process: &Process, pages: u64) {
        let image = process.image.borrow();
        let space = image.as_ref().expect("it has not ended").space();
        task.syscall(|| space.grow_heap(task));
        process.heap.iter().for_each(|heap| space.touch_first(task, heap, 0..pages));
        task.syscall(|| space.shrink_heap(task, process.heap.as_ref()));
    }
}

impl Program for State {
    type Process = Process;

    fn process(&self, task: &Task) -> Process {
        task.unpin();
        let disk = Disk::new(task);
        let table = FileTable::new(&self.files);
        let image = Image::empty(task).exec(task, &table, &disk.program, &disk.libraries, Shape::SMALL);
        let heap = image.space().map(task, HEAP);
        Process { image: RefCell::new(Some(image)), heap: Some(heap), disk }
    }

    fn operation(&self, task: &Task, process: &Process) -> u64 {
        match self.test {
            Test::Page => self.heap(task, process, vm::pages_of(HEAP, Timed::page_shift()).1),
            Test::Brk => self.heap(task, process, 1),
            Test::Exec => self.child(task, process, true),
            Test::Fork => self.child(task, process, false),
        }
        1
    }

    fn end(&self, task: &Task, process: Process) {
        process.heap.into_iter().for_each(|heap| heap.end(task));
        process.image.take().into_iter().for_each(|image| image.end(task));
        process.disk.forget(task);
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        files::locks().into_iter().chain([vm::locks()]).collect()
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
