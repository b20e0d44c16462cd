//! Frees of objects that no row allocated.

use super::{Home, NOTHING, Run, World, sheaf_memory};
use crate::replay::run::SheafMemory;
use crate::replay::untraced::Deed;
use slablab_model::Addr;
use slablab_platform::Gfp;
use slablab_report::error::Result;
use slablab_slabs::{Backing, Engine};
use slablab_trace::{Batch, EventKind, flags};

/// What is freed without an event.
const SILENT: u8 = EventKind::ImpliedFree as u8;

impl<W: World, E: Engine<W>> Run<'_, W, E> {
    /// A free of an object that no row allocated: one from before, or one that a path without events
    /// allocated.
    pub(super) fn free_unseen(&mut self, row: u64, batch: &Batch, index: usize) -> Result<()> {
        let plan = &self.job.plan.old;
        while plan.get(self.next_old).is_some_and(|old| old.0 < row) {
            self.next_old += 1;
        }
        let planned = plan.get(self.next_old).filter(|old| old.0 == row);
        let from_before = planned.and_then(|old| self.old.get_mut(old.2 as usize)).and_then(Option::take);
        if let Some((address, cache)) = from_before {
            let cache = cache as usize;
            if self.windows[cache].open {
                self.traffic[cache].old += 1;
                return self.give_back(row, cache, address, batch.event[index]);
            }
            return Ok(());
        }
        if batch.event[index] == EventKind::ImpliedFree as u8 {
            return Ok(());
        }
        self.suspect(row, batch, index);
        let home = match planned {
            Some(old) => Home::Cache(old.1),
            None => self.job.table.home(batch.cache[index], batch.bytes_alloc[index], batch.gfp[index]),
        };
        match home {
            Home::Cache(cache) if self.windows[cache as usize].open => {
                self.free_bulk(row, cache as usize, batch.event[index])
            }
            Home::Cache(_) | Home::Large(_) | Home::TooLarge => Ok(()),
            Home::Unknown => {
                self.unknown_frees += 1;
                Ok(())
            }
        }
    }

    /// Frees the next object of the plan that was freed without an event, just before it is allocated again.
    #[cold]
    pub(super) fn free_untraced(&mut self, row: u64) -> Result<()> {
        let (at, _, number) = self.job.plan.freed_unseen[self.next_unseen];
        self.next_unseen += 1;
        let found = self.old.get_mut(number as usize).and_then(Option::take);
        match found {
            Some((address, cache)) if at == row && self.windows[usize::from(cache)].open => {
                self.traffic[usize::from(cache)].implied += 1;
                self.give_back(row, usize::from(cache), address, SILENT)
            }
            _ => Ok(()),
        }
    }

    /// Does what left no event, as far as its moment has come.
    #[cold]
    pub(super) fn untraced(&mut self, row: u64) -> Result<()> {
        let plan = &self.job.plan.untraced;
        while let Some(next) = plan.get(self.next_untraced).filter(|next| next.row <= row) {
            self.next_untraced += 1;
            match next.deed {
                Deed::Free(object, bytes) => self.free_silently(row, object, bytes)?,
                Deed::Alloc(freed) => self.alloc_silently(next.cache as usize, freed),
            }
        }
        Ok(())
    }

    fn free_silently(&mut self, row: u64, object: u32, bytes: (u32, u32)) -> Result<()> {
        let Some(slot) = self.live.get_mut(object as usize) else { return Ok(()) };
        let live = std::mem::replace(slot, NOTHING);
        let cache = usize::from(live.cache);
        let Some(address) = live.address.filter(|_| self.windows[cache].open) else { return Ok(()) };
        let traffic = &mut self.traffic[cache];
        traffic.other_cpu += u64::from(live.cpu != self.cpu);
        traffic.implied += 1;
        traffic.requested_live -= i64::from(bytes.0);
        traffic.given_live -= i64::from(bytes.1);
        self.give_back(row, cache, address, SILENT)
    }

    fn alloc_silently(&mut self, cache: usize, freed: Option<u64>) {
        if !self.windows[cache].open {
            return;
        }
        if let Some(address) = self.alloc_bulk(cache)
            && let Some(row) = freed
        {
            self.promised.insert(row, address);
        }
    }

    /// Counts a free of what no row allocated, where frees are checked: what a kernel with checks would have
    /// stopped at, or the trace of an allocation that left no event.
    fn suspect(&mut self, row: u64, batch: &Batch, index: usize) {
        if !self.checks {
            return;
        }
        let found = &mut self.violations;
        if batch.flags[index] & flags::FREED_BEFORE != 0 {
            found.freed_again += 1;
            found.first_freed_again.get_or_insert(row + 1);
        } else {
            found.never_allocated += 1;
        }
    }

    /// Frees an object that was allocated without an event. If no moment was drawn for its allocation, the
    /// replay allocates it just before, on this CPU.
    fn free_bulk(&mut self, row: u64, cache: usize, event: u8) -> Result<()> {
        let promised = self.promised.remove(&row);
        match promised.or_else(|| self.alloc_bulk(cache)) {
            Some(address) => self.give_back(row, cache, address, event),
            None => Ok(()),
        }
    }

    fn alloc_bulk(&mut self, cache: usize) -> Option<Addr> {
        let sheaf = sheaf_memory!(self);
        let address = self.caches[cache].alloc(&sheaf.backing(), Gfp::KERNEL, None);
        let traffic = &mut self.traffic[cache];
        if address.is_some() {
            traffic.allocs += 1;
            traffic.bulk += 1;
        } else {
            traffic.failed += 1;
        }
        address
    }
}
