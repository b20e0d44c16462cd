//! SLUB's policies.
//!
//! Each field of [`SlubPolicy`] is one policy that can be changed alone; [`super::eras`] has the presets by
//! release and the knobs. Releases that no source confirms are marked "from memory" in docs/theory/slub.md.

use crate::cache::{CacheFlags, CacheSpec, LinkPlace};
use crate::order::OrderRule;
use crate::release::{Release, ZoneReclaimMode};
use core::num::NonZeroU16;
use slablab_pages::Attempt;
use slablab_platform::{Gfp, HotArray};

/// How a cache's per-CPU partial list is bounded (docs/theory/slub.md 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPartial {
    /// None: 2.6 and 3.0.
    Off,
    /// 3.2 to 5.15: counted in objects believed free when the slab was put there.
    Objects,
    /// 5.16 and later: counted in slabs, assumed half full.
    Slabs,
}

/// When a slab that a free empties goes back (docs/theory/slub.md 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptySlab {
    /// At once: 2.6.
    AtOnce,
    /// When its node's list already holds `min_partial`.
    BeyondMinPartial,
}

/// How a slab's state changes (docs/theory/slub.md 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlabUpdate {
    /// Under the slab's bit lock: 2.6. Counted as `lock_slab`; the transition itself is the same word's.
    BitLock,
    /// By compare-exchange of one word.
    Word,
}

/// How many empty or partial slabs a node keeps (docs/theory/slub.md 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinPartial {
    /// log2 of the size, 5 to 10: 2.6.29 to 2.6.32.
    Log2,
    /// Half of log2 of the size, 5 to 10: 3.x and later.
    HalfLog2,
}

/// What a request for a node without memory means (docs/theory/slub.md 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memoryless {
    /// That node: every such allocation mismatches.
    AsAsked,
    /// The nearest node with memory: 3.18 to about 5.10.
    Nearest,
    /// No node: about 5.11 to 6.19.
    Anywhere,
    /// That node, which has no list: other nodes' lists, as if its own were empty. 7.0 and later.
    Others,
}

/// Flags of the first, high-order attempt at a slab (docs/theory/slub.md 6).
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
    /// As `NoRetry`, but not at all unless more than an eighth of all pages is free: Zhang Yanmin, February
    /// 2009.
    FreePagesCheck,
    /// As `NoRetry`, but may not wait, and kswapd is not woken: Hugh Dickins' second variant, February 2009.
    NoWaitNoKswapd,
    /// The same, and without a second pass over the free lists at a lower watermark: his third variant.
    NoWaitNoKswapdNoPage,
}

/// Whether other nodes' lists are searched when the wanted one has nothing (docs/theory/slub.md 3.1, 3.2).
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
            FirstTry::NoRetry | FirstTry::FreePagesCheck => quiet,
            FirstTry::NoWaitNoKswapd | FirstTry::NoWaitNoKswapdNoPage => quiet & !Gfp::RECLAIM,
            FirstTry::NoRetryNoFail => quiet & !Gfp::NOFAIL,
            FirstTry::NoWait if waits => (quiet | Gfp::NOMEMALLOC) & !(Gfp::DIRECT_RECLAIM | Gfp::NOFAIL),
            FirstTry::NoReclaim if waits => (quiet | Gfp::NOMEMALLOC) & !(Gfp::RECLAIM | Gfp::NOFAIL),
            FirstTry::NoWait | FirstTry::NoReclaim => quiet & !Gfp::NOFAIL,
        }
    }

    /// How far the page allocator goes for the first attempt. Before 4.4 no flag kept kswapd asleep.
    pub fn attempt(self) -> Attempt {
        match self {
            FirstTry::NoWaitNoKswapd => Attempt::NoKswapd,
            FirstTry::NoWaitNoKswapdNoPage => Attempt::Once,
            FirstTry::NoRetry
            | FirstTry::NoRetryNoFail
            | FirstTry::NoWait
            | FirstTry::NoReclaim
            | FirstTry::FreePagesCheck => Attempt::Full,
        }
    }
}

/// Where a slab notes its free objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeList {
    /// Links, unless what the engine serves chooses: malloc and object caches choose maps where no CPU slab
    /// is.
    Auto,
    /// In the objects: each links the next. All kernels.
    Links,
    /// In a map beside the page frames' descriptors, a bit for each object (docs/engines/slub.md). No kernel.
    Map,
}

/// What sits in front of slabs (docs/theory/sheaves.md 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sheaves {
    /// Nothing: until 6.17.
    Off,
    /// A sheaf for caches that ask for one: 6.18.
    OptIn,
    /// Sheaves for every cache, by size: 7.0.
    All,
}

