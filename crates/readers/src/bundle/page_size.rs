//! The page size of a dump's machine, which no file states but several imply.

use std::collections::BTreeMap;

use super::{Dump, config_page_size};

/// How a page size is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSizeFrom {
    /// The kernel's configuration, or the running kernel itself: exact.
    Kernel,
    /// MemTotal divided by the managed pages of all zones: exact.
    Memory,
    /// The only power of two that fits the objects and pages of slabs.
    Slabs,
}

/// The page size and how it is known.
pub(crate) fn page_size(dump: &Dump) -> Option<(u64, PageSizeFrom)> {
    if let Some(bytes) = config_page_size(&dump.config) {
        return Some((bytes, PageSizeFrom::Kernel));
    }
    let managed = dump.zones.iter().fold(0u64, |sum, zone| sum.saturating_add(zone.managed));
    if let Some(&total_kb) = dump.meminfo.get("MemTotal")
        && managed > 0
        && total_kb.checked_mul(1024)? % managed == 0
        && (total_kb * 1024 / managed).is_power_of_two()
    {
        return Some((total_kb * 1024 / managed, PageSizeFrom::Memory));
    }
    // A slab of p pages holds n objects of s bytes, so n*s <= p*page; and mostly (n+1)*s > p*page, which
    // SLAB's descriptors and SLUB's limit of 32,767 objects can break. The page size that most caches agree
    // on wins.
    let rows = dump.slabinfo.iter().flat_map(|slabinfo| &slabinfo.rows);
    let from_rows = rows.map(|row| (row.objperslab, row.objsize, Some(row.pagesperslab)));
    let from_attrs = dump.caches.iter().filter_map(|cache| {
        let pages = u32::try_from(cache.order?).ok().and_then(|order| 1u64.checked_shl(order));
        Some((cache.objs_per_slab?, cache.slab_size?, pages))
    });
    let mut votes = BTreeMap::new();
    for (objects, size, pages) in from_rows.chain(from_attrs) {
        let Some(pages) = pages.filter(|&pages| pages > 0 && objects > 0 && size > 0) else { continue };
        let used = u128::from(objects) * u128::from(size);
        let fits = |shift: &u32| {
            let slab = u128::from(pages) << shift;
            used <= slab && slab < used + u128::from(size)
        };
        // 4 KiB to 256 KiB: what Linux runs with.
        if let Some(shift) = (12..=18u32).find(fits) {
            *votes.entry(shift).or_insert(0u32) += 1;
        }
    }
    let (shift, _) = votes.into_iter().max_by_key(|&(shift, count)| (count, std::cmp::Reverse(shift)))?;
    Some((1 << shift, PageSizeFrom::Slabs))
}
