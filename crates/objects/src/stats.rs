//! What a cache holds, in numbers.

/// What a cache holds. Racy while other threads use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The cache's name.
    pub name: String,
    /// Its engine, in the words of `SLABLAB_ENGINE`.
    pub engine: String,
    /// Bytes of an object, as asked.
    pub object_bytes: u64,
    /// Bytes of alignment, as asked.
    pub align_bytes: u64,
    /// Bytes from one object to the next.
    pub spaced_bytes: u64,
    /// Objects in a slab.
    pub objects_per_slab: u64,
    /// Bytes of a slab.
    pub slab_bytes: u64,
    /// Slabs there are.
    pub slabs: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Objects they can hold.
    pub objects: u64,
    /// Objects handed out; without a limit, those that other threads' slots keep are among them, as in
    /// slabinfo.
    pub active: u64,
    /// The most objects at a time.
    pub limit: Option<u64>,
    /// What debugging found: each was printed when it was. 0 where nothing is around the engine.
    pub found: u64,
}

impl Stats {
    /// Bytes of slabs that are no active object's.
    pub fn idle_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.active * self.object_bytes)
    }
}
