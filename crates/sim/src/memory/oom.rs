//! The end of memory: reclaim in the asking task, the task that is killed, and reclaim without an end.

use super::Memory;
use super::asks::Served;
use super::host::Here;
use super::views::ProcessMemory;
use crate::kernel::tally::Failed;
use crate::kernel::{Task, WaitQueue, Waiting};
use crate::sched::TaskId;
use slablab_model::{Ps, Timed};
use slablab_platform::{Gfp, NodeId, Pfn, Reclaim, ReclaimStep, Reclaimed, Topology};
use slablab_vm::spaces::TABLE;
use slablab_vm::{Ask, Counter, Host, SpaceId, Throttle, near};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How long a task waits for another one that was killed (a jiffy of 250 Hz).
const JIFFY: Ps = 4_000_000_000;

/// How long a request of 2.6 waits for congested disks before it tries again (HZ / 50), in nanoseconds.
const RETRY: u64 = 20_000_000;

/// Rounds in a row that free nothing before a task is killed.
const RETRIES: u32 = 16;

/// A process that has memory.
#[derive(Clone, Debug)]
struct Process {
    name: String,
    task: TaskId,
    space: SpaceId,
    is_killed: bool,
}

/// The processes that have memory.
#[derive(Default)]
pub(super) struct Processes {
    all: RefCell<Vec<Process>>,
    killed: RefCell<Vec<Killed>>,
    /// Address spaces that no task is in now, with their names: to be shown, and never killed.
    idle: RefCell<Vec<(String, SpaceId)>>,
    /// Processes that wait for each other: a killed one goes on here.
    sleepers: WaitQueue,
    /// Tasks that wait for the end of a killed one.
    waiters: WaitQueue,
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

impl Memory {
    /// A task has an address space from now on.
    pub fn adopt(&self, name: &str, task: TaskId, space: SpaceId) {
        let process = Process { name: name.into(), task, space, is_killed: false };
        self.processes.all.borrow_mut().push(process);
    }

    /// The address space of a task is gone.
    pub fn disown(&self, task: TaskId) {
        self.processes.all.borrow_mut().retain(|process| process.task != task);
        self.processes.waiters.wake_all(&self.kernel, false);
    }

    /// A program exists whose tasks are not modelled: tasks are in its address space from time to time.
    pub fn show(&self, name: &str, space: SpaceId) {
        self.processes.idle.borrow_mut().push((name.into(), space));
    }

    /// It is gone.
    pub fn hide(&self, space: SpaceId) {
        self.processes.idle.borrow_mut().retain(|(_, of)| *of != space);
    }

    /// The memory of each process: programs without a task of their own, then the others, each oldest first.
    pub fn processes(&self) -> Vec<ProcessMemory> {
        let (idle, all) = (self.processes.idle.borrow(), self.processes.all.borrow());
        let others = all.iter().filter(|process| idle.iter().all(|(_, space)| *space != process.space));
        let others = others.map(|process| self.memory_of(process));
        idle.iter().map(|(name, space)| self.memory_in(name, *space)).chain(others).collect()
    }

    fn memory_of(&self, process: &Process) -> ProcessMemory {
        self.memory_in(&process.name, process.space)
    }

