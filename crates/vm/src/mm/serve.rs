//! Faults: from a page that a touch cannot use to one that it can.

use super::fault::{Fault, table};
use super::{Rules, Touched, access, cache, swapin, tmpfs};
use crate::counters::Counter;
use crate::host::{Purpose, Work};
use crate::ids::{MappingId, RegionId};
use crate::mappings::Kind;
use crate::spaces::{Backing, Pte, TABLE};
use crate::state::State;
use crate::vm::{Host, Vm};
use std::ops::Range;

/// Why an entry does not allow an access.
enum Missing {
    /// Anonymous memory without contents.
    Fresh(u32),
    /// A page that may be shared, and is written to.
    Shared,
    /// In this slot.
    Swapped(u32),
    /// A page of a file whose entry is empty or read-only.
    Mapped(MappingId, Kind),
}

/// Serves a fault. `None`: no memory.
#[cold]
pub(super) fn fault(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    region: RegionId,
    page: u32,
    write: bool,
) -> Option<Touched> {
    vm.with(|state| state.count(Counter::PgFault));
    host.work(Work::Fault, 1);
    Fault::new(vm, host, rules, region, page, write).end()
}

/// Serves the faults of stores to anonymous pages without contents, one after the other: each as [`fault`]
/// does, which looks at the entry once before and once after it has a frame. Stops before the first page that
/// needs more: it has contents, or no page table. Returns how many were served. `None`: no memory.
pub(super) fn fresh_run(
    vm: &Vm,
    host: &dyn Host,
    rules: &Rules,
    region: RegionId,
    pages: Range<u32>,
) -> Option<u32> {
    let Backing::Anon(family) = vm.with(|state| state.spaces.region(region).backing) else { return Some(0) };
    let first = pages.start;
    for page in pages.clone() {
        let is_fresh = vm.with(|state| {
            let of = state.spaces.region(region);
            let is_fresh = of.pte(page) == Pte::NONE && of.table(page / TABLE).is_some();
            state.counters.add(Counter::PgFault, is_fresh.into());
            is_fresh
        });
        if !is_fresh {
            return Some(page - first);
        }
        host.work(Work::Fault, 1);
        let fault = Fault::new(vm, host, rules, region, page, true);
        let frame = host.alloc(vm, Purpose::Anon)?;
        host.work(Work::Copy, 1);
        let is_used = vm.with(|state| {
            let is_used = state.spaces.region(region).pte(page) == Pte::NONE;
            if is_used {
                fault.enter_anon(state, frame, family, 0);
            }
            is_used && state.spaces.access(region, page, true)
        });
        if !is_used {
            host.free(vm, frame);
            fault.end()?;
        }
    }
    Some(pages.end - first)
}

impl Fault<'_> {
    /// Serves the fault to its end. `None`: no memory (docs/theory/vm.md 2.12).
    fn end(mut self) -> Option<Touched> {
        let served = self.serve();
        let Fault { vm, host, rules, .. } = self;
        if let Some(frame) = self.spare {
            host.free(vm, frame);
        }
        served?;
        if self.major {
            vm.with(|state| state.count(Counter::PgMajFault));
        }
        let is_major = self.major || self.retried && rules.retried_is_major;
        Some(if is_major { Touched::Major } else { Touched::Minor })
    }

    /// Takes steps until the entry allows the access. `None`: no memory.
    fn serve(&mut self) -> Option<()> {
        let Fault { vm, host, region, page, write, .. } = *self;
        table(vm, host, region, page)?;
        // The access ends the loop: whatever a step did may be undone before the task goes on.
        while !access(vm, region, page, write) {
            match vm.with(|state| self.missing(state)) {
                Missing::Fresh(family) => self.fresh(family)?,
                Missing::Shared => self.copy()?,
                Missing::Swapped(slot) => swapin::fault(self, slot)?,
                Missing::Mapped(mapping, Kind::File | Kind::Device) => cache::fault(self, mapping)?,
                Missing::Mapped(mapping, Kind::Tmpfs | Kind::Pinned) => tmpfs::fault(self, mapping)?,
            }
        }
        Some(())
    }

    fn missing(&self, state: &State) -> Missing {
        let region = state.spaces.region(self.region);
        let pte = region.pte(self.page);
        match region.backing {
            Backing::Mapping(mapping) => Missing::Mapped(mapping, state.mappings.get(mapping).kind),
            Backing::Anon(family) => match (pte.frame(), pte.slot()) {
                (Some(_), _) => Missing::Shared,
                (None, Some(slot)) => Missing::Swapped(slot),
                (None, None) => Missing::Fresh(family),
            },
        }
    }
}
