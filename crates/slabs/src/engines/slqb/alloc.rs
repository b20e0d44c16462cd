//! Allocation (docs/theory/slqb.md 4).

use super::list::{ListId, Owner};
use super::{Memoryless, Slot, Slqb};
use crate::backing::Backing;
use crate::engines::common;
use crate::slab::{Slab, SlabWord};
use slablab_platform::{CpuShared, Event, FrameKind, Gfp, Local, NodeId, PerCpu, PerNode, Platform, Want};

impl<P: Platform> Slqb<P> {
    #[inline]
    pub(super) fn alloc_object(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        if node.is_none_or(|node| self.is_here(node))
            && let Some(object) = self.slots.pop_if(Want::ANY, Event::AllocFastpath)
        {
            return Some(object);
        }
        self.alloc_slow(backing, gfp, node)
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        self.slots.count(Event::AllocSlowpath, 1);
        let mut slot = self.slots.local();
        if let Some(slot) = &mut slot {
            self.look_around(backing, slot);
        }
        let object = match (self.elsewhere(backing, gfp, node), slot) {
            (Some(node), slot) => {
                drop(slot);
                self.alloc_on(backing, gfp, node)
            }
            (None, Some(slot)) => self.alloc_here(backing, slot, gfp),
            (None, None) => self.alloc_slotless(backing, gfp),
        };
        if object.is_some() {
            self.slots.count(Event::SlqbAlloc, 1);
        }
        object
    }

