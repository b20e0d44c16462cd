//! The parameters of CFQ.

use slablab_model::Ps;

/// The parameters, as in `queue/iosched`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfqSpec {
    /// `slice_sync`, `slice_async`: the slice at priority 4.
    pub slice: [Ps; 2],
    /// What a priority adds to a sync and an async slice.
    pub slice_step: [Ps; 2],
    /// `slice_idle`: how long the disk is kept for the next request of a task.
    pub idle: Ps,
    /// The same for a task that seeks.
    pub idle_seeky: Ps,
    /// `quantum`: requests that a queue may have in the disk while others wait.
    pub quantum: u32,
    /// `fifo_expire_sync`, `fifo_expire_async`.
    pub expire: [Ps; 2],
    /// `slice_async_rq`: with a priority p an async slice ends after 2 * (n + n * (7 - p)) requests.
    pub async_requests: u32,
    /// `back_seek_max` in sectors, and what going back counts.
    pub back: (u64, u64),
    /// Mean distance in sectors from which a task seeks.
    pub seeky: u64,
    /// Requests in the disk that show that it has tags.
    pub tagged: u32,
}
