//! The rules in which releases differ, one enum each, and the presets that name a set of them.
//!
//! The presets are Linux 6.1, 6.12, 6.18 and 7.2. The origin of each rule is in its comment: "model" is a
//! description of the model that was read, "from memory" is what the author remembers of the release.
//! Nothing here was fitted. Rules: docs/theory/vm.md 4.

use crate::settings::Settings;

/// Pages of a batch, and refaults below which a tier is fine (from memory: `MIN_LRU_BATCH`).
pub const BATCH: u64 = 64;

/// Most pages that a batch looked at until 7.1 (from memory: `MAX_LRU_BATCH`).
const LOOK_MOST: u32 = 4096;

/// Where a page enters that no fault brought (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A clean page of a file: the oldest generation. Anonymous, or wanted by reclaim and not clean yet: the
    /// one after it. 6.1 at its release.
    Oldest,
    /// The second oldest if there are four generations. Anonymous, or wanted and not clean yet: the second
    /// youngest. 6.1.70 and 6.7 to 6.13; pages of five accesses are moved on there too.
    SecondOldest,
    /// By its part in the working set: the oldest, or the one after it for a page of the working set. A page
    /// that a fault brings begins in the second youngest, one of the working set in the youngest. Since 6.14.
    Workingset,
}

/// What the first accessed bit found means for a page (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promotion {
    /// The page moves to the youngest generation. 6.1 to 6.13.
    AtOnce,
    /// The first time it is marked, and the second time moves. Since 6.14.
    SecondLook,
}

/// How the type to evict is chosen (from memory; model for `FirstTier`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeRule {
    /// The type whose oldest generation is older; if both are alike, the first tiers' refaults decide. 6.1 to
    /// 6.13.
    FirstTier,
    /// The refaults of all tiers decide, whatever the generations. Since 6.14.
    AllTiers,
}

/// How the oldest generations of both types move (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oldest {
    /// Anonymous never passes files; files wait for anonymous unless forced. 6.1 to 6.13.
    Coupled,
    /// Each on its own; at most one behind by more than a generation. Since 6.14.
    Apart,
}

/// When a new generation begins (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aging {
    /// At three generations: if the youngest holds more than half of the pages, or the oldest less than a
    /// quarter. At two: always. 6.1 to 6.13.
    Spread,
    /// Always below four generations. Since 6.14.
    Full,
}

/// Who begins it for kswapd (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ager {
    /// kswapd before each of its rounds, at every priority; its eviction never does. 6.1.
    Round,
    /// The eviction, below the first priority, as that of allocations. Since 6.3.
    Eviction,
}

/// When the eviction of one node stops before it scanned its share (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Allocations: after two new generations, or when they have enough and swapped. From the third priority
    /// on, all: when free pages reach the mark. 6.1.
    Late,
    /// When it has enough; kswapd also when free pages reach the mark. Since 6.7.
    Enough,
}

/// The priority that kswapd begins a round with (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstPriority {
    /// 12. 6.1.
    Default,
    /// That at which one pass would do, by the inactive pages: 6 to 12. Since 6.11.
    Estimated,
}

/// How much worse than the first tier another tier may refault before it is protected (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// Twice. 6.1 to 6.13.
    Double,
    /// Half as much again. Since 6.14.
    Half,
}

/// Which refaults the controller learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recent {
    /// Those evicted from what is the oldest generation still (from memory). 6.1 to 6.13.
    Oldest,
    /// Those evicted less than four generations before the youngest (model). Since 6.14.
    Window,
}

/// What `workingset_refault_*` and `workingset_activate_*` count (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Refaults: recent ones. Activations: pages protected for their tier. 6.1.
    Recent,
    /// Refaults: all. Activations: recent refaults. 6.5 to 6.13.
    All,
    /// Refaults: all. Activations: recent refaults by faults. Since 6.14.
    Faults,
}

/// Whether eviction wakes the flushers when the oldest generation is dirty (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushers {
    /// Nobody. 6.1 to 6.12.
    Asleep,
    /// The pass, when all pages of files that it met were dirty. 6.13 to 7.1.
    Woken,
    /// Each batch, when all of its pages were dirty and nobody wrote them. Since 7.2.
    Batch,
}

/// When a pass computes how many pages it looks at, and what counts as one (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Before each batch. A look that isolates no page counts for nothing: the other type is tried, and
    /// without a page of that one the pass ends. At the first priority no generation begins. Until 7.1.
    Each,
    /// Once, at its begin. Each page that it looks at counts; the other type is tried only if the first one
    /// has no page to look at. A generation begins at the first priority too, if no page can go without one.
    /// Since 7.2.
    Once,
}

/// What a pass does that began a generation (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAging {
    /// It ends. 6.3 to 7.1.
    Stops,
    /// It evicts one batch more. Since 7.2, of a reclaimer for the whole machine.
    Batch,
    /// It goes on. With [`AfterAging::Batch`] a reclaimer for a memory group does.
    Goes,
}

/// What is done with pages of files that the scan meets dirty or under writeback (from memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirtyFiles {
    /// They get into the next generation. Until 7.1.
    Next,
    /// They are isolated as others. The eviction, which cannot write them, makes them active. Since 7.2.
    Isolated,
}

