//! Usage of a cache, in the terms of /proc/slabinfo.

use super::list::{ListId, PageList};
use super::{Slot, Slqb};
use crate::engine::Usage;
use crate::slab::{Slab, SlabWord};
use slablab_platform::{CpuId, CpuShared, Local, Lock, NodeId, PerNode, Platform};

impl<P: Platform> Slqb<P> {
    pub(super) fn report_on(&self, node: NodeId) -> Usage {
        let mut usage = Usage::default();
        if let Some(listed) = self.nodes.peek(node) {
            let queued = self.peek_node(listed, |pages, queued| {
                self.report_pages(&mut usage, pages);
                queued
            });
            usage.parked += queued as u64 + listed.shared.remote_count() as u64;
        }
        for cpu in (0..P::cpus()).map(CpuId).filter(|cpu| self.is_touched(*cpu)) {
            self.report_cpu(&mut usage, cpu, node);
        }
        usage
    }

    /// Adds the objects of one CPU. Its pages are all of its home node, and its queue nearly always; its
    /// remote list never is.
    fn report_cpu(&self, usage: &mut Usage, cpu: CpuId, node: NodeId) {
        let at_home = self.home(cpu) == node;
        if at_home && let Some(shared) = self.lists.peek(cpu) {
            self.report_pages(usage, &shared.pages().lock());
            usage.parked += shared.remote_count() as u64;
        }
        let Some(slot) = self.reach(cpu) else { return };
        if at_home {
            self.report_pages(usage, &slot.pages);
        }
        usage.parked += self.queued_on(&slot, node) as u64;
        if slot.remote_cache_list.is_some_and(|list| self.node_of(list) == node) {
            usage.parked += slot.rlist.count() as u64;
        }
    }

    fn report_pages(&self, usage: &mut Usage, pages: &PageList<P>) {
        usage.slabs += pages.slabs as u64;
        usage.frames += (pages.slabs as u64) << self.geometry.order;
        usage.total_objects += pages.slabs as u64 * self.geometry.objects as u64;
        usage.partial += pages.partial.len() as u64;
        let free = |slab: Slab<P>| SlabWord::unpack(slab.extra()).free() as u64;
        usage.free_in_partial += pages.partial.iter().map(free).sum::<u64>();
    }

    /// The number of objects of `node` in a CPU's queue. Only a CPU that treats every free as local mixes
    /// nodes.
    fn queued_on(&self, slot: &Slot<'_, P>, node: NodeId) -> u32 {
        let queue = slot.list();
        if !self.mixes_nodes(slot.cpu()) {
            return if self.home(slot.cpu()) == node { queue.count } else { 0 };
        }
        let next = |object: &P::Ptr| P::link(*object, self.geometry.link_offset);
        let objects = core::iter::successors(queue.head, next).take(queue.count as usize);
        objects.filter(|object| Slab::<P>::of(*object).is_some_and(|(_, state)| state.node == node)).count()
            as u32
    }

    fn node_of(&self, list: ListId) -> NodeId {
        match list {
            ListId::Cpu(cpu) => self.home(cpu),
            ListId::Node(node) => node,
        }
    }
}
