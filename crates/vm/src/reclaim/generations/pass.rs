//! What a pass decides: whether it ages, at which priority it begins, what counts, when it stops, whether it
//! wakes the flushers. Facts go in, and a decision comes out. Rules: docs/theory/vm.md 4.6, 4.10 and 4.11.

use super::policy::{AfterAging, Ager, BATCH, Budget, FirstPriority, Flushers, Rules};
use crate::reclaimers::FIRST;

/// What decides in 6.1 whether a pass stops before it scanned its share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    pub kswapd: bool,
    pub priority: u32,
    /// The pages that were wanted are reclaimed.
    pub has_enough: bool,
    /// The last batch was of anonymous pages.
    pub swapped: bool,
    /// Generations that began in this pass.
    pub begun: u64,
}

/// Whether a pass stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stops {
    Yes,
    /// If free pages reach the mark.
    AtMark,
    No,
}

impl Late {
    pub(super) fn stops(self) -> Stops {
        let Late { kswapd, priority, has_enough, swapped, begun } = self;
        if !kswapd && (begun > 1 || has_enough && swapped) {
            Stops::Yes
        } else if priority <= FIRST - 2 && (has_enough || !kswapd) {
            Stops::AtMark
        } else {
            Stops::No
        }
    }
}

/// What a pass does when a new generation is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Evicts,
    Skips,
    /// A generation begins first.
    AgesAndEvicts,
    /// A generation begins. The other generations have their turn in the next pass.
    Ages,
}

/// Tries to do without a new generation at the first priority. `evictable`: pages can go without one
/// (docs/theory/vm.md 4.6).
pub(super) fn turn(rules: &Rules, kswapd: bool, priority: u32, evictable: bool) -> Turn {
    match rules.ager {
        _ if priority == FIRST && evictable => Turn::Evicts,
        _ if priority == FIRST && rules.budget == Budget::Once => Turn::Ages,
        _ if priority == FIRST => Turn::Skips,
        Ager::Round if kswapd => Turn::Skips,
        Ager::Round => Turn::AgesAndEvicts,
        Ager::Eviction => Turn::Ages,
    }
}

/// What a pass may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    /// Pages of the pass; 0: it ends.
    pub share: u64,
    /// It ends after one batch.
    pub is_last: bool,
}

/// What is next for a pass of [`Turn::Ages`], for the limit of a group or not. `aged`: it began a generation
/// (docs/theory/vm.md 4.6).
pub(super) fn after_aging(rule: AfterAging, group: bool, aged: bool, share: u64) -> Next {
    match rule {
        AfterAging::Batch if group => Next { share, is_last: false },
        AfterAging::Stops => Next { share: 0, is_last: false },
        AfterAging::Batch => Next { share, is_last: aged },
        AfterAging::Goes => Next { share, is_last: false },
    }
}

/// How many pages a look counts for, that isolated so many and had so many `left` to look at when the list
/// ended: in a pass that computes its pages before each batch nothing, if the list has nothing to isolate
/// (docs/theory/vm.md 4.11).
pub(super) fn counted(budget: Budget, isolated: usize, left: u32, scanned: u32) -> u32 {
    if budget == Budget::Each && isolated == 0 && left > 0 { 0 } else { scanned }
}

/// How far a batch brought its pass, which counted so many pages: 0 ends the pass. `dropped`: an empty
/// generation went. `evictable`: pages can go without a new generation (docs/theory/vm.md 4.11).
pub(super) fn progress(budget: Budget, scanned: u32, dropped: bool, evictable: bool) -> u32 {
    match budget {
        Budget::Once => scanned,
        Budget::Each if evictable => scanned + u32::from(dropped),
        Budget::Each => 0,
    }
}

/// The priority of a pass over so many inactive pages that wants `target` of them (docs/theory/vm.md 4.11).
pub(super) fn priority_for(rule: FirstPriority, priority: u32, target: u64, pages: u64) -> u32 {
    if rule == FirstPriority::Default || priority != FIRST || target < BATCH {
        return priority;
    }
    let (have, want) = (u64::BITS - pages.leading_zeros(), u64::BITS - (target - 1).leading_zeros());
    have.saturating_sub(1 + want).clamp(FIRST / 2, FIRST)
}

