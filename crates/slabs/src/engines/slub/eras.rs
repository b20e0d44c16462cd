//! SLUB by release: each preset is the one before it and what changed (docs/theory/slub.md 1,
//! docs/theory/sheaves.md 9); and the knobs.

use super::policy::{
    Barns, CpuPartial, EmptySlab, FirstTry, Memoryless, MinPartial, Refill, RemoteSearch, Sheaves,
    SlabUpdate, SlubPolicy,
};
use crate::cache::LinkPlace;
use crate::knob::{Knob, Policy, Values, knob};
use crate::order::{COSTLY_ORDER, OrderRule};
use crate::release::Release;

const V2_6_29: SlubPolicy = SlubPolicy {
    release: Release::new(2, 6, 29),
    order: OrderRule::Halving,
    min_order: 0,
    max_order: COSTLY_ORDER,
    min_objects: 0,
    order_cpus: 0,
    link: LinkPlace::Start,
    min_partial: MinPartial::Log2,
    min_partial_slabs: None,
    cpu_partial: CpuPartial::Off,
    cpu_partial_objects: None,
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
    barns: Barns::MemoryNodes,
    elastic: 0,
};

const V2_6_32: SlubPolicy = SlubPolicy {
    release: Release::new(2, 6, 32),
    order: OrderRule::Clamped,
    first_try: FirstTry::NoRetryNoFail,
    ..V2_6_29
};

const V3_2: SlubPolicy = SlubPolicy {
    release: Release::new(3, 2, 0),
    min_partial: MinPartial::HalfLog2,
    cpu_partial: CpuPartial::Objects,
    empty: EmptySlab::BeyondMinPartial,
    update: SlabUpdate::Word,
    remote_search: RemoteSearch::AnyNodeOnly,
    ..V2_6_32
};

const V5_10: SlubPolicy = SlubPolicy {
    release: Release::new(5, 10, 0),
    link: LinkPlace::Middle,
    first_try: FirstTry::NoReclaim,
    memoryless: Memoryless::Nearest,
    ..V3_2
};

const V5_16: SlubPolicy = SlubPolicy {
    release: Release::new(5, 16, 0),
    cpu_partial: CpuPartial::Slabs,
    memoryless: Memoryless::Anywhere,
    ..V5_10
};

const V6_1: SlubPolicy = SlubPolicy { release: Release::new(6, 1, 0), ..V5_16 };

const V6_8: SlubPolicy =
    SlubPolicy { release: Release::new(6, 8, 0), order: OrderRule::Single, partial_frozen: false, ..V6_1 };

const V6_12: SlubPolicy = SlubPolicy { release: Release::new(6, 12, 0), ..V6_8 };

const V6_18: SlubPolicy = SlubPolicy { release: Release::new(6, 18, 0), sheaves: Sheaves::OptIn, ..V6_12 };

const V7_0: SlubPolicy = SlubPolicy {
    release: Release::new(7, 0, 0),
    cpu_partial: CpuPartial::Off,
    cpu_slab: false,
    sheaves: Sheaves::All,
    refill: Refill::Always,
    ..V6_18
};

const V7_1: SlubPolicy = SlubPolicy { release: Release::new(7, 1, 0), barns: Barns::OnlineNodes, ..V7_0 };

