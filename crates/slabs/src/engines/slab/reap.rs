//! Periodic reaping, shrink, and CPUs that go offline (docs/theory/slab.md 6).

use super::list::{Array, Lists, Node};
use super::policy::Reap;
use super::{SlabEngine, Slot, times};
use crate::backing::Backing;
use crate::cache::CacheFlags;
use crate::engine::Reapable;
use crate::slab::SlabList;
use slablab_platform::{
    CpuId, Event, HotArray, Local, NodeId, PerCpu, PerNode, Platform, Word, Work, WorkKind,
};

impl<P: Platform> SlabEngine<P> {
    /// Upkeep in every slow path: schedules the CPU's reaper if necessary, and empties the slot if another
    /// CPU asked for that.
    pub(super) fn look_around(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) {
        if !slot.reaping && self.policy.reap_interval_ns > 0 {
            let (cpu, now) = (slot.cpu(), P::now());
            let (first, before) = times::first(cpu.0, (slot.up_ns, now), self.policy.reap_interval_ns);
            // The array for the node behind the CPU's own is the first, and those of other nodes follow.
            let home = self.free_home(cpu).0 as u64;
            slot.rotor = ((home + 1 + before) % P::nodes() as u64) as u16;
            slot.reaping = true;
            self.reap_at(slot, first, now);
        }
        if slot.asked() {
            let mut doomed = SlabList::default();
            self.empty_array(backing, slot, &mut doomed);
            self.destroy_slabs(backing, doomed);
        }
    }

    fn reap_at(&self, slot: &mut Slot<'_, P>, at: u64, now: u64) {
        slot.due_ns = at;
        self.defer_reap(slot.cpu(), at - now);
    }

    fn defer_reap(&self, cpu: CpuId, delay_ns: u64) {
        P::defer(cpu, delay_ns, Work { kind: WorkKind::Reap, cache: self.id.0, argument: 0 });
    }

    /// One visit: one alien array, the CPU's array, the node's shared array and the node's free slabs.
    pub(super) fn reap(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        let Some(mut slot) = self.reach(cpu) else {
            // Another thread uses the slot. Try again at the next visit.
            let now = P::now();
            return self.defer_reap(cpu, times::next(cpu.0, now, self.policy.reap_interval_ns) - now);
        };
        if !slot.reaping || !P::cpu_online(cpu) {
            slot.reaping = false;
            return;
        }
        let now = P::now();
        if now < slot.due_ns {
            // The CPU was offline meanwhile: this visit was asked for before.
            return self.defer_reap(cpu, slot.due_ns - now);
        }
        let next = times::next(cpu.0, now, self.policy.reap_interval_ns);
        self.reap_at(&mut slot, next, now);
        let mut doomed = SlabList::default();
        let home = self.home(cpu);
        self.reap_alien(backing, &mut slot, self.free_home(cpu), &mut doomed);
        self.reap_array(backing, &mut slot, &mut doomed);
        drop(slot);
        if let Some(node) = self.nodes.peek(home) {
            self.reap_node(backing, home, node, &mut doomed);
        }
        self.destroy_slabs(backing, doomed);
    }

    /// Empties one alien array of the CPU's node, a different one at each visit, unless another CPU holds its
    /// lock.
    fn reap_alien(
        &self,
        backing: &Backing<'_, P>,
        slot: &mut Slot<'_, P>,
        home: NodeId,
        doomed: &mut SlabList<P>,
    ) {
        let turn = NodeId(slot.rotor);
        slot.rotor = (slot.rotor + 1) % P::nodes();
        let Some(alien) = self.nodes.peek(home).and_then(|node| node.aliens.peek(turn)) else { return };
        // A kernel does not lock an array that looks empty.
        if let Some(mut array) = alien.try_lock().filter(|array| array.size > 0) {
            self.slots.count(Event::LockAlien, 1);
            self.drain_alien(backing, &mut array, turn, doomed);
        }
    }

