//! Free (docs/theory/slqb.md 5).

use super::list::{ListId, NodeState, Owner, PageList, Queue};
use super::{Slot, Slqb};
use crate::backing::Backing;
use crate::damage::{damaged, kept_wrong};
use crate::engines::common;
use crate::report::Misuse;
use crate::slab::Slab;
use slablab_platform::{CpuId, Event, HotList, Local, NodeId, PerCpu, PerNode, Platform, Want};

impl<P: Platform> Slqb<P> {
    /// The fast path checks the page's node and cache, and that an object starts at the address. The page's
    /// owner matters only when the queue is flushed.
    #[inline]
    pub(super) fn free_object(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        let Some((slab, state)) = Slab::<P>::of(object) else {
            return Err(Misuse::NotInSlab);
        };
        // Later allocations trust the addresses in a queue, so the check must run before the push.
        let owner = self.check(object, slab)?;
        if self.is_local(state.node)
            && self.slots.push_if(Want::ANY, self.hiwater, object, Event::FreeFastpath)
        {
            return Ok(());
        }
        self.free_slow(backing, object, slab, state.node, owner)
    }

    #[cold]
    #[inline(never)]
    fn free_slow(
        &self,
        backing: &Backing<'_, P>,
        object: P::Ptr,
        slab: Slab<P>,
        node: NodeId,
        owner: Owner,
    ) -> Result<(), Misuse> {
        let Some(mut slot) = self.slots.local() else {
            return self.free_slotless(backing, object, slab, owner);
        };
        slot.count(Event::FreeSlowpath, 1);
        self.look_around(backing, &mut slot);
        if self.is_local_to(slot.cpu(), node) {
            slot.count(Event::SlqbFree, 1);
            let queue = slot.list();
            P::set_link(object, self.geometry.link_offset, queue.head);
            slot.set_list(HotList { head: Some(object), count: queue.count + 1, ..queue });
            if slot.list().count > self.hiwater {
                self.flush_free_list(backing, &mut slot);
            }
        } else {
            slot.count(Event::SlqbFreeRemote, 1);
            self.free_to_remote(backing, &mut slot, object, owner.list);
        }
        Ok(())
    }

    /// Checks that `object` is an object of this cache, and returns the owner word of its page.
    pub(super) fn check(&self, object: P::Ptr, slab: Slab<P>) -> Result<Owner, Misuse> {
        let owner = Owner::unpack(slab.owner());
        common::check_object(self.id, owner.cache, || self.is_start(owner, slab.bytes_to(object)))?;
        Ok(owner)
    }

    /// Whether an object starts `offset` bytes into a page with this owner word.
    #[inline]
    pub(super) fn is_start(&self, owner: Owner, offset: u32) -> bool {
        let offset = offset.wrapping_sub(self.colours.bytes(owner.colour));
        self.starts.has(offset)
    }

    /// Whether the current CPU's queue accepts objects of `node`.
    #[inline]
    pub(super) fn is_local(&self, node: NodeId) -> bool {
        self.is_local_to(P::cpu(), node)
    }

    #[inline]
    fn is_local_to(&self, cpu: CpuId, node: NodeId) -> bool {
        self.is_here_on(cpu, node) || self.mixes_nodes(cpu)
    }

    /// Adds an object to the remote list. That list has one destination at a time: an object for another
    /// destination sends the list first.
    fn free_to_remote(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, object: P::Ptr, list: ListId) {
        if slot.remote_cache_list != Some(list) {
            self.flush_remote_free_cache(backing, slot);
            slot.remote_cache_list = Some(list);
        }
        slot.rlist.append(Queue::one(object), self.geometry.link_offset);
        if slot.rlist.count() >= self.freebatch {
            self.flush_remote_free_cache(backing, slot);
        }
    }

    /// Sends the remote list to its destination: directly into the pages if the owner has many unclaimed
    /// objects, else to the owner's `remote_free`.
    pub(super) fn flush_remote_free_cache(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        let Some(list) = slot.remote_cache_list.take() else { return };
        let mut objects = core::mem::take(&mut slot.rlist);
        slot.count(Event::SlqbFlushRfreeList, 1);
        slot.count(Event::SlqbFlushRfreeListObjects, objects.count() as u64);
        if self.policy.remote_direct_free && self.shared(list).remote_count() > self.hiwater / 2 {
            let mut pages = self.lock_pages(list);
            P::walk(|| {
                while let Some(object) = objects.pop(self.geometry.link_offset) {
                    P::visits();
                    let (slab, _) = self.home_of(object);
                    self.put_queued(backing, &mut pages, slab, object);
                }
            });
        } else {
            self.splice(list, objects);
        }
    }

