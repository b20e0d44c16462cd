//! Sheaves lent to a caller who will need some objects and must not fail then (reference/sheaves.md 4.2).
//!
//! The maple tree asks for as many nodes as a change may need, changes the tree under a lock, and hands back what is left.

use super::barn::Barn;
use super::{Stock, word};
use crate::engine::Backing;
use crate::slub::Slub;
use slablab_platform::{Event, Gfp, Local, PerCpu, Platform};

/// A sheaf in a caller's hands: objects that are theirs already. Hand it back with [`Slub::return_sheaf`].
#[must_use = "objects in a sheaf that is not handed back are lost"]
pub struct Sheaf<P: Platform> {
    stock: Stock<P>,
    capacity: u32,
}

impl<P: Platform> Sheaf<P> {
    /// Objects left.
    pub fn size(&self) -> u32 {
        self.stock.size
    }

    /// Objects it can hold.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
}

impl<P: Platform> Slub<P> {
    /// A sheaf with at least `objects` objects: the spare, a full or an empty one of the barn, or a new one, topped up to its
    /// capacity; beyond the capacity one made for this call. `None` without memory, or in a cache without sheaves.
    pub fn prefill_sheaf(&self, backing: &Backing<'_, P>, gfp: Gfp, objects: u32) -> Option<Sheaf<P>> {
        if self.sheaf_capacity == 0 {
            return None;
        }
        let capacity = self.sheaf_capacity.max(objects);
        let kept = if capacity == self.sheaf_capacity { self.kept_sheaf() } else { None };
        let event = match kept {
            _ if capacity > self.sheaf_capacity => Event::SheafPrefillOversize,
            Some(_) => Event::SheafPrefillFast,
            None => Event::SheafPrefillSlow,
        };
        self.slots.count(event, 1);
        let stock = match kept {
            Some(stock) => stock,
            None => Stock::empty(self.new_sheaf(backing, capacity, gfp)?),
        };
        let size = if stock.size < objects { self.fill(backing, gfp, stock, capacity) } else { stock.size };
        let sheaf = Sheaf { stock: Stock { size, ..stock }, capacity };
        if size < objects {
            self.put_away(backing, sheaf);
            return None;
        }
        Some(sheaf)
    }

    /// An object of a lent sheaf; `None` only when it is used up.
    pub fn alloc_from_lent(&self, sheaf: &mut Sheaf<P>, gfp: Gfp) -> Option<P::Ptr> {
        let size = sheaf.stock.size.checked_sub(1)?;
        let object = P::storage_load(sheaf.stock.sheaf, word(size)).expect("a sheaf has no holes");
        sheaf.stock.size = size;
        self.slots.count(Event::AllocFastpath, 1);
        if gfp.any(Gfp::ZERO) {
            P::fill(object, self.geometry.object_size, 0);
        }
        Some(object)
    }

    /// Hands a sheaf back: it becomes the spare, or is filled up and goes to the barn, or its objects go to slabs.
    pub fn return_sheaf(&self, backing: &Backing<'_, P>, gfp: Gfp, sheaf: Sheaf<P>) {
        if sheaf.capacity > self.sheaf_capacity {
            return self.put_away(backing, sheaf);
        }
        let mut slot = self.slots.local();
        if let Some(slot) = slot.as_mut().filter(|slot| slot.sheaves.spare.is_none()) {
            slot.sheaves.spare = Some(sheaf.stock);
            slot.count(Event::SheafReturnFast, 1);
            return;
        }
        drop(slot);
        self.slots.count(Event::SheafReturnSlow, 1);
        let barn = self.barn_node(P::cpu());
        let size = self.fill(backing, gfp, sheaf.stock, sheaf.capacity);
        let sheaf = Sheaf { stock: Stock { size, ..sheaf.stock }, ..sheaf };
        if size < sheaf.capacity || !self.with_barn(barn, |barn| barn.put_full(sheaf.stock.sheaf)) {
            self.put_away(backing, sheaf);
        }
    }

    /// The spare, or a sheaf of the barn, full ones first.
    fn kept_sheaf(&self) -> Option<Stock<P>> {
        let mut slot = self.slots.local()?;
        if let Some(spare) = slot.sheaves.spare.take() {
            return Some(spare);
        }
        let barn = self.barn_node(slot.cpu());
        drop(slot);
        self.with_barn(barn, |barn: &mut Barn<P>| {
            let full = barn.get_full().map(|sheaf| Stock { sheaf, size: self.sheaf_capacity });
            full.or_else(|| barn.get_empty().map(Stock::empty))
        })
    }

    fn put_away(&self, backing: &Backing<'_, P>, sheaf: Sheaf<P>) {
        self.flush(backing, sheaf.stock);
        if sheaf.capacity > self.sheaf_capacity {
            return self.retire(backing, sheaf.stock.sheaf);
        }
        let barn = self.barn_node(P::cpu());
        if !self.with_barn(barn, |barn| barn.put_empty(sheaf.stock.sheaf)) {
            self.retire(backing, sheaf.stock.sheaf);
        }
    }
}
