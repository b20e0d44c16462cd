//! Nodes: three lists of slabs, the array that the node's CPUs share, and the alien arrays.
//!
//! Lock order: an alien array's lock, then `list_lock`. Two locks of one kind are never held together.
//!
//! | lock | protects |
//! |---|---|
//! | `alien->lock` | one alien array: objects of one other node |
//! | `list_lock` | a node's three lists, the free lists and counts of its slabs, its shared array |
//!
//! The numbers of a node's free and shared objects are words of their own, written under `list_lock` and read
//! without it.

use super::SlabEngine;
use super::policy::{Requeue, Surplus};
use crate::backing::{Backing, Metadata};
use crate::cache::CacheId;
use crate::damage::{damaged, hole, kept_wrong};
use crate::engines::common;
use crate::report::Misuse;
use crate::slab::{Slab, SlabList, SlabWord};
use slablab_platform::{
    Event, FrameState, HotArray, Lock, NodeId, PerCpu, PerNode, Pfn, Platform, Word, rank,
};

/// A slab's owner word. Bits: cache 0-23, colour 48-63. Written before the slab is on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The cache.
    pub(super) cache: CacheId,
    /// The offset of the first object, in units of the cache's colour offset.
    pub(super) colour: u16,
}

impl Owner {
    const CACHE: u64 = (1 << 24) - 1;

    pub(super) const fn pack(self) -> u64 {
        self.cache.0 as u64 & Self::CACHE | (self.colour as u64) << 48
    }

    #[inline]
    pub(super) const fn unpack(word: u64) -> Owner {
        Owner { cache: CacheId((word & Self::CACHE) as u32), colour: (word >> 48) as u16 }
    }
}

/// A bounded array of objects behind a lock: a node's shared array, or an alien array. Last in, first out.
pub(super) struct Array<P: Platform> {
    pub(super) storage: Option<P::Ptr>,
    pub(super) size: u32,
    pub(super) capacity: u32,
}

impl<P: Platform> Default for Array<P> {
    fn default() -> Self {
        Array { storage: None, size: 0, capacity: 0 }
    }
}

impl<P: Platform> Array<P> {
    /// Removes the storage of an empty array and returns it.
    pub(super) fn retire(&mut self) -> Option<P::Ptr> {
        debug_assert_eq!(self.size, 0, "an array that goes must be empty");
        self.capacity = 0;
        self.storage.take()
    }

    /// Installs `storage` for `capacity` objects. Returns `storage` if the array already has one.
    pub(super) fn adopt(&mut self, storage: Option<P::Ptr>, capacity: u32) -> Option<P::Ptr> {
        if self.storage.is_some() {
            return storage;
        }
        if storage.is_some() {
            (self.storage, self.capacity) = (storage, capacity);
        }
        None
    }
}

/// The state that `list_lock` protects.
pub(super) struct Lists<P: Platform> {
    /// Slabs with both free and allocated objects. Allocation uses the first one.
    pub(super) partial: SlabList<P>,
    /// Slabs with no free object.
    pub(super) full: SlabList<P>,
    /// Slabs with free objects only.
    pub(super) free: SlabList<P>,
    /// True if a slab was made after the last look of the clock (`DFLGS_GROWN`).
    pub(super) grown: bool,
    /// Free objects that the node retains before an emptied slab is returned. 0 means that the next holder of
    /// the lock computes it.
    pub(super) free_limit: u32,
    /// True if that computation leaves out a CPU, the one that came last.
    pub(super) leaves_out: bool,
    /// The shared array: it takes objects when the array of one of the node's CPUs is full.
    pub(super) shared: Array<P>,
}

/// The state of a cache on one node.
pub(super) struct Node<P: Platform> {
    lists: P::Lock<rank::NodeList, Lists<P>>,
    /// Free objects in the partial and free slabs.
    free_objects: P::Word,
    /// Objects in the shared array.
    shared_objects: P::Word,
    /// 1 if a refill used the shared array after the reaper's last visit. The reaper clears it without the
    /// lock.
    pub(super) shared_touched: P::Word,
    /// 1 if an allocation reached the list of free slabs after the reaper's last visit. The reaper clears it
    /// without the lock.
    pub(super) free_touched: P::Word,
    /// The earliest time of the reaper's next visit to this node; 0 before the first visit.
    pub(super) next_reap_ns: P::Word,
    /// The colour of the next slab.
    pub(super) colour_next: P::Word,
    /// Alien arrays, by node: objects of other nodes that this node's CPUs freed.
    pub(super) aliens: P::PerNode<Alien<P>>,
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        let lists = Lists {
            partial: SlabList::default(),
            full: SlabList::default(),
            free: SlabList::default(),
            grown: false,
            free_limit: 0,
            leaves_out: false,
            shared: Array::default(),
        };
        Node {
            lists: P::Lock::new(lists),
            free_objects: P::Word::new(0),
            shared_objects: P::Word::new(0),
            shared_touched: P::Word::new(0),
            free_touched: P::Word::new(0),
            next_reap_ns: P::Word::new(0),
            colour_next: P::Word::new(0),
            aliens: P::PerNode::new(),
        }
    }
}

