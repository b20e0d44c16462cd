//! What the list of caches is sorted by: slabtop's keys, and growth.

use super::{Track, Watch};
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
    /// `v`: active slabs.
    ActiveSlabs,
    /// `n`: name.
    Name,
    /// `o`: objects.
    Objects,
    /// `p`: pages per slab.
    Pages,
    /// `s`: object size.
    ObjectSize,
    /// `u`: active objects in percent of all.
    Use,
    /// `r`: growth over the window.
    Growth,
    /// `t`: growth since the start.
    GrowthSinceStart,
}

impl SortKey {
    /// Every key, in the order help lists them.
    pub const ALL: [SortKey; 12] = [
        SortKey::Active,
        SortKey::ObjectsPerSlab,
        SortKey::CacheSize,
        SortKey::Slabs,
        SortKey::ActiveSlabs,
        SortKey::Name,
        SortKey::Objects,
        SortKey::Pages,
        SortKey::ObjectSize,
        SortKey::Use,
        SortKey::Growth,
        SortKey::GrowthSinceStart,
    ];

    /// The letter that chooses it; slabtop's, except for growth, which slabtop does not have.
    pub fn letter(self) -> char {
        match self {
            SortKey::Active => 'a',
            SortKey::ObjectsPerSlab => 'b',
            SortKey::CacheSize => 'c',
            SortKey::Slabs => 'l',
            SortKey::ActiveSlabs => 'v',
            SortKey::Name => 'n',
            SortKey::Objects => 'o',
            SortKey::Pages => 'p',
            SortKey::ObjectSize => 's',
            SortKey::Use => 'u',
            SortKey::Growth => 'r',
            SortKey::GrowthSinceStart => 't',
        }
    }

    /// What it is, in words.
    pub fn title(self) -> &'static str {
        match self {
            SortKey::Active => "active objects",
            SortKey::ObjectsPerSlab => "objects per slab",
            SortKey::CacheSize => "cache size",
            SortKey::Slabs => "slabs",
            SortKey::ActiveSlabs => "active slabs",
            SortKey::Name => "name",
            SortKey::Objects => "objects",
            SortKey::Pages => "pages per slab",
            SortKey::ObjectSize => "object size",
            SortKey::Use => "use",
            SortKey::Growth => "growth",
            SortKey::GrowthSinceStart => "growth since start",
        }
    }

    /// The key of a letter, in either case as in slabtop.
    pub fn of(letter: char) -> Option<SortKey> {
        SortKey::ALL.into_iter().find(|key| key.letter() == letter.to_ascii_lowercase())
    }

    /// Largest first, names ascending; equals by bytes, then by name.
    pub(super) fn compare(self, watch: &Watch, a: &Track, b: &Track) -> Ordering {
        let largest = |value: fn(&Track) -> u64| value(b).cmp(&value(a));
        let order = match self {
            SortKey::Active => largest(|track| track.row.info.active_objs),
            SortKey::ObjectsPerSlab => largest(|track| track.row.info.objperslab),
            SortKey::CacheSize => Ordering::Equal,
            SortKey::Slabs => largest(|track| track.row.info.num_slabs),
            SortKey::ActiveSlabs => largest(|track| track.row.info.active_slabs),
            SortKey::Name => by_name(a, b),
            SortKey::Objects => largest(|track| track.row.info.num_objs),
            SortKey::Pages => largest(|track| track.row.info.pagesperslab),
            SortKey::ObjectSize => largest(|track| track.row.info.objsize),
            SortKey::Use => {
                // A cache without objects uses nothing, and goes last.
                let used = |track: &Track| track.row.use_percent().unwrap_or(-1.0);
                used(b).total_cmp(&used(a))
            }
            SortKey::Growth => watch.growth(b).cmp(&watch.growth(a)),
            SortKey::GrowthSinceStart => b.since_start().cmp(&a.since_start()),
        };
        order.then(b.row.bytes.cmp(&a.row.bytes)).then_with(|| by_name(a, b))
    }
}

fn by_name(a: &Track, b: &Track) -> Ordering {
    (&a.row.info.name, a.row.info.ordinal).cmp(&(&b.row.info.name, b.row.info.ordinal))
}
