//! Allocation: the slow paths behind the slot's free list (docs/theory/slub.md 3).

use super::{
    CpuPartial, CpuState, FirstTry, Memoryless, NewSlab, RemoteSearch, SlabUpdate, Slot, Slub, Tally,
};
use crate::backing::Backing;
use crate::engines::common;
use crate::slab::{Slab, SlabWord};
use slablab_platform::{
    CpuId, Event, FrameKind, Gfp, HotList, Local, NodeId, PerCpu, Platform, Starts, Word,
};

impl<P: Platform> Slub<P> {
    #[inline]
    pub(super) fn alloc_from_slab(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
        tally: Tally,
    ) -> Option<P::Ptr> {
        if let Some(object) = self.slots.pop_if(Self::wanted(node), tally.fast) {
            return Some(object);
        }
        self.alloc_slow(backing, gfp, node, tally)
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
        tally: Tally,
    ) -> Option<P::Ptr> {
        if !self.policy.cpu_slab {
            return self.alloc_direct(backing, gfp, node, tally);
        }
        let Some(mut slot) = self.slots.local() else {
            self.slots.count(Event::Slotless, 1);
            return self.alloc_direct(backing, gfp, node, tally);
        };
        slot.count(tally.slow, 1);
        if slot.asked() {
            self.flush_slot(backing, &mut slot);
        }
        let node = self.node_meant(node);
        if !self.find_list(backing, &mut slot, gfp, node) {
            return None;
        }
        let list = slot.list();
        let object = list.head?;
        let next = P::link(object, self.geometry.link_offset);
        slot.set_list(HotList { head: next, count: list.count - 1, tag: list.tag });
        Some(object)
    }

    /// The node that a request for `node` gets its object from, by the policy for nodes without memory.
    pub(super) fn node_meant(&self, node: Option<NodeId>) -> Option<NodeId> {
        let asked = node?;
        let memoryless = P::node_frames(asked).1 == 0;
        match self.policy.memoryless {
            Memoryless::Anywhere if memoryless => None,
            Memoryless::Nearest if memoryless => Some(Self::nearest_memory(asked)),
            _ => Some(asked),
        }
    }

    fn nearest_memory(from: NodeId) -> NodeId {
        let with_memory = (0..P::nodes()).map(NodeId).filter(|node| P::node_frames(*node).1 > 0);
        with_memory.min_by_key(|node| (P::distance(from, *node), *node)).unwrap_or(from)
    }

    /// The node whose list is searched first if the request names no node: the CPU's own before
    /// `numa_mem_id()`, and the nearest node with memory since then.
    pub(super) fn home(&self, cpu: CpuId) -> NodeId {
        match self.policy.memoryless {
            Memoryless::AsAsked => P::cpu_node(cpu),
            _ => P::cpu_memory_node(cpu),
        }
    }