/// Dirty pages of files that were met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dirty {
    /// All pages that count.
    pub of: u64,
    /// Dirty ones that nobody writes.
    pub unqueued: u64,
}

impl Dirty {
    /// Pages met, and all of them dirty, and nobody writes them.
    fn is_all(self) -> bool {
        self.unqueued > 0 && self.unqueued == self.of
    }
}

/// Whether the flushers are woken at the end of a pass that met these of the dirty pages of files
/// (docs/theory/vm.md 4.10).
pub(super) fn pass_wakes_flushers(rule: Flushers, met: Dirty) -> bool {
    rule == Flushers::Woken && met.is_all()
}

/// Whether the flushers are woken by a batch that met these of all pages that it isolated or, because they
/// were dirty, did not.
pub(super) fn batch_wakes_flushers(rule: Flushers, met: Dirty) -> bool {
    rule == Flushers::Batch && met.is_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::with_knobs;

    #[test]
    fn in_6_1_a_pass_stops_late() {
        let none = Late { kswapd: false, priority: 12, has_enough: false, swapped: false, begun: 0 };
        let enough = Late { has_enough: true, ..none };
        for (late, expected) in [
            // An allocation: after two new generations, or with enough when it swapped.
            (none, Stops::No),
            (Late { begun: 1, ..none }, Stops::No),
            (Late { begun: 2, ..none }, Stops::Yes),
            (enough, Stops::No),
            (Late { swapped: true, ..none }, Stops::No),
            (Late { swapped: true, ..enough }, Stops::Yes),
            // From priority 10 on free pages at the mark are enough.
            (Late { priority: 11, ..none }, Stops::No),
            (Late { priority: 10, ..none }, Stops::AtMark),
            // kswapd goes by the mark alone, and only when it has enough.
            (Late { kswapd: true, begun: 2, swapped: true, ..enough }, Stops::No),
            (Late { kswapd: true, priority: 10, ..none }, Stops::No),
            (Late { kswapd: true, priority: 10, ..enough }, Stops::AtMark),
            (Late { kswapd: true, priority: 11, ..enough }, Stops::No),
        ] {
            assert_eq!(late.stops(), expected, "{late:?}");
        }
    }

    #[test]
    fn a_pass_ages_or_evicts_when_a_generation_is_due() {
        for (knobs, kswapd, priority, evictable, expected) in [
            ("ager=round", false, 12, true, Turn::Evicts),
            ("ager=round", false, 12, false, Turn::Skips),
            ("ager=round", false, 11, true, Turn::AgesAndEvicts),
            ("ager=round", false, 11, false, Turn::AgesAndEvicts),
            // In 6.1 kswapd ages before its round.
            ("ager=round", true, 11, true, Turn::Skips),
            ("ager=round", true, 12, true, Turn::Evicts),
            ("ager=eviction", true, 12, true, Turn::Evicts),
            ("ager=eviction", true, 12, false, Turn::Skips),
            ("ager=eviction", true, 11, true, Turn::Ages),
            ("ager=eviction", false, 11, true, Turn::Ages),
            // Since 7.2 a pass at the first priority ages too, if nothing can go without.
            ("ager=eviction,budget=once", true, 12, true, Turn::Evicts),
            ("ager=eviction,budget=once", true, 12, false, Turn::Ages),
            ("ager=eviction,budget=once", true, 11, false, Turn::Ages),
        ] {
            let rules = with_knobs::<Rules>("6.1", knobs);
            let turn = turn(&rules, kswapd, priority, evictable);
            assert_eq!(turn, expected, "{knobs}, kswapd {kswapd}, {priority}, {evictable}");
        }
    }

    #[test]
    fn since_7_2_a_pass_that_aged_evicts_a_batch_or_goes_on() {
        let next = |share, is_last| Next { share, is_last };
        for (knobs, group, aged, expected) in [
            ("after_aging=stops", false, true, next(0, false)),
            ("after_aging=stops", false, false, next(0, false)),
            ("after_aging=stops", true, true, next(0, false)),
            ("after_aging=batch", false, true, next(500, true)),
            // Another reclaimer ages: this one has not, and goes on.
            ("after_aging=batch", false, false, next(500, false)),
            ("after_aging=batch", true, true, next(500, false)),
            ("after_aging=goes", false, true, next(500, false)),
        ] {
            let rules = with_knobs::<Rules>("6.18", knobs);
            let next = after_aging(rules.after_aging, group, aged, 500);
            assert_eq!(next, expected, "{knobs}, for a group {group}, aged {aged}");
        }
    }

    #[test]
    fn since_7_2_each_page_that_is_looked_at_counts() {
        // Pages isolated; pages left to look at; pages looked at.
        for (knobs, isolated, left, scanned, expected) in [
            ("budget=each", 64, 4000, 96, 96),
            ("budget=each", 0, 4000, 96, 0),
            // The look was as long as it may be: there may be more.
            ("budget=each", 0, 0, 4096, 4096),
            ("budget=once", 64, 0, 64, 64),
            ("budget=once", 0, 4000, 96, 96),
            ("budget=once", 0, 4096, 0, 0),
        ] {
            let rules = with_knobs::<Rules>("6.18", knobs);
            let is = counted(rules.budget, isolated, left, scanned);
            assert_eq!(is, expected, "{knobs} {isolated} {left} {scanned}");
        }
    }

    #[test]
    fn until_7_1_a_generation_that_went_is_progress_and_too_few_end_the_pass() {
        for (knobs, scanned, dropped, evictable, expected) in [
            ("budget=each", 64, false, true, 64),
            ("budget=each", 64, true, true, 65),
            ("budget=each", 0, true, true, 1),
            ("budget=each", 64, true, false, 0),
            ("budget=once", 64, true, true, 64),
            ("budget=once", 0, true, true, 0),
            ("budget=once", 64, true, false, 64),
        ] {
            let rules = with_knobs::<Rules>("6.18", knobs);
            let is = progress(rules.budget, scanned, dropped, evictable);
            assert_eq!(is, expected, "{knobs} {scanned} {dropped} {evictable}");
        }
    }

    #[test]
    fn since_6_11_kswapd_begins_where_one_pass_would_do() {
        for (knobs, priority, target, pages, expected) in [
            // 100,000 pages have 17 bits, 99 have 7.
            ("first_priority=estimated", 12, 100, 100_000, 9),
            ("first_priority=estimated", 12, 100, 1 << 24, 12),
            ("first_priority=estimated", 12, 100, 1_000, 6),
            ("first_priority=estimated", 12, 100, 0, 6),
            ("first_priority=estimated", 12, 64, 100_000, 10),
            // Fewer than a batch are wanted; it is not the first pass; 6.1.
            ("first_priority=estimated", 12, 63, 100_000, 12),
            ("first_priority=estimated", 11, 100, 100_000, 11),
            ("first_priority=default", 12, 100, 100_000, 12),
        ] {
            let rules = with_knobs::<Rules>("6.12", knobs);
            let first = priority_for(rules.first_priority, priority, target, pages);
            assert_eq!(first, expected, "{knobs} {priority} {target} {pages}");
        }
    }

    #[test]
    fn since_6_13_an_eviction_that_met_only_dirty_files_wakes_the_flushers() {
        // The pages met, those of them that are dirty and wait for a flusher; whether a pass wakes it at its
        // end, and a batch.
        for (knobs, of, unqueued, expected) in [
            ("flushers=woken", 64, 64, [true, false]),
            ("flushers=woken", 64, 63, [false, false]),
            ("flushers=woken", 0, 0, [false, false]),
            ("flushers=asleep", 64, 64, [false, false]),
            ("flushers=batch", 64, 64, [false, true]),
            ("flushers=batch", 64, 63, [false, false]),
            ("flushers=batch", 0, 0, [false, false]),
        ] {
            let rules = with_knobs::<Rules>("6.18", knobs);
            let met = Dirty { of, unqueued };
            let wakes = [pass_wakes_flushers(rules.flushers, met), batch_wakes_flushers(rules.flushers, met)];
            assert_eq!(wakes, expected, "{knobs} {met:?}");
        }
    }
}
