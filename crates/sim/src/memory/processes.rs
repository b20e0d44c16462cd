//! The processes that have memory: what each has, which sleep until another one wakes them, which were
//! killed.

use super::views::ProcessMemory;
use crate::kernel::{Kernel, WaitQueue};
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_platform::{NodeId, Topology};
use slablab_vm::spaces::TABLE;
use slablab_vm::{Counter, SpaceId, Vm};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A process that has memory.
#[derive(Clone, Debug)]
struct Process {
    name: String,
    task: TaskId,
    space: SpaceId,
    is_killed: bool,
}

/// The processes.
#[derive(Default)]
pub struct Processes {
    all: RefCell<Vec<Process>>,
    killed: RefCell<Vec<Killed>>,
    /// Address spaces that no task is in now, with their names: to be shown, and never killed.
    idle: RefCell<Vec<(String, SpaceId)>>,
    /// Processes that wait for each other: a killed one goes on here.
    pub(super) sleepers: WaitQueue,
    /// Tasks that wait for the end of a killed one.
    pub(super) waiters: WaitQueue,
    /// Rounds of reclaim of each task that freed nothing, one after the other, and the last one's number.
    vain: RefCell<BTreeMap<TaskId, (u32, u32)>>,
}

/// A process that was killed because no page was free, and what each process had then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    /// Its name.
    pub name: String,
    /// When, picoseconds.
    pub at: Ps,
    /// The order of the request.
    pub order: u8,
    /// Free pages.
    pub free: u64,
    /// Each process: name, pages in frames, pages in swap, page tables.
    pub processes: Vec<(String, u64, u64, u64)>,
}

impl Processes {
    /// A task has an address space from now on.
    pub fn adopt(&self, name: &str, task: TaskId, space: SpaceId) {
        let process = Process { name: name.into(), task, space, is_killed: false };
        self.all.borrow_mut().push(process);
    }

    /// The address space of a task is gone.
    pub fn disown(&self, kernel: &Kernel, task: TaskId) {
        self.all.borrow_mut().retain(|process| process.task != task);
        self.waiters.wake_all(kernel, false);
    }

    /// A program exists whose tasks are not modelled: tasks are in its address space from time to time.
    pub fn show(&self, name: &str, space: SpaceId) {
        self.idle.borrow_mut().push((name.into(), space));
    }

    /// Such a program is gone.
    pub fn hide(&self, space: SpaceId) {
        self.idle.borrow_mut().retain(|(_, of)| *of != space);
    }

    /// The memory of each process: programs without a task of their own, then the others, each oldest first.
    pub fn list(&self, vm: &Vm) -> Vec<ProcessMemory> {
        let (idle, all) = (self.idle.borrow(), self.all.borrow());
        let others = all.iter().filter(|process| idle.iter().all(|(_, space)| *space != process.space));
        let others = others.map(|process| memory_in(vm, &process.name, process.space));
        idle.iter().map(|(name, space)| memory_in(vm, name, *space)).chain(others).collect()
    }

    /// The address space of a task's process.
    pub(super) fn space_of(&self, task: TaskId) -> Option<SpaceId> {
        self.all.borrow().iter().find(|process| process.task == task).map(|process| process.space)
    }

    /// Whether a task was killed: it ends as soon as it can.
    pub fn is_killed(&self, task: TaskId) -> bool {
        self.all.borrow().iter().any(|process| process.task == task && process.is_killed)
    }

    /// Whether a process was killed and has not ended.
    pub(super) fn is_one_ending(&self) -> bool {
        self.all.borrow().iter().any(|process| process.is_killed)
    }

    /// The processes that were killed.
    pub fn killed(&self) -> Vec<Killed> {
        self.killed.borrow().clone()
    }

    /// Processes that sleep look again.
    pub fn wake(&self, kernel: &Kernel) {
        self.sleepers.wake_all(kernel, false);
    }

    /// A round of reclaim for a task freed nothing. Returns how many did so one after the other.
    pub(super) fn reclaims_in_vain(&self, task: TaskId, attempt: u32) -> u32 {
        let mut vain = self.vain.borrow_mut();
        let (rounds, since) = match vain.get(&task) {
            // Rounds in vain of this request, the last one the round before.
            Some((rounds, last)) if attempt > 0 && *last + 1 == attempt => (rounds + 1, attempt),
            _ => (1, attempt),
        };
        vain.insert(task, (rounds, since));
        rounds
    }

    /// kswapd of a node gives up: kills a process, unless one is about to end.
    pub(super) fn kill_for_kswapd(&self, vm: &Vm, kernel: &Kernel) {
        if !self.is_one_ending() {
            self.kill(vm, kernel, 0, Timed::cpu_memory_node(Timed::cpu()));
        }
    }

    /// Kills the process with the most pages, for a request of an order: marks it. False if there is none.
    pub(super) fn kill(&self, vm: &Vm, kernel: &Kernel, order: u8, node: NodeId) -> bool {
        let mut all = self.all.borrow_mut();
        let of = |process: &Process| {
            let ProcessMemory { name, resident, swapped, tables, .. } =
                memory_in(vm, &process.name, process.space);
            (name, resident, swapped, tables)
        };
        let processes: Vec<_> = all.iter().map(of).collect();
        let points = |at: &usize| processes[*at].1 + processes[*at].2 + processes[*at].3;
        // The first of equals.
        let Some(at) = (0..all.len()).rev().max_by_key(points) else { return false };
        all[at].is_killed = true;
        let (name, free) = (all[at].name.clone(), kernel.heap.pages().free_frames(node));
        drop(all);
        vm.with(|state| state.count(Counter::OomKill));
        let killed = Killed { name, at: Timed::clock(), order, free, processes };
        self.killed.borrow_mut().push(killed);
        self.wake(kernel);
        true
    }
}

fn memory_in(vm: &Vm, name: &str, space: SpaceId) -> ProcessMemory {
    let mut sums = ProcessMemory { name: name.into(), virtual_pages: 0, resident: 0, swapped: 0, tables: 0 };
    vm.with(|state| {
        for region in &state.spaces.space(space).regions {
            let region = state.spaces.region(*region);
            sums.virtual_pages += u64::from(region.pages());
            sums.resident += u64::from(region.resident);
            sums.swapped += u64::from(region.swapped);
            sums.tables += u64::from(region.pages().div_ceil(TABLE));
        }
    });
    sums
}
