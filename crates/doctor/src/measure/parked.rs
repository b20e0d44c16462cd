//! Parked objects: free objects in CPU slabs, sheaves and arrays, which the kernel counts as active.
//!
//! | kernel | holders of parked objects | known from |
//! |---|---|---|
//! | SLUB to 6.19 | CPU slabs; since 3.2 CPUs' partial ones | `cpu_slabs`, `slabs_cpu_partial`; else rules |
//! | since 6.18 | sheaves: three per CPU, ten full ones per node | `sheaf_capacity`; since 7.0 else rules |
//! | SLAB | arrays per CPU, per node, per pair of nodes | tunables in /proc/slabinfo |
//!
//! How many of the objects of a CPU slab are free no file says; a recording that has every slab does. Without
//! one there are bounds: from none,
//! or one in each partial slab of a CPU (a slab goes there when an object of it is freed, and only frees
//! happen to it there), to all.

use super::each::EachSlab;
use crate::state::{Cache, State};
use slablab_readers::slabinfo::SlabinfoRow;
use slablab_slabs::engines::slub::SlubPolicy;
use slablab_slabs::knob::Policy;
use slablab_slabs::{CacheSpec, Preset, Release};

/// From, to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Not less.
    pub low: u64,
    /// Not more.
    pub high: u64,
}

/// Sheaves of a CPU: main, spare, and one that collects objects freed by RCU.
const SHEAVES_PER_CPU: u64 = 3;
/// Full sheaves that a node keeps.
const SHEAVES_PER_NODE: u64 = 10;

/// What a kernel that does not tell its release is taken for.
const UNKNOWN: Release = Release::new(5, 16, 0);
/// Since then every cache has sheaves, and no CPU slabs.
pub(crate) const SHEAVES_FOR_ALL_SINCE: Release = Release::new(7, 0, 0);
/// Since then nodes without memory keep full sheaves too.
const BARNS_EVERYWHERE_SINCE: Release = Release::new(7, 1, 0);

/// Bounds of the cache's parked objects; `None` where the input has no objects, or neither sysfs nor the
/// number of CPUs tells what CPUs hold.
pub fn parked_objects(cache: &Cache, state: &State) -> Option<Bounds> {
    if cache.bytes_only {
        return None;
    }
    let active = cache.active_objects.min(cache.total_objects);
    if let Some(each) = EachSlab::of(cache, state) {
        let parked = each.parked().min(active);
        return Some(Bounds { low: parked, high: parked });
    }
    let held = match tunables(cache, state) {
        Some(row) => Bounds { low: 0, high: in_arrays(row, state)? },
        None => {
            let (slabs, sheaves) = (in_cpu_slabs(cache, state)?, in_sheaves(cache, state)?);
            Bounds { low: slabs.low, high: slabs.high.saturating_add(sheaves) }
        }
    };
    Some(Bounds { low: held.low.min(active), high: held.high.min(active) })
}

/// The row of a cache of SLAB: only SLAB has tunables.
fn tunables<'a>(cache: &Cache, state: &'a State) -> Option<&'a SlabinfoRow> {
    state.row(cache).filter(|row| row.limit > 0)
}

/// SLAB's arrays: `limit` per CPU, `sharedavail` is counted, and `limit` per ordered pair of nodes.
fn in_arrays(row: &SlabinfoRow, state: &State) -> Option<u64> {
    let nodes = nodes_with_memory(state);
    let arrays = online(state)?.saturating_add(nodes.saturating_mul(nodes - 1));
    Some(row.limit.saturating_mul(arrays).saturating_add(row.sharedavail))
}

/// CPU slabs and the CPUs' partial slabs; `None` where neither sysfs nor the number of CPUs tells.
fn in_cpu_slabs(cache: &Cache, state: &State) -> Option<Bounds> {
    let known = cache.attrs.as_ref().and_then(|attrs| Some((attrs.cpu_slabs.as_ref()?, attrs)));
    if let Some((cpu_slabs, attrs)) = known {
        let partial = attrs.slabs_cpu_partial.as_ref();
        let partial = partial.and_then(|counts| counts.total.slabs).unwrap_or(0);
        // `cpu_slabs` counts the partial ones too, but is read at another moment.
        let slabs = cpu_slabs.total.value.max(partial);
        return Some(Bounds { low: partial, high: slabs.saturating_mul(cache.objects_per_slab) });
    }
    if state.release.is_some_and(|release| release >= SHEAVES_FOR_ALL_SINCE) {
        return Some(Bounds::default());
    }
    let per_cpu = 1 + cpu_partial_slabs(cache, state);
    let slabs = online(state)?.saturating_mul(per_cpu).min(cache.slabs);
    Some(Bounds { low: 0, high: slabs.saturating_mul(cache.objects_per_slab) })
}

/// Slabs that a CPU may keep on its partial list by the kernel's own rule. Until 5.15 the limit was in
/// objects that were believed free: each slab may have been counted with a single one.
pub(crate) fn cpu_partial_slabs(cache: &Cache, state: &State) -> u64 {
    let Some((size, page_size)) = sizes(cache, state) else { return 0 };
    policy(state).cpu_partial_limit(size, cache.objects_per_slab.max(1), page_size).into()
}

/// The SLUB of the kernel that was read.
fn policy(state: &State) -> SlubPolicy {
    let release = state.release.unwrap_or(UNKNOWN);
    match Preset::of_kernel(release) {
        Some(Preset::Slub(policy)) => policy,
        _ => SlubPolicy::PRESETS[0],
    }
}

/// Bytes per object and in a page, for SLUB's rules.
fn sizes(cache: &Cache, state: &State) -> Option<(u32, u32)> {
    Some((cache.size.try_into().ok()?, state.page_size.try_into().ok()?))
}

/// Objects in sheaves at most; `None` where the number of CPUs is not known.
fn in_sheaves(cache: &Cache, state: &State) -> Option<u64> {
    let capacity = sheaf_capacity(cache, state);
    if capacity == 0 {
        return Some(0);
    }
    let sheaves = online(state)?.saturating_mul(SHEAVES_PER_CPU);
    let nodes = match state.release {
        Some(release) if release >= BARNS_EVERYWHERE_SINCE => state.dump.nodes.len().max(1) as u64,
        _ => nodes_with_memory(state),
    };
    Some(sheaves.saturating_add(SHEAVES_PER_NODE * nodes).saturating_mul(capacity))
}

/// Objects in a sheaf: what sysfs says, else since 7.0 what size alone gives (a cache may have asked for
/// more).
pub(crate) fn sheaf_capacity(cache: &Cache, state: &State) -> u64 {
    if let Some(attrs) = &cache.attrs {
        return attrs.sheaf_capacity.unwrap_or(0);
    }
    let Some((size, page_size)) = sizes(cache, state) else { return 0 };
    policy(state).sheaf_capacity_of(&CacheSpec::of_size(size), size, page_size, 1).into()
}

pub(crate) fn online(state: &State) -> Option<u64> {
    state.cpus.map(|cpus| u64::from(cpus.online.max(1)))
}

pub(crate) fn nodes_with_memory(state: &State) -> u64 {
    (state.dump.nodes.iter().filter(|node| node.has_memory).count() as u64).max(1)
}
