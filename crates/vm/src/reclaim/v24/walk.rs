//! Victims by a walk over page tables.
//!
//! Spaces come in the order of [`crate::Spaces::order`]; the one walked goes to its end. A space remembers
//! where its walk stopped. A walk over all of a space's entries looks at present ones only.

use super::balance::{Level, levels};
use super::lru::is_pinned;
use super::policy::{Anon, Victims, Walk, ZoneTest};
use super::{Caller, V24};
use crate::frames::Flags;
use crate::host::Work;
use crate::ids::{Frame, RegionId, SpaceId};
use crate::state::State;
use crate::vm::{Host, Vm};

/// A walk looks at this part of a space's pages.
const PART: u32 = 32;
/// And at this many at least.
const LEAST: u32 = 8;
/// Entries between two charges of work.
const BATCH: u32 = 32;

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It still maps its page.
    Kept,
    /// It is empty or holds a slot; the page can be freed if `true`.
    Unmapped(bool),
}

impl V24 {
    /// One walk of the kernels with three lists (`swap_out(6)`). Returns entries unmapped
    /// (docs/theory/vm.md 5.4).
    pub fn walk(&self, vm: &Vm, host: &dyn Host, caller: &Caller) -> u32 {
        let mut unmapped = 0;
        let own = caller.space.filter(|_| self.choices.own_first);
        if let Some(space) = own.filter(|space| vm.with(|state| state.spaces.exists(*space))) {
            unmapped += self.walk_part(vm, host, caller, space);
        }
        let spaces = vm.with(|state| state.spaces.order.len());
        let most = match self.choices.walk {
            Walk::Half => spaces / 2 + 1,
            Walk::Quarter | Walk::Class | Walk::Raced => spaces / 4 + 1,
        };
        for _ in 0..most.min(spaces) {
            let Some(space) = vm.with(next_space) else { break };
            unmapped += self.walk_part(vm, host, caller, space);
        }
        unmapped
    }

    /// Walks the usual part of a space.
    fn walk_part(&self, vm: &Vm, host: &dyn Host, caller: &Caller, space: SpaceId) -> u32 {
        let resident = vm.with(|state| resident(state, space));
        let mut left = (resident / PART).max(LEAST).min(resident);
        let mut unmapped = 0;
        while left > 0 {
            let most = left.min(BATCH);
            let looked = self.walk_some(vm, host, caller, space, most, &mut |tried| {
                unmapped += u32::from(tried != Tried::Kept);
                false
            });
            // At the end of the space the part ends; the next one begins at the start.
            if looked != Some(most) {
                break;
            }
            left -= most;
        }
        unmapped
    }

    /// One walk of the kernels with two lists. Returns whether enough pages can be freed now
    /// (docs/theory/vm.md 5.4).
    pub(super) fn walk_class(&self, vm: &Vm, host: &dyn Host, caller: &Caller, priority: u32) -> bool {
        let (mut wanted, mut left) = (self.choices.walk_want, vm.with(|state| budget(state, priority)));
        // With `Raced` a space that another walk leaves first counts nothing: so there is a bound.
        let most = vm.with(|state| 64 * state.spaces.order.len());
        for _ in 0..most {
            let Some(space) = vm.with(|state| state.spaces.order.first().copied()) else { break };
            if self.walk_to_end(vm, host, caller, space, &mut wanted) {
                return true;
            }
            let is_first = vm.with(|state| state.spaces.order.first() == Some(&space));
            if is_first {
                vm.with(next_space);
            }
            if is_first || self.choices.walk == Walk::Class {
                if left == 0 {
                    break;
                }
                left -= 1;
            }
        }
        false
    }

    /// Walks a space from its cursor to its end. Returns whether all wanted pages were found before.
    fn walk_to_end(&self, vm: &Vm, host: &dyn Host, caller: &Caller, at: SpaceId, wanted: &mut u32) -> bool {
        loop {
            let looked = self.walk_some(vm, host, caller, at, BATCH, &mut |tried| {
                if tried == Tried::Unmapped(true) {
                    *wanted -= 1;
                }
                *wanted == 0
            });
            if *wanted == 0 {
                return true;
            }
            if looked.is_none_or(|looked| looked < BATCH) {
                return false;
            }
        }
    }

    /// Looks at up to `most` entries of a space from its cursor on. Returns entries looked at: fewer at the
    /// space's end, or when `enough` says so; none if the space is gone.
    fn walk_some(
        &self,
        vm: &Vm,
        host: &dyn Host,
        caller: &Caller,
        space: SpaceId,
        most: u32,
        enough: &mut dyn FnMut(Tried) -> bool,
    ) -> Option<u32> {
        let (mut looked, levels) = (0, levels(vm, host));
        let is_there = vm.with(|state| {
            let is_there = state.spaces.exists(space);
            while is_there && looked < most {
                let Some((region, page)) = next_entry(state, space) else { break };
                looked += 1;
                if enough(self.try_entry(state, &levels, caller, region, page)) {
                    break;
                }
            }
            is_there
        });
        host.work(Work::Walk, looked);
        is_there.then_some(looked)
    }

