//! Sheaves lent from those that are kept (docs/theory/sheaves.md 4.2).

use super::Stock;
use super::barn::Barn;
use crate::backing::Backing;
use crate::engines::slub::Slub;
use crate::lent::Sheaf;
use slablab_platform::{Event, Gfp, Local, PerCpu, Platform};

impl<P: Platform> Slub<P> {
    /// The spare, a full or an empty sheaf of the barn, or a new one, topped up to its capacity; beyond the
    /// capacity, and so always in a cache without sheaves, one made for this call.
    pub(in crate::engines::slub) fn lend(
        &self,
        backing: &Backing<'_, P>,
        gfp: Gfp,
        objects: u32,
    ) -> Option<Sheaf<P>> {
        // Room for one even if none is asked for: a sheaf that holds nothing could not be told from those
        // that are kept.
        let capacity = self.sheaf_capacity.max(objects).max(1);
        let oversize = capacity > self.sheaf_capacity;
        let kept = if oversize { None } else { self.kept_sheaf() };
        let event = match kept {
            _ if oversize => Event::SheafPrefillOversize,
            Some(_) => Event::SheafPrefillFast,
            None => Event::SheafPrefillSlow,
        };
        self.slots.count(event, 1);
        let stock = match kept {
            Some(stock) => stock,
            None => Stock::empty(self.new_sheaf(backing, capacity, gfp)?),
        };
        let size = if stock.size < objects { self.fill(backing, gfp, stock, capacity) } else { stock.size };
        let sheaf = Sheaf { storage: stock.sheaf, size, capacity };
        if size < objects {
            self.put_away(backing, sheaf);
            return None;
        }
        Some(sheaf)
    }

    /// Takes a lent sheaf back: it becomes the spare, or is filled up and goes to the barn, or its objects go
    /// to slabs.
    pub(in crate::engines::slub) fn take_back(&self, backing: &Backing<'_, P>, gfp: Gfp, sheaf: Sheaf<P>) {
        if sheaf.capacity > self.sheaf_capacity {
            return self.put_away(backing, sheaf);
        }
        let stock = Stock { sheaf: sheaf.storage, size: sheaf.size };
        let mut slot = self.slots.local();
        if let Some(slot) = slot.as_mut().filter(|slot| slot.sheaves.spare.get().is_none()) {
            slot.sheaves.spare.set(Some(stock));
            slot.count(Event::SheafReturnFast, 1);
            return;
        }
        drop(slot);
        self.slots.count(Event::SheafReturnSlow, 1);
        let Some(barn) = self.barn_node(P::cpu()) else { return self.put_away(backing, sheaf) };
        let size = self.fill(backing, gfp, stock, sheaf.capacity);
        if size < sheaf.capacity || !self.put_full(barn, sheaf.storage) {
            self.put_away(backing, Sheaf { size, ..sheaf });
        }
    }

    /// The spare, or a sheaf of the barn, full ones first.
    fn kept_sheaf(&self) -> Option<Stock<P>> {
        let slot = self.slots.local()?;
        if let Some(spare) = slot.sheaves.spare.take() {
            return Some(spare);
        }
        let barn = self.barn_node(slot.cpu())?;
        drop(slot);
        self.with_barn(barn, |barn: &mut Barn<P>| {
            let full = barn.get_full().map(|sheaf| Stock { sheaf, size: self.sheaf_capacity });
            full.or_else(|| barn.get_empty().map(Stock::empty))
        })
    }

    fn put_away(&self, backing: &Backing<'_, P>, sheaf: Sheaf<P>) {
        self.flush(backing, Stock { sheaf: sheaf.storage, size: sheaf.size });
        let barn = self.barn_node(P::cpu()).filter(|_| sheaf.capacity <= self.sheaf_capacity);
        if !barn.is_some_and(|barn| self.put_empty(barn, sheaf.storage)) {
            self.retire(backing, sheaf.storage);
        }
    }
}
