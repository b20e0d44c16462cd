//! One fault while it is served, and its steps on anonymous memory.

use super::Rules;
use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Purpose, Work};
use crate::ids::{Frame, MappingId, RegionId};
use crate::mappings::{Entry, Kind};
use crate::replacement::Enter;
use crate::spaces::{Backing, Pte, TABLE};
use crate::state::State;
use crate::vm::{Host, Vm};

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
    pub spare: Option<Frame>,
}

/// Allocates the page table of a page, if it has none. `None`: no memory (docs/theory/vm.md 2.3).
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
            region.set_table(at, frame);
        }
        is_used
    });
    if !is_used {
        host.free(vm, frame);
    }
    Some(())
}

impl<'a> Fault<'a> {
    pub(super) fn new(
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

    /// Gives anonymous memory its first contents: zeros (docs/theory/vm.md 2.3).
    pub(super) fn fresh(&self, family: u32) -> Option<()> {
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
    pub(super) fn enter_anon(&self, state: &mut State, frame: Frame, family: u32, content: u32) {
        let flags = Flags::ANON | Flags::SWAPBACKED | Flags::UPTODATE;
        state.frames.begin(frame, family, self.page, flags);
        state.frames.set_content(frame, content);
        // Without a page of zeros a first read allocates a page, which the program may write to at once.
        state.map(self.region, self.page, Pte::map(frame, true).accessed(true).dirty(self.write));
        self.vm.policy.enter(state, frame, Enter::Anon, None);
    }

    /// Serves a write to an anonymous page that is mapped read-only: it is the task's alone, or is copied
    /// (docs/theory/vm.md 2.3).
    pub(super) fn copy(&mut self) -> Option<()> {
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
/// page will be written to another slot (`folio_free_swap`; docs/theory/vm.md 2.4).
pub(super) fn give_slot_up(vm: &Vm, state: &mut State, frame: Frame) {
    let Some(slot) = state.frames.slot(frame) else { return };
    if state.swap.users(slot) > 0 || state.frames.has(frame, Flags::WRITEBACK) {
        return;
    }
    state.leave_swap_cache(frame, Entry::Absent);
    state.frames.set(frame, Flags::DIRTY);
    vm.policy.unswapped(state, frame);
}

/// Maps the pages around a read fault that are cached, unlocked and not marked (`filemap_map_pages`). Returns
/// whether the faulting page is one of them. x86 maps them with their accessed bits set (from memory;
/// docs/theory/vm.md 2.9).
pub(super) fn map_around(fault: &Fault<'_>, state: &mut State, id: MappingId) -> bool {
    let Fault { rules, region, page, .. } = *fault;
    let start = page / rules.fault_around * rules.fault_around;
    let end = (start + rules.fault_around).min(state.spaces.region(region).pages());
    let writable = state.mappings.get(id).kind == Kind::Tmpfs || !rules.write_notify;
    let mut hits = 0;
    for at in start..end {
        let Some(frame) = state.mappings.get(id).entry(at).frame() else { continue };
        let flags = state.frames.flags(frame);
        if flags.any(Flags::LOCKED | Flags::READAHEAD) || !flags.has(Flags::UPTODATE) {
            continue;
        }
        hits += u32::from(!rules.refaults_are_misses || !flags.has(Flags::WORKINGSET));
        if state.spaces.region(region).pte(at).frame().is_none() {
            state.map(region, at, Pte::map(frame, writable).accessed(true));
            fault.vm.policy.fault(state, frame);
        }
    }
    let ahead = &mut state.spaces.region_mut(region).ahead;
    ahead.misses = ahead.misses.saturating_sub(hits);
    state.spaces.region(region).pte(page).frame().is_some()
}
