//! The life of sheaves: where their memory comes from, where empty ones are kept, how objects leave them for
//! slabs.

use super::barn::{Barn, BarnLock, Refused};
use super::{BATCH_MAX, Stock};
use crate::backing::Backing;
use crate::cache::CacheId;
use crate::damage::{hole, kept_wrong};
use crate::engine::Idle;
use crate::engines::slub::runs::{Checks, WINDOW};
use crate::engines::slub::{Barns, CpuState, Slot, Slub, Tally};
use crate::lent::{Sheaf, word};
use slablab_platform::{CpuId, Event, FrameState, Gfp, HotArray, Local, NodeId, PerCpu, PerNode, Platform};

/// Objects on their way from a sheaf to slabs: at most so many.
pub(super) struct Batch<P: Platform, const MOST: usize = BATCH_MAX> {
    objects: [P::Ptr; MOST],
    count: usize,
}

impl<P: Platform, const MOST: usize> Batch<P, MOST> {
    /// A sheaf's objects from one index up to another, at most `MOST`. `None` if there are none.
    pub(super) fn read(cache: CacheId, sheaf: P::Ptr, from: u32, to: u32) -> Option<Self> {
        let at = |index| {
            P::storage_load(sheaf, word(index)).unwrap_or_else(|| hole::<P>(cache, "a sheaf", sheaf, index))
        };
        if from == to {
            return None;
        }
        let mut objects = [at(from); MOST];
        for (place, index) in objects.iter_mut().zip(from..to).skip(1) {
            *place = at(index);
        }
        Some(Batch { objects, count: (to - from) as usize })
    }

    fn objects(&self) -> &[P::Ptr] {
        &self.objects[..self.count]
    }
}

