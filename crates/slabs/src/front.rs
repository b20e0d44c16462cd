//! The fast rungs that a malloc builds in front of an engine.
//!
//! Engines do not call these functions, and worlds need none of them: they are parts of [`Engine::alloc`] and
//! [`Engine::free`] that a library calls first. One call less makes its fast path a tenth shorter. An engine
//! without such parts takes the defaults, which refuse.

use crate::engine::Engine;
use slablab_platform::{Pfn, Platform};

/// Parts of [`Engine::alloc`] and [`Engine::free`] that touch only the current CPU's slot.
pub trait Front<P: Platform>: Engine<P> {
    /// Slow rung: an object from the current CPU's slot, which [`Engine::alloc`] tries first too. Never
    /// zeroed. `None` means "call [`Engine::alloc`]", not "out of memory".
    #[inline]
    fn alloc_slow_slot(&self) -> Option<P::Ptr> {
        None
    }
    /// Fast rung: the cheap first half of [`Front::alloc_slow_slot`]. `None` means "call
    /// [`Front::alloc_slow_slot`]".
    #[inline(always)]
    fn alloc_fast(&self) -> Option<P::Ptr> {
        self.alloc_slow_slot()
    }
    /// Fast rung: the cheap first half of [`Front::free_slow_slot`], for an object in memory of the current
    /// CPU's own node. `false` means "call [`Front::free_slow_slot`]".
    #[inline(always)]
    fn free_fast(&self, object: P::Ptr, slab: Pfn) -> bool {
        self.free_slow_slot(object, slab)
    }
    /// Whether an object starts `offset` bytes into this cache's slab at `slab`. `true` is exact. `false` may
    /// also mean that the engine cannot answer fast: then [`Engine::free`] decides.
    #[inline]
    fn starts_at(&self, _slab: Pfn, _offset: u32) -> bool {
        false
    }
    /// Slow rung: frees an object to the current CPU's slot. The caller knows that the object is in this
    /// cache's slab at `slab`, and that the slab is not of the reserves. `false` means "call
    /// [`Engine::free`]": the slot does not take the object, and nothing changed.
    #[inline]
    fn free_slow_slot(&self, _object: P::Ptr, _slab: Pfn) -> bool {
        false
    }
    /// Whether [`Front::free_fast`] takes objects of any slab. It is so for as long as the cache is there.
    fn takes_from_anywhere(&self) -> bool {
        false
    }
}
