//! The options of a new cache, and what follows from an object's size.

use crate::limit::Limit;
use slablab_native::Object;
use slablab_slabs::zones::Letters;
use std::fmt;
use std::sync::Arc;

/// The options of a new cache.
#[derive(Clone, Debug)]
pub struct Spec<'a> {
    /// The cache's name, in reports and statistics.
    pub name: &'a str,
    /// Bytes of an object, at least 1.
    pub size: usize,
    /// Bytes of alignment, a power of two.
    pub align: usize,
    /// Whether objects are aligned so that each lies in as few cache lines as possible.
    pub hwcache_align: bool,
    /// Whether the contents of an object, and the state word behind it, survive a free.
    pub kept: bool,
    /// Writes a mark into the second word of each object of a new slab.
    pub mark: Option<fn(Object)>,
    /// Ends the contents of each object of a slab that is freed.
    pub end: Option<End>,
    /// The number of objects that may be live at a time.
    pub limit: Limit,
    /// The engine, in the grammar of `SLABLAB_ENGINE`; `None` for the process's own.
    pub engine: Option<&'a str>,
    /// Letters of `debug=`, in addition to those of the engine's text.
    pub debug: Letters,
}

/// Drops or destroys what is in a free object whose slab is freed, if anything is. Called only inside of
/// calls of its cache, with no lock held.
#[derive(Clone)]
pub struct End(Arc<dyn Fn(Object) + Send + Sync>);

impl End {
    /// Ends the contents of an object by calling `end` with it.
    pub fn new(end: impl Fn(Object) + Send + Sync + 'static) -> End {
        End(Arc::new(end))
    }

    pub(crate) fn call(&self, object: Object) {
        (self.0)(object);
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("End")
    }
}

impl<'a> Spec<'a> {
    /// A cache of objects of `size` bytes at multiples of `align`, with default options.
    pub fn new(name: &'a str, size: usize, align: usize) -> Spec<'a> {
        let (hwcache_align, kept, mark, end) = (false, false, None, None);
        let (limit, engine, debug) = (Limit::None, None, Letters::NONE);
        Spec { name, size, align, hwcache_align, kept, mark, end, limit, engine, debug }
    }
}

/// Bytes of the largest object: 4 MiB, as of the kernel's kmalloc.
pub const LARGEST: usize = 4 << 20;
/// Bytes of the largest alignment.
pub const LARGEST_ALIGN: usize = LARGEST;
/// Bytes of a word.
pub(crate) const WORD: usize = 8;

/// Bytes from the start of an object of `size` bytes to the word of state behind it.
pub(crate) const fn state_offset(size: usize) -> usize {
    size.next_multiple_of(WORD)
}
