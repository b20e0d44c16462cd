//! Rows of /proc/slabinfo and directories of /sys/kernel/slab, as one list of caches.

use super::Cache;
use slablab_kernel::bundle::Dump;
use slablab_kernel::slabinfo::SlabinfoRow;
use slablab_kernel::sysfs::SlabAttrs;

/// Caches in slabinfo's order, then directories that no row names.
pub(super) fn join(dump: &Dump) -> Vec<Cache> {
    let rows = dump.slabinfo.iter().flat_map(|slabinfo| &slabinfo.rows);
    let mut used = vec![false; dump.caches.len()];
    let mut caches: Vec<Cache> = rows
        .map(|row| {
            // Caches of one name are directories of one name each only by chance: each row takes the next that fits.
            let fits = |(at, attrs): &(usize, &SlabAttrs)| {
                !used[*at] && attrs.is_called(&row.name) && attrs.slab_size.is_none_or(|size| size == row.objsize)
            };
            let found = dump.caches.iter().enumerate().find(fits).map(|(at, _)| at);
            if let Some(at) = found {
                used[at] = true;
            }
            of_row(row, found.map(|at| &dump.caches[at]))
        })
        .collect();
    let rest = dump.caches.iter().zip(used).filter(|(attrs, used)| !used && attrs.slab_size.is_some());
    caches.extend(rest.map(|(attrs, _)| of_attrs(attrs)));
    caches
}

fn of_row(row: &SlabinfoRow, attrs: Option<&SlabAttrs>) -> Cache {
    Cache {
        name: row.name.clone(),
        ordinal: row.ordinal,
        aliases: attrs.map_or_else(Vec::new, |attrs| other_names(attrs, &row.name)),
        object_size: attrs.and_then(|attrs| attrs.object_size),
        size: row.objsize,
        objects_per_slab: row.objperslab,
        order: row.pagesperslab.max(1).ilog2(),
        slabs: row.num_slabs,
        total_objects: row.num_objs,
        active_objects: row.active_objs,
        attrs: attrs.cloned(),
    }
}

fn of_attrs(attrs: &SlabAttrs) -> Cache {
    let name = attrs.aliases.first().unwrap_or(&attrs.name).clone();
    let whole = |counts: &Option<slablab_kernel::text::Breakdown>| {
        counts.as_ref().map_or(0, |counts| counts.total.value)
    };
    Cache {
        aliases: other_names(attrs, &name),
        name,
        ordinal: 0,
        object_size: attrs.object_size,
        size: attrs.slab_size.unwrap_or(0),
        objects_per_slab: attrs.objs_per_slab.unwrap_or(0),
        order: attrs.order.unwrap_or(0) as u32,
        slabs: whole(&attrs.slabs),
        total_objects: whole(&attrs.total_objects),
        active_objects: whole(&attrs.objects),
        attrs: Some(attrs.clone()),
    }
}

/// Names of people: a merged cache's directory is called `:0000192`, which nobody knows it by.
fn other_names(attrs: &SlabAttrs, name: &str) -> Vec<String> {
    let directory = Some(&attrs.name).filter(|directory| !directory.starts_with(':'));
    attrs.aliases.iter().chain(directory).filter(|other| *other != name).cloned().collect()
}
