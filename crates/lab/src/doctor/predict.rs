//! What slabs would take with another `slub_max_order`: the one place that such predictions of the doctor come from.
//!
//! A CPU holds one slab of a cache, whatever its size. The objects of all other slabs, on the CPUs' lists or not, lie in
//! slabs of the new size as densely as they do today. What that leaves out is how freed objects would be spread over
//! smaller slabs, and that no two boots are alike; [`ERROR`] says how much that was.

use crate::state::{Cache, State};
use slablab_slabs::Release;
use slablab_slabs::order::{COSTLY_ORDER, CpusCounted, OrderInput, OrderRule};

/// Bytes of all slabs: today, predicted, and the range the prediction may be off by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Today.
    pub today: u64,
    /// With the change.
    pub likely: u64,
    /// Slabs that the change makes of today's, as a ratio: how much more often the page allocator is asked.
    pub slabs_ratio: f64,
    /// Caches whose order changes.
    pub caches: usize,
}

/// The largest error of 16 predictions between boots of one kernel with and without `slub_max_order` (docs/doctor.md),
/// as a part of what was predicted: the boots themselves differ by up to 18 %.
pub const ERROR: f64 = 0.18;

impl Predicted {
    /// Bytes saved: least, likely, most.
    pub fn saved(&self) -> (i64, i64, i64) {
        let off = (self.likely as f64 * ERROR) as i64;
        let likely = self.today as i64 - self.likely as i64;
        (likely - off, likely, likely + off)
    }
}

/// Slabs of all caches with this `slub_max_order`. `None` where CPUs or release are not known.
pub fn with_max_order(state: &State, max_order: u8) -> Option<Predicted> {
    let release = state.release?;
    let cpus = CpusCounted::of(release).count(state.cpus?);
    let page_shift = state.page_size.checked_ilog2().filter(|_| state.page_size.is_power_of_two())?;
    let (mut likely, mut before, mut after, mut caches) = (0u64, 0u64, 0u64, 0);
    for cache in &state.caches {
        let Ok(size @ 1..) = u32::try_from(cache.size) else { return None };
        let input = OrderInput { size, page_shift, cpus, min_order: 0, max_order, min_objects: 0 };
        let order = u32::from(rule(release).order(input));
        if order >= cache.order {
            likely = likely.saturating_add(cache.bytes(state.page_size));
            before += cache.slabs;
            after += cache.slabs;
            continue;
        }
        let slab_bytes = state.page_size << order;
        let held = held_by_cpus(cache);
        let objects = (cache.slabs - held).saturating_mul(cache.objects_per_slab);
        let slabs = objects.div_ceil((slab_bytes / cache.size).max(1)).saturating_add(held);
        likely = likely.saturating_add(slabs.saturating_mul(slab_bytes));
        before += cache.slabs;
        after += slabs;
        caches += 1;
    }
    Some(Predicted { today: state.bytes(), likely, slabs_ratio: after as f64 / before.max(1) as f64, caches })
}

/// CPU slabs proper, without the CPUs' partial lists; 0 where sysfs is not in the input.
fn held_by_cpus(cache: &Cache) -> u64 {
    let Some(attrs) = &cache.attrs else { return 0 };
    let partial = attrs.slabs_cpu_partial.as_ref().and_then(|counts| counts.total.slabs).unwrap_or(0);
    let all = attrs.cpu_slabs.as_ref().map_or(0, |counts| counts.total.value);
    all.saturating_sub(partial).min(cache.slabs)
}

fn rule(release: Release) -> OrderRule {
    match release {
        release if release < Release::new(2, 6, 30) => OrderRule::Halving,
        release if release < Release::new(6, 7, 0) => OrderRule::Clamped,
        _ => OrderRule::Single,
    }
}

/// `slub_max_order` of this boot, by either name; the default where the command line does not say.
pub fn max_order_now(state: &State) -> u8 {
    let words = state.dump.cmdline.iter().flat_map(|cmdline| cmdline.split_whitespace());
    let value = |word: &str| {
        word.strip_prefix("slub_max_order=").or(word.strip_prefix("slab_max_order="))?.parse().ok()
    };
    words.filter_map(value).next_back().unwrap_or(COSTLY_ORDER)
}
