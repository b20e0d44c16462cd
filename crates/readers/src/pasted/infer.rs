//! What a row does not say and its numbers imply: slabs, pages, the exact size of an object.

use super::row::{Row, Size};
use super::tables::{Kind, Snapshot, Table};
use crate::slabinfo::{Slabinfo, SlabinfoRow};
use rustc_hash::FxHashSet;

/// Caches of a text, as the rest of the program knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caches {
    /// Those with counts of objects, as rows of /proc/slabinfo.
    pub slabinfo: Slabinfo,
    /// Those of which only bytes are known: name, bytes in use if that is known, and bytes.
    pub sized: Vec<(String, Option<u64>, u64)>,
    /// How much of it was inferred.
    pub inferred: Inferred,
}

/// Numbers of caches for which something was inferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// Size of an object that was rounded, where more than one size fits.
    pub sizes: usize,
    /// Size of an object that was rounded, where one size fits.
    pub exact_sizes: usize,
    /// Among both, those that fit only slabs of SLAB.
    pub slab_sizes: usize,
    /// Number of slabs, from objects and objects per slab.
    pub slabs: usize,
    /// Pages of a slab: the smallest power of two that holds its objects.
    pub pages: usize,
    /// Rows left out because a more complete table has a cache of that name.
    pub doubled: usize,
}

/// The smallest page of a kernel of 64 bits.
const PAGE: u64 = 4096;
/// Pages of arm64 and ppc64.
const LARGE_PAGE: u64 = 65536;

/// The caches of the last snapshots of all tables. Of two tables with a cache of the same name, the more
/// complete one counts.
pub(super) fn caches(tables: &[Table]) -> Caches {
    let snapshots: Vec<(Kind, &Snapshot)> = tables.iter().map(|table| (table.kind, table.last())).collect();
    of_snapshots(&snapshots)
}

/// The caches of one snapshot.
pub(super) fn of_snapshot(kind: Kind, snapshot: &Snapshot) -> Caches {
    of_snapshots(&[(kind, snapshot)])
}

fn of_snapshots(snapshots: &[(Kind, &Snapshot)]) -> Caches {
    let mut caches = Caches::default();
    let mut names: FxHashSet<&str> = FxHashSet::default();
    for (kind, snapshot) in snapshots {
        let page = page_size(&snapshot.rows);
        let known = names.clone();
        for row in &snapshot.rows {
            if known.contains(row.name.as_str()) {
                caches.inferred.doubled += 1;
                continue;
            }
            names.insert(&row.name);
            match counted(row, page, &mut caches.inferred) {
                Some(counted) => caches.slabinfo.rows.push(counted),
                None => {
                    let used = row.used_bytes.or(match (row.active, row.size) {
                        (Some(active), Some(size)) => active.checked_mul(size.high),
                        _ => None,
                    });
                    let bytes = row.bytes.or(used).unwrap_or(0);
                    caches.sized.push((row.name.clone(), used.filter(|_| *kind != Kind::Sizes), bytes));
                }
            }
        }
    }
    caches.slabinfo.number_duplicates();
    caches
}

/// A table in which no slab is smaller than 64 KiB is of a kernel with such pages.
fn page_size(rows: &[Row]) -> u64 {
    let mut slabs = rows.iter().filter_map(printed_slab).peekable();
    if slabs.peek().is_some() && rows.len() > 2 && slabs.all(|bytes| bytes >= LARGE_PAGE) {
        LARGE_PAGE
    } else {
        PAGE
    }
}

/// Bytes of a slab, if the bytes of all slabs are a number of slabs of a power of two. slabtop of uutils
/// prints the bytes of all objects there.
fn printed_slab(row: &Row) -> Option<u64> {
    let (bytes, slabs, objects) = (row.bytes?, row.slabs.filter(|slabs| *slabs > 0)?, row.per_slab?);
    let slab = bytes / slabs;
    let holds = objects.checked_mul(row.size?.low)? <= slab;
    (bytes % slabs == 0 && slab.is_power_of_two() && slab >= PAGE && holds).then_some(slab)
}

