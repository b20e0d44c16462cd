//! Compaction: kcompactd of each node, direct compaction of a request, and what both ask the page allocator.

use super::Memory;
use super::host::Here;
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use slablab_model::Timed;
use slablab_pages::MigrateType;
use slablab_platform::{Pfn, Reclaim, Reclaimed};
use slablab_vm::compact::{Effort, Wanted, direct, kcompactd};
use slablab_vm::{Block, Frame};
use std::cell::Cell;
use std::rc::Rc;

/// Requests after which compaction also waits for the ends of writes (`MAX_COMPACT_RETRIES`, from memory).
const RETRIES: u32 = 16;

/// kcompactd of a node.
#[derive(Default)]
pub(super) struct Kcompactd {
    queue: WaitQueue,
    /// What was asked of it: the largest order, the highest zone.
    asked: Cell<Option<(u8, u8)>>,
}

impl Kcompactd {
    pub(super) fn wake(&self, kernel: &Kernel, order: u8, class: u8) {
        let (largest, highest) = self.asked.get().unwrap_or((0, 0));
        self.asked.set(Some((largest.max(order), highest.max(class))));
        self.queue.wake_one(kernel, false);
    }

    pub(super) fn stop(&self, kernel: &Kernel) {
        self.queue.wake_one(kernel, false);
    }

    /// kcompactd's program.
    pub(super) fn run(memory: &Rc<Memory>, task: &Task, node: u16) {
        let this = &memory.compactors[node as usize];
        let here = Here::new(memory, task);
        Timed::as_reclaimer(|| {
            while !memory.stopping.get() {
                match this.asked.take() {
                    Some((order, class)) => kcompactd(&memory.vm, &here, node, order, class),
                    None => {
                        let what = "for work, kcompactd of node";
                        memory.waits(task, Waiting { what, number: node.into() }, &this.queue);
                    }
                }
            }
        });
    }
}

impl Memory {
    /// A request compacts.
    pub(super) fn compact(self: &Rc<Self>, here: &Here, ask: Reclaim) -> Reclaimed {
        let block = block_of(MigrateType::of(ask.gfp));
        let effort = match ask.attempt {
            0 => Effort::Async,
            1..=RETRIES => Effort::Light,
            _ => Effort::Full,
        };
        let wanted = Wanted { order: ask.order, block, class: ask.class, effort, direct: true };
        let found = direct(&self.vm, here, ask.node.0, wanted);
        Reclaimed { freed: 0, progress: found, page: None }
    }

    /// The type of the pageblock that has a frame.
    pub(super) fn pageblock(&self, frame: Frame) -> Block {
        self.kernel.heap.pages().pageblock_type(Pfn(frame.0)).map_or(Block::Movable, block_of)
    }

    /// Takes the free frames of a range.
    pub(super) fn take_free(&self, first: Frame, frames: u32) -> Vec<Frame> {
        let mut taken = Vec::new();
        self.kernel.heap.pages().take_free(Pfn(first.0), frames, |pfn| taken.push(Frame(pfn.0)));
        taken
    }
}

/// A migrate type as the room `vm` names it.
fn block_of(ty: MigrateType) -> Block {
    match ty {
        MigrateType::Unmovable => Block::Unmovable,
        MigrateType::Reclaimable => Block::Reclaimable,
        MigrateType::Movable => Block::Movable,
        _ => Block::Reserved,
    }
}

/// A pageblock's type as the page allocator names it.
pub(super) fn type_of(block: Block) -> MigrateType {
    match block {
        Block::Unmovable => MigrateType::Unmovable,
        Block::Reclaimable => MigrateType::Reclaimable,
        Block::Movable => MigrateType::Movable,
        Block::Reserved => MigrateType::Reserve,
    }
}
