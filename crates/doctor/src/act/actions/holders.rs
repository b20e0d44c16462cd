//! Actions on what holds the objects that climb, or that large caches are full of.

use super::offer::{Action, CACHES, Offer};
use crate::find::Kind;
use crate::measure::grown::Grown;
use crate::measure::held::Held;
use crate::measure::named;
use crate::what::Method;
use crate::words::listed;

/// Finds what holds the objects that climb, and ends it; without growth, what holds those of large caches.
pub(super) fn offer(offer: &Offer) -> Vec<Action> {
    let climbing =
        offer.measured.grown.iter().filter(|group| !group.benign && offer.measured.is_worth(group));
    let mut actions: Vec<Action> = climbing.filter_map(|group| of_growth(offer, group)).collect();
    if offer.measured.history.is_none() {
        let large = offer.measured.held.iter().filter(|held| held.bytes >= offer.worth);
        actions.extend(large.filter_map(|held| of_now(offer, held)));
    }
    let mut commands: Vec<String> = Vec::new();
    actions.retain(|action| {
        let is_new = !commands.contains(&action.command);
        commands.push(action.command.clone());
        is_new
    });
    actions.truncate(CACHES);
    actions
}

/// The way that is known; else a recording, which names the code.
fn of_growth(offer: &Offer, group: &Grown) -> Option<Action> {
    let basis = format!("what {} grew by", listed(&group.names));
    let found = offer.found.findings.iter().map(|finding| finding.kind);
    let because: Vec<Kind> = found.filter(|kind| matches!(kind, Kind::Leak | Kind::Growth)).take(1).collect();
    match group.method() {
        Some(method) => by_method(offer, method, because, group.bytes, basis),
        None => by_recording(offer, because, group.bytes, basis),
    }
}

fn of_now(offer: &Offer, held: &Held) -> Option<Action> {
    let names: Vec<String> = held.lines.iter().map(|at| named(&offer.measured.lines[*at])).collect();
    by_method(offer, held.ends, vec![Kind::Holders], held.bytes, format!("all of {}", listed(&names)))
}

fn by_method(
    offer: &Offer,
    method: &Method,
    because: Vec<Kind>,
    bytes: u64,
    basis: String,
) -> Option<Action> {
    let knob = offer.knob("owner")?;
    Some(Action {
        knob: knob.key,
        way: knob.way,
        command: method.run.clone()?,
        because,
        saves: (0, bytes as i64),
        basis: format!("{basis}. {}", method.how.trim_end_matches('.')),
        cost: method.cost.clone().unwrap_or_else(|| "none to look".into()),
        optional: false,
    })
}

fn by_recording(offer: &Offer, because: Vec<Kind>, bytes: u64, basis: String) -> Option<Action> {
    let knob = offer.knob("sites")?;
    Some(Action {
        knob: knob.key,
        way: knob.way,
        command: "slablab leak --for 60s".into(),
        because,
        saves: (0, bytes as i64),
        basis: format!(
            "{basis}. While it grows, a recording names the code that allocates and does not free"
        ),
        cost: "some per cent of the machine's time for a minute".into(),
        optional: false,
    })
}
