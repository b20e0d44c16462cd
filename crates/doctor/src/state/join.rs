//! Rows of /proc/slabinfo and directories of /sys/kernel/slab, as one list of caches.
//!
//! A row and its directory share a name, which may be one of several links to a merged cache's directory
//! (`:0000192`). Names repeat, archives lose links, and kernels from 3.8 to 3.14 have a directory for each
//! cgroup's part of a cache; so they are joined in four steps, each over what the one before left:
//!
//! 1. the same name, and the same geometry;
//! 2. the same name, and the same size of an object: an order may change between two reads;
//! 3. merged caches whose links are lost: the only row and the only directory with this geometry and these
//!    counts;
//! 4. the same, in the order of their counts: inside one geometry, sums hold whichever is whose.

use super::machine::Cache;
use slablab_readers::bundle::Dump;
use slablab_readers::slabinfo::SlabinfoRow;
use slablab_readers::sysfs::SlabAttrs;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What came together.
pub struct Joined {
    /// Caches in slabinfo's order, then directories that no row names.
    pub caches: Vec<Cache>,
    /// Rows whose directory was found by its numbers, not by its name: the links were lost.
    pub by_numbers: usize,
    /// Of those, rows that share these numbers with others.
    pub by_order: usize,
    /// Merged directories without a link and without a row like them.
    pub left_out: usize,
    /// Directories of cgroups' caches, which slabinfo counts with the cache they belong to.
    pub of_cgroups: usize,
}

/// Joins the rows of /proc/slabinfo in `dump` with the directories of /sys/kernel/slab.
pub fn join(dump: &Dump) -> Joined {
    let rows: Vec<&SlabinfoRow> = dump.slabinfo.iter().flat_map(|slabinfo| &slabinfo.rows).collect();
    let mut pairs = Pairs::new(rows.len(), &dump.caches);
    pairs.by_name(&rows);
    let (by_numbers, by_order) = pairs.by_numbers(&rows);
    let directory = |at: Option<usize>| at.map(|at| &dump.caches[at]);
    let paired = rows.iter().zip(&pairs.of_rows).enumerate();
    let mut caches: Vec<Cache> =
        paired.map(|(index, (row, at))| of_row(index, row, directory(*at))).collect();
    let names: HashSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let (mut left_out, mut of_cgroups) = (0, 0);
    let rest = dump.caches.iter().zip(pairs.used);
    for (attrs, _) in rest.filter(|(attrs, used)| !used && attrs.slab_size.is_some()) {
        if !rows.is_empty() && lost_its_links(attrs) {
            // Its row is in slabinfo, but which one is unknown: a second entry would count its bytes twice.
            left_out += 1;
        } else if parent(&attrs.name).is_some_and(|parent| names.contains(parent)) {
            of_cgroups += 1;
        } else {
            caches.push(of_attrs(attrs));
        }
    }
    number_duplicates(&mut caches);
    Joined { caches, by_numbers, by_order, left_out, of_cgroups }
}

/// The directory of each row.
struct Pairs<'a> {
    caches: &'a [SlabAttrs],
    of_rows: Vec<Option<usize>>,
    used: Vec<bool>,
}

impl<'a> Pairs<'a> {
    fn new(rows: usize, caches: &'a [SlabAttrs]) -> Self {
        Pairs { caches, of_rows: vec![None; rows], used: vec![false; caches.len()] }
    }

    fn pair(&mut self, row: usize, at: usize) {
        (self.of_rows[row], self.used[at]) = (Some(at), true);
    }