    /// The number of objects to remove from an array that was not used since the last visit.
    fn aged(size: u32, capacity: u32) -> u32 {
        let fifth = capacity.div_ceil(5);
        if fifth > size { size.div_ceil(2) } else { fifth }
    }

    fn reap_array(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, doomed: &mut SlabList<P>) {
        let array = slot.array();
        let Some(storage) = array.storage.filter(|_| array.size > 0) else { return };
        if self.is_touched(slot) {
            slot.touched = false;
            slot.hits_seen = self.slots.counted(slot.cpu(), Event::AllocFastpath);
            return;
        }
        let gone = Self::aged(array.size, array.capacity);
        self.put_all(backing, storage, (0, gone), doomed);
        Self::drop_oldest(slot, storage, gone);
    }

    fn reap_node(&self, backing: &Backing<'_, P>, id: NodeId, node: &Node<P>, doomed: &mut SlabList<P>) {
        let due = match node.next_reap_ns.load() {
            0 => self.first_reap_ns,
            due => due,
        };
        if due > P::now() {
            return;
        }
        node.next_reap_ns.store(P::now().saturating_add(2 * self.policy.reap_interval_ns));
        self.reap_shared(backing, id, node, doomed);
        if node.free_touched.load() != 0 {
            return node.free_touched.store(0);
        }
        let mut lists = self.open_node(id, node);
        let slabs = lists.free_limit.div_ceil(5 * self.geometry.objects);
        let reaped = self.drain_free(backing, node, &mut lists, slabs, doomed);
        // A lock for each slab, and none to see that there is no other.
        self.slots.count(Event::LockNodeList, reaped as u64);
        self.slots.count(Event::SlabReaped, reaped as u64);
    }

    fn reap_shared(&self, backing: &Backing<'_, P>, id: NodeId, node: &Node<P>, doomed: &mut SlabList<P>) {
        if node.shared_objects() == 0 {
            return;
        }
        if node.shared_touched.load() != 0 {
            return node.shared_touched.store(0);
        }
        let mut lists = self.lock_node(id, node);
        let Array { storage, size, capacity } = lists.shared;
        let Some(storage) = storage.filter(|_| size > 0) else { return };
        self.drain_shared(backing, (id, node), &mut lists, storage, Self::aged(size, capacity), doomed);
    }

    /// Puts the oldest `most` objects of a shared array into slabs. Stops at the first object of another
    /// node, because that node's lock must not be taken while this one is held.
    fn drain_shared(
        &self,
        backing: &Backing<'_, P>,
        (id, node): (NodeId, &Node<P>),
        lists: &mut Lists<P>,
        storage: P::Ptr,
        most: u32,
        doomed: &mut SlabList<P>,
    ) {
        let gone = self.put_run(backing, (id, lists), storage, (0, most), doomed);
        lists.shared.size -= gone;
        node.shared_changed(lists);
        super::list::copy_entries::<P>(storage, gone, storage, 0, lists.shared.size);
    }

    /// Moves up to `most` free slabs to `doomed`, the oldest first.
    pub(super) fn drain_free(
        &self,
        backing: &Backing<'_, P>,
        node: &Node<P>,
        lists: &mut Lists<P>,
        most: u32,
        doomed: &mut SlabList<P>,
    ) -> u32 {
        let mut gone = 0;
        while gone < most
            && let Some(slab) = lists.free.last().filter(|slab| self.can_destroy(backing, *slab))
        {
            lists.free.remove(slab);
            node.sub_free(self.geometry.objects);
            doomed.push_tail(slab);
            gone += 1;
        }
        gone
    }

    /// Empties a CPU's array. The array's storage stays.
    fn empty_array(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>, doomed: &mut SlabList<P>) {
        let array = slot.array();
        if let Some(storage) = array.storage {
            self.put_all(backing, storage, (0, array.size), doomed);
            slot.set_array(HotArray { size: 0, ..array });
        }
    }

