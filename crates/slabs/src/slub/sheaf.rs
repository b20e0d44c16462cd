//! Sheaves in front of the CPU slab: 6.18, for caches that ask for them (reference/sheaves.md 1 to 4).
//!
//! A sheaf is a bounded array of object addresses. Each CPU has a main sheaf (the slot's hot array) and a spare that is
//! either full or empty; each node has a barn of at most ten full and ten empty sheaves. Sheaves hold objects of the
//! CPU's own memory node only. A sheaf is itself an object of a kmalloc class and counts there.
//!
//! Lock order: the barn's lock is never held while slabs are touched.

use super::{CpuState, Slot, Slub, Tally};
use crate::engine::{Backing, Misuse};
use crate::slab::Slab;
use slablab_pages::Pages;
use slablab_platform::{Event, Gfp, HotArray, Local, Lock, NodeId, PerCpu, PerNode, Platform, rank};

/// `MAX_FULL_SHEAVES` and `MAX_EMPTY_SHEAVES`.
const BARN_LIMIT: usize = 10;

/// The part of a slot that the hot array does not hold: the spare sheaf, full or empty.
pub(super) struct CpuSheaves<P: Platform> {
    spare: Option<(P::Ptr, bool)>,
}

impl<P: Platform> Default for CpuSheaves<P> {
    fn default() -> Self {
        CpuSheaves { spare: None }
    }
}

/// A node's sheaves.
pub(super) struct Barn<P: Platform> {
    full: Stack<P::Ptr>,
    empty: Stack<P::Ptr>,
}

struct Stack<Ptr> {
    sheaves: [Option<Ptr>; BARN_LIMIT],
    len: usize,
}

impl<Ptr: Copy> Stack<Ptr> {
    const NEW: Self = Stack { sheaves: [None; BARN_LIMIT], len: 0 };

    fn push(&mut self, sheaf: Ptr) -> bool {
        let room = self.len < BARN_LIMIT;
        if room {
            self.sheaves[self.len] = Some(sheaf);
            self.len += 1;
        }
        room
    }

    fn pop(&mut self) -> Option<Ptr> {
        self.len = self.len.checked_sub(1)?;
        self.sheaves[self.len].take()
    }
}

impl<P: Platform> Default for Barn<P> {
    fn default() -> Self {
        Barn { full: Stack::NEW, empty: Stack::NEW }
    }
}

impl<P: Platform> Slub<P> {
    #[inline]
    pub(super) fn alloc_from_sheaf(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        node: Option<NodeId>,
    ) -> Option<P::Ptr> {
        if node.is_none_or(|node| node == P::cpu_memory_node(P::cpu())) {
            if let Some(object) = self.slots.pop(Event::AllocFastpath) {
                return Some(object);
            }
            if self.next_full_sheaf(backing, gfp)
                && let Some(object) = self.slots.pop(Event::AllocFastpath)
            {
                return Some(object);
            }
        }
        self.alloc_from_slab(backing, gfp, node, Tally::ALLOC)
    }

    /// Makes the main sheaf hold objects: the spare, one from the barn, or one filled from slabs.
    #[cold]
    #[inline(never)]
    fn next_full_sheaf(&self, backing: &Backing<'_, P>, gfp: Gfp) -> bool {
        let Some(mut slot) = self.slots.local() else { return false };
        if !self.has_main(backing, &mut slot) {
            return false;
        }
        let main = slot.array();
        if let Some((spare, true)) = slot.sheaves.spare {
            slot.sheaves.spare = main.storage.map(|empty| (empty, false));
            slot.set_array(HotArray { storage: Some(spare), size: main.capacity, ..main });
            return true;
        }
        let home = P::cpu_memory_node(slot.cpu());
        if let Some(full) = self.with_barn(home, |barn| {
            let full = barn.full.pop()?;
            barn.empty.push(main.storage?);
            Some(full)
        }) {
            slot.count(Event::BarnGet, 1);
            slot.set_array(HotArray { storage: Some(full), size: main.capacity, ..main });
            return true;
        }
        slot.count(Event::BarnGetFail, 1);
        if !gfp.any(Gfp::DIRECT_RECLAIM) {
            return false;
        }
        drop(slot);
        self.refill_main(backing, gfp)
    }

