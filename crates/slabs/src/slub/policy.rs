//! SLUB's policies and their presets by release.
//!
//! Each field is one policy that can be changed alone. Where a release is from memory in the reference, docs/fidelity.md
//! says so.

use crate::cache::{CacheSpec, LinkPlace};
use crate::order::{COSTLY_ORDER, OrderRule};
use crate::preset::{AUTO, Knob, Policy, Release, Values};
use slablab_platform::{Gfp, HotArray};

/// How a cache's per-CPU partial list is bounded (reference/slub.md 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPartial {
    /// None: 2.6 and 3.0.
    Off,
    /// 3.2 to 5.15: counted in objects believed free when the slab was put there.
    Objects,
    /// 5.16 and later: counted in slabs, assumed half full.
    Slabs,
}

/// When a slab that a free empties goes back (reference/slub.md 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptySlab {
    /// At once: 2.6.
    AtOnce,
    /// When its node's list already holds `min_partial`.
    BeyondMinPartial,
}

/// How a slab's state changes (reference/slub.md 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlabUpdate {
    /// Under the slab's bit lock: 2.6. Counted as `lock_slab`; the transition itself is the same word's.
    BitLock,
    /// By compare-exchange of one word.
    Word,
}

/// How many empty or partial slabs a node keeps (reference/slub.md 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinPartial {
    /// log2 of the size, 5 to 10: 2.6.29 to 2.6.32.
    Log2,
    /// Half of log2 of the size, 5 to 10: 3.x and later.
    HalfLog2,
    /// A number.
    Fixed(u32),
}

/// What a request for a node without memory means (reference/slub.md 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memoryless {
    /// That node: every such allocation mismatches.
    AsAsked,
    /// The nearest node with memory: 3.18 to about 5.10.
    Nearest,
    /// No node: about 5.11 and later.
    Anywhere,
}

/// Flags of the first, high-order attempt at a slab (reference/slub.md 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstTry {
    /// The caller's, with NOWARN and NORETRY; NOFAIL stays: 2.6.26 to 2.6.30.
    NoRetry,
    /// The same without NOFAIL: 2.6.31 to 4.2.
    NoRetryNoFail,
    /// May not wait if the order can fall back: 4.3 to 4.5.
    NoWait,
    /// Neither direct reclaim nor a wake of kswapd: 4.6 and later.
    NoReclaim,
}

/// Whether other nodes' lists are searched when the wanted one has nothing (reference/slub.md 3.1, 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteSearch {
    /// Always, unless the caller insists on the node: 2.6 to 3.0.
    UnlessThisNode,
    /// Only when no node was asked for: 3.2 and later.
    AnyNodeOnly,
}

impl FirstTry {
    /// The flags of the first attempt; `can_fall_back` when the smallest order is lower.
    pub fn flags(self, gfp: Gfp, can_fall_back: bool) -> Gfp {
        let quiet = gfp | Gfp::NOWARN | Gfp::NORETRY;
        let waits = gfp.has(Gfp::DIRECT_RECLAIM) && can_fall_back;
        match self {
            FirstTry::NoRetry => quiet,
            FirstTry::NoRetryNoFail => quiet & !Gfp::NOFAIL,
            FirstTry::NoWait if waits => (quiet | Gfp::NOMEMALLOC) & !(Gfp::DIRECT_RECLAIM | Gfp::NOFAIL),
            FirstTry::NoReclaim if waits => (quiet | Gfp::NOMEMALLOC) & !(Gfp::RECLAIM | Gfp::NOFAIL),
            FirstTry::NoWait | FirstTry::NoReclaim => quiet & !Gfp::NOFAIL,
        }
    }
}

/// What sits in front of slabs (reference/sheaves.md 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sheaves {
    /// Nothing: until 6.17.
    Off,
    /// A sheaf for caches that ask for one: 6.18.
    OptIn,
    /// Sheaves for every cache, by size: 7.0.
    All,
}

/// Who may fill a sheaf from slabs when the barn has none (reference/sheaves.md 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refill {
    /// Callers that may block: 6.18.
    MayBlock,
    /// Every caller: 7.0, since its third release candidate.
    Always,
}

/// Which nodes have barns (reference/sheaves.md 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barns {
    /// Nodes with memory; CPUs of the others share the nearest one's: until 7.0.
    MemoryNodes,
    /// Every node; the sheaves of CPUs whose node has no memory take objects of any node: 7.1.
    OnlineNodes,
}

