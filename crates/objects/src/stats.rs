//! The statistics of a cache.

/// A cache's objects, slabs and limit. The values are not consistent while other threads use the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The cache's name.
    pub name: String,
    /// Its engine, in the words of `SLABLAB_ENGINE`.
    pub engine: String,
    /// Requested bytes of an object.
    pub object_bytes: u64,
    /// Requested alignment in bytes.
    pub align_bytes: u64,
    /// Bytes from one object to the next.
    pub spaced_bytes: u64,
    /// Objects in a slab.
    pub objects_per_slab: u64,
    /// Bytes of a slab.
    pub slab_bytes: u64,
    /// Number of slabs.
    pub slabs: u64,
    /// Bytes of all slabs.
    pub bytes: u64,
    /// Objects that the slabs can hold.
    pub objects: u64,
    /// Allocated objects. Without a limit the free objects in other threads' slots are counted too, as in
    /// slabinfo.
    pub active: u64,
    /// Most objects that may be allocated at a time.
    pub limit: Option<u64>,
    /// Violations that debugging found; each was printed when it was found. 0 without debugging.
    pub found: u64,
}

impl Stats {
    /// Bytes of slabs that are not in an active object.
    pub fn idle_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.active * self.object_bytes)
    }
}
