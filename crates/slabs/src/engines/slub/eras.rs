//! SLUB by release: each preset is the one before it and what changed (docs/theory/slub.md 1,
//! docs/theory/sheaves.md 9); and the knobs.

use super::policy::{
    Barns, BulkStrangers, CpuPartial, EmptySlab, FirstTry, FreeList, Leftover, Memoryless, MinPartial,
    NewLinks, RcuStrangers, Refill, RefillReads, RemoteRefill, RemoteSearch, SHEAF_MOST, SheafRule, Sheaves,
    SlabUpdate, SlubPolicy,
};
use crate::cache::LinkPlace;
use crate::knob::{Knob, Needs, Policy, knob};
use crate::order::{COSTLY_ORDER, OrderRule};
use crate::release::{Release, ZoneReclaimMode};

/// Presets as constants, for a program that parses no text. One policy of a constant is changed with
/// `SlubPolicy { .., ..SlubPolicy::V7_1 }`.
impl SlubPolicy {
    /// The policies of `slub@2.6.29`.
    pub const V2_6_29: SlubPolicy = SlubPolicy {
        release: Release::new(2, 6, 29),
        zone_reclaim: ZoneReclaimMode::Boot,
        order: OrderRule::Halving,
        min_order: 0,
        max_order: COSTLY_ORDER,
        min_objects: 0,
        order_cpus: 0,
        link: LinkPlace::Start,
        min_partial: MinPartial::Log2,
        min_partial_slabs: None,
        min_partial_least: 5,
        min_partial_most: 10,
        cpu_partial: CpuPartial::Off,
        cpu_partial_objects: None,
        cpu_partial_factor: 1,
        partial_frozen: true,
        empty: EmptySlab::AtOnce,
        update: SlabUpdate::BitLock,
        first_try: FirstTry::NoRetry,
        memoryless: Memoryless::AsAsked,
        remote_search: RemoteSearch::UnlessThisNode,
        defrag_ratio: 1000,
        cpu_slab: true,
        sheaves: Sheaves::Off,
        refill: Refill::MayBlock,
        refill_reads: RefillReads::Locked,
        refill_walks: false,
        new_links: NewLinks::All,
        leftover: Leftover::Head,
        rcu_strangers: RcuStrangers::Removed,
        bulk_strangers: BulkStrangers::Batched,
        sheaf_rule: SheafRule::Size,
        sheaf_capacity: None,
        sheaf_factor: 1,
        max_full_sheaves: 10,
        max_empty_sheaves: 10,
        sheaf_batch: 32,
        remote_refill: RemoteRefill::Try,
        barns: Barns::MemoryNodes,
        elastic: 0,
        freelist: FreeList::Auto,
    };

    /// The policies of `slub@2.6.32`.
    pub const V2_6_32: SlubPolicy = SlubPolicy {
        release: Release::new(2, 6, 32),
        order: OrderRule::Clamped,
        first_try: FirstTry::NoRetryNoFail,
        ..SlubPolicy::V2_6_29
    };

    /// The policies of `slub@3.2`.
    pub const V3_2: SlubPolicy = SlubPolicy {
        release: Release::new(3, 2, 0),
        min_partial: MinPartial::HalfLog2,
        cpu_partial: CpuPartial::Objects,
        empty: EmptySlab::BeyondMinPartial,
        update: SlabUpdate::Word,
        remote_search: RemoteSearch::AnyNodeOnly,
        ..SlubPolicy::V2_6_32
    };

    /// The policies of `slub@5.10`.
    pub const V5_10: SlubPolicy = SlubPolicy {
        release: Release::new(5, 10, 0),
        link: LinkPlace::Middle,
        first_try: FirstTry::NoReclaim,
        memoryless: Memoryless::Nearest,
        ..SlubPolicy::V3_2
    };

    /// The policies of `slub@5.16`.
    pub const V5_16: SlubPolicy = SlubPolicy {
        release: Release::new(5, 16, 0),
        cpu_partial: CpuPartial::Slabs,
        memoryless: Memoryless::Anywhere,
        ..SlubPolicy::V5_10
    };

