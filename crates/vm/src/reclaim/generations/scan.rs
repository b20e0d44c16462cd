//! The choice of pages to evict: a type, a tier, and the pages at the tail of its oldest generation.

use super::lists::{Node, list, modulo};
use super::pass::counted;
use super::policy::{BATCH, Counted, DirtyFiles, Placement, Rules, TypeRule};
use super::word::{Type, Word, YOUNG, accesses, forget};
use crate::counters::Counter;
use crate::frames::Flags;
use crate::ids::Frame;
use crate::state::State;

/// What a reclaimer may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct May {
    /// Pages of zones up to this class.
    pub(crate) class: u8,
    /// It may start I/O: without it, dirty pages and those without a slot stay.
    pub(crate) io: bool,
    /// It may evict mapped pages.
    pub(crate) unmap: bool,
    /// Most pages that it looks at in this batch.
    pub(crate) look: u32,
}

/// What a look at the oldest generation gave.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The pages, isolated, oldest first.
    pub(crate) pages: Vec<Frame>,
    /// Their type.
    pub(crate) of: Type,
    /// Pages that count as looked at; 0: there is nothing to get.
    pub(crate) scanned: u32,
    /// Pages of files that were met dirty; of these, nobody writes them.
    pub(crate) dirty: u32,
    pub(crate) unqueued: u32,
}

/// What is done with a page met at the tail.
enum Met {
    /// It moved to another list.
    Sorted,
    Isolated,
    /// The reclaimer may not take it.
    Skipped,
}

impl Node {
    /// Isolates pages of one type, or of the other one if it has none (`isolate_folios`).
    pub(crate) fn isolate(&mut self, state: &mut State, rules: &Rules, swappiness: u32, may: May) -> Taken {
        let (mut of, mut tier) = self.choose(rules, swappiness, may);
        let types = if swappiness == 0 { 1 } else { 2 };
        let mut taken = Taken { pages: Vec::new(), of, scanned: 0, dirty: 0, unqueued: 0 };
        for _ in 0..types {
            let last = tier.unwrap_or_else(|| self.control.last_tier(of, rules.margin));
            taken.of = of;
            taken.scanned = self.scan(state, rules, last, may, &mut taken);
            if taken.scanned > 0 {
                break;
            }
            (of, tier) = (of.other(), None);
        }
        taken
    }

    /// The type to begin with, and the last tier of it if that follows from the other type
    /// (docs/theory/vm.md 4.8).
    fn choose(&self, rules: &Rules, swappiness: u32, may: May) -> (Type, Option<usize>) {
        let [anon, file] = self.min_seq;
        match rules.types {
            TypeRule::AllTiers if swappiness <= 1 => (Type::File, None),
            TypeRule::AllTiers if swappiness >= 200 => (Type::Anon, None),
            TypeRule::AllTiers => (self.control.choose_by_all(swappiness), None),
            TypeRule::FirstTier if swappiness == 0 => (Type::File, None),
            TypeRule::FirstTier if anon < file => (Type::Anon, None),
            TypeRule::FirstTier if swappiness == 1 => (Type::File, None),
            TypeRule::FirstTier if swappiness == 200 => (Type::Anon, None),
            TypeRule::FirstTier if rules.no_io_is_file && !may.io => (Type::File, None),
            TypeRule::FirstTier => {
                let (of, tier) = self.control.choose_by_first(swappiness);
                (of, Some(tier))
            }
        }
    }

