//! Everything that is said of a fleet, by both the text and the document.

use crate::fleet::{CacheSum, Climbing, Fleet, Group, Outlier, caches, climbing, groups, outliers, saved};

/// The sums.
pub(super) struct Sums {
    pub(super) all: Group,
    pub(super) groups: Vec<Group>,
    pub(super) caches: Vec<CacheSum>,
    pub(super) outliers: Vec<Outlier>,
    pub(super) climbing: Vec<Climbing>,
}

impl Sums {
    pub(super) fn of(fleet: &Fleet) -> Sums {
        let caches = caches(fleet);
        Sums {
            all: saved(fleet),
            groups: groups(fleet),
            outliers: outliers(fleet, &caches),
            climbing: climbing(fleet),
            caches,
        }
    }
}
