//! A node's share of a cache: its list of partial slabs, and how many slabs it has.

use super::{Slot, Slub};
use crate::backing::Backing;
use crate::damage::damaged;
use crate::engines::common;
use crate::slab::{Slab, SlabList};
use slablab_platform::{Event, Local, Lock, NodeId, PerCpu, PerNode, Platform, Word, rank};

/// A node's list of partial slabs, and its totals.
pub(super) struct Node<P: Platform> {
    /// Partial slabs, and empty ones up to `min_partial`.
    list: P::Lock<rank::NodeList, SlabList<P>>,
    /// The list's length, readable without the lock.
    nr_partial: P::Word,
    /// The cache's slabs whose memory is on this node.
    slabs: P::Word,
    /// Their page frames.
    frames: P::Word,
    /// Objects they can hold.
    objects: P::Word,
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        let zero = || P::Word::new(0);
        Node {
            list: P::Lock::new(SlabList::default()),
            nr_partial: zero(),
            slabs: zero(),
            frames: zero(),
            objects: zero(),
        }
    }
}

impl<P: Platform> Node<P> {
    pub(super) fn partial(&self) -> &P::Lock<rank::NodeList, SlabList<P>> {
        &self.list
    }

    pub(super) fn totals(&self) -> (u64, u64, u64) {
        (self.slabs.load(), self.frames.load(), self.objects.load())
    }
}

/// A node's list, locked.
pub(super) type Listed<'a, P> =
    <<P as Platform>::Lock<rank::NodeList, SlabList<P>> as Lock<SlabList<P>>>::Guard<'a>;

/// In `extra`: the slab is on its node's list. Written and read under `list_lock`.
const LISTED: u64 = 1;

/// A shrink sorts slabs with so many free objects at most.
const BUCKETS: u32 = 32;

impl<P: Platform> Slub<P> {
    /// Slabs on a node's list. A hint: read without the list's lock.
    pub(super) fn nr_partial(&self, node: NodeId) -> u32 {
        self.nodes.peek(node).map_or(0, |node| node.nr_partial.load() as u32)
    }

    /// Takes a node's `list_lock`, counted in the slot.
    pub(super) fn lock_node(&self, slot: &mut Slot<'_, P>, node: NodeId) -> Listed<'_, P> {
        slot.count(Event::LockNodeList, 1);
        self.nodes.get(node).list.lock()
    }

    /// Takes a node's `list_lock` and counts that without a slot.
    pub(super) fn lock_node_unslotted(&self, node: NodeId) -> Listed<'_, P> {
        self.slots.count(Event::LockNodeList, 1);
        self.nodes.get(node).list.lock()
    }

