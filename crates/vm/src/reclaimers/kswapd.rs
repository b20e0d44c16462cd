//! kswapd: when it runs, for what order, and when it sleeps (`balance_pgdat`).

use super::direct::allows_direct;
use super::{FIRST, Reclaimer, Round, WANTED, compact_gap, zones_up_to};
use crate::counters::Counter;
use crate::host::{Mark, Throttle};
use crate::vm::{Host, Vm};

/// The order of blocks that grouping by mobility keeps apart, for which kcompactd is woken after a
/// boost.
const PAGEBLOCK: u8 = 9;
/// kswapd's first sleep, before it believes that its work is done.
const SHORT: u64 = 100_000_000;

/// Whether there is work for kswapd.
pub(crate) fn should_wake(
    policy: &impl Reclaimer,
    vm: &Vm,
    host: &dyn Host,
    node: u16,
    order: u8,
    class: u8,
) -> bool {
    let gave_up = policy.gave_up(node);
    !gave_up && (!is_balanced(vm, host, node, order, class) || boost(policy, vm, host, node, class) > 0)
}

/// Balances a node, until it is balanced twice in a tenth of a second (docs/theory/vm.md 3.10).
pub(crate) fn run_kswapd(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) {
    let (mut order, mut class) = (if policy.manners().kswapd_order { order } else { 0 }, class);
    loop {
        let reclaimed_for = balance(policy, vm, host, node, order, class);
        let mut asked = None;
        // A lower order was reached: kcompactd makes the block. Else what came in meanwhile is
        // next.
        let (wanted, reached) = if reclaimed_for < order {
            (order, reclaimed_for)
        } else {
            asked = host.asked(node);
            let (next, above) = asked.unwrap_or((0, class));
            class = above;
            (next, next)
        };
        let least = match try_to_sleep(policy, vm, host, node, (wanted, reached), class) {
            Sleep::Deep => return,
            Sleep::Woken => reached,
            Sleep::None => 0,
        };
        let later = host.asked(node);
        let of = |ask: Option<(u8, u8)>| ask.map_or((0, 0), |(order, class)| (order, class));
        let (earlier, later_at) = (of(asked), of(later));
        order = least.max(earlier.0).max(later_at.0);
        order = if policy.manners().kswapd_order { order } else { 0 };
        class = if asked.or(later).is_some() { earlier.1.max(later_at.1) } else { class };
    }
}

/// `kswapd_try_to_sleep`: a short sleep, then a deep one if nothing came up. The long sleep is the host's: it
/// begins when kswapd returns (docs/theory/vm.md 3.10).
fn try_to_sleep(
    policy: &impl Reclaimer,
    vm: &Vm,
    host: &dyn Host,
    node: u16,
    (wanted, reached): (u8, u8),
    class: u8,
) -> Sleep {
    let mut woken = false;
    if may_sleep(policy, vm, host, node, reached, class) {
        host.wake_kcompactd(node, wanted, class);
        woken = host.nap(node, SHORT);
    }
    if !woken && may_sleep(policy, vm, host, node, reached, class) {
        return Sleep::Deep;
    }
    let counter = if woken { Counter::KswapdLowHit } else { Counter::KswapdHighHit };
    vm.with(|state| state.count(counter));
    if woken { Sleep::Woken } else { Sleep::None }
}

/// `prepare_kswapd_sleep`.
fn may_sleep(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) -> bool {
    host.unthrottle(Throttle::Reserve);
    if policy.gave_up(node) {
        return true;
    }
    let balanced = is_balanced(vm, host, node, order, class);
    if balanced {
        policy.is_balanced_now(node);
    }
    balanced
}

/// Whether one zone that the request can use is above its high mark (`pgdat_balanced`).
fn is_balanced(vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) -> bool {
    let zones = vm.with(|state| zones_up_to(state, node, class));
    zones.is_empty() || zones.iter().any(|zone| host.is_above(*zone, Mark::High, order, class))
}

/// Pages by which the marks of a node's zones are raised.
fn boost(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, node: u16, class: u8) -> u64 {
    let zones = vm.with(|state| zones_up_to(state, node, class));
    if policy.manners().boost { zones.into_iter().map(|zone| host.boost(zone)).sum() } else { 0 }
}