    /// A look of the clock: the CPU's array is emptied, and the empty slabs are counted. `None` if the cache
    /// grew since the last look.
    pub(super) fn reapable(&self, backing: &Backing<'_, P>) -> Option<Reapable> {
        let mut grown = false;
        for (id, node) in self.nodes_in_use() {
            grown |= core::mem::take(&mut self.lock_node(id, node).grown);
        }
        if grown {
            return None;
        }
        if let Some(mut slot) = self.slots.local() {
            let mut doomed = SlabList::default();
            self.empty_array(backing, &mut slot, &mut doomed);
            drop(slot);
            self.destroy_slabs(backing, doomed);
        }
        let slabs = self.nodes_in_use().map(|(id, node)| self.lock_node(id, node).free.len()).sum();
        let constructed = self.flags.has(CacheFlags::CONSTRUCTOR);
        Some(Reapable { slabs, order: self.geometry.order, constructed })
    }

    /// Returns up to `most` empty slabs, the oldest first. Returns the number of their pages.
    pub(super) fn return_empty(&self, backing: &Backing<'_, P>, most: u32) -> u64 {
        let (mut doomed, mut left) = (SlabList::default(), most);
        for (id, node) in self.nodes_in_use() {
            let mut lists = self.lock_node(id, node);
            left -= self.drain_free(backing, node, &mut lists, left, &mut doomed);
        }
        self.slots.count(Event::SlabReaped, (most - left) as u64);
        self.destroy_slabs(backing, doomed);
        ((most - left) as u64) << self.geometry.order
    }

    /// The nodes on which the cache was used.
    fn nodes_in_use(&self) -> impl Iterator<Item = (NodeId, &Node<P>)> {
        (0..P::nodes()).map(NodeId).filter_map(|id| Some((id, self.nodes.peek(id)?)))
    }

    /// Empties every array that this call can reach, and returns every free slab. A CPU whose slot is in use
    /// is asked to empty it itself.
    ///
    /// Locks are those of 2.6 and later: of the node for each CPU's array and for each node, also where the
    /// array is empty; of each alien array; of the node for each slab. Those of arrays that were never made
    /// are counted and not taken.
    pub(super) fn empty_all(&self, backing: &Backing<'_, P>) {
        let mut doomed = SlabList::default();
        for cpu in (0..P::cpus()).map(CpuId) {
            match self.slots.used(cpu).then(|| self.reach(cpu)) {
                Some(Some(mut slot)) if slot.array().size > 0 => {
                    self.empty_array(backing, &mut slot, &mut doomed)
                }
                Some(None) => self.slots.ask(cpu),
                _ => self.pass_by(backing, cpu, &mut doomed),
            }
        }
        self.count_unused();
        for (_, node) in self.nodes_in_use() {
            self.empty_aliens(backing, node, &mut doomed);
        }
        for (id, node) in self.nodes_in_use() {
            self.empty_shared(backing, id, node, &mut doomed);
        }
        for (id, node) in self.nodes_in_use() {
            self.return_free(backing, id, node, &mut doomed);
        }
        self.destroy_slabs(backing, doomed);
    }

    /// Empties the array of a CPU that has none or an empty one: takes its node's lock, too, and returns what
    /// the node has above its limit.
    fn pass_by(&self, backing: &Backing<'_, P>, cpu: CpuId, doomed: &mut SlabList<P>) {
        if self.policy.reap == Reap::Clock || !P::cpu_online(cpu) {
            return;
        }
        let home = self.home(cpu);
        match self.nodes.peek(home) {
            Some(node) => self.trim(backing, node, &mut self.lock_node(home, node), doomed),
            None => self.slots.count(Event::LockNodeList, 1),
        }
    }

    /// Counts the locks of nodes and of alien arrays that were never made.
    fn count_unused(&self) {
        if self.policy.reap == Reap::Clock {
            return;
        }
        let (nodes, used) = (P::nodes() as u64, self.nodes_in_use().count() as u64);
        self.slots.count(Event::LockNodeList, nodes - used);
        let unmade = (nodes - used) * (nodes - 1);
        self.slots.count(Event::LockAlien, if self.policy.alien { unmade } else { 0 });
        self.nodes_in_use().for_each(|(_, node)| self.count_unmade(node));
    }