/// An alien array: objects of another node.
pub(super) struct Alien<P: Platform>(P::Lock<rank::Alien, Array<P>>);

impl<P: Platform> Default for Alien<P> {
    fn default() -> Self {
        Alien(P::Lock::new(Array::default()))
    }
}

pub(super) type AlienGuard<'a, P> =
    <<P as Platform>::Lock<rank::Alien, Array<P>> as Lock<Array<P>>>::Guard<'a>;
pub(super) type ListsGuard<'a, P> =
    <<P as Platform>::Lock<rank::NodeList, Lists<P>> as Lock<Lists<P>>>::Guard<'a>;

impl<P: Platform> Alien<P> {
    pub(super) fn lock(&self) -> AlienGuard<'_, P> {
        self.0.lock()
    }

    pub(super) fn try_lock(&self) -> Option<AlienGuard<'_, P>> {
        self.0.try_lock()
    }
}

impl<P: Platform> Node<P> {
    /// Free objects in the node's slabs. Read without the lock, so the value may be stale.
    pub(super) fn free_objects(&self) -> u32 {
        self.free_objects.load() as u32
    }

    /// Objects in the shared array. Read without the lock, so the value may be stale.
    pub(super) fn shared_objects(&self) -> u32 {
        self.shared_objects.load() as u32
    }

    /// Records that the shared array changed. The caller holds `list_lock`.
    pub(super) fn shared_changed(&self, lists: &Lists<P>) {
        self.shared_objects.store(lists.shared.size as u64);
    }

    /// Locks the lists. Unlike `lock_node`, counts no event and does not compute `free_limit`.
    pub(super) fn peek(&self) -> ListsGuard<'_, P> {
        self.lists.lock()
    }

    /// The caller holds `list_lock`.
    pub(super) fn add_free(&self, objects: u32) {
        self.free_objects.store(self.free_objects.load() + objects as u64);
    }

    /// The caller holds `list_lock`.
    pub(super) fn sub_free(&self, objects: u32) {
        self.free_objects.store(self.free_objects.load() - objects as u64);
    }
}

impl<P: Platform> Lists<P> {
    /// The next slab to allocate from: the first partial one, else the first free one.
    fn next(&mut self, node: &Node<P>) -> Option<Slab<P>> {
        self.partial.first().or_else(|| {
            node.free_touched.store(1);
            self.free.first()
        })
    }

    fn list_of(&mut self, word: SlabWord) -> &mut SlabList<P> {
        match word {
            SlabWord { inuse: 0, .. } => &mut self.free,
            SlabWord { head: None, .. } => &mut self.full,
            _ => &mut self.partial,
        }
    }
}

/// The object at `index` of an array.
pub(super) fn entry<P: Platform>(cache: CacheId, storage: P::Ptr, index: u32) -> P::Ptr {
    match P::storage_load(storage, HotArray::<P::Ptr>::HEADER + index) {
        Some(object) => object,
        None => hole::<P>(cache, "an array", storage, index),
    }
}

pub(super) fn set_entry<P: Platform>(storage: P::Ptr, index: u32, object: P::Ptr) {
    P::storage_store(storage, HotArray::<P::Ptr>::HEADER + index, Some(object));
}

/// Entries that a core copies while it waits for one line: those of a line of 64 bytes.
const ENTRIES_OF_LINE: u32 = 8;

/// Copies `count` objects from `from`, starting at index `first`, to `storage`, starting at index `to`.
pub(super) fn copy_entries<P: Platform>(from: P::Ptr, first: u32, storage: P::Ptr, to: u32, count: u32) {
    let place = |index: u32| HotArray::<P::Ptr>::HEADER + index;
    // No line says where the next one is.
    P::walk(|| {
        for index in 0..count {
            if index % ENTRIES_OF_LINE == 0 {
                P::visits();
            }
            P::storage_store(storage, place(to + index), P::storage_load(from, place(first + index)));
        }
    });
}

