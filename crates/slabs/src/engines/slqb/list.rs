//! Lists: the owners of pages, the pages with free objects, and the objects that other CPUs hand back.
//!
//! Lock order: `list_lock`, then `page_lock`, then `remote_free.lock`. Two locks of one kind are never held
//! together.
//!
//! | lock | protects |
//! |---|---|
//! | `list_lock` | a node's queue; without `page_lock` also its pages |
//! | `page_lock` | a list's partial pages, and the free lists of all its pages |
//! | `remote_free.lock` | the objects that other CPUs handed back |
//!
//! In January 2009 there is no `page_lock`: only the owner touches a page's free list, and the list of the
//! CPU's pages is in its slot.

use super::{Slot, Slqb};
use crate::backing::Backing;
use crate::cache::CacheId;
use crate::damage::{cut_list, damaged};
use crate::engines::common;
use crate::report::Misuse;
use crate::slab::{Slab, SlabList, SlabWord};
use core::ops::{Deref, DerefMut};
use slablab_platform::{
    CpuId, CpuShared, Event, HotList, Lock, NodeId, PerCpu, PerNode, Platform, Word, rank,
};

/// The list that owns a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListId {
    /// The list of a CPU.
    Cpu(CpuId),
    /// The list of a node. It owns pages that were allocated for a request by node, or that the page
    /// allocator took from another node than the CPU's.
    Node(NodeId),
}

/// A page's owner word. Bits: cache 0-23, node's list 24, list 32-47, colour 48-63. Written before any other
/// CPU can reach the page. Every CPU that frees one of the page's objects reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The cache.
    pub(super) cache: CacheId,
    /// The list that the page's free objects return to.
    pub(super) list: ListId,
    /// The offset of the first object, in units of the cache's colour offset.
    pub(super) colour: u16,
}

impl Owner {
    const CACHE: u64 = (1 << 24) - 1;

    pub(super) const fn pack(self) -> u64 {
        let (node, index) = match self.list {
            ListId::Cpu(cpu) => (0, cpu.0),
            ListId::Node(node) => (1, node.0),
        };
        self.cache.0 as u64 & Self::CACHE | node << 24 | (index as u64) << 32 | (self.colour as u64) << 48
    }

    #[inline]
    pub(super) const fn unpack(word: u64) -> Owner {
        let index = (word >> 32) as u16;
        let list = if word >> 24 & 1 == 1 { ListId::Node(NodeId(index)) } else { ListId::Cpu(CpuId(index)) };
        Owner { cache: Self::cache_of(word), list, colour: (word >> 48) as u16 }
    }

    /// The cache only, which is all the fast path needs.
    #[inline]
    pub(super) const fn cache_of(word: u64) -> CacheId {
        CacheId((word & Self::CACHE) as u32)
    }
}

/// Objects linked through themselves, with pointers to both ends: a `kmlist`.
pub(super) struct Queue<P: Platform> {
    ends: Option<(P::Ptr, P::Ptr)>,
    count: u32,
}

impl<P: Platform> Default for Queue<P> {
    fn default() -> Self {
        Queue { ends: None, count: 0 }
    }
}

impl<P: Platform> Queue<P> {
    pub(super) fn one(object: P::Ptr) -> Self {
        Queue { ends: Some((object, object)), count: 1 }
    }

    /// The number of objects.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Appends `other`.
    pub(super) fn append(&mut self, other: Queue<P>, link_offset: u32) {
        self.ends = match (self.ends, other.ends) {
            (Some((head, tail)), Some((next, last))) => {
                P::set_link(tail, link_offset, Some(next));
                Some((head, last))
            }
            (mine, others) => mine.or(others),
        };
        self.count += other.count;
    }

