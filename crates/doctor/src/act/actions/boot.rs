//! Actions on the whole machine that take a boot: parameters of the kernel's command line.

use super::offer::{Action, Offer};
use crate::act::predict::{max_order_now, with_max_order};
use crate::find::Kind;
use crate::measure::allocator::Allocator;
use crate::measure::parked::online;
use crate::words::{counted, size};
use slablab_report::visible::shell_word;

/// Smaller slabs, where even the worst prediction saves something.
pub(super) fn max_order(offer: &Offer) -> Option<Action> {
    let knob = offer.knob("max_order")?;
    let state = offer.measured.state;
    let now = max_order_now(state)?;
    let predicted = (0..now).rev().filter_map(|order| Some((order, with_max_order(state, order)?)));
    let (order, best) = predicted
        .filter(|(_, predicted)| predicted.saved().0 >= offer.worth as i64)
        .max_by_key(|(order, predicted)| (predicted.saved().1, *order))?;
    let (low, likely, high) = best.saved();
    let because = [Kind::Parked, Kind::BigPages, Kind::Fallback, Kind::HighOrder, Kind::Tail];
    let because: Vec<Kind> = because.into_iter().filter(|kind| offer.finding(*kind).is_some()).collect();
    (!because.is_empty()).then(|| Action {
        optional: false,
        knob: knob.key,
        way: knob.way,
        command: format!("{}={order}", knob.name),
        because,
        saves: (low, high),
        basis: format!(
            "{} with smaller slabs, {} likely; the range is the prediction's measured error \
             (docs/whatif.md)",
            counted(best.caches() as u64, "cache"),
            size(likely.unsigned_abs())
        ),
        cost: format!(
            "{:.1} times as many slabs: the page allocator and the nodes' locks are used that much \
             more often; all caches, at boot",
            best.slabs_ratio()
        ),
    })
}

/// Debugging that was asked for on the command line.
pub(super) fn debug_off(offer: &Offer) -> Option<Action> {
    let (knob, finding) = (offer.knob("debug")?, offer.finding(Kind::Debugging)?);
    let words = offer.measured.state.dump.cmdline.iter().flat_map(|line| line.split_whitespace());
    let asked =
        words.into_iter().find(|word| word.starts_with("slub_debug") || word.starts_with("slab_debug"));
    let command = match asked {
        Some(word) => format!("without {}", shell_word(word, "-_.:+^/=,*")),
        None => format!("{}=-", knob.name),
    };
    let bytes = finding.bytes as i64;
    // Objects without debugging are smaller, and their caches may be merged. Tails and parked objects
    // change with the slabs.
    let off = (offer.measured.total.tail + offer.measured.total.parked.high) as i64;
    Some(Action {
        optional: false,
        knob: knob.key,
        way: knob.way,
        command,
        because: vec![Kind::Debugging],
        saves: (bytes.saturating_sub(off).max(0), bytes.saturating_add(off)),
        basis: "the bytes of debugging, plus or minus all tails and all parked objects".into(),
        cost: "errors in the use of slabs are no longer caught; at boot".into(),
    })
}

/// Twins of the kmalloc caches for accounted objects.
pub(super) fn nokmem(offer: &Offer) -> Option<Action> {
    let knob = offer.knob("nokmem")?;
    let twins = offer.measured.lines.iter().filter(|line| line.cache.name.starts_with("kmalloc-cg-"));
    let at_most: u64 = twins.map(|line| line.split.loss().max(0) as u64 + line.split.parked.high).sum();
    (at_most >= offer.worth && offer.finding(Kind::Parked).is_some()).then(|| Action {
        optional: false,
        knob: knob.key,
        way: knob.way,
        command: knob.name.into(),
        because: vec![Kind::Parked],
        saves: (0, at_most as i64),
        basis: "free and parked objects of the kmalloc-cg caches, which the kernel then does not use".into(),
        cost: "cgroups no longer limit or count the kernel's memory; at boot".into(),
    })
}

/// Shows which of the merged caches holds the memory. Saves nothing.
pub(super) fn nomerge(offer: &Offer) -> Option<Action> {
    let (knob, _) = (offer.knob("nomerge")?, offer.finding(Kind::Merged)?);
    if offer.measured.allocator() != Allocator::Slub {
        return None;
    }
    let (state, lines) = (offer.measured.state, &offer.measured.lines);
    let cpus = online(state)?;
    // Each name gets slabs of its own: at worst one per CPU, as now its cache has.
    let apart: u64 = lines
        .iter()
        .map(|line| {
            let slabs = (line.cache.aliases.len() as u64).saturating_mul(cpus.min(line.cache.slabs));
            slabs.saturating_mul(line.cache.slab_bytes(state.page_size))
        })
        .sum();
    Some(Action {
        optional: false,
        knob: knob.key,
        way: knob.way,
        command: knob.name.into(),
        because: vec![Kind::Merged],
        saves: ((apart as i64).saturating_neg(), 0),
        basis: "each merged name gets slabs of its own, at most one for each CPU".into(),
        cost: "more slabs; in return every cache is counted by its own name; at boot".into(),
    })
}
