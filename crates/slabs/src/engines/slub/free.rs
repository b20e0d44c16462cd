//! Free: the slot's free list, then the slab's own list (docs/theory/slub.md 4).

use super::node::Listed;
use super::runs::Checks;
use super::state::{Destination, Facts, after_free, after_leaving, needs_list};
use super::{CpuPartial, SlabUpdate, Slot, Slub, Tally, tag};
use crate::backing::Backing;
use crate::cache::CacheId;
use crate::damage::{cut_list, damaged};
use crate::report::Misuse;
use crate::slab::{Chain, Slab, SlabWord};
use slablab_pages::Pages;
use slablab_platform::{Event, FrameKind, FrameState, HotList, Local, NodeId, PerCpu, Pfn, Platform, Want};

/// Counts in the current CPU's slot where a call holds it, and without a slot elsewhere.
struct Counter<'a, P: Platform> {
    cache: &'a Slub<P>,
    slot: Option<Slot<'a, P>>,
}

impl<'a, P: Platform> Counter<'a, P> {
    fn count(&mut self, event: Event, n: u64) {
        match &mut self.slot {
            Some(slot) => slot.count(event, n),
            None => self.cache.slots.count(event, n),
        }
    }

    fn lock_node(&mut self, node: NodeId) -> Listed<'a, P> {
        match &mut self.slot {
            Some(slot) => self.cache.lock_node(slot, node),
            None => self.cache.lock_node_unslotted(node),
        }
    }
}

impl<P: Platform> Slub<P> {
    #[inline]
    pub(super) fn free_to_slab(
        &self,
        backing: &Backing<'_, P>,
        object: P::Ptr,
        tally: Tally,
    ) -> Result<(), Misuse> {
        let Some((pfn, state)) = Pages::<P>::block_of(object) else {
            return Err(Misuse::NotInSlab);
        };
        // An equal tag proves that the slab is this cache's. It does not prove that an object starts at the
        // address.
        let mine = Want { mask: u64::MAX, value: tag(pfn, state.node) };
        if self.is_start(Slab::<P>::at(pfn).bytes_to(object))
            && self.slots.push_if(mine, HotList::<P::Ptr>::COUNT_MAX, object, tally.fast)
        {
            return Ok(());
        }
        self.free_slow(backing, object, pfn, state, tally)
    }

    #[cold]
    #[inline(never)]
    fn free_slow(
        &self,
        backing: &Backing<'_, P>,
        object: P::Ptr,
        pfn: Pfn,
        state: FrameState,
        tally: Tally,
    ) -> Result<(), Misuse> {
        let slab = self.check(object, pfn, state)?;
        if state.order != self.geometry.order {
            // The fast path does not know where objects end in such a slab, and left it alone.
            let mine = Want { mask: u64::MAX, value: self.tag_of(slab, state) };
            if self.slots.push_if(mine, HotList::<P::Ptr>::COUNT_MAX, object, tally.fast) {
                return Ok(());
            }
        }
        if self.has_map() {
            self.note_free(slab, object)?;
        }
        self.push_chain(backing, slab, state, Chain { head: object, tail: object, count: 1 }, tally)
    }

    /// The slab of an object of this cache; an error if none starts at the address.
    pub(super) fn check(&self, object: P::Ptr, pfn: Pfn, state: FrameState) -> Result<Slab<P>, Misuse> {
        if state.kind != FrameKind::Slab {
            return Err(Misuse::NotInSlab);
        }
        let slab = Slab::at(pfn);
        self.check_in(slab, object, Checks::Due).map(|_| slab)
    }

    /// Checks an address in a slab; returns the object's offset. Of an object that was checked when it came,
    /// only the slab's cache, and that the slab has room for the object: so a damaged address that is still
    /// in a slab of the cache is not found.
    #[inline]
    pub(super) fn check_in(&self, slab: Slab<P>, object: P::Ptr, checks: Checks) -> Result<u32, Misuse> {
        if slab.owner() != self.id.0 as u64 {
            return Err(Misuse::WrongCache(CacheId(slab.owner() as u32)));
        }
        let offset = slab.bytes_to(object);
        let fits = offset < slab.word().objects as u32 * self.geometry.size;
        let starts = checks == Checks::Done || self.is_start(offset);
        if fits && starts { Ok(offset) } else { Err(Misuse::NotAnObject) }
    }

