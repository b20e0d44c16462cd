//! How many pages of each list a round scans (`prepare_scan_count`, `get_scan_count`).
//!
//! What a pass finds goes in as [`Found`], and what it may do comes out as [`Prepared`]. Rules:
//! docs/theory/vm.md 3.3 and 3.4.

use super::{ACTIVE, ANON, Balance, Choices, Classic, Cost, FILE, INACTIVE, Node};
use crate::host::Mark;
use crate::reclaimers::{Round, zones_of};
use crate::replacement::Sizes;
use crate::state::State;
use crate::vm::{Host, Vm};

/// What a pass over a node finds when it begins.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// The sizes by which it judges: those of the last sum over memory groups.
    known: Sizes,
    /// The sizes as they are.
    sizes: Sizes,
    /// Free pages of the node, and the sum of its high marks.
    free: u64,
    high: u64,
    /// Refaults of a type were activated since the last reclaim ended.
    grown: [bool; 2],
    priority: u32,
    /// It is for the limit of a group, which has no free pages.
    group: bool,
    /// This round deactivates pages however long the inactive lists are; it does not trim.
    deactivate: bool,
    no_trim: bool,
}

/// What is decided once for a pass over a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    cost: [u64; 2],
    /// The active list of a type may be scanned.
    pub deactivate: [bool; 2],
    pub trim: bool,
    tiny: bool,
}

/// Which lists are scanned, and by what share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Share {
    Files,
    Anon,
    Equal,
    /// Parts of the first number for anonymous pages, of the second for files.
    Parts(u64, u64),
}

impl Classic {
    /// Whether a type's inactive list is too short for its active one.
    pub(super) fn inactive_is_low(&self, node: &Node, kind: usize) -> bool {
        is_low(self.choices.inactive_ratio, &node.known().sizes, kind)
    }

    /// Decides what a pass over a node may do.
    pub(super) fn prepare(&self, vm: &Vm, host: &dyn Host, round: &Round) -> Prepared {
        let zones = vm.with(|state| zones_of(state, round.node));
        let sum = |f: &dyn Fn(usize) -> u64| zones.iter().map(|zone| f(*zone)).sum::<u64>();
        let free = sum(&|zone| host.free_pages(zone));
        let high = sum(&|zone| host.mark(zone, Mark::High));
        self.node(round.node, |node| {
            let known = node.known();
            let found = Found {
                known: known.sizes,
                sizes: node.sizes(),
                free,
                high,
                grown: [ANON, FILE].map(|kind| known.activated[kind] != node.activated_before[kind]),
                priority: round.priority,
                group: round.group,
                deactivate: round.deactivate,
                no_trim: round.no_trim,
            };
            decide(&self.choices, &found, node.cost)
        })
    }

    /// Pages of each list to scan.
    pub(super) fn scan_counts(&self, state: &State, round: &Round, prepared: &Prepared) -> [u64; 4] {
        let swaps = round.swap && state.swap.free() > 0;
        let share = share(&self.choices, state.settings.swappiness, swaps, round.priority, prepared);
        let sizes = self.node(round.node, |node| {
            [INACTIVE[ANON], ACTIVE[ANON], INACTIVE[FILE], ACTIVE[FILE]]
                .map(|list| node.size(list, round.class) >> round.priority)
        });
        let part = |list: usize| match (share, list / 2 == FILE) {
            (Share::Equal, _) | (Share::Files, true) | (Share::Anon, false) => sizes[list],
            (Share::Files, false) | (Share::Anon, true) => 0,
            (Share::Parts(anon, file), is_file) => {
                sizes[list] * if is_file { file } else { anon } / (anon + file).max(1)
            }
        };
        [part(0), part(1), part(2), part(3)]
    }
}

/// Which active lists a pass may scan, and whether one type is scanned alone (docs/theory/vm.md 3.3).
fn decide(choices: &Choices, found: &Found, cost: [u64; 2]) -> Prepared {
    let may =
        |kind| found.deactivate || found.grown[kind] || is_low(choices.inactive_ratio, &found.known, kind);
    let deactivate = [may(ANON), may(FILE)];
    let is_long = |pages: u64| pages >> found.priority > 0;
    let trim = is_long(found.known.inactive_file) && !deactivate[FILE] && !found.no_trim;
    let files = found.sizes.active_file + found.sizes.inactive_file;
    let is_tiny = !found.group && files + found.free <= found.high;
    let tiny = is_tiny && !deactivate[ANON] && is_long(found.sizes.inactive_anon);
    Prepared { cost, deactivate, trim: trim && choices.trim, tiny: tiny && choices.tiny }
}

