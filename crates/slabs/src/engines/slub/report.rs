//! What the cache holds, as /proc/slabinfo and /sys/kernel/slab would count it.

use super::Slub;
use crate::engine::Usage;
use crate::slab::Slab;
use slablab_platform::{CpuId, Local, Lock, NodeId, PerCpu, PerNode, Platform};

impl<P: Platform> Slub<P> {
    pub(super) fn report_on(&self, node: NodeId) -> Usage {
        let mut usage = Usage::default();
        if let Some(share) = self.nodes.peek(node) {
            let (slabs, frames, objects) = share.totals();
            usage.slabs = slabs;
            usage.frames = frames;
            usage.total_objects = objects;
        }
        if self.nr_partial(node) > 0 {
            let list = self.nodes.get(node).partial().lock();
            usage.partial = list.len() as u64;
            usage.free_in_partial = list.iter().map(|slab| slab.word().free() as u64).sum();
        }
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

    fn report_slot(&self, usage: &mut Usage, slot: &super::Slot<'_, P>, node: NodeId) {
        if let Some(slab) = slot.slab.filter(|slab| slab.node() == node) {
            usage.cpu_slabs += 1;
            usage.parked += slot.list().count as u64 + slab.word().free() as u64;
        }
        for slab in core::iter::successors(slot.partial, |slab: &Slab<P>| slab.next()) {
            if slab.node() == node {
                usage.cpu_partial += 1;
                usage.parked += slab.word().free() as u64;
            }
        }
        usage.parked += self.parked_in_sheaves(slot, node);
    }
}
