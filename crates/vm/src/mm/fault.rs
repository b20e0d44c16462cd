//! Faults: from a page that a touch cannot use to one that it can.

use super::{Rules, Touched, access, cache, swapin, tmpfs};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Purpose, Work};
use crate::ids::{Frame, MappingId, RegionId};
use crate::mappings::{Entry, Kind};
use crate::replacement::Enter;
use crate::spaces::{Backing, Pte, TABLE};
use crate::state::State;
use crate::vm::{Host, Vm};
use std::ops::Range;

/// A fault of a task, while it is served.
pub(super) struct Fault<'a> {
    pub vm: &'a Vm,
    pub host: &'a dyn Host,
    pub rules: &'a Rules,
    pub region: RegionId,
    pub page: u32,
    pub write: bool,
    /// It started a read.
    pub major: bool,
    /// It gave up its lock to read ahead or to wait for a page, and was tried again.
    pub retried: bool,
    /// It has read ahead in the file.
    pub ahead: bool,
    /// It has asked for the buffer head of a page that it writes to.
    pub has_tried: bool,
    /// A frame that was allocated for a copy of a page that was evicted meanwhile. The next step has it
    /// already, so that a copy ends although memory is full of pages that cannot be evicted.
    spare: Option<Frame>,
}

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

/// Allocates the page table of a page, if it has none. `None`: no memory.
pub(super) fn table(vm: &Vm, host: &dyn Host, region: RegionId, page: u32) -> Option<()> {
    let at = page / TABLE;
    if vm.with(|state| state.spaces.region(region).table(at).is_some()) {
        return Some(());
    }
    let frame = host.alloc(vm, Purpose::Table)?;
    let is_used = vm.with(|state| {
        let region = state.spaces.region_mut(region);
        let is_used = region.table(at).is_none();
        if is_used {
            region.set_table(at, Some(frame));
        }
        is_used
    });
    if !is_used {
        host.free(vm, frame);
    }
    Some(())
}

impl<'a> Fault<'a> {
    fn new(
        vm: &'a Vm,
        host: &'a dyn Host,
        rules: &'a Rules,
        region: RegionId,
        page: u32,
        write: bool,
    ) -> Fault<'a> {
        let (major, retried, ahead, has_tried, spare) = (false, false, false, false, None);
        Fault { vm, host, rules, region, page, write, major, retried, ahead, has_tried, spare }
    }

    /// Serves the fault to its end. `None`: no memory.
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

    /// Gives anonymous memory its first contents: zeros.
    fn fresh(&self, family: u32) -> Option<()> {
        let Fault { vm, host, region, page, .. } = *self;
        if !self.write && self.rules.zero_page {
            vm.with(|state| {
                let region = state.spaces.region_mut(region);
                if region.pte(page) == Pte::NONE {
                    region.set(page, Pte::ZERO);
                }
            });
            return Some(());
        }
        let frame = host.alloc(vm, Purpose::Anon)?;
        host.work(Work::Copy, 1);
        let is_used = vm.with(|state| {
            let pte = state.spaces.region(region).pte(page);
            let is_used = pte == Pte::NONE || pte.is_zero();
            if is_used {
                self.enter_anon(state, frame, family, 0);
            }
            is_used
        });
        if !is_used {
            host.free(vm, frame);
        }
        Some(())
    }

    /// Makes a frame hold a new anonymous page, and maps it. The entry maps no frame.
    fn enter_anon(&self, state: &mut State, frame: Frame, family: u32, content: u32) {
        let flags = Flags::ANON | Flags::SWAPBACKED | Flags::UPTODATE;
        state.frames.begin(frame, family, self.page, flags);
        state.frames.set_content(frame, content);
        // Without a page of zeros a first read allocates a page, which the program may write to at once.
        state.map(self.region, self.page, Pte::map(frame, true).accessed(true).dirty(self.write));
        self.vm.policy.enter(state, frame, Enter::Anon, None);
    }

    /// Serves a write to an anonymous page that is mapped read-only: it is the task's alone, or is copied.
    fn copy(&mut self) -> Option<()> {
        let Fault { vm, host, rules, region, page, .. } = *self;
        let shared = vm.with(|state| {
            let pte = state.spaces.region(region).pte(page);
            let frame = pte.frame()?;
            if state.is_exclusive(frame) {
                state.spaces.region_mut(region).mark(page, pte.writable(true).accessed(true));
                state.count(Counter::PgReuse);
                if rules.reuse_frees_slot {
                    give_slot_up(vm, state, frame);
                }
                return None;
            }
            Some(frame)
        });
        let Some(shared) = shared else { return Some(()) };
        let frame = match self.spare.take() {
            Some(frame) => frame,
            None => host.alloc(vm, Purpose::Anon)?,
        };
        let is_used = vm.with(|state| {
            let is_used =
                state.spaces.region(region).pte(page).frame() == Some(shared) && !state.is_exclusive(shared);
            if is_used {
                let Backing::Anon(family) = state.spaces.region(region).backing else { unreachable!() };
                let content = state.frames.content(shared);
                state.unmap(region, page, Pte::NONE);
                self.enter_anon(state, frame, family, content);
            }
            is_used
        });
        if is_used {
            host.work(Work::Copy, 1);
        } else {
            self.spare = Some(frame);
        }
        Some(())
    }
}

impl State {
    /// Whether an anonymous frame is mapped once, and its slot has no other user.
    pub(super) fn is_exclusive(&self, frame: Frame) -> bool {
        self.frames.mapped(frame) == 1
            && self.frames.slot(frame).is_none_or(|slot| self.swap.users(slot) == 0)
    }
}

/// A mapped frame leaves the swap cache, if no page table uses its slot and no write of it is under way: its
/// page will be written to another slot (`folio_free_swap`).
pub(super) fn give_slot_up(vm: &Vm, state: &mut State, frame: Frame) {
    let Some(slot) = state.frames.slot(frame) else { return };
    if state.swap.users(slot) > 0 || state.frames.has(frame, Flags::WRITEBACK) {
        return;
    }
    state.leave_swap_cache(frame, Entry::Absent);
    state.frames.set(frame, Flags::DIRTY);
    vm.policy.unswapped(state, frame);
}
