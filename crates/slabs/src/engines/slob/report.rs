//! Usage of a cache. The heap's pages do not know caches, so each cache counts its own objects.

use super::Slob;
use crate::engine::Usage;
use crate::slab::Slab;
use slablab_platform::{PerNode, Platform, Word};

/// The objects of a cache on one node.
pub(super) struct Tally<P: Platform> {
    /// Objects in the heap.
    shared_objects: P::Word,
    /// Bytes of those objects, and of objects that wait for a grace period.
    shared_bytes: P::Word,
    /// Objects with whole pages of their own.
    large_objects: P::Word,
    /// Frames of those pages.
    frames: P::Word,
}

impl<P: Platform> Default for Tally<P> {
    fn default() -> Self {
        let word = || P::Word::new(0);
        Tally { shared_objects: word(), shared_bytes: word(), large_objects: word(), frames: word() }
    }
}

impl<P: Platform> Tally<P> {
    /// Adds `objects` and `bytes` of the heap; negative numbers subtract.
    pub(super) fn add_shared(&self, objects: i64, bytes: i64) {
        Self::add(&self.shared_objects, objects);
        Self::add(&self.shared_bytes, bytes);
    }

    /// Adds objects with pages of their own; negative numbers subtract.
    pub(super) fn add_large(&self, objects: i64) {
        Self::add(&self.large_objects, objects);
    }

    /// Adds frames of such pages; negative numbers subtract.
    pub(super) fn add_frames(&self, frames: i64) {
        Self::add(&self.frames, frames);
    }

    fn add(word: &P::Word, n: i64) {
        if n == 0 {
            return;
        }
        let mut seen = word.load();
        while let Err(found) = word.compare_exchange(seen, seen.wrapping_add_signed(n)) {
            seen = found;
        }
    }

    /// The counts as a [`Usage`].
    pub(super) fn usage(&self) -> Usage {
        let large = self.large_objects.load();
        Usage {
            slabs: large,
            frames: self.frames.load(),
            total_objects: large,
            shared_objects: self.shared_objects.load(),
            shared_bytes: self.shared_bytes.load(),
            ..Usage::default()
        }
    }
}

impl<P: Platform> Slob<P> {
    /// The counts of the node that an object is on.
    pub(super) fn tally(&self, object: P::Ptr) -> &Tally<P> {
        let (pfn, _) = P::locate(object);
        self.nodes.get(Slab::<P>::at(pfn).node())
    }
}
