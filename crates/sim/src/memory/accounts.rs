//! What is counted: who holds frames, who asked for what, what tasks read and wrote.

use super::account::Account;
use super::asks::Asks;
use super::disk::PAGE_SECTORS;
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_vm::Io;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// A task's I/O, in blocks of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// The accounts.
#[derive(Default)]
pub struct Accounts {
    /// Blocks of pages, kswapd, pages in swap, by who asked.
    pub asks: Asks,
    /// Frames by their holders.
    pub(super) frames: Account,
    blocks: RefCell<BTreeMap<TaskId, Blocks>>,
    /// When a page was last allocated or freed.
    moved_at: Cell<Ps>,
}

impl Accounts {
    /// A task reads or writes.
    pub(super) fn submits(&self, task: TaskId, io: &Io<'_>) {
        let mut blocks = self.blocks.borrow_mut();
        let blocks = blocks.entry(task).or_default();
        let count = io.frames.len() as u64 * PAGE_SECTORS;
        *(if io.write { &mut blocks.written } else { &mut blocks.read }) += count;
    }

    /// What a task read and wrote so far.
    pub fn blocks_of(&self, task: TaskId) -> Blocks {
        self.blocks.borrow().get(&task).copied().unwrap_or_default()
    }

    /// A page is allocated or freed.
    pub(super) fn moves(&self) {
        self.moved_at.set(Timed::clock());
    }

    /// For how long no page was allocated or freed.
    pub(super) fn still_for(&self) -> Ps {
        Timed::clock().saturating_sub(self.moved_at.get())
    }
}
