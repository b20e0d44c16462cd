//! Free (docs/theory/slab.md 4).

use super::list::{Alien, AlienGuard, Array, Lists, Owner, copy_entries, set_entry};
use super::{SlabEngine, Slot};
use crate::backing::Backing;
use crate::damage::{damaged, kept_wrong};
use crate::engines::common;
use crate::report::Misuse;
use crate::slab::{Slab, SlabList};
use slablab_platform::{Event, Gfp, HotArray, Local, NodeId, PerCpu, PerNode, Platform};

impl<P: Platform> SlabEngine<P> {
    #[inline]
    pub(super) fn free_object(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        let Some((slab, state)) = Slab::<P>::of(object) else {
            return Err(Misuse::NotInSlab);
        };
        // Later allocations trust the addresses in an array, so the check must run before the push.
        self.check(object, slab)?;
        if self.takes(state.node) && self.slots.push(object, Event::FreeFastpath) {
            return Ok(());
        }
        self.free_slow(backing, object, slab, state.node)
    }

    /// Checks that `object` is an object of this cache.
    #[inline]
    pub(super) fn check(&self, object: P::Ptr, slab: Slab<P>) -> Result<(), Misuse> {
        let owner = Owner::unpack(slab.owner());
        common::check_object(self.id, owner.cache, || self.is_start(owner, slab.bytes_to(object)))
    }

    /// Whether an object starts `offset` bytes into a slab with this owner word.
    #[inline]
    pub(super) fn is_start(&self, owner: Owner, offset: u32) -> bool {
        let offset = offset.wrapping_sub(self.shape.first(owner.colour));
        self.starts.has(offset)
    }

    /// Whether the current CPU's array accepts objects of `node`.
    #[inline]
    pub(super) fn takes(&self, node: NodeId) -> bool {
        !self.policy.alien || node == self.free_home(P::cpu())
    }

    #[cold]
    #[inline(never)]
    fn free_slow(
        &self,
        backing: &Backing<'_, P>,
        object: P::Ptr,
        slab: Slab<P>,
        node: NodeId,
    ) -> Result<(), Misuse> {
        if let Some(mut slot) = self.slots.local() {
            self.look_around(backing, &mut slot);
        }
        if !self.takes(node) {
            self.slots.count(Event::FreeSlowpath, 1);
            self.slots.count(Event::SlabNodeFree, 1);
            return self.free_alien(backing, object, slab, node);
        }
        self.make_arrays(backing);
        if self.slots.push(object, Event::FreeFastpath) {
            // The fast path failed only because the CPU had no array yet.
            return Ok(());
        }
        self.slots.count(Event::FreeSlowpath, 1);
        let Some(mut slot) = self.slots.local() else {
            self.slots.count(Event::Slotless, 1);
            return self.put_one(backing, object, slab, node);
        };
        let Some(storage) = slot.array().storage else {
            drop(slot);
            return self.put_one(backing, object, slab, node);
        };
        let mut doomed = SlabList::default();
        if slot.array().size == slot.array().capacity {
            slot.count(Event::SlabFreeMiss, 1);
            self.flush_array(backing, &mut slot, storage, &mut doomed);
        }
        let array = slot.array();
        set_entry::<P>(storage, array.size, object);
        slot.set_array(HotArray { size: array.size + 1, ..array });
        drop(slot);
        self.destroy_slabs(backing, doomed);
        Ok(())
    }

    /// Moves a batch of the oldest objects out of a full array: into the shared array if that has room, else
    /// into their slabs.
    fn flush_array(
        &self,
        backing: &Backing<'_, P>,
        slot: &mut Slot<'_, P>,
        storage: P::Ptr,
        doomed: &mut SlabList<P>,
    ) {
        let batch = self.tunables.batchcount.min(slot.array().size);
        let home = self.home(slot.cpu());
        let node = self.nodes.get(home);
        let mut lists = self.lock_node(home, node);
        let room = lists.shared.capacity - lists.shared.size;
        let gone = match lists.shared.storage {
            Some(shared) if room > 0 => {
                let count = batch.min(room);
                copy_entries::<P>(storage, 0, shared, lists.shared.size, count);
                lists.shared.size += count;
                node.shared_changed(&lists);
                count
            }
            _ => {
                let reached = self.put_run(backing, (home, &mut lists), storage, (0, batch), doomed);
                drop(lists);
                self.put_all(backing, storage, (reached, batch), doomed);
                batch
            }
        };
        Self::drop_oldest(slot, storage, gone);
    }

    /// Removes the oldest `gone` objects from the slot's array.
    pub(super) fn drop_oldest(slot: &mut Slot<'_, P>, storage: P::Ptr, gone: u32) {
        let array = slot.array();
        copy_entries::<P>(storage, gone, storage, 0, array.size - gone);
        slot.set_array(HotArray { size: array.size - gone, ..array });
    }