/// The rules of a release. Each field can be changed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Major and minor number of the release.
    pub release: (u16, u16),
    /// Where a page enters that no fault brought.
    pub placement: Placement,
    /// What the first accessed bit means.
    pub promotion: Promotion,
    /// How the type is chosen.
    pub types: TypeRule,
    /// How the oldest generations move.
    pub oldest: Oldest,
    /// When a new generation begins.
    pub aging: Aging,
    /// Who begins it for kswapd.
    pub ager: Ager,
    /// When eviction stops.
    pub stop: Stop,
    /// kswapd's first priority.
    pub first_priority: FirstPriority,
    /// The margin of tiers.
    pub margin: Margin,
    /// Which refaults count.
    pub recent: Recent,
    /// What the counters count.
    pub counted: Counted,
    /// Who wakes the flushers.
    pub flushers: Flushers,
    /// How a pass counts.
    pub budget: Budget,
    /// Most pages that a batch looks at.
    pub look: u32,
    /// What follows a new generation.
    pub after_aging: AfterAging,
    /// Dirty pages of files.
    pub dirty: DirtyFiles,
    /// Pages under writeback hold reclaimers up as those of the classic lists (from memory: since 7.2).
    pub congestion: bool,
    /// An allocation that must not start I/O takes pages of files first (from memory: since 6.8).
    pub no_io_is_file: bool,
    /// Aging walks page tables (bit 1 of `lru_gen/enabled`). If not, only eviction looks at accessed bits.
    pub walks: bool,
    /// Aging skips page tables whose own accessed bit is clear (bit 2 of `lru_gen/enabled`).
    pub skips_tables: bool,
    /// Generations younger than this are the working set: if all are, a task is killed. Milliseconds.
    pub min_ttl_ms: u64,
    /// Raised watermarks make kswapd reclaim, without writes.
    pub boost: bool,
    /// Reclaimers sleep for the reasons of `reclaim_throttle`.
    pub throttle: bool,
    /// kswapd goes on for the order that was asked for; if not, only for single pages.
    pub kswapd_order: bool,
    /// Slab caches are shrunk along with the lists.
    pub slabs: bool,
}

impl Rules {
    /// The rules of Linux 6.1, as of 6.1.70 and later.
    pub const V6_1: Rules = Rules {
        release: (6, 1),
        placement: Placement::SecondOldest,
        promotion: Promotion::AtOnce,
        types: TypeRule::FirstTier,
        oldest: Oldest::Coupled,
        aging: Aging::Spread,
        ager: Ager::Round,
        stop: Stop::Late,
        first_priority: FirstPriority::Default,
        margin: Margin::Double,
        recent: Recent::Oldest,
        counted: Counted::Recent,
        flushers: Flushers::Asleep,
        budget: Budget::Each,
        look: LOOK_MOST,
        after_aging: AfterAging::Stops,
        dirty: DirtyFiles::Next,
        congestion: false,
        no_io_is_file: false,
        walks: true,
        skips_tables: true,
        min_ttl_ms: 0,
        boost: true,
        throttle: true,
        kswapd_order: true,
        slabs: true,
    };

    /// The rules of Linux 6.12.
    pub const V6_12: Rules = Rules {
        release: (6, 12),
        ager: Ager::Eviction,
        stop: Stop::Enough,
        first_priority: FirstPriority::Estimated,
        counted: Counted::All,
        no_io_is_file: true,
        ..Rules::V6_1
    };

    /// The rules of Linux 6.18.
    pub const V6_18: Rules = Rules {
        release: (6, 18),
        placement: Placement::Workingset,
        promotion: Promotion::SecondLook,
        types: TypeRule::AllTiers,
        oldest: Oldest::Apart,
        aging: Aging::Full,
        margin: Margin::Half,
        recent: Recent::Window,
        counted: Counted::Faults,
        flushers: Flushers::Woken,
        no_io_is_file: false,
        ..Rules::V6_12
    };

    /// The rules of Linux 7.2.
    pub const V7_2: Rules = Rules {
        release: (7, 2),
        budget: Budget::Once,
        look: BATCH as u32,
        after_aging: AfterAging::Batch,
        dirty: DirtyFiles::Isolated,
        flushers: Flushers::Batch,
        congestion: true,
        ..Rules::V6_18
    };

    /// Whether aging walks page tables, by what the administrator set.
    pub(crate) fn walks_now(&self, settings: &Settings) -> bool {
        settings.lru_gen.map_or(self.walks, |bits| bits & 2 != 0)
    }

    /// Whether it skips tables whose own accessed bit is clear, by what the administrator set.
    pub(crate) fn skips_tables_now(&self, settings: &Settings) -> bool {
        settings.lru_gen.map_or(self.skips_tables, |bits| bits & 4 != 0)
    }

    /// The rules of a release.
    pub fn of(major: u16, minor: u16) -> Option<Rules> {
        let all = [Rules::V6_1, Rules::V6_12, Rules::V6_18, Rules::V7_2];
        all.into_iter().find(|rules| rules.release == (major, minor))
    }
}
