//! Reclaim by an allocation (`try_to_free_pages`).

use super::{COSTLY, FIRST, RETRIES, Reclaimer, Round, TICK, WANTED, can_compact, compact_gap, zones_up_to};
use crate::counters::Counter;
use crate::host::{Ask, Mark, Throttle};
use crate::replacement::{Freed, Pass};
use crate::vm::{Host, Vm};

/// Frees 32 pages, at falling priorities from 12 to 0 (docs/theory/vm.md 3.9).
pub(crate) fn reclaim_directly(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, ask: &Ask) -> Freed {
    if !ask.group {
        wait_for_kswapd(policy, vm, host, ask);
        vm.with(|state| state.count(Counter::AllocStall));
    }
    let mut round = Round {
        group: ask.group,
        space: ask.space,
        class: ask.class,
        order: ask.order,
        io: ask.io,
        fs: ask.fs,
        write: true,
        swap: true,
        target: WANTED,
        ..Round::default()
    };
    let nodes = nodes_from(policy, ask.node);
    loop {
        for priority in (0..=FIRST).rev() {
            round.priority = priority;
            round.scanned = 0;
            shrink_nodes(policy, vm, host, &mut round, &nodes);
            if round.reclaimed >= round.target || round.compaction_ready {
                break;
            }
        }
        nodes.iter().for_each(|node| policy.ends(*node));
        if round.reclaimed > 0 || round.compaction_ready || !round.left_active || round.deactivate {
            break;
        }
        (round.deactivate, round.left_active) = (true, false);
    }
    let progress = round.reclaimed > 0 || round.compaction_ready;
    Freed { pages: round.reclaimed as u32, progress, page: None }
}

/// The kernel waits until kswapd has freed pages or has given up, after so many runs.
fn wait_for_kswapd(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, ask: &Ask) {
    for _ in 0..RETRIES {
        if allows_direct(policy, vm, host, ask.node) {
            break;
        }
        // Who may not enter file systems must not wait for one.
        host.throttle(Throttle::Reserve, 1_000_000_000);
        if !ask.fs {
            break;
        }
    }
}

/// A pass over the node of a zone, before other nodes are asked ([`crate::near`]).
pub(crate) fn shrink_near(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, ask: &Ask, pass: &mut Pass) {
    let node = vm.with(|state| state.zones[pass.zone].node);
    let mut round = Round {
        node,
        space: ask.space,
        class: ask.class,
        order: ask.order,
        priority: pass.priority,
        io: ask.io,
        fs: ask.fs,
        write: pass.write,
        keeps_mapped: !pass.unmap,
        swap: true,
        target: WANTED.max(1 << ask.order),
        reclaimed: pass.freed,
        ..Round::default()
    };
    policy.shrink_node(vm, host, &mut round);
    pass.freed = round.reclaimed;
    pass.scanned += round.scanned;
}

/// All nodes, from the asking one on.
fn nodes_from(policy: &impl Reclaimer, first: u16) -> Vec<u16> {
    let count = policy.nodes();
    (first..count).chain(0..first.min(count)).collect()
}

fn shrink_nodes(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, round: &mut Round, nodes: &[u16]) {
    for node in nodes {
        let zones = vm.with(|state| zones_up_to(state, *node, round.class));
        if round.order > COSTLY {
            let (order, class) = (round.order, round.class);
            let ready = zones.iter().filter(|zone| is_compaction_ready(host, **zone, order, class)).count();
            round.compaction_ready |= ready > 0;
            if ready == zones.len() {
                continue;
            }
        }
        round.node = *node;
        policy.shrink_node(vm, host, round);
    }
    round.node = nodes[0];
    consider_throttle(policy, vm, host, round);
}

/// Whether an allocation may reclaim itself: more than half of the reserve is free, or kswapd has given up
/// (`allow_direct_reclaim`). Wakes kswapd if not (docs/theory/vm.md 3.9).
pub(super) fn allows_direct(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, node: u16) -> bool {
    if !policy.manners().throttle || policy.gave_up(node) {
        return true;
    }
    let (mut reserve, mut free) = (0, 0);
    let zones = vm.with(|state| zones_up_to(state, node, NORMAL));
    for zone in zones.into_iter().filter(|zone| policy.reclaimable(vm, *zone) > 0) {
        reserve += host.mark(zone, Mark::Min);
        free += host.free_pages(zone);
    }
    let allows = reserve == 0 || free > reserve / 2;
    if !allows {
        host.wake_kswapd(node, 0, NORMAL);
    }
    allows
}

/// The highest zone that the reserve counts: all but those for movable pages.
const NORMAL: u8 = 2;

/// Whether a zone has work for compaction, and room above its high mark.
fn is_compaction_ready(host: &dyn Host, zone: usize, order: u8, class: u8) -> bool {
    let room = host.mark(zone, Mark::High) + compact_gap(order);
    can_compact(host, zone, order, class) && host.free_pages(zone) > room
}

/// A direct reclaimer that finds nothing sleeps for a tick (`consider_reclaim_throttle`;
/// docs/theory/vm.md 3.9).
fn consider_throttle(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, round: &Round) {
    match After::of(round.reclaimed, round.scanned, round.priority) {
        After::Progress => host.unthrottle(Throttle::NoProgress),
        After::Nothing if !policy.sleep_is_vain(vm, round.node) => {
            policy.throttle(host, Throttle::NoProgress, TICK);
        }
        After::Nothing | After::Little => {}
    }
}

/// What a pass over the nodes gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// More than an eighth of the pages that were scanned.
    Progress,
    /// No page at the last priority but one: the reclaimer sleeps.
    Nothing,
    Little,
}

impl After {
    fn of(reclaimed: u64, scanned: u64, priority: u32) -> After {
        if reclaimed > scanned >> 3 {
            After::Progress
        } else if priority == 1 && reclaimed == 0 {
            After::Nothing
        } else {
            After::Little
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_an_eighth_is_progress_and_nothing_at_priority_1_a_reason_to_sleep() {
        for (reclaimed, scanned, priority, expected) in [
            (5, 32, 12, After::Progress),
            (4, 32, 12, After::Little),
            (1, 7, 1, After::Progress),
            (1, 8, 1, After::Little),
            (0, 0, 1, After::Nothing),
            (0, 32, 1, After::Nothing),
            (0, 32, 2, After::Little),
            (0, 32, 0, After::Little),
        ] {
            let after = After::of(reclaimed, scanned, priority);
            assert_eq!(after, expected, "{reclaimed} of {scanned} at {priority}");
        }
    }
}