    /// Removes the first object.
    pub(super) fn pop(&mut self, link_offset: u32) -> Option<P::Ptr> {
        let (head, tail) = self.ends?;
        self.count -= 1;
        // The link of the last object is undefined.
        self.ends = if self.count == 0 { None } else { P::link(head, link_offset).map(|next| (next, tail)) };
        Some(head)
    }

    /// Removes the first `most` objects. Only a partial removal walks the queue.
    fn take(&mut self, cache: CacheId, most: u32, link_offset: u32) -> Queue<P> {
        let Some((head, tail)) = self.ends.filter(|_| most > 0) else { return Queue::default() };
        if self.count <= most {
            return core::mem::take(self);
        }
        let last = walk::<P>(cache, head, most - 1, link_offset);
        self.ends = P::link(last, link_offset).map(|next| (next, tail));
        self.count -= most;
        Queue { ends: Some((head, last)), count: most }
    }
}

/// The object that is `steps` links after `from`.
fn walk<P: Platform>(cache: CacheId, from: P::Ptr, steps: u32, link_offset: u32) -> P::Ptr {
    let next = |object| P::link(object, link_offset).unwrap_or_else(|| cut_list::<P>(cache, object));
    (0..steps).fold(from, |object, _| next(object))
}

/// The pages of a list.
pub(super) struct PageList<P: Platform> {
    /// Pages with free objects. Allocation uses the first one.
    pub(super) partial: SlabList<P>,
    /// The number of pages: `nr_slabs`.
    pub(super) slabs: u32,
}

impl<P: Platform> Default for PageList<P> {
    fn default() -> Self {
        PageList { partial: SlabList::default(), slabs: 0 }
    }
}

/// The part of a list that every CPU may access.
pub(super) struct Shared<P: Platform> {
    remote_free: P::Lock<rank::RemoteFree, Queue<P>>,
    /// The length of `remote_free`, for readers without its lock.
    remote_count: P::Word,
    /// 1 if the owner should claim `remote_free`.
    remote_free_check: P::Word,
    /// Used if there is a `page_lock`.
    pages: P::Lock<rank::PageList, PageList<P>>,
}

impl<P: Platform> Default for Shared<P> {
    fn default() -> Self {
        Shared {
            remote_free: P::Lock::new(Queue::default()),
            remote_count: P::Word::new(0),
            remote_free_check: P::Word::new(0),
            pages: P::Lock::new(PageList::default()),
        }
    }
}

impl<P: Platform> Shared<P> {
    /// The number of objects handed back. Read without the lock, so the value may be stale.
    pub(super) fn remote_count(&self) -> u32 {
        self.remote_count.load() as u32
    }

    /// The pages behind `page_lock`, for reports. Empty in January 2009.
    pub(super) fn pages(&self) -> &P::Lock<rank::PageList, PageList<P>> {
        &self.pages
    }

    /// Whether the owner should claim `remote_free`.
    pub(super) fn is_flagged(&self) -> bool {
        // Relaxed is enough: the objects that the flag announces are read under the lock.
        self.remote_free_check.load() == 1
    }
}

/// A node's list. Several CPUs may use it, so the state that a CPU has in its slot is here under `list_lock`.
pub(super) struct Node<P: Platform> {
    pub(super) shared: Shared<P>,
    own: P::Lock<rank::NodeList, NodeState<P>>,
}

/// The state that `list_lock` protects.
pub(super) struct NodeState<P: Platform> {
    pub(super) queue: HotList<P::Ptr>,
    /// Used if there is no `page_lock`.
    pub(super) pages: PageList<P>,
}

impl<P: Platform> Default for Node<P> {
    fn default() -> Self {
        let own = NodeState { queue: HotList::EMPTY, pages: PageList::default() };
        Node { shared: Shared::default(), own: P::Lock::new(own) }
    }
}

type PagesGuard<'a, P> = <<P as Platform>::Lock<rank::PageList, PageList<P>> as Lock<PageList<P>>>::Guard<'a>;
type NodeGuard<'a, P> =
    <<P as Platform>::Lock<rank::NodeList, NodeState<P>> as Lock<NodeState<P>>>::Guard<'a>;

