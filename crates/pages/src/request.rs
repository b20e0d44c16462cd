//! A request for a block, and what was derived from its arguments.

use crate::migrate::MigrateType;
use slablab_platform::{Gfp, NodeId};

/// How far a request goes when no zone has a block above its low watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// As far as its flags allow.
    Full,
    /// As far as the request's flags allow, but without waking kswapd, whatever the release does.
    NoKswapd,
    /// One pass over the free lists.
    Once,
}

/// A call of [`crate::Pages::alloc`], with everything derived from its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) gfp: Gfp,
    pub(crate) attempt: Attempt,
    pub(crate) order: u8,
    pub(crate) node: NodeId,
    /// Highest zone allowed.
    pub(crate) class: u8,
    pub(crate) migrate_type: MigrateType,
    /// The caller frees memory for others (`PF_MEMALLOC`). Known on the slow path only.
    pub(crate) reclaimer: bool,
}
