//! The figures of a prediction: of each cache, and of all.

use super::errors::Range;
use crate::state::Cache;
use schemars::JsonSchema;
use serde::Serialize;

/// A cache, today and with the change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The name as in the state.
    pub cache: String,
    /// 0 for the first cache of that name.
    pub ordinal: u32,
    /// Today.
    pub today: Figures,
    /// With the change.
    pub whatif: Figures,
}

/// What a cache takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes from one object to the next.
    pub size: u64,
    /// Pages of a slab, log2.
    pub order: u32,
    /// Objects in a slab.
    pub objects_per_slab: u64,
    /// Objects there is room for.
    pub objects: u64,
    /// Slabs.
    pub slabs: u64,
    /// Bytes of the slabs.
    pub bytes: u64,
    /// Bytes behind the last object of all slabs.
    pub waste: u64,
}

/// Sums over caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Total {
    /// Slabs.
    pub slabs: u64,
    /// Objects there is room for.
    pub objects: u64,
    /// Bytes of the slabs.
    #[serde(rename = "total_bytes")]
    pub bytes: u64,
    /// The least that is likely; for today, the sum itself.
    #[serde(rename = "total_low_bytes")]
    pub low: u64,
    /// The most that is likely.
    #[serde(rename = "total_high_bytes")]
    pub high: u64,
    /// Bytes behind the last object of all slabs.
    #[serde(rename = "waste_bytes")]
    pub waste: u64,
}

impl Figures {
    /// A cache as it is.
    pub(super) fn of(cache: &Cache, page_size: u64) -> Figures {
        let figures = Figures::new(cache.size, cache.order, cache.objects_per_slab, cache.slabs, page_size);
        Figures { objects: cache.total_objects, ..figures }
    }

    /// A cache whose slabs are all full.
    pub(super) fn new(size: u64, order: u32, objects_per_slab: u64, slabs: u64, page_size: u64) -> Figures {
        let slab_bytes = page_size << order;
        Figures {
            size,
            order,
            objects_per_slab,
            objects: slabs.saturating_mul(objects_per_slab),
            slabs,
            bytes: slabs.saturating_mul(slab_bytes),
            waste: slabs.saturating_mul(slab_bytes.saturating_sub(objects_per_slab.saturating_mul(size))),
        }
    }
}

impl Total {
    /// The sums of these figures, and the range of their bytes.
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a Figures>, range: Range) -> Total {
        let mut total = Total::default();
        for figures in rows {
            total.slabs = total.slabs.saturating_add(figures.slabs);
            total.objects = total.objects.saturating_add(figures.objects);
            total.bytes = total.bytes.saturating_add(figures.bytes);
            total.waste = total.waste.saturating_add(figures.waste);
        }
        let (low, high) = range.around(total.bytes);
        Total { low, high, ..total }
    }
}
