//! Compares a prediction with the dump of a boot that had the change, to measure the error of the model.
//!
//! Beside its error stand those of two guesses that know nothing: memory stays as it is; memory goes with the
//! number of CPUs.

use super::figures::Row;
use super::predict::Prediction;
use crate::state::{Cache, State};
use slablab_readers::sysfs::SlabAttrs;
use std::collections::{HashMap, HashSet};

/// How a prediction did.
#[derive(Clone, Debug, PartialEq)]
pub struct Against {
    /// Caches that both have.
    pub caches: usize,
    /// Of those, caches whose order is as predicted.
    pub orders: usize,
    /// Caches whose objects per slab are as predicted.
    pub objects_per_slab: usize,
    /// Caches whose bytes per object are as predicted.
    pub sizes: usize,
    /// Caches where one of them is not.
    pub mismatches: Vec<Mismatch>,
    /// Names that are in one of the two only.
    pub only_one: Vec<String>,
    /// Bytes of all slabs of the boot.
    pub real: u64,
    /// Bytes behind the last object of all slabs of the boot.
    pub real_waste: u64,
    /// The prediction over the truth, less one.
    pub error: f64,
    /// The error of the guess that memory stays as it is: the guess over the boot's memory, less one.
    pub error_unchanged: f64,
    /// The error of the guess that memory is proportional to the number of CPUs; `None` if that number is
    /// unchanged.
    pub error_by_cpus: Option<f64>,
    /// What was off most in bytes: cache, predicted slabs, real slabs, bytes too many.
    pub worst: Vec<(String, u64, u64, i64)>,
    /// All caches that both have: bytes too many.
    pub off: Vec<(String, i64)>,
}

/// A cache whose geometry is not as predicted: size, order, objects per slab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The name.
    pub cache: String,
    /// As predicted.
    pub predicted: (u64, u32, u64),
    /// As it is.
    pub real: (u64, u32, u64),
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
        let mut worst: Vec<_> = pairs
            .iter()
            .map(|(row, cache)| {
                let bytes = row.whatif.bytes as i64 - cache.bytes(real.page_size) as i64;
                (row.cache.clone(), row.whatif.slabs, cache.slabs, bytes)
            })
            .collect();
        let off_by = worst.iter().map(|(cache, _, _, bytes)| (cache.clone(), *bytes)).collect();
        worst.sort_by_key(|(_, _, _, bytes)| std::cmp::Reverse(bytes.abs()));
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
                    predicted: geometry(row),
                    real: real_geometry(cache),
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
