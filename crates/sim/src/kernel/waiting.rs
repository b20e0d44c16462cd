//! Queues of tasks that wait.

use super::{Kernel, Task};
use crate::sched::TaskId;
use std::cell::RefCell;
use std::collections::VecDeque;

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The reason, as "to read from socket".
    pub what: &'static str,
    /// The number of what it waits at.
    pub number: u32,
}

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

    /// Whether no task waits.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Wakes the first task. False if none waits. `sync`: the waker will sleep soon.
    pub fn wake_one(&self, kernel: &Kernel, sync: bool) -> bool {
        let first = self.0.borrow_mut().pop_front();
        first.inspect(|task| kernel.wake(*task, sync)).is_some()
    }

    /// Wakes all tasks that wait now.
    pub fn wake_all(&self, kernel: &Kernel, sync: bool) {
        let waiting = self.0.borrow().len();
        for _ in 0..waiting {
            self.wake_one(kernel, sync);
        }
    }
}