/// One run. Returns the order that it reclaimed for in the end.
fn balance(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) -> u8 {
    vm.with(|state| state.count(Counter::PageOutRun));
    let zones = vm.with(|state| zones_up_to(state, node, class));
    let boosts: Vec<u64> = zones.iter().map(|zone| host.boost(*zone)).collect();
    let mut boost = if policy.manners().boost { boosts.iter().sum() } else { 0 };
    let boosted = boost > 0;
    let mut round = Round { node, class, order, kswapd: true, io: true, fs: true, ..Round::default() };
    host.reclaims(node, true);
    while sweep(policy, vm, host, &mut round, &mut boost) == Sweep::Again {}
    host.reclaims(node, false);
    if boosted {
        zones.iter().zip(boosts).for_each(|(zone, pages)| host.unboost(*zone, pages));
        host.wake_kcompactd(node, PAGEBLOCK, class);
    }
    policy.ends(node);
    round.order
}

/// One sweep over the priorities, from 12 to 1 (docs/theory/vm.md 3.10).
fn sweep(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, round: &mut Round, boost: &mut u64) -> Sweep {
    round.priority = FIRST;
    while round.priority >= 1 {
        let before = round.reclaimed;
        let balanced = is_balanced(vm, host, round.node, round.order, round.class);
        if !balanced && *boost > 0 {
            *boost = 0;
            return Sweep::Again;
        }
        if *boost == 0 && balanced {
            return Sweep::Done;
        }
        let pass = Gentle::of(*boost > 0, round.priority);
        let mut raise = pass.goes_down;
        (round.write, round.swap, round.scanned) = (pass.writes, pass.swaps, 0);
        policy.age(vm, host, round);
        raise &= !shrink_for_kswapd(policy, vm, host, round);
        if allows_direct(policy, vm, host, round.node) {
            host.unthrottle(Throttle::Reserve);
        }
        let reclaimed = round.reclaimed - before;
        *boost = boost.saturating_sub(reclaimed);
        if *boost > 0 && reclaimed == 0 {
            break;
        }
        if raise || reclaimed == 0 {
            round.priority -= 1;
        }
    }
    if round.priority < 1 && !round.no_trim && round.trim_failed {
        round.no_trim = true;
        return Sweep::Again;
    }
    if round.reclaimed == 0 {
        policy.failures(round.node, |failures| *failures += 1);
    }
    Sweep::Done
}

/// Scans the node. Returns whether it scanned as many pages as the high marks have
/// (`kswapd_shrink_node`).
fn shrink_for_kswapd(policy: &impl Reclaimer, vm: &Vm, host: &dyn Host, round: &mut Round) -> bool {
    let zones = vm.with(|state| zones_up_to(state, round.node, round.class));
    round.target = zones.into_iter().map(|zone| host.mark(zone, Mark::High).max(WANTED)).sum();
    policy.shrink_node(vm, host, round);
    // Twice the block is free: more would not help, compaction does.
    if round.order > 0 && round.reclaimed >= compact_gap(round.order) {
        round.order = 0;
    }
    round.scanned >= round.target
}

/// What a pass may do. Reclaim for a boost of the marks is gentle: no writes, no swap, and no lower priority
/// than 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gentle {
    writes: bool,
    swaps: bool,
    /// The next pass may have a lower priority.
    goes_down: bool,
}

impl Gentle {
    fn of(is_boosted: bool, priority: u32) -> Gentle {
        Gentle {
            writes: !is_boosted || priority < FIRST - 2,
            swaps: !is_boosted,
            goes_down: !is_boosted || priority != FIRST - 2,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    /// Nothing came up in the short sleep.
    Deep,
    /// Somebody ended the short sleep.
    Woken,
    /// There was no sleep, or the node is out of balance after it.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweep {
    Done,
    Again,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reclaim_for_a_boost_is_gentle() {
        let all = Gentle { writes: true, swaps: true, goes_down: true };
        let gentle = Gentle { writes: false, swaps: false, goes_down: true };
        for (is_boosted, priority, expected) in [
            (false, 12, all),
            (false, 10, all),
            (true, 12, gentle),
            (true, 11, gentle),
            // It stays at 10.
            (true, 10, Gentle { goes_down: false, ..gentle }),
            (true, 9, Gentle { writes: true, ..gentle }),
        ] {
            assert_eq!(Gentle::of(is_boosted, priority), expected, "boost {is_boosted}, priority {priority}");
        }
    }
}
