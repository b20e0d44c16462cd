//! What changed between kernels, as named values.
//!
//! A [`PagesPolicy`] holds one field per rule that some release changed, so that an experiment changes one at
//! a time. [`PagesPolicy::for_release`] fills them for a release; the table below is its whole knowledge.
//!
//! | field | until | from | source |
//! |---|---|---|---|
//! | `search` | 2.4.9 free and clean, 2.4.10 classzone | 2.6 zonelist | docs/theory/pagealloc.md 8 |
//! | `order_check` | 4.3 halving | 4.4 any block | docs/theory/pagealloc.md 2 |
//! | `gap` | 4.5 quarter | 4.6 scaled | docs/theory/pagealloc.md 2 |
//! | `min_free_cap_kib` | 5.8 65536 | 5.9 262144 | "5.x", from memory |
//! | `min_free` | 2.6.37 computed | 2.6.38 huge pages | watermarks of every dump in the ground truth |
//! | `pcp` | 4.18 31/186 order 0, 5.13 63/378 order 0 | 5.14 orders 0 to 3 | docs/theory/pagealloc.md 3 |
//! | `steal`, `no_fragment` | 4.11, 4.20 | 4.12, 5.0 | docs/theory/pagealloc.md 1; releases from memory |
//! | `reserve` | 4.3 last resort | 4.4 high-order atomic | docs/theory/pagealloc.md 1 and 2 |
//! | `merge_to_tail` | 2.6.34 | 2.6.35 | docs/theory/pagealloc.md 1; release from memory |
//! | `kswapd`, `harder` | 4.3 | 4.4 | docs/theory/pagealloc.md 4 and 5 |
//! | `compaction` | 2.6.34 none | 2.6.35 direct | docs/theory/pagealloc.md 5 |
//! | `this_node_gives_up` | 4.3 | 4.4 | docs/theory/pagealloc.md 4 |
//! | `zone_reclaim` | 2.6.39 distance 20, 3.15 distance 30 | 3.16 off | docs/theory/pagealloc.md 6; releases
//! from memory |

/// Highest order any world uses, plus one: Linux has 13 on arm64 with 64 KiB pages, mapped memory has 17.
pub const ORDERS: usize = 18;

/// Orders of the blocks on a CPU's page lists: 0 to 3.
pub(crate) const PCP_ORDERS: usize = 4;

/// The rules of one kernel's page allocator. [`PagesPolicy::for_release`] makes one; change a field to ask
/// "what if".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesPolicy {
    /// In which order a request tries free lists, clean pages and reclaim.
    pub search: Search,
    /// Whether zones are reclaimed locally before a request goes to the next node.
    pub zone_reclaim: ZoneReclaim,
    /// Whether pages are grouped by mobility (2.6.24; from memory). Without, all requests are of one type.
    pub grouping: bool,
    /// Whether allocations less frees are counted (`memory_pressure` of 2.4.8 and 2.4.9;
    /// [`Pages::pressure`]).
    ///
    /// [`Pages::pressure`]: crate::Pages::pressure
    pub counts_pressure: bool,
    /// How a watermark is tested for orders above 0.
    pub order_check: OrderCheck,
    /// Distance between the min, low and high watermarks.
    pub gap: Gap,
    /// What `min_free_kbytes` is.
    pub min_free: MinFree,
    /// Upper clamp of the computed `min_free_kbytes`.
    pub min_free_cap_kib: u32,
    /// Per-CPU page lists.
    pub pcp: PcpRule,
    /// How a block of another migrate type is taken.
    pub steal: Steal,
    /// Prefer a lower zone to mixing migrate types (`ALLOC_NOFRAGMENT`).
    pub no_fragment: bool,
    /// The use of the reserved migrate type.
    pub reserve: Reserve,
    /// Put a freed block at the tail of its list when its buddy pair would likely merge further.
    pub merge_to_tail: bool,
    /// Serve requests from memory that was used before, also from a larger block, instead of `merge_to_tail`.
    /// No kernel's: for a world where untouched memory costs more.
    pub resident_first: bool,
    /// Nodes may begin in front of a multiple of the largest block, with smaller blocks, of which none is cut
    /// by the node's start. In kernels they do not. Without `grouping` only, or a pageblock would begin in
    /// front of its zone.
    pub begins_anywhere: bool,
    /// Which requests wake kswapd.
    pub kswapd: Kswapd,
    /// Which requests may go below min by a further quarter (`ALLOC_HARDER`).
    pub harder: Harder,
    /// When requests compact memory directly.
    pub compaction: Compaction,
    /// `THISNODE|NORETRY|NOWARN` together fail at once, without waking kswapd.
    pub this_node_gives_up: bool,
    /// Which zones a node has.
    pub zones: Option<ZoneRule>,
    /// Highest order, inclusive; `None`: usual for the page size (10 for 4 KiB, 11 for 16 KiB, 8 for 64 KiB).
    pub max_order: Option<u8>,
    /// Order of a pageblock; `None`: 2 MiB, at most the highest order.
    pub pageblock_order: Option<u8>,
    /// Divisor of `lowmem_reserve`: a zone keeps `frames of the zones above / ratio` from requests that could
    /// use those. 0: nothing kept. 256 in every dump of the ground truth.
    pub lowmem_reserve_ratio: u32,
    /// How often a request is repeated that the world says it makes progress for.
    pub retries: Retries,
}

