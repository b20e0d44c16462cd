//! Where one build works.

use super::TmpfsSwap;
use super::make::Programs;
use crate::files::Files;
use crate::kernel::Task;
use crate::memory::Memory;
use crate::memory::volume::{Folder, Node, Volume};
use crate::workloads::tree::Tree;
use slablab_model::Ps;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A volume with a tree, or without one yet.
pub(super) struct Site {
    pub(super) memory: Rc<Memory>,
    pub(super) program: TmpfsSwap,
    pub(super) tree: Rc<Tree>,
    pub(super) programs: Rc<Programs>,
    pub(super) volume: Rc<Volume>,
    /// The archive's volume, and the archive.
    pub(super) archive: (Rc<Volume>, Rc<Node>),
    pub(super) files: Rc<Files>,
    pub(super) unpacked: RefCell<Option<Rc<Unpacked>>>,
    /// The archive is being unpacked.
    pub(super) is_unpacking: Cell<bool>,
    /// CPU time of programs in themselves, of this build.
    pub(super) user: Cell<Ps>,
}

/// A tree that was unpacked, with what was built in it.
pub(super) struct Unpacked {
    /// Directories and files by the places in [`Tree`].
    pub(super) folders: Vec<Folder>,
    pub(super) files: Vec<Node>,
    /// Objects of each directory; other outputs, and whether they are links of a directory.
    pub(super) objects: RefCell<Vec<Vec<Rc<Node>>>>,
    pub(super) outputs: RefCell<Vec<(bool, Rc<Node>)>>,
    /// Objects of each directory that are not compiled yet.
    pub(super) left: RefCell<Vec<u32>>,
}

impl Site {
    pub(super) fn new(
        memory: &Rc<Memory>,
        program: &TmpfsSwap,
        tree: &Rc<Tree>,
        programs: &Rc<Programs>,
        volume: Rc<Volume>,
        archive: (Rc<Volume>, Rc<Node>),
    ) -> Site {
        Site {
            memory: memory.clone(),
            program: *program,
            tree: tree.clone(),
            programs: programs.clone(),
            volume,
            archive,
            files: Rc::default(),
            unpacked: RefCell::new(None),
            is_unpacking: Cell::new(false),
            user: Cell::new(0),
        }
    }

    /// A program computes.
    pub(super) fn compute(&self, task: &Task, ps: Ps) {
        task.compute(ps);
        self.user.set(self.user.get() + ps);
    }

    /// Removes the last tree, unpacks a new one and builds it. Returns the CPU time of the programs.
    pub(super) fn build(self: &Rc<Self>, task: &Task) -> Ps {
        task.call_it(|| "build".into());
        self.user.set(0);
        self.remove(task);
        self.is_unpacking.set(true);
        let unpacked = Rc::new(self.unpack(task));
        self.is_unpacking.set(false);
        *self.unpacked.borrow_mut() = Some(unpacked.clone());
        self.make(task, &unpacked);
        self.user.get()
    }
}
