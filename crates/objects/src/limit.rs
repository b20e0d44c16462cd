//! Limits of a cache. A cache with a limit counts its objects: an atomic operation for each. A cache without
//! one counts nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many objects of a cache may be live at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    #[default]
    None,
    /// This many objects.
    Objects(u64),
    /// As many objects as fit in this many bytes, each with the padding that its cache puts around it.
    Bytes(u64),
}

/// Objects handed out, if there is a limit.
#[derive(Debug)]
pub(crate) struct Counter {
    most: Option<u64>,
    live: AtomicU64,
}

impl Counter {
    /// `per_object`: bytes from one object to the next.
    pub(crate) fn new(limit: Limit, per_object: u32) -> Counter {
        let most = match limit {
            Limit::None => None,
            Limit::Objects(objects) => Some(objects),
            Limit::Bytes(bytes) => Some(bytes / per_object as u64),
        };
        Counter { most, live: AtomicU64::new(0) }
    }

    /// Most live objects at a time.
    pub(crate) fn most(&self) -> Option<u64> {
        self.most
    }

    /// Live objects; `None` without a limit.
    pub(crate) fn live(&self) -> Option<u64> {
        self.most.map(|_| self.live.load(Relaxed))
    }

    /// Counts `count` objects more. `false`, and counts none, if that is above the limit.
    pub(crate) fn take(&self, count: u64) -> bool {
        let Some(most) = self.most else { return true };
        let more = |live: u64| live.checked_add(count).filter(|live| *live <= most);
        self.live.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Counts `count` objects fewer.
    pub(crate) fn give(&self, count: u64) {
        if self.most.is_some() {
            self.live.fetch_sub(count, Relaxed);
        }
    }
}