    /// Takes a node's `list_lock` if no CPU holds it.
    pub(super) fn try_lock_node(&self, node: NodeId) -> Option<Listed<'_, P>> {
        let list = self.nodes.get(node).list.try_lock()?;
        self.slots.count(Event::LockNodeList, 1);
        Some(list)
    }

    pub(super) fn list_head(&self, list: &mut Listed<'_, P>, node: NodeId, slab: Slab<P>) {
        list.push_head(slab);
        self.listed(list, node, slab, LISTED);
    }

    pub(super) fn list_tail(&self, list: &mut Listed<'_, P>, node: NodeId, slab: Slab<P>) {
        list.push_tail(slab);
        self.listed(list, node, slab, LISTED);
    }

    pub(super) fn unlist(&self, list: &mut Listed<'_, P>, node: NodeId, slab: Slab<P>) {
        list.remove(slab);
        self.listed(list, node, slab, 0);
    }

    fn listed(&self, list: &Listed<'_, P>, node: NodeId, slab: Slab<P>, listed: u64) {
        slab.set_extra(slab.extra() & !LISTED | listed);
        self.nodes.get(node).nr_partial.store(list.len() as u64);
    }

    /// A slab is on a node's list, and its word says that it has no free object.
    #[cold]
    pub(super) fn listed_full(&self, slab: Slab<P>) -> ! {
        damaged::<P>(self.id, format_args!("{slab:?} is on a node's list without a free object"))
    }

    /// Whether a slab is on its node's list. The caller holds the list's lock.
    pub(super) fn is_listed(slab: Slab<P>) -> bool {
        slab.extra() & LISTED != 0
    }

    /// Adds a slab to its node's totals (`sign` 1), or takes it off them (`sign` -1).
    pub(super) fn account_slab(&self, slab: Slab<P>, objects: u32, sign: i64) {
        let node = self.nodes.get(slab.node());
        let frames = 1i64 << slab.state().order;
        for (word, n) in [(&node.slabs, 1), (&node.frames, frames), (&node.objects, objects as i64)] {
            let mut value = word.load();
            while let Err(found) = word.compare_exchange(value, value.wrapping_add_signed(n * sign)) {
                value = found;
            }
        }
    }

    /// Returns an empty slab that is on no list to the page allocator, at once or after a grace period.
    pub(super) fn discard(&self, backing: &Backing<'_, P>, slab: Slab<P>) {
        self.slots.count(Event::FreeSlab, 1);
        self.discard_uncounted(backing, slab);
    }

    fn discard_uncounted(&self, backing: &Backing<'_, P>, slab: Slab<P>) {
        self.account_slab(slab, slab.word().objects as u32, -1);
        common::discard::<P>(self.id, self.flags, slab, |slab| self.return_pages(backing, slab));
    }

    pub(super) fn return_pages(&self, backing: &Backing<'_, P>, slab: Slab<P>) {
        common::return_pages::<P>(backing.pages, slab);
    }

    /// Shrinks all nodes that have memory: where sheaves grow, the last `most` slabs of each. Returns the
    /// slabs that went back, which no event counts.
    pub(super) fn shrink_nodes(&self, backing: &Backing<'_, P>, most: u32) -> u64 {
        let nodes = (0..P::nodes()).map(NodeId).filter(|node| P::node_frames(*node).1 > 0);
        nodes.map(|node| self.shrink_node(backing, node, most)).sum()
    }

    /// Discards a node's empty slabs and sorts the others, fullest first, in 32 buckets of free objects;
    /// those with more stay behind (docs/theory/slub.md 4.6).
    fn shrink_node(&self, backing: &Backing<'_, P>, node: NodeId, most: u32) -> u64 {
        let mut list = self.lock_node_unslotted(node);
        let mut empty = if self.policy.elastic == 0 {
            self.sort_by_passes(&mut list, node)
        } else {
            self.sort_at_once(&mut list, node, most)
        };
        drop(list);
        let mut discarded = 0;
        while let Some(slab) = empty {
            empty = slab.next();
            self.discard_uncounted(backing, slab);
            discarded += 1;
        }
        discarded
    }

    /// Sorts a node's list and takes out the empty slabs, which are returned as a chain. Reads the list once
    /// for each bucket: the model charges these reads, and predictions for kernels were measured with them.
    fn sort_by_passes(&self, list: &mut Listed<'_, P>, node: NodeId) -> Option<Slab<P>> {
        let mut empty: Option<Slab<P>> = None;
        // From the bucket with most free objects to the fullest. Each pass moves its slabs to the head one by
        // one, which turns their order round. The first pass also takes out the empty ones.
        for bucket in (1..=BUCKETS).rev() {
            let mut next = list.first();
            for _ in 0..list.len() {
                let Some(slab) = next else { break };
                next = slab.next();
                let word = slab.word();
                if word.inuse == 0 {
                    self.unlist(list, node, slab);
                    slab.set_next(empty);
                    empty = Some(slab);
                } else if word.free() == bucket {
                    self.unlist(list, node, slab);
                    self.list_head(list, node, slab);
                }
            }
        }
        empty
    }

    /// [`Slub::sort_by_passes`] in one pass, for programs: their lists are long, and a thread that allocates
    /// does it. The order is the same.
    fn sort_at_once(&self, list: &mut Listed<'_, P>, node: NodeId, most: u32) -> Option<Slab<P>> {
        let mut empty: Option<Slab<P>> = None;
        let mut buckets = [None::<Slab<P>>; BUCKETS as usize];
        // From the last slab to the first: a bucket then has them from the first to the last.
        let mut before = list.last();
        for _ in 0..list.len().min(most) {
            let Some(slab) = before else { break };
            before = slab.prev();
            let word = slab.word();
            let chain = match word.free() {
                _ if word.inuse == 0 => &mut empty,
                free @ 1..=BUCKETS => &mut buckets[free as usize - 1],
                _ => continue,
            };
            self.unlist(list, node, slab);
            slab.set_next(*chain);
            *chain = Some(slab);
        }
        for mut chain in buckets.into_iter().rev() {
            while let Some(slab) = chain {
                chain = slab.next();
                self.list_head(list, node, slab);
            }
        }
        empty
    }
}