/// Who may fill a sheaf from slabs when the barn has none (docs/theory/sheaves.md 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refill {
    /// Callers that may block: 6.18.
    MayBlock,
    /// Every caller: 7.0, since its third release candidate.
    Always,
}

/// When a refill reads the objects of the slabs that it takes them from (docs/theory/sheaves.md 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefillReads {
    /// Under the list's lock, which a refill then takes once for a node. No kernel.
    Locked,
    /// After it, since 7.0: what is left of the last slab goes back to the list under a second lock.
    After,
}

/// Which objects of a new slab a refill links (docs/theory/sheaves.md 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewLinks {
    /// All, before it takes some: until 7.1.
    All,
    /// Those that it does not take: since 7.2.
    Rest,
}

/// Where the last slab of a refill goes if it has objects left (docs/theory/sheaves.md 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// The head of its node's list: a version of 7.2's change that the kernel test robot rejected.
    Head,
    /// The tail: 7.0.
    Tail,
}

/// What becomes of objects of other nodes in a full RCU sheaf, when its grace period has ended
/// (docs/theory/sheaves.md 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RcuStrangers {
    /// They go to their slabs, and what is left with them: 6.18 to 7.1.
    Removed,
    /// They stay, and the sheaf goes to the barn: 7.2, by its counters.
    Kept,
}

/// How a bulk free parts objects of other nodes from the CPU's own (docs/theory/sheaves.md 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkStrangers {
    /// They leave in batches; the last object goes to the place of each: until 7.2.
    Batched,
    /// Each changes places with the first own object before it, and all are freed together: 7.3, by its
    /// counters and addresses.
    Swapped,
}

/// What the capacity of a sheaf follows from (docs/theory/sheaves.md 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SheafRule {
    /// The objects' size.
    Size,
    /// The size, and the number of CPUs as the order of slabs does: that of `Size` at 8 to 15 CPUs, a fifth
    /// more for each doubling. Asked for on the list in October 2025.
    SizeAndCpus,
}

/// What the refill of a sheaf does at the lists of other nodes (docs/theory/sheaves.md 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteRefill {
    /// Does not search them: the local list, then new slabs.
    Off,
    /// Waits for their locks: the release candidates of 7.0 that the kernel test robot reported.
    Wait,
    /// Tries their locks, and goes on to the next node where another CPU holds one: 7.0.
    Try,
}

/// Which nodes have barns (docs/theory/sheaves.md 8).
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
    /// Whether near zones are reclaimed before a farther node serves.
    pub zone_reclaim: ZoneReclaimMode,
    /// How the order is chosen.
    pub order: OrderRule,
    /// `slub_min_order`.
    pub min_order: u8,
    /// `slub_max_order`.
    pub max_order: u8,
    /// `slub_min_objects`, 0 for the rule by CPUs.
    pub min_objects: u16,
    /// CPUs the order rule counts; 0 for all of the machine's.
    pub order_cpus: u16,
    /// Where a free object keeps its link.
    pub link: LinkPlace,
    /// Slabs a node keeps.
    pub min_partial: MinPartial,
    /// `min_partial` of every cache, instead of the rule by size.
    pub min_partial_slabs: Option<u16>,
    /// Bounds of the rule: `MIN_PARTIAL`.
    pub min_partial_least: u16,
    /// `MAX_PARTIAL`.
    pub min_partial_most: u16,
    /// The per-CPU partial list.
    pub cpu_partial: CpuPartial,
    /// `cpu_partial` of every cache, in objects, instead of the rule by size.
    pub cpu_partial_objects: Option<u16>,
    /// What the rule by size is multiplied by: 1 in every release.
    pub cpu_partial_factor: u8,
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
    pub defrag_ratio: u16,
    /// CPUs have a slab of their own to allocate from, and perhaps partial ones: until 6.19.
    pub cpu_slab: bool,
    /// What sits in front of slabs.
    pub sheaves: Sheaves,
    /// Who may fill a sheaf.
    pub refill: Refill,
    /// When a refill reads the objects of listed slabs.
    pub refill_reads: RefillReads,
    /// A refill walks what it leaves of its last slab to the end: 7.0 and 7.1.
    pub refill_walks: bool,
    /// Which objects of a new slab a refill links.
    pub new_links: NewLinks,
    /// Where the last slab of a refill goes.
    pub leftover: Leftover,
    /// Objects of other nodes in sheaves that waited for a grace period.
    pub rcu_strangers: RcuStrangers,
    /// Objects of other nodes in a bulk free.
    pub bulk_strangers: BulkStrangers,
    /// What sheaves' capacity follows from.
    pub sheaf_rule: SheafRule,
    /// Objects in a sheaf of every cache that has sheaves; `None`: as `sheaf_rule` says.
    pub sheaf_capacity: Option<NonZeroU16>,
    /// What the rule's capacity is multiplied by.
    pub sheaf_factor: u8,
    /// `MAX_FULL_SHEAVES` of a barn.
    pub max_full_sheaves: u16,
    /// `MAX_EMPTY_SHEAVES` of a barn.
    pub max_empty_sheaves: u16,
    /// `PCS_BATCH_MAX`: objects that leave a main sheaf for slabs at a time, and objects of other nodes that
    /// are freed at a time.
    pub sheaf_batch: u8,
    /// What the refill of a sheaf does at the lists of other nodes.
    pub remote_refill: RemoteRefill,
    /// Which nodes have barns.
    pub barns: Barns,
    /// Objects that a CPU's first sheaf holds where sheaves grow with their use ([`sheaf`](super::sheaf)); 0
    /// for the kernel's, which do not.
    pub elastic: u16,
    /// Where a slab notes its free objects.
    pub freelist: FreeList,
}