    /// Fills the main sheaf from slabs, outside the slot as the slabs' own slow path needs it.
    fn refill_main(&self, backing: &Backing<'_, P>, gfp: Gfp) -> bool {
        let gfp = (gfp | Gfp::NOMEMALLOC | Gfp::NOWARN) & !(Gfp::ZERO | Gfp::MEMALLOC);
        for got in 0..self.sheaf_capacity {
            let home = P::cpu_memory_node(P::cpu());
            let Some(object) = self.alloc_from_slab(backing, gfp, None, Tally::REFILL) else {
                return got > 0;
            };
            let local = Slab::<P>::of(object).is_some_and(|(_, state)| state.node == home);
            if !local || !self.slots.push(object, Event::SheafRefill) {
                // A remote object is of no use in a sheaf; a sheaf somebody filled meanwhile has no room.
                let _ = self.free_to_slab(backing, object, Tally::FLUSH);
                return got > 0;
            }
        }
        true
    }

    #[inline]
    pub(super) fn free_to_sheaf(&self, backing: &Backing<'_, P>, object: P::Ptr) -> Result<(), Misuse> {
        let Some((pfn, state)) = Pages::<P>::block_of(object) else {
            return Err(Misuse::NotInSlab);
        };
        if state.node == P::cpu_memory_node(P::cpu()) {
            // An address in an array is trusted later: the check cannot wait for the slab.
            self.check(object, pfn, state)?;
            if self.slots.push(object, Event::FreeFastpath)
                || (self.next_empty_sheaf(backing) && self.slots.push(object, Event::FreeFastpath))
            {
                return Ok(());
            }
        }
        self.free_to_slab(backing, object, Tally::FREE)
    }

    /// Makes the main sheaf have room: the empty spare, an empty one from the barn for the full, a new one, or a flush.
    #[cold]
    #[inline(never)]
    fn next_empty_sheaf(&self, backing: &Backing<'_, P>) -> bool {
        let Some(mut slot) = self.slots.local() else { return false };
        if !self.has_main(backing, &mut slot) {
            return false;
        }
        let main = slot.array();
        let Some(full) = main.storage.filter(|_| main.size == main.capacity) else { return true };
        let home = P::cpu_memory_node(slot.cpu());
        match slot.sheaves.spare {
            None => {
                let empty = self.with_barn(home, |barn| barn.empty.pop());
                let Some(empty) = empty.or_else(|| self.new_sheaf(backing, &mut slot)) else {
                    return false;
                };
                slot.sheaves.spare = Some((full, true));
                slot.set_array(HotArray { storage: Some(empty), size: 0, ..main });
            }
            Some((empty, false)) => {
                slot.sheaves.spare = Some((full, true));
                slot.set_array(HotArray { storage: Some(empty), size: 0, ..main });
            }
            Some((spare, true)) => return self.store_full(backing, slot, full, spare),
        }
        true
    }

    /// Main and spare are full: the barn takes one, or the spare's objects go to their slabs.
    fn store_full(
        &self,
        backing: &Backing<'_, P>,
        mut slot: Slot<'_, P>,
        full: P::Ptr,
        spare: P::Ptr,
    ) -> bool {
        let main = slot.array();
        let home = P::cpu_memory_node(slot.cpu());
        let stored = self.with_barn(home, |barn| barn.full.push(full).then(|| barn.empty.pop()));
        match stored {
            Some(Some(empty)) => {
                slot.count(Event::BarnPut, 1);
                slot.set_array(HotArray { storage: Some(empty), size: 0, ..main });
            }
            Some(None) => {
                slot.count(Event::BarnPut, 1);
                let empty = self.new_sheaf(backing, &mut slot);
                slot.set_array(match empty {
                    Some(empty) => HotArray { storage: Some(empty), size: 0, ..main },
                    None => HotArray::NONE,
                });
                return empty.is_some();
            }
            None => {
                slot.count(Event::BarnPutFail, 1);
                slot.sheaves.spare = Some((full, true));
                slot.set_array(HotArray::NONE);
                drop(slot);
                self.flush(backing, spare, main.capacity);
                let Some(mut slot) = self.slots.local() else { return false };
                slot.set_array(HotArray { storage: Some(spare), size: 0, ..main });
            }
        }
        true
    }

    /// A slot's first sheaf. Without metadata memory there is none, and the CPU slab serves alone.
    fn has_main(&self, backing: &Backing<'_, P>, slot: &mut Slot<'_, P>) -> bool {
        if slot.array().storage.is_some() {
            return true;
        }
        let storage = self.new_sheaf(backing, slot);
        if storage.is_some() {
            slot.set_array(HotArray { storage, size: 0, capacity: self.sheaf_capacity });
        }
        storage.is_some()
    }