    /// Pushes a chain of one slab's objects on the slab's own list, and moves the slab if that changes where
    /// it belongs. With a map the objects' bits are set already, and the chain's count alone is looked at.
    pub(super) fn push_chain(
        &self,
        backing: &Backing<'_, P>,
        slab: Slab<P>,
        state: FrameState,
        chain: Chain<P::Ptr>,
        tally: Tally,
    ) -> Result<(), Misuse> {
        self.slots.count(tally.slow, chain.count as u64);
        if self.policy.update == SlabUpdate::BitLock {
            self.slots.count(Event::LockSlab, 1);
        }
        // Where CPUs keep partial slabs, a full slab becomes this CPU's unless the slot refuses. Other frees
        // do without the slot.
        let mut counter = Counter { cache: self, slot: None };
        let mut may_chain = self.cpu_partial > 0;
        let mut list = None;
        let (before, after) = loop {
            let word = slab.word();
            if may_chain && word.head.is_none() && !word.frozen {
                // The slot is taken before a list's lock.
                list = None;
                counter.slot = self.slots.local();
                may_chain = false;
            }
            let has_chain = counter.slot.is_some();
            let head = if self.has_map() { 0 } else { slab.offset(chain.head) };
            let pushed = word.pushed(head, chain.count).ok_or(Misuse::AlreadyFree)?;
            let to_chain = word.head.is_none() && !word.frozen && has_chain;
            let pushed = if to_chain && self.policy.partial_frozen { pushed.frozen() } else { pushed };
            if needs_list(word, pushed, has_chain) && list.is_none() {
                list = Some(counter.lock_node(state.node));
                continue;
            }
            if !self.has_map() {
                let behind = word.head.map(|head| slab.object(head));
                P::set_link(chain.tail, self.geometry.link_offset, behind);
            }
            match slab.exchange(word, pushed) {
                Ok(()) => break (word, pushed),
                Err(_) => counter.count(Event::CmpxchgDoubleFail, 1),
            }
        };
        let facts = Facts {
            has_chain: counter.slot.is_some(),
            // Since 6.8 slabs on a CPU's chain are not frozen: an emptied one is not listed.
            listed: list.is_some() && before.head.is_some() && Self::is_listed(slab),
            at_limit: list.as_ref().is_some_and(|list| list.len() >= self.min_partial),
        };
        let to = after_free(&self.policy, before, after, facts);
        self.settle_freed(backing, slab, to, list.map(|list| (state.node, list)), counter);
        Ok(())
    }

