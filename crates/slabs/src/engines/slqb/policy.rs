//! SLQB's policies and their presets: the posting of January 2009 and the state of September 2009.

use crate::knob::{AUTO, Knob, Policy, Values};
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

const MEMORYLESS: [Memoryless; 4] =
    [Memoryless::AsAsked, Memoryless::RemoteFirst, Memoryless::FreeAsLocal, Memoryless::Nearest];

impl Policy for SlqbPolicy {
    const ENGINE: &'static str = "slqb";
    const PRESETS: &'static [SlqbPolicy] = &[V2009_01, V2009_09];
    const KNOBS: &'static [Knob<SlqbPolicy>] = &[
        Knob {
            name: "min_order",
            what: "slqb_min_order",
            values: Values::Number(0, 10),
            get: |p| p.min_order as u64,
            set: |p, v| p.min_order = v as u8,
        },
        Knob {
            name: "min_objects",
            what: "slqb_min_objects",
            values: Values::Number(1, 32767),
            get: |p| p.min_objects as u64,
            set: |p, v| p.min_objects = v as u32,
        },
        Knob {
            name: "freebatch",
            what: "objects flushed at once (docs/theory/slqb.md 2)",
            values: Values::Auto(1, 65535),
            get: |p| p.freebatch.map_or(AUTO, u64::from),
            set: |p, v| p.freebatch = (v != AUTO).then_some(v as u32),
        },
        Knob {
            name: "hiwater",
            what: "objects a queue may hold (docs/theory/slqb.md 2)",
            values: Values::Auto(1, 65535),
            get: |p| p.hiwater.map_or(AUTO, u64::from),
            set: |p, v| p.hiwater = (v != AUTO).then_some(v as u32),
        },
        Knob {
            name: "remote_direct_free",
            what: "free into pages when the owner does not claim (docs/theory/slqb.md 5.3, 8.1)",
            values: Values::Words(&["no", "yes"]),
            get: |p| p.remote_direct_free as u64,
            set: |p, v| p.remote_direct_free = v == 1,
        },
        Knob {
            name: "memoryless",
            what: "CPUs on nodes without memory (docs/theory/slqb.md 8)",
            values: Values::Words(&["as-asked", "remote-first", "free-as-local", "nearest"]),
            get: |p| MEMORYLESS.iter().position(|m| *m == p.memoryless).unwrap_or(0) as u64,
            set: |p, v| p.memoryless = MEMORYLESS[v as usize],
        },
        Knob {
            name: "reap_ms",
            what: "milliseconds between two visits of the reaper, 0 for none (docs/theory/slqb.md 6)",
            values: Values::Number(0, 86_400_000),
            get: |p| p.reap_interval_ns / 1_000_000,
            set: |p, v| p.reap_interval_ns = v * 1_000_000,
        },
    ];

    fn release(&self) -> Release {
        self.release
    }
}
