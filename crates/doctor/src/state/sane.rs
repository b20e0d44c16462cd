//! Refuses numbers that no machine has, so that products of accepted numbers fit 64 bits everywhere else.

use super::input::Input;
use super::machine::Cache;
use slablab_readers::sysfs::SlabAttrs;
use slablab_readers::text::{Breakdown, ID_LIMIT};
use slablab_report::error::{Error, Result};
use std::path::Path;

/// Bytes of all caches together, of their slabs and of their objects, stay below this: 64 PiB.
const BYTES: u64 = 1 << 56;
/// The largest page of a supported machine is 256 KiB.
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 1 << 12..=1 << 18;
/// Slabs, objects, sizes: no count of a kernel is larger.
const COUNT: u64 = 1 << 48;

/// What the user said.
///
/// # Errors
/// A page size or a number of CPUs that no machine has.
pub(super) fn asked(input: &Input, path: &Path) -> Result<()> {
    if let Some(bytes) =
        input.page_size.filter(|bytes| !(bytes.is_power_of_two() && PAGE_SIZES.contains(bytes)))
    {
        let expected = "expected a power of two from 4096 to 262144";
        return Err(Error::new(path, format!("page size {bytes}: {expected}")));
    }
    if let Some(cpus) = input.cpus.filter(|cpus| !(1..ID_LIMIT).contains(cpus)) {
        return Err(Error::new(path, format!("{cpus} CPUs: expected a number from 1 to {}", ID_LIMIT - 1)));
    }
    Ok(())
}

/// What the input said.
///
/// # Errors
/// The cache with a number that cannot be, by name.
pub(super) fn caches(caches: &[Cache], page_size: u64) -> std::result::Result<(), String> {
    let (mut slabs, mut objects) = (0u64, 0u64);
    for cache in caches {
        let sane = bytes(cache, page_size).and_then(|(of_slabs, of_objects)| {
            (slabs, objects) = (slabs.checked_add(of_slabs)?, objects.checked_add(of_objects)?);
            (slabs < BYTES && objects < BYTES).then_some(())
        });
        sane.ok_or_else(|| {
            let Cache { name, size, objects_per_slab, slabs, total_objects, .. } = cache;
            format!(
                "cache {name}: expected caches of less than 64 PiB together, found {slabs} slabs of \
                 {objects_per_slab} objects, {total_objects} objects of {size} bytes"
            )
        })?;
        if let Some(attrs) = &cache.attrs {
            counts(attrs).map_err(|what| format!("cache {}: {what}", cache.name))?;
        }
    }
    Ok(())
}

/// Bytes of a cache's slabs and objects, if they and those of one slab can be.
fn bytes(cache: &Cache, page_size: u64) -> Option<(u64, u64)> {
    let slabs = cache.slabs.checked_mul(page_size.checked_mul(1u64.checked_shl(cache.order)?)?)?;
    let largest = cache.size.max(cache.object_size.unwrap_or(0));
    let objects = largest.checked_mul(cache.total_objects.max(cache.active_objects))?;
    let of_slab = largest.checked_mul(cache.objects_per_slab)?;
    (of_slab < BYTES).then_some((slabs, objects))
}

/// Counts of sysfs that others multiply by sizes.
fn counts(attrs: &SlabAttrs) -> std::result::Result<(), String> {
    let broken = [
        &attrs.slabs,
        &attrs.objects,
        &attrs.objects_partial,
        &attrs.partial,
        &attrs.total_objects,
        &attrs.cpu_slabs,
        &attrs.slabs_cpu_partial,
    ];
    let parts = |counts: &Breakdown| {
        let of_nodes = counts.nodes.iter().chain(&counts.cpus).map(|(_, count)| *count);
        of_nodes.chain([counts.total]).map(|count| count.value.max(count.slabs.unwrap_or(0))).max()
    };
    let plain = [
        attrs.object_size,
        attrs.slab_size,
        attrs.usersize,
        attrs.align,
        attrs.objs_per_slab,
        attrs.order,
        attrs.cpu_partial,
        attrs.min_partial,
        attrs.sheaf_capacity,
        attrs.alias_count,
    ];
    let all = broken.into_iter().flatten().filter_map(parts).chain(plain.into_iter().flatten());
    match all.max() {
        Some(largest) if largest >= COUNT => {
            Err(format!("expected counts below {COUNT} in {}, found {largest}", attrs.name))
        }
        _ => Ok(()),
    }
}