/// Which lists a round scans, by what share. `swaps`: anonymous pages may go, and a slot is free
/// (docs/theory/vm.md 3.4).
fn share(choices: &Choices, swappiness: u32, swaps: bool, priority: u32, prepared: &Prepared) -> Share {
    if !swaps {
        Share::Files
    } else if priority == 0 && swappiness > 0 {
        Share::Equal
    } else if prepared.tiny {
        Share::Anon
    } else if prepared.trim {
        Share::Files
    } else if choices.balance == Balance::Equal {
        Share::Equal
    } else {
        let (anon, file) = by_cost(prepared.cost, swappiness.into());
        Share::Parts(anon, file)
    }
}

/// The weights of anonymous pages and files: each side's share of the total cost, no side below a third
/// before swappiness (docs/theory/vm.md 3.4).
fn by_cost(cost: [u64; 2], swappiness: u64) -> (u64, u64) {
    let total = cost[ANON] + cost[FILE];
    let (anon, file) = (total + cost[ANON], total + cost[FILE]);
    let total = anon + file;
    let anon_weight = swappiness * (total + 1) / (anon + 1);
    let file_weight = (200 - swappiness) * (total + 1) / (file + 1);
    (anon_weight, file_weight)
}

/// Whether a type's inactive list is too short for its active one. `ratio`: active pages for one inactive
/// page; `None`: by the size of the lists (docs/theory/vm.md 3.3).
fn is_low(ratio: Option<u32>, sizes: &Sizes, kind: usize) -> bool {
    let (inactive, active) = match kind {
        ANON => (sizes.inactive_anon, sizes.active_anon),
        _ => (sizes.inactive_file, sizes.active_file),
    };
    let ratio = ratio.map_or_else(|| inactive_ratio(inactive + active), u64::from);
    inactive * ratio < active
}

/// Active pages for one inactive page: the root of ten times the lists' GiB, at least 1.
fn inactive_ratio(pages: u64) -> u64 {
    match pages >> 18 {
        0 => 1,
        gib => (10 * gib).isqrt(),
    }
}

/// What pages cost their type: pages written or restored, and pages scanned in vain (docs/theory/vm.md 3.4).
pub(super) fn cost_of(rule: Cost, io: u64, vain: u64) -> u64 {
    match rule {
        Cost::Io => io,
        Cost::IoAndRotations => io * super::BITE + vain,
    }
}