/// Most objects in a sheaf: with its header, 8 KiB on a machine of 64 bits.
pub(super) const SHEAF_MOST: u32 = 1020;

impl SlubPolicy {
    /// `min_partial` for a size.
    pub fn min_partial_of(&self, size: u32) -> u32 {
        match (self.min_partial, self.min_partial_slabs) {
            (_, Some(set)) => set.into(),
            (MinPartial::Log2, None) => self.within_bounds(size.ilog2()),
            (MinPartial::HalfLog2, None) => self.within_bounds(size.ilog2() / 2),
        }
    }

    fn within_bounds(&self, slabs: u32) -> u32 {
        slabs.min(self.min_partial_most.into()).max(self.min_partial_least.into())
    }

    /// Objects in a sheaf of a cache on a machine with so many CPUs: what its size gives, so that the sheaf
    /// fills its kmalloc class, and at least what it asked for (docs/theory/sheaves.md 2). 0 for none.
    pub fn sheaf_capacity_of(&self, spec: &CacheSpec, size: u32, page_size: u32, cpus: u32) -> u32 {
        let by_size = match size {
            size if size >= page_size => 4,
            1024.. => 12,
            256.. => 26,
            _ => 60,
        };
        // Each of these sheaves is in a class of a power of two: 64, 128, 256 and 512 bytes.
        let header = HotArray::<()>::HEADER;
        let class_words = (header + by_size).next_power_of_two();
        let asked = match self.sheaves {
            Sheaves::Off => 0,
            Sheaves::OptIn => spec.sheaf_capacity,
            Sheaves::All if spec.flags.has(CacheFlags::NO_SHEAVES) => 0,
            Sheaves::All => spec.sheaf_capacity.max(class_words - header),
        };
        match (asked, self.sheaf_capacity) {
            (0, _) => 0,
            (_, Some(set)) => set.get().into(),
            (by_rule, None) => {
                (by_rule * u32::from(self.sheaf_factor) * self.fifths(cpus) / 5).clamp(1, SHEAF_MOST)
            }
        }
    }

    /// How many fifths of the capacity by size a sheaf has.
    fn fifths(&self, cpus: u32) -> u32 {
        match self.sheaf_rule {
            SheafRule::Size => 5,
            SheafRule::SizeAndCpus => cpus.max(1).ilog2() + 2,
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
            (_, Some(set)) => set.into(),
            (CpuPartial::Objects, None) => by_size([2, 6, 13, 30]) * u32::from(self.cpu_partial_factor),
            (CpuPartial::Slabs, None) => by_size([6, 24, 52, 120]) * u32::from(self.cpu_partial_factor),
        }
    }

    /// The CPU partial list's limit for slabs of so many objects: slabs, or objects until 5.15; 0 without
    /// such lists. 5.16's rule assumes slabs half full.
    pub fn cpu_partial_limit(&self, size: u32, objects_per_slab: u64, page_size: u32) -> u32 {
        let objects = self.cpu_partial_of(size, page_size);
        match self.cpu_partial {
            _ if !self.cpu_slab => 0,
            CpuPartial::Off => 0,
            CpuPartial::Objects => objects,
            CpuPartial::Slabs => (2 * objects as u64).div_ceil(objects_per_slab) as u32,
        }
    }
}
