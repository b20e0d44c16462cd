//! The books that the program keeps of an image of SLAB or SLOB.

use std::cell::RefCell;
use std::collections::HashMap;

/// What the program keeps of an image of SLAB or SLOB.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Blocks that went back, by cache and CPU.
    pub(super) given: RefCell<HashMap<(u32, u16), u64>>,
    /// Caches by their address in the image.
    pub(super) ids: RefCell<HashMap<u64, u32>>,
    /// Deferred work, by the number that the world gets for it.
    pub(super) later: RefCell<Vec<u64>>,
}