    /// Fills the slot's free list. False if memory is exhausted.
    fn find_list(
        &self,
        backing: &Backing<'_, P>,
        slot: &mut Slot<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> bool {
        loop {
            if let Some(slab) = slot.slab {
                if node.is_some_and(|node| node != slab.node()) {
                    slot.count(Event::AllocNodeMismatch, 1);
                    self.deactivate(backing, slot);
                    continue;
                }
                if slot.list().head.is_some() || self.refill(slot, slab) {
                    return true;
                }
            }
            if let Some(slab) = self.pop_partial(slot) {
                if !self.policy.partial_frozen && node.is_some_and(|node| node != slab.node()) {
                    self.put_back(backing, slot, slab);
                    continue;
                }
                slot.count(Event::CpuPartialAlloc, 1);
                if !self.policy.partial_frozen {
                    // One exchange freezes the slab and takes its list.
                    let (head, count) = self.take_listed(slab);
                    self.install(slot, slab, Some(head), count);
                    return true;
                }
                self.install(slot, slab, None, 0);
                continue;
            }
            return self.get_partial(backing, slot, gfp, node) || self.new_slab(backing, slot, gfp, node);
        }
    }

    /// Moves the CPU slab's own free list to the slot. If that list is empty, the same exchange thaws the
    /// slab, which is full.
    fn refill(&self, slot: &mut Slot<'_, P>, slab: Slab<P>) -> bool {
        self.slab_locked(slot);
        let has_bypass = self.policy.update == SlabUpdate::Word;
        if !has_bypass {
            // 2.6 counts each look at the slab's list, an empty list too.
            slot.count(Event::AllocRefill, 1);
        }
        match self.take_list(slab) {
            Some((head, count)) => {
                if has_bypass {
                    slot.count(Event::AllocRefill, 1);
                }
                self.install(slot, slab, Some(head), count);
                true
            }
            None => {
                slot.count(if has_bypass { Event::DeactivateBypass } else { Event::DeactivateFull }, 1);
                self.uninstall(slot);
                false
            }
        }
    }

    /// Takes the whole list of a slab that this CPU froze. `None`: the list was empty, and the slab is
    /// thawed.
    fn take_list(&self, slab: Slab<P>) -> Option<(P::Ptr, u32)> {
        let mut word = slab.word();
        loop {
            debug_assert!(word.frozen, "{slab:?} is not frozen: {word:?}");
            let taken = match word.head {
                Some(_) => word.taken_all(),
                None => word.thawed(),
            };
            match slab.exchange(word, taken) {
                Ok(()) => return word.head.map(|head| (slab.object(head), word.free())),
                Err(found) => {
                    self.slots.count(Event::CmpxchgDoubleFail, 1);
                    word = found;
                }
            }
        }
    }

    /// Freezes a slab of this CPU's chain, which becomes the CPU slab. Until 6.7 the slab is frozen already.
    fn freeze(&self, slab: Slab<P>) {
        let mut word = slab.word();
        while !word.frozen {
            match slab.exchange(word, word.frozen()) {
                Ok(()) => return,
                Err(found) => word = found,
            }
        }
    }

    fn pop_partial(&self, slot: &mut Slot<'_, P>) -> Option<Slab<P>> {
        let slab = slot.partial?;
        slot.partial = slab.next();
        slot.partial_slabs -= 1;
        slot.partial_objects = slot.partial.map_or(0, Self::believed);
        Some(slab)
    }

    /// Installs a slab of the wanted node's list, or of the nearest other node that has more than
    /// `min_partial` slabs. False if there is none.
    fn get_partial(
        &self,
        backing: &Backing<'_, P>,
        slot: &mut Slot<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> bool {
        let home = node.unwrap_or_else(|| self.home(slot.cpu()));
        if self.acquire(slot, home, 0) {
            return true;
        }
        let mut others = backing.pages.nearest(home);
        self.searches_others(gfp, node)
            && others.any(|other| other != home && self.acquire(slot, other, self.min_partial))
    }

    /// Whether a request looks at other nodes' lists: if its flags and node allow that, and then in
    /// `defrag_ratio` of 1024 cases.
    pub(super) fn searches_others(&self, gfp: Gfp, node: Option<NodeId>) -> bool {
        let has_list =
            |node: &NodeId| self.policy.memoryless != Memoryless::Others || P::node_frames(*node).1 > 0;
        let stays = match self.policy.remote_search {
            RemoteSearch::UnlessThisNode => node.is_some() && gfp.has(Gfp::THISNODE),
            RemoteSearch::AnyNodeOnly => node.as_ref().is_some_and(has_list),
        };
        let ratio = u32::from(self.policy.defrag_ratio);
        !stays && P::nodes() > 1 && P::random() % 1024 <= ratio && ratio > 0
    }

    /// Installs the first slab of a node's list if the list has more than `keep` slabs, and moves more slabs
    /// to the CPU's chain.
    fn acquire(&self, slot: &mut Slot<'_, P>, node: NodeId, keep: u32) -> bool {
        if self.nr_partial(node) <= keep {
            return false;
        }
        let mut list = self.lock_node(slot, node);
        let Some(slab) = list.first() else {
            return false;
        };
        let (head, count) = self.take_listed(slab);
        self.unlist(&mut list, node, slab);
        slot.count(Event::AllocFromPartial, 1);
        self.slab_locked(slot);
        self.install(slot, slab, Some(head), count);
        // The chain is filled to half of its limit, so that the next misses need no lock.
        while let Some(more) = list.first().filter(|_| self.chain_has_room(slot)) {
            if self.policy.partial_frozen {
                self.freeze(more);
            }
            self.unlist(&mut list, node, more);
            self.chain(slot, more);
            slot.count(Event::CpuPartialNode, 1);
        }
        true
    }

    /// Takes the whole free list of a slab that is on a node's list, and freezes the slab. The caller holds
    /// the node's lock.
    pub(super) fn take_listed(&self, slab: Slab<P>) -> (P::Ptr, u32) {
        let mut word = slab.word();
        loop {
            let Some(head) = word.head else { self.listed_full(slab) };
            match slab.exchange(word, word.taken_all().frozen()) {
                Ok(()) => return (slab.object(head), word.free()),
                Err(found) => {
                    self.slots.count(Event::CmpxchgDoubleFail, 1);
                    word = found;
                }
            }
        }
    }

    fn chain_has_room(&self, slot: &Slot<'_, P>) -> bool {
        match self.policy.cpu_partial {
            CpuPartial::Off => false,
            CpuPartial::Objects => self.cpu_partial > 0 && slot.partial_objects <= self.cpu_partial / 2,
            CpuPartial::Slabs => self.cpu_partial > 0 && slot.partial_slabs <= self.cpu_partial / 2,
        }
    }

    /// Puts a slab at the front of this CPU's chain of partial slabs.
    pub(super) fn chain(&self, slot: &mut Slot<'_, P>, slab: Slab<P>) {
        slab.set_next(slot.partial);
        slot.partial = Some(slab);
        slot.partial_slabs += 1;
        if self.policy.cpu_partial == CpuPartial::Objects {
            // Each slab notes how many objects were free in it and the slabs behind it when it was put on the
            // chain.
            slot.partial_objects += slab.word().free();
            slab.set_extra((slot.partial_objects as u64) << 32);
        }
    }

    fn believed(slab: Slab<P>) -> u32 {
        (slab.extra() >> 32) as u32
    }

    fn new_slab(
        &self,
        backing: &Backing<'_, P>,
        slot: &mut Slot<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> bool {
        let target = node.unwrap_or_else(|| P::cpu_node(slot.cpu()));
        let Some(NewSlab { slab, head, objects, fell_back }) = self.allocate_slab(backing, gfp, target)
        else {
            return false;
        };
        slot.count(Event::AllocSlab, 1);
        if fell_back {
            slot.count(Event::OrderFallback, 1);
        }
        self.slab_locked(slot);
        slab.init_word(SlabWord::all_out(objects as u16).frozen());
        self.install(slot, slab, Some(head), objects);
        true
    }

    /// Makes a slab and links its objects.
    pub(super) fn allocate_slab(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: NodeId,
    ) -> Option<NewSlab<P, P::Ptr>> {
        let geometry = &self.geometry;
        self.allocate_slab_with(backing, gfp, node, &mut |slab, objects| {
            slab.thread(0, geometry.size, objects, geometry.link_offset, &self.new)
        })
    }

    /// Makes a slab, whose objects `link` links unless it has a map. The first attempt is for the preferred
    /// order; the second, with the caller's own flags, for the smallest order.
    pub(super) fn allocate_slab_with<H: From<P::Ptr>>(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: NodeId,
        link: &mut impl FnMut(Slab<P>, u32) -> H,
    ) -> Option<NewSlab<P, H>> {
        let geometry = &self.geometry;
        let gfp = self.slab_flags(gfp);
        let can_fall_back = geometry.order > geometry.min_order;
        let first_try = self.policy.first_try;
        let skipped = can_fall_back && first_try == FirstTry::FreePagesCheck && backing.pages.is_scarce(8);
        let first = first_try.flags(gfp, can_fall_back);
        let attempt =
            || backing.pages.attempt(first, geometry.order, node, FrameKind::Slab, first_try.attempt());
        let preferred = if skipped { None } else { attempt() };
        let (pfn, order, objects, fell_back) = match preferred {
            Some(pfn) => (pfn, geometry.order, geometry.objects, false),
            None => {
                let pfn = backing.pages.alloc(gfp, geometry.min_order, node, FrameKind::Slab)?;
                self.starts_end.store(Starts::of(geometry.min_objects, geometry.size).end);
                (pfn, geometry.min_order, geometry.min_objects, true)
            }
        };
        P::map_slab(pfn, order, geometry.spacing, self.id.0);
        let slab = Slab::at(pfn);
        slab.set_owner(self.id.0 as u64);
        slab.set_extra(0);
        let head = if self.has_map() {
            self.make_map(slab, objects, |_| u64::MAX);
            slab.prepare(geometry.size, objects, &self.new).into()
        } else {
            link(slab, objects)
        };
        self.account_slab(slab, objects, 1);
        Some(NewSlab { slab, head, objects, fell_back })
    }

    fn slab_flags(&self, gfp: Gfp) -> Gfp {
        common::page_flags(gfp, true, self.flags)
    }

    pub(super) fn forget_partial(slot: &mut Slot<'_, P>) -> Option<Slab<P>> {
        let state: &mut CpuState<P> = slot;
        state.partial_slabs = 0;
        state.partial_objects = 0;
        state.partial.take()
    }
}
