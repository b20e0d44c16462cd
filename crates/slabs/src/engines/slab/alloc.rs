//! Allocation (docs/theory/slab.md 3).

use super::list::{Owner, copy_entries, entry, set_entry};
use super::policy::{Fresh, GrowFlags, Reap};
use super::{SlabEngine, Slot};
use crate::backing::Backing;
use crate::engines::common;
use crate::slab::{Slab, SlabWord};
use slablab_platform::{Event, FrameKind, Gfp, HotArray, Local, NodeId, PerCpu, PerNode, Platform, Word};

/// The largest refill of a CPU that did not allocate since the reaper's last visit.
const REFILL_MAX_UNTOUCHED: u32 = 16;

impl<P: Platform> SlabEngine<P> {
    #[inline]
    pub(super) fn alloc_object(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        if node.is_none_or(|node| self.serves(gfp, node))
            && let Some(object) = self.slots.pop(Event::AllocFastpath)
        {
            return Some(object);
        }
        self.alloc_slow(backing, gfp, node)
    }

    /// Whether the current CPU's array may serve a request for `node`. Without alien arrays the array mixes
    /// objects of all nodes, so it cannot serve `__GFP_THISNODE`.
    #[inline]
    fn serves(&self, gfp: Gfp, node: NodeId) -> bool {
        node == self.home(P::cpu()) && (self.policy.alien || !gfp.has(Gfp::THISNODE))
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, backing: &Backing<'_, P>, gfp: Gfp, node: Option<NodeId>) -> Option<P::Ptr> {
        self.slots.count(Event::AllocSlowpath, 1);
        let here = self.home(P::cpu());
        match node.filter(|node| !self.serves(gfp, *node)) {
            Some(node) => self.alloc_node(backing, gfp, node),
            None => self.refill(backing, gfp).or_else(|| self.alloc_node(backing, gfp, here)),
        }
    }

    /// Fills the current CPU's array and takes one object from it: `cache_alloc_refill`. `None` if the CPU's
    /// node has no memory, if the CPU has no array, or if the slot is unavailable.
    fn refill(&self, backing: &Backing<'_, P>, gfp: Gfp) -> Option<P::Ptr> {
        self.slots.count(Event::SlabAllocMiss, 1);
        self.make_arrays(backing);
        loop {
            let Some(mut slot) = self.slots.local() else {
                self.slots.count(Event::Slotless, 1);
                return None;
            };
            self.look_around(backing, &mut slot);
            let storage = slot.array().storage?;
            let home = self.home(slot.cpu());
            if slot.array().size == 0 && self.may_fill(home) {
                let size = self.fill(home, storage, self.batch_of(&slot));
                slot.set_array(HotArray { size, ..slot.array() });
            }
            if let Some(object) = self.pop(&mut slot) {
                return Some(object);
            }
            // Release the slot first: `grow` may sleep, and reclaim may free objects of this cache.
            drop(slot);
            let Some(slab) = self.grow(backing, self.exact(gfp), home) else {
                // A signal handler or another thread on this CPU may have filled the array while the slot was
                // released.
                return self.slots.local().and_then(|mut slot| self.pop(&mut slot));
            };
            // Keep the slot until the slab is on a list: the next owner of the slot may allocate one of these
            // objects and free it at once.
            let fills = self.policy.fresh == Fresh::FillsArray;
            let mut slot = if fills { self.slots.local() } else { None };
            if let Some(slot) = &mut slot {
                self.fill_from(slab, slot);
            }
            self.publish(slab);
        }
    }

    fn pop(&self, slot: &mut Slot<'_, P>) -> Option<P::Ptr> {
        let array = slot.array();
        let size = array.size.checked_sub(1)?;
        slot.touched = true;
        slot.set_array(HotArray { size, ..array });
        Some(entry::<P>(self.id, array.storage?, size))
    }

    /// The number of objects that the next refill moves.
    fn batch_of(&self, slot: &Slot<'_, P>) -> u32 {
        let batch = self.tunables.batchcount;
        // Without a timer no visit says whether the array is in use.
        let full = self.policy.reap == Reap::Clock || self.is_touched(slot);
        if full { batch } else { batch.min(REFILL_MAX_UNTOUCHED) }
    }

    /// Whether the CPU allocated since the reaper's last visit. A hit changes nothing but its counter, so the
    /// counter is compared.
    pub(super) fn is_touched(&self, slot: &Slot<'_, P>) -> bool {
        slot.touched || self.slots.counted(slot.cpu(), Event::AllocFastpath) != slot.hits_seen
    }

    /// Whether a refill looks at the lists and the shared array of its node: since 4.7 not if both counts
    /// say, without the lock, that there is nothing.
    fn may_fill(&self, home: NodeId) -> bool {
        let node = self.nodes.get(home);
        self.policy.fresh == Fresh::Listed || node.free_objects() > 0 || node.shared_objects() > 0
    }

    /// Fills an empty array from the shared array, or else from slabs. Returns the number of objects moved.
    fn fill(&self, home: NodeId, storage: P::Ptr, batch: u32) -> u32 {
        let node = self.nodes.get(home);
        let mut lists = self.lock_node(home, node);
        if let Some(shared) = lists.shared.storage.filter(|_| lists.shared.size > 0) {
            let count = batch.min(lists.shared.size);
            lists.shared.size -= count;
            node.shared_changed(&lists);
            node.shared_touched.store(1);
            copy_entries::<P>(shared, lists.shared.size, storage, 0, count);
            return count;
        }
        self.pull_listed(node, &mut lists, batch, |index, object| set_entry::<P>(storage, index, object))
    }

