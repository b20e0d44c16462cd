//! The words of the conversation with a policy of replacement.

use crate::ids::Frame;

/// How a page came into its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enter {
    /// A fault on anonymous memory that never had contents, or a copy of a shared page.
    Anon,
    /// A read or write of a page of a file or device.
    File,
    /// Read-ahead of a file.
    ReadAhead,
    /// A fault on a page of a file.
    FileFault,
    /// A new page of tmpfs.
    Tmpfs,
    /// A read from swap that a fault or a read of tmpfs waits for.
    SwapIn,
    /// A read from swap of its neighbours.
    SwapAhead,
}

/// What reclaim does with a page that it isolated, by who accessed it (`enum folio_references`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Evict it.
    Reclaim,
    /// Evict it if it is clean; if it is dirty, keep it for the writers of dirty pages.
    ReclaimClean,
    /// Put it back where the policy puts pages.
    Keep,
    /// Put it back as an active page.
    Activate,
}

/// What reclaim did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Pages freed.
    pub pages: u32,
    /// Trying again makes sense, although no page may be free yet.
    pub progress: bool,
    /// A page that is handed to the asking task, and to nobody else.
    pub page: Option<Frame>,
}

/// What reclaim near an allocation knows of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Near {
    /// Pages of files that page tables map.
    pub mapped: u64,
    /// Pages of files and devices that are dirty.
    pub dirty: u64,
    /// A task reclaims there (`ZONE_RECLAIM_LOCKED`).
    pub is_locked: bool,
    /// Until when it counts as full, in nanoseconds.
    pub full_until: u64,
}

/// What a release reclaims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The zone, its slabs on their own afterwards; dirty pages count as pages that could go; a zone without
    /// enough is full for a second (2.6.29).
    Zone,
    /// All zones of the node, with slabs; failures are counted (6.x).
    Node,
}

/// One pass of a policy, at a priority.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The zone; under [`Rule::Node`] its node is meant.
    pub zone: usize,
    /// From 4 to 0.
    pub priority: u32,
    /// Pages may be written.
    pub write: bool,
    /// Mapped pages may go.
    pub unmap: bool,
    /// Pages scanned by the passes so far.
    pub scanned: u64,
    /// Pages freed by them.
    pub freed: u64,
}

/// Pages of each kind, for /proc/meminfo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Anonymous and tmpfs pages that are not active.
    pub inactive_anon: u64,
    /// Those that are.
    pub active_anon: u64,
    /// Pages of files that are not active.
    pub inactive_file: u64,
    /// Those that are.
    pub active_file: u64,
}

impl std::ops::Add for Sizes {
    type Output = Sizes;

    fn add(self, other: Sizes) -> Sizes {
        Sizes {
            inactive_anon: self.inactive_anon + other.inactive_anon,
            active_anon: self.active_anon + other.active_anon,
            inactive_file: self.inactive_file + other.inactive_file,
            active_file: self.active_file + other.active_file,
        }
    }
}
