//! `kfree_rcu` through sheaves: one callback for a whole sheaf (docs/theory/sheaves.md 4.1).
//!
//! Each CPU collects objects whose readers may still run. A full sheaf is detached and waits for the grace
//! period as deferred work ([`WorkKind::FreeSheaf`]); then it goes to the barn as it is, and its objects are
//! allocated again without a slab being touched. Until then its objects count as live, and are not handed
//! out.

use super::Stock;
use crate::backing::Backing;
use crate::damage::hole;
use crate::engines::slub::{RcuStrangers, Slot, Slub};
use crate::lent::word;
use crate::report::Misuse;
use crate::slab::Slab;
use slablab_platform::{CpuId, Event, Gfp, Local, NodeId, PerCpu, PerNode, Pfn, Platform, Work, WorkKind};

impl<P: Platform> Slub<P> {
    /// Puts an object into the CPU's RCU sheaf. `false`: there is no memory for such a sheaf.
    pub(in crate::engines::slub) fn collect_rcu(
        &self,
        backing: &Backing<'_, P>,
        object: P::Ptr,
    ) -> Result<bool, Misuse> {
        let Some((slab, state)) = Slab::<P>::of(object) else {
            return Err(Misuse::NotInSlab);
        };
        self.check(object, slab.pfn(), state)?;
        let Some(mut slot) = self.slot_with_rcu(backing) else {
            self.slots.count(Event::FreeRcuSheafFail, 1);
            return Ok(false);
        };
        let Some(stock) = &mut slot.sheaves.rcu else { return Ok(false) };
        P::storage_store(stock.sheaf, word(stock.size), Some(object));
        stock.size += 1;
        let full = stock.size == self.sheaf_capacity;
        slot.count(Event::FreeRcuSheaf, 1);
        if full {
            self.detach_rcu(&mut slot);
        }
        Ok(true)
    }

    /// Detaches every CPU's RCU sheaf, full or not, so that a barrier can wait for them
    /// (`kvfree_rcu_barrier`). Live slots keep theirs.
    pub fn flush_rcu(&self) {
        for cpu in (0..P::cpus()).map(CpuId).filter(|cpu| self.slots.used(*cpu)) {
            if let Some(mut slot) = self.slots.claim(cpu) {
                self.detach_rcu(&mut slot);
            }
        }
    }

