//! Compares a prediction with the dump of a boot that had the change, to measure the error of the model.
//!
//! Beside its error stand those of two guesses that know nothing: memory stays as it is; memory goes with the
//! number of CPUs.

use super::figures::Row;
use super::predict::Prediction;
use crate::state::{Cache, State};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::sysfs::SlabAttrs;
use std::collections::{HashMap, HashSet};

/// How a prediction did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Against {
    /// Caches that both have.
    pub caches: usize,
    /// Of those, caches whose order is as predicted.
    #[serde(rename = "orders_exact")]
    pub orders: usize,
    /// Caches whose objects per slab are as predicted.
    #[serde(rename = "objs_per_slab_exact")]
    pub objects_per_slab: usize,
    /// Caches whose bytes per object are as predicted.
    #[serde(rename = "slab_sizes_exact")]
    pub sizes: usize,
    /// Caches where one of them is not.
    pub mismatches: Vec<Mismatch>,
    /// Names that are in one of the two only.
    pub only_one: Vec<String>,
    /// Bytes of all slabs of the boot.
    #[serde(rename = "total_real_bytes")]
    pub real: u64,
    /// Bytes behind the last object of all slabs of the boot.
    #[serde(rename = "waste_real_bytes")]
    pub real_waste: u64,
    /// The prediction over the truth, less one.
    pub error: f64,
    /// The error of the guess that memory stays as it is: the guess over the boot's memory, less one.
    pub error_unchanged: f64,
    /// The error of the guess that memory is proportional to the number of CPUs; `None` if that number is
    /// unchanged.
    pub error_by_cpus: Option<f64>,
    /// The caches that were off most in bytes.
    pub worst: Vec<Off>,
    /// All caches that both have: bytes too many.
    #[serde(skip)]
    pub off: Vec<(String, i64)>,
}

/// A cache whose slabs have another shape than predicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mismatch {
    /// The name.
    pub cache: String,
    /// Bytes from one object to the next, predicted.
    #[serde(rename = "slab_size_whatif_bytes")]
    pub size: u64,
    /// Bytes from one object to the next in the boot.
    #[serde(rename = "slab_size_real_bytes")]
    pub real_size: u64,
    /// Pages of a slab, log2, predicted.
    #[serde(rename = "order_whatif")]
    pub order: u32,
    /// Pages of a slab, log2, in the boot.
    #[serde(rename = "order_real")]
    pub real_order: u32,
    /// Objects in a slab, predicted.
    #[serde(rename = "objs_per_slab_whatif")]
    pub objects_per_slab: u64,
    /// Objects in a slab of the boot.
    #[serde(rename = "objs_per_slab_real")]
    pub real_objects_per_slab: u64,
}

/// By how much the prediction of a cache was off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Off {
    /// The name.
    pub cache: String,
    /// Slabs, predicted.
    #[serde(rename = "slabs_whatif")]
    pub slabs: u64,
    /// Slabs of the boot.
    #[serde(rename = "slabs_real")]
    pub real_slabs: u64,
    /// Bytes predicted beyond those of the boot.
    #[serde(rename = "off_bytes")]
    pub bytes: i64,
}

/// Caches to list as worst.
const WORST: usize = 10;

impl Against {
    /// Compares a prediction with the boot that had the change.
    pub fn new(prediction: &Prediction, real: &State) -> Against {
        let mut pairs: Vec<(&Row, &Cache)> = Vec::new();
        let mut only_one = Vec::new();
        let names = Names::of(real);
        for row in &prediction.rows {
            match names.find(row) {
                Some(cache) => pairs.push((row, cache)),
                None => only_one.push(row.cache.clone()),
            }
        }
        let seen: HashSet<*const Cache> = pairs.iter().map(|(_, cache)| std::ptr::from_ref(*cache)).collect();
        let unseen = real.caches.iter().filter(|cache| !seen.contains(&std::ptr::from_ref(*cache)));
        only_one.extend(unseen.map(|cache| cache.name.clone()));
        let count =
            |same: fn(&Row, &Cache) -> bool| pairs.iter().filter(|(row, cache)| same(row, cache)).count();
        let geometry = |row: &Row| (row.whatif.size, row.whatif.order, row.whatif.objects_per_slab);
        let real_geometry = |cache: &Cache| (cache.size, cache.order, cache.objects_per_slab);
        let off = pairs.iter().filter(|(row, cache)| geometry(row) != real_geometry(cache));
        let mut worst: Vec<Off> = pairs
            .iter()
            .map(|(row, cache)| Off {
                cache: row.cache.clone(),
                slabs: row.whatif.slabs,
                real_slabs: cache.slabs,
                bytes: row.whatif.bytes as i64 - cache.bytes(real.page_size) as i64,
            })
            .collect();
        let off_by = worst.iter().map(|off| (off.cache.clone(), off.bytes)).collect();
        worst.sort_by_key(|off| std::cmp::Reverse(off.bytes.abs()));
        worst.truncate(WORST);
        let bytes = real.bytes();
        let over = |guess: f64| guess / bytes.max(1) as f64 - 1.0;
        let today = prediction.today.bytes as f64;
        let cpus = (prediction.rules.cpus.online, prediction.rules_whatif.cpus.online);
        let tail = |cache: &Cache| {
            let used = cache.objects_per_slab.saturating_mul(cache.size);
            cache.slabs.saturating_mul(cache.slab_bytes(real.page_size).saturating_sub(used))
        };
        Against {
            caches: pairs.len(),
            orders: count(|row, cache| row.whatif.order == cache.order),
            objects_per_slab: count(|row, cache| row.whatif.objects_per_slab == cache.objects_per_slab),
            sizes: count(|row, cache| row.whatif.size == cache.size),
            mismatches: off
                .map(|(row, cache)| Mismatch {
                    cache: row.cache.clone(),
                    size: row.whatif.size,
                    real_size: cache.size,
                    order: row.whatif.order,
                    real_order: cache.order,
                    objects_per_slab: row.whatif.objects_per_slab,
                    real_objects_per_slab: cache.objects_per_slab,
                })
                .collect(),
            only_one,
            real: bytes,
            real_waste: real.caches.iter().map(tail).sum(),
            error: over(prediction.whatif.bytes as f64),
            error_unchanged: over(today),
            error_by_cpus: (cpus.0 != cpus.1).then(|| over(today * f64::from(cpus.1) / f64::from(cpus.0))),
            worst,
            off: off_by,
        }
    }
}

/// The caches of the boot by their names.
struct Names<'a> {
    /// By the name and ordinal of the cache.
    exact: HashMap<(&'a str, u32), &'a Cache>,
    /// By any name of a merged cache: the directory's and those of its links.
    other: HashMap<&'a str, &'a Cache>,
}

impl<'a> Names<'a> {
    fn of(real: &'a State) -> Names<'a> {
        let (mut exact, mut other) = (HashMap::new(), HashMap::new());
        for cache in &real.caches {
            exact.entry((cache.name.as_str(), cache.ordinal)).or_insert(cache);
            let of_directory = cache.attrs.iter().flat_map(SlabAttrs::names);
            for name in cache.aliases.iter().map(String::as_str).chain(of_directory) {
                other.entry(name).or_insert(cache);
            }
        }
        Names { exact, other }
    }

    /// The cache of a row: by name and ordinal. A name that the boot merged finds the cache it was merged
    /// into.
    fn find(&self, row: &Row) -> Option<&'a Cache> {
        let exact = self.exact.get(&(row.cache.as_str(), row.ordinal));
        exact.or_else(|| self.other.get(row.cache.as_str()).filter(|_| row.ordinal == 0)).copied()
    }
}
