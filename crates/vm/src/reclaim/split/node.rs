//! The two reclaimers: an allocation (`try_to_free_pages`) and kswapd (`balance_pgdat`).

use super::scan::{FIRST, Round, all_pages};
use super::{BITE, Split, lru_pages};
use crate::counters::Counter;
use crate::host::{Ask, Mark};
use crate::replacement::{Freed, Pass};
use crate::shrinker::shrink_slab_by_scan;
use crate::state::State;
use crate::vm::{Host, Vm};

/// A zone is given up when it was scanned this many times over without a page.
const IN_VAIN: u64 = 6;

impl Split {
    /// Frees 32 pages, at falling priorities from 12 to 0 (docs/theory/vm.md 6.7).
    pub(super) fn reclaim_directly(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        vm.with(|state| state.count(Counter::AllocStall));
        let zones = vm.with(|state| zones_for(state, ask.node, ask.class));
        let mut round = Round { order: ask.order, io: ask.io, fs: ask.fs, ..Round::default() };
        let lru_pages = vm.with(|state| all_pages(state, &zones));
        let (mut total, mut is_hopeless) = (0, true);
        for priority in (0..=FIRST).rev() {
            (round.priority, round.scanned) = (priority, 0);
            is_hopeless = true;
            for zone in &zones {
                if self.past(*zone, |past| past.unreclaimable) && priority != FIRST {
                    continue;
                }
                is_hopeless = false;
                self.shrink_zone(vm, host, *zone, &mut round);
            }
            self.shrink_slabs(vm, host, &mut round, lru_pages);
            total += round.scanned;
            if round.reclaimed >= BITE {
                break;
            }
            if total > BITE + BITE / 2 {
                host.wake_flushers(total);
            }
            if round.scanned > 0 && priority < FIRST - 2 {
                self.throttle(host);
            }
        }
        let progress = round.reclaimed >= BITE || round.reclaimed > 0 && !is_hopeless;
        Freed { pages: round.reclaimed as u32, progress, page: None }
    }

    /// A pass over a zone, before other nodes are asked ([`crate::near`]).
    pub(super) fn shrink_zone_near(&self, vm: &Vm, host: &dyn Host, ask: &Ask, pass: &mut Pass) {
        let mut round = Round {
            order: ask.order,
            priority: pass.priority,
            io: ask.io,
            fs: ask.fs,
            keeps_mapped: !pass.unmap,
            keeps_dirty: !pass.write,
            reclaimed: pass.freed,
            ..Round::default()
        };
        self.shrink_zone(vm, host, pass.zone, &mut round);
        pass.freed = round.reclaimed;
        pass.scanned += round.scanned;
    }

    /// Shrinks slab caches until they free no object, or so many pages came back.
    pub(super) fn shrink_slabs_only(&self, vm: &Vm, host: &dyn Host, pass: &mut Pass, wanted: u64) {
        let pages = vm.with(|state| lru_pages(state, pass.zone));
        let end = pass.freed + wanted;
        while self.choices.slabs && pass.freed < end {
            let shrunk = shrink_slab_by_scan(vm, host, &self.owed, pass.scanned, pages);
            pass.freed += shrunk.pages;
            if shrunk.freed == 0 {
                break;
            }
        }
    }

    /// Shrinks slab caches by the share of the lists that was scanned. Returns objects freed.
    fn shrink_slabs(&self, vm: &Vm, host: &dyn Host, round: &mut Round, lru_pages: u64) -> u64 {
        if !self.choices.slabs {
            return 0;
        }
        let shrunk = shrink_slab_by_scan(vm, host, &self.owed, round.scanned, lru_pages);
        round.reclaimed += shrunk.pages;
        shrunk.freed
    }

    /// Balances a node; again for a larger order that was asked for meanwhile.
    pub(super) fn run_kswapd(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8) {
        let mut order = order;
        loop {
            self.balance(vm, host, node, if self.choices.kswapd_order { order } else { 0 });
            // A request of no larger order is forgotten: whoever made it wakes kswapd again.
            match host.asked(node) {
                Some((larger, _)) if larger > order => order = larger,
                _ => return,
            }
        }
    }

