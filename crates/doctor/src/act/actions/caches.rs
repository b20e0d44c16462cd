//! Actions on one cache, which act now: files in its directory, and SLAB's tunables.

use super::offer::{Action, Offer, folder};
use crate::act::predict::max_order_now;
use crate::find::Kind;
use crate::measure::Line;
use crate::measure::each::EachSlab;
use crate::measure::parked::nodes_with_memory;
use crate::words::counted;
use slablab_readers::sysfs::SlabAttrs;
use slablab_readers::text::Breakdown;
use slablab_report::visible::shell_word;

/// The lowest `min_partial` that kernels take: those of 2.6.32 raise what is below to it.
const MIN_PARTIAL: u64 = 5;

/// Empty slabs of fragmented caches.
pub(super) fn shrink(offer: &Offer) -> Vec<Action> {
    let Some(knob) = offer.knob("shrink") else { return Vec::new() };
    let page = offer.measured.state.page_size;
    let action = |(line, attrs): (&Line, &SlabAttrs)| {
        let read = EachSlab::of(line.cache, offer.measured.state).map(|each| each.empty);
        let (low, high) = read.map_or_else(|| empty_slabs(line, attrs), |empty| (empty, empty));
        let bytes = |slabs: u64| slabs.saturating_mul(line.cache.slab_bytes(page)) as i64;
        let basis = match read {
            Some(empty) => format!("{empty} of its slabs are empty: the recorder read each of them"),
            None => format!(
                "{low} to {high} of its slabs can be empty: at least the partial slabs less their objects, \
                 at most the number that free objects fill"
            ),
        };
        Action {
            optional: false,
            knob: knob.key,
            way: knob.way,
            command: format!("echo 1 > {}", file(line, attrs, knob.name)),
            because: vec![Kind::Fragmented],
            saves: (bytes(low), bytes(high)),
            basis,
            cost: "briefly flushes every CPU's slab of this cache; slabs that still hold an object are \
                not freed"
                .into(),
        }
    };
    let actions = offer.caches_of(Kind::Fragmented).into_iter().map(action);
    offer.worthy(actions)
}

/// Empty slabs that nodes keep. The lowest number that every kernel with this file takes is
/// [`MIN_PARTIAL`].
pub(super) fn min_partial(offer: &Offer) -> Vec<Action> {
    let Some(knob) = offer.knob("min_partial") else { return Vec::new() };
    let (state, nodes) = (offer.measured.state, nodes_with_memory(offer.measured.state));
    let action = |(line, attrs): (&Line, &SlabAttrs)| {
        let now = attrs.min_partial.filter(|now| *now > MIN_PARTIAL)?;
        let (_, empty) = empty_slabs(line, attrs);
        let slabs = (now - MIN_PARTIAL).saturating_mul(nodes).min(empty);
        Some(Action {
            optional: false,
            knob: knob.key,
            way: knob.way,
            command: format!("echo {MIN_PARTIAL} > {}", file(line, attrs, knob.name)),
            because: vec![Kind::Fragmented],
            saves: (0, slabs.saturating_mul(line.cache.slab_bytes(state.page_size)) as i64),
            basis: format!("each of {} keeps up to {now} empty slabs", counted(nodes, "node")),
            cost: "slabs are freed and allocated more often; lasts until the next boot".into(),
        })
    };
    let actions = offer.caches_of(Kind::Fragmented).into_iter().filter_map(action);
    offer.worthy(actions)
}

/// Another order for caches with large tails, where the kernel still takes one.
pub(super) fn order(offer: &Offer) -> Vec<Action> {
    let Some(knob) = offer.knob("order") else { return Vec::new() };
    let page = offer.measured.state.page_size;
    let action = |(line, attrs): (&Line, &SlabAttrs)| {
        let cache = line.cache;
        // The kernel refuses an order above the largest that it chooses itoffer.
        let orders = 0..=u32::from(max_order_now(offer.measured.state)?);
        let tail = |order: u32| (page << order) % cache.size.max(1);
        // Tails as parts of their slabs, all multiplied by one number to avoid rounding.
        let part = |order: u32| u128::from(tail(order)) << (u32::BITS - order.min(u32::BITS));
        let better = |order: &u32| page << order >= cache.size && part(*order) < part(cache.order);
        let order = orders.filter(better).min_by_key(|order| (part(*order), *order))?;
        let slabs = cache.total_objects.div_ceil(((page << order) / cache.size).max(1));
        let left = slabs.saturating_mul(tail(order));
        Some(Action {
            optional: false,
            knob: knob.key,
            way: knob.way,
            command: format!("echo {order} > {}", file(line, attrs, knob.name)),
            because: vec![Kind::Tail],
            saves: (0, line.split.tail.saturating_sub(left) as i64),
            basis: format!(
                "tails of as many objects in slabs of order {order}, once all of today's slabs of order \
                 {} are gone",
                cache.order
            ),
            cost: "existing slabs keep their order; each CPU then holds a slab of the new order; lasts \
                until the next boot"
                .into(),
        })
    };
    let actions = offer.caches_of(Kind::Tail).into_iter().filter_map(action);
    offer.worthy(actions)
}

