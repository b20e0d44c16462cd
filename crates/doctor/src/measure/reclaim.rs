//! Who frees the objects of a cache: the kernel by itself, or only the program that holds them.
//!
//! The kernel counts the slabs of a cache as `SReclaimable` if its creator asked for that. It does not follow
//! that a shrinker frees the objects: an open socket's inode is counted there, and is on no list of unused
//! inodes. The data about caches (docs/caches.md) tells the two apart by the ways that free objects.

use crate::state::Cache;
use crate::what::Entry;

/// Who frees the objects of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reclaim {
    /// A shrinker, when the kernel needs memory: unused directory entries and inodes.
    Shrinker,
    /// The kernel, with the pages of the page cache that the objects are for: buffer heads.
    PageCache,
    /// Counted as `SUnreclaim`, but freed with the inodes that a shrinker frees: what hangs on an inode.
    WithInodes,
    /// Counted as `SReclaimable`, but only the holder frees the objects: inodes of open sockets.
    Holder,
    /// Counted as `SUnreclaim`: the code that allocated the objects frees them.
    No,
    /// The input does not tell.
    Unknown,
}

impl Reclaim {
    /// Every value with its key for programs and its mark in tables.
    const ALL: [(Reclaim, &'static str, &'static str); 6] = [
        (Reclaim::Shrinker, "shrinker", "yes"),
        (Reclaim::PageCache, "page_cache", "pages"),
        (Reclaim::WithInodes, "with_inodes", "inode"),
        (Reclaim::Holder, "holder", "held"),
        (Reclaim::No, "no", "no"),
        (Reclaim::Unknown, "unknown", "?"),
    ];

    /// Who frees the objects of `cache`, whose purpose is `what`.
    pub fn of(cache: &Cache, what: Option<&Entry>) -> Reclaim {
        let said = cache.attrs.as_ref().and_then(|attrs| attrs.reclaim_account);
        let shrinks = what.is_some_and(Entry::has_shrinker);
        match said.or(what.and_then(|entry| entry.reclaimable)) {
            Some(false) if shrinks => Reclaim::WithInodes,
            Some(false) => Reclaim::No,
            None if what.is_some_and(|entry| entry.cannot_shrink.is_some()) => Reclaim::No,
            None if !shrinks => Reclaim::Unknown,
            _ if shrinks => Reclaim::Shrinker,
            _ if what.is_some_and(Entry::goes_with_pages) => Reclaim::PageCache,
            // The bound of a saving stays one: an unknown cache that is counted as reclaimable may shrink.
            _ if what.is_none() => Reclaim::Shrinker,
            _ => Reclaim::Holder,
        }
    }

    /// Its key for programs.
    pub fn key(self) -> &'static str {
        Reclaim::ALL.iter().find(|(of, ..)| *of == self).map_or("", |(_, key, _)| key)
    }

    /// Its mark in the tables of caches.
    pub fn mark(self) -> &'static str {
        Reclaim::ALL.iter().find(|(of, ..)| *of == self).map_or("", |(.., mark)| mark)
    }

    /// Whether the kernel frees unused objects by itself.
    pub fn by_kernel(self) -> bool {
        matches!(self, Reclaim::Shrinker | Reclaim::PageCache | Reclaim::WithInodes)
    }
}
