//! SLQB's policies and their presets: the posting of January 2009 and the state of September 2009.

use crate::knob::{Knob, Policy, Values, knob};
use crate::release::Release;

/// What a CPU does whose node has no memory (docs/theory/slqb.md 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memoryless {
    /// Its own node, which has none: a page per allocation, the leak of September 2009.
    AsAsked,
    /// Asks other nodes' lists before it takes a page: the late file.
    RemoteFirst,
    /// A page of another node freed by such a CPU counts as local: Mel Gorman's patch 2/3.
    FreeAsLocal,
    /// The nearest node with memory is its own on both paths: Christoph Lameter's proposal.
    Nearest,
}

/// SLQB as a set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlqbPolicy {
    /// The posting these policies are of: year and month.
    pub release: Release,
    /// `slqb_min_order`.
    pub min_order: u8,
    /// `slqb_min_objects`.
    pub min_objects: u32,
    /// Objects flushed at once, instead of the rule by size.
    pub freebatch: Option<u32>,
    /// Objects a queue may hold, instead of four batches.
    pub hiwater: Option<u32>,
    /// Objects for a list that does not pick up go straight to their pages.
    pub remote_direct_free: bool,
    /// CPUs on nodes without memory.
    pub memoryless: Memoryless,
    /// Time between two visits of the reaper, nanoseconds; 0 for no reaper.
    pub reap_interval_ns: u64,
}

const V2009_01: SlqbPolicy = SlqbPolicy {
    release: Release::new(2009, 1, 0),
    min_order: 0,
    min_objects: 1,
    freebatch: None,
    hiwater: None,
    remote_direct_free: false,
    memoryless: Memoryless::AsAsked,
    reap_interval_ns: 3_000_000_000,
};

const V2009_09: SlqbPolicy = SlqbPolicy {
    release: Release::new(2009, 9, 0),
    remote_direct_free: true,
    memoryless: Memoryless::RemoteFirst,
    ..V2009_01
};

impl Policy for SlqbPolicy {
    const ENGINE: &'static str = "slqb";
    const PRESETS: &'static [SlqbPolicy] = &[V2009_01, V2009_09];
    const KNOBS: &'static [Knob<SlqbPolicy>] = &[
        knob!("min_order", "slqb_min_order", min_order: number 0 to 10),
        knob!("min_objects", "slqb_min_objects", min_objects: number 1 to 32767),
        knob!("freebatch", "objects flushed at once (docs/theory/slqb.md 2)", freebatch: auto or 1 to 65535),
        knob!("hiwater", "objects a queue may hold (docs/theory/slqb.md 2)", hiwater: auto or 1 to 65535),
        knob!(
            "remote_direct_free",
            "free into pages when the owner does not claim (docs/theory/slqb.md 5.3, 8.1)",
            remote_direct_free: no or yes
        ),
        knob!(
            "memoryless", "CPUs on nodes without memory (docs/theory/slqb.md 8)",
            memoryless: Memoryless [
                "as-asked" = AsAsked, "remote-first" = RemoteFirst, "free-as-local" = FreeAsLocal,
                "nearest" = Nearest
            ]
        ),
        knob!(
            "reap_ms", "milliseconds between two visits of the reaper, 0 for none (docs/theory/slqb.md 6)",
            reap_interval_ns: milliseconds to 86_400_000
        ),
    ];

    fn release(&self) -> Release {
        self.release
    }
}