    /// The policies of `slub@6.1`.
    pub const V6_1: SlubPolicy = SlubPolicy { release: Release::new(6, 1, 0), ..SlubPolicy::V5_16 };

    /// The policies of `slub@6.8`.
    pub const V6_8: SlubPolicy = SlubPolicy {
        release: Release::new(6, 8, 0),
        order: OrderRule::Single,
        partial_frozen: false,
        ..SlubPolicy::V6_1
    };

    /// The policies of `slub@6.12`.
    pub const V6_12: SlubPolicy = SlubPolicy { release: Release::new(6, 12, 0), ..SlubPolicy::V6_8 };

    /// The policies of `slub@6.18`.
    pub const V6_18: SlubPolicy =
        SlubPolicy { release: Release::new(6, 18, 0), sheaves: Sheaves::OptIn, ..SlubPolicy::V6_12 };

    /// The policies of `slub@7.0`.
    pub const V7_0: SlubPolicy = SlubPolicy {
        release: Release::new(7, 0, 0),
        cpu_partial: CpuPartial::Off,
        cpu_slab: false,
        sheaves: Sheaves::All,
        refill: Refill::Always,
        refill_reads: RefillReads::After,
        refill_walks: true,
        leftover: Leftover::Tail,
        memoryless: Memoryless::Others,
        ..SlubPolicy::V6_18
    };

    /// The policies of `slub@7.1`.
    pub const V7_1: SlubPolicy =
        SlubPolicy { release: Release::new(7, 1, 0), barns: Barns::OnlineNodes, ..SlubPolicy::V7_0 };

    /// The policies of `slub@7.2`.
    pub const V7_2: SlubPolicy = SlubPolicy {
        release: Release::new(7, 2, 0),
        refill_walks: false,
        new_links: NewLinks::Rest,
        rcu_strangers: RcuStrangers::Kept,
        ..SlubPolicy::V7_1
    };

    /// The policies of `slub@7.3`.
    pub const V7_3: SlubPolicy = SlubPolicy {
        release: Release::new(7, 3, 0),
        bulk_strangers: BulkStrangers::Swapped,
        ..SlubPolicy::V7_2
    };
}

