//! A pass over a node: its lists, then the slab caches, then whether to go on and whether to sleep.

use super::{Choices, Classic, FILE, INACTIVE, LISTS};
use crate::host::Throttle;
use crate::reclaimers::{Manners, Reclaimer, Round, TICK};
use crate::replacement::Sizes;
use crate::shrinker::shrink_slab;
use crate::vm::{Host, Vm};
use std::rc::Rc;

impl Reclaimer for Classic {
    fn manners(&self) -> Manners {
        let Choices { boost, throttle, kswapd_order, .. } = self.choices;
        Manners { boost, throttle, kswapd_order }
    }

    fn nodes(&self) -> u16 {
        self.nodes.borrow().len() as u16
    }

    fn sizes_of(&self, node: u16) -> Sizes {
        self.node(node, |node| node.sizes())
    }

    fn failures(&self, node: u16, change: impl FnOnce(&mut u32)) -> u32 {
        self.node(node, |node| {
            change(&mut node.failures);
            node.failures
        })
    }

    fn age(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
        self.age_anon(vm, host, round);
    }

    /// Scans a node until compaction has enough to work on.
    fn shrink_node(&self, vm: &Vm, host: &dyn Host, round: &mut Round) {
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
            if round.reclaimed == this_pass && prepared.trim && self.choices.trim_ends {
                round.trim_failed = true;
            }
            self.look_at_writes(vm, host, round);
            if !self.should_continue(vm, host, round, round.reclaimed - this_pass) {
                break;
            }
        }
        if round.reclaimed > before {
            self.failures(round.node, |failures| *failures = 0);
        }
    }

    fn reclaimable(&self, vm: &Vm, zone: usize) -> u64 {
        let (node, class, has_swap) = vm.with(|state| {
            let at = &state.zones[zone];
            (at.node, usize::from(at.class), state.swap.free() > 0)
        });
        let lists = if has_swap { 0 } else { INACTIVE[FILE] };
        self.node(node, |node| (lists..usize::from(LISTS) - 1).map(|list| node.sizes[list][class]).sum())
    }

    fn is_balanced_now(&self, node: u16) {
        self.node(node, |node| {
            (node.met_writeback, node.met_dirty, node.congested) = (false, false, false);
        });
    }

    /// Refaults count from here on.
    fn ends(&self, node: u16) {
        self.node(node, |node| node.activated_before = node.known().activated);
    }
}

impl Classic {
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
}