    /// Flushes one batch from the head of the CPU's queue. Objects of the CPU's own pages go into those
    /// pages, all others to the remote list.
    pub(super) fn flush_free_list(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        let mut queue = slot.list();
        let mut left = self.count_batch(&queue);
        let list = ListId::Cpu(slot.cpu());
        while left > 0 {
            left -= self.flush_run(backing, &mut queue, left, list, &mut slot.pages);
            P::walk(|| {
                while left > 0
                    && let Some((object, owner)) = self.head_of(&queue)
                    && owner.list != list
                {
                    self.pop(&mut queue);
                    slot.count(Event::SlqbFlushFreeListRemote, 1);
                    self.free_to_remote(backing, slot, object, owner.list);
                    left -= 1;
                    P::visits();
                }
            });
            if left > 0 && queue.head.is_none() {
                // The queue ended before its count. Without this test the loop would not end.
                damaged::<P>(
                    self.id,
                    format_args!("a queue is {} objects shorter than its count", queue.count),
                );
            }
        }
        slot.set_list(queue);
    }

    /// Flushes one batch of a node's queue. All its objects are in pages that the node owns.
    pub(super) fn flush_node_list(&self, backing: &Backing<'_, P>, node: NodeId, own: &mut NodeState<P>) {
        let batch = self.count_batch(&own.queue);
        let flushed = self.flush_run(backing, &mut own.queue, batch, ListId::Node(node), &mut own.pages);
        if flushed != batch {
            damaged::<P>(
                self.id,
                format_args!("the queue of node {} holds an object of another list", node.0),
            );
        }
    }

    /// The number of objects in the next batch of a queue. Also counts the flush.
    fn count_batch(&self, queue: &HotList<P::Ptr>) -> u32 {
        let batch = queue.count.min(self.freebatch);
        if batch > 0 {
            self.slots.count(Event::SlqbFlushFreeList, 1);
            self.slots.count(Event::SlqbFlushFreeListObjects, batch as u64);
        }
        batch
    }

    /// Puts the objects at the head of a queue into pages of `list`, and stops at the first object of another
    /// list. Takes one lock for the whole run.
    fn flush_run(
        &self,
        backing: &Backing<'_, P>,
        queue: &mut HotList<P::Ptr>,
        most: u32,
        list: ListId,
        owned: &mut PageList<P>,
    ) -> u32 {
        let is_ours = |queue: &HotList<P::Ptr>| self.head_of(queue).filter(|(_, owner)| owner.list == list);
        if most == 0 || is_ours(queue).is_none() {
            return 0;
        }
        let mut pages = self.hold(list, owned);
        let mut done = 0;
        P::walk(|| {
            while done < most
                && let Some((object, _)) = is_ours(queue)
            {
                // Pop first: the free list of the page overwrites the object's link.
                self.pop(queue);
                let (slab, _) = self.home_of(object);
                self.put_queued(backing, &mut pages, slab, object);
                done += 1;
                P::visits();
            }
        });
        done
    }

    fn head_of(&self, queue: &HotList<P::Ptr>) -> Option<(P::Ptr, Owner)> {
        queue.head.map(|object| (object, self.home_of(object).1))
    }

    /// The page of an object that was in a queue, and the page's owner word.
    fn home_of(&self, object: P::Ptr) -> (Slab<P>, Owner) {
        match Slab::<P>::of(object) {
            Some((slab, _)) => (slab, Owner::unpack(slab.owner())),
            None => kept_wrong::<P>(self.id, "a queue", object, Misuse::NotInSlab),
        }
    }

    /// Puts an object that was in a queue into its page. The caller that freed it has returned, so a double
    /// free cannot be returned as an error.
    fn put_queued(&self, backing: &Backing<'_, P>, pages: &mut PageList<P>, slab: Slab<P>, object: P::Ptr) {
        if let Err(misuse) = self.put_object(backing, pages, slab, object) {
            kept_wrong::<P>(self.id, "a queue", object, misuse);
        }
    }

    /// Frees an object when the slot is unavailable: into its page, under the `page_lock`. Without a
    /// `page_lock` only the owning CPU may touch its pages, so the object is handed to that CPU.
    fn free_slotless(
        &self,
        backing: &Backing<'_, P>,
        object: P::Ptr,
        slab: Slab<P>,
        owner: Owner,
    ) -> Result<(), Misuse> {
        match owner.list {
            list if self.has_page_lock() => {
                self.put_object(backing, &mut self.lock_pages(list), slab, object)?;
            }
            ListId::Node(node) => {
                let mut own = self.lock_node(self.nodes.get(node));
                self.put_object(backing, &mut own.pages, slab, object)?;
            }
            list => self.splice(list, Queue::one(object)),
        }
        self.slots.count(Event::FreeSlowpath, 1);
        self.slots.count(Event::Slotless, 1);
        Ok(())
    }
}
