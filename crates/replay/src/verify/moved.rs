//! By how much a cache changed between two dumps, really and predicted, and the skill of a prediction.

use crate::replay::outcome::{CacheOutcome, Split, Traffic};
use slablab_readers::slabinfo::SlabinfoRow;
use slablab_slabs::Usage;

/// One cache's change.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// Slabs and active objects of the kernel at the start.
    pub start: (u64, u64),
    /// What the kernel did.
    pub real: Moved,
    /// What the engine would have done.
    pub predicted: Moved,
    /// What the recording's own balance of allocations and frees would make, in whole slabs of the kernel.
    pub balance: Moved,
    /// Which of its allocations and frees have events.
    pub tracing: Tracing,
    /// Bytes of a slab of the kernel and of an object.
    pub bytes: (u64, u64),
    /// Why the two differ, as far as the recording tells.
    pub cause: String,
}

/// By how much a cache changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Slabs. A slab of the kernel and a slab of an engine may differ in size.
    pub slabs: i64,
    /// Bytes of those.
    pub slab_bytes: i64,
    /// Active objects.
    pub active: i64,
}

/// Skill in bytes of slabs and of active objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skill {
    /// Over slab bytes.
    pub slabs: f64,
    /// Over active objects' bytes.
    pub objects: f64,
}

/// Which of a cache's allocations and frees have events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    /// All that the recording tells of: each free has its allocation.
    #[default]
    All,
    /// Some: later events imply others.
    Some,
    /// None, though the dumps have the cache.
    None,
}

impl Tracing {
    /// Of a cache with this traffic; `None` for a cache without an event.
    pub(super) fn of(traffic: Option<&Traffic>) -> Tracing {
        match traffic.filter(|traffic| traffic.allocs + traffic.frees > 0) {
            Some(traffic) if traffic.bulk + traffic.implied > 0 => Tracing::Some,
            Some(_) => Tracing::All,
            None => Tracing::None,
        }
    }

    /// The word for it in documents.
    pub fn word(self) -> &'static str {
        match self {
            Tracing::All => "all",
            Tracing::Some => "some",
            Tracing::None => "none",
        }
    }
}

impl Moved {
    /// How a cache of the replay changed; of pages that caches share, what its objects take.
    pub(super) fn of(cache: &CacheOutcome, page_size: u64) -> Moved {
        let bytes = |usage: &Usage| Split::of(usage, &cache.geometry, page_size).slabs as i64;
        Moved {
            slabs: cache.end.slabs as i64 - cache.start.slabs as i64,
            slab_bytes: bytes(&cache.end) - bytes(&cache.start),
            active: cache.end.active_objects() as i64 - cache.start.active_objects() as i64,
        }
    }

    /// What the balance of the cache's allocations and frees fills, in whole slabs of the kernel.
    pub(super) fn balance(cache: Option<&CacheOutcome>, row: &SlabinfoRow, slab_bytes: u64) -> Moved {
        let net = cache.map_or(0, |cache| cache.traffic.allocs as i64 - cache.traffic.frees as i64);
        let objects = row.objperslab.max(1) as i64;
        let slabs = net.signum() * ((2 * net.abs() + objects) / (2 * objects));
        Moved { slabs, slab_bytes: slabs * slab_bytes as i64, active: net }
    }
}

impl Change {
    /// Bytes of slabs by which the prediction is wrong.
    pub fn error_bytes(&self) -> u64 {
        self.predicted.slab_bytes.abs_diff(self.real.slab_bytes)
    }

    /// By how many bytes the memory of active objects changed, really and predicted.
    pub fn active_bytes(&self) -> (i64, i64) {
        let size = self.bytes.1 as i64;
        (self.real.active * size, self.predicted.active * size)
    }
}

/// The skill over caches.
pub(super) fn skill(changes: &[Change]) -> Skill {
    skill_of(changes, |change| change.predicted)
}

/// The skill of the recording's own balance in whole slabs.
pub(super) fn null_skill(changes: &[Change]) -> Skill {
    skill_of(changes, |change| change.balance)
}

fn skill_of(changes: &[Change], model: fn(&Change) -> Moved) -> Skill {
    let ratio = |of: fn(&Change, Moved) -> i64| {
        let (mut wrong, mut all) = (0.0, 0.0);
        for change in changes {
            let real = of(change, change.real);
            wrong += of(change, model(change)).abs_diff(real) as f64;
            all += real.unsigned_abs() as f64;
        }
        if all == 0.0 { if wrong == 0.0 { 1.0 } else { f64::NEG_INFINITY } } else { 1.0 - wrong / all }
    };
    Skill {
        slabs: ratio(|_, moved| moved.slab_bytes),
        objects: ratio(|change, moved| moved.active * change.bytes.1 as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_part_of_a_cache_are_some() {
        let of = |allocs, bulk| Tracing::of(Some(&Traffic { allocs, bulk, ..Traffic::default() }));
        assert_eq!([of(0, 0), of(9, 0), of(9, 1)], [Tracing::None, Tracing::All, Tracing::Some]);
        assert_eq!(Tracing::of(None), Tracing::None);
    }
}
