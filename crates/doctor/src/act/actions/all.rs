//! All actions, in the order in which they are offered.

use super::offer::{Action, Offer};
use super::{boot, caches, machine};
use crate::find::Found;
use crate::measure::Measured;
use std::cmp::Reverse;

/// The actions against these findings, most likely savings first.
pub(crate) fn offer(measured: &Measured, found: &Found) -> Vec<Action> {
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
    machine::owners(&offer).into_iter().chain(actions).collect()
}