/// SLUB as a set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlubPolicy {
    /// The release these policies are of.
    pub release: Release,
    /// How the order is chosen.
    pub order: OrderRule,
    /// `slub_min_order`.
    pub min_order: u8,
    /// `slub_max_order`.
    pub max_order: u8,
    /// `slub_min_objects`, 0 for the rule by CPUs.
    pub min_objects: u32,
    /// CPUs the order rule counts; 0 for all of the machine's.
    pub order_cpus: u32,
    /// Where a free object keeps its link.
    pub link: LinkPlace,
    /// Slabs a node keeps.
    pub min_partial: MinPartial,
    /// The per-CPU partial list.
    pub cpu_partial: CpuPartial,
    /// `cpu_partial` of every cache, in objects, instead of the rule by size.
    pub cpu_partial_objects: Option<u32>,
    /// Slabs on a CPU's partial list are frozen: until 6.7.
    pub partial_frozen: bool,
    /// When an emptied slab goes back.
    pub empty: EmptySlab,
    /// How a slab's state changes.
    pub update: SlabUpdate,
    /// Flags of the first attempt.
    pub first_try: FirstTry,
    /// Requests for nodes without memory.
    pub memoryless: Memoryless,
    /// Whether other nodes' lists are searched.
    pub remote_search: RemoteSearch,
    /// `remote_node_defrag_ratio` as stored: other nodes are searched in this many of 1024 cases.
    pub defrag_ratio: u32,
    /// CPUs have a slab of their own to allocate from, and perhaps partial ones: until 6.19.
    pub cpu_slab: bool,
    /// What sits in front of slabs.
    pub sheaves: Sheaves,
    /// Who may fill a sheaf.
    pub refill: Refill,
    /// Which nodes have barns.
    pub barns: Barns,
}