    /// Moves objects of a new slab into the current CPU's array before the slab is on a list, where other
    /// CPUs could find it.
    fn fill_from(&self, slab: Slab<P>, slot: &mut Slot<'_, P>) {
        let array = slot.array();
        let Some(storage) = array.storage.filter(|_| array.size == 0) else { return };
        if self.home(slot.cpu()) == slab.node() {
            let batch = self.batch_of(slot);
            let size = self.pull(slab, batch, |index, object| set_entry::<P>(storage, index, object));
            slot.set_array(HotArray { size, ..array });
        }
    }

    /// Allocates from the slabs of node `id`, else from a new slab there, else from any node:
    /// `____cache_alloc_node`.
    fn alloc_node(&self, backing: &Backing<'_, P>, gfp: Gfp, id: NodeId) -> Option<P::Ptr> {
        self.slots.count(Event::SlabNodeTry, 1);
        loop {
            if let Some(object) = self.take_one(id) {
                return Some(object);
            }
            let Some(slab) = self.grow(backing, self.exact(gfp), id) else {
                return if gfp.has(Gfp::THISNODE) { None } else { self.fallback_alloc(backing, gfp) };
            };
            let mut first = None;
            if self.policy.fresh == Fresh::FillsArray {
                self.pull(slab, 1, |_, object| first = Some(object));
            }
            self.publish(slab);
            if first.is_some() {
                self.slots.count(Event::SlabNodeAlloc, 1);
                return first;
            }
        }
    }

    fn take_one(&self, id: NodeId) -> Option<P::Ptr> {
        let node = self.nodes.get(id);
        let mut lists = self.lock_node(id, node);
        let mut first = None;
        self.pull_listed(node, &mut lists, 1, |_, object| first = Some(object));
        if first.is_some() {
            self.slots.count(Event::SlabNodeAlloc, 1);
        }
        first
    }

    /// Allocates from the nearest node that has a free object, else from a new slab on any node. The CPU's
    /// array stays empty, so the next allocation takes this path again.
    fn fallback_alloc(&self, backing: &Backing<'_, P>, gfp: Gfp) -> Option<P::Ptr> {
        self.slots.count(Event::SlabFallback, 1);
        let here = P::cpu_node(P::cpu());
        loop {
            let has_free = |id: &NodeId| self.nodes.peek(*id).is_some_and(|node| node.free_objects() > 0);
            let mut nodes = backing.pages.nearest(here).filter(has_free);
            if let Some(object) = nodes.find_map(|id| self.alloc_node(backing, gfp | Gfp::THISNODE, id)) {
                return Some(object);
            }
            let slab = self.grow(backing, gfp, here)?;
            self.publish(slab);
            self.slots.count(Event::SlabNodeTry, 1);
            // If other CPUs took every object of the new slab, start again.
            if let Some(object) = self.take_one(slab.node()) {
                return Some(object);
            }
        }
    }

    /// The flags for an attempt on one node only.
    fn exact(&self, gfp: Gfp) -> Gfp {
        match self.policy.grow {
            GrowFlags::AsAsked if P::nodes() == 1 => gfp,
            GrowFlags::Reclaim | GrowFlags::AsAsked => gfp | Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN,
            GrowFlags::Nowait => (gfp | Gfp::THISNODE | Gfp::NOWARN) & !(Gfp::RECLAIM | Gfp::NOFAIL),
        }
    }

    /// Makes a new slab that is on no list yet: `cache_grow`. SLAB knows one order only, so there is no
    /// fallback order.
    pub(super) fn grow(&self, backing: &Backing<'_, P>, gfp: Gfp, from: NodeId) -> Option<Slab<P>> {
        self.slots.count(Event::SlabGrowTry, 1);
        let geometry = &self.geometry;
        let flags = common::page_flags(gfp, geometry.order > 0, self.flags);
        let pfn = backing.pages.alloc(flags, geometry.order, from, FrameKind::Slab)?;
        let management = match (self.shape.management, backing.metadata) {
            (1.., Some(metadata)) => {
                let object =
                    metadata.alloc(self.shape.management, gfp & !(Gfp::ZERO | Gfp::DMA | Gfp::THISNODE));
                if object.is_none() {
                    backing.pages.free(pfn);
                    return None;
                }
                object
            }
            _ => None,
        };
        self.slots.count(Event::AllocSlab, 1);
        P::map_slab(pfn, geometry.order, geometry.spacing, self.id.0);
        let slab = Slab::at(pfn);
        let colour = self.next_colour(slab.node());
        let first = self.shape.first(colour);
        let head = slab.thread(first, geometry.size, geometry.objects, geometry.link_offset, &self.new);
        let objects = geometry.objects as u16;
        slab.set_extra(SlabWord { head: Some(slab.offset(head)), inuse: 0, objects, frozen: false }.pack());
        slab.set_owner(Owner { cache: self.id, colour }.pack());
        Self::set_management(slab, management);
        Some(slab)
    }

    /// The colour of a node's next slab. Two CPUs that grow the cache at once may get equal colours; that is
    /// harmless, because a colour only shifts the objects.
    fn next_colour(&self, id: NodeId) -> u16 {
        if self.shape.colours <= 1 {
            return 0;
        }
        let word = &self.nodes.get(id).colour_next;
        let colour = word.load() as u16;
        word.store(if colour + 1 < self.shape.colours { colour as u64 + 1 } else { 0 });
        colour
    }
}
