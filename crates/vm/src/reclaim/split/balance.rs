//! How many pages of each list of a zone a round scans (`get_scan_ratio`).

use super::isolate::kind_of_list;
use super::{ACTIVE, ANON, BITE, Balance, FILE, INACTIVE, Split, size};
use crate::state::State;

impl Split {
    /// Percent of the pages that are due that anonymous pages and files get (`get_scan_ratio`;
    /// docs/theory/vm.md 6.2).
    pub(super) fn scan_ratio(&self, state: &State, zone: usize, free: u64, high: u64) -> [u64; 2] {
        if state.swap.free() == 0 {
            return [0, 100];
        }
        let all =
            [ANON, FILE].map(|kind| size(state, zone, ACTIVE[kind]) + size(state, zone, INACTIVE[kind]));
        if all[FILE] + free <= high {
            return [100, 0];
        }
        if self.choices.balance == Balance::Equal {
            return [100, 100];
        }
        let swappiness = u64::from(state.settings.swappiness);
        self.past(zone, |past| {
            for kind in [ANON, FILE] {
                (past.scanned[kind], past.rotated[kind]) =
                    decayed(past.scanned[kind], past.rotated[kind], all[kind]);
            }
            let anon = weigh(swappiness, past.scanned[ANON], past.rotated[ANON]);
            let file = weigh(200 - swappiness, past.scanned[FILE], past.rotated[FILE]);
            let anon = 100 * anon / (anon + file + 1);
            [anon, 100 - anon]
        })
    }

    /// Pages of each list to scan now. What makes no bite is due later (docs/theory/vm.md 6.2).
    pub(super) fn due(&self, state: &State, zone: usize, priority: u32, percent: [u64; 2]) -> [u64; 4] {
        let mut now = [0; 4];
        for (list, now) in now.iter_mut().enumerate() {
            let pages = size(state, zone, list);
            let whole = pages * u64::from(state.settings.part);
            let share = match priority {
                0 => pages,
                _ => (whole >> priority).min(pages) * percent[kind_of_list(list)] / 100,
            };
            *now = self.past(zone, |past| {
                past.due[list] += share;
                if past.due[list] >= BITE { std::mem::take(&mut past.due[list]) } else { 0 }
            });
        }
        now
    }
}

/// docs/theory/vm.md 6.2.
fn weigh(priority: u64, scanned: u64, rotated: u64) -> u64 {
    (priority + 1) * (scanned + 1) / (rotated + 1)
}

/// Pages of a type that were scanned and those that were in use, halved when more than a quarter of the
/// type's pages were scanned (docs/theory/vm.md 6.2).
fn decayed(scanned: u64, rotated: u64, pages: u64) -> (u64, u64) {
    if scanned > pages / 4 { (scanned / 2, rotated / 2) } else { (scanned, rotated) }
}

/// Whether the inactive anonymous list of a zone is too short for its active one (docs/theory/vm.md 6.3).
pub(super) fn anon_is_low(state: &State, zone: usize) -> bool {
    let ratio = match state.zones[zone].managed >> 18 {
        0 => 1,
        gib => (10 * gib).isqrt(),
    };
    size(state, zone, INACTIVE[ANON]) * ratio < size(state, zone, ACTIVE[ANON])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_fades_when_more_than_a_quarter_was_scanned() {
        for (scanned, rotated, pages, expected) in
            [(100, 50, 400, (100, 50)), (101, 50, 400, (50, 25)), (1, 1, 3, (0, 0)), (0, 0, 0, (0, 0))]
        {
            assert_eq!(decayed(scanned, rotated, pages), expected, "{scanned} {rotated} of {pages}");
        }
    }

    #[test]
    fn a_type_weighs_by_its_pages_that_were_not_in_use() {
        for (priority, scanned, rotated, expected) in
            [(60, 0, 0, 61), (60, 99, 0, 6100), (60, 99, 99, 61), (140, 99, 9, 1410)]
        {
            assert_eq!(weigh(priority, scanned, rotated), expected, "{priority} {scanned} {rotated}");
        }
    }
}
