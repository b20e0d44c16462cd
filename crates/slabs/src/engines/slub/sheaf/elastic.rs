//! Sheaves that grow with their use: no kernel has them. For programs, which have many threads and longer
//! bursts.
//!
//! A slot begins with a small sheaf. It grows whenever it is empty or full, until it has the cache's
//! capacity, or until those of all caches on its CPU are too large together; while it is small it is refilled
//! by a few objects. A full-grown full sheaf that is exchanged for the
//! spare leaves it a few objects, so that a program at the border does not exchange the two with every call.
//! Barns hold many sheaves where CPUs draw them again, and few where CPUs only bring them: the next ones go
//! to slabs. What barns hold goes by time, too: in a periodic shrink the sheaves leave that nobody needed
//! since the one before.
//!
//! A main sheaf with less than the cache's capacity is *young*. Only a slot has one, as its main sheaf;
//! spares and barns know full-grown ones alone.

use super::Stock;
use super::barn::{BarnLock, Room};
use crate::backing::Backing;
use crate::engines::slub::{Slot, Slub, SlubPolicy};
use crate::lent::word;
use slablab_platform::{CpuId, Gfp, HotArray, Local, NodeId, PerCpu, PerNode, Platform};

/// Bytes of objects that a sheaf is refilled with for each object it can hold; at least one object.
const REFILL_BYTES: u32 = 64;
/// Bytes of objects in a barn's full sheaves; at least one sheaf.
const BARN_BYTES: u32 = 32 << 20;
/// Most full sheaves of a barn.
const BARN_SHEAVES: u32 = 2048;
/// A barn that no CPU drew from holds this part of its full sheaves, as a shift: 128 KiB of objects, or one
/// sheaf. All classes of malloc then hold a few MiB.
const UNDRAWN_SHIFT: u32 = 8;
/// Objects of more bytes than this are large. Programs use many sizes of them, and have few objects of each:
/// a barn that no CPU drew from then holds one sheaf.
pub const LARGE_OVER: u32 = 2 << 10;
/// Full sheaves of barns that a call of a periodic shrink empties.
pub(in crate::engines::slub) const SHEAVES_A_CALL: u32 = 4;
/// Bytes of objects that the main sheaves of a CPU's slots may have room for beyond the first ones' capacity,
/// in all caches, before they grow no more. A spare is as large as its main sheaf. More than what all classes
/// of malloc take, 1.8 MiB: a program whose blocks are of all sizes would use slabs for each of them.
const CPU_BYTES: u64 = 4 << 20;
/// A cache sinks when its listed slabs waste so many bytes,
const SINKS_BYTES: u64 = 256 << 10;
/// and when this part of their objects at most is in use.
const SINKS_FRACTION: u64 = 8;
/// Objects that a slot keeps at hand when its full main sheaf is exchanged. Of a sheaf with less than twice
/// as many, which large objects have, a quarter: the exchange then serves more calls.
const NEAR: u32 = 16;

/// Full sheaves that a barn may keep, if a sheaf holds `sheaf_bytes` bytes of objects.
pub(in crate::engines::slub) fn barn_full(policy: &SlubPolicy, sheaf_bytes: u32) -> u32 {
    if policy.elastic == 0 {
        return policy.max_full_sheaves.into();
    }
    (BARN_BYTES / sheaf_bytes.max(1)).clamp(1, BARN_SHEAVES)
}

impl<P: Platform> Slub<P> {
    /// How many full sheaves a barn may hold.
    #[inline]
    pub(super) fn barn_room(&self) -> Room {
        let most = self.barn_full;
        let undrawn = match self.policy.elastic {
            0 => most,
            _ if self.geometry.size > LARGE_OVER => 1,
            _ => (most >> UNDRAWN_SHIFT).max(1),
        };
        Room { most, undrawn }
    }

    /// Objects that a slot's first sheaf holds.
    pub(super) fn first_capacity(&self) -> u32 {
        if self.policy.elastic == 0 {
            self.sheaf_capacity
        } else {
            u32::from(self.policy.elastic).min(self.sheaf_capacity)
        }
    }

