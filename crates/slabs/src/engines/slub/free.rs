//! The way of a free: docs/theory/slub.md 4.

use super::{CpuPartial, EmptySlab, SlabUpdate, Slot, Slub, Tally, tag};
use crate::backing::Backing;
use crate::cache::CacheId;
use crate::damage::cut_list;
use crate::report::Misuse;
use crate::slab::{Chain, Slab, SlabWord};
use slablab_pages::Pages;
use slablab_platform::{Event, FrameKind, FrameState, HotList, Local, PerCpu, Pfn, Platform, Want};

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
        // The tag says that the slab is this cache's, not that an object starts there.
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
        self.push_chain(backing, slab, state, Chain { head: object, tail: object, count: 1 }, tally)
    }

    /// That the object is one of this cache's.
    pub(super) fn check(&self, object: P::Ptr, pfn: Pfn, state: FrameState) -> Result<Slab<P>, Misuse> {
        if state.kind != FrameKind::Slab {
            return Err(Misuse::NotInSlab);
        }
        let slab = Slab::at(pfn);
        if slab.owner() != self.id.0 as u64 {
            return Err(Misuse::WrongCache(CacheId(slab.owner() as u32)));
        }
        let offset = slab.bytes_to(object);
        let fits = offset < slab.word().objects as u32 * self.geometry.size;
        if fits && self.is_start(offset) { Ok(slab) } else { Err(Misuse::NotAnObject) }
    }

    /// Pushes a chain of one slab's objects on the slab's own list, and moves the slab if that changes what it is.
    fn push_chain(
        &self,
        backing: &Backing<'_, P>,
        slab: Slab<P>,
        state: FrameState,
        chain: Chain<P::Ptr>,
        tally: Tally,
    ) -> Result<(), Misuse> {
        // A full slab becomes this CPU's, if CPUs keep partial slabs and the slot does not refuse.
        let mut slot = if self.cpu_partial > 0 { self.slots.local() } else { None };
        match &mut slot {
            Some(slot) => slot.count(tally.slow, chain.count as u64),
            None => self.slots.count(tally.slow, chain.count as u64),
        }
        if self.policy.update == SlabUpdate::BitLock {
            self.slots.count(Event::LockSlab, 1);
        }
        let mut list = None;
        let (before, after) = loop {
            let word = slab.word();
            if (word.inuse as u32) < chain.count {
                return Err(Misuse::AlreadyFree);
            }
            let was_full = word.head.is_none();
            let inuse = word.inuse - chain.count as u16;
            let to_cpu = was_full && !word.frozen && slot.is_some();
            // Taken before the transition, so that whoever finds the slab empty or partial finds it listed.
            let needs_list = !word.frozen && !to_cpu && (was_full || inuse == 0);
            if needs_list && list.is_none() {
                list = Some(match &mut slot {
                    Some(slot) => self.lock_node(slot, state.node),
                    None => self.lock_node_unslotted(state.node),
                });
                continue;
            }
            let frozen = word.frozen || (to_cpu && self.policy.partial_frozen);
            let pushed = SlabWord { head: Some(slab.offset(chain.head)), inuse, frozen, ..word };
            P::set_link(chain.tail, self.geometry.link_offset, word.head.map(|head| slab.object(head)));
            match slab.exchange(word, pushed) {
                Ok(()) => break (word, pushed),
                Err(_) => match &mut slot {
                    Some(slot) => slot.count(Event::CmpxchgDoubleFail, 1),
                    None => self.slots.count(Event::CmpxchgDoubleFail, 1),
                },
            }
        };
        let was_full = before.head.is_none();
        if before.frozen {
            drop((list, slot));
            self.slots.count(Event::FreeFrozen, 1);
            return Ok(());
        }
        if was_full && let Some(slot) = &mut slot {
            drop(list);
            slot.count(Event::CpuPartialFree, 1);
            self.put_cpu_partial(backing, slot, slab);
            return Ok(());
        }
        drop(slot);
        let Some(mut list) = list else {
            return Ok(());
        };
        // Slabs on a CPU's chain are not frozen since 6.8: an emptied one stays where it is.
        let listed = !was_full && Self::is_listed(slab);
        let goes = after.inuse == 0
            && match self.policy.empty {
                EmptySlab::AtOnce => true,
                EmptySlab::BeyondMinPartial => list.len() >= self.min_partial,
            };
        if goes && (listed || was_full) {
            if listed {
                self.unlist(&mut list, state.node, slab);
                self.slots.count(Event::FreeRemovePartial, 1);
            }
            drop(list);
            self.discard(backing, slab);
        } else if was_full {
            self.list_tail(&mut list, state.node, slab);
            self.slots.count(Event::FreeAddPartial, 1);
        }
        Ok(())
    }

    /// Puts a slab on the CPU's chain; a chain that was already at its limit moves to the nodes first.
    fn put_cpu_partial(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, slab: Slab<P>) {
        let held = match self.policy.cpu_partial {
            // No slab comes here then: `cpu_partial` is 0.
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

    /// Moves the CPU's whole chain to the nodes.
    pub(super) fn drain_all(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        if let Some(old) = Self::forget_partial(slot) {
            self.drain(backing, slot, old);
        }
    }

    /// Moves a chain to the nodes, newest first, each slab to its own; empty ones beyond `min_partial` go back after
    /// the walk.
    fn drain(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, chain: Slab<P>) {
        let mut next = Some(chain);
        let mut empty: Option<Slab<P>> = None;
        while let Some(first) = next {
            let node = first.node();
            let mut list = self.lock_node(slot, node);
            // One acquisition serves the run of slabs of the same node.
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

    /// One slab of the chain goes to its node: it is on the wrong one for this CPU's request (6.8).
    pub(super) fn put_back(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, slab: Slab<P>) {
        slab.set_next(None);
        self.drain(backing, slot, slab);
    }

    /// Ends this CPU's hold on a slab, under its node's lock; the state it is left in.
    fn thaw(&self, slab: Slab<P>) -> SlabWord {
        let mut word = slab.word();
        while word.frozen {
            match slab.exchange(word, SlabWord { frozen: false, ..word }) {
                Ok(()) => return SlabWord { frozen: false, ..word },
                Err(found) => word = found,
            }
        }
        word
    }

    /// Gives the CPU slab up: its list goes back to the slab, the slab to where its state says (4.3).
    pub(super) fn deactivate(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        let Some(slab) = slot.slab else { return };
        let list = slot.list();
        let chain = list.head.map(|head| self.chain_of(head, list.count));
        self.uninstall(slot);
        self.slab_locked(slot);
        let node = slab.node();
        let mut guard = None;
        let (before, after) = loop {
            let word = slab.word();
            let back = chain.map_or(0, |chain| chain.count);
            if word.free() + back > 0 && guard.is_none() {
                guard = Some(self.lock_node(slot, node));
                continue;
            }
            let head = match chain {
                Some(chain) => {
                    let behind = word.head.map(|head| slab.object(head));
                    P::set_link(chain.tail, self.geometry.link_offset, behind);
                    Some(slab.offset(chain.head))
                }
                None => word.head,
            };
            let left = SlabWord { head, inuse: word.inuse - back as u16, frozen: false, ..word };
            match slab.exchange(word, left) {
                Ok(()) => break (word, left),
                Err(_) => slot.count(Event::CmpxchgDoubleFail, 1),
            }
        };
        let Some(mut guard) = guard else {
            slot.count(Event::DeactivateFull, 1);
            return;
        };
        if after.head.is_none() {
            // Looked free before the lock was there; the objects were this CPU's only.
            slot.count(Event::DeactivateFull, 1);
            return;
        }
        let old_era = self.policy.update == SlabUpdate::BitLock;
        let empty = after.inuse == 0;
        if empty && (old_era || guard.len() >= self.min_partial) {
            slot.count(Event::DeactivateEmpty, 1);
        }
        if empty && guard.len() >= self.min_partial {
            drop(guard);
            self.discard(backing, slab);
            return;
        }
        // 2.6: objects from the CPU are cache hot, so the slab goes first. Later: remote frees send it last.
        let remote = before.head.is_some();
        let tail = if old_era { chain.is_none() || empty } else { remote };
        if !old_era && remote {
            slot.count(Event::DeactivateRemoteFrees, 1);
        }
        if tail {
            self.list_tail(&mut guard, node, slab);
        } else {
            self.list_head(&mut guard, node, slab);
        }
        if !(old_era && empty) {
            slot.count(if tail { Event::DeactivateToTail } else { Event::DeactivateToHead }, 1);
        }
    }

    fn chain_of(&self, head: P::Ptr, count: u32) -> Chain<P::Ptr> {
        let mut tail = head;
        for _ in 1..count {
            tail = P::link(tail, self.geometry.link_offset).unwrap_or_else(|| cut_list::<P>(self.id, tail));
        }
        Chain { head, tail, count }
    }

    /// Frees many objects: runs of one slab, with a look-ahead of three others, go back as one chain. An error names the
    /// object that its slab does not take.
    pub(super) fn free_runs(
        &self,
        backing: &Backing<'_, P>,
        objects: &[P::Ptr],
        tally: Tally,
    ) -> Result<(), (Misuse, P::Ptr)> {
        const LOOK_AHEAD: usize = 3;
        // Marks the objects that an earlier run took, a window at a time, so that no memory is needed.
        for window in objects.rchunks(64) {
            let mut taken = 0u64;
            for last in (0..window.len()).rev() {
                if taken >> last & 1 == 1 {
                    continue;
                }
                let Some((slab, state)) = Slab::<P>::of(window[last]) else {
                    return Err((Misuse::NotInSlab, window[last]));
                };
                let named = |misuse| (misuse, window[last]);
                self.check(window[last], slab.pfn(), state).map_err(named)?;
                let mut chain = Chain { head: window[last], tail: window[last], count: 1 };
                let mut misses = 0;
                for index in (0..last).rev() {
                    if taken >> index & 1 == 1 {
                        continue;
                    }
                    let same =
                        Slab::<P>::of(window[index]).is_some_and(|(other, _)| other.pfn() == slab.pfn());
                    if same && self.check(window[index], slab.pfn(), state).is_ok() {
                        P::set_link(window[index], self.geometry.link_offset, Some(chain.head));
                        chain = Chain { head: window[index], count: chain.count + 1, ..chain };
                        taken |= 1 << index;
                    } else {
                        misses += 1;
                        if misses == LOOK_AHEAD {
                            break;
                        }
                    }
                }
                self.free_chain(backing, slab, state, chain, tally).map_err(named)?;
            }
        }
        Ok(())
    }

    /// A chain of the CPU slab goes to the CPU's list, any other to its slab.
    fn free_chain(
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
