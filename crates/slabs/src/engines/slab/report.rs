//! Usage of a cache, in the terms of /proc/slabinfo.

use super::list::entry;
use super::{SlabEngine, Slot};
use crate::engine::Usage;
use crate::slab::Slab;
use slablab_platform::{CpuId, Local, NodeId, PerCpu, PerNode, Platform};

impl<P: Platform> SlabEngine<P> {
    pub(super) fn report_on(&self, id: NodeId) -> Usage {
        let mut usage = Usage::default();
        if let Some(node) = self.nodes.peek(id) {
            let lists = node.peek();
            usage.partial = lists.partial.len() as u64 + lists.free.len() as u64;
            usage.slabs = usage.partial + lists.full.len() as u64;
            usage.free_in_partial = node.free_objects() as u64;
        }
        usage.frames = usage.slabs << self.geometry.order;
        usage.total_objects = usage.slabs * self.geometry.objects as u64;
        for node in (0..P::nodes()).map(NodeId).filter_map(|other| self.nodes.peek(other)) {
            let lists = node.peek();
            usage.parked += self.count_on(lists.shared.storage, lists.shared.size, id);
            drop(lists);
            if let Some(alien) = node.aliens.peek(id) {
                usage.parked += alien.lock().size as u64;
            }
        }
        for cpu in (0..P::cpus()).map(CpuId).filter(|cpu| self.slots.used(*cpu)) {
            if let Some(slot) = self.reach(cpu) {
                usage.parked += self.report_slot(&slot, id);
            }
        }
        usage
    }

    fn report_slot(&self, slot: &Slot<'_, P>, id: NodeId) -> u64 {
        let array = slot.array();
        self.count_on(array.storage, array.size, id)
    }

    /// The number of objects of node `id` in an array. Unless arrays mix nodes, all its objects are of one
    /// node, and reading the first one is enough.
    fn count_on(&self, storage: Option<P::Ptr>, size: u32, id: NodeId) -> u64 {
        let node_of =
            |storage, index| Slab::<P>::of(entry::<P>(self.id, storage, index)).map(|(_, state)| state.node);
        let Some(storage) = storage.filter(|_| size > 0) else { return 0 };
        if self.policy.alien {
            return if node_of(storage, 0) == Some(id) { size as u64 } else { 0 };
        }
        (0..size).filter(|index| node_of(storage, *index) == Some(id)).count() as u64
    }
}
