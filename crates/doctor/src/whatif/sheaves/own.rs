//! The memory of sheaves and barns themselves: objects of kmalloc (docs/theory/sheaves.md 1 and 2).

use super::cache::Today;
use super::layer::Layer;
use super::level::Level;
use std::collections::BTreeMap;

/// Bytes of a sheaf before its objects.
const HEADER: u64 = 32;
/// Bytes of an address in a sheaf.
const WORD: u64 = 8;
/// Bytes of a barn: a lock, two lists and two counts. Each barn more is an object of kmalloc-64 in boots of
/// 7.0 and 7.1.
const BARN: u64 = 64;

/// Objects of kmalloc by bytes.
#[derive(Default)]
pub(super) struct Own {
    objects: BTreeMap<u64, f64>,
}

impl Own {
    /// Adds what a layer has of one cache, `times` times.
    pub(super) fn add(&mut self, layer: &Layer, capacity: u32, seen: &Today, level: Level, times: f64) {
        if capacity == 0 || !layer.has_sheaves() {
            return;
        }
        let cpus = f64::from(layer.cpus);
        let sheaves = cpus + level.spares(seen.holding(layer), cpus) + seen.barn_sheaves(layer, level);
        let bytes = HEADER + WORD * u64::from(capacity);
        *self.objects.entry(bytes).or_default() += times * sheaves;
        *self.objects.entry(BARN).or_default() += times * f64::from(layer.barns);
    }

    /// Bytes and number of objects.
    pub(super) fn objects(self) -> Vec<(u64, f64)> {
        self.objects.into_iter().collect()
    }
}