    fn memory_in(&self, name: &str, space: SpaceId) -> ProcessMemory {
        let mut sums =
            ProcessMemory { name: name.into(), virtual_pages: 0, resident: 0, swapped: 0, tables: 0 };
        self.vm.with(|state| {
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

    /// Whether a task was killed: it ends as soon as it can.
    pub fn is_killed(&self, task: TaskId) -> bool {
        self.processes.all.borrow().iter().any(|process| process.task == task && process.is_killed)
    }

    /// The processes that were killed.
    pub fn killed(&self) -> Vec<Killed> {
        self.processes.killed.borrow().clone()
    }

    /// A process sleeps until another one calls [`Memory::wake_processes`], or it is killed.
    pub fn sleep(self: &Rc<Self>, task: &Task, waiting: Waiting) {
        self.waits(task, waiting, &self.processes.sleepers);
    }

    /// Processes that sleep look again.
    pub fn wake_processes(&self) {
        self.processes.sleepers.wake_all(&self.kernel, false);
    }

    /// The page allocator reclaims by this memory's policy.
    pub(super) fn set_reclaim(self: &Rc<Self>) {
        Timed::set_reclaim_policy(Served(Rc::downgrade(self)));
    }

    /// The place of a zone of the page allocator in the room `vm`.
    pub(super) fn zone(&self, node: NodeId, zone: u8) -> Option<usize> {
        self.zones.iter().position(|of| *of == (node, zone))
    }

    pub(super) fn reclaim(self: &Rc<Self>, task: &Task, ask: Reclaim) -> Reclaimed {
        let here = Here::new(self, task);
        match ask.step {
            ReclaimStep::WakeKswapd => {
                self.wake_kswapd(&here, ask.node.0, ask.order, ask.class);
                Reclaimed::NOTHING
            }
            ReclaimStep::Direct if !self.is_killed(task.id) => self.direct(&here, task, ask),
            ReclaimStep::Zone if !self.is_killed(task.id) => self.near(&here, task, ask),
            ReclaimStep::Oom => self.out_of_memory(task, ask),
            ReclaimStep::Compact if !self.is_killed(task.id) => self.compact(&here, ask),
            ReclaimStep::StealClean => self.steal_clean(&here, ask),
            ReclaimStep::WakeKreclaimd => {
                self.kreclaimd.wake(&self.kernel);
                Reclaimed::NOTHING
            }
            ReclaimStep::Launder => {
                self.vm.policy.launder_for(&self.vm, &here, &self.ask_of(task, ask));
                Reclaimed::NOTHING
            }
            ReclaimStep::Wait if !self.is_killed(task.id) => {
                here.throttle(Throttle::Congestion, RETRY);
                Reclaimed { progress: true, ..Reclaimed::NOTHING }
            }
            ReclaimStep::Yield => {
                self.unplug(task);
                task.preemption_point();
                Reclaimed::NOTHING
            }
            _ => Reclaimed::NOTHING,
        }
    }

    pub(super) fn wake_kswapd(self: &Rc<Self>, here: &Here, node: u16, order: u8, class: u8) {
        let kswapd = &self.daemons[node as usize];
        if kswapd.ask(order, class) && self.vm.policy.wants_kswapd(&self.vm, here, node, order, class) {
            self.asks.wakes_kswapd(order);
            kswapd.wake(&self.kernel);
        }
    }

    /// Hands a clean page of a zone over (2.4).
    fn steal_clean(&self, here: &Here, ask: Reclaim) -> Reclaimed {
        let zone = self.zone(ask.node, ask.zone);
        let page = zone.and_then(|zone| self.vm.policy.steal_clean(&self.vm, here, zone));
        page.map_or(Reclaimed::NOTHING, |frame| Reclaimed::page(Pfn(frame.0)))
    }

    /// A request as policies see it.
    fn ask_of(&self, task: &Task, ask: Reclaim) -> Ask {
        let processes = self.processes.all.borrow();
        let space = processes.iter().find(|process| process.task == task.id).map(|process| process.space);
        let (io, fs) = (ask.gfp.has(Gfp::IO), ask.gfp.has(Gfp::FS));
        Ask { node: ask.node.0, class: ask.class, order: ask.order, io, fs, space }
    }

    /// A round of direct reclaim.
    fn direct(self: &Rc<Self>, here: &Here, task: &Task, ask: Reclaim) -> Reclaimed {
        let idle = Timed::clock().saturating_sub(self.moved_at.get());
        if ask.attempt > 0 && idle >= self.guest.livelock_after {
            let seconds = idle / 1_000_000_000_000;
            self.kernel.fail(Failed::Livelock { seconds, tasks: self.kernel.stuck() });
            task.preemption_point();
        }
        self.plugged(task);
        let freed = self.vm.policy.direct(&self.vm, here, &self.ask_of(task, ask));
        self.end_plug(task);
        let progress = freed.progress || self.tries_again(task, ask.attempt);
        Reclaimed { freed: freed.pages, progress, page: freed.page.map(|frame| Pfn(frame.0)) }
    }

    /// Reclaim of a zone or its node before another node is asked.
    fn near(self: &Rc<Self>, here: &Here, task: &Task, ask: Reclaim) -> Reclaimed {
        let Some(zone) = self.zone(ask.node, ask.zone) else { return Reclaimed::NOTHING };
        self.plugged(task);
        let freed = near::reclaim(&self.vm, here, zone, &self.ask_of(task, ask));
        self.end_plug(task);
        Reclaimed { freed: freed.pages, progress: freed.progress, page: None }
    }

    /// Whether a request goes on although a round of reclaim has freed nothing: 16 times in a row since 4.7
    /// (`should_reclaim_retry`, `MAX_RECLAIM_RETRIES`; from memory). Before, each round itself waited for
    /// disks.
    fn tries_again(self: &Rc<Self>, task: &Task, attempt: u32) -> bool {
        let (rounds, since) = match self.processes.vain.borrow().get(&task.id) {
            // Rounds in vain of this request, the last one the round before.
            Some((rounds, last)) if attempt > 0 && *last + 1 == attempt => (rounds + 1, attempt),
            _ => (1, attempt),
        };
        self.processes.vain.borrow_mut().insert(task.id, (rounds, since));
        let goes_on = self.kernel.era.since(4, 7, 0) && rounds <= RETRIES;
        if goes_on {
            task.preemption_point();
        }
        goes_on
    }

    /// Kills the process with the most pages, as 6.x does, or waits for one that was killed.
    fn out_of_memory(self: &Rc<Self>, task: &Task, ask: Reclaim) -> Reclaimed {
        if self.is_killed(task.id) {
            return Reclaimed::NOTHING;
        }
        let is_ending = self.processes.all.borrow().iter().any(|process| process.is_killed);
        if !is_ending && !self.kill(ask.order, ask.node) {
            let failed = Failed::out_of_memory(&*self.kernel.heap, 0);
            self.kernel.fail(failed);
            task.preemption_point();
        }
        if self.is_killed(task.id) {
            return Reclaimed::NOTHING;
        }
        let waiting = Waiting { what: "for a killed task", number: 0 };
        self.unplug(task);
        self.processes.waiters.wait_at_most(task, waiting, JIFFY);
        Reclaimed { freed: 0, progress: true, page: None }
    }

    /// kswapd of a node gives up: kills a process, unless one is about to end.
    pub(super) fn kill_for_kswapd(&self) {
        if !self.processes.all.borrow().iter().any(|process| process.is_killed) {
            self.kill(0, Timed::cpu_memory_node(Timed::cpu()));
        }
    }

    /// Marks the process with the most pages, for a request of an order. False if there is none.
    fn kill(&self, order: u8, node: NodeId) -> bool {
        let mut all = self.processes.all.borrow_mut();
        let of = |process: &Process| {
            let ProcessMemory { name, resident, swapped, tables, .. } = self.memory_of(process);
            (name, resident, swapped, tables)
        };
        let processes: Vec<_> = all.iter().map(of).collect();
        let points = |at: &usize| processes[*at].1 + processes[*at].2 + processes[*at].3;
        // The first of equals.
        let Some(at) = (0..all.len()).rev().max_by_key(points) else { return false };
        all[at].is_killed = true;
        let (name, free) = (all[at].name.clone(), self.kernel.heap.pages().free_frames(node));
        drop(all);
        self.vm.with(|state| state.count(Counter::OomKill));
        let killed = Killed { name, at: Timed::clock(), order, free, processes };
        self.processes.killed.borrow_mut().push(killed);
        self.wake_processes();
        true
    }
}
