//! A pass over a node: its lists, then the slab caches, then whether to go on and whether to sleep.

use super::{Choices, Classic, FILE, INACTIVE, LISTS};
use crate::reclaimers::{Manners, Only, Reclaimer, Round, look_at_writes};
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

    fn only(&self, node: u16, change: impl FnOnce(&mut Only)) -> Only {
        self.node(node, |node| {
            change(&mut node.only);
            node.only
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
            round.trim_failed |= trim_fails(&self.choices, prepared.trim, round.reclaimed - this_pass);
            look_at_writes(self, vm, host, round);
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
        self.node(node, |node| node.only = Only::default());
    }

    /// Refaults count from here on.
    fn ends(&self, node: u16) {
        self.node(node, |node| node.activated_before = node.known().activated);
    }
}

/// Whether a pass that trimmed freed too little for kswapd to go on so (docs/theory/vm.md 3.3).
fn trim_fails(choices: &Choices, trimmed: bool, reclaimed: u64) -> bool {
    choices.trim_ends && trimmed && reclaimed == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reclaim::with_knobs;

    #[test]
    fn boost_throttle_and_the_order_of_kswapd_are_choices() {
        let all = Manners { boost: true, throttle: true, kswapd_order: true };
        for (knobs, expected) in [
            ("", all),
            ("boost=no", Manners { boost: false, ..all }),
            ("throttle=no", Manners { throttle: false, ..all }),
            ("kswapd_order=no", Manners { kswapd_order: false, ..all }),
        ] {
            let policy = Classic::new(with_knobs("6.1", knobs), "vm@6.1".into());
            assert_eq!(policy.manners(), expected, "{knobs}");
        }
    }

    #[test]
    fn kswapd_gives_trim_up_since_6_10_when_a_pass_frees_nothing() {
        for (release, knobs, trimmed, reclaimed, expected) in [
            ("6.12", "", true, 0, true),
            ("6.12", "", true, 1, false),
            ("6.12", "", false, 0, false),
            ("6.12", "trim_ends=no", true, 0, false),
            ("6.1", "", true, 0, false),
        ] {
            let fails = trim_fails(&with_knobs(release, knobs), trimmed, reclaimed);
            assert_eq!(fails, expected, "{release},{knobs} {trimmed} {reclaimed}");
        }
    }
}
