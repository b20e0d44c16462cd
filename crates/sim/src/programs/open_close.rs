//! will-it-scale's open1: each task opens and closes a file of its own, in a folder that all tasks share.

use super::repeat::{self, Described, Program, Repeat};
use crate::fs::files::{self, Entry, FileTable, Files, OwnFiles};
use crate::kernel::Task;
use crate::kernel::era::Era;
use crate::kernel::objects::Object;
use crate::kernel::tally::{Failed, Outcome};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::LockTimes;
use std::cell::RefCell;
use std::rc::Rc;

/// The program's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenClose {
    /// Tasks and time.
    pub repeat: Repeat,
}

/// The folder of all files, and its root.
struct Folder {
    root: Rc<Entry>,
    folder: Rc<Entry>,
}

#[derive(Default)]
struct State {
    files: Rc<Files>,
    folder: RefCell<Option<Rc<Folder>>>,
}

/// A process: its open files, its tasks' files, and the folder that all processes share.
struct Process {
    table: FileTable,
    own: OwnFiles,
    folder: Rc<Folder>,
}

impl State {
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

impl Program for State {
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

/// Objects of an operation: an open and a close.
pub fn describe(era: Era) -> Vec<Described> {
    let objects = [Object::Name, Object::File, Object::FileSecurity];
    objects.into_iter().filter_map(|object| Described::of(era, object, 1, 1)).collect()
}

/// Runs the program. The outcome's messages are pairs of an open and a close.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run(setup: &Setup, open_close: &OpenClose, seed: u64) -> Result<Outcome, Failed> {
    run_recorded(setup, open_close, seed, &Recorder::default())
}

/// Runs the program, and records it.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run_recorded(
    setup: &Setup,
    open_close: &OpenClose,
    seed: u64,
    recorder: &Recorder,
) -> Result<Outcome, Failed> {
    repeat::run_recorded(setup, &open_close.repeat, seed, recorder, |_| State::default())
}