/// How often a request is repeated while the world answers that reclaim made progress. An answer of no
/// progress ends the rounds under both: the world knows that nothing will change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retries {
    /// At most this many rounds of reclaim. For worlds where waiting costs no time, so that nothing changes
    /// between two rounds.
    Bounded(u32),
    /// As Linux does: no bound for orders up to 3 and for `__GFP_NOFAIL`. For worlds where waiting costs
    /// time. Whether a task waits for ever is the world's to find: it sees every round
    /// ([`Reclaim::attempt`]), and knows when a page was last freed.
    ///
    /// [`Reclaim::attempt`]: slablab_platform::Reclaim::attempt
    AsKernel,
}

impl Retries {
    /// Whether another round is allowed after `rounds`.
    pub(crate) const fn allows(self, rounds: u32) -> bool {
        match self {
            Retries::Bounded(most) => rounds < most,
            Retries::AsKernel => true,
        }
    }
}

/// In which order a request tries free lists, clean pages and reclaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// 2.6 and later: zones by watermarks, then the slow path (docs/theory/pagealloc.md 5).
    Zonelist,
    /// 2.4.8, 2.4.9 and -ac: free pages, then zones by free pages and `inactive_clean` ones together
    /// (docs/theory/pagealloc.md 8.1).
    FreeAndClean {
        /// Whether a request that may wait takes a clean page rather than one of the free lists.
        steals: bool,
    },
    /// 2.4.10: zones of the class by free pages; the reclaimer gets what it freed (docs/theory/pagealloc.md
    /// 8.2).
    Classzone {
        /// Whether the reclaimer keeps pages that it frees (`PF_FREE_PAGES`).
        keeps_freed: bool,
    },
}

/// `zone_reclaim_mode`: whether a request that finds a near zone below its watermark asks the world to free
/// pages of it ([`slablab_platform::ReclaimStep::Zone`]) before it goes on to the next zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneReclaim {
    /// Never.
    Off,
    /// On every machine.
    On,
    /// On machines where two nodes are farther from each other than this (`RECLAIM_DISTANCE`).
    Above(u32),
}

/// How a watermark is tested for orders above 0 (docs/theory/pagealloc.md 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderCheck {
    /// Until 4.3: free memory in blocks of at least order o must exceed the mark halved o times, for every o
    /// up to the order.
    Halving,
    /// Since 4.4: any one block of the order or above will do.
    AnyBlock,
}

/// Distance between the watermarks of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// low = min + min/4, high = min + min/2.
    Quarter,
    /// gap = max(min/4, frames * factor / 10000); low = min + gap, high = min + 2 * gap. The factor is
    /// `watermark_scale_factor`, 10 by default.
    Scaled(u32),
    /// low = 2 * min, high = 3 * min: 2.4.
    Multiples,
}