    /// The node to allocate from if the CPU's own list does not serve the request; `None` if it does.
    fn elsewhere(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<NodeId> {
        let asked = node.filter(|node| !self.is_here(*node))?;
        Some(Self::listed(backing, gfp, asked)).filter(|node| !self.is_here(*node))
    }

    /// The node whose list serves a request for node `asked`. A node without memory has no list: the node
    /// that its pages come from is used instead, unless the caller set `__GFP_THISNODE`.
    fn listed(backing: &Backing<'_, P>, gfp: Gfp, asked: NodeId) -> NodeId {
        let nearest = if gfp.has(Gfp::THISNODE) { None } else { backing.pages.nearest(asked).next() };
        nearest.unwrap_or(asked)
    }

    /// Allocates from the CPU's own list, and last from a new page.
    fn alloc_here(&self, backing: &Backing<'_, P>, mut slot: Slot<'_, P>, gfp: Gfp) -> Option<P::Ptr> {
        let home = self.home(slot.cpu());
        let this_node = gfp.has(Gfp::THISNODE);
        if let Some(object) = self.pop_claimed(backing, &mut slot) {
            return Some(object);
        }
        if self.policy.memoryless == Memoryless::RemoteFirst
            && !this_node
            && P::node_frames(home).1 == 0
            && let Some(object) = self.take_from_zonelist(backing, home)
        {
            return Some(object);
        }
        if let Some(object) = self.take_from_own_page(&mut slot) {
            return Some(object);
        }
        // Release the slot first: `new_page` may sleep, and reclaim may free objects of this cache.
        drop(slot);
        match self.new_page(backing, gfp, home) {
            None if !this_node => self.take_from_zonelist(backing, home),
            object => object,
        }
    }

    /// Pops the queue's head. An empty queue first claims the objects that other CPUs handed back, if
    /// `remote_free_check` is set.
    fn pop_claimed(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) -> Option<P::Ptr> {
        let mut queue = slot.list();
        if queue.head.is_none() && self.lists.peek(slot.cpu()).is_some_and(|shared| shared.is_flagged()) {
            slot.set_list(self.claim(ListId::Cpu(slot.cpu()), queue));
            if slot.list().count > self.hiwater {
                self.flush_free_list(backing, slot);
            }
            queue = slot.list();
        }
        let object = self.pop(&mut queue)?;
        slot.set_list(queue);
        Some(object)
    }

    fn take_from_own_page(&self, slot: &mut Slot<'_, P>) -> Option<P::Ptr> {
        let list = ListId::Cpu(slot.cpu());
        let object = self.take_object(&mut self.hold(list, &mut slot.pages))?;
        slot.count(Event::SlqbAllocSlabFill, 1);
        Some(object)
    }

    /// Allocates from a node's list, then from a new page of that node, and last from any node's list (4.2).
    fn alloc_on(&self, backing: &Backing<'_, P>, gfp: Gfp, node: NodeId) -> Option<P::Ptr> {
        if let Some(object) = self.take_from_node_list(backing, node) {
            return Some(object);
        }
        match self.new_page(backing, gfp, node) {
            None if !gfp.has(Gfp::THISNODE) => self.take_from_zonelist(backing, self.home(P::cpu())),
            object => object,
        }
    }

    /// Allocates from the nearest node whose list has a free object.
    fn take_from_zonelist(&self, backing: &Backing<'_, P>, from: NodeId) -> Option<P::Ptr> {
        let mut nodes = backing.pages.nearest(from);
        nodes.find_map(|node| self.take_from_node_list(backing, node))
    }

    /// Allocates from a node's queue, after a claim, or else from its first partial page.
    fn take_from_node_list(&self, backing: &Backing<'_, P>, node: NodeId) -> Option<P::Ptr> {
        // A node list that was never used has no objects.
        let listed = self.nodes.peek(node)?;
        let id = ListId::Node(node);
        let mut own = self.lock_node(listed);
        if own.queue.head.is_none() && listed.shared.is_flagged() {
            own.queue = self.claim(id, own.queue);
            if own.queue.count > self.hiwater {
                self.flush_node_list(backing, node, &mut own);
            }
        }
        if let Some(object) = self.pop(&mut own.queue) {
            return Some(object);
        }
        let object = self.take_object(&mut self.hold(id, &mut own.pages))?;
        self.slots.count(Event::SlqbAllocSlabFill, 1);
        Some(object)
    }

    /// Allocates from a new page, on any node that has memory.
    fn new_page(&self, backing: &Backing<'_, P>, gfp: Gfp, node: NodeId) -> Option<P::Ptr> {
        let colour = self.next_colour();
        let slab = self.allocate_page(backing, gfp, node, colour)?;
        self.slots.count(Event::SlqbAllocSlabNew, 1);
        if let Some(mut slot) = self.slots.local()
            && self.home(slot.cpu()) == slab.node()
        {
            let list = ListId::Cpu(slot.cpu());
            self.own_page(slab, list, colour);
            let mut pages = self.hold(list, &mut slot.pages);
            pages.slabs += 1;
            pages.partial.push_head(slab);
            return self.take_object(&mut pages);
        }
        let list = ListId::Node(slab.node());
        self.own_page(slab, list, colour);
        let mut own = self.lock_node(self.nodes.get(slab.node()));
        let mut pages = self.hold(list, &mut own.pages);
        pages.slabs += 1;
        pages.partial.push_head(slab);
        self.take_object(&mut pages)
    }

    /// Records the owner of a new page. No other CPU can reach the page yet.
    pub(super) fn own_page(&self, slab: Slab<P>, list: ListId, colour: u16) {
        slab.set_owner(Owner { cache: self.id, list, colour }.pack());
    }

    /// Allocates and links a new slab. SLQB has one order per cache, so there is no fallback order.
    pub(super) fn allocate_page(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: NodeId,
        colour: u16,
    ) -> Option<Slab<P>> {
        let geometry = &self.geometry;
        let flags = common::page_flags(gfp, geometry.order > 0, self.flags);
        let pfn = backing.pages.alloc(flags, geometry.order, node, FrameKind::Slab)?;
        self.slots.count(Event::AllocSlab, 1);
        P::map_slab(pfn, geometry.order, geometry.spacing, self.id.0);
        let slab = Slab::at(pfn);
        let shift = self.colours.bytes(colour);
        let head = slab.thread(shift, geometry.size, geometry.objects, geometry.link_offset, &self.new);
        let word = SlabWord {
            head: Some(slab.offset(head)),
            inuse: 0,
            objects: geometry.objects as u16,
            frozen: false,
        };
        slab.set_extra(word.pack());
        Some(slab)
    }

    /// The colour of the CPU's next page. 0 if the slot is unavailable or there is only one colour.
    fn next_colour(&self) -> u16 {
        if self.colours.count <= 1 {
            return 0;
        }
        let Some(mut slot) = self.slots.local() else { return 0 };
        let colour = slot.colour_next;
        slot.colour_next = if colour + 1 < self.colours.count { colour + 1 } else { 0 };
        colour
    }

    /// Allocates when the slot is unavailable: from a page of the CPU's list under its `page_lock`, else from
    /// the node's list.
    fn alloc_slotless(&self, backing: &Backing<'_, P>, gfp: Gfp) -> Option<P::Ptr> {
        self.slots.count(Event::Slotless, 1);
        let cpu = P::cpu();
        if self.has_page_lock()
            && self.lists.peek(cpu).is_some()
            && let Some(object) = self.take_object(&mut self.lock_pages(ListId::Cpu(cpu)))
        {
            self.slots.count(Event::SlqbAllocSlabFill, 1);
            return Some(object);
        }
        self.alloc_on(backing, gfp, Self::listed(backing, gfp, self.home(cpu)))
    }
}
