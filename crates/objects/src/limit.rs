//! Limits of a cache. One that has a limit counts its objects, an atomic operation each; one without counts nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How much a cache may hand out at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    #[default]
    None,
    /// So many objects.
    Objects(u64),
    /// As many objects as fit in so many bytes, each with what its cache puts around it.
    Bytes(u64),
}

/// Objects handed out, if there is a limit.
#[derive(Debug)]
pub(crate) struct Counted {
    most: Option<u64>,
    live: AtomicU64,
}

impl Counted {
    /// `per_object`: bytes from one object to the next.
    pub(crate) fn new(limit: Limit, per_object: u32) -> Counted {
        let most = match limit {
            Limit::None => None,
            Limit::Objects(objects) => Some(objects),
            Limit::Bytes(bytes) => Some(bytes / per_object as u64),
        };
        Counted { most, live: AtomicU64::new(0) }
    }

    /// The most objects at a time.
    pub(crate) fn most(&self) -> Option<u64> {
        self.most
    }

    /// Objects handed out; `None` without a limit.
    pub(crate) fn live(&self) -> Option<u64> {
        self.most.map(|_| self.live.load(Relaxed))
    }

    /// Counts so many more, unless they are too many.
    pub(crate) fn take(&self, count: u64) -> bool {
        let Some(most) = self.most else { return true };
        let more = |live: u64| live.checked_add(count).filter(|live| *live <= most);
        self.live.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Counts so many fewer.
    pub(crate) fn give(&self, count: u64) {
        if self.most.is_some() {
            self.live.fetch_sub(count, Relaxed);
        }
    }
}