    /// Whether a slot has a main sheaf that can grow.
    #[inline]
    pub(super) fn is_young(&self, main: &HotArray<P::Ptr>) -> bool {
        main.storage.is_some() && main.capacity < self.sheaf_capacity
    }

    /// Objects that a sheaf of this capacity is refilled with.
    pub(super) fn refill_of(&self, capacity: u32) -> u32 {
        match self.policy.elastic {
            0 => capacity,
            _ => (REFILL_BYTES * capacity / self.geometry.size).clamp(1, capacity),
        }
    }

    /// The next capacity: about twice as much, in a storage of twice the size.
    fn grown(&self, capacity: u32) -> u32 {
        (capacity * 2 + HotArray::<()>::HEADER).min(self.sheaf_capacity)
    }

    /// Whether the main sheaf of a slot may grow: those of all caches on its CPU together are not too large.
    fn may_grow(slot: &Slot<'_, P>) -> bool {
        slot.reserved() < CPU_BYTES
    }

    /// Gives a slot a main sheaf of another capacity, and counts what it has room for.
    pub(super) fn set_main(&self, slot: &mut Slot<'_, P>, main: HotArray<P::Ptr>) {
        slot.set_array(main);
        let more = main.capacity.saturating_sub(self.first_capacity());
        let bytes = more.saturating_mul(self.geometry.size);
        let before = core::mem::replace(&mut slot.sheaves.reserved, bytes);
        if bytes != before {
            slot.reserve(i64::from(bytes) - i64::from(before));
        }
    }

    /// Fills an empty young sheaf by a few objects, in a larger storage if it may grow. True if the main
    /// sheaf then holds objects.
    pub(super) fn refill_young(&self, backing: &Backing<'_, P>, gfp: Gfp) -> bool {
        let Some(mut slot) = self.slots.local() else { return false };
        let main = slot.array();
        let Some(young) = main.storage.filter(|_| self.is_young(&main) && main.size == 0) else {
            return main.size > 0;
        };
        let grows = Self::may_grow(&slot);
        // Out of the slot, the sheaf is this call's alone while it is filled.
        self.set_main(&mut slot, HotArray::NONE);
        let spare = slot.sheaves.spare.get().filter(|spare| spare.size > 0);
        if let Some(spare) = spare {
            slot.sheaves.spare.set(None);
            let capacity = self.sheaf_capacity;
            let main = HotArray { storage: Some(spare.sheaf), size: spare.size, capacity };
            self.set_main(&mut slot, main);
            drop(slot);
            self.retire(backing, young);
            return true;
        }
        drop(slot);
        let capacity = self.grown(main.capacity);
        let larger = if grows { self.new_sheaf(backing, capacity, gfp) } else { None };
        let (sheaf, capacity) = match larger {
            Some(grown) => {
                self.retire(backing, young);
                (grown, capacity)
            }
            None => (young, main.capacity),
        };
        let most = self.refill_of(main.capacity).min(capacity);
        let size = self.fill(backing, gfp, Stock::empty(sheaf), most);
        self.install_young(backing, HotArray { storage: Some(sheaf), size, capacity })
    }

    /// Whether nobody used a CPU's main sheaf since the last call, as far as one can see: it has as many
    /// objects. Where sheaves do not grow, a shrink empties all.
    pub(in crate::engines::slub) fn is_slot_idle(&self, cpu: CpuId) -> bool {
        if self.policy.elastic == 0 {
            return true;
        }
        let Some(mut slot) = self.reach(cpu) else { return true };
        let now = slot.array().size + 1;
        core::mem::replace(&mut slot.sheaves.seen, now) == now
    }

