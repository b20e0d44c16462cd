//! SLQB's policies, and the two states they are known for: the posting of January 2009 and September 2009.

use crate::knob::{Knob, Policy, knob};
use crate::release::{Release, ZoneReclaimMode};

/// The behaviour of a CPU whose node has no memory (docs/theory/slqb.md 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memoryless {
    /// Uses its own node, which has no memory. Each allocation takes a new page: the leak of September 2009.
    AsAsked,
    /// Takes objects from the lists of other nodes before it takes a new page: the late file.
    RemoteFirst,
    /// Frees objects of other nodes as if they were local: Mel Gorman's patch 2/3.
    FreeAsLocal,
    /// Treats the nearest node with memory as its own, on allocation and free: Christoph Lameter's proposal.
    Nearest,
}

/// SLQB as a set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlqbPolicy {
    /// Year and month of the posting that these policies describe.
    pub release: Release,
    /// Whether near zones are reclaimed before a farther node serves.
    pub zone_reclaim: ZoneReclaimMode,
    /// `slqb_min_order`.
    pub min_order: u8,
    /// `slqb_min_objects`.
    pub min_objects: u32,
    /// Objects flushed at once; `None` uses the rule by size.
    pub freebatch: Option<u32>,
    /// Largest number of objects in a queue; `None` means four batches.
    pub hiwater: Option<u32>,
    /// Whether objects go directly into the pages of an owner that does not claim them.
    pub remote_direct_free: bool,
    /// The behaviour of a CPU whose node has no memory.
    pub memoryless: Memoryless,
    /// Nanoseconds between two visits of the reaper; 0 for no reaper.
    pub reap_interval_ns: u64,
}

/// Presets as constants, for a program that parses no text. One policy of a constant is changed with
/// `SlqbPolicy { .., ..SlqbPolicy::V2009_09 }`.
impl SlqbPolicy {
    /// The policies of `slqb@2009-01`.
    pub const V2009_01: SlqbPolicy = SlqbPolicy {
        release: Release::new(2009, 1, 0),
        zone_reclaim: ZoneReclaimMode::Boot,
        min_order: 0,
        min_objects: 1,
        freebatch: None,
        hiwater: None,
        remote_direct_free: false,
        memoryless: Memoryless::AsAsked,
        reap_interval_ns: 3_000_000_000,
    };

    /// The policies of `slqb@2009-09`.
    pub const V2009_09: SlqbPolicy = SlqbPolicy {
        release: Release::new(2009, 9, 0),
        remote_direct_free: true,
        memoryless: Memoryless::RemoteFirst,
        ..SlqbPolicy::V2009_01
    };
}

impl Policy for SlqbPolicy {
    const NAME: &'static str = "slqb";
    const PRESETS: &'static [SlqbPolicy] = &[SlqbPolicy::V2009_01, SlqbPolicy::V2009_09];
    const KNOBS: &'static [Knob<SlqbPolicy>] = &[
        knob!("min_order", "smallest order of a slab (slqb_min_order)", min_order: number 0 to 10),
        knob!(
            "min_objects", "objects that a slab should hold (slqb_min_objects)",
            min_objects: number 1 to 32767
        ),
        knob!(
            "freebatch", "objects in one flush of a queue (docs/theory/slqb.md 2)",
            freebatch: auto or 1 to 65535
        ),
        knob!(
            "hiwater", "length above which a queue is flushed, in objects (docs/theory/slqb.md 2)",
            hiwater: auto or 1 to 65535
        ),
        knob!(
            "remote_direct_free",
            "whether a CPU frees into the pages of an owner that does not claim its objects \
             (docs/theory/slqb.md 5.3, 8.1)",
            remote_direct_free: no or yes
        ),
        knob!(
            "memoryless", "how CPUs on nodes without memory allocate and free (docs/theory/slqb.md 8)",
            memoryless: Memoryless [
                "as-asked" = AsAsked, "remote-first" = RemoteFirst, "free-as-local" = FreeAsLocal,
                "nearest" = Nearest
            ]
        ),
        knob!(
            "reap_ms", "interval of the reaper, in milliseconds; 0: no reaper (docs/theory/slqb.md 6)",
            reap_interval_ns: milliseconds to 86_400_000
        ),
        knob!(
            "zone_reclaim", "local reclaim before a farther node (docs/theory/pagealloc.md 6; zone_reclaim_mode)",
            zone_reclaim: ZoneReclaimMode ["boot" = Boot, "off" = Off, "on" = On]
        ),
    ];

    fn release(&self) -> Release {
        self.release
    }

    fn zone_reclaim(&self) -> ZoneReclaimMode {
        self.zone_reclaim
    }
}
