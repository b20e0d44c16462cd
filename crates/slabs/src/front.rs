//! The fast rungs that a malloc builds in front of an engine.
//!
//! Nothing in an engine calls these, and a world needs none of them: they are parts of [`Engine::alloc`] and
//! [`Engine::free`] that a library calls first, because a call less is a tenth of its fast path. An engine without such parts
//! takes the defaults, which say "no".

use crate::engine::Engine;
use slablab_platform::{Pfn, Platform};

/// Parts of [`Engine::alloc`] and [`Engine::free`] that touch only the current CPU's slot.
pub trait Front<P: Platform>: Engine<P> {
    /// An object from the current CPU's slot, if it has one: what [`Engine::alloc`] tries first. Never
    /// zeroed.
    #[inline]
    fn alloc_hot(&self) -> Option<P::Ptr> {
        None
    }
    /// The first half of [`Front::alloc_hot`], where that has two. `None`: call [`Front::alloc_hot`].
    #[inline(always)]
    fn alloc_first(&self) -> Option<P::Ptr> {
        self.alloc_hot()
    }
    /// The first half of [`Front::free_hot`], for an object in memory of the current CPU's own node. False:
    /// call [`Front::free_hot`].
    #[inline(always)]
    fn free_first(&self, object: P::Ptr, slab: Pfn) -> bool {
        self.free_hot(object, slab)
    }
    /// Whether an object starts `offset` bytes into this cache's slab at `slab`. True is exact. False may
    /// also mean that this cannot be told fast: [`Engine::free`] decides then.
    #[inline]
    fn starts_at(&self, _slab: Pfn, _offset: u32) -> bool {
        false
    }
    /// Frees an object to the current CPU's slot. The caller knows that the object is of this cache's slab at
    /// `slab`, and that the slab is not of the reserves. False: the slot does not take the object, nothing
    /// happened, call [`Engine::free`].
    #[inline]
    fn free_hot(&self, _object: P::Ptr, _slab: Pfn) -> bool {
        false
    }
    /// As [`Front::free_hot`], for a caller that has not looked for the slab: `home` finds it, and is called
    /// only if the engine needs it.
    #[inline(always)]
    fn free_own(&self, object: P::Ptr, home: impl FnOnce() -> Option<Pfn>) -> bool {
        home().is_some_and(|slab| self.free_hot(object, slab))
    }
}
