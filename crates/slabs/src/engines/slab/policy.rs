//! SLAB's policies, and the three releases they are known for: 2.4, 2.6.29 and 6.1.

use crate::knob::{Knob, Policy, knob};
use crate::release::{Release, ZoneReclaimMode};

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
    /// With the caller's flags, from any node: 2.4. On a machine with several nodes, which 2.4's engine does
    /// not know, the same as `Reclaim`.
    AsAsked,
}

/// The capacities of CPUs' arrays by the size of objects (docs/theory/slab.md 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limits {
    /// 2.4: none on a machine with one CPU, and none for objects above a page; else 252, 124 or 60.
    Smp,
    /// 2.6: 120, 54, 24, 8 or 1.
    All,
}

/// Who returns empty slabs (docs/theory/slab.md 6 and 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reap {
    /// 2.6: a free that leaves its node too many free objects, and each CPU's timer.
    Timer,
    /// 2.4: page reclaim, by a clock over the caches ([`crate::clock`]).
    Clock,
}

/// Where a partial slab goes when one of its objects is freed (docs/theory/slab.md 4 and 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// 2.4: it stays where it is; one that was full goes to the head.
    Stays,
    /// 2.6: to the tail.
    Tail,
}

/// When objects that come back return slabs above `free_limit` (docs/theory/slab.md 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surplus {
    /// At each object: the slab that it empties, if the node has too many free objects then. Until 4.6.
    AtEach,
    /// Behind the last object of the call: the slabs that have been empty longest, as long as the node has
    /// too many free objects. 4.7 and later.
    AtLast,
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
    /// Whether near zones are reclaimed before a farther node serves.
    pub zone_reclaim: ZoneReclaimMode,
    /// The rule for the capacity of a CPU's array by the size of objects.
    pub limits: Limits,
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
    /// Where a partial slab goes when one of its objects is freed.
    pub requeue: Requeue,
    /// When objects that come back return slabs.
    pub surplus: Surplus,
    /// Who returns empty slabs.
    pub reap: Reap,
    /// How hard an attempt on one node tries.
    pub grow: GrowFlags,
    /// Nanoseconds between two visits of the timer's reaper; 0 for no reaper.
    pub reap_interval_ns: u64,
    /// Milliseconds from two of these intervals after the cache was made to the timer's first visit of its
    /// nodes' shared arrays and free slabs; `None` derives them from the cache's number, as a kernel does
    /// from its address.
    pub node_reap_ms: Option<u32>,
}

/// Presets as constants, for a program that parses no text. One policy of a constant is changed with
/// `SlabPolicy { .., ..SlabPolicy::V6_1 }`.
impl SlabPolicy {
    /// The policies of `slab@2.6.29`.
    pub const V2_6_29: SlabPolicy = SlabPolicy {
        release: Release::new(2, 6, 29),
        zone_reclaim: ZoneReclaimMode::Boot,
        limits: Limits::All,
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
        requeue: Requeue::Tail,
        surplus: Surplus::AtEach,
        reap: Reap::Timer,
        grow: GrowFlags::Reclaim,
        reap_interval_ns: 2_000_000_000,
        node_reap_ms: None,
    };

    /// The policies of `slab@2.4`: 2.4.8 to 2.4.10 (docs/theory/slab.md 10).
    pub const V2_4: SlabPolicy = SlabPolicy {
        release: Release::new(2, 4, 0),
        limits: Limits::Smp,
        shared: Some(0),
        alien: false,
        max_order: 2,
        requeue: Requeue::Stays,
        reap: Reap::Clock,
        grow: GrowFlags::AsAsked,
        reap_interval_ns: 0,
        ..SlabPolicy::V2_6_29
    };

    /// The policies of `slab@6.1`.
    pub const V6_1: SlabPolicy = SlabPolicy {
        release: Release::new(6, 1, 0),
        // Measured on a real 6.1: 5,941 frees of other nodes' objects filled alien arrays 491 times.
        alien_limit: Some(12),
        memoryless: Memoryless::Nearest,
        management: Management::Index,
        fresh: Fresh::FillsArray,
        surplus: Surplus::AtLast,
        grow: GrowFlags::Nowait,
        ..SlabPolicy::V2_6_29
    };
}

impl Policy for SlabPolicy {
    const NAME: &'static str = "slab";
    const PRESETS: &'static [SlabPolicy] = &[SlabPolicy::V2_4, SlabPolicy::V2_6_29, SlabPolicy::V6_1];
    const KNOBS: &'static [Knob<SlabPolicy>] = &[
        knob!(
            "limits", "which rule gives an array its capacity by the size of objects (docs/theory/slab.md 2)",
            limits: Limits ["smp" = Smp, "all" = All]
        ),
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
            grow: GrowFlags ["reclaim" = Reclaim, "nowait" = Nowait, "as-asked" = AsAsked]
        ),
        knob!(
            "requeue", "where a partial slab goes when one of its objects is freed (docs/theory/slab.md 4, 10)",
            requeue: Requeue ["stays" = Stays, "tail" = Tail]
        ),
        knob!(
            "surplus",
            "when freed objects return empty slabs above free_limit (docs/theory/slab.md 4; 4.7)",
            surplus: Surplus ["at-each" = AtEach, "at-last" = AtLast]
        ),
        knob!(
            "reap", "who returns empty slabs: a timer, or page reclaim's clock (docs/theory/slab.md 6, 10)",
            reap: Reap ["timer" = Timer, "clock" = Clock]
        ),
        knob!(
            "reap_ms", "interval of the reaper, in milliseconds; 0: no reaper (docs/theory/slab.md 6)",
            reap_interval_ns: milliseconds to 86_400_000
        ),
        knob!(
            "node_reap_ms",
            "first visit of nodes, in milliseconds from two of these intervals on (docs/theory/slab.md 6)",
            node_reap_ms: auto or 0 to 86_400_000
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
