//! Groups of tasks: a program with all that it starts. CPU time is counted by group.

use super::{Kernel, Task};
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_platform::Topology;

/// A group of tasks. A new task is in its parent's; one without a parent in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group(u16);

/// CPU time of a group's tasks that have left their CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In programs themselves.
    pub user: Ps,
    /// In the kernel: system calls, faults, reclaim, interrupts that came meanwhile.
    pub system: Ps,
}

/// What a group's tasks did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    user: Ps,
    all: Ps,
}

impl Group {
    /// The tasks that are in no other group.
    pub const NONE: Group = Group(0);

    /// Its place among the groups, in the order in which they were made.
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

impl Kernel {
    /// A group without tasks.
    pub fn new_group(&self) -> Group {
        let mut groups = self.groups.borrow_mut();
        groups.push(Done::default());
        Group(groups.len() as u16 - 1)
    }

    /// What the tasks of a group have computed. What a task did since it was last given a CPU is not counted.
    pub fn cpu_time(&self, Group(group): Group) -> CpuTime {
        let Done { user, all } = self.groups.borrow()[group as usize];
        CpuTime { user, system: all.saturating_sub(user) }
    }

    /// The group of the running task.
    pub fn running_group(&self) -> Group {
        let running = self.sched.borrow().current(Timed::cpu());
        running.map_or(Group::NONE, |id| self.tasks.borrow()[id.0 as usize].group)
    }

    /// What all tasks have computed in their programs.
    pub(super) fn user_time(&self) -> Ps {
        self.groups.borrow().iter().map(|group| group.user).sum()
    }

    pub(super) fn count_user(&self, TaskId(task): TaskId, ps: Ps) {
        let Group(group) = self.tasks.borrow()[task as usize].group;
        self.groups.borrow_mut()[group as usize].user += ps;
    }

    /// A task has left its CPU: its time there is its group's.
    pub(super) fn count_cpu(&self, TaskId(task): TaskId) {
        let (group, since) = {
            let entry = &self.tasks.borrow()[task as usize];
            (entry.group.0, entry.since)
        };
        self.groups.borrow_mut()[group as usize].all += Timed::clock().saturating_sub(since);
    }
}

impl Task {
    /// The task belongs to a group from now on, and what it starts later.
    pub fn join(&self, group: Group) {
        self.kernel.count_cpu(self.id);
        let entry = &mut self.kernel.tasks.borrow_mut()[self.id.0 as usize];
        (entry.group, entry.since) = (group, Timed::clock());
    }
}