/// A row with counts of objects; `None` where they do not tell the bytes of slabs.
fn counted(row: &Row, page: u64, inferred: &mut Inferred) -> Option<SlabinfoRow> {
    let (active, total, size) = (row.active?, row.total?, row.size?);
    let per_slab = row.per_slab?;
    let printed = printed_slab(row).or_else(|| row.pages?.checked_mul(page));
    let objsize = exact_size(size, per_slab, printed, inferred);
    let pages = match (row.pages, printed) {
        (Some(pages), _) => pages,
        (None, Some(slab)) => slab / page,
        (None, None) => {
            inferred.pages += 1;
            let bytes = per_slab.checked_mul(objsize)?.max(1);
            bytes.div_ceil(page).checked_next_power_of_two()?
        }
    };
    let slabs = match row.slabs {
        Some(slabs) => slabs,
        None => {
            inferred.slabs += 1;
            total.checked_div(per_slab)? + u64::from(total % per_slab > 0)
        }
    };
    let [limit, batchcount, sharedfactor, active_slabs, sharedavail] =
        row.slab.unwrap_or([0, 0, 0, slabs, 0]);
    Some(SlabinfoRow {
        name: row.name.clone(),
        active_objs: active,
        num_objs: total,
        objsize,
        objperslab: per_slab,
        pagesperslab: pages,
        limit,
        batchcount,
        sharedfactor,
        active_slabs,
        num_slabs: slabs,
        sharedavail,
        ..SlabinfoRow::default()
    })
}

/// The size that was rounded: a number of words of which exactly so many fit a slab; of several, the nearest
/// to what was printed. If none fits, the kernel may have had SLAB, whose slabs of small objects have a byte
/// for each object in its list of free ones (general knowledge, since 3.15: `freelist_idx_t`).
fn exact_size(size: Size, per_slab: u64, slab: Option<u64>, inferred: &mut Inferred) -> u64 {
    const WORD: u64 = 8;
    let Size { low, high } = size;
    if low == high {
        return low;
    }
    // Without the bytes of a slab, those of the smallest power of two of pages.
    let fits = |size: u64, each: u64| {
        let of = |objects: u64| u128::from(objects) * u128::from(size + each);
        let smallest = || of(per_slab).max(PAGE.into()).next_power_of_two();
        let slab = slab.map_or_else(smallest, u128::from);
        of(per_slab) <= slab && of(per_slab.saturating_add(1)) > slab
    };
    let middle = low.midpoint(high);
    // A row is believed only with sizes below 2^60, and rounding leaves few: but the text may say anything.
    let words = || (low.div_ceil(WORD)..=high / WORD).take(1 << 10).map(|words| words * WORD);
    let mut fitting: Vec<u64> = words().filter(|&size| fits(size, 0)).collect();
    if fitting.is_empty() {
        fitting = words().filter(|&size| fits(size, 1)).collect();
        inferred.slab_sizes += usize::from(!fitting.is_empty());
    }
    match fitting.len() {
        1 => inferred.exact_sizes += 1,
        _ => inferred.sizes += 1,
    }
    let most = slab.map_or(u64::MAX, |slab| slab / per_slab.max(1)).max(1);
    fitting.into_iter().min_by_key(|size| size.abs_diff(middle)).unwrap_or(middle.min(most))
}

#[cfg(test)]
mod tests {
    use super::super::row::{slabtop, words};
    use super::*;

    #[test]
    fn rounded_sizes_and_slabs() {
        #[track_caller]
        fn check(line: &str, objsize: u64, pages: u64, is_exact: bool) {
            let mut inferred = Inferred::default();
            let row = counted(&slabtop(&words(line)).unwrap().row, PAGE, &mut inferred).unwrap();
            assert_eq!(
                (row.objsize, row.pagesperslab, inferred.exact_sizes == 1),
                (objsize, pages, is_exact),
                "{line}"
            );
        }
        check("734506368 734506368 100%    0.06K 11476662       64  45906648K ebitmap_node", 64, 1, true);
        check("2369325 2369308  99%    0.19K 112825       21    451300K dentry", 192, 1, true);
        check("13148  12571  95%    7.50K   3287        4    105184K task_struct", 7680, 8, true);
        check("85359  75134  88%    1.05K   2857       30     91424K ext4_inode_cache", 1072, 8, false);
        // uutils: bytes of objects, not of slabs.
        // SLAB: 128 objects of 32 bytes would fit a slab without the bytes of its list.
        check("248      2   0%    0.03K      2      124         8K xfs_ifork", 32, 1, true);
        check("142     59  41%    0.05K      2       71         8K mbcache", 56, 1, true);
        check("693    449  64%    0.04K      7       99        28K pde_opener", 40, 1, true);
        check("730    730 100%    0.05K     10       73         39 ip_fib_alias", 56, 1, true);
        check("490    490 100%    2.25K     35       14       1102 TCP", 2304, 8, true);
    }
}
