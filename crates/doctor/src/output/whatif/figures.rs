//! The figures of a cache, each today and with the change.

use crate::whatif::{Figures, Row};

/// A figure: its key for programs, its heads for people, and how it is got.
pub(super) struct Figure {
    pub(super) key: &'static str,
    /// Its head in a text table; empty if people see it by other heads, or not at all.
    pub(super) short: &'static str,
    /// Its head on a page.
    pub(super) head: &'static str,
    pub(super) get: fn(&Figures) -> u64,
}

const fn figure(
    key: &'static str,
    short: &'static str,
    head: &'static str,
    get: fn(&Figures) -> u64,
) -> Figure {
    Figure { key, short, head, get }
}

/// All figures, in the order of the CSV.
pub(super) const FIGURES: [Figure; 7] = [
    figure("slab_size_bytes", "", "", |figures| figures.size),
    figure("order", "O", "order", |figures| figures.order as u64),
    figure("objs_per_slab", "O/S", "objects in a slab", |figures| figures.objects_per_slab),
    figure("objects", "", "", |figures| figures.objects),
    figure("slabs", "Slabs", "slabs", |figures| figures.slabs),
    figure("total_bytes", "", "", |figures| figures.bytes),
    figure("waste_bytes", "", "", |figures| figures.waste),
];

/// The counts that people see as one column, `3>0`.
pub(super) fn counts() -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(|figure| !figure.short.is_empty())
}

impl Figure {
    /// The key today and the key with the change.
    pub(super) fn keys(&self) -> [String; 2] {
        let whatif = match self.key.strip_suffix("_bytes") {
            Some(stem) => format!("{stem}_whatif_bytes"),
            None => format!("{}_whatif", self.key),
        };
        [self.key.to_string(), whatif]
    }

    /// The figure today and with the change.
    pub(super) fn both(&self, row: &Row) -> [u64; 2] {
        [&row.today, &row.whatif].map(self.get)
    }
}
