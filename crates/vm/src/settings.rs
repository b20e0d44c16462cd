//! What an administrator sets: sysctls of page replacement, by the names of /proc/sys/vm where there is one.

/// What the administrator set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How readily anonymous pages are reclaimed: 0 to 200.
    pub swappiness: u32,
    /// Pages of a read from swap, as a power of two.
    pub page_cluster: u32,
    /// How readily dentries and inodes are reclaimed, in percent.
    pub vfs_cache_pressure: u32,
    /// Dirty pages at which writers are held back; `None`: as the release does.
    pub dirty_limit: Option<DirtyLimit>,
    /// Dirty pages above which a flusher writes; `None`: as the release does.
    pub dirty_background: Option<DirtyLimit>,
    /// Nanoseconds after which a flusher writes a file's dirty pages.
    pub dirty_expire: u64,
    /// Milliseconds for which a generation is kept; `None`: as the policy says.
    pub min_ttl_ms: Option<u32>,
    /// Which parts of generations are on, as bits of `lru_gen/enabled`: 1 generations, 2 aging walks page
    /// tables, 4 it skips tables whose own accessed bit is clear; `None`: as the policy says.
    pub lru_gen: Option<u8>,
    /// Most pages that a file is read ahead, of files that are opened from then on; `None`: as the release
    /// does.
    pub read_ahead_pages: Option<u32>,
    /// Pages that programs may have together, those of files and page tables included: `memory.max` of the
    /// group that all of them are in.
    pub group_pages: Option<u64>,
    /// Which pages of its own node an allocation reclaims before it goes to another node, as bits: 1 clean
    /// ones that are not mapped, 2 dirty ones too, 4 mapped ones too; 0: none. `None`: as the kernel sets it
    /// at boot.
    pub zone_reclaim_mode: Option<u8>,
    /// Percent of a node's pages: with fewer pages of files that could go, none is reclaimed for that.
    pub min_unmapped_ratio: u8,
    /// Percent of a node's pages: with fewer pages of reclaimable slabs, none of these is.
    pub min_slab_ratio: u8,
    /// The memory stands for one that is so many times as large, in the same time: a pass of reclaim by
    /// shares of the lists looks at as many pages as there ([`crate::split`]).
    pub part: u32,
}

/// A limit of dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyLimit {
    /// Percent of the pages that could be dirty.
    Percent(u32),
    /// Pages.
    Pages(u64),
}

impl DirtyLimit {
    /// Pages, where `base` could be dirty.
    pub(crate) fn of(self, base: u64) -> u64 {
        self.hundredths(base) / 100
    }

    /// Hundredths of pages, where `base` could be dirty.
    pub(crate) fn hundredths(self, base: u64) -> u64 {
        match self {
            DirtyLimit::Percent(percent) => base * u64::from(percent),
            DirtyLimit::Pages(pages) => pages * 100,
        }
    }
}

impl Settings {
    /// What a kernel since 2.6 sets at boot.
    pub const USUAL: Settings = Settings {
        swappiness: 60,
        page_cluster: 3,
        vfs_cache_pressure: 100,
        dirty_limit: None,
        dirty_background: None,
        dirty_expire: 30_000_000_000,
        min_ttl_ms: None,
        lru_gen: None,
        read_ahead_pages: None,
        group_pages: None,
        zone_reclaim_mode: None,
        min_unmapped_ratio: 1,
        min_slab_ratio: 5,
        part: 1,
    };
}

impl Default for Settings {
    fn default() -> Self {
        Settings::USUAL
    }
}
