//! Periodic reaping, shrink, and CPUs that go offline (docs/theory/slqb.md 6).

use super::list::ListId;
use super::{Slot, Slqb};
use crate::backing::Backing;
use slablab_platform::{CpuId, CpuShared, Local, NodeId, PerCpu, PerNode, Platform, Work, WorkKind};

impl<P: Platform> Slqb<P> {
    /// Upkeep in every slow path: schedules the CPU's reaper if necessary, and empties the slot if another
    /// CPU asked for that.
    pub(super) fn look_around(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        if !slot.reaping && self.policy.reap_interval_ns > 0 {
            slot.reaping = true;
            self.reap_later(slot.cpu());
        }
        if slot.asked() {
            self.empty_slot(backing, slot);
        }
    }

    /// Schedules the next visit to a CPU's queues.
    pub(super) fn reap_later(&self, cpu: CpuId) {
        let work = Work { kind: WorkKind::Reap, cache: self.id.0, argument: 0 };
        P::defer(cpu, self.policy.reap_interval_ns, work);
    }

    /// One visit: claims and flushes one batch of the node's list and one of the CPU's list, and sends the
    /// remote list.
    pub(super) fn reap(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        let Some(mut slot) = self.reach(cpu) else {
            // Another thread uses the slot. Try again at the next visit.
            return self.reap_later(cpu);
        };
        if !slot.reaping || !P::cpu_online(cpu) {
            slot.reaping = false;
            return;
        }
        let home = self.home(cpu);
        if let Some(node) = self.nodes.peek(home) {
            let mut own = self.lock_node(node);
            own.queue = self.claim(ListId::Node(home), own.queue);
            self.flush_node_list(backing, home, &mut own);
        }
        self.claim_own(&mut slot);
        self.flush_free_list(backing, &mut slot);
        self.flush_remote_free_cache(backing, &mut slot);
        drop(slot);
        self.reap_later(cpu);
    }

    /// Empties every queue that this call can reach. A CPU whose slot is in use is asked to empty it itself.
    ///
    /// Two rounds are necessary: the first one hands objects to lists that were emptied before.
    pub(super) fn empty_all(&self, backing: &Backing<'_, P>) {
        let touched = || (0..P::cpus()).map(CpuId).filter(|cpu| self.is_touched(*cpu));
        for _round in 0..2 {
            for cpu in touched() {
                match self.reach(cpu) {
                    Some(mut slot) => self.empty_slot(backing, &mut slot),
                    None => self.slots.ask(cpu),
                }
            }
        }
        for node in (0..P::nodes()).map(NodeId) {
            self.empty_node(backing, node);
        }
    }

    /// Whether a CPU's list can contain anything.
    pub(super) fn is_touched(&self, cpu: CpuId) -> bool {
        self.slots.used(cpu) || self.lists.peek(cpu).is_some()
    }

    /// Stops the reaper on every CPU that this call can reach.
    pub(super) fn stop_reaping(&self) {
        for cpu in (0..P::cpus()).map(CpuId).filter(|cpu| self.slots.used(*cpu)) {
            if let Some(mut slot) = self.reach(cpu) {
                slot.reaping = false;
            }
        }
    }

    /// Flushes the queue, claims until no objects are left in `remote_free`, and sends the remote list.
    fn empty_slot(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        loop {
            while slot.list().count > 0 {
                self.flush_free_list(backing, slot);
            }
            self.claim_own(slot);
            if slot.list().count == 0 {
                break;
            }
        }
        self.flush_remote_free_cache(backing, slot);
    }

    fn claim_own(&self, slot: &mut Slot<'_, P>) {
        if self.lists.peek(slot.cpu()).is_some() {
            let queue = slot.list();
            slot.set_list(self.claim(ListId::Cpu(slot.cpu()), queue));
        }
    }

    fn empty_node(&self, backing: &Backing<'_, P>, node: NodeId) {
        let Some(listed) = self.nodes.peek(node) else { return };
        let mut own = self.lock_node(listed);
        loop {
            own.queue = self.claim(ListId::Node(node), own.queue);
            if own.queue.count == 0 {
                return;
            }
            self.flush_node_list(backing, node, &mut own);
        }
    }
}
