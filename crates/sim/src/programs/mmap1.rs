//! will-it-scale's mmap1: maps 128 MiB of anonymous memory and unmaps it, without touching it.

use super::repeat::{self, Described, Program, Repeat};
use crate::kernel::Task;
use crate::kernel::era::Era;
use crate::kernel::objects::Object;
use crate::kernel::tally::{Failed, Outcome};
use crate::process::mappings::{self, AddressSpace};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::LockTimes;

/// Bytes of the mapping.
const BYTES: u64 = 128 << 20;

/// The program's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mmap1 {
    /// Tasks and time.
    pub repeat: Repeat,
    /// Nodes that a store into the tree of mappings takes; 0: as many as the release does.
    pub nodes: u32,
}

impl Mmap1 {
    /// The parameters of a size of [`repeat::Length::SIZES`].
    pub fn sized(size: &str) -> Option<Mmap1> {
        Some(Mmap1 {
            repeat: Repeat { length: repeat::Length::sized(size)?, ..Repeat::default() },
            ..Mmap1::default()
        })
    }
}

struct State {
    nodes: u32,
}

impl Program for State {
    type Process = AddressSpace;

    fn process(&self, task: &Task) -> AddressSpace {
        AddressSpace::with_nodes(task, self.nodes)
    }

    fn operation(&self, task: &Task, space: &AddressSpace) -> u64 {
        let mapping = task.syscall(|| space.map(task, BYTES));
        task.syscall(|| space.unmap(task, mapping));
        1
    }

    fn end(&self, task: &Task, space: AddressSpace) {
        space.end(task);
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        vec![mappings::locks()]
    }
}

/// Objects of an operation: a map and an unmap.
pub fn describe(era: Era, mmap1: &Mmap1) -> Vec<Described> {
    let nodes = 2 * u64::from(mappings::nodes_per_store(era, mmap1.nodes));
    let vma = Described::of(era, Object::Vma, 1, 1);
    vma.into_iter().chain(Described::of(era, Object::MapleNode, nodes, 1)).collect()
}

/// Runs the program. The outcome's messages are pairs of a map and an unmap.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run(setup: &Setup, mmap1: &Mmap1, seed: u64) -> Result<Outcome, Failed> {
    run_recorded(setup, mmap1, seed, &Recorder::default())
}

/// Runs the program, and records its window.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run_recorded(setup: &Setup, mmap1: &Mmap1, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    repeat::run_recorded(setup, &mmap1.repeat, seed, recorder, |_| State { nodes: mmap1.nodes })
}
