//! Exchanges of the main sheaf without holding the slot, for the fast rungs of a malloc.
//!
//! They do what [`Slub::swap_in`] and [`Slub::swap_out`] do, if the slot's thread alone can do it at once:
//! the barn's lock is tried, not waited for.

use super::Stock;
use super::barn::Barn;
use crate::engines::slub::{CpuState, Slub};
use slablab_platform::{HotArray, NodeId, PerNode, Platform, Shortcut};

impl<P: Platform> Slub<P> {
    /// Exchanges an empty main sheaf for the spare, or for a full one of the barn.
    #[inline]
    pub(in crate::engines::slub) fn exchange_empty(&self) -> bool
    where
        P::PerCpu<CpuState<P>>: Shortcut<P::Ptr, CpuState<P>>,
    {
        let barn = self.barn_node(P::cpu());
        self.slots.swap_array(|state, main| {
            let empty = main.storage.filter(|_| main.size == 0 && main.capacity == self.sheaf_capacity)?;
            let spare = &state.sheaves.spare;
            if let Some(full) = spare.get().filter(|spare| spare.size > 0) {
                spare.set(Some(Stock::empty(empty)));
                return Some(HotArray { storage: Some(full.sheaf), size: full.size, ..main });
            }
            let full = self.try_barn(barn?, |barn| barn.replace_empty(empty))?;
            Some(HotArray { storage: Some(full), size: main.capacity, ..main })
        })
    }

    /// Exchanges a full main sheaf for a spare with room, or for an empty one of the barn.
    #[inline]
    pub(in crate::engines::slub) fn exchange_full(&self) -> bool
    where
        P::PerCpu<CpuState<P>>: Shortcut<P::Ptr, CpuState<P>>,
    {
        // Where sheaves do not grow, the newest objects do not come along.
        if self.policy.elastic == 0 {
            return false;
        }
        let barn = self.barn_node(P::cpu());
        self.slots.swap_array(|state, main| {
            let full = main.storage.filter(|_| main.size == self.sheaf_capacity)?;
            let spare = &state.sheaves.spare;
            if let Some(room) = spare.get().filter(|spare| spare.size < main.capacity) {
                let (next, left) = self.exchanged_full(main, full, room);
                spare.set(Some(left));
                return Some(next);
            }
            let empty = self.try_barn(barn?, |barn| barn.replace_full(full, self.barn_full).ok())?;
            Some(HotArray { storage: Some(empty), size: 0, ..main })
        })
    }

    /// Calls `f` with a node's barn, if it was made and its lock is free.
    fn try_barn<T>(&self, node: NodeId, f: impl FnOnce(&mut Barn<P>) -> Option<T>) -> Option<T> {
        self.barns.peek(node)?.try_with(f)
    }
}
