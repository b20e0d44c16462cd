//! Compaction: what kcompactd of each node does, and direct compaction of a request.

use super::Memory;
use super::host::Here;
use super::pageblocks::block_of;
use crate::kernel::{Task, Waiting};
use slablab_model::Timed;
use slablab_pages::MigrateType;
use slablab_platform::{Reclaim, Reclaimed};
use slablab_vm::compact::{Effort, Wanted, direct, kcompactd};
use std::rc::Rc;

/// Requests after which compaction also waits for the ends of writes (`MAX_COMPACT_RETRIES`, from memory).
const RETRIES: u32 = 16;

/// The program of kcompactd of a node.
pub(super) fn run(memory: &Rc<Memory>, task: &Task, node: u16) {
    let this = &memory.daemons.compactors[node as usize];
    let here = Here::new(memory, task);
    Timed::as_reclaimer(|| {
        while !memory.daemons.are_stopping() {
            match this.asked() {
                Some((order, class)) => kcompactd(&memory.vm, &here, node, order, class),
                None => {
                    let what = "for work, kcompactd of node";
                    memory.waits(task, Waiting { what, number: node.into() }, &this.queue);
                }
            }
        }
    });
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
}
