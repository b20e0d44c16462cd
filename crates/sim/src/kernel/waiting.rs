//! Queues of tasks that wait.

use super::{Kernel, Task, Waiting};
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_platform::Topology;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Tasks that wait at one place, the first that came first.
///
/// A task that finds it has to wait calls [`WaitQueue::wait`] without suspending between the two: then no
/// wake-up is lost.
#[derive(Debug, Default)]
pub struct WaitQueue(RefCell<VecDeque<TaskId>>);

impl WaitQueue {
    /// The task waits here until another one wakes it.
    pub fn wait(&self, task: &Task, waiting: Waiting) {
        self.0.borrow_mut().push_back(task.id);
        task.kernel.block(task.id, waiting);
    }

    /// The task waits here until another one wakes it, or until `at_most` picoseconds have passed. True if
    /// another task woke it.
    pub fn wait_at_most(&self, task: &Task, waiting: Waiting, at_most: Ps) -> bool {
        self.0.borrow_mut().push_back(task.id);
        let woken = task.kernel.block_at_most(task.id, waiting, at_most);
        if !woken {
            // A waker may have passed the task over meanwhile, and taken it out.
            self.0.borrow_mut().retain(|id| *id != task.id);
        }
        woken
    }

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Wakes the first task. False if none waits. `sync`: the waker will sleep soon.
    pub fn wake_one(&self, kernel: &Kernel, sync: bool) -> bool {
        loop {
            let Some(first) = self.0.borrow_mut().pop_front() else { return false };
            // A task whose time has passed is awake already: the wake-up is for the next task.
            if kernel.waits(first) {
                kernel.wake(first, sync);
                return true;
            }
        }
    }

    /// Wakes all tasks that wait now.
    pub fn wake_all(&self, kernel: &Kernel, sync: bool) {
        let waiting = self.0.borrow().len();
        for _ in 0..waiting {
            self.wake_one(kernel, sync);
        }
    }
}

impl Kernel {
    /// Whether a task waits, and nothing has woken it.
    fn waits(&self, task: TaskId) -> bool {
        self.tasks.borrow()[task.0 as usize].waiting.is_some()
    }

    /// The running task `me` waits until another one wakes it or `at_most` has passed. False if that has.
    fn block_at_most(self: &Rc<Self>, me: TaskId, waiting: Waiting, at_most: Ps) -> bool {
        let sleep = {
            let entry = &mut self.tasks.borrow_mut()[me.0 as usize];
            entry.sleep += 1;
            entry.timed_out = false;
            entry.has_timer = true;
            entry.sleep
        };
        let (kernel, at) = (self.clone(), Timed::clock() + at_most);
        Timed::spawn(Timed::cpu(), at, move || kernel.time_out(me, sleep));
        self.block(me, waiting);
        let entry = &mut self.tasks.borrow_mut()[me.0 as usize];
        entry.sleep += 1;
        !entry.timed_out
    }

    /// Wakes a task whose time has passed, if it still sleeps the sleep of this number.
    fn time_out(&self, task: TaskId, sleep: u32) {
        let times_out = {
            let entry = &mut self.tasks.borrow_mut()[task.0 as usize];
            let times_out = entry.sleep == sleep && entry.waiting.is_some();
            entry.timed_out |= times_out;
            times_out
        };
        if times_out {
            self.wake(task, false);
        }
    }
}
