//! will-it-scale's open1: each task opens and closes a file of its own, in a folder that all tasks share.

use super::measures::rows;
use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program};
use super::repeat::{Repeat, Repeats};
use super::repeated::{self, METRICS};
use crate::fs::files::{self, Entry, FileTable, Files, OwnFiles};
use crate::kernel::Task;
use crate::kernel::objects::Object;
use crate::kernel::tally::Failed;
use crate::params::params;
use crate::process::Kind;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{LockTimes, MachineSpec};
use slablab_slabs::Release;
use std::cell::RefCell;
use std::rc::Rc;

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        tasks: u32 = repeated::TASKS;
        kind: Kind = repeated::KIND;
        outside_ns: u64 = repeated::OUTSIDE;
        warm_up_us: u64 = repeated::WARM_UP;
        window_us: u64 = repeated::WINDOW;
    }
}

impl Params {
    fn repeat(&self) -> Repeat {
        repeated::window(self.tasks, self.kind, self.outside_ns, [self.warm_up_us, self.window_us])
    }
}

impl Program for OpenClose {
    type Params = Params;

    const NAME: &'static str = "open-close";
    const ABOUT: &'static str =
        "tasks that open and close a file each, all in one folder: will-it-scale's open1";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[
        Pair { machine: "laptop", parameters: "tasks = 8", why: "open files and paths, a task on each CPU" },
        Pair { machine: "numa8", parameters: "tasks = 16", why: "CPUs whose node has no memory" },
    ];

    fn objects(release: Release) -> Vec<Described> {
        let objects = [
            (Object::Name, "1 for each open, until it ends"),
            (Object::File, "1 for each open; freed by the close, until 6.6 after a grace period"),
            (Object::FileSecurity, "1 for each open"),
            (Object::Dentry, "1 for each task's file"),
            (Object::FileInode, "1 for each task's file"),
        ];
        rows(release, &objects)
    }

    fn ignores(cost: &str) -> bool {
        repeated::ignores(cost)
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        repeated::estimate(machine, &params.repeat(), [500, 3_500])
    }

    /// A repeat draws the lengths of pieces of work.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        repeated::run(setup, &params.repeat(), seed, recorder, &[], |_| OpenClose::default())
    }
}

/// The folder of all files, and its root.
struct Folder {
    root: Rc<Entry>,
    folder: Rc<Entry>,
}

/// The program: open files, and the folder.
#[derive(Default)]
pub struct OpenClose {
    files: Rc<Files>,
    folder: RefCell<Option<Rc<Folder>>>,
}

/// A process: its open files, its tasks' files, and the folder that all processes share.
pub struct Process {
    table: FileTable,
    own: OwnFiles,
    folder: Rc<Folder>,
}

impl OpenClose {
    /// The folder; the first process makes it.
    fn the_folder(&self, task: &Task) -> Rc<Folder> {
        let made = self.folder.borrow().clone();
        if let Some(folder) = made {
            return folder;
        }
        let root = Entry::root(task);
        let folder = Rc::new(Folder { folder: root.create(task), root });
        // Another process may have been faster while this one allocated.
        let winner = self.folder.borrow_mut().get_or_insert_with(|| folder.clone()).clone();
        if !Rc::ptr_eq(&winner, &folder) {
            Folder::remove(task, folder);
        }
        winner
    }
}

impl Folder {
    fn remove(task: &Task, folder: Rc<Folder>) {
        let folder = Rc::into_inner(folder).expect("the last user of the folder");
        folder.folder.forget(task);
        folder.root.forget(task);
    }
}

impl Repeats for OpenClose {
    type Process = Process;

    fn process(&self, task: &Task) -> Process {
        let folder = self.the_folder(task);
        Process { table: FileTable::new(&self.files), own: OwnFiles::default(), folder }
    }

    fn operation(&self, task: &Task, process: &Process) -> u64 {
        let entry = process.own.of(task, &process.folder.folder);
        let file = task.syscall(|| process.table.open(task, &entry)).expect("the file exists");
        task.syscall(|| process.table.close(task, file));
        1
    }

    fn end(&self, task: &Task, process: Process) {
        process.own.forget(task);
        // The last process removes the folder: besides it only `self` refers to it.
        if Rc::strong_count(&process.folder) == 2 {
            drop(self.folder.borrow_mut().take());
            Folder::remove(task, process.folder);
        }
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        files::locks()
    }
}
