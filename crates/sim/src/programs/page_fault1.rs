//! will-it-scale's page_fault1: maps 128 MiB of anonymous memory, touches each page, and unmaps it.
//!
//! Huge pages are off.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageFault1 {
    /// Tasks and time.
    pub repeat: Repeat,
    /// Nodes that a store into the tree of mappings takes; 0: as many as the release does.
    pub nodes: u32,
    /// Bytes of the mapping.
    pub bytes: u64,
}

impl Default for PageFault1 {
    /// The program's own 128 MiB.
    fn default() -> Self {
        PageFault1 { repeat: Repeat::default(), nodes: 0, bytes: 128 << 20 }
    }
}

impl PageFault1 {
    /// The parameters of a size of [`repeat::Length::SIZES`].
    pub fn sized(size: &str) -> Option<PageFault1> {
        let length = repeat::Length::sized(size)?;
        Some(PageFault1 { repeat: Repeat { length, ..Repeat::default() }, ..PageFault1::default() })
    }
}

struct State {
    bytes: u64,
    nodes: u32,
}

impl Program for State {
    type Process = AddressSpace;

    fn process(&self, task: &Task) -> AddressSpace {
        AddressSpace::with_nodes(task, self.nodes)
    }

    fn operation(&self, task: &Task, space: &AddressSpace) -> u64 {
        let mapping = task.syscall(|| space.map(task, self.bytes));
        let faults = space.touch(task, &mapping);
        task.syscall(|| space.unmap(task, mapping));
        faults
    }

    fn end(&self, task: &Task, space: AddressSpace) {
        space.end(task);
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        vec![mappings::locks()]
    }
}

/// Objects of a region's faults, on a machine with pages of `1 << page_shift` bytes.
pub fn describe(era: Era, page_fault1: &PageFault1, page_shift: u32) -> Vec<Described> {
    let (tables, pages) = mappings::pages_of(page_fault1.bytes, page_shift);
    let nodes = 2 * u64::from(mappings::nodes_per_store(era, page_fault1.nodes));
    let counts = [(Object::Vma, 1), (Object::AnonVma, 1), (Object::AnonVmaChain, 1)];
    let objects = counts.into_iter().filter_map(|(object, count)| Described::of(era, object, count, pages));
    objects
        .chain(Described::of(era, Object::MapleNode, nodes, pages))
        .chain([Described::pages(1 << page_shift, pages + tables, pages)])
        .collect()
}

/// Runs the program. The outcome's messages are faults; those of a region are counted when it is unmapped.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run(setup: &Setup, page_fault1: &PageFault1, seed: u64) -> Result<Outcome, Failed> {
    run_recorded(setup, page_fault1, seed, &Recorder::default())
}

/// Runs the program, and records its window.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run_recorded(
    setup: &Setup,
    page_fault1: &PageFault1,
    seed: u64,
    recorder: &Recorder,
) -> Result<Outcome, Failed> {
    let PageFault1 { bytes, nodes, .. } = *page_fault1;
    repeat::run_recorded(setup, &page_fault1.repeat, seed, recorder, |_| State { bytes, nodes })
}
