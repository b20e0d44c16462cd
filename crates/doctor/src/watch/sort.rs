//! The sort keys of the list of caches: slabtop's keys, and growth.

use super::samples::{Track, Watch};
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
    /// Every key in the order of the help, with its letter and its words. The letters are slabtop's, except
    /// those for growth, which slabtop does not have.
    const TABLE: [(SortKey, char, &str); 12] = [
        (SortKey::Active, 'a', "active objects"),
        (SortKey::ObjectsPerSlab, 'b', "objects per slab"),
        (SortKey::CacheSize, 'c', "cache size"),
        (SortKey::Slabs, 'l', "slabs"),
        (SortKey::ActiveSlabs, 'v', "active slabs"),
        (SortKey::Name, 'n', "name"),
        (SortKey::Objects, 'o', "objects"),
        (SortKey::Pages, 'p', "pages per slab"),
        (SortKey::ObjectSize, 's', "object size"),
        (SortKey::Use, 'u', "use"),
        (SortKey::Growth, 'r', "growth"),
        (SortKey::GrowthSinceStart, 't', "growth since start"),
    ];

    /// Every key, in the order of the help.
    pub const ALL: [SortKey; 12] = {
        let (mut keys, mut at) = ([SortKey::Active; 12], 0);
        while at < keys.len() {
            keys[at] = SortKey::TABLE[at].0;
            at += 1;
        }
        keys
    };

    fn row(self) -> (SortKey, char, &'static str) {
        SortKey::TABLE.into_iter().find(|(key, _, _)| *key == self).expect("every key has a row")
    }

    /// The letter that chooses the key.
    pub fn letter(self) -> char {
        self.row().1
    }

    /// The key in words.
    pub fn title(self) -> &'static str {
        self.row().2
    }

    /// The key of a letter. Like in slabtop, upper and lower case are equal.
    pub fn of(letter: char) -> Option<SortKey> {
        SortKey::ALL.into_iter().find(|key| key.letter() == letter.to_ascii_lowercase())
    }

    /// Largest first, names ascending; equals by bytes, then by name.
    fn compare(self, watch: &Watch, a: &Track, b: &Track) -> Ordering {
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
                // A cache without objects has no use, and is last.
                let used = |track: &Track| track.row.use_percent().unwrap_or(-1.0);
                used(b).total_cmp(&used(a))
            }
            SortKey::Growth => watch.growth(b).cmp(&watch.growth(a)),
            SortKey::GrowthSinceStart => b.since_start().cmp(&a.since_start()),
        };
        order.then(b.row.bytes.cmp(&a.row.bytes)).then_with(|| by_name(a, b))
    }
}

impl Watch {
    /// Caches of the latest sample whose name has `filter` in it, in any case.
    pub fn list(&self, key: SortKey, inverted: bool, filter: &str) -> Vec<&Track> {
        let filter = filter.to_lowercase();
        let fits =
            |track: &&Track| track.is_present() && track.row.info.name.to_lowercase().contains(&filter);
        let mut list: Vec<&Track> = self.tracks().iter().filter(fits).collect();
        list.sort_by(|a, b| key.compare(self, a, b));
        if inverted {
            list.reverse();
        }
        list
    }
}

fn by_name(a: &Track, b: &Track) -> Ordering {
    (&a.row.info.name, a.row.info.ordinal).cmp(&(&b.row.info.name, b.row.info.ordinal))
}
