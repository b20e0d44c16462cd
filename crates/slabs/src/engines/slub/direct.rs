//! Allocation without a CPU slab: below the sheaves since 7.0, and in any release while the slot refuses.
//!
//! An allocation takes objects out of listed slabs under `list_lock`; a slab is never frozen, and stays
//! listed until its last free object is taken, or leaves just before it where CPUs have chains of partial
//! slabs. The free side is the ordinary one: without such chains `push_chain` takes the lock for a slab that
//! was full (tail) or becomes empty (docs/theory/sheaves.md 3.1, 5). Since 7.0 slabs of the reserves serve
//! only who may take those: a sheaf is filled past them.
//!
//! ```text
//! gather ── take_from_node                 the wanted node's list: slabs for all objects under one lock
//!   ├─ take_from_node (others)             nearest first, beyond min_partial, by ratio
//!   └─ take_from_new                       the rest of a new slab goes to the head of its node's list
//! ```

use super::node::Listed;
use super::policy::{Leftover, NewLinks, RefillReads, RemoteRefill};
use super::{NewSlab, Slub, Tally};
use crate::backing::Backing;
use crate::damage::cut_list;
use crate::slab::{Slab, SlabWord};
use slablab_platform::{Event, Gfp, NodeId, PerCpu, Platform};

/// What a search of other nodes' lists does if another CPU holds a list's lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Busy {
    /// Waits for the lock: one object for a caller.
    Wait,
    /// Does what the policy says ([`RemoteRefill`]): the refill of a sheaf. Goes on to the next node in 7.0;
    /// waiting for remote locks cost 46 % in one benchmark.
    Skip,
}

/// How a refill that took slabs off a list is counted.
fn detached(slabs: u32) -> Option<Event> {
    match slabs {
        0 => None,
        1 => Some(Event::DetachOne),
        2 => Some(Event::DetachTwo),
        3 => Some(Event::DetachThree),
        _ => Some(Event::DetachMore),
    }
}

/// How slabs are taken from a node's list.
#[derive(Clone, Copy)]
struct Way {
    busy: Busy,
    /// Also slabs of the reserves.
    reserves: bool,
    /// When their objects are read.
    reads: RefillReads,
}

impl<P: Platform> Slub<P> {
    /// One object without a CPU slab.
    #[cold]
    pub(super) fn alloc_direct(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
        tally: Tally,
    ) -> Option<P::Ptr> {
        self.slots.count(tally.slow, 1);
        let mut object = None;
        self.gather(backing, gfp, node, 1, Busy::Wait, &mut |taken| object = Some(taken));
        object
    }

    /// Passes up to `want` objects to `put`, and returns how many it passed.
    pub(super) fn gather(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
        want: u32,
        busy: Busy,
        put: &mut impl FnMut(P::Ptr),
    ) -> u32 {
        let reserves = self.policy.cpu_slab || P::takes_reserves(gfp);
        let node = self.node_meant(node);
        let home = node.unwrap_or_else(|| self.home(P::cpu()));
        // One object for a caller is taken under the lock.
        let (reads, links) = match busy {
            Busy::Skip => (self.policy.refill_reads, self.policy.new_links),
            Busy::Wait => (RefillReads::Locked, NewLinks::All),
        };
        let way = |busy| Way { busy, reserves, reads };
        let mut got = self.take_from_node(home, 0, want, way(Busy::Wait), put);
        let (busy, others) = match (busy, self.policy.remote_refill) {
            (Busy::Skip, RemoteRefill::Off) => (busy, false),
            (Busy::Skip, RemoteRefill::Wait) => (Busy::Wait, true),
            _ => (busy, true),
        };
        if got < want && others && self.searches_others(gfp, node) {
            // In the order of the CPU's node, also if another one was asked for.
            for other in backing.pages.nearest(self.home(P::cpu())).filter(|other| *other != home) {
                got += self.take_from_node(other, self.min_partial, want - got, way(busy), put);
                if got == want {
                    break;
                }
            }
        }
        let target = node.unwrap_or_else(|| P::cpu_node(P::cpu()));
        while got < want {
            match self.take_from_new(backing, gfp, target, (want - got, links), put) {
                0 => break,
                more => got += more,
            }
        }
        got
    }

