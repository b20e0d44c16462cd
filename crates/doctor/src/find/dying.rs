//! A finding about removed cgroups that still hold slab memory.

use super::finding::{Finding, Kind};
use crate::measure::Measured;
use slablab_report::text::grouped;

/// Dying cgroups from which their number is worth saying.
const DYING_FROM: u64 = 100;

/// Many removed cgroups still hold memory.
pub(crate) fn find(measured: &Measured) -> Option<Finding> {
    let owners = &measured.state.dump.owners;
    let dying = owners.dying().filter(|dying| *dying >= DYING_FROM)?;
    let before = measured.history.as_ref().and_then(|history| history.first().dump.owners.dying());
    let more = before.filter(|before| dying > *before).map_or(String::new(), |before| {
        format!(", {} more than in the first snapshot", grouped(dying - before))
    });
    Some(Finding::of_machine(
        Kind::DyingCgroups,
        0,
        format!(
            "{} removed cgroups still hold memory{more}: each stays, with its slabs, until the last page and \
             object charged to it is freed",
            grouped(dying)
        ),
    ))
}
