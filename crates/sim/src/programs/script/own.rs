//! Pages that the program that runs a script has for itself: locked, so that reclaim never sees them.

use crate::kernel::Task;
use crate::memory::{Here, Memory};
use slablab_trace::script::{Distribution, Group, ObjectId, Script};
use slablab_vm::{Frame, Host, Purpose};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Bytes of a Zipf object's tables for each of its pages: a sum of weights and a place.
const TABLES: u32 = 12;

/// A process's own pages.
#[derive(Default)]
pub(super) struct Own {
    frames: Vec<Frame>,
    /// Objects whose tables are made.
    tables: BTreeSet<ObjectId>,
}

impl Own {
    /// Locks so many pages. Without memory it goes on with fewer: the next access finds that there is none.
    pub(super) fn lock(&mut self, memory: &Rc<Memory>, task: &Task, pages: u32) {
        let here = Here::new(memory, task);
        let frames = (0..pages).map_while(|_| here.alloc(&memory.vm, Purpose::Anon));
        self.frames.extend(frames);
    }

    /// Locks the tables of objects that are accessed by Zipf's distribution for the first time.
    pub(super) fn lock_tables(
        &mut self,
        memory: &Rc<Memory>,
        task: &Task,
        script: &Script,
        groups: &[Group],
    ) {
        if memory.guest.locked == [0; 2] {
            return;
        }
        for group in groups.iter().filter(|group| matches!(group.distribution, Distribution::Zipf(_))) {
            if self.tables.insert(group.object) {
                let pages = script.object(group.object).pages;
                self.lock(memory, task, (pages * TABLES).div_ceil(4_096));
            }
        }
    }

    /// The process's own pages are freed.
    pub(super) fn unlock(self, memory: &Rc<Memory>, task: &Task) {
        let here = Here::new(memory, task);
        self.frames.into_iter().for_each(|frame| here.free(&memory.vm, frame));
    }
}