/// What `min_free_kbytes` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinFree {
    /// sqrt(16 * memory in KiB), clamped to 128 and `min_free_cap_kib`.
    Computed,
    /// What a kernel with transparent huge pages raises it to: 11 pageblocks per populated zone, at most 5 %
    /// of memory (the limit is from memory), never below the computed value. Explains the watermarks of every
    /// dump in the ground truth.
    HugePages,
    /// Set by the administrator.
    Kib(u32),
    /// 2.4: each zone's min is 1/32 (`DMA`) or 1/128 of its frames, at least this many and at most 255.
    ZoneRatio(u32),
}

/// Per-CPU page lists (docs/theory/pagealloc.md 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcpRule {
    /// Highest order kept per CPU.
    pub max_order: u8,
    /// Most memory behind a batch computation: 512 KiB (batch 31) or 1 MiB (batch 63).
    pub batch_cap_bytes: u32,
    /// When a list overflows.
    pub high: PcpHigh,
}

impl PcpRule {
    /// No per-CPU page lists: every request takes `zone->lock`.
    pub const NONE: PcpRule = PcpRule { max_order: 0, batch_cap_bytes: 0, high: PcpHigh::Batches(0) };
}

/// When a CPU's page lists of a zone overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PcpHigh {
    /// At a multiple of the batch: 6 until 5.13.
    Batches(u32),
    /// At the zone's low watermark divided by the CPUs of its node, at least 4 batches: 5.14 and later.
    LowMark,
    /// The same at first; then each CPU's lists tune their length, as they do since 6.7. For worlds where
    /// time goes by between requests: [`PagesPolicy::for_release`] has it for none.
    Tuned,
}

/// How a block of another migrate type is taken (docs/theory/pagealloc.md 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steal {
    /// Largest block first; the pageblock is claimed for blocks from half a pageblock's order on, or for
    /// reclaimable requests.
    Largest,
    /// Largest block first; the pageblock is claimed also for unmovable requests. A request that cannot claim
    /// takes the smallest block instead.
    ClaimOrSmallest,
}

/// The use of the reserved migrate type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserve {
    /// No such pageblocks.
    None,
    /// `MIGRATE_RESERVE`: up to two pageblocks per zone, used when everything else failed.
    LastResort,
    /// `MIGRATE_HIGHATOMIC`: up to 1 % of a zone, for atomic requests above order 0.
    HighAtomic,
}

/// Which requests wake kswapd on the slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kswapd {
    /// All requests.
    Always,
    /// Requests with `__GFP_KSWAPD_RECLAIM`.
    IfAsked,
    /// No request: for the question what waking kswapd changes.
    Never,
}

/// Which requests may go below the min watermark by a further quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harder {
    /// Requests that may not wait.
    CannotWait,
    /// Requests that may not wait, with `__GFP_HIGH` and without `__GFP_NOMEMALLOC`.
    Atomic,
}

/// When requests compact memory directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// None; reclaim is lumpy (the world's business).
    None,
    /// Before reclaim for costly or unmovable orders, and after it.
    Direct,
}

/// Which zones a node has: data, because it depends on the architecture, which nothing here knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneRule {
    /// One zone, `Normal`: ppc64, and any machine with large pages.
    One,
    /// One zone, `DMA32`: a small x86-64 guest without a `DMA` zone, whose memory ends below 4 GiB.
    OneDma32,
    /// `DMA32` below 4 GiB and `Normal`. arm64 calls the lower one `DMA`.
    Below4G,
    /// `DMA` below 16 MiB, `DMA32` below 4 GiB, `Normal`: x86-64.
    X86,
    /// `DMA` below 16 MiB, `Normal` below 896 MiB, `HighMem`: x86 of 32 bits.
    I386,
}

impl ZoneRule {
    /// Zones of a node, lowest first: name and end address in bytes.
    pub const fn ends(self) -> &'static [(&'static str, u64)] {
        match self {
            ZoneRule::One => &[("Normal", u64::MAX)],
            ZoneRule::OneDma32 => &[("DMA32", u64::MAX)],
            ZoneRule::Below4G => &[("DMA32", 4 << 30), ("Normal", u64::MAX)],
            ZoneRule::I386 => &[("DMA", 16 << 20), ("Normal", 896 << 20), ("HighMem", u64::MAX)],
            ZoneRule::X86 => &[("DMA", 16 << 20), ("DMA32", 4 << 30), ("Normal", u64::MAX)],
        }
    }
}