    /// Looks at a present entry, and unmaps its page if the rules allow (`try_to_swap_out`;
    /// docs/theory/vm.md 5.4).
    pub fn try_entry(
        &self,
        state: &mut State,
        levels: &[Level],
        caller: &Caller,
        region: RegionId,
        page: u32,
    ) -> Tried {
        let pte = state.spaces.region(region).pte(page);
        let frame = pte.frame().expect("a walk looks at present entries");
        let zone = state.zone_of(frame);
        let test = self.choices.zone_test;
        if test == ZoneTest::First && self.inactive_plenty(state, levels, zone) {
            return Tried::Kept;
        }
        if test == ZoneTest::Class && !caller.helps(state, zone) {
            return Tried::Kept;
        }
        if self.choices.victims == Victims::Inactive && is_in_use(state, frame) {
            return Tried::Kept;
        }
        if pte.is_accessed() {
            state.spaces.region_mut(region).mark(page, pte.accessed(false));
            self.age_up(state, frame);
            return Tried::Kept;
        }
        let is_old = self.choices.victims == Victims::Old;
        if is_old && !state.frames.has(frame, Flags::ACTIVE) {
            self.age_down(state, frame);
        }
        if test == ZoneTest::AfterAge && self.inactive_plenty(state, levels, zone) {
            return Tried::Kept;
        }
        if is_old && state.frames.policy(frame) > 0 || is_busy(state, frame) || is_pinned(state, frame) {
            return Tried::Kept;
        }
        self.unmap(state, caller, region, page, frame, zone)
    }

    fn unmap(
        &self,
        state: &mut State,
        caller: &Caller,
        region: RegionId,
        page: u32,
        frame: Frame,
        zone: usize,
    ) -> Tried {
        let flags = state.frames.flags(frame);
        if flags.has(Flags::ANON) && !flags.has(Flags::SWAPCACHE) {
            if state.add_to_swap(frame).is_none() {
                return Tried::Kept;
            }
            // The contents are nowhere else.
            state.set_dirty(frame);
            if self.choices.anon == Anon::AtSlot {
                self.enlist(state, frame);
            }
        }
        state.unmap_for_eviction(region, page);
        if flags.has(Flags::SWAPCACHE) && state.frames.policy(frame) == 0 {
            self.deactivate(state, frame);
        }
        let can_go = state.frames.mapped(frame) == 0 && caller.helps(state, zone);
        Tried::Unmapped(can_go)
    }
}

/// Active, or inactive and referenced.
fn is_in_use(state: &State, frame: Frame) -> bool {
    let flags = state.frames.flags(frame);
    flags.has(Flags::ACTIVE) || flags.has(Flags::LISTED | Flags::REFERENCED)
}

/// Locked; a page is locked while it is written to swap.
pub(super) fn is_busy(state: &State, frame: Frame) -> bool {
    let flags = state.frames.flags(frame);
    flags.has(Flags::LOCKED) || flags.has(Flags::SWAPCACHE | Flags::WRITEBACK)
}

fn resident(state: &State, space: SpaceId) -> u32 {
    let regions = &state.spaces.space(space).regions;
    regions.iter().map(|region| state.spaces.region(*region).resident).sum()
}

/// Spaces that a walk over zones may visit.
fn budget(state: &mut State, priority: u32) -> u32 {
    state.spaces.order.len() as u32 / priority
}

/// The first space of the order; it goes to the end of it.
fn next_space(state: &mut State) -> Option<SpaceId> {
    let order = &mut state.spaces.order;
    if order.is_empty() {
        return None;
    }
    order.rotate_left(1);
    order.last().copied()
}

/// The next present entry from the cursor of a space on, and moves the cursor behind it. At the space's end
/// there is none, and the cursor goes to the start.
fn next_entry(state: &mut State, space: SpaceId) -> Option<(RegionId, u32)> {
    let (mut at, mut page) = state.spaces.space(space).cursor;
    let found = loop {
        let Some(id) = state.spaces.space(space).regions.get(at as usize).copied() else { break None };
        let region = state.spaces.region(id);
        let from = page;
        let mut pages = from..if region.locked || region.resident == 0 { from } else { region.pages() };
        if let Some(present) = pages.find(|page| region.pte(*page).frame().is_some()) {
            page = present + 1;
            break Some((id, present));
        }
        (at, page) = (at + 1, 0);
    };
    let cursor = if found.is_some() { (at, page) } else { (0, 0) };
    state.spaces.space_mut(space).cursor = cursor;
    found
}