impl<P: Platform> SlabEngine<P> {
    /// Takes a node's `list_lock`, and computes `free_limit` if necessary.
    pub(super) fn lock_node<'a>(&self, id: NodeId, node: &'a Node<P>) -> ListsGuard<'a, P> {
        self.slots.count(Event::LockNodeList, 1);
        self.open_node(id, node)
    }

    /// [`SlabEngine::lock_node`] where a kernel takes no lock, or where the caller counts it.
    pub(super) fn open_node<'a>(&self, id: NodeId, node: &'a Node<P>) -> ListsGuard<'a, P> {
        let mut lists = node.lists.lock();
        if lists.free_limit == 0 {
            lists.free_limit = self.free_limit_of(id, lists.leaves_out);
        }
        lists
    }

    /// Takes up to `most` objects from a slab that no other CPU can reach, and passes each to `out` with its
    /// index.
    pub(super) fn pull(&self, slab: Slab<P>, most: u32, mut out: impl FnMut(u32, P::Ptr)) -> u32 {
        let mut word = SlabWord::unpack(slab.extra());
        let mut taken = 0;
        while taken < most
            && let Some(head) = word.head
        {
            let object = slab.object(head);
            word.head = P::link(object, self.geometry.link_offset).map(|next| slab.offset(next));
            out(taken, object);
            taken += 1;
        }
        word.inuse += taken as u16;
        slab.set_extra(word.pack());
        taken
    }

    /// Takes up to `most` objects from the slabs of a node.
    pub(super) fn pull_listed(
        &self,
        node: &Node<P>,
        lists: &mut Lists<P>,
        most: u32,
        mut out: impl FnMut(u32, P::Ptr),
    ) -> u32 {
        let mut taken = 0;
        while taken < most
            && let Some(slab) = lists.next(node)
        {
            lists.list_of(SlabWord::unpack(slab.extra())).remove(slab);
            let pulled = self.pull(slab, most - taken, |index, object| out(taken + index, object));
            node.sub_free(pulled);
            taken += pulled;
            let word = SlabWord::unpack(slab.extra());
            lists.list_of(word).push_head(slab);
        }
        taken
    }

    /// Puts a new slab on its node's lists. Until then no other CPU can reach the slab.
    pub(super) fn publish(&self, slab: Slab<P>) {
        let id = slab.node();
        let node = self.nodes.get(id);
        let mut lists = self.lock_node(id, node);
        let word = SlabWord::unpack(slab.extra());
        node.add_free(word.free());
        lists.grown = true;
        let list = lists.list_of(word);
        if word.inuse == 0 { list.push_tail(slab) } else { list.push_head(slab) }
    }

    /// Puts an object back into its slab. With [`Surplus::AtEach`], a slab that becomes empty moves to
    /// `doomed` if the node has more free objects than `free_limit`. [`SlabEngine::trim`] follows the last
    /// object.
    ///
    /// # Errors
    /// [`Misuse::AlreadyFree`] if no object of the slab is allocated: a double free.
    pub(super) fn put(
        &self,
        backing: &Backing<'_, P>,
        node: &Node<P>,
        lists: &mut Lists<P>,
        (slab, object): (Slab<P>, P::Ptr),
        doomed: &mut SlabList<P>,
    ) -> Result<(), Misuse> {
        let before = SlabWord::unpack(slab.extra());
        let inuse = before.inuse.checked_sub(1).ok_or(Misuse::AlreadyFree)?;
        let was_full = before.head.is_none();
        let stays = self.policy.requeue == Requeue::Stays && inuse > 0 && !was_full;
        if !stays {
            lists.list_of(before).remove(slab);
        }
        P::set_link(object, self.geometry.link_offset, before.head.map(|head| slab.object(head)));
        slab.set_extra(SlabWord { head: Some(slab.offset(object)), inuse, ..before }.pack());
        node.add_free(1);
        if stays {
            return Ok(());
        }
        if inuse > 0 && self.policy.requeue == Requeue::Stays {
            lists.partial.push_head(slab);
        } else if inuse > 0 {
            // A partial slab goes to the tail: its other objects get time to be freed before the slab is used
            // again.
            lists.partial.push_tail(slab);
        } else if self.policy.surplus == Surplus::AtEach
            && node.free_objects() > lists.free_limit
            && self.can_destroy(backing, slab)
        {
            node.sub_free(self.geometry.objects);
            doomed.push_tail(slab);
        } else {
            lists.free.push_head(slab);
        }
        Ok(())
    }

    /// Puts the objects `from..to` of an array into the slabs of node `id`. Stops at the first object of
    /// another node and returns its index.
    pub(super) fn put_run(
        &self,
        backing: &Backing<'_, P>,
        (id, lists): (NodeId, &mut Lists<P>),
        storage: P::Ptr,
        (from, to): (u32, u32),
        doomed: &mut SlabList<P>,
    ) -> u32 {
        let node = self.nodes.get(id);
        let mut index = from;
        P::walk(|| {
            while index < to {
                P::visits();
                let object = entry::<P>(self.id, storage, index);
                let (slab, state) = self.home_of(object);
                if state.node != id {
                    break;
                }
                if let Err(misuse) = self.put(backing, node, lists, (slab, object), doomed) {
                    kept_wrong::<P>(self.id, "an array", object, misuse);
                }
                index += 1;
            }
        });
        self.trim(backing, node, lists, doomed);
        index
    }

    /// Moves slabs to `doomed` after objects came back, with [`Surplus::AtLast`]: those that have been empty
    /// longest, as long as the node has more free objects than `free_limit`.
    pub(super) fn trim(
        &self,
        backing: &Backing<'_, P>,
        node: &Node<P>,
        lists: &mut Lists<P>,
        doomed: &mut SlabList<P>,
    ) {
        let surplus = node.free_objects().saturating_sub(lists.free_limit);
        if surplus > 0 && self.policy.surplus == Surplus::AtLast {
            self.drain_free(backing, node, lists, surplus.div_ceil(self.geometry.objects), doomed);
        }
    }

    /// Puts the objects `from..to` of an array into their slabs. Takes one lock for each run of objects of
    /// one node.
    pub(super) fn put_all(
        &self,
        backing: &Backing<'_, P>,
        storage: P::Ptr,
        (mut from, to): (u32, u32),
        doomed: &mut SlabList<P>,
    ) {
        while from < to {
            let (_, state) = self.home_of(entry::<P>(self.id, storage, from));
            let mut lists = self.lock_node(state.node, self.nodes.get(state.node));
            from = self.put_run(backing, (state.node, &mut lists), storage, (from, to), doomed);
        }
    }

    /// Returns emptied slabs. No lock is held here, because an off-slab free list is an object of another
    /// cache, with locks of its own.
    pub(super) fn destroy_slabs(&self, backing: &Backing<'_, P>, mut doomed: SlabList<P>) {
        while let Some(slab) = doomed.first() {
            doomed.remove(slab);
            self.slots.count(Event::FreeSlab, 1);
            common::discard::<P>(self.id, self.flags, slab, |slab| self.return_pages(backing, slab));
        }
    }

    pub(super) fn return_pages(&self, backing: &Backing<'_, P>, slab: Slab<P>) {
        let management = Self::management_of(slab);
        common::return_pages::<P>(backing.pages, slab);
        if let Some(object) = management {
            self.metadata_of(backing).free(object);
        }
    }

    /// The slab of an object that was in an array, and the slab's frame state.
    pub(super) fn home_of(&self, object: P::Ptr) -> (Slab<P>, FrameState) {
        match Slab::<P>::of(object) {
            Some(home) => home,
            None => kept_wrong::<P>(self.id, "an array", object, Misuse::NotInSlab),
        }
    }

    /// The source of the memory for arrays and off-slab free lists. A caller that provided it once must
    /// provide it in every later call.
    pub(super) fn metadata_of<'a>(&self, backing: &Backing<'a, P>) -> &'a dyn Metadata<P> {
        match backing.metadata {
            Some(metadata) => metadata,
            None => {
                damaged::<P>(self.id, format_args!("metadata comes back, without the memory it came from"))
            }
        }
    }

    /// Whether the slab can be returned by this call: it has no off-slab free list, or the call can free that
    /// list.
    pub(super) fn can_destroy(&self, backing: &Backing<'_, P>, slab: Slab<P>) -> bool {
        backing.metadata.is_some() || Self::management_of(slab).is_none()
    }

    const NO_MANAGEMENT: u64 = u64::MAX;

    /// Records where the free list of a new slab is; `None` if it is in the slab. No other CPU can reach the
    /// slab yet.
    pub(super) fn set_management(slab: Slab<P>, object: Option<P::Ptr>) {
        let place = object.map(P::locate);
        let word = place.map_or(Self::NO_MANAGEMENT, |(pfn, offset)| (pfn.0 as u64) << 32 | offset as u64);
        P::with_frame(slab.pfn(), |frame| frame.slab.store(word));
    }

    fn management_of(slab: Slab<P>) -> Option<P::Ptr> {
        let word = P::with_frame(slab.pfn(), |frame| frame.slab.load());
        let place = (word != Self::NO_MANAGEMENT).then_some((Pfn((word >> 32) as u32), word as u32));
        place.map(|(pfn, offset)| P::address(pfn, offset as u64))
    }

    /// A slot that this call may use for `cpu`: the current CPU's own slot, or a slot that no CPU is using.
    pub(super) fn reach(&self, cpu: slablab_platform::CpuId) -> Option<super::Slot<'_, P>> {
        common::reach::<P, _>(&self.slots, cpu)
    }
}