/// Both types' costs, halved if their sum exceeds a quarter of the lists (docs/theory/vm.md 3.4).
pub(super) fn decayed(cost: [u64; 2], sizes: &Sizes) -> [u64; 2] {
    let Sizes { inactive_anon, active_anon, inactive_file, active_file } = *sizes;
    let pages = inactive_anon + active_anon + inactive_file + active_file;
    if cost[ANON] + cost[FILE] > pages / 4 { cost.map(|cost| cost / 2) } else { cost }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::with_knobs;

    fn choices(release: &str, knobs: &str) -> Choices {
        with_knobs(release, knobs)
    }

    fn sizes([inactive_anon, active_anon, inactive_file, active_file]: [u64; 4]) -> Sizes {
        Sizes { inactive_anon, active_anon, inactive_file, active_file }
    }

    #[test]
    fn an_inactive_list_is_low_below_a_ratio_of_the_active_one() {
        const GIB: u64 = 1 << 18;
        for (ratio, inactive, active, expected) in [
            (None, 100, 100, false),
            (None, 100, 101, true),
            (Some(3), 100, 300, false),
            (Some(3), 100, 301, true),
            // Below 1 GiB the ratio is 1; the root of 10 from there on; 14 at 20 GiB.
            (None, GIB / 2 - 1, GIB / 2, true),
            (None, GIB / 4, 3 * GIB / 4, false),
            (None, GIB / 4 - 1, 3 * GIB / 4 + 1, true),
            (None, 4 * GIB / 3 + 1, 14 * (4 * GIB / 3 + 1), false),
            (None, 4 * GIB / 3 + 1, 14 * (4 * GIB / 3 + 1) + 1, true),
        ] {
            for kind in [ANON, FILE] {
                let mut of = [0; 4];
                (of[INACTIVE[kind]], of[ACTIVE[kind]]) = (inactive, active);
                assert_eq!(is_low(ratio, &sizes(of), kind), expected, "{ratio:?} {inactive} {active} {kind}");
            }
        }
    }

    /// What a pass may do: scan the active anonymous list, that of files, trim files, scan anonymous pages
    /// alone. In `change` a test changes what the pass finds.
    #[track_caller]
    fn may(choices: &Choices, change: impl FnOnce(&mut Found), expected: [bool; 4]) {
        let lists = sizes([100, 100, 4096, 4096]);
        let mut found = Found {
            known: lists,
            sizes: lists,
            free: 0,
            high: 0,
            grown: [false; 2],
            priority: 12,
            group: false,
            deactivate: false,
            no_trim: false,
        };
        change(&mut found);
        let Prepared { deactivate: [anon, file], trim, tiny, .. } = decide(choices, &found, [0; 2]);
        assert_eq!([anon, file, trim, tiny], expected, "{found:?}");
    }

    #[test]
    fn a_pass_scans_active_lists_trims_or_takes_anonymous_pages_alone() {
        let usual = choices("6.1", "");
        may(&usual, |_| {}, [false, false, true, false]);
        // Shorter than the active list, grown, or a second try: the active list is scanned, and files are
        // not trimmed.
        may(&usual, |found| found.known.active_anon = 101, [true, false, true, false]);
        may(&usual, |found| found.known.active_file = 4097, [false, true, false, false]);
        may(&usual, |found| found.grown[ANON] = true, [true, false, true, false]);
        may(&usual, |found| found.grown[FILE] = true, [false, true, false, false]);
        may(&usual, |found| found.deactivate = true, [true, true, false, false]);
        // Fewer inactive files than one page at this priority; kswapd failed to trim.
        may(&usual, |found| (found.known.inactive_file, found.known.active_file) = (4095, 0), [false; 4]);
        may(&usual, |found| found.no_trim = true, [false; 4]);
        may(&choices("6.1", "trim=no"), |_| {}, [false; 4]);
        // The lists by which it judges need not be those that there are.
        may(&usual, |found| found.sizes.inactive_file = 0, [false, false, true, false]);
        // Files and free pages up to the high marks, and enough anonymous pages for this priority.
        let few = |free: u64, anon: u64| {
            move |found: &mut Found| {
                (found.sizes.inactive_anon, found.free, found.high, found.no_trim) = (anon, free, 8292, true);
            }
        };
        may(&usual, few(100, 4096), [false, false, false, true]);
        may(&usual, few(101, 4096), [false; 4]);
        may(&usual, few(100, 4095), [false; 4]);
        may(&choices("6.1", "tiny=no"), few(100, 4096), [false; 4]);
        // A group's free pages are those of the machine.
        let of_group = |found: &mut Found| {
            few(100, 4096)(found);
            found.group = true;
        };
        may(&usual, of_group, [false; 4]);
    }

    #[test]
    fn one_of_five_rules_says_which_lists_are_scanned() {
        let none = Prepared { cost: [0; 2], deactivate: [false; 2], trim: false, tiny: false };
        let (trim, tiny) = (Prepared { trim: true, ..none }, Prepared { tiny: true, ..none });
        let both = Prepared { trim: true, ..tiny };
        let (usual, equal) = (choices("6.1", ""), choices("6.1", "balance=equal"));
        for (choices, swappiness, swaps, priority, prepared, expected) in [
            (&usual, 60, false, 0, tiny, Share::Files),
            (&usual, 60, true, 0, both, Share::Equal),
            (&usual, 0, true, 0, both, Share::Anon),
            (&usual, 60, true, 1, both, Share::Anon),
            (&usual, 60, true, 12, trim, Share::Files),
            (&equal, 60, true, 12, trim, Share::Files),
            (&equal, 60, true, 12, none, Share::Equal),
            (&usual, 60, true, 12, none, Share::Parts(60, 140)),
            (&usual, 0, true, 0, none, Share::Parts(0, 200)),
        ] {
            let share = share(choices, swappiness, swaps, priority, &prepared);
            assert_eq!(share, expected, "swappiness {swappiness}, {swaps}, {priority}, {prepared:?}");
        }
    }

    #[test]
    fn weights_are_shares_of_the_cost_times_swappiness() {
        // With a' = 2a + f and f' = a + 2f: a' + f' + 1 over a' + 1, and over f' + 1.
        for (cost, swappiness, expected) in [
            ([0, 0], 60, (60, 140)),
            ([0, 0], 200, (200, 0)),
            // a' = 200, f' = 100: 100 x 301 / 201, 100 x 301 / 101.
            ([100, 0], 100, (149, 298)),
            ([0, 100], 100, (298, 149)),
            ([0, 100], 60, (178, 209)),
            // a' = 500, f' = 400: 100 x 901 / 501, 100 x 901 / 401.
            ([200, 100], 100, (179, 224)),
        ] {
            assert_eq!(by_cost(cost, swappiness), expected, "{cost:?} {swappiness}");
        }
    }

    #[test]
    fn costs_count_writes_and_since_6_2_pages_scanned_in_vain() {
        for (release, io, vain, expected) in
            [("6.1", 3, 0, 3), ("6.1", 3, 12, 3), ("6.12", 3, 0, 96), ("6.12", 3, 12, 108)]
        {
            assert_eq!(cost_of(choices(release, "").cost, io, vain), expected, "{release} {io} {vain}");
        }
        // Half of it is left when both together exceed a quarter of 400 pages.
        let lists = sizes([100, 100, 100, 100]);
        assert_eq!(decayed([60, 40], &lists), [60, 40]);
        assert_eq!(decayed([60, 41], &lists), [30, 20]);
    }
}
