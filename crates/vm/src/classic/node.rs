//! A pass over a node: its lists, then the slab caches, then whether to go on and whether to sleep.

use super::balance::{FIRST, Round, zones_of};
use super::{ANON, Classic, FILE, INACTIVE, LISTS};
use crate::host::{Mark, Throttle};
use crate::shrinker::shrink_slab;
use crate::vm::{Host, Vm};
use std::rc::Rc;

/// Runs of kswapd without a page after which it gives up (`MAX_RECLAIM_RETRIES`).
pub(super) const RETRIES: u32 = 16;
/// One tick of the clock at 250 Hz, the configuration of Debian.
const TICK: u64 = 4_000_000;
/// The largest order that is retried for long (`PAGE_ALLOC_COSTLY_ORDER`).
pub(super) const COSTLY: u8 = 3;

impl Classic {
    /// Scans a node until compaction has enough to work on.
    pub(super) fn shrink_node(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        let before = round.reclaimed;
        loop {
            let this_pass = round.reclaimed;
            round.met = Default::default();
            let prepared = self.prepare(vm, host, round);
            self.shrink_lists(vm, host, round, &prepared);
            if self.choices.slabs {
                let owed = self.node(round.node, |node| Rc::clone(&node.owed));
                round.reclaimed += shrink_slab(vm, host, &owed, round.priority);
            }
            if round.reclaimed == this_pass && prepared.trim {
                round.trim_failed = true;
            }
            self.look_at_writes(vm, host, round);
            if !self.should_continue(vm, host, round, round.reclaimed - this_pass) {
                break;
            }
        }
        if round.reclaimed > before {
            self.node(round.node, |node| node.failures = 0);
        }
    }

    /// Remembers what a pass met, and sleeps if writes hold reclaim up.
    fn look_at_writes(&self, vm: &Vm, host: &dyn Host, round: &Round) {
        let met = round.met;
        let congested = self.node(round.node, |node| {
            if round.kswapd {
                node.met_writeback |= met.writeback > 0 && met.writeback == met.taken;
                node.met_dirty |= met.unqueued_dirty == met.file_taken;
                node.congested |= met.dirty > 0 && met.dirty == met.congested;
            }
            node.congested
        });
        if round.kswapd && met.immediate > 0 {
            self.throttle(host, Throttle::Writeback, 100_000_000);
        }
        if !round.kswapd && congested && !self.sleep_is_vain(vm, round.node) {
            self.throttle(host, Throttle::Congestion, TICK);
        }
    }

    /// Sleeps, if the policy does.
    pub(super) fn throttle(&self, host: &dyn Host, why: Throttle, most: u64) {
        if self.choices.throttle { host.throttle(why, most) } else { host.resched() }
    }

    /// A direct reclaimer that finds nothing sleeps for a tick (`consider_reclaim_throttle`).
    pub(super) fn consider_throttle(&self, vm: &Vm, host: &dyn Host, round: &Round) {
        if round.reclaimed > round.scanned >> 3 {
            host.unthrottle(Throttle::NoProgress);
        } else if !round.kswapd
            && round.priority == 1
            && round.reclaimed == 0
            && !self.sleep_is_vain(vm, round.node)
        {
            self.throttle(host, Throttle::NoProgress, TICK);
        }
    }

    /// A sleep would not help (`skip_throttle_noprogress`): kswapd has given up, or most pages are not in the
    /// way of a write. Pages of all nodes are taken for the node's own.
    fn sleep_is_vain(&self, vm: &Vm, node: u16) -> bool {
        let pending = 2 * vm.with(|state| state.dirty.file + state.dirty.writeback);
        self.node(node, |node| node.failures >= RETRIES || pending <= (0..4).map(|list| node.all(list)).sum())
    }

    /// Whether a pass for a large block goes on: reclaim still finds pages, and compaction has too few
    /// (`should_continue_reclaim`).
    fn should_continue(&self, vm: &Vm, host: &dyn Host, round: &Round, reclaimed: u64) -> bool {
        let is_large = round.order > 0 && (round.order > COSTLY || round.priority < FIRST - 2);
        if !is_large || reclaimed == 0 {
            return false;
        }
        let zones = vm.with(|state| zones_up_to(state, round.node, round.class));
        if zones.iter().any(|zone| can_compact(host, *zone, round.order, round.class)) {
            return false;
        }
        let has_swap = vm.with(|state| state.swap.free() > 0);
        let inactive = self.node(round.node, |node| {
            node.all(INACTIVE[FILE]) + if has_swap { node.all(INACTIVE[ANON]) } else { 0 }
        });
        inactive > compact_gap(round.order)
    }

    /// Pages that reclaim could take from a zone (`zone_reclaimable_pages`).
    pub(super) fn reclaimable(&self, vm: &Vm, zone: usize) -> u64 {
        let (node, class, has_swap) = vm.with(|state| {
            let at = &state.zones[zone];
            (at.node, usize::from(at.class), state.swap.free() > 0)
        });
        let lists = if has_swap { 0 } else { INACTIVE[FILE] };
        self.node(node, |node| (lists..usize::from(LISTS) - 1).map(|list| node.sizes[list][class]).sum())
    }

    /// The end of a reclaim: refaults count from here on.
    pub(super) fn remember_refaults(&self, node: u16) {
        self.node(node, |node| node.activated_before = node.activated);
    }
}

/// The zones of a node that a request can use, as indexes.
pub(super) fn zones_up_to(state: &crate::state::State, node: u16, class: u8) -> Vec<usize> {
    let zones = zones_of(state, node).into_iter();
    zones.filter(|zone| state.zones[*zone].class <= class).collect()
}

/// Free pages that compaction works with, beside the watermark: twice the block.
pub(super) fn compact_gap(order: u8) -> u64 {
    2 << order
}

/// Whether compaction has work and room in a zone: the block is there, or enough single pages are.
pub(super) fn can_compact(host: &dyn Host, zone: usize, order: u8, class: u8) -> bool {
    let mark = if order > COSTLY { Mark::Low } else { Mark::Min };
    let enough = host.mark(zone, mark) + compact_gap(order);
    host.is_above(zone, Mark::Min, order, class) || host.free_pages(zone) > enough
}