    /// Looks at the oldest generation of a type until a batch is isolated. Returns the pages that count as
    /// looked at (`scan_folios`; docs/theory/vm.md 4.10).
    fn scan(&mut self, state: &mut State, rules: &Rules, last: usize, may: May, taken: &mut Taken) -> u32 {
        let of = taken.of;
        if self.count(of) == YOUNG {
            return 0;
        }
        let generation = modulo(self.min_seq[of as usize]);
        let (mut left, mut scanned, mut sorted) = (may.look, 0, 0);
        for zone in self.zones_for(state, rules, may.class) {
            let mut skipped = Vec::new();
            while let Some(frame) = state.lists.tail(list(zone, of, generation)) {
                scanned += 1;
                match self.meet(state, rules, frame, last, may, taken) {
                    Met::Sorted => sorted += 1,
                    Met::Isolated => taken.pages.push(frame),
                    Met::Skipped => {
                        state.unlist(frame);
                        skipped.push(frame);
                    }
                }
                left -= 1;
                if left == 0 || taken.pages.len().max(skipped.len()) as u64 >= BATCH {
                    break;
                }
            }
            for frame in skipped {
                state.push_head(list(zone, of, generation), frame);
            }
            if left == 0 || taken.pages.len() as u64 >= BATCH {
                break;
            }
        }
        state.counters.add(Counter::PgRefill, sorted);
        counted(rules.budget, taken.pages.len(), left, scanned)
    }

    /// Zones in the order of the scan: from the highest that the request can use down; since 6.7 the others
    /// too, whose pages are moved on.
    fn zones_for(&self, state: &State, rules: &Rules, class: u8) -> Vec<usize> {
        let fits = |at: &usize| state.zones[*at].class <= class;
        let down = self.zones.iter().rev().copied();
        let others = down.clone().filter(|at| !fits(at) && rules.release > (6, 6));
        down.filter(fits).chain(others).collect()
    }

    /// Sorts or isolates a page of the oldest generation's list (`sort_folio`, `isolate_folio`;
    /// docs/theory/vm.md 4.10).
    fn meet(
        &mut self,
        state: &mut State,
        rules: &Rules,
        frame: Frame,
        last: usize,
        may: May,
        taken: &mut Taken,
    ) -> Met {
        let of = taken.of;
        let zone = state.zone_of(frame);
        let is = Word::of(state, frame).generation.expect("a listed page has a generation");
        let (flags, had) = (state.frames.flags(frame), accesses(state, rules, frame));
        let is_new = rules.placement == Placement::Workingset;
        if state.is_pinned(frame) {
            self.take(state, frame);
            state.unlist(frame);
            state.frames.set(frame, Flags::UNEVICTABLE);
            return Met::Sorted;
        }
        if is != modulo(self.min_seq[of as usize]) {
            // Promoted by a walk since it was put here.
            state.unlist(frame);
            state.push_head(list(zone, of, is), frame);
            return Met::Sorted;
        }
        if had.tier > last || had.is_full {
            self.protect(state, rules, frame);
            if !(is_new && had.is_full) {
                self.control.tier_mut(of, had.tier).protected += 1;
            }
            if rules.counted == Counted::Recent {
                state.count_by_type(frame, Counter::ActivateAnon, Counter::ActivateFile);
            }
            return Met::Sorted;
        }
        if state.zones[zone].class > may.class {
            self.move_on(state, rules, frame, true);
            return Met::Sorted;
        }
        let is_dirty = of == Type::File && flags.any(Flags::DIRTY);
        taken.dirty += u32::from(is_dirty);
        taken.unqueued += u32::from(is_dirty && !flags.any(Flags::WRITEBACK));
        let is_busy = is_dirty || flags.any(Flags::WRITEBACK);
        if is_busy && rules.dirty == DirtyFiles::Next || !is_new && flags.any(Flags::LOCKED) {
            self.move_on(state, rules, frame, false);
            state.frames.set(frame, Flags::RECLAIM);
            return Met::Sorted;
        }
        let has_no_slot = flags.has(Flags::ANON) && !flags.any(Flags::SWAPCACHE);
        if !may.io && (flags.any(Flags::DIRTY) || has_no_slot) {
            return Met::Skipped;
        }
        if !may.unmap && state.frames.mapped(frame) > 0 {
            return Met::Skipped;
        }
        self.take_for_eviction(state, rules, frame);
        Met::Isolated
    }

    /// A page of a protected tier gets into the next generation: where it is evicted first, since 6.14 last.
    fn protect(&mut self, state: &mut State, rules: &Rules, frame: Frame) {
        self.move_on(state, rules, frame, rules.placement != Placement::Workingset);
    }

