//! All actions, in the order in which they are offered.

use super::offer::{Action, Offer};
use super::{boot, caches, holders, machine};
use crate::act::verdict::{Judgement, Verdict};
use crate::find::Found;
use crate::measure::Measured;
use std::cmp::Reverse;

/// Keys of what frees only what the kernel frees by itself when it needs memory, or frees nothing.
const NEVER_NEEDED: [&str; 3] = ["drop_caches", "cache_pressure", "nomerge"];

/// The actions against these findings: those that are needed first, then most likely savings first. A machine
/// on which nothing is wrong needs none.
pub(crate) fn offer(measured: &Measured, found: &Found, verdict: &Verdict) -> Vec<Action> {
    let offer = Offer { measured, found, worth: measured.worth };
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(caches::shrink(&offer));
    actions.extend(caches::min_partial(&offer));
    actions.extend(caches::cpu_partial(&offer));
    actions.extend(caches::order(&offer));
    actions.extend(machine::drop_caches(&offer));
    actions.extend(machine::cache_pressure(&offer));
    actions.extend(boot::max_order(&offer));
    actions.extend(boot::debug_off(&offer));
    actions.extend(boot::nokmem(&offer));
    actions.extend(caches::tunables(&offer));
    actions.extend(boot::nomerge(&offer));
    actions.sort_by_key(|action| Reverse(action.saves.0.saturating_add(action.saves.1)));
    // What climbs, and only its holder frees, comes before what the kernel frees by itself.
    let mut actions: Vec<Action> = holders::offer(&offer).into_iter().chain(actions).collect();
    if measured.is_little() {
        actions.retain(|action| !NEVER_NEEDED.contains(&action.knob));
    }
    let is_healthy = matches!(verdict.judgement, Judgement::NoProblem | Judgement::Steady);
    for action in &mut actions {
        action.optional = is_healthy || NEVER_NEEDED.contains(&action.knob);
    }
    actions.sort_by_key(|action| action.optional);
    actions
}
