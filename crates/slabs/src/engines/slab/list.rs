//! Nodes: three lists of slabs, the array their CPUs share, and the arrays of objects that belong elsewhere.
//!
//! Lock order: an alien array's lock, then `list_lock`; two of one kind are never held together.
//!
//! | lock | protects |
//! |---|---|
//! | `alien->lock` | one array of one node, for objects of one other node |
//! | `list_lock` | a node's three lists, the free lists and counts of its slabs, its shared array |
//!
//! How many objects are free on a node is a word of its own: it is written under `list_lock` and looked at without.

use super::SlabEngine;
use crate::backing::{Backing, Metadata};
use crate::cache::CacheId;
use crate::damage::{damaged, hole, kept_wrong};
use crate::engines::common;
use crate::report::Misuse;
use crate::slab::{Slab, SlabList, SlabWord};
use slablab_platform::{
    Event, FrameState, HotArray, Lock, NodeId, PerCpu, PerNode, Pfn, Platform, Word, rank,
};

/// A slab's owner word. Bits: cache 0-23, colour 48-63. Written before anybody else knows the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The cache.
    pub(super) cache: CacheId,
    /// How far the first object is shifted, in units of the cache's colour offset.
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

/// A bounded array of objects behind a lock: a node's shared array, or one for another node's objects. Last in, first out.
pub(super) struct Array<P: Platform> {
    pub(super) storage: Option<P::Ptr>,
    pub(super) size: u32,
    pub(super) capacity: u32,
    /// Used since the reaper's last visit.
    pub(super) touched: bool,
}

impl<P: Platform> Default for Array<P> {
    fn default() -> Self {
        Array { storage: None, size: 0, capacity: 0, touched: false }
    }
}

impl<P: Platform> Array<P> {
    /// Takes the storage of an empty array away.
    pub(super) fn retire(&mut self) -> Option<P::Ptr> {
        debug_assert_eq!(self.size, 0, "an array that goes must be empty");
        self.capacity = 0;
        self.storage.take()
    }

    /// Uses `storage` for `capacity` objects; answers it back where the array has one already.
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

/// What `list_lock` protects.
pub(super) struct Lists<P: Platform> {
    /// Slabs with free objects and others; the first is used next.
    pub(super) partial: SlabList<P>,
    /// Slabs without free objects.
    pub(super) full: SlabList<P>,
    /// Slabs with nothing but free objects.
    pub(super) free: SlabList<P>,
    /// Whether an allocation looked at the free slabs since the reaper's last visit.
    pub(super) free_touched: bool,
    /// Free objects the node keeps before an emptied slab goes back; 0 makes the next holder of the lock compute it.
    pub(super) free_limit: u32,
    /// When the reaper may look at the node again.
    pub(super) next_reap_ns: u64,
    /// Where the node's CPUs put what their arrays have no room for.
    pub(super) shared: Array<P>,
}

/// A node's part of a cache.
pub(super) struct Node<P: Platform> {
    lists: P::Lock<rank::NodeList, Lists<P>>,
    /// Objects on partial and free slabs.
    free_objects: P::Word,
    /// The next slab's colour.
    pub(super) colour_next: P::Word,
    /// Objects of other nodes that this node's CPUs freed, by node.
    pub(super) aliens: P::PerNode<Alien<P>>,
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        let lists = Lists {
            partial: SlabList::default(),
            full: SlabList::default(),
            free: SlabList::default(),
            free_touched: false,
            free_limit: 0,
            next_reap_ns: 0,
            shared: Array::default(),
        };
        Node {
            lists: P::Lock::new(lists),
            free_objects: P::Word::new(0),
            colour_next: P::Word::new(0),
            aliens: P::PerNode::new(),
        }
    }
}

/// An array of one node for objects of another.
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
    /// Free objects on the node's slabs, as far as can be seen without the lock.
    pub(super) fn free_objects(&self) -> u32 {
        self.free_objects.load() as u32
    }

    /// The lists, without counting the lock and without computing `free_limit`.
    pub(super) fn peek(&self) -> ListsGuard<'_, P> {
        self.lists.lock()
    }

    /// Under `list_lock`.
    pub(super) fn add_free(&self, objects: u32) {
        self.free_objects.store(self.free_objects.load() + objects as u64);
    }

    /// Under `list_lock`.
    pub(super) fn sub_free(&self, objects: u32) {
        self.free_objects.store(self.free_objects.load() - objects as u64);
    }
}

