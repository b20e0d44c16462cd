//! Who looks at accessed bits: the walk of page tables that ages, and the look around an entry that eviction
//! takes.
//!
//! ```text
//! a new generation ── each space that ran ── each region ── each table of 512 ── its own accessed bit
//!                                                     in the filter? (full walk: all) ── 512 entries
//! eviction ── a page's entries ── accessed: the 64 entries around it
//! ```

use super::lists::{Node, modulo};
use super::policy::{Promotion, Rules};
use super::walker::{Step, is_file};
use super::word::{Type, Word, forget};
use crate::frames::Flags;
use crate::ids::{Frame, RegionId};
use crate::mappings::Kind;
use crate::replacement::Verdict;
use crate::spaces::{Backing, TABLE};
use crate::state::State;

/// Entries around an accessed one that eviction looks at (from memory).
const AROUND: u32 = 64;

/// Whether a walk looks at a region (`should_skip_vma`).
fn is_walked(state: &State, id: RegionId, swaps: bool) -> bool {
    let region = state.spaces.region(id);
    let is_pinned = match region.backing {
        Backing::Anon(_) => false,
        Backing::Mapping(id) => state.mappings.get(id).kind == Kind::Pinned,
    };
    region.resident > 0 && !region.locked && !is_pinned && (swaps || is_file(state, region.backing))
}

impl Node {
    /// Walks up to `tables` page tables from a step on. Returns the entries looked at, those of them that
    /// were accessed, and where to go on; `None`: the space is done, or gone.
    pub(crate) fn walk(
        &mut self,
        state: &mut State,
        rules: &Rules,
        swaps: bool,
        mut step: Step,
        tables: u32,
    ) -> ([u32; 2], Option<Step>) {
        let mut entries = [0; 2];
        for _ in 0..tables {
            if !state.spaces.exists(step.space) {
                return (entries, None);
            }
            let regions = &state.spaces.space(step.space).regions;
            let Some(id) = regions.get(step.region).copied() else { return (entries, None) };
            let count = state.spaces.region(id).tables().len() as u32;
            if step.table >= count || !is_walked(state, id, swaps) {
                (step.region, step.table) = (step.region + 1, 0);
                continue;
            }
            let looked = self.walk_table(state, rules, swaps, id, step.table);
            entries = [entries[0] + looked[0], entries[1] + looked[1]];
            step.table += 1;
        }
        (entries, Some(step))
    }

    /// Walks one page table. Returns the entries looked at, and those of them that were accessed
    /// (docs/theory/vm.md 4.7).
    fn walk_table(
        &mut self,
        state: &mut State,
        rules: &Rules,
        swaps: bool,
        id: RegionId,
        table: u32,
    ) -> [u32; 2] {
        let skips_tables = rules.skips_tables_now(&state.settings);
        let region = state.spaces.region_mut(id);
        if region.tables()[table as usize] == 0 {
            return [0; 2];
        }
        if skips_tables && !region.clear_table(table) {
            return [0; 2];
        }
        let seq = self.max_seq;
        if !self.walker.filters[seq as usize % 2].holds(id, table) {
            return [0; 2];
        }
        let pages = table * TABLE..((table + 1) * TABLE).min(region.pages());
        let entries = pages.end - pages.start;
        let young = self.clear_accessed(state, rules, swaps, id, pages);
        if is_dense(young, entries) {
            self.walker.filters[(seq + 1) as usize % 2].put(id, table);
        }
        [entries, young]
    }

    /// Clears the accessed bits of some entries, and promotes their pages. Returns how many were set.
    fn clear_accessed(
        &mut self,
        state: &mut State,
        rules: &Rules,
        swaps: bool,
        id: RegionId,
        pages: std::ops::Range<u32>,
    ) -> u32 {
        let mut young = 0;
        for page in pages {
            let pte = state.spaces.region(id).pte(page);
            if !pte.is_accessed() {
                continue;
            }
            let frame = pte.frame().expect("an accessed entry maps a frame");
            // Each node's walk promotes its own pages alone.
            if !self.zones.contains(&state.zone_of(frame)) {
                continue;
            }
            // Since 6.14 a page that a reclaimer holds is left to that one.
            let is_held = Word::of(state, frame).generation.is_none();
            let is_skipped = is_held && rules.promotion == Promotion::SecondLook;
            if is_skipped || !swaps && Type::of(state, frame) == Type::Anon {
                continue;
            }
            state.spaces.region_mut(id).mark(page, pte.accessed(false));
            young += 1;
            self.promote(state, rules, frame);
        }
        young
    }

