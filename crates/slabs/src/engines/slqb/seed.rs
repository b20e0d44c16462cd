//! Seeding: slabs as an earlier run would have left them.
//!
//! SLUB reserves slabs for a CPU; SLQB reserves objects. So the free objects of a CPU's slab go to that CPU's
//! queue. The partial slabs of a node are distributed over the node's CPUs, because only requests by node use
//! a node's list. SLQB has no empty pages: the objects of an empty slab go to a queue too, and if no queue
//! has room, the slab is returned.

use super::Slqb;
use super::list::ListId;
use crate::backing::Backing;
use crate::damage::damaged;
use crate::engine::Place;
use crate::slab::{Slab, SlabWord};
use slablab_platform::{CpuId, Gfp, HotList, Local, NodeId, PerCpu, PerNode, Platform};

impl<P: Platform> Slqb<P> {
    pub(super) fn seed_page(
        &self,
        backing: &Backing<'_, P>,
        node: NodeId,
        place: Place,
        free: &[u16],
    ) -> Option<P::Ptr> {
        let slab = self.allocate_page(backing, Gfp::KERNEL | Gfp::THISNODE, node, 0)?;
        let address = |index: u16| P::address(slab.pfn(), index as u64 * self.geometry.size as u64);
        for (place, index) in free.iter().enumerate() {
            let next = free.get(place + 1).map(|next| address(*next));
            P::set_link(address(*index), self.geometry.link_offset, next);
        }
        let objects = self.geometry.objects as u16;
        let Some(first) = free.first().map(|first| address(*first)) else {
            self.seed_full(slab, self.seed_list(slab, place));
            return Some(address(0));
        };
        let list = self.seed_list(slab, place);
        let is_empty = free.len() == objects as usize;
        if (is_empty || matches!(place, Place::Cpu(_)))
            && let ListId::Cpu(cpu) = list
            && self.seed_queue(cpu, first, address(free[free.len() - 1]), free.len() as u32)
        {
            self.seed_full(slab, list);
            return Some(address(0));
        }
        if is_empty {
            self.discard(backing, slab);
            return None;
        }
        let inuse = objects - free.len() as u16;
        let word = SlabWord { head: Some(slab.offset(first)), inuse, objects, frozen: false };
        self.seed_pages(slab, list, word);
        Some(address(0))
    }

    /// The list that owns a seeded page: the list of the CPU in `place`, or of one of the node's CPUs in
    /// turn, or of the node.
    fn seed_list(&self, slab: Slab<P>, place: Place) -> ListId {
        let node = slab.node();
        let at_home = |cpu: &CpuId| self.home(*cpu) == node;
        let cpus = || (0..P::cpus()).map(CpuId).filter(at_home);
        let dealt = match place {
            Place::Cpu(cpu) | Place::CpuPartial(cpu) => Some(cpu).filter(at_home),
            Place::Node => {
                let turn = (slab.pfn().0 >> self.geometry.order) as usize;
                cpus().nth(turn % cpus().count().max(1))
            }
        };
        dealt.map_or(ListId::Node(node), ListId::Cpu)
    }

    /// Registers a page that has no free object.
    fn seed_full(&self, slab: Slab<P>, list: ListId) {
        let objects = self.geometry.objects as u16;
        self.seed_pages(slab, list, SlabWord { head: None, inuse: objects, objects, frozen: false });
    }

    fn seed_pages(&self, slab: Slab<P>, list: ListId, word: SlabWord) {
        self.own_page(slab, list, 0);
        slab.set_extra(word.pack());
        let add = |pages: &mut super::list::PageList<P>| {
            pages.slabs += 1;
            if word.head.is_some() {
                pages.partial.push_tail(slab);
            }
        };
        match list {
            ListId::Cpu(cpu) => {
                let mut slot = self.claim_at_rest(cpu);
                add(&mut self.hold(list, &mut slot.pages));
            }
            ListId::Node(node) => {
                let mut own = self.lock_node(self.nodes.get(node));
                add(&mut self.hold(list, &mut own.pages));
            }
        }
    }

    fn claim_at_rest(&self, cpu: CpuId) -> super::Slot<'_, P> {
        self.slots.claim(cpu).unwrap_or_else(|| {
            damaged::<P>(self.id, format_args!("seeded while CPU {} allocates from the cache", cpu.0))
        })
    }

    /// Puts a chain at the head of a CPU's queue. Returns false if the queue has no room.
    fn seed_queue(&self, cpu: CpuId, first: P::Ptr, last: P::Ptr, count: u32) -> bool {
        let mut slot = self.claim_at_rest(cpu);
        let queue = slot.list();
        let room = queue.count + count <= self.hiwater;
        if room {
            P::set_link(last, self.geometry.link_offset, queue.head);
            slot.set_list(HotList { head: Some(first), count: queue.count + count, ..queue });
        }
        room
    }
}
