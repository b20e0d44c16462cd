//! What a cache stands on: pages, what it shares with other caches of its engine, memory for metadata.

use slablab_pages::Pages;
use slablab_platform::{Gfp, Platform};

/// The resources of a cache: pages, the state shared by its engine's caches, and memory for its own metadata.
pub struct Backing<'a, P: Platform, C = ()> {
    /// Where slabs come from.
    pub pages: &'a Pages<P::Ground>,
    /// What the caches of one engine share.
    pub common: &'a C,
    /// Where sheaves and the like come from; without it a cache that wants them does without.
    pub metadata: Option<&'a dyn Metadata<P>>,
    /// The number of the call site that asks, for a wrapper that notes users.
    pub site: u64,
}

impl<P: Platform, C> Clone for Backing<'_, P, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform, C> Copy for Backing<'_, P, C> {}

/// Memory for metadata: objects of a named cache, usually a kmalloc class, that count there. Never called on
/// a fast path.
pub trait Metadata<P: Platform> {
    /// An object of at least `bytes`.
    fn alloc(&self, bytes: u32, gfp: Gfp) -> Option<P::Ptr>;
    /// Gives it back.
    fn free(&self, object: P::Ptr);
}

impl<'a, P: Platform> Backing<'a, P> {
    /// Pages only, for an engine whose caches share nothing.
    pub fn pages(pages: &'a Pages<P::Ground>) -> Self {
        Backing::new(pages, &())
    }
}

impl<'a, P: Platform, C> Backing<'a, P, C> {
    /// Pages, and what the caches of one engine share.
    pub fn new(pages: &'a Pages<P::Ground>, common: &'a C) -> Self {
        Backing { pages, common, metadata: None, site: 0 }
    }
}

/// What all caches of one engine share.
pub trait Common: Default {
    /// Whether objects of several caches lie in one page.
    const SHARES_PAGES: bool = false;
    /// Memory that is no cache's own.
    fn held(&self) -> Held {
        Held::default()
    }
    /// Whether what is shared is as it must be: for tests, as it walks everything.
    fn is_sound(&self) -> bool {
        true
    }
}

/// Nothing is shared: every slab is a cache's own.
impl Common for () {}

/// Memory that caches share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Page frames.
    pub frames: u64,
    /// Bytes in them that are no object's.
    pub free_bytes: u64,
}