const V2_6_29: SlubPolicy = SlubPolicy {
    release: Release::new(2, 6, 29),
    order: OrderRule::Halving,
    min_order: 0,
    max_order: COSTLY_ORDER,
    min_objects: 0,
    order_cpus: 0,
    link: LinkPlace::Start,
    min_partial: MinPartial::Log2,
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

impl SlubPolicy {
    /// `min_partial` for a size.
    pub fn min_partial_of(&self, size: u32) -> u32 {
        match self.min_partial {
            MinPartial::Log2 => size.ilog2().clamp(5, 10),
            MinPartial::HalfLog2 => (size.ilog2() / 2).clamp(5, 10),
            MinPartial::Fixed(slabs) => slabs,
        }
    }

    /// Objects in a sheaf of a cache: what its size gives, so that the sheaf fills its kmalloc class, and at least what it
    /// asked for (reference/sheaves.md 2). 0 for none.
    pub fn sheaf_capacity_of(&self, spec: &CacheSpec, size: u32, page_size: u32) -> u32 {
        let by_size = match size {
            size if size >= page_size => 4,
            1024.. => 12,
            256.. => 26,
            _ => 60,
        };
        // Each of these sheaves is in a class of a power of two: 64, 128, 256 and 512 bytes.
        let header = HotArray::<()>::HEADER;
        let class_words = (header + by_size).next_power_of_two();
        match self.sheaves {
            Sheaves::Off => 0,
            Sheaves::OptIn => spec.sheaf_capacity,
            Sheaves::All if spec.flags.no_sheaves => 0,
            Sheaves::All => spec.sheaf_capacity.max(class_words - header),
        }
    }

    /// `cpu_partial` for a size, in objects.
    pub fn cpu_partial_of(&self, size: u32, page_size: u32) -> u32 {
        let by_size = |classes: [u32; 4]| match size {
            size if size >= page_size => classes[0],
            size if size >= 1024 => classes[1],
            size if size >= 256 => classes[2],
            _ => classes[3],
        };
        match (self.cpu_partial, self.cpu_partial_objects) {
            (CpuPartial::Off, _) => 0,
            (_, Some(set)) => set,
            (CpuPartial::Objects, None) => by_size([2, 6, 13, 30]),
            (CpuPartial::Slabs, None) => by_size([6, 24, 52, 120]),
        }
    }
}

macro_rules! words {
    ($field:ident, $type:ident, $($word:literal = $variant:ident),+) => {
        (
            Values::Words(&[$($word),+]),
            |policy| [$($type::$variant),+].iter().position(|value| *value == policy.$field).unwrap_or(0) as u64,
            |policy, value| policy.$field = [$($type::$variant),+][value as usize],
        )
    };
}

type Accessors = (Values, fn(&SlubPolicy) -> u64, fn(&mut SlubPolicy, u64));

const fn knob(name: &'static str, what: &'static str, of: Accessors) -> Knob<SlubPolicy> {
    Knob { name, what, values: of.0, get: of.1, set: of.2 }
}

impl Policy for SlubPolicy {
    const ENGINE: &'static str = "slub";
    const PRESETS: &'static [SlubPolicy] =
        &[V2_6_29, V2_6_32, V3_2, V5_10, V5_16, V6_1, V6_8, V6_12, V6_18, V7_0, V7_1];
    const KNOBS: &'static [Knob<SlubPolicy>] = &[
        knob(
            "order",
            "order rule (slub.md 5.3 to 5.6)",
            words!(
                order,
                OrderRule,
                "halving" = Halving,
                "clamped" = Clamped,
                "single" = Single,
                "patel-v3" = PatelV3
            ),
        ),
        knob(
            "min_order",
            "slub_min_order",
            (Values::Number(0, 10), |p| p.min_order as u64, |p, v| p.min_order = v as u8),
        ),
        knob(
            "max_order",
            "slub_max_order",
            (Values::Number(0, 10), |p| p.max_order as u64, |p, v| p.max_order = v as u8),
        ),
        knob(
            "min_objects",
            "slub_min_objects, 0 for the rule by CPUs",
            (Values::Number(0, 32767), |p| p.min_objects as u64, |p, v| p.min_objects = v as u32),
        ),
        knob(
            "order_cpus",
            "CPUs the order rule counts, 0 for the machine's (slub.md 5.1)",
            (Values::Number(0, 65535), |p| p.order_cpus as u64, |p, v| p.order_cpus = v as u32),
        ),
        knob(
            "min_partial",
            "slabs a node keeps (slub.md 4.5)",
            (
                Values::Auto(0, 1 << 20),
                |p| match p.min_partial {
                    MinPartial::Fixed(slabs) => slabs as u64,
                    MinPartial::Log2 | MinPartial::HalfLog2 => AUTO,
                },
                |p, v| {
                    p.min_partial = match v {
                        AUTO if p.release < Release::new(3, 0, 0) => MinPartial::Log2,
                        AUTO => MinPartial::HalfLog2,
                        slabs => MinPartial::Fixed(slabs as u32),
                    }
                },
            ),
        ),
        knob(
            "cpu_partial",
            "objects on a CPU's partial list (slub.md 4.4)",
            (
                Values::Auto(0, 1 << 20),
                |p| p.cpu_partial_objects.map_or(AUTO, u64::from),
                |p, v| p.cpu_partial_objects = (v != AUTO).then_some(v as u32),
            ),
        ),
        knob(
            "cpu_partial_rule",
            "how the CPU's partial list is bounded (slub.md 4.4)",
            words!(cpu_partial, CpuPartial, "off" = Off, "objects" = Objects, "slabs" = Slabs),
        ),
        knob(
            "partial_frozen",
            "slabs on a CPU's partial list are frozen (slub.md 2.1)",
            (Values::Words(&["no", "yes"]), |p| p.partial_frozen as u64, |p, v| p.partial_frozen = v == 1),
        ),
        knob(
            "empty",
            "when an emptied slab goes back (slub.md 4.2)",
            words!(empty, EmptySlab, "at-once" = AtOnce, "min-partial" = BeyondMinPartial),
        ),
        knob(
            "update",
            "how a slab's state changes (slub.md 2.1)",
            words!(update, SlabUpdate, "bit-lock" = BitLock, "word" = Word),
        ),
        knob(
            "first_try",
            "flags of the first, high-order attempt (slub.md 6)",
            words!(
                first_try,
                FirstTry,
                "noretry" = NoRetry,
                "noretry-nofail" = NoRetryNoFail,
                "nowait" = NoWait,
                "noreclaim" = NoReclaim
            ),
        ),
        knob(
            "memoryless",
            "requests for nodes without memory (slub.md 10)",
            words!(memoryless, Memoryless, "as-asked" = AsAsked, "nearest" = Nearest, "anywhere" = Anywhere),
        ),
        knob(
            "remote_search",
            "when other nodes' lists are searched (slub.md 3)",
            words!(
                remote_search,
                RemoteSearch,
                "unless-thisnode" = UnlessThisNode,
                "any-node-only" = AnyNodeOnly
            ),
        ),
        knob(
            "defrag_ratio",
            "other nodes are searched in this many of 1024 cases (slub.md 3.1)",
            (Values::Number(0, 1024), |p| p.defrag_ratio as u64, |p, v| p.defrag_ratio = v as u32),
        ),
        knob(
            "cpu_slab",
            "CPUs have slabs of their own, partial ones too (slub.md 2.2, sheaves.md 1)",
            (Values::Words(&["no", "yes"]), |p| p.cpu_slab as u64, |p, v| p.cpu_slab = v == 1),
        ),
        knob(
            "sheaves",
            "what sits in front of slabs (sheaves.md 2)",
            words!(sheaves, Sheaves, "off" = Off, "opt-in" = OptIn, "all" = All),
        ),
        knob(
            "refill",
            "who may fill a sheaf from slabs (sheaves.md 3)",
            words!(refill, Refill, "may-block" = MayBlock, "always" = Always),
        ),
        knob(
            "barns",
            "which nodes have barns (sheaves.md 8)",
            words!(barns, Barns, "memory-nodes" = MemoryNodes, "online-nodes" = OnlineNodes),
        ),
    ];

    fn release(&self) -> Release {
        self.release
    }
}
