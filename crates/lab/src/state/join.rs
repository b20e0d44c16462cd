//! Rows of /proc/slabinfo and directories of /sys/kernel/slab, as one list of caches.

use super::Cache;
use slablab_kernel::bundle::Dump;
use slablab_kernel::slabinfo::SlabinfoRow;
use slablab_kernel::sysfs::SlabAttrs;
use std::collections::HashMap;

/// Caches in slabinfo's order, then directories that no row names.
pub(super) fn join(dump: &Dump) -> Vec<Cache> {
    let rows: Vec<&SlabinfoRow> = dump.slabinfo.iter().flat_map(|slabinfo| &slabinfo.rows).collect();
    let directories = directories(&rows, &dump.caches);
    let mut used = vec![false; dump.caches.len()];
    directories.iter().flatten().for_each(|&at| used[at] = true);
    let with_attrs = rows.iter().zip(&directories);
    let mut caches: Vec<Cache> =
        with_attrs.map(|(row, at)| of_row(row, at.map(|at| &dump.caches[at]))).collect();
    let rest = dump.caches.iter().zip(used).filter(|(attrs, used)| !used && attrs.slab_size.is_some());
    caches.extend(rest.map(|(attrs, _)| of_attrs(attrs)));
    number_duplicates(&mut caches);
    caches
}

/// The directory of each row. Names repeat in slabinfo, but not in sysfs, which has a directory for one cache of a name
/// and refuses the others: the row whose geometry is the directory's has it, whichever comes first.
fn directories(rows: &[&SlabinfoRow], caches: &[SlabAttrs]) -> Vec<Option<usize>> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, attrs) in caches.iter().enumerate() {
        for name in std::iter::once(&attrs.name).chain(&attrs.aliases) {
            by_name.entry(name).or_default().push(at);
        }
    }
    let mut found = vec![None; rows.len()];
    let mut used = vec![false; caches.len()];
    // First those that agree in all, then those that agree in size: an order may change between two reads.
    let agree: [fn(&SlabinfoRow, &SlabAttrs) -> bool; 2] = [same_slabs, same_size];
    for agree in agree {
        for (row, found) in rows.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            let mut named = by_name.get(row.name.as_str()).into_iter().flatten().copied();
            *found = named.find(|&at| !used[at] && agree(row, &caches[at]));
            found.iter().for_each(|&at: &usize| used[at] = true);
        }
    }
    found
}

fn same_size(row: &SlabinfoRow, attrs: &SlabAttrs) -> bool {
    attrs.slab_size.is_none_or(|size| size == row.objsize)
}

fn same_slabs(row: &SlabinfoRow, attrs: &SlabAttrs) -> bool {
    same_size(row, attrs)
        && attrs.objs_per_slab.is_none_or(|objects| objects == row.objperslab)
        && attrs.order.is_none_or(|order| order == u64::from(order_of(row)))
}

fn order_of(row: &SlabinfoRow) -> u32 {
    row.pagesperslab.max(1).ilog2()
}

/// A directory that no row names may have the name of a row still.
fn number_duplicates(caches: &mut [Cache]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for cache in caches {
        let count = seen.entry(cache.name.clone()).or_default();
        cache.ordinal = *count;
        *count += 1;
    }
}

fn of_row(row: &SlabinfoRow, attrs: Option<&SlabAttrs>) -> Cache {
    Cache {
        name: row.name.clone(),
        ordinal: row.ordinal,
        aliases: attrs.map_or_else(Vec::new, |attrs| other_names(attrs, &row.name)),
        object_size: attrs.and_then(|attrs| attrs.object_size),
        size: row.objsize,
        objects_per_slab: row.objperslab,
        order: order_of(row),
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
        // No kernel's is larger, and a shift by more would be none.
        order: attrs.order.unwrap_or(0).min(20) as u32,
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
