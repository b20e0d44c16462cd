//! The resources that a cache uses: pages, the state shared by its engine's caches, memory for metadata.

use slablab_pages::Pages;
use slablab_platform::{Gfp, Platform};

/// The resources of a cache: pages, the state shared by its engine's caches, and memory for its own metadata.
pub struct Backing<'a, P: Platform, C = ()> {
    /// The page allocator that slabs come from.
    pub pages: &'a Pages<P::Ground>,
    /// The state that all caches of one engine share.
    pub common: &'a C,
    /// Memory for sheaves, arrays and off-slab free lists. `None`: the cache works without them.
    pub metadata: Option<&'a dyn Metadata<P>>,
    /// The number of the call site, for a wrapper that records users.
    pub site: u64,
}

impl<P: Platform, C> Clone for Backing<'_, P, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform, C> Copy for Backing<'_, P, C> {}

/// Memory for metadata: objects of a named cache, usually a kmalloc class, in whose statistics they count.
/// Never called on a fast path.
pub trait Metadata<P: Platform> {
    /// Allocates at least `bytes` bytes.
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<P::Ptr>;
    /// Frees an object that [`Metadata::alloc`] returned.
    fn free(&self, object: P::Ptr);
}

impl<'a, P: Platform> Backing<'a, P> {
    /// Pages only, for an engine whose caches share nothing.
    pub fn pages(pages: &'a Pages<P::Ground>) -> Self {
        Backing::new(pages, &())
    }
}

impl<'a, P: Platform, C> Backing<'a, P, C> {
    /// The page allocator and the state that the caches of one engine share; no metadata memory, call site 0.
    pub fn new(pages: &'a Pages<P::Ground>, common: &'a C) -> Self {
        Backing { pages, common, metadata: None, site: 0 }
    }
}

/// The state that all caches of one engine share.
pub trait Common: Default {
    /// Whether objects of several caches lie in one page.
    const SHARES_PAGES: bool = false;
    /// The memory that belongs to no single cache.
    fn held(&self) -> Held {
        Held::default()
    }
    /// Whether the invariants of the shared state hold. For tests: the check walks all of it.
    fn is_sound(&self) -> bool {
        true
    }
}

/// For engines whose caches share no state: every slab belongs to one cache.
impl Common for () {}

/// Memory that caches share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Page frames.
    pub frames: u64,
    /// Bytes in those frames that belong to no object.
    pub free_bytes: u64,
}
