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
