//! The programs of a build: their text, their libraries.

use crate::fs::files::Entry;
use crate::kernel::Task;
use crate::memory::Memory;
use crate::process::Libraries;
use crate::programs::kbuild::STEPS;
use slablab_vm::MappingId;
use slablab_vm::mappings::Kind;
use std::cell::Cell;
use std::rc::Rc;

/// Names that are looked for in vain (assumed).
pub(super) const ABSENT: u32 = 500;

/// KiB of its text that each step's program uses, then that of the linker and of make: about half of it, as
/// gcc 4 and its tools were in 2008 (from memory; which half: assumed).
const TEXT_KIB: [u32; STEPS.len() + 2] = [350, 100, 4_096, 600, 12, 40, 500, 85];

/// Places of the linker and of make among the programs.
pub(super) const LINK: usize = STEPS.len();
pub(super) const MAKE: usize = STEPS.len() + 1;

/// Programs, and libraries, which are always in memory. The last programs link, and make.
pub(super) struct Programs {
    pub(super) programs: Vec<Rc<Entry>>,
    /// What they use of their text: files on the disk, which a run maps.
    pub(super) texts: Vec<MappingId>,
    pub(super) absent: Vec<Rc<Entry>>,
    pub(super) libraries: Libraries,
    /// Objects of all builds whose compilers were started.
    pub(super) started: Cell<u64>,
}

impl Programs {
    pub(super) fn new(task: &Task, memory: &Memory, part: u32) -> Programs {
        let root = Entry::root(task);
        let (bin, include) = (root.create(task), root.create(task));
        let text = |kib: u32| {
            let pages = (kib / 4 / part).max(1);
            memory.vm.with(|state| state.mappings.create(Kind::File, pages))
        };
        Programs {
            programs: TEXT_KIB.iter().map(|_| bin.create(task)).collect(),
            texts: TEXT_KIB.map(text).into(),
            absent: (0..ABSENT).map(|_| include.absent(task)).collect(),
            libraries: Libraries {
                found: (0..2).map(|_| bin.create(task)).collect(),
                absent: bin.absent(task),
            },
            started: Cell::new(0),
        }
    }
}