    /// A page was accessed through a page table (`folio_update_gen`). Its list is changed later
    /// (docs/theory/vm.md 4.4).
    fn promote(&mut self, state: &mut State, rules: &Rules, frame: Frame) {
        let flags = state.frames.flags(frame);
        let is_first = !flags.any(Flags::REFERENCED | Flags::WORKINGSET);
        if rules.promotion == Promotion::SecondLook && is_first {
            state.frames.set(frame, Flags::REFERENCED);
            Word { refs: 0, ..Word::of(state, frame) }.store(state, frame);
            return;
        }
        if Word::of(state, frame).generation.is_none() {
            // A reclaimer holds it, and will see this.
            state.frames.set(frame, Flags::REFERENCED);
            return;
        }
        forget(state, rules, frame);
        if rules.promotion == Promotion::SecondLook {
            state.frames.set(frame, Flags::WORKINGSET);
        }
        self.change(state, frame, modulo(self.max_seq));
    }

    /// Looks at the accessed bits of an isolated page's entries and of those around them. Returns what
    /// becomes of the page (`folio_check_references`, `lru_gen_look_around`; docs/theory/vm.md 4.4).
    pub(crate) fn judge(&mut self, state: &mut State, rules: &Rules, swaps: bool, frame: Frame) -> Verdict {
        let at_once = rules.promotion == Promotion::AtOnce;
        if at_once && state.frames.mapped(frame) > 0 && state.frames.has(frame, Flags::REFERENCED) {
            // A walk met it after it was isolated.
            return Verdict::Keep;
        }
        let (mut accessed, mut locked) = (false, false);
        let mappers: Vec<_> = state.mappers(frame).collect();
        for (id, page) in mappers {
            locked |= state.spaces.region(id).locked;
            if state.spaces.region(id).pte(page).is_accessed() {
                accessed = true;
                self.look_around(state, rules, swaps, id, page);
            }
        }
        self.verdict(state, rules, frame, accessed, locked)
    }

    fn verdict(
        &self,
        state: &mut State,
        rules: &Rules,
        frame: Frame,
        accessed: bool,
        locked: bool,
    ) -> Verdict {
        let flags = state.frames.flags(frame);
        match rules.promotion {
            _ if locked => Verdict::Activate,
            Promotion::AtOnce if accessed => {
                state.frames.set(frame, Flags::REFERENCED);
                Verdict::Activate
            }
            Promotion::SecondLook if accessed => {
                if !flags.any(Flags::REFERENCED | Flags::WORKINGSET) {
                    state.frames.set(frame, Flags::REFERENCED);
                    return Verdict::Keep;
                }
                forget(state, rules, frame);
                state.frames.set(frame, Flags::WORKINGSET);
                Verdict::Activate
            }
            Promotion::AtOnce | Promotion::SecondLook => Verdict::Reclaim,
        }
    }

    /// An entry of an isolated page was accessed: looks at the 64 around it too (docs/theory/vm.md 4.4).
    fn look_around(&mut self, state: &mut State, rules: &Rules, swaps: bool, id: RegionId, page: u32) {
        let region = state.spaces.region_mut(id);
        // The page's own entry: its verdict follows from this.
        let pte = region.pte(page);
        region.mark(page, pte.accessed(false));
        let table = page / TABLE;
        let (low, high) = (table * TABLE, ((table + 1) * TABLE).min(region.pages()));
        let start = page.saturating_sub(AROUND / 2).min(high.saturating_sub(AROUND)).max(low);
        let pages = start..(start + AROUND).min(high);
        let total = pages.end - pages.start;
        let young = 1 + self.clear_accessed(state, rules, swaps, id, pages);
        if is_dense(young, total) {
            self.walker.filters[self.max_seq as usize % 2].put(id, table);
        }
    }
}

/// Whether one entry in eight was accessed: one of each cache line (from memory: `suitable_to_scan`;
/// docs/theory/vm.md 4.7).
fn is_dense(young: u32, entries: u32) -> bool {
    young * 8 >= entries
}

#[cfg(test)]
mod tests {
    use super::is_dense;

    #[test]
    fn a_table_is_dense_from_one_accessed_entry_in_eight_on() {
        for (young, entries, expected) in [(63, 512, false), (64, 512, true), (7, 64, false), (8, 64, true)] {
            assert_eq!(is_dense(young, entries), expected, "{young} of {entries}");
        }
    }
}
