//! What a pass decides: whether it ages, at which priority it begins, when it stops, whether it wakes the
//! flushers. Facts go in, and a decision comes out. Rules: docs/theory/vm.md 4.6, 4.10 and 4.11.

use super::balance::BATCH;
use super::policy::{Ager, FirstPriority, Flushers};
use crate::reclaimers::{FIRST, Met};

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
pub(super) fn turn(ager: Ager, kswapd: bool, priority: u32, evictable: bool) -> Turn {
    match ager {
        _ if priority == FIRST && evictable => Turn::Evicts,
        _ if priority == FIRST => Turn::Skips,
        Ager::Round if kswapd => Turn::Skips,
        Ager::Round => Turn::AgesAndEvicts,
        Ager::Eviction => Turn::Ages,
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

/// Whether a pass wakes the flushers: all pages of files that it met were dirty, and nobody writes them
/// (docs/theory/vm.md 4.10).
pub(super) fn wakes_flushers(rule: Flushers, met: &Met) -> bool {
    rule == Flushers::Woken && met.unqueued_dirty > 0 && met.unqueued_dirty == met.file_taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::generations::Rules;
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
        ] {
            let rules = with_knobs::<Rules>("6.1", knobs);
            let turn = turn(rules.ager, kswapd, priority, evictable);
            assert_eq!(turn, expected, "{knobs}, kswapd {kswapd}, {priority}, {evictable}");
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
        for (knobs, unqueued_dirty, file_taken, expected) in [
            ("flushers=woken", 64, 64, true),
            ("flushers=woken", 63, 64, false),
            ("flushers=woken", 0, 0, false),
            ("flushers=asleep", 64, 64, false),
        ] {
            let rules = with_knobs::<Rules>("6.18", knobs);
            let met = Met { unqueued_dirty, file_taken, ..Met::default() };
            assert_eq!(wakes_flushers(rules.flushers, &met), expected, "{knobs} {met:?}");
        }
    }
}
