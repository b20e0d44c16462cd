//! Reclaim for a task that asks the page allocator, and its end: the task that is killed, and reclaim
//! without an end.

use super::Memory;
use super::host::Here;
use crate::kernel::tally::Failed;
use crate::kernel::{Task, Waiting};
use slablab_model::{Ps, ReclaimPolicy, Timed};
use slablab_platform::{Gfp, NodeId, Pfn, Reclaim, ReclaimStep, Reclaimed};
use slablab_vm::{Ask, Host, Throttle, near};
use std::rc::{Rc, Weak};

/// How long a task waits for another one that was killed (a jiffy of 250 Hz).
const JIFFY: Ps = 4_000_000_000;

/// How long a request of 2.6 waits for congested disks before it tries again (HZ / 50), in nanoseconds.
const RETRY: u64 = 20_000_000;

/// Rounds in a row that free nothing before a task is killed.
pub(super) const RETRIES: u32 = 16;

impl Memory {
    /// The page allocator reclaims by this memory's policy.
    pub(super) fn set_reclaim(self: &Rc<Self>) {
        Timed::set_reclaim_policy(Served(Rc::downgrade(self)));
    }

    pub(super) fn reclaim(self: &Rc<Self>, task: &Task, ask: Reclaim) -> Reclaimed {
        let here = Here::new(self, task);
        match ask.step {
            ReclaimStep::WakeKswapd => {
                self.wake_kswapd(&here, ask.node.0, ask.order, ask.class);
                Reclaimed::NOTHING
            }
            ReclaimStep::Direct if !self.processes.is_killed(task.id) => self.direct(&here, task, ask),
            ReclaimStep::Zone if !self.processes.is_killed(task.id) => self.near(&here, task, ask),
            ReclaimStep::Oom => self.out_of_memory(task, ask.order, ask.node),
            ReclaimStep::Compact if !self.processes.is_killed(task.id) => self.compact(&here, ask),
            ReclaimStep::StealClean => self.steal_clean(&here, ask),
            ReclaimStep::WakeKreclaimd => {
                self.daemons.kreclaimd.wake(&self.kernel);
                Reclaimed::NOTHING
            }
            ReclaimStep::Launder => {
                self.vm.policy.launder_for(&self.vm, &here, &self.ask_of(task, ask));
                Reclaimed::NOTHING
            }
            ReclaimStep::Wait if !self.processes.is_killed(task.id) => {
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
        let kswapd = &self.daemons.kswapds[node as usize];
        if kswapd.ask(order, class) && self.vm.policy.wants_kswapd(&self.vm, here, node, order, class) {
            self.accounts.asks.wakes_kswapd(order);
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
        let space = self.processes.space_of(task.id);
        let (io, fs) = (ask.gfp.has(Gfp::IO), ask.gfp.has(Gfp::FS));
        Ask { node: ask.node.0, class: ask.class, order: ask.order, io, fs, space, group: false }
    }

    /// A round of direct reclaim.
    fn direct(self: &Rc<Self>, here: &Here, task: &Task, ask: Reclaim) -> Reclaimed {
        let idle = self.accounts.still_for();
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
        let rounds = self.processes.reclaims_in_vain(task.id, attempt);
        let goes_on = self.kernel.era.since(4, 7, 0) && rounds <= RETRIES;
        if goes_on {
            task.preemption_point();
        }
        goes_on
    }

    /// Kills the process with the most pages, as 6.x does, or waits for one that was killed.
    pub(super) fn out_of_memory(self: &Rc<Self>, task: &Task, order: u8, node: NodeId) -> Reclaimed {
        if self.processes.is_killed(task.id) {
            return Reclaimed::NOTHING;
        }
        let processes = &self.processes;
        if !processes.is_one_ending() && !processes.kill(&self.vm, &self.kernel, order, node) {
            let failed = Failed::out_of_memory(&*self.kernel.heap, 0);
            self.kernel.fail(failed);
            task.preemption_point();
        }
        if self.processes.is_killed(task.id) {
            return Reclaimed::NOTHING;
        }
        let waiting = Waiting { what: "for a killed task", number: 0 };
        self.unplug(task);
        self.processes.waiters.wait_at_most(task, waiting, JIFFY);
        Reclaimed { freed: 0, progress: true, page: None }
    }
}

/// Serves requests that find no page, and counts all.
struct Served(Weak<Memory>);

impl ReclaimPolicy for Served {
    fn reclaim(&self, ask: Reclaim) -> Reclaimed {
        let nothing = Reclaimed::NOTHING;
        let Some(memory) = self.0.upgrade() else { return nothing };
        memory.accounts.asks.asks_for(ask.step, ask.order);
        memory.kernel.running().map_or(nothing, |task| memory.reclaim(&task, ask))
    }

    /// A request of 2.4.9 is served from `inactive_clean` lists; their pages count with the free ones.
    fn clean_frames(&self, node: NodeId, zone: u8) -> u64 {
        let Some(memory) = self.0.upgrade() else { return 0 };
        let zone = memory.zone(node, zone);
        zone.map_or(0, |zone| memory.vm.with(|state| memory.vm.policy.clean_pages(state, zone)))
    }

    fn requested(&self, order: u8) {
        if let Some(memory) = self.0.upgrade() {
            memory.accounts.asks.requested(memory.kernel.running_group(), order);
        }
    }
}