impl Policy for SlubPolicy {
    const ENGINE: &'static str = "slub";
    const PRESETS: &'static [SlubPolicy] =
        &[V2_6_29, V2_6_32, V3_2, V5_10, V5_16, V6_1, V6_8, V6_12, V6_18, V7_0, V7_1];
    const KNOBS: &'static [Knob<SlubPolicy>] = &[
        knob!(
            "order", "order rule (docs/theory/slub.md 5.3 to 5.6)",
            order: OrderRule [
                "halving" = Halving, "clamped" = Clamped, "single" = Single, "patel-v3" = PatelV3
            ]
        ),
        knob!("min_order", "slub_min_order", min_order: number 0 to 10),
        knob!("max_order", "slub_max_order", max_order: number 0 to 10),
        knob!("min_objects", "slub_min_objects, 0 for the rule by CPUs", min_objects: number 0 to 32767),
        knob!(
            "order_cpus", "CPUs the order rule counts, 0 for the machine's (docs/theory/slub.md 5.1)",
            order_cpus: number 0 to 65535
        ),
        knob!(
            "min_partial", "slabs a node keeps (docs/theory/slub.md 4.5)",
            min_partial_slabs: auto or 0 to 1 << 20
        ),
        knob!(
            "cpu_partial", "objects on a CPU's partial list (docs/theory/slub.md 4.4)",
            cpu_partial_objects: auto or 0 to 1 << 20
        ),
        knob!(
            "cpu_partial_rule", "how the CPU's partial list is bounded (docs/theory/slub.md 4.4)",
            cpu_partial: CpuPartial ["off" = Off, "objects" = Objects, "slabs" = Slabs]
        ),
        knob!(
            "partial_frozen", "slabs on a CPU's partial list are frozen (docs/theory/slub.md 2.1)",
            partial_frozen: no or yes
        ),
        knob!(
            "empty", "when an emptied slab goes back (docs/theory/slub.md 4.2)",
            empty: EmptySlab ["at-once" = AtOnce, "min-partial" = BeyondMinPartial]
        ),
        knob!(
            "update", "how a slab's state changes (docs/theory/slub.md 2.1)",
            update: SlabUpdate ["bit-lock" = BitLock, "word" = Word]
        ),
        knob!(
            "first_try",
            "flags of the first, high-order attempt; the last three are ideas of 2009 \
             (docs/theory/slub.md 6)",
            first_try: FirstTry [
                "noretry" = NoRetry, "noretry-nofail" = NoRetryNoFail, "nowait" = NoWait,
                "noreclaim" = NoReclaim, "freepages-check" = FreePagesCheck,
                "nowait-nokswapd" = NoWaitNoKswapd, "nowait-nokswapd-nopage" = NoWaitNoKswapdNoPage
            ]
        ),
        knob!(
            "memoryless", "requests for nodes without memory (docs/theory/slub.md 10)",
            memoryless: Memoryless ["as-asked" = AsAsked, "nearest" = Nearest, "anywhere" = Anywhere]
        ),
        knob!(
            "remote_search", "when other nodes' lists are searched (docs/theory/slub.md 3)",
            remote_search: RemoteSearch ["unless-thisnode" = UnlessThisNode, "any-node-only" = AnyNodeOnly]
        ),
        knob!(
            "defrag_ratio", "other nodes are searched in this many of 1024 cases (docs/theory/slub.md 3.1)",
            defrag_ratio: number 0 to 1024
        ),
        knob!(
            "cpu_slab", "CPUs have slabs of their own, partial ones too (docs/theory/slub.md 2.2)",
            cpu_slab: no or yes
        ),
        knob!(
            "sheaves", "what sits in front of slabs (docs/theory/sheaves.md 2)",
            sheaves: Sheaves ["off" = Off, "opt-in" = OptIn, "all" = All]
        ),
        knob!(
            "refill", "who may fill a sheaf from slabs (docs/theory/sheaves.md 3)",
            refill: Refill ["may-block" = MayBlock, "always" = Always]
        ),
        knob!(
            "barns", "which nodes have barns (docs/theory/sheaves.md 8)",
            barns: Barns ["memory-nodes" = MemoryNodes, "online-nodes" = OnlineNodes]
        ),
        knob!(
            "elastic", "objects in a CPU's first sheaf where sheaves grow with their use, 0 for the kernel's",
            elastic: number 0 to 1 << 16
        ),
        knob!(
            "min_partial_rule", "how many slabs a node keeps by size (docs/theory/slub.md 4.5)",
            min_partial: MinPartial ["log2" = Log2, "half-log2" = HalfLog2]
        ),
        knob!(
            "link", "where a free object keeps its link (docs/theory/slub.md 7)",
            link: LinkPlace ["start" = Start, "middle" = Middle]
        ),
    ];

    fn release(&self) -> Release {
        self.release
    }
}
