//! The memory group of the programs: all of them are in one, and its limit is `memory.max`.
//!
//! ```text
//! a page for a program ── charged() < limit: taken
//!                         else reclaim for the group, until it is; 16 times nothing: a process is killed
//! ```
//!
//! What a group has is its pages of memory and of files, and page tables. Not modelled: kernel objects in the
//! limit, charges ahead for a CPU, a second group. Rules: docs/theory/vm.md 3.14.

use super::Memory;
use super::host::Here;
use super::reclaim::RETRIES;
use crate::kernel::Task;
use slablab_model::Timed;
use slablab_platform::Topology;
use slablab_vm::{Ask, Purpose};
use std::rc::Rc;

/// The highest zone there can be: pages of a group are reclaimed in all.
const ANY_ZONE: u8 = 4;
/// Times that writing a limit reclaims for it (from memory).
const SHRINKS: u32 = 5;

impl Memory {
    /// The group may have one page more: reclaims until it may, or kills. False: no page, for read-ahead that
    /// does not insist.
    pub(super) fn charge(self: &Rc<Self>, here: &Here, task: &Task, purpose: Purpose) -> bool {
        let mut vain = 0;
        while self.is_over(0) && !self.processes.is_killed(task.id) {
            let freed = self.reclaim_group(here, task);
            if !self.is_over(0) {
                break;
            }
            if purpose == Purpose::ReadAhead {
                return false;
            }
            vain = if freed > 0 { 0 } else { vain + 1 };
            if vain > RETRIES {
                self.out_of_memory(task, 0, Timed::cpu_memory_node(Timed::cpu()));
                vain = 0;
            }
        }
        true
    }

    /// The limit was written: pages go until the group has no more than that.
    pub(crate) fn shrink_group(self: &Rc<Self>, here: &Here, task: &Task) {
        let mut vain = 0;
        while self.is_over(1) && vain < SHRINKS {
            vain += u32::from(self.reclaim_group(here, task) == 0);
        }
    }

    /// Whether the group has as many pages as it may have, or so many more.
    fn is_over(&self, more: u64) -> bool {
        self.vm.with(|state| state.settings.group_pages.is_some_and(|limit| state.charged() >= limit + more))
    }

    /// A round of reclaim. Returns the pages that it freed.
    fn reclaim_group(self: &Rc<Self>, here: &Here, task: &Task) -> u32 {
        let node = Timed::cpu_memory_node(Timed::cpu()).0;
        let space = self.processes.space_of(task.id);
        let ask = Ask { node, class: ANY_ZONE, order: 0, io: true, fs: true, space, group: true };
        self.plugged(task);
        let freed = self.vm.policy.direct(&self.vm, here, &ask);
        self.end_plug(task);
        freed.pages
    }
}
