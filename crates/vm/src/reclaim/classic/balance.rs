//! How many pages of each list a round scans (`prepare_scan_count`, `get_scan_count`).

use super::{ACTIVE, ANON, Balance, Classic, FILE, INACTIVE, Node};
use crate::host::Mark;
use crate::reclaimers::{Round, zones_of};
use crate::state::State;
use crate::vm::{Host, Vm};

/// What is decided once for a pass over a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    cost: [u64; 2],
    /// The active list of a type may be scanned.
    pub deactivate: [bool; 2],
    pub trim: bool,
    tiny: bool,
}

/// Which lists are scanned, and by what share.
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
        let (inactive, active) = node.known().of(kind);
        let ratio = self.choices.inactive_ratio.map_or_else(|| inactive_ratio(inactive + active), u64::from);
        inactive * ratio < active
    }

    /// Decides what a pass over a node may do.
    pub(super) fn prepare(&self, vm: &Vm, host: &dyn Host, round: &Round) -> Prepared {
        let zones = vm.with(|state| zones_of(state, round.node));
        let sum = |f: &dyn Fn(usize) -> u64| zones.iter().map(|zone| f(*zone)).sum::<u64>();
        let free = sum(&|zone| host.free_pages(zone));
        let high = sum(&|zone| host.mark(zone, Mark::High));
        self.node(round.node, |node| {
            let known = node.known();
            let grown = |kind: usize| known.activated[kind] != node.activated_before[kind];
            let may = |kind| round.deactivate || grown(kind) || self.inactive_is_low(node, kind);
            let deactivate = [may(ANON), may(FILE)];
            let inactive_file = node.all(INACTIVE[FILE]);
            let trim = known.sizes.inactive_file >> round.priority > 0 && !deactivate[FILE] && !round.no_trim;
            let files = node.all(ACTIVE[FILE]) + inactive_file;
            let anon = node.all(INACTIVE[ANON]);
            let tiny = files + free <= high && !deactivate[ANON] && anon >> round.priority > 0;
            Prepared {
                cost: node.cost,
                deactivate,
                trim: trim && self.choices.trim,
                tiny: tiny && self.choices.tiny,
            }
        })
    }

    /// Pages of each list to scan.
    pub(super) fn scan_counts(&self, state: &State, round: &Round, prepared: &Prepared) -> [u64; 4] {
        let swappiness = u64::from(state.settings.swappiness);
        let share = if !round.swap || state.swap.free() == 0 {
            Share::Files
        } else if round.priority == 0 && swappiness > 0 {
            Share::Equal
        } else if prepared.tiny {
            Share::Anon
        } else if prepared.trim {
            Share::Files
        } else if self.choices.balance == Balance::Equal {
            Share::Equal
        } else {
            let (anon, file) = by_cost(prepared.cost, swappiness);
            Share::Parts(anon, file)
        };
        let sizes = self.node(round.node, |node| {
            [INACTIVE[ANON], ACTIVE[ANON], INACTIVE[FILE], ACTIVE[FILE]]
                .map(|list| node.size(list, round.class) >> round.priority)
        });
        let part = |list: usize| match (&share, list / 2 == FILE) {
            (Share::Equal, _) | (Share::Files, true) | (Share::Anon, false) => sizes[list],
            (Share::Files, false) | (Share::Anon, true) => 0,
            (Share::Parts(anon, file), is_file) => {
                sizes[list] * if is_file { *file } else { *anon } / (anon + file).max(1)
            }
        };
        [part(0), part(1), part(2), part(3)]
    }
}

/// The weights of anonymous pages and files: each side's share of the total cost, no side below a third
/// before swappiness.
pub(super) fn by_cost(cost: [u64; 2], swappiness: u64) -> (u64, u64) {
    let total = cost[ANON] + cost[FILE];
    let (anon, file) = (total + cost[ANON], total + cost[FILE]);
    let total = anon + file;
    let anon_weight = swappiness * (total + 1) / (anon + 1);
    let file_weight = (200 - swappiness) * (total + 1) / (file + 1);
    (anon_weight, file_weight)
}

/// Active pages for one inactive page: the root of ten times the lists' GiB, at least 1.
pub(super) fn inactive_ratio(pages: u64) -> u64 {
    match pages >> 18 {
        0 => 1,
        gib => (10 * gib).isqrt(),
    }
}
