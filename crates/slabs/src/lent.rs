//! Sheaves lent to a caller that will need some objects and must not fail then (docs/theory/sheaves.md 4.2).
//!
//! The maple tree asks for as many nodes as a change may need, changes the tree under a lock, and hands the
//! rest back. An engine without sheaves of its own lends one made for the call, which is what SLUB does for
//! more objects than its sheaves hold: an array of objects, itself an object of a kmalloc cache.

use crate::backing::Metadata;
use crate::cache::CacheId;
use crate::damage::hole;
use slablab_platform::{Gfp, HotArray, Platform};

/// A sheaf that a caller holds: its objects are allocated already. Hand it back with
/// [`Engine::return_sheaf`](crate::Engine::return_sheaf).
#[must_use = "objects in a sheaf that is not handed back are lost"]
pub struct Sheaf<P: Platform> {
    pub(crate) storage: P::Ptr,
    pub(crate) size: u32,
    pub(crate) capacity: u32,
}

/// An object's place in a sheaf's storage.
pub(crate) const fn word(index: u32) -> u32 {
    HotArray::<()>::HEADER + index
}

impl<P: Platform> Sheaf<P> {
    /// An empty sheaf for `capacity` objects. `None` without memory.
    pub(crate) fn new(metadata: &dyn Metadata<P>, capacity: u32, gfp: Gfp) -> Option<Self> {
        let words = word(capacity);
        let gfp = (gfp | Gfp::NOWARN | Gfp::NOMEMALLOC | Gfp::NO_OBJ_EXT)
            & !(Gfp::ZERO | Gfp::MEMALLOC | Gfp::ACCOUNT | Gfp::THISNODE);
        let storage = metadata.alloc(words * 8, gfp)?;
        P::storage_attach(storage, words);
        Some(Sheaf { storage, size: 0, capacity })
    }

    /// Objects that are left in it.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Objects it can hold.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(crate) fn push(&mut self, object: P::Ptr) {
        P::storage_store(self.storage, word(self.size), Some(object));
        self.size += 1;
    }

    /// Takes the newest object, for the cache that the sheaf was lent by.
    pub(crate) fn pop(&mut self, cache: CacheId) -> Option<P::Ptr> {
        self.size = self.size.checked_sub(1)?;
        match P::storage_load(self.storage, word(self.size)) {
            None => hole::<P>(cache, "a lent sheaf", self.storage, self.size),
            object => object,
        }
    }

    /// Gives an empty sheaf's memory back.
    pub(crate) fn discard(self, metadata: &dyn Metadata<P>) {
        debug_assert_eq!(self.size, 0, "objects are in a sheaf that is given back");
        P::storage_detach(self.storage);
        metadata.free(self.storage);
    }
}
