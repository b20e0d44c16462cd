//! What a cache's users hold. The heap's pages know no caches, so that each cache counts for itself.

use super::Slob;
use crate::engine::Usage;
use crate::slab::Slab;
use slablab_platform::{PerNode, Platform, Word};

/// A cache's objects on one node.
pub(super) struct Tally<P: Platform> {
    /// Objects in the heap.
    shared_objects: P::Word,
    /// Bytes they and those that wait for a grace period take there.
    shared_bytes: P::Word,
    /// Objects with pages of their own.
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
    /// Objects and bytes of the heap came or went.
    pub(super) fn add_shared(&self, objects: i64, bytes: i64) {
        Self::add(&self.shared_objects, objects);
        Self::add(&self.shared_bytes, bytes);
    }

    /// Objects with pages of their own came or went.
    pub(super) fn add_large(&self, objects: i64) {
        Self::add(&self.large_objects, objects);
    }

    /// Frames of such pages came or went.
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

    /// These numbers as a usage.
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
    /// The numbers of the node that an object is on.
    pub(super) fn tally(&self, object: P::Ptr) -> &Tally<P> {
        let (pfn, _) = P::locate(object);
        self.nodes.get(Slab::<P>::at(pfn).node())
    }
}
