//! Which caches share slabs, with merging on and off (docs/theory/slub.md 9).

use super::layout;
use crate::state::{Cache, State};
use slablab_slabs::cache::{CacheFlags, CacheSpec, mergeable};
use std::collections::HashMap;

/// Whether caches of a machine share slabs: its kernel was not told otherwise, and debugging does not prevent
/// it.
pub(super) fn is_on(state: &State) -> bool {
    let asked = |word: &str| matches!(word, "slub_nomerge" | "slab_nomerge");
    let nomerge = state.dump.cmdline.iter().flat_map(|cmdline| cmdline.split_whitespace()).any(asked);
    !nomerge && !layout::of_most(state).prevents_merging()
}

/// For each cache that would be merged into another, by place in the state, the place of that other cache.
/// Slabinfo lists the newest cache first, so that a cache looks at the caches behind it, nearest first, as
/// the kernel does.
pub(super) fn folded(state: &State) -> HashMap<usize, usize> {
    let specs: Vec<Option<CacheSpec>> = state.caches.iter().map(spec).collect();
    let mut into = HashMap::new();
    // The caches that others may be merged into, oldest first: behind `at`, and not merged themselves.
    let mut candidates: Vec<(usize, &CacheSpec, u32)> = Vec::new();
    for (at, new) in specs.iter().enumerate().rev() {
        let Some(new) = new else { continue };
        match candidates.iter().rev().find(|(_, spec, size)| mergeable(new, spec, *size)) {
            Some((other, ..)) => drop(into.insert(at, *other)),
            None => candidates.push((at, new, state.caches[at].size.min(u32::MAX.into()) as u32)),
        }
    }
    into
}

/// What sysfs tells of how a cache was created. Whether its objects are accounted it does not.
fn spec(cache: &Cache) -> Option<CacheSpec> {
    let attrs = cache.attrs.as_ref()?;
    let small = |bytes: u64| u32::try_from(bytes).ok().filter(|bytes| *bytes > 0 && *bytes < 1 << 30);
    let flags = CacheFlags::NONE
        .with(CacheFlags::RECLAIM_ACCOUNT, attrs.reclaim_account == Some(true))
        .with(CacheFlags::DMA, attrs.cache_dma == Some(true))
        .with(CacheFlags::TYPESAFE_BY_RCU, attrs.destroy_by_rcu == Some(true))
        .with(CacheFlags::CONSTRUCTOR, attrs.ctor.is_some())
        .with(CacheFlags::NO_MERGE, attrs.usersize.is_some_and(|bytes| bytes > 0))
        .with(CacheFlags::ACCOUNT, cache.name.starts_with("kmalloc-cg-"));
    let spec = CacheSpec::of_size(small(attrs.object_size?)?);
    let align = small(attrs.align?).filter(|align| align.is_power_of_two())?;
    Some(CacheSpec { align, flags, sheaf_capacity: attrs.sheaf_capacity.unwrap_or(0) as u32, ..spec })
}