    /// Several caches in slabinfo may have one name, but sysfs has a directory for only one of them and
    /// refuses the others. The directory belongs to the row with the same geometry, in whatever order the
    /// rows are.
    fn by_name(&mut self, rows: &[&SlabinfoRow]) {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, attrs) in self.caches.iter().enumerate() {
            for name in std::iter::once(&attrs.name).chain(&attrs.aliases) {
                by_name.entry(name).or_default().push(at);
            }
        }
        let agree: [fn(&SlabinfoRow, &SlabAttrs) -> bool; 2] = [same_slabs, same_size];
        for agree in agree {
            for (index, row) in rows.iter().enumerate() {
                let mut named = by_name.get(row.name.as_str()).into_iter().flatten().copied();
                let found = named.find(|&at| !self.used[at] && agree(row, &self.caches[at]));
                if let Some(at) = found.filter(|_| self.of_rows[index].is_none()) {
                    self.pair(index, at);
                }
            }
        }
    }

    /// Finds the directories of merged caches whose links are lost. Gives how many, and how many of those by
    /// order alone.
    fn by_numbers(&mut self, rows: &[&SlabinfoRow]) -> (usize, usize) {
        let mut found = [0; 2];
        for exact in [true, false] {
            // Geometry and, in the first step, counts; with the rows and the directories that have them.
            let mut alike: BTreeMap<[u64; 5], [Vec<usize>; 2]> = BTreeMap::new();
            let counted = |slabs, objects| if exact { [slabs, objects] } else { [0; 2] };
            for (index, row) in rows.iter().enumerate().filter(|(index, _)| self.of_rows[*index].is_none()) {
                let [slabs, objects] = counted(row.num_slabs, row.num_objs);
                let key = [row.objsize, row.objperslab, u64::from(order_of(row)), slabs, objects];
                alike.entry(key).or_default()[0].push(index);
            }
            for (at, attrs) in self.caches.iter().enumerate() {
                if self.used[at] || !lost_its_links(attrs) {
                    continue;
                }
                let (Some(size), Some(objects), Some(order)) =
                    (attrs.slab_size, attrs.objs_per_slab, attrs.order)
                else {
                    continue;
                };
                let [slabs, total] = counted(whole(&attrs.slabs), whole(&attrs.total_objects));
                alike.entry([size, objects, order, slabs, total]).or_default()[1].push(at);
            }
            for [mut of_rows, mut directories] in alike.into_values() {
                if exact && (of_rows.len(), directories.len()) != (1, 1) {
                    continue;
                }
                of_rows.sort_by_key(|&row| rows[row].num_objs);
                directories.sort_by_key(|&at| whole(&self.caches[at].total_objects));
                let alone = exact || (of_rows.len(), directories.len()) == (1, 1);
                for (row, at) in of_rows.into_iter().zip(directories) {
                    self.pair(row, at);
                    found[0] += 1;
                    found[1] += usize::from(!alone);
                }
            }
        }
        (found[0], found[1])
    }
}

/// A merged cache has one link at least, which an archive that follows or drops links does not have.
fn lost_its_links(attrs: &SlabAttrs) -> bool {
    attrs.name.starts_with(':') && attrs.aliases.is_empty()
}

/// `dentry` of `dentry(12:group)`.
fn parent(name: &str) -> Option<&str> {
    let (parent, group) = name.strip_suffix(')')?.split_once('(')?;
    let (id, _) = group.split_once(':')?;
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then_some(parent)
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

fn of_row(index: usize, row: &SlabinfoRow, attrs: Option<&SlabAttrs>) -> Cache {
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
        bytes_only: false,
        attrs: attrs.cloned(),
        row: Some(index),
    }
}

fn of_attrs(attrs: &SlabAttrs) -> Cache {
    // The kernel's own tool calls a merged cache by its shortest name too.
    let name = attrs.aliases.iter().min_by_key(|alias| alias.len()).unwrap_or(&attrs.name).clone();
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
        bytes_only: false,
        attrs: Some(attrs.clone()),
        row: None,
    }
}

fn whole(counts: &Option<slablab_readers::text::Breakdown>) -> u64 {
    counts.as_ref().map_or(0, |counts| counts.total.value)
}

/// Whether the name is one that a kernel developer chose: a merged cache's directory has a made-up one,
/// `:0000192`.
fn other_names(attrs: &SlabAttrs, name: &str) -> Vec<String> {
    let directory = Some(&attrs.name).filter(|directory| !directory.starts_with(':'));
    attrs.aliases.iter().chain(directory).filter(|other| *other != name).cloned().collect()
}