    /// A page gets into the next generation.
    fn move_on(&mut self, state: &mut State, rules: &Rules, frame: Frame, to_tail: bool) {
        let generation = self.advance(state, rules, frame);
        let to = list(state.zone_of(frame), Type::of(state, frame), generation);
        state.unlist(frame);
        if to_tail {
            state.push_tail(to, frame);
        } else {
            state.push_head(to, frame);
        }
    }

    fn take_for_eviction(&mut self, state: &mut State, rules: &Rules, frame: Frame) {
        let is_new = rules.placement == Placement::Workingset;
        if !state.frames.has(frame, Flags::REFERENCED) {
            forget(state, rules, frame);
        }
        if rules.dirty == DirtyFiles::Next {
            state.frames.clear(frame, Flags::RECLAIM);
        }
        if !is_new {
            state.frames.clear(frame, Flags::REFERENCED);
        }
        self.take(state, frame);
        state.isolate(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::with_knobs;

    const IO: May = May { class: 0, io: true, unmap: true, look: 4096 };
    const NO_IO: May = May { io: false, ..IO };
    const ANON: (Type, Option<usize>) = (Type::Anon, None);
    const FILE: (Type, Option<usize>) = (Type::File, None);

    /// The type that eviction begins with, and the last tier of it where the other type sets it, on a node
    /// whose oldest generations have these numbers. Half of 2,000 pages of files came back, and no anonymous
    /// page: refaults speak for anonymous pages.
    #[track_caller]
    fn begins(
        preset: (&str, &str),
        oldest: [u64; 2],
        swappiness: u32,
        may: May,
        expected: (Type, Option<usize>),
    ) {
        let mut node = Node::new(Vec::new());
        (node.min_seq, node.max_seq) = (oldest, 7);
        let first = node.control.tier_mut(Type::File, 0);
        (first.refaulted, first.evicted) = (1000, 2000);
        let begins = node.choose(&with_knobs(preset.0, preset.1), swappiness, may);
        assert_eq!(begins, expected, "{preset:?} {oldest:?}, swappiness {swappiness}, {may:?}");
    }

    #[test]
    fn until_6_13_the_older_type_is_evicted_first() {
        let preset = ("6.1", "");
        // Files, without swap.
        begins(preset, [4, 5], 0, IO, FILE);
        // Anonymous pages are older.
        begins(preset, [4, 5], 1, IO, ANON);
        begins(preset, [4, 5], 60, IO, ANON);
        // Both are alike: by swappiness at its ends, else by the first tiers' refaults.
        begins(preset, [5, 5], 1, IO, FILE);
        begins(preset, [5, 5], 200, IO, ANON);
        begins(preset, [5, 5], 60, IO, (Type::Anon, Some(3)));
        begins(preset, [5, 5], 60, NO_IO, (Type::Anon, Some(3)));
    }

    #[test]
    fn since_6_8_who_may_not_write_takes_files() {
        let preset = ("6.12", "");
        begins(preset, [5, 5], 60, NO_IO, FILE);
        begins(preset, [5, 5], 60, IO, (Type::Anon, Some(3)));
        begins(("6.12", "no_io_is_file=no"), [5, 5], 60, NO_IO, (Type::Anon, Some(3)));
        // What is older goes first all the same.
        begins(preset, [4, 5], 60, NO_IO, ANON);
    }

    #[test]
    fn since_6_14_refaults_of_all_tiers_decide() {
        let preset = ("6.18", "");
        begins(preset, [4, 5], 0, IO, FILE);
        begins(preset, [4, 5], 1, IO, FILE);
        begins(preset, [5, 4], 60, IO, ANON);
        begins(preset, [5, 4], 200, IO, ANON);
        begins(preset, [5, 4], 60, NO_IO, ANON);
        begins(("6.18", "types=first"), [5, 4], 60, IO, (Type::Anon, Some(3)));
        begins(("6.1", "types=all"), [5, 4], 60, IO, ANON);
    }
}