    /// Counts the locks of a node's alien arrays that were never made.
    fn count_unmade(&self, node: &Node<P>) {
        if self.policy.alien {
            let made = (0..P::nodes()).filter(|id| node.aliens.peek(NodeId(*id)).is_some()).count();
            self.slots.count(Event::LockAlien, P::nodes() as u64 - 1 - made as u64);
        }
    }

    fn empty_aliens(&self, backing: &Backing<'_, P>, node: &Node<P>, doomed: &mut SlabList<P>) {
        for id in (0..P::nodes()).map(NodeId) {
            if let Some(alien) = node.aliens.peek(id) {
                self.drain_alien(backing, &mut self.lock_alien(alien), id, doomed);
            }
        }
    }

    /// Empties a node's shared array. It holds objects of other nodes only if there are no alien arrays.
    /// Those objects are put back one at a time, because two nodes' locks are never held together.
    fn empty_shared(&self, backing: &Backing<'_, P>, id: NodeId, node: &Node<P>, doomed: &mut SlabList<P>) {
        loop {
            let mut lists = self.lock_node(id, node);
            let Some(storage) = lists.shared.storage.filter(|_| lists.shared.size > 0) else { return };
            let size = lists.shared.size;
            self.drain_shared(backing, (id, node), &mut lists, storage, size, doomed);
            if lists.shared.size == 0 {
                return;
            }
            lists.shared.size -= 1;
            node.shared_changed(&lists);
            let stranger = super::list::entry::<P>(self.id, storage, lists.shared.size);
            drop(lists);
            self.put_stranger(backing, stranger, doomed);
        }
    }

    /// Stops the reaper on every CPU that this call can reach, and frees the arrays. The cache is empty, and
    /// no other call uses it.
    pub(super) fn drop_arrays(&self, backing: &Backing<'_, P>) {
        for cpu in (0..P::cpus()).map(CpuId).filter(|cpu| self.slots.used(*cpu)) {
            if let Some(mut slot) = self.reach(cpu) {
                slot.reaping = false;
                self.drop_slot_array(backing, slot);
            }
        }
        for node in (0..P::nodes()).map(NodeId).filter_map(|id| self.nodes.peek(id)) {
            let shared = node.peek().shared.retire();
            shared.into_iter().for_each(|storage| self.drop_array(backing, storage));
            for alien in (0..P::nodes()).map(NodeId).filter_map(|id| node.aliens.peek(id)) {
                let storage = self.lock_alien(alien).retire();
                storage.into_iter().for_each(|storage| self.drop_array(backing, storage));
            }
        }
    }

    fn drop_slot_array(&self, backing: &Backing<'_, P>, mut slot: Slot<'_, P>) {
        let array = slot.array();
        debug_assert_eq!(array.size, 0, "an array that goes must be empty");
        slot.set_array(HotArray::NONE);
        drop(slot);
        array.storage.into_iter().for_each(|storage| self.drop_array(backing, storage));
    }

