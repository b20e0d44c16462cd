//! will-it-scale's brk1: moves the heap's end up by a page and down again, without touching the page.

use super::repeat::{self, Described, Program, Repeat};
use crate::kernel::Task;
use crate::kernel::era::Era;
use crate::kernel::objects::Object;
use crate::kernel::tally::{Failed, Outcome};
use crate::process::mappings::{self, AddressSpace};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::LockTimes;

/// The program's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Brk1 {
    /// Tasks and time.
    pub repeat: Repeat,
    /// Nodes that a store into the tree of mappings takes; 0: as many as the release does.
    pub nodes: u32,
}

impl Brk1 {
    /// The parameters of a size of [`repeat::Length::SIZES`].
    pub fn sized(size: &str) -> Option<Brk1> {
        Some(Brk1 {
            repeat: Repeat { length: repeat::Length::sized(size)?, ..Repeat::default() },
            ..Brk1::default()
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
        task.syscall(|| space.grow_heap(task));
        task.syscall(|| space.shrink_heap(task, None));
        2
    }

    fn end(&self, task: &Task, space: AddressSpace) {
        space.end(task);
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        vec![mappings::locks()]
    }
}

/// Objects of two operations: the heap's end goes up and down. The way down splits the heap's mapping.
pub fn describe(era: Era, brk1: &Brk1) -> Vec<Described> {
    let nodes = 3 * u64::from(mappings::nodes_per_store(era, brk1.nodes));
    let vma = Described::of(era, Object::Vma, 1, 2);
    vma.into_iter().chain(Described::of(era, Object::MapleNode, nodes, 2)).collect()
}

/// Runs the program. The outcome's messages are calls of brk.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run(setup: &Setup, brk1: &Brk1, seed: u64) -> Result<Outcome, Failed> {
    run_recorded(setup, brk1, seed, &Recorder::default())
}

/// Runs the program, and records its window.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run_recorded(setup: &Setup, brk1: &Brk1, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    repeat::run_recorded(setup, &brk1.repeat, seed, recorder, |_| State { nodes: brk1.nodes })
}
