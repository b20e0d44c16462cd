//! What tasks wait for in the memory: frames, throttling; and whose bios wait until their task does.

use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_vm::Throttle;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What a throttled task waits for, by [`Throttle`].
pub(super) const THROTTLES: [&str; 6] = [
    "for congested disks",
    "for pages under writeback",
    "for reclaim to make progress",
    "for isolated pages",
    "for half of the reserve",
    "for dirty pages to be written",
];

/// The queues.
#[derive(Default)]
pub(super) struct Waits {
    /// Tasks that wait for a frame's lock, or for its write.
    frames: RefCell<BTreeMap<u32, Rc<WaitQueue>>>,
    throttles: [WaitQueue; THROTTLES.len()],
    /// Writes that ended while reclaimers slept for pages under writeback, and how many sleep.
    writes: Cell<(u32, u32)>,
    /// Tasks that keep their bios together until they wait.
    plugged: RefCell<BTreeSet<TaskId>>,
}

impl Waits {
    /// The queue of tasks that wait for a frame.
    pub(super) fn of_frame(&self, frame: u32) -> Rc<WaitQueue> {
        self.frames.borrow_mut().entry(frame).or_default().clone()
    }

    /// Tasks that wait for a frame look again.
    pub(super) fn wake_frame(&self, kernel: &Kernel, frame: u32) {
        let queue = self.frames.borrow_mut().remove(&frame);
        if let Some(queue) = queue {
            queue.wake_all(kernel, false);
        }
    }

    /// The task sleeps `most` picoseconds at most.
    pub(super) fn throttle(&self, task: &Task, why: Throttle, most: Ps) {
        self.sleeps_for(why, true);
        let waiting = Waiting { what: THROTTLES[why as usize], number: 0 };
        self.throttles[why as usize].wait_at_most(task, waiting, most.max(1));
        self.sleeps_for(why, false);
        Timed::turn();
    }

    pub(super) fn unthrottle(&self, kernel: &Kernel, why: Throttle) {
        self.throttles[why as usize].wake_all(kernel, false);
    }

    /// A reclaimer begins or ends a sleep: those that wait for pages under writeback are counted.
    fn sleeps_for(&self, why: Throttle, begins: bool) {
        if why == Throttle::Writeback {
            let (ended, sleepers) = self.writes.get();
            let written = if sleepers == 0 { 0 } else { ended };
            self.writes.set((written, if begins { sleepers + 1 } else { sleepers - 1 }));
        }
    }

    /// So many writes ended: reclaimers go on after 32 for each of them (`acct_reclaim_writeback`).
    pub(super) fn writes_ended(&self, kernel: &Kernel, pages: u32) {
        let (ended, sleepers) = self.writes.get();
        if sleepers > 0 {
            self.writes.set((ended + pages, sleepers));
            if ended + pages > 32 * sleepers {
                self.unthrottle(kernel, Throttle::Writeback);
            }
        }
    }

    /// A disk's queue of writes is congested no longer. Until 5.15 reclaimers sleep until then
    /// (`congestion_wait`), until 3.1 writers too.
    pub(super) fn congestion_ends(&self, kernel: &Kernel) {
        let sleeps = [(Throttle::Congestion, (5, 16, 0)), (Throttle::Dirty, (3, 2, 0))];
        for (why, (major, minor, patch)) in sleeps {
            if !kernel.era.since(major, minor, patch) {
                self.unthrottle(kernel, why);
            }
        }
    }

    /// The task keeps its bios together until it waits.
    pub(super) fn plug(&self, task: TaskId) {
        self.plugged.borrow_mut().insert(task);
    }

    /// The task does not keep its bios together any more.
    pub(super) fn end_plug(&self, task: TaskId) {
        self.plugged.borrow_mut().remove(&task);
    }

    pub(super) fn is_plugged(&self, task: TaskId) -> bool {
        self.plugged.borrow().contains(&task)
    }
}