    /// Handles a CPU that went offline: its node retains less, and its array is emptied and freed. If it was
    /// the node's last CPU, the node's shared and alien arrays are emptied too.
    pub(super) fn retire(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        let is_last = |node: NodeId, home: fn(&Self, CpuId) -> NodeId| {
            !(0..P::cpus()).map(CpuId).any(|other| P::cpu_online(other) && home(self, other) == node)
        };
        let (home, id) = (self.home(cpu), P::cpu_node(cpu));
        if id != home {
            self.recount(id, false);
        }
        let mut doomed = SlabList::default();
        let mut slot = self.slots.claim(cpu);
        let node = self.nodes.get(home);
        self.slots.count(Event::LockNodeList, 1);
        let mut lists = node.peek();
        // The limit shrinks before objects come back.
        match lists.free_limit {
            0 => lists.free_limit = self.free_limit_of(home, lists.leaves_out),
            _ if id == home => lists.free_limit = self.shrunk(lists.free_limit),
            _ => {}
        }
        let mut strangers = None;
        if let Some(slot) = &mut slot {
            slot.reaping = false;
            let array = slot.array();
            if let Some(storage) = array.storage {
                let reached =
                    self.put_run(backing, (home, &mut lists), storage, (0, array.size), &mut doomed);
                strangers = (reached < array.size).then_some((storage, reached, array.size));
                slot.set_array(HotArray { size: 0, ..array });
            }
        }
        // Also without objects that come back the node keeps no more than its limit.
        self.trim(backing, node, &mut lists, &mut doomed);
        let last = is_last(home, Self::home);
        if let Some(storage) = lists.shared.storage.filter(|_| last) {
            let size = lists.shared.size;
            self.drain_shared(backing, (home, node), &mut lists, storage, size, &mut doomed);
        }
        let mixed = last && lists.shared.size > 0;
        drop(lists);
        if let Some((storage, from, to)) = strangers {
            self.put_all(backing, storage, (from, to), &mut doomed);
        }
        if mixed {
            self.empty_shared(backing, home, node, &mut doomed);
        }
        if let Some(slot) = slot {
            self.drop_slot_array(backing, slot);
        }
        let free_home = self.free_home(cpu);
        if is_last(free_home, Self::free_home) {
            let node = self.nodes.get(free_home);
            self.count_unmade(node);
            self.empty_aliens(backing, node, &mut doomed);
        }
        self.return_free(backing, home, node, &mut doomed);
        self.destroy_slabs(backing, doomed);
    }

    /// Moves all free slabs of a node to `doomed`, with a lock for each.
    fn return_free(&self, backing: &Backing<'_, P>, id: NodeId, node: &Node<P>, doomed: &mut SlabList<P>) {
        let mut lists = self.open_node(id, node);
        let gone = self.drain_free(backing, node, &mut lists, u32::MAX, doomed);
        self.slots.count(Event::LockNodeList, gone as u64);
    }

    /// The limit of a node that lost a CPU.
    fn shrunk(&self, limit: u32) -> u32 {
        if self.policy.reap == Reap::Clock {
            limit
        } else {
            limit.saturating_sub(self.tunables.batchcount).max(1)
        }
    }

    /// The number of free objects that a node retains: a batch for each of its CPUs, one batch more, and the
    /// objects of one slab. With the clock, all of them. A kernel computes it before a CPU that comes is one
    /// of the node's CPUs: then it `leaves_out` one of them.
    pub(super) fn free_limit_of(&self, id: NodeId, leaves_out: bool) -> u32 {
        if self.policy.reap == Reap::Clock {
            return u32::MAX;
        }
        let is_there = |cpu: &CpuId| P::cpu_online(*cpu) && P::cpu_node(*cpu) == id;
        let cpus = (0..P::cpus()).map(CpuId).filter(is_there).count() as u32;
        (1 + cpus).saturating_sub(leaves_out.into()) * self.tunables.batchcount + self.geometry.objects
    }

    /// Handles a CPU that came online. A kernel takes the node's lock three times: for the limit, and to look
    /// for its arrays.
    pub(super) fn arrive(&self, cpu: CpuId) {
        let id = P::cpu_node(cpu);
        if self.slots.used(cpu)
            && let Some(mut slot) = self.reach(cpu)
        {
            slot.up_ns = P::now();
        }
        if self.nodes.peek(id).is_some() {
            self.slots.count(Event::LockNodeList, 3);
            self.recount(id, true);
        }
    }

    /// Makes the next holder of `list_lock` compute `free_limit` again, because a CPU of the node went up or
    /// down. Computing it here would scan all CPUs once for each CPU that comes up.
    fn recount(&self, id: NodeId, leaves_out: bool) {
        if let Some(node) = self.nodes.peek(id) {
            let mut lists = node.peek();
            (lists.free_limit, lists.leaves_out) = (0, leaves_out);
        }
    }
}
