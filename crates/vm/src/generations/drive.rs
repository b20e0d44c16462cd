//! The two reclaimers: an allocation that needs a page, and kswapd.

use super::Generations;
use super::reclaim::{FIRST, Round};
use crate::counters::Counter;
use crate::host::{Ask, Mark, Throttle};
use crate::replacement::Freed;
use crate::vm::{Host, Vm};

/// Pages that an allocation wants (`SWAP_CLUSTER_MAX`).
const WANTED: u64 = 32;
/// Runs of kswapd without a page after which it gives up (`MAX_RECLAIM_RETRIES`).
const HOPELESS: u32 = 16;
/// A tenth of a second.
const TENTH: u64 = 100_000_000;

impl Generations {
    /// An allocation reclaims (`do_try_to_free_pages`).
    pub(crate) fn reclaim_for(&self, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
        vm.with(|state| {
            self.find_zones(state);
            state.count(Counter::AllocStall);
        });
        let nodes = self.nodes.borrow().len() as u16;
        let mut round = Round::new(ask.node, ask.class, ask.order, WANTED);
        (round.io, round.fs) = (ask.io, ask.fs);
        for priority in (0..=FIRST).rev() {
            round.priority = priority;
            for node in (ask.node..nodes).chain(0..ask.node) {
                round.node = node;
                self.shrink_node(vm, host, &mut round);
            }
            if round.reclaimed >= WANTED {
                break;
            }
            if priority == 1 && round.reclaimed == 0 {
                host.throttle(Throttle::NoProgress, TENTH / 2);
            }
        }
        Freed { pages: round.reclaimed as u32, progress: round.reclaimed > 0, page: None }
    }

    /// kswapd reclaims until the marks are reached (`balance_pgdat`).
    pub(crate) fn balance(&self, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) {
        vm.with(|state| {
            self.find_zones(state);
            state.count(Counter::PageOutRun);
        });
        if self.with_node(node, |node| node.failures >= HOPELESS) {
            return;
        }
        let zones: Vec<usize> = vm.with(|state| {
            let fits = |at: &usize| state.zones[*at].node == node && state.zones[*at].class <= class;
            (0..state.zones.len()).filter(fits).collect()
        });
        let boosts: Vec<u64> = zones.iter().map(|at| host.boost(*at)).collect();
        let mut boost: u64 = boosts.iter().sum();
        let is_balanced = |order| zones.iter().any(|at| host.is_above(*at, Mark::High, order, class));
        let high: u64 = zones.iter().map(|at| host.mark(*at, Mark::High).max(WANTED)).sum();
        let mut round = Round::new(node, class, order, high);
        round.kswapd = true;
        while round.priority >= 1 {
            let (before, mut raise) = (round.reclaimed, true);
            let balanced = is_balanced(round.order);
            if !balanced && boost > 0 {
                (boost, round.priority) = (0, FIRST);
                continue;
            }
            if boost == 0 && balanced {
                break;
            }
            raise &= !(boost > 0 && round.priority == FIRST - 2);
            (round.write, round.swap) = (boost == 0, boost == 0);
            self.age_node(vm, host, &mut round);
            round.scanned = 0;
            self.shrink_node(vm, host, &mut round);
            if round.order > 0 && round.reclaimed >= 2 << round.order {
                round.order = 0;
            }
            raise &= round.scanned < high;
            let got = round.reclaimed - before;
            boost -= boost.min(got);
            if boost > 0 && got == 0 {
                break;
            }
            if raise || got == 0 {
                round.priority -= 1;
            }
        }
        if round.reclaimed == 0 {
            self.with_node(node, |node| node.failures += 1);
        }
        for (at, boost) in zones.iter().zip(boosts) {
            host.unboost(*at, boost);
        }
    }
}
