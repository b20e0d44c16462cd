//! What the cache holds, as /proc/slabinfo and /sys/kernel/slab would count it.

use super::Slub;
use crate::engine::Usage;
use crate::slab::Slab;
use slablab_platform::{CpuId, Local, Lock, NodeId, PerCpu, PerNode, Platform};

impl<P: Platform> Slub<P> {
    /// What the cache holds, over all nodes: without a look at which node each kept object is of.
    pub(super) fn report(&self) -> Usage {
        let mut usage = self.at_cpus(None);
        (0..P::nodes()).for_each(|node| usage += self.in_slabs(NodeId(node)));
        usage
    }

    pub(super) fn report_on(&self, node: NodeId) -> Usage {
        let mut usage = self.in_slabs(node);
        if usage.slabs > 0 {
            usage += self.at_cpus(Some(node));
        }
        usage
    }

    /// A node's slabs, and those on its list.
    fn in_slabs(&self, node: NodeId) -> Usage {
        let (slabs, frames, total_objects) = self.nodes.peek(node).map_or((0, 0, 0), |share| share.totals());
        let mut usage = Usage { slabs, frames, total_objects, ..Usage::default() };
        if self.nr_partial(node) > 0 {
            let list = self.nodes.get(node).partial().lock();
            usage.partial = list.len() as u64;
            usage.free_in_partial = list.iter().map(|slab| slab.word().free() as u64).sum();
        }
        usage
    }

    /// What CPUs and barns keep of a node, or of all.
    fn at_cpus(&self, node: Option<NodeId>) -> Usage {
        let mut usage = Usage::default();
        for cpu in (0..P::cpus()).map(CpuId).filter(|cpu| self.slots.used(*cpu)) {
            if let Some(slot) = self.slots.claim(cpu) {
                self.report_slot(&mut usage, &slot, node);
            }
        }
        if self.sheaf_capacity > 0 {
            usage.parked += self.parked_in_barns(node);
        }
        usage
    }

    fn report_slot(&self, usage: &mut Usage, slot: &super::Slot<'_, P>, node: Option<NodeId>) {
        let is_asked = |slab: &Slab<P>| node.is_none_or(|node| slab.node() == node);
        if let Some(slab) = slot.slab.filter(is_asked) {
            usage.cpu_slabs += 1;
            usage.parked += slot.list().count as u64 + slab.word().free() as u64;
        }
        let partial = core::iter::successors(slot.partial, |slab: &Slab<P>| slab.next());
        for slab in partial.filter(is_asked) {
            usage.cpu_partial += 1;
            usage.parked += slab.word().free() as u64;
        }
        usage.parked += self.parked_in_sheaves(slot, node);
    }
}