    /// Moves a slab to where a free leaves it. `list` is its node's list if that is locked.
    fn settle_freed(
        &self,
        backing: &Backing<'_, P>,
        slab: Slab<P>,
        to: Destination,
        list: Option<(NodeId, Listed<'_, P>)>,
        counter: Counter<'_, P>,
    ) {
        match (to, counter.slot, list) {
            (Destination::Frozen, slot, list) => {
                drop((list, slot));
                self.slots.count(Event::FreeFrozen, 1);
            }
            (Destination::CpuChain, Some(mut slot), list) => {
                drop(list);
                slot.count(Event::CpuPartialFree, 1);
                self.put_cpu_partial(backing, &mut slot, slab);
            }
            (Destination::Pages, slot, Some((node, mut list))) => {
                drop(slot);
                if Self::is_listed(slab) {
                    self.unlist(&mut list, node, slab);
                    self.slots.count(Event::FreeRemovePartial, 1);
                }
                drop(list);
                self.discard(backing, slab);
            }
            (Destination::NodeTail, slot, Some((node, mut list))) => {
                drop(slot);
                self.list_tail(&mut list, node, slab);
                self.slots.count(Event::FreeAddPartial, 1);
            }
            _ => {}
        }
    }

    /// Puts a slab on the CPU's chain. A chain that was already at its limit moves to the nodes' lists.
    fn put_cpu_partial(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, slab: Slab<P>) {
        let held = match self.policy.cpu_partial {
            // Not reached: `cpu_partial` is 0 under this policy.
            CpuPartial::Off => 0,
            CpuPartial::Objects => slot.partial_objects,
            CpuPartial::Slabs => slot.partial_slabs,
        };
        let old = if held >= self.cpu_partial && slot.partial.is_some() {
            Self::forget_partial(slot)
        } else {
            None
        };
        self.chain(slot, slab);
        if let Some(old) = old {
            slot.count(Event::CpuPartialDrain, 1);
            self.drain(backing, slot, old);
        }
    }

    /// Moves the CPU's whole chain of partial slabs to the nodes' lists.
    pub(super) fn drain_all(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        if let Some(old) = Self::forget_partial(slot) {
            self.drain(backing, slot, old);
        }
    }

    /// Moves a chain to the nodes' lists, newest slab first. Empty slabs beyond `min_partial` go back to the
    /// page allocator after the walk, when no lock is held.
    fn drain(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, chain: Slab<P>) {
        let mut next = Some(chain);
        let mut empty: Option<Slab<P>> = None;
        while let Some(first) = next {
            let node = first.node();
            let mut list = self.lock_node(slot, node);
            // One acquisition of the lock serves a run of slabs of one node.
            while let Some(slab) = next.filter(|slab| slab.node() == node) {
                next = slab.next();
                let word = self.thaw(slab);
                if word.inuse == 0 && list.len() >= self.min_partial {
                    slab.set_next(empty);
                    empty = Some(slab);
                } else {
                    self.list_tail(&mut list, node, slab);
                    slot.count(Event::FreeAddPartial, 1);
                }
            }
        }
        while let Some(slab) = empty {
            empty = slab.next();
            slot.count(Event::DeactivateEmpty, 1);
            self.discard(backing, slab);
        }
    }

    /// Moves one slab of the chain to its node's list: the request is for another node (6.8).
    pub(super) fn put_back(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, slab: Slab<P>) {
        slab.set_next(None);
        self.drain(backing, slot, slab);
    }

    /// Thaws a slab of this CPU under its node's lock. Returns the word that is then in place.
    fn thaw(&self, slab: Slab<P>) -> SlabWord {
        let mut word = slab.word();
        while word.frozen {
            match slab.exchange(word, word.thawed()) {
                Ok(()) => return word.thawed(),
                Err(found) => word = found,
            }
        }
        word
    }

    /// Gives up the CPU slab: the slot's list goes back to the slab, and the slab goes where
    /// [`after_leaving`] says (docs/theory/slub.md 4.3).
    pub(super) fn deactivate(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        let Some(slab) = slot.slab else { return };
        let list = slot.list();
        let chain = list.head.map(|head| self.chain_of(head, list.count));
        self.uninstall(slot);
        self.slab_locked(slot);
        let node = slab.node();
        let mut guard = None;
        let (before, after, goes) = loop {
            let word = slab.word();
            let left = self.with_chain(slab, word, chain).thawed();
            // Since 3.2 a slab goes to the page allocator without the list's lock.
            let goes = guard.is_none()
                && self.policy.update == SlabUpdate::Word
                && left.inuse == 0
                && self.nr_partial(node) >= self.min_partial;
            if !goes && left.head.is_some() && guard.is_none() {
                guard = Some(self.lock_node(slot, node));
                continue;
            }
            if let Some(chain) = chain {
                let behind = word.head.map(|head| slab.object(head));
                P::set_link(chain.tail, self.geometry.link_offset, behind);
            }
            match slab.exchange(word, left) {
                Ok(()) => break (word, left, goes),
                Err(_) => slot.count(Event::CmpxchgDoubleFail, 1),
            }
        };
        let at_limit = goes || guard.as_ref().is_some_and(|list| list.len() >= self.min_partial);
        let (to, events) = after_leaving(&self.policy, before, after, chain.is_some(), at_limit);
        events.into_iter().flatten().for_each(|event| slot.count(event, 1));
        match (to, guard) {
            (Destination::NodeHead, Some(mut list)) => self.list_head(&mut list, node, slab),
            (Destination::NodeTail, Some(mut list)) => self.list_tail(&mut list, node, slab),
            (Destination::Pages, list) => {
                drop(list);
                self.discard(backing, slab);
            }
            _ => {}
        }
    }

    /// A slab's word with the list of its CPU in front of its own.
    fn with_chain(&self, slab: Slab<P>, word: SlabWord, chain: Option<Chain<P::Ptr>>) -> SlabWord {
        let Some(Chain { head, count, .. }) = chain else { return word };
        word.pushed(slab.offset(head), count).unwrap_or_else(|| {
            damaged::<P>(
                self.id,
                format_args!("{slab:?} gets {head:?} back, with all objects free (freed twice?)"),
            )
        })
    }

    fn chain_of(&self, head: P::Ptr, count: u32) -> Chain<P::Ptr> {
        let mut tail = head;
        for _ in 1..count {
            tail = P::link(tail, self.geometry.link_offset).unwrap_or_else(|| cut_list::<P>(self.id, tail));
        }
        Chain { head, tail, count }
    }

    /// Frees a chain of one slab's objects: to the slot's list if the slab is the CPU slab, else to the
    /// slab's own list.
    pub(super) fn free_chain(
        &self,
        backing: &Backing<'_, P>,
        slab: Slab<P>,
        state: FrameState,
        chain: Chain<P::Ptr>,
        tally: Tally,
    ) -> Result<(), Misuse> {
        if self.policy.cpu_slab
            && let Some(mut slot) = self.slots.local()
        {
            let list = slot.list();
            if list.tag == self.tag_of(slab, state) {
                P::set_link(chain.tail, self.geometry.link_offset, list.head);
                let count = list.count + chain.count;
                slot.set_list(HotList { head: Some(chain.head), count, tag: list.tag });
                slot.count(tally.fast, chain.count as u64);
                return Ok(());
            }
        }
        self.push_chain(backing, slab, state, chain, tally)
    }
}
