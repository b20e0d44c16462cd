//! /sys/kernel/slab: the attributes of each cache, from its files or from the tidy CSV.

use std::io::Read;

use crate::error::ReadError;
use crate::lines::Csv;
use crate::text::{Breakdown, LineError, number};

/// The attributes of one cache. An attribute that its kernel or the dump does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlabAttrs {
    /// The directory: a name, or `:0000192` and its like when caches were merged.
    pub name: String,
    /// Names of the merged caches: links to this directory, ascending.
    pub aliases: Vec<String>,
    /// Bytes of an object without padding.
    pub object_size: Option<u64>,
    /// Bytes from one object to the next.
    pub slab_size: Option<u64>,
    /// Bytes of an object that may be copied to user space.
    pub usersize: Option<u64>,
    /// Alignment in bytes.
    pub align: Option<u64>,
    /// Objects in a slab.
    pub objs_per_slab: Option<u64>,
    /// A slab is `2^order` pages.
    pub order: Option<u64>,
    /// Objects to keep on a CPU's partial list.
    pub cpu_partial: Option<u64>,
    /// Slabs to keep on a node's partial list.
    pub min_partial: Option<u64>,
    /// Percentage of allocations that may take another node's partial slab.
    pub remote_node_defrag_ratio: Option<u64>,
    /// Objects in a sheaf (since 6.18).
    pub sheaf_capacity: Option<u64>,
    /// Caches merged into this one, except the first.
    pub alias_count: Option<u64>,
    /// Slabs.
    pub slabs: Option<Breakdown>,
    /// Objects in use or parked per CPU.
    pub objects: Option<Breakdown>,
    /// Objects in use on partial slabs.
    pub objects_partial: Option<Breakdown>,
    /// Slabs on the nodes' partial lists.
    pub partial: Option<Breakdown>,
    /// Objects there is room for.
    pub total_objects: Option<Breakdown>,
    /// Slabs held by CPUs, by node; with per-CPU partial lists theirs too.
    pub cpu_slabs: Option<Breakdown>,
    /// Objects and slabs of the per-CPU partial lists.
    pub slabs_cpu_partial: Option<Breakdown>,
    /// Aligned to cache lines.
    pub hwcache_align: Option<bool>,
    /// Reclaimable.
    pub reclaim_account: Option<bool>,
    /// In the DMA zone.
    pub cache_dma: Option<bool>,
    /// Freed after a grace period.
    pub destroy_by_rcu: Option<bool>,
    /// Debugging: checks.
    pub sanity_checks: Option<bool>,
    /// Debugging: red zones.
    pub red_zone: Option<bool>,
    /// Debugging: poison.
    pub poison: Option<bool>,
    /// Debugging: users.
    pub store_user: Option<bool>,
    /// Debugging: trace.
    pub trace: Option<bool>,
    /// The constructor, `symbol+offset/size`.
    pub ctor: Option<String>,
    /// SLUB_STATS counters and attributes without a field above, by name, ascending.
    pub others: Vec<(String, Breakdown)>,
}

/// More attributes than any kernel has.
const OTHERS_LIMIT: usize = 256;