/// Sheaves' own life.
impl<P: Platform> Slub<P> {
    /// The slot, with a main sheaf. `None` without metadata memory: slabs serve alone.
    pub(super) fn slot_with_main(&self, backing: &Backing<'_, P>) -> Option<Slot<'_, P>> {
        let slot = self.slots.local()?;
        if slot.array().storage.is_some() {
            return Some(slot);
        }
        drop(slot);
        let capacity = self.first_capacity();
        let sheaf = self.new_sheaf(backing, capacity, Gfp::NOWAIT)?;
        let Some(mut slot) = self.slots.local() else {
            self.retire(backing, sheaf);
            return None;
        };
        if slot.array().storage.is_some() {
            let young = capacity < self.sheaf_capacity;
            let left = if young { Some(sheaf) } else { self.stow_empty(&mut slot, sheaf) };
            drop(slot);
            left.into_iter().for_each(|sheaf| self.retire(backing, sheaf));
            return self.slots.local();
        }
        slot.set_array(HotArray { storage: Some(sheaf), size: 0, capacity });
        Some(slot)
    }

    /// Memory for a sheaf. The caller does not hold the slot, because this very cache may serve the request.
    pub(super) fn new_sheaf(&self, backing: &Backing<'_, P>, capacity: u32, gfp: Gfp) -> Option<P::Ptr> {
        let sheaf = Sheaf::new(backing.metadata?, capacity, gfp)?.storage;
        self.slots.count(Event::SheafAlloc, 1);
        Some(sheaf)
    }

    /// Keeps an empty sheaf as the spare or in the barn. Returns the sheaf if neither has room.
    pub(super) fn stow_empty(&self, slot: &mut Slot<'_, P>, sheaf: P::Ptr) -> Option<P::Ptr> {
        if slot.sheaves.spare.get().is_none() {
            slot.sheaves.spare.set(Some(Stock::empty(sheaf)));
            return None;
        }
        let stowed = self.barn_node(slot.cpu()).is_some_and(|barn| self.put_empty(barn, sheaf));
        (!stowed).then_some(sheaf)
    }

    /// Gives an empty sheaf's memory back. If this call has no metadata memory to give it back to, the sheaf
    /// goes to the barn.
    pub(super) fn retire(&self, backing: &Backing<'_, P>, sheaf: P::Ptr) {
        let Some(metadata) = backing.metadata else {
            let cpu = P::cpu();
            // A barn that no CPU uses is emptied when the cache is flushed.
            let node = self.barn_node(cpu).unwrap_or_else(|| P::cpu_node(cpu));
            // Where sheaves grow, this one may be too small for the CPU that takes it from the barn.
            return self.with_barn(node, |barn| match self.policy.elastic {
                0 => barn.force_empty(sheaf),
                _ => barn.put_outgrown(sheaf),
            });
        };
        P::storage_detach(sheaf);
        self.slots.count(Event::SheafFree, 1);
        metadata.free(sheaf);
    }

    /// Frees the objects of a sheaf that no CPU uses to their slabs, newest first: those of a slab together.
    pub(super) fn flush(&self, backing: &Backing<'_, P>, stock: Stock<P>) {
        match self.policy.elastic {
            0 => self.flush_by::<WINDOW>(backing, stock),
            _ => self.flush_by::<BATCH_MAX>(backing, stock),
        }
    }

    fn flush_by<const MOST: usize>(&self, backing: &Backing<'_, P>, stock: Stock<P>) {
        let mut size = stock.size;
        while size > 0 {
            let from = size.saturating_sub(MOST as u32);
            self.free_batch(backing, Batch::<P, MOST>::read(self.id, stock.sheaf, from, size));
            size = from;
        }
    }

    pub(super) fn free_batch<const MOST: usize>(
        &self,
        backing: &Backing<'_, P>,
        batch: Option<Batch<P, MOST>>,
    ) {
        if let Some(batch) = batch {
            self.put_kept(backing, batch.objects());
        }
    }

    /// Frees objects that were in a sheaf. Their callers have been told that the frees succeeded.
    pub(super) fn put_kept(&self, backing: &Backing<'_, P>, objects: &[P::Ptr]) {
        if let Err((misuse, object)) = self.free_runs(backing, objects, Checks::Done, Tally::FLUSH) {
            kept_wrong::<P>(self.id, "a sheaf", object, misuse);
        }
    }

    /// Gives a CPU its main sheaf when the cache is made, as kernels do: for each CPU of the machine.
    pub(in crate::engines::slub) fn start_sheaves(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        let has_none = |slot: &Slot<'_, P>| slot.array().storage.is_none();
        if self.sheaf_capacity == 0
            || self.policy.elastic > 0
            || !self.reach(cpu).as_ref().is_some_and(has_none)
        {
            return;
        }
        let Some(sheaf) = self.new_sheaf(backing, self.sheaf_capacity, Gfp::KERNEL) else { return };
        match self.reach(cpu).filter(has_none) {
            Some(mut slot) => {
                slot.set_array(HotArray { storage: Some(sheaf), size: 0, capacity: self.sheaf_capacity });
            }
            None => self.retire(backing, sheaf),
        }
    }

    /// Takes the main sheaf and the spare out of a slot, for good: the CPU may be down. The RCU sheaf is not
    /// among them.
    pub(super) fn take_sheaves(&self, slot: &mut Slot<'_, P>) -> [Option<Stock<P>>; 2] {
        let main = slot.array();
        self.set_main(slot, HotArray::NONE);
        [main.storage.map(|sheaf| Stock { sheaf, size: main.size }), slot.sheaves.spare.take()]
    }

    /// Frees the objects of sheaves taken from a slot to their slabs, and the sheaves to their cache.
    pub(super) fn flush_taken(&self, backing: &Backing<'_, P>, sheaves: [Option<Stock<P>>; 2]) {
        for stock in sheaves.into_iter().flatten() {
            self.flush(backing, stock);
            self.retire(backing, stock.sheaf);
        }
    }

    /// Empties a CPU's sheaves, without holding the slot meanwhile. The main sheaf stays where sheaves do not
    /// grow.
    pub(in crate::engines::slub) fn flush_sheaves(&self, backing: &Backing<'_, P>, cpu: CpuId) {
        let Some(mut slot) = self.reach(cpu) else { return };
        self.detach_rcu(&mut slot);
        if self.policy.elastic > 0 {
            let taken = self.take_sheaves(&mut slot);
            drop(slot);
            return self.flush_taken(backing, taken);
        }
        let (spare, size) = (slot.sheaves.spare.take(), slot.array().size);
        drop(slot);
        self.flush_taken(backing, [spare, None]);
        // What interrupts put into the main sheaf meanwhile may stay, else a flush might never end.
        for _ in 0..size.div_ceil(self.policy.sheaf_batch.into()) {
            if let Some(slot) = self.reach(cpu).filter(|slot| slot.array().size > 0) {
                self.flush_main_of(backing, slot);
            }
        }
    }

    /// Frees the sheaves of all CPUs that can be reached: the cache goes.
    pub(in crate::engines::slub) fn free_sheaves(&self, backing: &Backing<'_, P>) {
        for cpu in (0..P::cpus()).map(CpuId).filter(|cpu| self.slots.used(*cpu)) {
            if let Some(mut slot) = self.reach(cpu) {
                let taken = self.take_sheaves(&mut slot);
                drop(slot);
                self.flush_taken(backing, taken);
            }
        }
    }

    /// Empties every barn as kernels do: all sheaves of one leave it under one lock.
    fn empty_barns(&self, backing: &Backing<'_, P>) {
        for node in (0..P::nodes()).map(NodeId).filter(|node| self.has_barn(*node)) {
            let [mut full, mut empty] =
                self.with_barn(node, |barn| barn.take_all(backing.metadata.is_some()));
            while let Some(sheaf) = full.pop() {
                self.flush_taken(backing, [Some(Stock { sheaf, size: self.sheaf_capacity }), None]);
            }
            while let Some(sheaf) = empty.pop() {
                self.retire(backing, sheaf);
            }
        }
    }

    /// Empties every barn, or where sheaves grow, takes out what was idle: at most `most` full sheaves. True
    /// if there may be more.
    pub(in crate::engines::slub) fn flush_barns(
        &self,
        backing: &Backing<'_, P>,
        idle: Idle,
        mut most: u32,
    ) -> bool {
        if self.policy.elastic == 0 {
            self.empty_barns(backing);
            return false;
        }
        let all = idle == Idle::All;
        let nodes = || (0..P::nodes()).map(NodeId).filter(|node| self.barns.peek(*node).is_some());
        let has_idle = || nodes().any(|node| self.with_barn(node, |barn| barn.has_idle_full()));
        // A call that goes on with a shrink finds the sheaves that the one before left, and ends no period.
        if !all && !has_idle() {
            nodes().for_each(|node| self.with_barn(node, Barn::end_period));
        }
        for node in nodes() {
            let full = if all { Barn::get_full } else { Barn::get_idle_full };
            while let Some(sheaf) = self.with_barn(node, full) {
                self.flush_taken(backing, [Some(Stock { sheaf, size: self.sheaf_capacity }), None]);
                most = most.saturating_sub(1);
                if most == 0 && (all || has_idle()) {
                    return true;
                }
            }
            let empty = if all { Barn::get_empty } else { Barn::get_idle_empty };
            while backing.metadata.is_some()
                && let Some(sheaf) = self.with_barn(node, empty)
            {
                self.retire(backing, sheaf);
            }
            while backing.metadata.is_some()
                && let Some(outgrown) = self.with_barn(node, Barn::get_outgrown)
            {
                self.retire(backing, outgrown);
            }
        }
        false
    }

    /// Full sheaves of all barns: about, without a lock.
    pub(in crate::engines::slub) fn full_sheaves(&self) -> u32 {
        let barns = (0..P::nodes()).filter_map(|node| self.barns.peek(NodeId(node)));
        barns.map(BarnLock::full).sum()
    }

    pub(super) fn with_barn<T>(&self, node: NodeId, f: impl FnOnce(&mut Barn<P>) -> T) -> T {
        self.slots.count(Event::LockBarn, 1);
        self.barns.get(node).with(f)
    }

    /// An empty sheaf of a node's barn, which is not locked if it has none.
    pub(super) fn get_empty(&self, node: NodeId) -> Option<P::Ptr> {
        if !self.barns.get(node).has_empty() {
            return None;
        }
        self.with_barn(node, Barn::get_empty)
    }

    /// A full sheaf of a node's barn for an empty one. The barn is not locked if it has none, unless it goes
    /// by demand.
    pub(super) fn replace_empty(&self, node: NodeId, empty: P::Ptr) -> Option<P::Ptr> {
        if self.barns.get(node).has_full() {
            return self.with_barn(node, |barn| barn.replace_empty(empty));
        }
        if self.policy.elastic > 0 {
            self.with_barn(node, Barn::miss);
        }
        None
    }

    /// An empty sheaf of a node's barn for a full one. The barn is not locked if it takes none or has none.
    pub(super) fn replace_full(&self, node: NodeId, full: P::Ptr) -> Result<P::Ptr, Refused> {
        let barn = self.barns.get(node);
        if !barn.takes_full(self.barn_full) {
            return Err(Refused::TooMany);
        }
        let goes_by_demand = self.policy.elastic > 0;
        if !barn.has_empty() && !goes_by_demand {
            return Err(Refused::NoEmpty);
        }
        self.with_barn(node, |barn| {
            let replaced = barn.replace_full(full, self.barn_room());
            if goes_by_demand && replaced == Err(Refused::TooMany) {
                barn.pass_on();
            }
            replaced
        })
    }

    /// Puts a full sheaf into a node's barn. False if the barn is at its limit.
    pub(super) fn put_full(&self, node: NodeId, sheaf: P::Ptr) -> bool {
        self.with_barn(node, |barn| barn.put_full(sheaf, self.barn_room()))
    }

    /// Puts an empty sheaf into a node's barn. False if the barn is at its limit.
    pub(super) fn put_empty(&self, node: NodeId, sheaf: P::Ptr) -> bool {
        self.with_barn(node, |barn| barn.put_empty(sheaf, self.policy.max_empty_sheaves.into()))
    }

    /// The node whose barn a CPU uses. `None` if that node has no barn: until 7.0 the barn was part of what
    /// the cache has for each node with memory.
    pub(super) fn barn_node(&self, cpu: CpuId) -> Option<NodeId> {
        let node = self.sheaf_node(cpu);
        self.has_barn(node).then_some(node)
    }

    /// The node that a CPU's sheaves belong to, with a barn or without.
    pub(super) fn sheaf_node(&self, cpu: CpuId) -> NodeId {
        match self.policy.barns {
            Barns::MemoryNodes => P::cpu_memory_node(cpu),
            Barns::OnlineNodes => P::cpu_node(cpu),
        }
    }

    /// Whether a node has a barn.
    pub(super) fn has_barn(&self, node: NodeId) -> bool {
        self.policy.barns == Barns::OnlineNodes || P::nodes() == 1 || P::node_frames(node).1 > 0
    }

    /// Whether this CPU's sheaves take objects of a slab in this state: it is local, and not of the reserves.
    #[inline]
    pub(super) fn takes(&self, state: FrameState) -> bool {
        !state.reserve && self.takes_node(state.node)
    }

    /// Whether this CPU's sheaves take objects of a node.
    #[inline]
    pub(in crate::engines::slub) fn takes_node(&self, node: NodeId) -> bool {
        node == P::memory_node() || self.takes_any_node()
    }

    /// Whether this CPU's sheaves take objects of any node: its memory node has no memory, so no object is
    /// local (7.1).
    #[cold]
    #[inline]
    pub(in crate::engines::slub) fn takes_any_node(&self) -> bool {
        self.policy.barns == Barns::OnlineNodes && P::node_frames(P::memory_node()).1 == 0
    }
}

/// Counts of the objects that sheaves hold, for reports.
impl<P: Platform> Slub<P> {
    pub(in crate::engines::slub) fn parked_in_barns(&self, node: Option<NodeId>) -> u64 {
        let barns = (0..P::nodes()).filter_map(|barn| self.barns.peek(NodeId(barn)));
        let full = |barn: &BarnLock<P>| -> u64 {
            barn.lock().full().map(|sheaf| Self::of_node(sheaf, self.sheaf_capacity, node)).sum()
        };
        barns.map(full).sum()
    }

    pub(in crate::engines::slub) fn parked_in_sheaves(
        &self,
        slot: &Slot<'_, P>,
        node: Option<NodeId>,
    ) -> u64 {
        let state: &CpuState<P> = slot;
        let main = slot.array();
        let main = main.storage.map_or(0, |sheaf| Self::of_node(sheaf, main.size, node));
        main + state.sheaves.spare.get().map_or(0, |spare| Self::of_node(spare.sheaf, spare.size, node))
    }

    /// A sheaf's objects of a node, or of all.
    fn of_node(sheaf: P::Ptr, size: u32, node: Option<NodeId>) -> u64 {
        let objects = (0..size).filter_map(|index| P::storage_load(sheaf, word(index)));
        match node.filter(|_| P::nodes() > 1) {
            None => size as u64,
            Some(node) => objects.filter(|object| Self::node_of(*object) == Some(node)).count() as u64,
        }
    }
}