    /// Objects of a node's listed slabs, first slab first, if more than `keep` slabs are listed.
    fn take_from_node(
        &self,
        node: NodeId,
        keep: u32,
        want: u32,
        way: Way,
        put: &mut impl FnMut(P::Ptr),
    ) -> u32 {
        let Way { busy, reserves, reads } = way;
        if self.nr_partial(node) <= keep {
            return 0;
        }
        let list = match busy {
            Busy::Wait => Some(self.lock_node_unslotted(node)),
            Busy::Skip => self.try_lock_node(node),
        };
        let Some(mut list) = list else { return 0 };
        if reads != RefillReads::Locked {
            let chain = self.unlist_for(&mut list, node, want, reserves);
            drop(list);
            return self.take_from_chain(node, chain, want, put);
        }
        let mut got = 0;
        let mut next = list.first();
        while let Some(slab) = next.filter(|_| got < want) {
            next = slab.next();
            if !reserves && slab.state().reserve {
                continue;
            }
            // Where CPUs have chains, the next free of a full slab puts it on one and writes its links,
            // without this lock: such a slab leaves the list first. Others only add objects meanwhile.
            let leaves_first = self.cpu_partial > 0 && slab.word().free() <= want - got;
            if leaves_first {
                self.unlist(&mut list, node, slab);
            }
            let (taken, exhausted) = self.take_from_slab(slab, want - got, put);
            got += taken;
            match (leaves_first, exhausted) {
                (false, true) => self.unlist(&mut list, node, slab),
                (true, false) => self.list_head(&mut list, node, slab),
                _ => {}
            }
        }
        got
    }

    /// Takes slabs off a node's list until they have `want` free objects, first slab first. Returns the
    /// first of them; each knows the next.
    fn unlist_for(
        &self,
        list: &mut Listed<'_, P>,
        node: NodeId,
        want: u32,
        reserves: bool,
    ) -> Option<Slab<P>> {
        let (mut first, mut last) = (None, None::<Slab<P>>);
        let (mut next, mut found, mut slabs) = (list.first(), 0, 0);
        while let Some(slab) = next.filter(|_| found < want) {
            next = slab.next();
            if !reserves && slab.state().reserve {
                continue;
            }
            found += slab.word().free();
            slabs += 1;
            self.unlist(list, node, slab);
            slab.set_next(None);
            match last {
                Some(last) => last.set_next(Some(slab)),
                None => first = Some(slab),
            }
            last = Some(slab);
        }
        if let Some(event) = detached(slabs) {
            self.slots.count(event, 1);
        }
        first
    }

    /// Takes up to `want` objects of slabs that are on no list: frees leave them there. A slab with objects
    /// left goes back to its node's list. The objects are read without the list's lock.
    fn take_from_chain(
        &self,
        node: NodeId,
        mut chain: Option<Slab<P>>,
        want: u32,
        put: &mut impl FnMut(P::Ptr),
    ) -> u32 {
        let mut got = 0;
        while let Some(slab) = chain {
            // A slab without free objects is listed by the next free, which writes this link.
            chain = slab.next();
            // Frees into the slabs before this one may have left nothing to take.
            let (taken, exhausted) =
                if got < want { self.take_from_slab(slab, want - got, put) } else { (0, false) };
            got += taken;
            if !exhausted {
                if self.policy.refill_walks {
                    self.walk(slab);
                }
                let mut list = self.lock_node_unslotted(node);
                match self.policy.leftover {
                    Leftover::Head => self.list_head(&mut list, node, slab),
                    Leftover::Tail => self.list_tail(&mut list, node, slab),
                }
            }
        }
        got
    }

    /// Reads the links of a slab's free objects to the last. No other CPU takes objects of it.
    fn walk(&self, slab: Slab<P>) {
        if !self.has_map() {
            let first = slab.word().head.map(|head| slab.object(head));
            core::iter::successors(first, |object| P::link(*object, self.geometry.link_offset))
                .for_each(drop);
        }
    }