impl SlabAttrs {
    /// Takes the attribute file `attribute` with this content. Files that hold no number (`shrink`) are
    /// passed over.
    ///
    /// # Errors
    /// What the attribute should hold.
    pub fn set(&mut self, attribute: &str, content: &str) -> Result<(), LineError> {
        let content = content.trim();
        let error = |expected| LineError::new(1, expected, content);
        let plain = || number(content).map(Some).ok_or_else(|| error("a number"));
        let flag = || match content {
            "0" => Ok(Some(false)),
            "1" => Ok(Some(true)),
            _ => Err(error("0 or 1")),
        };
        let counts =
            || Breakdown::parse(content).map(Some).ok_or_else(|| error("a number, then N0=.. or C0=.."));
        match attribute {
            "object_size" => self.object_size = plain()?,
            "slab_size" => self.slab_size = plain()?,
            "usersize" => self.usersize = plain()?,
            "align" => self.align = plain()?,
            "objs_per_slab" => self.objs_per_slab = plain()?,
            "order" => self.order = plain()?,
            "cpu_partial" => self.cpu_partial = plain()?,
            "min_partial" => self.min_partial = plain()?,
            "remote_node_defrag_ratio" => self.remote_node_defrag_ratio = plain()?,
            "sheaf_capacity" => self.sheaf_capacity = plain()?,
            "aliases" => self.alias_count = plain()?,
            "slabs" => self.slabs = counts()?,
            "objects" => self.objects = counts()?,
            "objects_partial" => self.objects_partial = counts()?,
            "partial" => self.partial = counts()?,
            "total_objects" => self.total_objects = counts()?,
            "cpu_slabs" => self.cpu_slabs = counts()?,
            "slabs_cpu_partial" => self.slabs_cpu_partial = counts()?,
            "hwcache_align" => self.hwcache_align = flag()?,
            "reclaim_account" => self.reclaim_account = flag()?,
            "cache_dma" => self.cache_dma = flag()?,
            "destroy_by_rcu" => self.destroy_by_rcu = flag()?,
            "sanity_checks" => self.sanity_checks = flag()?,
            "red_zone" => self.red_zone = flag()?,
            "poison" => self.poison = flag()?,
            "store_user" => self.store_user = flag()?,
            "trace" => self.trace = flag()?,
            "ctor" => self.ctor = Some(content.to_string()).filter(|ctor| !ctor.is_empty()),
            _ => self.set_other(attribute, content),
        }
        Ok(())
    }

    fn set_other(&mut self, attribute: &str, content: &str) {
        let Some(counts) = Breakdown::parse(content) else { return };
        match self.others.binary_search_by(|(known, _)| known.as_str().cmp(attribute)) {
            Ok(at) => self.others[at].1 = counts,
            Err(at) if self.others.len() < OTHERS_LIMIT => {
                self.others.insert(at, (attribute.to_string(), counts))
            }
            Err(_) => {}
        }
    }

    /// A SLUB_STATS counter or other attribute.
    pub fn other(&self, name: &str) -> Option<&Breakdown> {
        let at = self.others.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(&self.others[at].1)
    }

    /// Whether `name` is this cache's, as directory or alias.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.binary_search_by(|alias| alias.as_str().cmp(name)).is_ok()
    }

    /// Every name of this cache: its directory's, then those of the links to it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.aliases).map(String::as_str)
    }
}

/// Reads the tidy form, a CSV with one row per directory: `cache`, `alias_names` (joined by `;`), attributes
/// by their file's name, and for each attribute with parts a column `<name>_detail` with them (`N0=8`).
///
/// # Errors
/// A missing column, a field that is not what its attribute holds, or `reader`'s.
pub fn parse_attrs_csv(reader: impl Read) -> Result<Vec<SlabAttrs>, ReadError> {
    let mut csv = Csv::new(reader)?;
    let (name, aliases) = (csv.column("cache")?, csv.column("alias_names")?);
    let detail_of = |column: &String| csv.find(&format!("{column}_detail"));
    let columns: Vec<_> = csv.header().iter().map(|column| (column.clone(), detail_of(column))).collect();
    let mut caches = Vec::new();
    while csv.next()? {
        let mut cache = SlabAttrs { name: csv.field(name).to_string(), ..SlabAttrs::default() };
        cache.aliases =
            csv.field(aliases).split(';').filter(|alias| !alias.is_empty()).map(str::to_string).collect();
        cache.aliases.sort();
        for (index, (column, detail)) in columns.iter().enumerate() {
            let value = csv.field(index);
            if index == name || index == aliases || column.ends_with("_detail") || value.is_empty() {
                continue;
            }
            let set = match detail {
                Some(detail) => cache.set(column, &format!("{value} {}", csv.field(*detail))),
                None => cache.set(column, value),
            };
            set.map_err(|error| csv.error(index, error.expected))?;
        }
        caches.push(cache);
    }
    Ok(caches)
}
