//! Exchanges of the main sheaf without holding the slot, for the slow rungs of a malloc.
//!
//! They do what [`Slub::swap_in`] and [`Slub::swap_out`] do, if the slot's thread alone can do it at once:
//! the barn's lock is tried, not waited for.

use super::Stock;
use super::barn::Barn;
use crate::damage::hole;
use crate::engines::slub::{CpuState, Slub};
use crate::lent::word;
use slablab_platform::{Event, HotArray, NodeId, PerCpu, PerNode, Platform, Shortcut};

impl<P: Platform> Slub<P> {
    /// Exchanges an empty main sheaf for the spare, or for a full one of the barn, and takes its last object.
    #[inline(never)]
    pub(in crate::engines::slub) fn pop_exchanged(&self) -> Option<P::Ptr>
    where
        P::PerCpu<CpuState<P>>: Shortcut<P::Ptr, CpuState<P>>,
    {
        let barn = self.barn_here();
        let object = self.slots.swap_array(|state, main| {
            let empty = main.storage.filter(|_| main.size == 0 && main.capacity == self.sheaf_capacity)?;
            let spare = &state.sheaves.spare;
            let next = match spare.get().filter(|spare| spare.size > 0) {
                Some(full) => {
                    spare.set(Some(Stock::empty(empty)));
                    full
                }
                None => {
                    let full = self.try_barn(barn?, |barn| barn.replace_empty(empty))?;
                    Stock { sheaf: full, size: main.capacity }
                }
            };
            let size = next.size - 1;
            let object = P::storage_load(next.sheaf, word(size))
                .unwrap_or_else(|| hole::<P>(self.id, "a sheaf", next.sheaf, size));
            Some((HotArray { storage: Some(next.sheaf), size, ..main }, object))
        })?;
        self.slots.count(Event::AllocFastpath, 1);
        Some(object)
    }

    /// Exchanges a full main sheaf for a spare with room, or for an empty one of the barn, and puts an object
    /// into it.
    #[inline(never)]
    pub(in crate::engines::slub) fn push_exchanged(&self, object: P::Ptr) -> bool
    where
        P::PerCpu<CpuState<P>>: Shortcut<P::Ptr, CpuState<P>>,
    {
        // Where sheaves do not grow, the newest objects do not come along.
        if self.policy.elastic == 0 {
            return false;
        }
        let barn = self.barn_here();
        let swapped = self.slots.swap_array(|state, main| {
            let full = main.storage.filter(|_| main.size == self.sheaf_capacity)?;
            let spare = &state.sheaves.spare;
            let (sheaf, size) = match spare.get().filter(|spare| spare.size < main.capacity) {
                Some(room) => {
                    let left = self.leave_full(full, main.size, room);
                    spare.set(Some(Stock { sheaf: full, size: left }));
                    (room.sheaf, room.size + main.size - left)
                }
                None => {
                    let replaced =
                        self.try_barn(barn?, |barn| barn.replace_full(full, self.barn_room()).ok());
                    (replaced?, 0)
                }
            };
            P::storage_store(sheaf, word(size), Some(object));
            Some((HotArray { storage: Some(sheaf), size: size + 1, ..main }, ()))
        });
        if swapped.is_some() {
            self.slots.count(Event::FreeFastpath, 1);
        }
        swapped.is_some()
    }

    /// The node whose barn the current CPU uses.
    #[inline]
    fn barn_here(&self) -> Option<NodeId> {
        if P::nodes() == 1 { Some(NodeId(0)) } else { self.barn_node(P::cpu()) }
    }

    /// Calls `f` with a node's barn, if it was made and its lock is free.
    #[inline]
    fn try_barn<T>(&self, node: NodeId, f: impl FnOnce(&mut Barn<P>) -> Option<T>) -> Option<T> {
        self.barns.peek(node)?.try_in_swap(f)
    }
}
