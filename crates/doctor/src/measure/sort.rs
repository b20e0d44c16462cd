//! What the list of caches is sorted by: slabtop's letters, and the doctor's own.

use super::line::Line;
use std::cmp::Ordering;

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// `a`: active objects.
    Active,
    /// `b`: objects per slab.
    ObjectsPerSlab,
    /// `c`: bytes of slabs.
    CacheSize,
    /// `l`: slabs.
    Slabs,
    /// `n`: name, ascending.
    Name,
    /// `o`: objects.
    Objects,
    /// `p`: pages per slab.
    Pages,
    /// `s`: object size with padding.
    ObjectSize,
    /// `u`: active objects in percent of all, ascending: badly used caches first.
    Use,
    /// `L`: loss.
    Loss,
    /// `r`: growth, with an earlier snapshot.
    Growth,
}

impl SortKey {
    /// Every key with its letter and its words.
    pub const ALL: [(SortKey, char, &str); 11] = [
        (SortKey::Active, 'a', "active objects"),
        (SortKey::ObjectsPerSlab, 'b', "objects per slab"),
        (SortKey::CacheSize, 'c', "cache size"),
        (SortKey::Slabs, 'l', "slabs"),
        (SortKey::Name, 'n', "name"),
        (SortKey::Objects, 'o', "objects"),
        (SortKey::Pages, 'p', "pages per slab"),
        (SortKey::ObjectSize, 's', "object size"),
        (SortKey::Use, 'u', "use, worst first"),
        (SortKey::Loss, 'L', "loss"),
        (SortKey::Growth, 'r', "growth"),
    ];

    /// The key of a letter.
    pub fn of(letter: char) -> Option<SortKey> {
        SortKey::ALL.iter().find(|(_, known, _)| *known == letter).map(|(key, _, _)| *key)
    }

    /// Its words.
    pub fn words(self) -> &'static str {
        SortKey::ALL.iter().find(|(key, _, _)| *key == self).map_or("", |(_, _, words)| words)
    }

    /// The order of two caches. Ties are ordered by name and ordinal, so that the order is total.
    pub fn compare(self, a: &Line, b: &Line) -> Ordering {
        let by_key = match self {
            SortKey::Active => b.cache.active_objects.cmp(&a.cache.active_objects),
            SortKey::ObjectsPerSlab => b.cache.objects_per_slab.cmp(&a.cache.objects_per_slab),
            SortKey::CacheSize => b.split.bytes.cmp(&a.split.bytes),
            SortKey::Slabs => b.cache.slabs.cmp(&a.cache.slabs),
            SortKey::Name => Ordering::Equal,
            SortKey::Objects => b.cache.total_objects.cmp(&a.cache.total_objects),
            SortKey::Pages => b.cache.order.cmp(&a.cache.order),
            SortKey::ObjectSize => b.cache.size.cmp(&a.cache.size),
            SortKey::Use => {
                // Cross-multiplication avoids rounding. Caches without objects are last.
                let of = |line: &Line, other: &Line| {
                    u128::from(line.cache.active_objects) * u128::from(other.cache.total_objects)
                };
                let empty = |line: &Line| line.cache.total_objects == 0;
                empty(a).cmp(&empty(b)).then(of(a, b).cmp(&of(b, a)))
            }
            SortKey::Loss => b.split.loss().cmp(&a.split.loss()),
            SortKey::Growth => {
                let growth = |line: &Line| line.growth.as_ref().map_or(i64::MIN, |growth| growth.bytes);
                growth(b).cmp(&growth(a)).then(b.split.bytes.cmp(&a.split.bytes))
            }
        };
        by_key.then_with(|| a.cache.name.cmp(&b.cache.name)).then(a.cache.ordinal.cmp(&b.cache.ordinal))
    }
}