/// Partial slabs of CPUs.
pub(super) fn cpu_partial(offer: &Offer) -> Vec<Action> {
    let Some(knob) = offer.knob("cpu_partial") else { return Vec::new() };
    let page = offer.measured.state.page_size;
    let action = |(line, attrs): (&Line, &SlabAttrs)| {
        let on = attrs.cpu_partial? > 0;
        let slabs = attrs.slabs_cpu_partial.as_ref()?.total.slabs?.min(line.cache.slabs);
        on.then(|| Action {
            optional: false,
            knob: knob.key,
            way: knob.way,
            command: format!("echo 0 > {}", file(line, attrs, knob.name)),
            because: vec![Kind::Parked],
            saves: (0, slabs.saturating_mul(line.cache.slab_bytes(page)) as i64),
            basis: format!("{slabs} slabs are on the CPUs' partial lists; the empty ones are freed"),
            cost: "frees to full slabs then take the node's list_lock; lasts until the next boot".into(),
        })
    };
    let actions = offer.caches_of(Kind::Parked).into_iter().filter_map(action);
    offer.worthy(actions)
}

/// Smaller per-CPU arrays of SLAB. The cache's name comes from the dump, so it is quoted for a shell.
pub(super) fn tunables(offer: &Offer) -> Vec<Action> {
    let (Some(knob), Some(finding)) = (offer.knob("tunables"), offer.finding(Kind::Parked)) else {
        return Vec::new();
    };
    let action = |key: &(String, u32)| {
        let line = offer.line(key)?;
        let row = offer.measured.state.row(line.cache).filter(|row| row.limit > 1)?;
        let (limit, batch) = (row.limit / 2, (row.limit / 2).div_ceil(2));
        let setting = format!("{} {limit} {batch} {}", row.name, row.sharedfactor);
        Some(Action {
            optional: false,
            knob: knob.key,
            way: knob.way,
            command: format!("echo {} > {}", shell_word(&setting, ""), knob.name),
            because: vec![Kind::Parked],
            saves: (0, (line.split.parked.high / 2) as i64),
            basis: "half of the objects that its arrays may hold".into(),
            cost: "arrays are refilled and flushed twice as often, under the node's lock".into(),
        })
    };
    let actions = finding.caches.iter().filter_map(action);
    offer.worthy(actions)
}

/// Bounds on the number of a cache's slabs that can be empty. On node lists there are no more slabs with an
/// object than objects, which gives the lower bound. The upper bound is the number of slabs that the free
/// objects fill; parked objects count as free, because a shrink takes them back.
fn empty_slabs(line: &Line, attrs: &SlabAttrs) -> (u64, u64) {
    let cache = line.cache;
    let total = |counts: &Option<Breakdown>| counts.as_ref().map_or(0, |counts| counts.total.value);
    let (partial, in_use) = (total(&attrs.partial), total(&attrs.objects_partial));
    let held = total(&attrs.cpu_slabs);
    let object = cache.object_size.unwrap_or(cache.size).max(1);
    let free = cache.total_objects.saturating_sub(cache.active_objects) + line.split.parked.high / object;
    let high = (free / cache.objects_per_slab.max(1)).min(partial + held).min(cache.slabs);
    (partial.saturating_sub(in_use).min(high), high)
}

/// The path of the file `name` of a cache in sysfs, quoted for a shell.
fn file(line: &Line, attrs: &SlabAttrs, name: &str) -> String {
    shell_word(&format!("/sys/kernel/slab/{}/{name}", folder(line, attrs)), "-_.:+^/").into_owned()
}