impl PagesPolicy {
    /// Orders above this are costly: no OOM kill for them, and they fail rather than retry
    /// (`PAGE_ALLOC_COSTLY_ORDER`).
    pub const COSTLY_ORDER: u8 = 3;

    /// Whether watermarks rise when a block is taken for another migrate type: since 5.0, as `no_fragment`,
    /// and where kswapd can lower them.
    pub const fn boosts(&self) -> bool {
        self.no_fragment && matches!(self.retries, Retries::AsKernel)
    }

    /// Whether per-CPU page lists tune their length.
    pub const fn tunes(&self) -> bool {
        matches!(self.pcp.high, PcpHigh::Tuned)
    }

    /// The same rules, with per-CPU page lists that tune their length.
    #[must_use]
    pub const fn tuned(self) -> PagesPolicy {
        PagesPolicy { pcp: PcpRule { high: PcpHigh::Tuned, ..self.pcp }, ..self }
    }

    /// The rules of a release. Releases up to 2.4 get those of 2.4.8, 2.4.9 or 2.4.10, whichever is nearest;
    /// later ones before 2.6.29 get 2.6.29's.
    pub const fn for_release(major: u32, minor: u32, patch: u32) -> PagesPolicy {
        let version = Version(major, minor, patch);
        if !version.since(2, 5, 0) {
            return PagesPolicy::of_2_4(version.since(2, 4, 10));
        }
        let v4_4 = version.since(4, 4, 0);
        PagesPolicy {
            search: Search::Zonelist,
            zone_reclaim: version.zone_reclaim(),
            grouping: true,
            counts_pressure: false,
            order_check: if v4_4 { OrderCheck::AnyBlock } else { OrderCheck::Halving },
            gap: if version.since(4, 6, 0) { Gap::Scaled(10) } else { Gap::Quarter },
            min_free: if version.since(2, 6, 38) { MinFree::HugePages } else { MinFree::Computed },
            min_free_cap_kib: if version.since(5, 9, 0) { 262144 } else { 65536 },
            pcp: version.pcp(),
            steal: if version.since(4, 12, 0) { Steal::ClaimOrSmallest } else { Steal::Largest },
            no_fragment: version.since(5, 0, 0),
            reserve: if v4_4 { Reserve::HighAtomic } else { Reserve::LastResort },
            merge_to_tail: version.since(2, 6, 35),
            resident_first: false,
            begins_anywhere: false,
            kswapd: if v4_4 { Kswapd::IfAsked } else { Kswapd::Always },
            harder: if v4_4 { Harder::Atomic } else { Harder::CannotWait },
            compaction: if version.since(2, 6, 35) { Compaction::Direct } else { Compaction::None },
            this_node_gives_up: !v4_4,
            zones: None,
            max_order: None,
            pageblock_order: None,
            lowmem_reserve_ratio: 256,
            retries: Retries::Bounded(16),
        }
    }
}

/// A kernel release, for comparisons in a `const fn`.
#[derive(Clone, Copy)]
struct Version(u32, u32, u32);

impl Version {
    const fn since(self, major: u32, minor: u32, patch: u32) -> bool {
        let Version(a, b, c) = self;
        a > major || a == major && (b > minor || b == minor && c >= patch)
    }

    const fn zone_reclaim(self) -> ZoneReclaim {
        if self.since(3, 16, 0) {
            ZoneReclaim::Off
        } else {
            ZoneReclaim::Above(if self.since(3, 0, 0) { 30 } else { 20 })
        }
    }

    const fn pcp(self) -> PcpRule {
        let batch_cap_bytes = if self.since(4, 19, 0) { 1 << 20 } else { 512 << 10 };
        if self.since(5, 14, 0) {
            PcpRule { max_order: 3, batch_cap_bytes, high: PcpHigh::LowMark }
        } else {
            PcpRule { max_order: 0, batch_cap_bytes, high: PcpHigh::Batches(6) }
        }
    }
}