    /// The slot, with an RCU sheaf that has room: an empty spare, one from the barn, or a new one.
    fn slot_with_rcu(&self, backing: &Backing<'_, P>) -> Option<Slot<'_, P>> {
        if self.sheaf_capacity == 0 {
            return None;
        }
        let mut slot = self.slots.local()?;
        if slot.sheaves.rcu.is_some() {
            return Some(slot);
        }
        if let Some(spare) = slot.sheaves.spare.get().filter(|spare| spare.size == 0) {
            slot.sheaves.spare.set(None);
            slot.sheaves.rcu = Some(spare);
            return Some(slot);
        }
        let barn = self.barn_node(slot.cpu())?;
        drop(slot);
        let kept = self.get_empty(barn);
        let sheaf = kept.or_else(|| self.new_sheaf(backing, self.sheaf_capacity, Gfp::NOWAIT))?;
        let Some(mut slot) = self.slots.local() else {
            self.retire(backing, sheaf);
            return None;
        };
        if slot.sheaves.rcu.is_some() {
            let left = self.stow_empty(&mut slot, sheaf);
            drop(slot);
            left.into_iter().for_each(|sheaf| self.retire(backing, sheaf));
            return self.slots.local().filter(|slot| slot.sheaves.rcu.is_some());
        }
        slot.sheaves.rcu = Some(Stock::empty(sheaf));
        Some(slot)
    }

    /// Detaches the slot's RCU sheaf, which then waits for its grace period. Its objects end where the
    /// storage has none.
    pub(super) fn detach_rcu(&self, slot: &mut Slot<'_, P>) {
        let Some(stock) = slot.sheaves.rcu.take() else { return };
        if stock.size < self.sheaf_capacity {
            P::storage_store(stock.sheaf, word(stock.size), None);
        }
        let argument = Waiting { sheaf: stock.sheaf, node: self.sheaf_node(slot.cpu()) }.pack::<P>();
        P::after_grace_period(Work { kind: WorkKind::FreeSheaf, cache: self.id.0, argument });
    }

    /// The readers of a sheaf's objects have ended. The sheaf goes to the barn if it is full of objects that
    /// a sheaf there may hold, and the barn has room. Else its objects go to slabs.
    pub(in crate::engines::slub) fn sheaf_waited(&self, backing: &Backing<'_, P>, argument: u64) {
        let Waiting { sheaf, node } = Waiting::unpack::<P>(argument);
        let objects = (0..self.sheaf_capacity).map_while(|index| P::storage_load(sheaf, word(index)));
        let mut stock = Stock { sheaf, size: objects.count() as u32 };
        if stock.size < self.sheaf_capacity {
            // A flush of the CPU detached it: it does not come back.
            self.flush(backing, stock);
            return self.retire(backing, sheaf);
        }
        if self.policy.rcu_strangers == RcuStrangers::Removed {
            self.remove_strangers(backing, &mut stock, node);
        }
        if stock.size == self.sheaf_capacity {
            // A barn at its limit is not locked: at the end of a grace period all CPUs come at once.
            let room = self.has_barn(node) && self.barns.get(node).takes_full(self.barn_full);
            let put = room && self.put_full(node, sheaf);
            self.slots.count(if put { Event::BarnPut } else { Event::BarnPutFail }, 1);
            if put {
                return;
            }
        }
        self.flush(backing, stock);
        let room =
            self.has_barn(node) && self.barns.get(node).takes_empty(self.policy.max_empty_sheaves.into());
        if !(room && self.put_empty(node, sheaf)) {
            self.retire(backing, sheaf);
        }
    }

    /// Frees the objects of other nodes and of the reserves to their slabs, and closes the gaps.
    fn remove_strangers(&self, backing: &Backing<'_, P>, stock: &mut Stock<P>, node: NodeId) {
        let any_node = P::nodes() == 1 || (self.has_barn(node) && P::node_frames(node).1 == 0);
        let stays = |object: P::Ptr| {
            let state = Slab::<P>::of(object).map(|(_, state)| state);
            state.is_some_and(|state| !state.reserve && (any_node || state.node == node))
        };
        let mut kept = 0;
        for index in 0..stock.size {
            let Some(object) = P::storage_load(stock.sheaf, word(index)) else {
                hole::<P>(self.id, "an RCU sheaf", stock.sheaf, index);
            };
            if stays(object) {
                P::storage_store(stock.sheaf, word(kept), Some(object));
                kept += 1;
            } else {
                self.put_kept(backing, &[object]);
            }
        }
        stock.size = kept;
    }
}

/// A detached sheaf and the node of the CPU it came from, in the argument of its work. Bits: frame 0-31,
/// offset in the frame in units of 8 bytes 32-47, node 48-63.
struct Waiting<Ptr> {
    sheaf: Ptr,
    node: NodeId,
}

impl<Ptr> Waiting<Ptr> {
    fn pack<P: Platform<Ptr = Ptr>>(self) -> u64 {
        let (frame, offset) = P::locate(self.sheaf);
        debug_assert!(offset / 8 <= u16::MAX as u32, "offset {offset} in a frame");
        frame.0 as u64 | (offset as u64 / 8) << 32 | (self.node.0 as u64) << 48
    }

    fn unpack<P: Platform<Ptr = Ptr>>(argument: u64) -> Self {
        let sheaf = P::address(Pfn(argument as u32), (argument >> 32 & 0xffff) * 8);
        Waiting { sheaf, node: NodeId((argument >> 48) as u16) }
    }
}