    pub(super) fn lock_alien<'a>(&self, alien: &'a Alien<P>) -> AlienGuard<'a, P> {
        self.slots.count(Event::LockAlien, 1);
        alien.lock()
    }

    /// Frees an object of another node: into the alien array for that node, or into its slab if there is no
    /// alien array.
    fn free_alien(
        &self,
        backing: &Backing<'_, P>,
        object: P::Ptr,
        slab: Slab<P>,
        id: NodeId,
    ) -> Result<(), Misuse> {
        let alien = self.nodes.get(self.free_home(P::cpu())).aliens.get(id);
        let mut array = self.lock_alien(alien);
        if array.storage.is_none() {
            // A kernel makes the array with the cache: only the lock for the object counts.
            drop(array);
            let made = self.new_array(backing, self.tunables.alien);
            array = alien.lock();
            let spare = array.adopt(made, self.tunables.alien);
            if let Some(spare) = spare {
                // Another CPU installed an array first. Return the spare one without holding the lock.
                drop(array);
                self.drop_array(backing, spare);
                array = alien.lock();
            }
        }
        let Some(storage) = array.storage else {
            drop(array);
            return self.put_one(backing, object, slab, id);
        };
        let mut doomed = SlabList::default();
        if array.size == array.capacity {
            self.slots.count(Event::SlabNodeOverflow, 1);
            self.drain_alien(backing, &mut array, id, &mut doomed);
        }
        set_entry::<P>(storage, array.size, object);
        array.size += 1;
        drop(array);
        self.destroy_slabs(backing, doomed);
        Ok(())
    }

    /// Empties an alien array: into the shared array of node `id` as far as that has room, and the rest into
    /// slabs.
    pub(super) fn drain_alien(
        &self,
        backing: &Backing<'_, P>,
        array: &mut Array<P>,
        id: NodeId,
        doomed: &mut SlabList<P>,
    ) {
        let Some(storage) = array.storage.filter(|_| array.size > 0) else { return };
        let node = self.nodes.get(id);
        let mut lists = self.lock_node(id, node);
        let lists: &mut Lists<P> = &mut lists;
        if let Some(shared) = lists.shared.storage {
            let count = array.size.min(lists.shared.capacity - lists.shared.size);
            array.size -= count;
            copy_entries::<P>(storage, array.size, shared, lists.shared.size, count);
            lists.shared.size += count;
            node.shared_changed(lists);
        }
        let reached = self.put_run(backing, (id, lists), storage, (0, array.size), doomed);
        if reached != array.size {
            damaged::<P>(self.id, format_args!("the array for node {} holds another node's object", id.0));
        }
        array.size = 0;
    }

    /// Puts one object into its slab under its node's `list_lock`.
    fn put_one(
        &self,
        backing: &Backing<'_, P>,
        object: P::Ptr,
        slab: Slab<P>,
        id: NodeId,
    ) -> Result<(), Misuse> {
        let mut doomed = SlabList::default();
        let node = self.nodes.get(id);
        let mut lists = self.lock_node(id, node);
        self.put(backing, node, &mut lists, (slab, object), &mut doomed)?;
        self.trim(backing, node, &mut lists, &mut doomed);
        drop(lists);
        self.destroy_slabs(backing, doomed);
        Ok(())
    }

    /// Puts an object that was in an array into its slab, whatever its node.
    pub(super) fn put_stranger(&self, backing: &Backing<'_, P>, object: P::Ptr, doomed: &mut SlabList<P>) {
        let (slab, state) = self.home_of(object);
        let node = self.nodes.get(state.node);
        let mut lists = self.lock_node(state.node, node);
        if let Err(misuse) = self.put(backing, node, &mut lists, (slab, object), doomed) {
            kept_wrong::<P>(self.id, "an array", object, misuse);
        }
        self.trim(backing, node, &mut lists, doomed);
    }

    /// Creates the current CPU's array and its node's shared array if they are missing and memory is
    /// available. A kernel makes them with the cache, so no lock is counted.
    pub(super) fn make_arrays(&self, backing: &Backing<'_, P>) {
        let has_array = self.slots.local().is_none_or(|slot| slot.array().storage.is_some());
        if has_array || self.tunables.limit == 0 || backing.metadata.is_none() {
            return;
        }
        let capacity = self.tunables.limit;
        let Some(storage) = self.new_array(backing, capacity) else { return };
        let mut slot = self.slots.local();
        match &mut slot {
            Some(slot) if slot.array().storage.is_none() => {
                slot.set_array(HotArray { storage: Some(storage), size: 0, capacity });
            }
            // An array appeared meanwhile, or the thread moved to another CPU, or the slot is in use.
            _ => {
                drop(slot);
                return self.drop_array(backing, storage);
            }
        }
        let home = self.home(P::cpu());
        drop(slot);
        let node = self.nodes.get(home);
        if self.tunables.shared > 0 && node.peek().shared.storage.is_none() {
            let storage = self.new_array(backing, self.tunables.shared);
            let spare = self.open_node(home, node).shared.adopt(storage, self.tunables.shared);
            if let Some(spare) = spare {
                self.drop_array(backing, spare);
            }
        }
    }

    fn new_array(&self, backing: &Backing<'_, P>, capacity: u32) -> Option<P::Ptr> {
        let words = HotArray::<P::Ptr>::HEADER + capacity;
        let storage = backing.metadata?.alloc(words * 8, Gfp::NOWAIT | Gfp::NO_OBJ_EXT)?;
        P::storage_attach(storage, words);
        Some(storage)
    }

    pub(super) fn drop_array(&self, backing: &Backing<'_, P>, storage: P::Ptr) {
        P::storage_detach(storage);
        self.metadata_of(backing).free(storage);
    }
}