    /// Takes up to `want` objects of a slab that no other CPU takes objects of: a listed one, whose node's
    /// lock the caller holds, or one that the caller took off its list. Returns how many it took, and whether
    /// the slab has no free object left.
    fn take_from_slab(&self, slab: Slab<P>, want: u32, put: &mut impl FnMut(P::Ptr)) -> (u32, bool) {
        if self.has_map() {
            return self.take_from_map(slab, want, put);
        }
        let link = |object: P::Ptr| P::link(object, self.geometry.link_offset);
        let mut word = slab.word();
        loop {
            let count = word.free().min(want);
            let Some(head) = word.head else { self.listed_full(slab) };
            let first = slab.object(head);
            // Other CPUs may push in front of the objects read here. Then the exchange fails.
            let rest = (0..count).try_fold(first, |object, _| link(object));
            let head = rest.map(|rest| slab.offset(rest));
            match slab.exchange(word, word.taken(count, head)) {
                Ok(()) => {
                    core::iter::successors(Some(first), |object| link(*object))
                        .take(count as usize)
                        .for_each(put);
                    return (count, head.is_none());
                }
                Err(found) => {
                    self.slots.count(Event::CmpxchgDoubleFail, 1);
                    word = found;
                }
            }
        }
    }

    /// Takes up to `want` objects of a new slab, and lists the slab with the others.
    fn take_from_new(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: NodeId,
        (want, links): (u32, NewLinks),
        put: &mut impl FnMut(P::Ptr),
    ) -> u32 {
        if links == NewLinks::Rest && !self.has_map() {
            return self.take_before_linking(backing, gfp, node, want, put);
        }
        let Some(new) = self.allocate_slab(backing, gfp, node) else { return 0 };
        let NewSlab { slab, head, objects, fell_back } = new;
        self.count_new(fell_back);
        if self.has_map() {
            // Until the slab is listed, other CPUs know it only by the objects that were handed out.
            slab.init_word(SlabWord { head: Some(0), inuse: 0, ..SlabWord::all_out(objects as u16) });
            let (count, exhausted) = self.take_from_map(slab, want, put);
            if !exhausted {
                self.list_new(slab);
            }
            return count;
        }
        let count = objects.min(want);
        let mut next = Some(head);
        for _ in 0..count {
            let Some(object) = next else { cut_list::<P>(self.id, head) };
            next = P::link(object, self.geometry.link_offset);
            put(object);
        }
        self.list_rest(slab, objects, (next, objects - count));
        count
    }

    /// As [`Slub::take_from_new`], but what is taken is never linked.
    fn take_before_linking(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: NodeId,
        want: u32,
        put: &mut impl FnMut(P::Ptr),
    ) -> u32 {
        let geometry = &self.geometry;
        let new = self.allocate_slab_with(backing, gfp, node, &mut |slab, objects| {
            let shape = (0, geometry.size, objects, geometry.link_offset);
            slab.thread_after(want, shape, &self.new, put)
        });
        let Some(NewSlab { slab, head, objects, fell_back }) = new else { return 0 };
        self.count_new(fell_back);
        let count = objects.min(want);
        self.list_rest(slab, objects, (head, objects - count));
        count
    }

    fn count_new(&self, fell_back: bool) {
        self.slots.count(Event::AllocSlab, 1);
        if fell_back {
            self.slots.count(Event::OrderFallback, 1);
        }
    }

    /// Lists a new slab with what is left of its objects: the first of them, and how many. Until it is
    /// listed, other CPUs know it only by the objects that were handed out.
    fn list_rest(&self, slab: Slab<P>, objects: u32, (first, left): (Option<P::Ptr>, u32)) {
        let full = SlabWord::all_out(objects as u16);
        let rest = first.and_then(|first| full.pushed(slab.offset(first), left));
        slab.init_word(rest.unwrap_or(full));
        if rest.is_some() {
            self.list_new(slab);
        }
    }

    fn list_new(&self, slab: Slab<P>) {
        let node = slab.node();
        let mut list = self.lock_node_unslotted(node);
        self.list_head(&mut list, node, slab);
    }
}
