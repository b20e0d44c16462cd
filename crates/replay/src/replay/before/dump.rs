//! The caches of a dump.

use super::{CacheBefore, Knobs, whole};
use slablab_doctor::state::{Cache, join};
use slablab_readers::bundle::Dump;
use slablab_readers::slabinfo::SlabinfoRow;
use slablab_readers::sysfs::SlabAttrs;
use slablab_slabs::CacheFlags;

/// The caches of a dump that has /sys/kernel/slab, and how those were found whose links are not in it.
pub(super) fn caches(dump: &Dump) -> (Vec<CacheBefore>, Vec<String>) {
    let joined = join(dump);
    let rows = dump.slabinfo.as_ref().map_or(&[][..], |slabinfo| &slabinfo.rows);
    // Of several rows with one name, sysfs has the directory of one. A recording does not tell them apart.
    let caches = joined.caches.iter().filter(|cache| cache.attrs.is_some() || cache.ordinal == 0);
    let caches = caches.filter_map(|cache| match &cache.attrs {
        Some(attrs) => Some(CacheBefore::of_attrs(cache, attrs)),
        None => Some(CacheBefore::of_row(&rows[cache.row?])),
    });
    let caches = caches.collect();
    let mut assumed = Vec::new();
    if joined.by_numbers > 0 {
        assumed.push(format!(
            "the links of /sys/kernel/slab are not in the dump: {} merged caches were found by their numbers, \
             {} of them among several with the same, whose directories may be each other's",
            joined.by_numbers, joined.by_order
        ));
    }
    if joined.left_out > 0 {
        assumed.push(format!(
            "{} merged directories of /sys/kernel/slab belong to a row of /proc/slabinfo that could not be \
             told, and are left out",
            joined.left_out
        ));
    }
    (caches, assumed)
}

impl CacheBefore {
    /// What a row of /proc/slabinfo says.
    pub(super) fn of_row(row: &SlabinfoRow) -> CacheBefore {
        CacheBefore {
            name: row.name.clone(),
            size: row.objsize,
            order: row.pagesperslab.max(1).ilog2() as u64,
            objects: row.objperslab,
            active: row.active_objs,
            slabs: Some(whole(row.num_slabs)),
            knobs: knobs_of_row(row),
            ..CacheBefore::default()
        }
    }

    /// What a directory of /sys/kernel/slab says, which is `cache`'s.
    fn of_attrs(cache: &Cache, attrs: &SlabAttrs) -> CacheBefore {
        // A name that the kernel made up is of use only beside the links to it.
        let lost_its_links = attrs.name.starts_with(':') && attrs.aliases.is_empty();
        let name = if lost_its_links { &cache.name } else { &attrs.name };
        let names = attrs.aliases.iter().chain([&cache.name, &attrs.name]);
        let mut aliases: Vec<String> = Vec::new();
        for other in names.filter(|other| *other != name) {
            if !aliases.contains(other) {
                aliases.push(other.clone());
            }
        }
        CacheBefore {
            name: name.clone(),
            aliases,
            object_size: attrs.object_size,
            size: attrs.slab_size.unwrap_or(0),
            order: attrs.order.unwrap_or(0),
            objects: attrs.objs_per_slab.unwrap_or(0),
            flags: CacheFlags::NONE
                .with(CacheFlags::HWCACHE_ALIGN, attrs.hwcache_align.unwrap_or(false))
                .with(CacheFlags::RECLAIM_ACCOUNT, attrs.reclaim_account.unwrap_or(false))
                .with(CacheFlags::DMA, attrs.cache_dma.unwrap_or(false))
                .with(CacheFlags::TYPESAFE_BY_RCU, attrs.destroy_by_rcu.unwrap_or(false))
                .with(CacheFlags::CONSTRUCTOR, attrs.ctor.is_some()),
            align: attrs.align,
            sheaf_capacity: attrs.sheaf_capacity.unwrap_or(0),
            active: attrs.objects.as_ref().map_or(0, |objects| objects.total.value),
            slabs: attrs.slabs.clone(),
            partial: attrs.partial.clone(),
            objects_partial: attrs.objects_partial.clone(),
            cpu_slabs: attrs.cpu_slabs.clone(),
            cpu_partial: attrs.slabs_cpu_partial.clone(),
            knobs: knobs_of_attrs(attrs),
        }
    }
}

/// SLUB writes a limit of 0 for every cache; SLAB's arrays hold one object at least.
fn knobs_of_row(row: &SlabinfoRow) -> Knobs {
    let of_slab = |value: u64| (row.limit > 0).then_some(value);
    Knobs {
        limit: of_slab(row.limit),
        batchcount: of_slab(row.batchcount),
        shared: of_slab(row.sharedfactor),
        shared_objects: of_slab(row.sharedavail),
        ..Knobs::default()
    }
}

fn knobs_of_attrs(attrs: &SlabAttrs) -> Knobs {
    let flags = [attrs.red_zone, attrs.poison, attrs.store_user, attrs.sanity_checks, attrs.trace];
    Knobs {
        cpu_partial: attrs.cpu_partial,
        min_partial: attrs.min_partial,
        debugged: flags.contains(&Some(true)),
        ..Knobs::default()
    }
}