    /// Until all zones are above high for the order; an order that reclaim cannot serve falls to 0
    /// (docs/theory/vm.md 6.9).
    fn balance(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8) {
        let zones = vm.with(|state| zones_of(state, node));
        let mut order = order;
        loop {
            vm.with(|state| state.count(Counter::PageOutRun));
            let mut round = Round { order, kswapd: true, io: true, fs: true, ..Round::default() };
            let (mut balanced, mut total) = (true, 0);
            for priority in (0..=FIRST).rev() {
                round.priority = priority;
                let Some(last) = self.last_low_zone(vm, host, &zones, &mut round) else {
                    return;
                };
                balanced = self.balance_zones(vm, host, &zones[..=last], &mut round, &mut total);
                if balanced {
                    break;
                }
                if total > 0 && priority < FIRST - 2 {
                    self.throttle(host);
                }
                if round.reclaimed >= BITE {
                    break;
                }
            }
            if balanced {
                return;
            }
            host.resched();
            if round.reclaimed < BITE {
                // Zones that are never given up keep no kswapd that finds nothing from sleeping.
                // Assumed.
                if !self.choices.gives_up && order == 0 && round.reclaimed == 0 {
                    return;
                }
                order = 0;
            }
        }
    }

    /// The highest zone that is not above high, as an index into `zones`. On the way zones are aged.
    fn last_low_zone(&self, vm: &Vm, host: &dyn Host, zones: &[usize], round: &mut Round) -> Option<usize> {
        for (at, zone) in zones.iter().enumerate().rev() {
            if self.past(*zone, |past| past.unreclaimable) && round.priority != FIRST {
                continue;
            }
            self.age_anon(vm, host, *zone, round);
            if !host.is_above(*zone, Mark::High, round.order, 0) {
                return Some(at);
            }
        }
        None
    }

    /// Scans these zones from the lowest, but not those with far more than enough free. Returns whether
    /// all were above high before.
    fn balance_zones(
        &self,
        vm: &Vm,
        host: &dyn Host,
        zones: &[usize],
        round: &mut Round,
        total: &mut u64,
    ) -> bool {
        let all = vm.with(|state| all_pages(state, zones));
        let class = vm.with(|state| zones.last().map_or(0, |zone| state.zones[*zone].class));
        let enough = self.choices.enough.into();
        let mut balanced = true;
        for zone in zones.iter().copied() {
            if self.past(zone, |past| past.unreclaimable) && round.priority != FIRST {
                continue;
            }
            balanced &= host.is_above(zone, Mark::High, round.order, class);
            round.scanned = 0;
            if !host.is_above_times(zone, enough, Mark::High, round.order, class) {
                self.shrink_zone(vm, host, zone, round);
            }
            let objects = self.shrink_slabs(vm, host, round, all);
            *total += round.scanned;
            let pages = vm.with(|state| lru_pages(state, zone));
            self.past(zone, |past| {
                past.unreclaimable |= self.choices.gives_up && is_in_vain(past.in_vain, pages, objects);
            });
        }
        balanced
    }
}

/// Whether a zone of so many pages is given up: it was scanned six times over without a page, and slab caches
/// gave no object (docs/theory/vm.md 6.9).
fn is_in_vain(scanned: u64, pages: u64, objects: u64) -> bool {
    objects == 0 && scanned >= IN_VAIN * pages
}

/// The zones of a node, from the lowest, as indexes.
pub(super) fn zones_of(state: &State, node: u16) -> Vec<usize> {
    let zones = state.zones.iter().enumerate();
    zones.filter(|(_, zone)| zone.node == node && zone.managed > 0).map(|(at, _)| at).collect()
}

/// The zones that a request can use, in its order: its node's, from the highest; then the other nodes'.
fn zones_for(state: &State, node: u16, class: u8) -> Vec<usize> {
    let nodes = state.zones.iter().map(|zone| zone.node).max().map_or(0, |last| last + 1);
    let order = (node..nodes).chain(0..node.min(nodes));
    let zones = order.flat_map(|node| zones_of(state, node).into_iter().rev());
    zones.filter(|zone| state.zones[*zone].class <= class).collect()
}

#[cfg(test)]
mod tests {
    use super::is_in_vain;

    #[test]
    fn a_zone_is_given_up_when_it_was_scanned_six_times_over() {
        for (scanned, pages, objects, expected) in
            [(599, 100, 0, false), (600, 100, 0, true), (600, 100, 1, false), (0, 0, 0, true)]
        {
            assert_eq!(
                is_in_vain(scanned, pages, objects),
                expected,
                "{scanned} of {pages}, {objects} objects"
            );
        }
    }
}
