//! The books that the program keeps of an image of SLAB or SLOB.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// What the program keeps of an image of SLAB or SLOB.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Blocks that went back, and those of them that the reaper gave back: by cache and CPU.
    pub(super) given: RefCell<HashMap<(u32, u16), [u64; 2]>>,
    /// Caches by their address in the image.
    pub(super) ids: RefCell<HashMap<u64, u32>>,
    pub(super) is_reaping: Cell<bool>,
    /// Deferred work, by the number that the world gets for it.
    pub(super) later: RefCell<Vec<u64>>,
}