impl Policy for SlubPolicy {
    const NAME: &'static str = "slub";
    const PRESETS: &'static [SlubPolicy] = &[
        SlubPolicy::V2_6_29,
        SlubPolicy::V2_6_32,
        SlubPolicy::V3_2,
        SlubPolicy::V5_10,
        SlubPolicy::V5_16,
        SlubPolicy::V6_1,
        SlubPolicy::V6_8,
        SlubPolicy::V6_12,
        SlubPolicy::V6_18,
        SlubPolicy::V7_0,
        SlubPolicy::V7_1,
        SlubPolicy::V7_2,
        SlubPolicy::V7_3,
    ];
    const KNOBS: &'static [Knob<SlubPolicy>] = &[
        knob!(
            "order", "rule that computes the order of a cache's slabs (docs/theory/slub.md 5.3 to 5.6)",
            order: OrderRule [
                "halving" = Halving, "clamped" = Clamped, "single" = Single, "patel-v1" = PatelV1,
                "patel-v2" = PatelV2, "patel-v3" = PatelV3, "lean" = Lean
            ]
        ),
        knob!("min_order", "smallest order of a slab (slub_min_order)", min_order: number 0 to 10),
        knob!(
            "max_order", "largest order of a slab, unless one object needs more (slub_max_order)",
            max_order: number 0 to 10
        ),
        knob!(
            "min_objects", "objects that a slab should hold, 0: computed from the CPUs (slub_min_objects)",
            min_objects: number 0 to 32767
        ),
        knob!(
            "order_cpus", "number of CPUs in the order rule, 0: the machine's (docs/theory/slub.md 5.1)",
            order_cpus: number 0 to 65535
        ),
        knob!(
            "min_partial",
            "slabs that a node's list keeps, also without live objects (docs/theory/slub.md 4.5)",
            min_partial_slabs: auto or 0 to 65535
        ),
        knob!(
            "min_partial_least", "least slabs that min_partial=auto gives (docs/theory/slub.md 4.5)",
            min_partial_least: number 0 to 65535
        ),
        knob!(
            "min_partial_most", "most slabs that min_partial=auto gives (docs/theory/slub.md 4.5)",
            min_partial_most: number 0 to 65535
        ),
        knob!(
            "cpu_partial", "limit of a CPU's partial list, in free objects (docs/theory/slub.md 4.4)",
            cpu_partial_objects: auto or 0 to 65535
        ),
        knob!(
            "cpu_partial_factor",
            "what cpu_partial=auto is multiplied by, as proposed in September 2023 (docs/theory/slub.md 4.4)",
            cpu_partial_factor: number 1 to 64
        ),
        knob!(
            "cpu_partial_rule",
            "unit in which a CPU's partial list is limited; off: no such list (docs/theory/slub.md 4.4)",
            cpu_partial: CpuPartial ["off" = Off, "objects" = Objects, "slabs" = Slabs]
        ),
        knob!(
            "partial_frozen", "whether slabs on a CPU's partial list are frozen (docs/theory/slub.md 2.1)",
            partial_frozen: no or yes
        ),
        knob!(
            "empty", "when a slab without live objects is freed (docs/theory/slub.md 4.2)",
            empty: EmptySlab ["at-once" = AtOnce, "min-partial" = BeyondMinPartial]
        ),
        knob!(
            "update",
            "how a slab's state changes: under a lock, or by compare-and-swap (docs/theory/slub.md 2.1)",
            update: SlabUpdate ["bit-lock" = BitLock, "word" = Word]
        ),
        knob!(
            "first_try",
            "page flags of the first attempt at the full order; the last three were proposed in 2009 \
             (docs/theory/slub.md 6)",
            first_try: FirstTry [
                "noretry" = NoRetry, "noretry-nofail" = NoRetryNoFail, "nowait" = NoWait,
                "noreclaim" = NoReclaim, "freepages-check" = FreePagesCheck,
                "nowait-nokswapd" = NoWaitNoKswapd, "nowait-nokswapd-nopage" = NoWaitNoKswapdNoPage
            ]
        ),
        knob!(
            "memoryless", "which node serves a request for a node without memory (docs/theory/slub.md 10)",
            memoryless: Memoryless [
                "as-asked" = AsAsked, "nearest" = Nearest, "anywhere" = Anywhere, "others" = Others
            ]
        ),
        knob!(
            "remote_search", "which requests search other nodes' partial lists (docs/theory/slub.md 3)",
            remote_search: RemoteSearch ["unless-thisnode" = UnlessThisNode, "any-node-only" = AnyNodeOnly]
        ),
        knob!(
            "defrag_ratio", "chance in 1024 that a refill searches other nodes (docs/theory/slub.md 3.1)",
            defrag_ratio: number 0 to 1024
        ),
        knob!(
            "cpu_slab", "whether each CPU has a slab and a partial list (docs/theory/slub.md 2.2)",
            cpu_slab: no or yes
        ),
        knob!(
            "sheaves", "which caches have sheaves (docs/theory/sheaves.md 2)",
            sheaves: Sheaves ["off" = Off, "opt-in" = OptIn, "all" = All]
        ),
        knob!(
            "refill", "which callers may fill a sheaf from slabs (docs/theory/sheaves.md 3)",
            refill: Refill ["may-block" = MayBlock, "always" = Always]
        ),
        knob!(
            "refill_reads",
            "when a refill reads the objects of listed slabs: under list_lock, or after it as Linux 7.0 does",
            refill_reads: RefillReads ["locked" = Locked, "after" = After]
        ),
        knob!(
            "refill_walks",
            "whether a refill walks what it leaves of its last slab to the end (docs/theory/sheaves.md 3.1)",
            refill_walks: no or yes
        ),
        knob!(
            "new_links",
            "which objects of a new slab a refill links: all, or those that it leaves (docs/theory/sheaves.md 3.1)",
            new_links: NewLinks ["all" = All, "rest" = Rest]
        ),
        knob!(
            "leftover",
            "where the last slab of a refill goes if it has free objects left (docs/theory/sheaves.md 3.1)",
            leftover: Leftover ["head" = Head, "tail" = Tail]
        ),
        knob!(
            "rcu_strangers",
            "objects of other nodes in a full sheaf after its grace period (docs/theory/sheaves.md 4.1)",
            rcu_strangers: RcuStrangers ["removed" = Removed, "kept" = Kept]
        ),
        knob!(
            "bulk_strangers",
            "how a bulk free parts objects of other nodes from the CPU's own (docs/theory/sheaves.md 4.2)",
            bulk_strangers: BulkStrangers ["batched" = Batched, "swapped" = Swapped]
        ),
        knob!(
            "sheaf_capacity",
            "objects in a sheaf of a cache that has sheaves; auto: by sheaf_rule (docs/theory/sheaves.md 2)",
            sheaf_capacity: auto or positive to SHEAF_MOST as u64
        ),
        knob!(
            "sheaf_rule",
            "what sheaf_capacity=auto follows from; size-and-cpus: as proposed in October 2025 \
             (docs/theory/sheaves.md 2)",
            sheaf_rule: SheafRule ["size" = Size, "size-and-cpus" = SizeAndCpus]
        ),
        knob!(
            "sheaf_factor", "what sheaf_capacity=auto is multiplied by, at most to 1020 (docs/theory/sheaves.md 2)",
            sheaf_factor: number 1 to 64
        ),
        knob!(
            "max_full_sheaves", "full sheaves of a barn, at most (docs/theory/sheaves.md 1)",
            max_full_sheaves: number 0 to 10000
        ),
        knob!(
            "max_empty_sheaves", "empty sheaves of a barn, at most (docs/theory/sheaves.md 1)",
            max_empty_sheaves: number 0 to 10000
        ),
        knob!(
            "sheaf_batch",
            "objects that leave a main sheaf for slabs at a time (PCS_BATCH_MAX; docs/theory/sheaves.md 1)",
            sheaf_batch: number 1 to 64
        ),
        knob!(
            "remote_refill",
            "what the refill of a sheaf does at other nodes' lists (docs/theory/sheaves.md 3.1)",
            remote_refill: RemoteRefill ["off" = Off, "wait" = Wait, "try" = Try]
        ),
        knob!(
            "barns", "which nodes have barns (docs/theory/sheaves.md 8)",
            barns: Barns ["memory-nodes" = MemoryNodes, "online-nodes" = OnlineNodes]
        ),
        knob!(
            "elastic",
            "first capacity of a CPU's sheaves, which grow with use; 0: a fixed capacity, as in Linux",
            elastic: number 0 to 65535
        ),
        knob!(
            "freelist",
            "where a slab notes its free objects: links in them, as in Linux, or a map beside the descriptors; \
             auto: links, and maps in malloc and object caches",
            freelist: FreeList ["auto" = Auto, "links" = Links, "map" = Map]
        ),
        knob!(
            "min_partial_rule", "rule for min_partial=auto, by object size (docs/theory/slub.md 4.5)",
            min_partial: MinPartial ["log2" = Log2, "half-log2" = HalfLog2]
        ),
        knob!(
            "link", "place of the free list's link in a free object (docs/theory/slub.md 7)",
            link: LinkPlace ["start" = Start, "middle" = Middle]
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

    /// A CPU slab's list is one of links.
    fn lacks(&self) -> Option<Needs> {
        let needs = Needs { knob: "freelist", value: "map", needs: "cpu_slab=no, as from 7.0 on," };
        (self.freelist == FreeList::Map && self.cpu_slab).then_some(needs)
    }
}
