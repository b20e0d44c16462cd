//! SLAB's policies, and the two releases they are known for: 2.6.29 and 6.1.

use crate::knob::{Knob, Policy, Values, knob};
use crate::release::Release;

/// CPUs on nodes without memory (docs/theory/slab.md 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memoryless {
    /// A CPU's node is the one it is on, with or without memory: `numa_node_id()`. On a node without memory
    /// the CPU's array is never filled.
    AsAsked,
    /// The nearest node with memory counts as the CPU's node for allocations only: a patch for SLES 11 of
    /// 2009. Every free is still one of another node's object.
    AllocNearest,
    /// The nearest node with memory counts as the CPU's node: `numa_mem_id()`.
    Nearest,
}

/// Where a new slab goes (docs/theory/slab.md 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// To its node's list of free slabs; the CPU that grew the cache then repeats the refill. Until 4.6.
    Listed,
    /// Into the array of the CPU that grew the cache, before the slab is on a list. 4.7 and later.
    FillsArray,
}

/// How hard the page allocator tries when a request names one node (docs/theory/slab.md 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowFlags {
    /// One attempt with the caller's flags (`GFP_THISNODE` of 2.6: no retry, no warning).
    Reclaim,
    /// Without reclaim, because the engine tries the other nodes next.
    Nowait,
}

/// Where a slab's list of free objects is (docs/theory/slab.md 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Management {
    /// After a descriptor of 48 bytes, four bytes per object: until 3.12.
    Descriptor,
    /// The descriptor is in `struct page`; the list has one or two bytes per object: 3.13 and later.
    Index,
}

/// The policies of a SLAB cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabPolicy {
    /// The release that these policies describe.
    pub release: Release,
    /// Capacity of a CPU's array in objects; `None` uses the rule by size.
    pub limit: Option<u32>,
    /// Upper bound for `limit`.
    pub limit_max: u32,
    /// Objects moved at once; `None` uses half of the limit.
    pub batchcount: Option<u32>,
    /// Capacity of a node's shared array in batches; `None` means 8 for objects of at most a page.
    pub shared: Option<u32>,
    /// Whether objects of other nodes go to alien arrays; the boot option `noaliencache` turns that off.
    pub alien: bool,
    /// Capacity of an alien array in objects; `None` uses the capacity of a CPU's array.
    pub alien_limit: Option<u32>,
    /// What a CPU on a node without memory does.
    pub memoryless: Memoryless,
    /// `slab_max_order`: from this order on, any waste is accepted.
    pub max_order: u8,
    /// Where a slab's free list is.
    pub management: Management,
    /// Where a new slab goes.
    pub fresh: Fresh,
    /// How hard an attempt on one node tries.
    pub grow: GrowFlags,
    /// Nanoseconds between two visits of the reaper; 0 for no reaper.
    pub reap_interval_ns: u64,
}

const V2_6_29: SlabPolicy = SlabPolicy {
    release: Release::new(2, 6, 29),
    limit: None,
    limit_max: u32::MAX,
    batchcount: None,
    shared: None,
    alien: true,
    alien_limit: None,
    memoryless: Memoryless::AsAsked,
    max_order: 1,
    management: Management::Descriptor,
    fresh: Fresh::Listed,
    grow: GrowFlags::Reclaim,
    reap_interval_ns: 2_000_000_000,
};

const V6_1: SlabPolicy = SlabPolicy {
    release: Release::new(6, 1, 0),
    // Measured on a real 6.1: 5,941 frees of other nodes' objects filled alien arrays 491 times.
    alien_limit: Some(12),
    memoryless: Memoryless::Nearest,
    management: Management::Index,
    fresh: Fresh::FillsArray,
    grow: GrowFlags::Nowait,
    ..V2_6_29
};

impl Policy for SlabPolicy {
    const ENGINE: &'static str = "slab";
    const PRESETS: &'static [SlabPolicy] = &[V2_6_29, V6_1];
    const KNOBS: &'static [Knob<SlabPolicy>] = &[
        knob!(
            "limit", "capacity of a CPU's array, in objects (docs/theory/slab.md 2)",
            limit: auto or 1 to 65535
        ),
        knob!(
            "batchcount", "objects in one refill or flush, at most the limit (docs/theory/slab.md 2)",
            batchcount: auto or 1 to 65535
        ),
        knob!(
            "shared",
            "capacity of a node's shared array, in batches; 0: no such array (docs/theory/slab.md 2)",
            shared: auto or 0 to 1024
        ),
        knob!(
            "alien",
            "whether a node has alien arrays, one for each other node (docs/theory/slab.md 4; noaliencache)",
            alien: no or yes
        ),
        knob!(
            "alien_limit",
            "capacity of an alien array, in objects (docs/theory/slab.md 2: the limit; measured on 6.1: 12)",
            alien_limit: auto or 1 to 65535
        ),
        knob!(
            "memoryless",
            "which node is local for a CPU on a node without memory (docs/theory/slab.md 7; numa_mem_id)",
            memoryless: Memoryless [
                "as-asked" = AsAsked, "alloc-nearest" = AllocNearest, "nearest" = Nearest
            ]
        ),
        knob!(
            "max_order",
            "order from which the rule accepts any waste (docs/theory/slab.md 5.2; slab_max_order)",
            max_order: number 0 to 10
        ),
        knob!(
            "management", "place and form of a slab's free list (docs/theory/slab.md 1)",
            management: Management ["descriptor" = Descriptor, "index" = Index]
        ),
        knob!(
            "fresh_slab",
            "where a new slab goes: on its node's list, or into the CPU's array (docs/theory/slab.md 3; 4.7)",
            fresh: Fresh ["listed" = Listed, "fills-array" = FillsArray]
        ),
        knob!(
            "grow", "whether an attempt on one node may reclaim pages (docs/theory/slab.md 7)",
            grow: GrowFlags ["reclaim" = Reclaim, "nowait" = Nowait]
        ),
        knob!(
            "reap_ms", "interval of the reaper, in milliseconds; 0: no reaper (docs/theory/slab.md 6)",
            reap_interval_ns: milliseconds to 86_400_000
        ),
    ];

    fn release(&self) -> Release {
        self.release
    }
}
