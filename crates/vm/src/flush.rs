//! Dirty pages of files in the order in which they became dirty: 2.4's list of dirty buffers.
//!
//! ```text
//! dirtied   its place is the end of the list, with the time; one that is dirty already keeps its place
//! written   by a batch, by reclaim, by fsync, or its page is gone: it leaves the list; then it is locked
//! oldest    bdflush and writers take batches from the front; kupdate those whose time has come
//! ```
//!
//! Other kernels write file by file, so the list is kept from the first question for it on.

use crate::ids::{Frame, MappingId};
use std::collections::{BTreeMap, VecDeque};

/// A page of a file that is dirty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirtied {
    /// Its place in the list: a smaller one is older.
    pub place: u64,
    /// Its file.
    pub mapping: MappingId,
    /// Its place in the file.
    pub index: u32,
    /// When it became dirty, in nanoseconds.
    pub at: u64,
}

/// The list of dirty buffers, and that of buffers under write.
#[derive(Debug, Default)]
pub struct Flush {
    is_on: bool,
    /// When a writer last made a page dirty.
    now: u64,
    next: u64,
    /// By place.
    order: BTreeMap<u64, (MappingId, u32, u64)>,
    /// By file and page.
    places: BTreeMap<(MappingId, u32), u64>,
    /// Frames in the order in which their writes began; some of those writes have ended.
    locked: VecDeque<Frame>,
}

impl Flush {
    /// Whether the list is kept.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Pages in it.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether no page is in it.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The list is kept from now on: `dirty` are the pages that are dirty already, the oldest first.
    pub(crate) fn start(&mut self, dirty: Vec<(MappingId, u32)>) {
        self.is_on = true;
        dirty.into_iter().for_each(|(mapping, index)| self.add(mapping, index));
    }

    /// A writer makes a page dirty now. A page that a mapping made dirty has the time of the last writer
    /// (assumed; the kernel gives it buffers when it is written).
    pub(crate) fn tick(&mut self, now: u64) {
        self.now = now;
    }

    /// A page became dirty.
    pub(crate) fn add(&mut self, mapping: MappingId, index: u32) {
        if !self.is_on {
            return;
        }
        let old = self.places.insert((mapping, index), self.next);
        assert!(old.is_none(), "page {index} of {mapping:?} is in the list");
        self.order.insert(self.next, (mapping, index, self.now));
        self.next += 1;
    }

    /// A page is clean.
    pub(crate) fn remove(&mut self, mapping: MappingId, index: u32) {
        if let Some(place) = self.places.remove(&(mapping, index)) {
            self.order.remove(&place);
        }
    }

    /// The write of a frame begins. `is_written`: whether that of another one has not ended.
    pub(crate) fn lock(&mut self, frame: Frame, is_written: impl Fn(Frame) -> bool) {
        if self.is_on {
            // Ended writes leave the front, so that the list does not grow.
            self.oldest_write(is_written);
            self.locked.push_back(frame);
        }
    }

    /// The frame whose write is the oldest of those that are under way.
    pub(crate) fn oldest_write(&mut self, is_written: impl Fn(Frame) -> bool) -> Option<Frame> {
        while let Some(frame) = self.locked.front() {
            if is_written(*frame) {
                return Some(*frame);
            }
            self.locked.pop_front();
        }
        None
    }

    /// The pages at `from` and behind it, the oldest first.
    pub fn from(&self, from: u64) -> impl Iterator<Item = Dirtied> {
        let pages = self.order.range(from..);
        pages.map(|(place, (mapping, index, at))| Dirtied {
            place: *place,
            mapping: *mapping,
            index: *index,
            at: *at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write that began later is waited for when those before it have ended, and only for one of the list.
    #[test]
    fn the_oldest_write_is_that_which_began_first() {
        let mut flush = Flush::default();
        flush.lock(Frame(1), |_| true);
        assert_eq!(flush.oldest_write(|_| true), None, "no list is kept");
        flush.start(Vec::new());
        [3, 1, 2].into_iter().for_each(|frame| flush.lock(Frame(frame), |_| true));
        assert_eq!(flush.oldest_write(|_| true), Some(Frame(3)));
        assert_eq!(flush.oldest_write(|frame| frame != Frame(3)), Some(Frame(1)));
        flush.lock(Frame(4), |frame| frame == Frame(2));
        assert_eq!(flush.locked, [Frame(2), Frame(4)]);
        assert_eq!(flush.oldest_write(|_| false), None);
    }
}
