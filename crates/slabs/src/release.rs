//! Kernel releases, by which eras are told apart, and what an engine's kernel is told beside its engine.

pub use slablab_choices::Release;

/// `zone_reclaim_mode`: whether a request frees pages of a near zone before a farther node serves it
/// (docs/theory/pagealloc.md 6). The page allocator's, but an engine's kernel is chosen with the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneReclaimMode {
    /// What the kernel decides at boot, by its release and the machine's distances.
    Boot,
    /// 0, set by the administrator.
    Off,
    /// 1, set by the administrator.
    On,
}
