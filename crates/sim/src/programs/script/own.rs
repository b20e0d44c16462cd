//! Pages that the program that runs a script has for itself: locked, so that reclaim never sees them.

use super::process::Process;
use crate::memory::Here;
use slablab_trace::script::{Distribution, Group, ObjectId};
use slablab_vm::{Frame, Host, Purpose};
use std::collections::BTreeSet;

/// Bytes of a Zipf object's tables for each of its pages: a sum of weights and a place.
const TABLES: u32 = 12;

/// A process's own pages.
#[derive(Default)]
pub(super) struct Own {
    frames: Vec<Frame>,
    /// Objects whose tables are made.
    tables: BTreeSet<ObjectId>,
}

impl Process<'_> {
    /// Locks so many pages. Without memory it goes on with fewer: the next access finds that there is none.
    pub(super) fn lock(&mut self, pages: u32) {
        let memory = &self.shared.memory;
        let here = Here::new(memory, self.task);
        let frames = (0..pages).map_while(|_| here.alloc(&memory.vm, Purpose::Anon));
        self.own.frames.extend(frames);
    }

    /// Locks the tables of objects that are accessed by Zipf's distribution for the first time.
    pub(super) fn lock_tables(&mut self, groups: &[Group]) {
        if self.shared.memory.guest.locked == [0; 2] {
            return;
        }
        for group in groups.iter().filter(|group| matches!(group.distribution, Distribution::Zipf(_))) {
            if self.own.tables.insert(group.object) {
                let pages = self.script.object(group.object).pages;
                self.lock((pages * TABLES).div_ceil(4_096));
            }
        }
    }

    /// The process's own pages are freed.
    pub(super) fn unlock(&mut self) {
        let memory = &self.shared.memory;
        let here = Here::new(memory, self.task);
        std::mem::take(&mut self.own).frames.into_iter().for_each(|frame| here.free(&memory.vm, frame));
    }
}
