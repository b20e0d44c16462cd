//! Where one build works.

use super::programs::Programs;
use super::{Built, TmpfsSwap};
use crate::fs::files::Files;
use crate::kernel::Group;
use crate::memory::Memory;
use crate::memory::volume::{Folder, Node, Volume};
use crate::programs::tree::Tree;
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
    /// The tasks of the builds here.
    pub(super) group: Group,
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
            group: memory.kernel.new_group(),
        }
    }

    /// What the builds here did so far.
    pub(super) fn done(&self) -> Built {
        let memory = &self.memory;
        let asks = &memory.accounts.asks;
        let mut swap_ins = asks.swap_ins_by_cause(self.group);
        if let Some(device) = self.volume.device() {
            let of_loop = asks.swap_ins_by_cause(device.group);
            swap_ins.iter_mut().zip(of_loop).for_each(|(count, more)| *count += more);
        }
        Built {
            elapsed: 0,
            cpu: memory.kernel.cpu_time(self.group),
            objects: self.tree.sources.len() as u32,
            requests: asks.page_requests(self.group),
            swap_ins,
        }
    }
}