impl<P: Platform> Lists<P> {
    /// The slab to take objects from: the first partial one, else the first free one.
    fn next(&mut self) -> Option<Slab<P>> {
        self.partial.first().or_else(|| {
            self.free_touched = true;
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

/// The `index`-th object of an array.
pub(super) fn entry<P: Platform>(cache: CacheId, storage: P::Ptr, index: u32) -> P::Ptr {
    match P::storage_load(storage, HotArray::<P::Ptr>::HEADER + index) {
        Some(object) => object,
        None => hole::<P>(cache, "an array", storage, index),
    }
}

pub(super) fn set_entry<P: Platform>(storage: P::Ptr, index: u32, object: P::Ptr) {
    P::storage_store(storage, HotArray::<P::Ptr>::HEADER + index, Some(object));
}

/// Copies `count` objects of one array, from index `first` on, to index `to` of another.
pub(super) fn copy_entries<P: Platform>(from: P::Ptr, first: u32, storage: P::Ptr, to: u32, count: u32) {
    let place = |index: u32| HotArray::<P::Ptr>::HEADER + index;
    for index in 0..count {
        P::storage_store(storage, place(to + index), P::storage_load(from, place(first + index)));
    }
}

impl<P: Platform> SlabEngine<P> {
    /// Takes a node's `list_lock`.
    pub(super) fn lock_node<'a>(&self, id: NodeId, node: &'a Node<P>) -> ListsGuard<'a, P> {
        self.slots.count(Event::LockNodeList, 1);
        let mut lists = node.lists.lock();
        if lists.free_limit == 0 {
            lists.free_limit = self.free_limit_of(id);
        }
        lists
    }

    /// Takes up to `most` objects out of a slab that the caller alone may touch: `out` gets them, first to last.
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

    /// Takes up to `most` objects out of a node's slabs.
    pub(super) fn pull_listed(
        &self,
        node: &Node<P>,
        lists: &mut Lists<P>,
        most: u32,
        mut out: impl FnMut(u32, P::Ptr),
    ) -> u32 {
        let mut taken = 0;
        while taken < most
            && let Some(slab) = lists.next()
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

    /// Puts a slab that nobody knows yet on its node's lists.
    pub(super) fn publish(&self, slab: Slab<P>) {
        let id = slab.node();
        let node = self.nodes.get(id);
        let mut lists = self.lock_node(id, node);
        let word = SlabWord::unpack(slab.extra());
        node.add_free(word.free());
        let list = lists.list_of(word);
        if word.inuse == 0 { list.push_tail(slab) } else { list.push_head(slab) }
    }

    /// Puts an object back into its slab: `free_block` for one. A slab that empties while the node has free objects enough
    /// goes to `doomed`.
    ///
    /// # Errors
    /// The slab has no object out: a double free.
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
        lists.list_of(before).remove(slab);
        P::set_link(object, self.geometry.link_offset, before.head.map(|head| slab.object(head)));
        slab.set_extra(SlabWord { head: Some(slab.offset(object)), inuse, ..before }.pack());
        node.add_free(1);
        if inuse > 0 {
            // The others get time to be freed, too.
            lists.partial.push_tail(slab);
        } else if node.free_objects() > lists.free_limit && self.can_destroy(backing, slab) {
            node.sub_free(self.geometry.objects);
            doomed.push_tail(slab);
        } else {
            lists.free.push_head(slab);
        }
        Ok(())
    }

    /// Puts the objects `from..to` of an array into the slabs of `id`, up to the first object of another node; answers its
    /// index.
    pub(super) fn put_run(
        &self,
        backing: &Backing<'_, P>,
        (id, lists): (NodeId, &mut Lists<P>),
        storage: P::Ptr,
        (from, to): (u32, u32),
        doomed: &mut SlabList<P>,
    ) -> u32 {
        let node = self.nodes.get(id);
        for index in from..to {
            let object = entry::<P>(self.id, storage, index);
            let (slab, state) = self.home_of(object);
            if state.node != id {
                return index;
            }
            if let Err(misuse) = self.put(backing, node, lists, (slab, object), doomed) {
                kept_wrong::<P>(self.id, "an array", object, misuse);
            }
        }
        to
    }

    /// The same for all of them, whatever their nodes: one lock for each run of one node.
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

    /// Emptied slabs go back, without a lock: their lists of free objects may be objects of other caches.
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

    /// The slab of an object that was taken into an array, and the slab's frame state.
    pub(super) fn home_of(&self, object: P::Ptr) -> (Slab<P>, FrameState) {
        match Slab::<P>::of(object) {
            Some(home) => home,
            None => kept_wrong::<P>(self.id, "an array", object, Misuse::NotInSlab),
        }
    }

    /// Where arrays and the lists of slabs came from. A caller that once brought memory for them must bring it again.
    pub(super) fn metadata_of<'a>(&self, backing: &Backing<'a, P>) -> &'a dyn Metadata<P> {
        match backing.metadata {
            Some(metadata) => metadata,
            None => {
                damaged::<P>(self.id, format_args!("metadata comes back, without the memory it came from"))
            }
        }
    }

    /// Whether the slab's list, if it is an object of another cache, can go back from here.
    pub(super) fn can_destroy(&self, backing: &Backing<'_, P>, slab: Slab<P>) -> bool {
        backing.metadata.is_some() || Self::management_of(slab).is_none()
    }

    const NO_MANAGEMENT: u64 = u64::MAX;

    /// Remembers where the list of a slab is that nobody else can see yet; `None` for one in the slab.
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

    /// A slot this code may use for a CPU: the CPU's own when it runs there, else one that nobody uses.
    pub(super) fn reach(&self, cpu: slablab_platform::CpuId) -> Option<super::Slot<'_, P>> {
        common::reach::<P, _>(&self.slots, cpu)
    }
}
