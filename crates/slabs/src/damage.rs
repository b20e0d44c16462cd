//! Damage: an engine finds that its own lists or arrays cannot be right.
//!
//! The cause is a caller: it freed an object twice, or wrote to an object that it had freed. The call that
//! finds the damage is another one, so there is no error to return. The report is one line that names the
//! cache and the object or slab, and goes through [`slablab_platform::Hooks::broken`], which never unwinds
//! where the engine serves a malloc.

use crate::cache::CacheId;
use crate::report::Misuse;
use core::fmt;
use slablab_platform::Platform;

/// Reports damage of a cache, and does not return.
#[cold]
#[inline(never)]
pub(crate) fn damaged<P: Platform>(cache: CacheId, what: fmt::Arguments<'_>) -> ! {
    P::broken(Some(cache.0), what)
}

/// Reports an object that was in a slot, an array or a sheaf, and that its slab does not accept.
#[cold]
#[inline(never)]
pub(crate) fn kept_wrong<P: Platform>(cache: CacheId, place: &str, object: P::Ptr, why: Misuse) -> ! {
    damaged::<P>(cache, format_args!("{object:?} in {place}: {why} (freed twice?)"))
}

/// Reports an array or a sheaf that has no object at an index below its size.
#[cold]
#[inline(never)]
pub(crate) fn hole<P: Platform>(cache: CacheId, place: &str, storage: P::Ptr, index: u32) -> ! {
    damaged::<P>(cache, format_args!("{place} at {storage:?} has no object at index {index}"))
}

/// Reports a free list that ends before its count.
#[cold]
#[inline(never)]
pub(crate) fn cut_list<P: Platform>(cache: CacheId, object: P::Ptr) -> ! {
    damaged::<P>(
        cache,
        format_args!("the free list ends behind {object:?}, before its count says (written after free?)"),
    )
}

/// Reports deferred work that the engine never requests.
#[cold]
#[inline(never)]
pub(crate) fn no_such_work<P: Platform>(cache: CacheId, kind: slablab_platform::WorkKind) -> ! {
    damaged::<P>(cache, format_args!("deferred work {kind:?}, which this engine never asks for"))
}