    /// Notes whether the cache sinks, after its slots and barns were emptied: then each object that a sheaf
    /// keeps may be the last one of its slab. So no sheaf is made for freed objects, and young ones do not
    /// grow, until one is refilled.
    pub(in crate::engines::slub) fn note_sinking(&self) {
        for node in (0..P::nodes()).map(NodeId).filter(|node| self.barns.peek(*node).is_some()) {
            let (mut objects, mut free) = (0, 0);
            let list = self.lock_node_unslotted(node);
            let mut next = list.first();
            for _ in 0..list.len() {
                let Some(slab) = next else { break };
                next = slab.next();
                let word = slab.word();
                objects += u64::from(word.objects);
                free += u64::from(word.free());
            }
            drop(list);
            let wastes = free * u64::from(self.geometry.size) > SINKS_BYTES;
            self.barns.get(node).set_sinks(wastes && (objects - free) * SINKS_FRACTION <= objects);
        }
    }

    /// Whether the cache sinks, for the CPU of a slot.
    fn sinks(&self, slot: &Slot<'_, P>) -> bool {
        let barn = self.barn_node(slot.cpu()).and_then(|node| self.barns.peek(node));
        barn.is_some_and(BarnLock::sinks)
    }

    /// Whether a freed object goes to its slab: the slot has no sheaf, and the cache sinks.
    pub(super) fn does_without_sheaf(&self) -> bool {
        let has_none = |slot: &Slot<'_, P>| slot.array().storage.is_none();
        self.policy.elastic > 0 && self.slots.local().is_some_and(|slot| has_none(&slot) && self.sinks(&slot))
    }

    /// Notes that a sheaf is refilled: the cache does not sink any more.
    pub(super) fn note_rising(&self) {
        let barn = self.barn_node(P::cpu()).and_then(|node| self.barns.peek(node));
        barn.into_iter().for_each(|barn| barn.set_sinks(false));
    }

    /// Moves a full young sheaf's objects to a larger one, if it may grow. True if the main sheaf then has
    /// room.
    pub(super) fn grow_young(&self, backing: &Backing<'_, P>) -> bool {
        let Some(slot) = self.slots.local().filter(Self::may_grow) else { return false };
        if self.sinks(&slot) {
            return false;
        }
        let capacity = self.grown(slot.array().capacity);
        drop(slot);
        let Some(grown) = self.new_sheaf(backing, capacity, Gfp::NOWAIT) else { return false };
        let Some(mut slot) = self.slots.local() else {
            self.retire(backing, grown);
            return false;
        };
        let main = slot.array();
        let young = main.storage.filter(|_| self.is_young(&main) && main.size < capacity);
        if let Some(young) = young {
            Self::copy(young, 0, grown, 0, main.size);
            self.set_main(&mut slot, HotArray { storage: Some(grown), size: main.size, capacity });
        }
        let room = slot.array().size < slot.array().capacity;
        drop(slot);
        self.retire(backing, young.unwrap_or(grown));
        room
    }

    /// Makes a sheaf, filled while the slot was released, the main sheaf. If the slot has one again, the
    /// objects go to slabs.
    fn install_young(&self, backing: &Backing<'_, P>, array: HotArray<P::Ptr>) -> bool {
        let mut slot = self.slots.local();
        if let Some(slot) = slot.as_mut().filter(|slot| slot.array().storage.is_none()) {
            self.set_main(slot, array);
            return array.size > 0;
        }
        drop(slot);
        let stock = array.storage.map(|sheaf| Stock { sheaf, size: array.size });
        self.flush_taken(backing, [stock, None]);
        false
    }

    /// Readies a spare with room for the exchange with the full main sheaf, which has `size` objects: where
    /// sheaves grow, the newest objects go to the spare until that holds [`NEAR`] of them, so that a program
    /// at the border does not exchange the two with every call. Returns how many objects stay.
    pub(super) fn leave_full(&self, full: P::Ptr, size: u32, spare: Stock<P>) -> u32 {
        if self.policy.elastic == 0 {
            return size;
        }
        let near = if self.sheaf_capacity < 2 * NEAR { self.sheaf_capacity / 4 } else { NEAR };
        let along = near.saturating_sub(spare.size);
        Self::copy(full, size - along, spare.sheaf, spare.size, along);
        size - along
    }

    pub(super) fn copy(from: P::Ptr, first: u32, to: P::Ptr, at: u32, count: u32) {
        for index in 0..count {
            P::storage_store(to, word(at + index), P::storage_load(from, word(first + index)));
        }
    }
}