/// Access to the pages of a list.
pub(super) enum Held<'a, P: Platform> {
    /// Through the list's `page_lock`.
    Locked(PagesGuard<'a, P>),
    /// Through ownership: January 2009.
    Owned(&'a mut PageList<P>),
}

impl<P: Platform> Deref for Held<'_, P> {
    type Target = PageList<P>;
    fn deref(&self) -> &PageList<P> {
        match self {
            Held::Locked(pages) => pages,
            Held::Owned(pages) => pages,
        }
    }
}

impl<P: Platform> DerefMut for Held<'_, P> {
    fn deref_mut(&mut self) -> &mut PageList<P> {
        match self {
            Held::Locked(pages) => pages,
            Held::Owned(pages) => pages,
        }
    }
}

impl<P: Platform> Slqb<P> {
    pub(super) fn shared(&self, list: ListId) -> &Shared<P> {
        match list {
            ListId::Cpu(cpu) => self.lists.get(cpu),
            ListId::Node(node) => &self.nodes.get(node).shared,
        }
    }

    /// Takes a node's `list_lock`.
    pub(super) fn lock_node<'a>(&self, node: &'a Node<P>) -> NodeGuard<'a, P> {
        self.slots.count(Event::LockNodeList, 1);
        node.own.lock()
    }

    /// Access to a list's pages for the list's owner. `owned` has the pages if there is no `page_lock`.
    pub(super) fn hold<'a>(&'a self, list: ListId, owned: &'a mut PageList<P>) -> Held<'a, P> {
        if self.has_page_lock() { Held::Locked(self.lock_pages(list)) } else { Held::Owned(owned) }
    }

    /// The `page_lock` exists only for direct remote frees. Without them, only owners touch pages.
    pub(super) fn has_page_lock(&self) -> bool {
        self.policy.remote_direct_free
    }

    pub(super) fn lock_pages(&self, list: ListId) -> PagesGuard<'_, P> {
        self.slots.count(Event::LockPageList, 1);
        self.shared(list).pages.lock()
    }

    /// Calls `f` with the pages of a node's list and the length of its queue, for reports.
    pub(super) fn peek_node<T>(&self, node: &Node<P>, f: impl FnOnce(&PageList<P>, u32) -> T) -> T {
        let own = node.own.lock();
        match self.has_page_lock() {
            true => f(&node.shared.pages.lock(), own.queue.count),
            false => f(&own.pages, own.queue.count),
        }
    }

    /// Hands objects back to `list`. Sets `remote_free_check` when the objects handed back reach one batch.
    pub(super) fn splice(&self, list: ListId, objects: Queue<P>) {
        self.slots.count(Event::LockRemoteFree, 1);
        let shared = self.shared(list);
        let mut remote = shared.remote_free.lock();
        let before = remote.count;
        remote.append(objects, self.geometry.link_offset);
        shared.remote_count.store(remote.count as u64);
        if before < self.freebatch && remote.count >= self.freebatch {
            shared.remote_free_check.store(1);
        }
    }

    /// Appends the objects that other CPUs handed back to the queue of the list's owner.
    ///
    /// A hot list has no tail pointer, so a queue that is not empty is walked to its end. Only the reaper
    /// claims into such a queue. Objects beyond the capacity of a hot list stay in `remote_free`, and the
    /// flag stays set: in January 2009 `remote_free` has no bound.
    pub(super) fn claim(&self, list: ListId, queue: HotList<P::Ptr>) -> HotList<P::Ptr> {
        let shared = self.shared(list);
        if shared.remote_count() == 0 {
            return queue;
        }
        let link_offset = self.geometry.link_offset;
        self.slots.count(Event::LockRemoteFree, 1);
        let mut remote = shared.remote_free.lock();
        let claimed = remote.take(self.id, Self::QUEUE_MAX - queue.count, link_offset);
        shared.remote_count.store(remote.count as u64);
        shared.remote_free_check.store((remote.count > 0) as u64);
        drop(remote);
        let Some((head, tail)) = claimed.ends else { return queue };
        self.slots.count(Event::SlqbClaimRemoteList, 1);
        self.slots.count(Event::SlqbClaimRemoteListObjects, claimed.count as u64);
        P::set_link(tail, link_offset, None);
        if let Some(first) = queue.head {
            P::set_link(walk::<P>(self.id, first, queue.count - 1, link_offset), link_offset, Some(head));
        }
        HotList { head: queue.head.or(Some(head)), count: queue.count + claimed.count, ..queue }
    }

    /// Removes the head of a queue that the caller owns.
    pub(super) fn pop(&self, queue: &mut HotList<P::Ptr>) -> Option<P::Ptr> {
        let object = queue.head?;
        queue.head = P::link(object, self.geometry.link_offset);
        queue.count -= 1;
        if queue.head.is_none() && queue.count > 0 {
            cut_list::<P>(self.id, object);
        }
        Some(object)
    }

    /// Allocates one object from the first partial page. The page's other objects stay in the page.
    pub(super) fn take_object(&self, pages: &mut PageList<P>) -> Option<P::Ptr> {
        let slab = pages.partial.first()?;
        let word = SlabWord::unpack(slab.extra());
        let Some(head) = word.head else {
            damaged::<P>(self.id, format_args!("{slab:?} is listed as partial, without a free object"));
        };
        let object = slab.object(head);
        let next = P::link(object, self.geometry.link_offset).map(|next| slab.offset(next));
        slab.set_extra(SlabWord { head: next, inuse: word.inuse + 1, ..word }.pack());
        if next.is_none() {
            pages.partial.remove(slab);
        }
        Some(object)
    }

    /// Puts an object back into its page. If the page becomes empty, it is returned at once.
    ///
    /// # Errors
    /// [`Misuse::AlreadyFree`] if no object of the page is allocated: a double free.
    pub(super) fn put_object(
        &self,
        backing: &Backing<'_, P>,
        pages: &mut PageList<P>,
        slab: Slab<P>,
        object: P::Ptr,
    ) -> Result<(), Misuse> {
        let before = SlabWord::unpack(slab.extra());
        let inuse = before.inuse.checked_sub(1).ok_or(Misuse::AlreadyFree)?;
        P::set_link(object, self.geometry.link_offset, before.head.map(|head| slab.object(head)));
        slab.set_extra(SlabWord { head: Some(slab.offset(object)), inuse, ..before }.pack());
        let was_full = before.head.is_none();
        if inuse == 0 {
            if !was_full {
                pages.partial.remove(slab);
            }
            pages.slabs -= 1;
            self.slots.count(Event::SlqbFlushSlabFree, 1);
            self.slots.count(Event::FreeSlab, 1);
            self.discard(backing, slab);
        } else if was_full {
            pages.partial.push_head(slab);
            self.slots.count(Event::SlqbFlushSlabPartial, 1);
        }
        Ok(())
    }

    /// Returns an empty page that is on no list: at once, or after a grace period.
    pub(super) fn discard(&self, backing: &Backing<'_, P>, slab: Slab<P>) {
        common::discard::<P>(self.id, self.flags, slab, |slab| self.return_pages(backing, slab));
    }

    pub(super) fn return_pages(&self, backing: &Backing<'_, P>, slab: Slab<P>) {
        common::return_pages::<P>(backing.pages, slab);
    }

    /// A slot that this call may use for `cpu`: the current CPU's own slot, or a slot that no CPU is using.
    pub(super) fn reach(&self, cpu: CpuId) -> Option<Slot<'_, P>> {
        common::reach::<P, _>(&self.slots, cpu)
    }
}