    fn new_sheaf(&self, backing: &Backing<'_, P>, slot: &mut impl Local<P, CpuState<P>>) -> Option<P::Ptr> {
        let words = HotArray::<P::Ptr>::HEADER + self.sheaf_capacity;
        let sheaf = backing.metadata?.alloc(words * 8, Gfp::NOWAIT | Gfp::NO_OBJ_EXT)?;
        P::storage_attach(sheaf, words);
        slot.count(Event::SheafAlloc, 1);
        Some(sheaf)
    }

    /// Objects of a sheaf go to their slabs, last in first.
    fn flush(&self, backing: &Backing<'_, P>, sheaf: P::Ptr, size: u32) {
        for index in (0..size).rev() {
            let object =
                P::storage_load(sheaf, HotArray::<P::Ptr>::HEADER + index).expect("a sheaf has no holes");
            self.free_to_slab(backing, object, Tally::FLUSH).expect("a sheaf holds this cache's objects");
        }
    }

    fn drop_sheaf(&self, backing: &Backing<'_, P>, sheaf: P::Ptr) {
        P::storage_detach(sheaf);
        self.slots.count(Event::SheafFree, 1);
        backing.metadata.expect("sheaves came from metadata memory").free(sheaf);
    }

    /// Empties a slot's sheaves; they are kept out of the slot afterwards, as the CPU may be down.
    pub(super) fn take_sheaves(slot: &mut Slot<'_, P>) -> [Option<(P::Ptr, u32)>; 2] {
        let main = slot.array();
        slot.set_array(HotArray::NONE);
        let spare = slot.sheaves.spare.take();
        [
            main.storage.map(|sheaf| (sheaf, main.size)),
            spare.map(|(sheaf, full)| (sheaf, if full { main.capacity } else { 0 })),
        ]
    }

    /// Objects of sheaves taken from a slot go to their slabs, the sheaves to their cache.
    pub(super) fn flush_taken(&self, backing: &Backing<'_, P>, sheaves: [Option<(P::Ptr, u32)>; 2]) {
        for (sheaf, size) in sheaves.into_iter().flatten() {
            self.flush(backing, sheaf, size);
            self.drop_sheaf(backing, sheaf);
        }
    }

    /// Empties every barn.
    pub(super) fn flush_barns(&self, backing: &Backing<'_, P>) {
        for node in (0..P::nodes()).map(NodeId) {
            while let Some(full) = self.with_barn(node, |barn| barn.full.pop()) {
                self.flush(backing, full, self.sheaf_capacity);
                self.drop_sheaf(backing, full);
            }
            while let Some(empty) = self.with_barn(node, |barn| barn.empty.pop()) {
                self.drop_sheaf(backing, empty);
            }
        }
    }

    fn with_barn<T>(&self, node: NodeId, f: impl FnOnce(&mut Barn<P>) -> T) -> T {
        self.slots.count(Event::LockBarn, 1);
        f(&mut self.barns.get(node).lock())
    }

    pub(super) fn parked_in_barn(&self, node: NodeId) -> u64 {
        let Some(barn) = self.barns.peek(node) else { return 0 };
        barn.lock().full.len as u64 * self.sheaf_capacity as u64
    }

    pub(super) fn parked_in_sheaves(&self, slot: &Slot<'_, P>, node: NodeId) -> u64 {
        // A sheaf holds objects of its CPU's memory node only.
        if P::cpu_memory_node(slot.cpu()) != node {
            return 0;
        }
        let spare = matches!(slot.sheaves.spare, Some((_, true)));
        slot.array().size as u64 + if spare { self.sheaf_capacity as u64 } else { 0 }
    }
}

/// A barn under its lock, one per node.
pub(super) type Barns<P> = <P as Platform>::PerNode<BarnLock<P>>;

/// A barn's lock.
pub(super) struct BarnLock<P: Platform>(<P as Platform>::Lock<rank::Barn, Barn<P>>);

impl<P: Platform> Default for BarnLock<P> {
    fn default() -> Self {
        BarnLock(P::Lock::new(Barn::default()))
    }
}

impl<P: Platform> BarnLock<P> {
    fn lock(&self) -> <P::Lock<rank::Barn, Barn<P>> as Lock<Barn<P>>>::Guard<'_> {
        self.0.lock()
    }
}
