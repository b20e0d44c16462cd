//! Slab orders: how many pages a slab has, by era.
//!
//! One enum, one function per rule, from docs/theory/slub.md 5, docs/theory/slqb.md 3 and
//! docs/theory/slab.md 5. A rule is arithmetic on the object's size, the page size and the number of CPUs; it
//! runs at cache creation, never on a fast path.
//!
//! Deliberately absent: Patel's first and second version, of which only the third one's list of changes is
//! known (docs/theory/slub.md 5.6), and SLOB, whose pages belong to no cache.

pub mod slab;

use crate::cache::WORD;
use crate::release::Release;
use slab::{BREAK_ORDER, Orders, Shape};

/// Which CPUs an era counts when it creates a cache (docs/theory/slub.md 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpusCounted {
    /// All that may ever come (`nr_cpu_ids`): until 5.10.
    Possible,
    /// Those online at that moment, 1 for caches of early boot: 5.11.0 only.
    Online,
    /// Those plugged in; the possible ones when that says one: 5.11.1 and later.
    Present,
}

/// A machine's CPUs when a cache is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCounts {
    /// The highest number a CPU can have, plus one (`nr_cpu_ids`).
    pub possible: u32,
    /// Plugged in.
    pub present: u32,
    /// Running.
    pub online: u32,
}

impl CpusCounted {
    /// The quantity that the release's rule counts.
    pub fn of(release: Release) -> CpusCounted {
        match release.cmp(&Release::new(5, 11, 0)) {
            core::cmp::Ordering::Less => CpusCounted::Possible,
            core::cmp::Ordering::Equal => CpusCounted::Online,
            core::cmp::Ordering::Greater => CpusCounted::Present,
        }
    }

    /// How many: [`OrderInput::cpus`].
    pub const fn count(self, cpus: CpuCounts) -> u32 {
        match self {
            CpusCounted::Possible => cpus.possible,
            CpusCounted::Online => cpus.online,
            CpusCounted::Present if cpus.present <= 1 => cpus.possible,
            CpusCounted::Present => cpus.present,
        }
    }
}

/// What every rule needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderInput {
    /// Bytes per object, all included.
    pub size: u32,
    /// log2 of the page size.
    pub page_shift: u32,
    /// CPUs that the kernel counted when the cache was created: [`CpusCounted`].
    pub cpus: u32,
    /// `slub_min_order`.
    pub min_order: u8,
    /// `slub_max_order`.
    pub max_order: u8,
    /// `slub_min_objects`; 0 computes it from the CPUs.
    pub min_objects: u32,
}

/// How an era chooses a slab's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRule {
    /// 2.6.26: as [`OrderRule::Halving`], tolerating an eighth where that begins with a sixteenth. Which
    /// release changed it is not known; 2.6.29 has the sixteenth.
    Halving8,
    /// 2.6.27 to 2.6.29: halve the objects wanted until something fits.
    Halving,
    /// 2.6.30 to 6.6: clamp the objects wanted, then decrease them one by one.
    Clamped,
    /// 6.7 and later: one search that tolerates up to half of the slab.
    Single,
    /// Jay Patel's RFC v3 of 2023: the tolerated fraction grows with the page size (docs/theory/slub.md 5.6).
    PatelV3,
    /// SLQB: order 0 if it wastes at most a quarter, else 1, else the smallest that fits.
    Slqb,
    /// SLAB of 2.6.32: order 0 if it wastes at most an eighth, else 1, else the smallest that fits, with the
    /// objects' list in the slab or beside it ([`slab`]).
    Slab,
    /// SLAB since 3.13: as before, with an index of a byte per object in place of the list.
    SlabIndex,
}

/// `PAGE_ALLOC_COSTLY_ORDER`: the default of `slub_max_order`.
pub const COSTLY_ORDER: u8 = 3;
/// The largest order the page allocator serves.
pub const MAX_ORDER: u8 = 10;
/// Most objects in a slab: 15 bits since 3.x. 2.6.32 allowed 65535; no slab of these orders reaches it.
pub const OBJECTS_MAX: u64 = 32767;

impl OrderRule {
    /// All rules, oldest first.
    pub const ALL: [OrderRule; 8] = [
        OrderRule::Slab,
        OrderRule::Halving8,
        OrderRule::Halving,
        OrderRule::Slqb,
        OrderRule::Clamped,
        OrderRule::SlabIndex,
        OrderRule::PatelV3,
        OrderRule::Single,
    ];

    /// The name users write.
    pub const fn name(self) -> &'static str {
        match self {
            OrderRule::Halving8 => "halving-8",
            OrderRule::Halving => "halving",
            OrderRule::Clamped => "clamped",
            OrderRule::Single => "single",
            OrderRule::PatelV3 => "patel-v3",
            OrderRule::Slqb => "slqb",
            OrderRule::Slab => "slab",
            OrderRule::SlabIndex => "slab-index",
        }
    }

    /// Whose rule it is, in a few words.
    pub const fn whose(self) -> &'static str {
        match self {
            OrderRule::Halving8 => "SLUB 2.6.26",
            OrderRule::Halving => "SLUB 2.6.27 to 2.6.29",
            OrderRule::Clamped => "SLUB 2.6.30 to 6.6",
            OrderRule::Single => "SLUB 6.7 and later",
            OrderRule::PatelV3 => "Jay Patel's RFC v3 of 2023",
            OrderRule::Slqb => "SLQB",
            OrderRule::Slab => "SLAB 2.6.32, caches that are not reclaimable",
            OrderRule::SlabIndex => "SLAB 6.1, caches that are not reclaimable",
        }
    }

    /// The rule of this name; `jay-v3` is Patel's too.
    pub fn parse(name: &str) -> Option<OrderRule> {
        let name = if name == "jay-v3" { "patel-v3" } else { name };
        OrderRule::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// The rule of SLUB in a release.
    pub fn of(release: Release) -> OrderRule {
        match release {
            release if release < Release::new(2, 6, 27) => OrderRule::Halving8,
            release if release < Release::new(2, 6, 30) => OrderRule::Halving,
            release if release < Release::new(6, 7, 0) => OrderRule::Clamped,
            _ => OrderRule::Single,
        }
    }

    /// Objects in a slab of this order. SLAB keeps its list in the slab, so that fewer fit; of any other than
    /// its own order it can only be said what fits without.
    pub fn objects(self, input: OrderInput, order: u8) -> u64 {
        let fit = input.slab_bytes(order) / input.size as u64;
        match self {
            OrderRule::Slab | OrderRule::SlabIndex => match self.shape(input) {
                Some(shape) if shape.order == order => shape.objects,
                _ => fit,
            },
            // A page counts them in 16 bits (docs/theory/slqb.md 1).
            OrderRule::Slqb => fit.min(u16::MAX as u64),
            // No order is lower than 0: one page of 256K has room for more.
            _ => fit.min(OBJECTS_MAX),
        }
    }

    /// The order of a slab.
    pub fn order(self, input: OrderInput) -> u8 {
        match self {
            OrderRule::Halving8 => input.search_downwards(input.wanted_objects(), 8, |m| m / 2, true),
            OrderRule::Halving => input.search_downwards(input.wanted_objects(), 16, |m| m / 2, true),
            OrderRule::Clamped => {
                let clamped =
                    input.wanted_objects().min(input.slab_bytes(input.max_order) / input.size as u64);
                input.search_downwards(clamped, 16, |m| m - 1, true)
            }
            OrderRule::Single => input.search_once(),
            OrderRule::PatelV3 => {
                let clamped =
                    input.wanted_objects().min(input.slab_bytes(input.max_order) / input.size as u64);
                let pages_of_4k = 1u64 << (input.page_shift - 12);
                let fraction = 16 + if pages_of_4k == 1 { 0 } else { pages_of_4k };
                input.search_downwards(clamped, fraction, |m| m - 1, false)
            }
            OrderRule::Slqb => input.search_slqb(),
            OrderRule::Slab | OrderRule::SlabIndex => {
                self.shape(input).map_or(input.fitting_order(input.size as u64), |shape| shape.order)
            }
        }
    }

    /// SLAB's slab; sizes here are rounded already, so that a word's alignment says no more. A free object
    /// may hold the index: contents that are kept over a free do not show in a size.
    fn shape(self, input: OrderInput) -> Option<Shape> {
        let OrderInput { size, page_shift, .. } = input;
        if self == OrderRule::SlabIndex {
            let orders = Orders::of(false, BREAK_ORDER);
            return Shape::with_index(size, size, page_shift, orders).map(|found| found.shape);
        }
        Shape::of(size, WORD, page_shift, false)
    }
}

/// `slub_max_order` that a release boots with: 1 until 2.6.25, 3 since (docs/theory/slub.md 1).
pub fn default_max_order(release: Release) -> u8 {
    if release < Release::new(2, 6, 26) { 1 } else { COSTLY_ORDER }
}

/// `slub_min_objects` that a release boots with: the constant 4 until 2.6.25, since then 0, which computes it
/// from the CPUs (docs/theory/slub.md 5.1).
pub fn default_min_objects(release: Release) -> u32 {
    if release < Release::new(2, 6, 26) { 4 } else { 0 }
}

impl OrderInput {
    /// Objects a slab should hold: 4 * (bits in the number of CPUs + 1), unless set.
    pub fn wanted_objects(self) -> u64 {
        match self.min_objects {
            0 => 4 * (u32::BITS - self.cpus.leading_zeros() + 1) as u64,
            set => set as u64,
        }
    }

    /// Bytes of a slab of this order.
    pub fn slab_bytes(self, order: u8) -> u64 {
        1u64 << (self.page_shift + order as u32)
    }

    /// The smallest order that holds this many bytes.
    pub fn fitting_order(self, bytes: u64) -> u8 {
        let pages = bytes.div_ceil(1 << self.page_shift).max(1);
        pages.next_power_of_two().ilog2() as u8
    }

    /// The first order from the smallest for `objects` up to the maximum whose tail is at most 1/`fraction`
    /// of the slab.
    fn scan(self, objects: u64, fraction: u64) -> Option<u8> {
        if self.slab_bytes(self.min_order) / self.size as u64 > OBJECTS_MAX {
            return Some(self.fitting_order(self.size as u64 * OBJECTS_MAX).saturating_sub(1));
        }
        let first = self.min_order.max(self.fitting_order(objects * self.size as u64));
        (first..=self.max_order).find(|order| {
            let bytes = self.slab_bytes(*order);
            bytes % self.size as u64 <= bytes / fraction
        })
    }

    fn search_downwards(self, objects: u64, fraction: u64, less: fn(u64) -> u64, single: bool) -> u8 {
        // Patel's version counts down to one object and has no single-object step; the others stop at two and
        // have it.
        let last = if single { 1 } else { 0 };
        let mut wanted = objects;
        while wanted > last {
            let mut tolerated = fraction;
            while tolerated >= 4 {
                if let Some(order) = self.scan(wanted, tolerated) {
                    return order;
                }
                tolerated /= 2;
            }
            wanted = less(wanted);
        }
        if single && let Some(order) = self.scan(1, 1) {
            return order;
        }
        self.fitting_order(self.size as u64)
    }

    fn search_once(self) -> u8 {
        let most = (self.slab_bytes(self.max_order) / self.size as u64).max(1);
        let wanted = self.wanted_objects().min(most);
        [16, 8, 4, 2]
            .into_iter()
            .find_map(|fraction| self.scan(wanted, fraction))
            .unwrap_or(self.fitting_order(self.size as u64))
    }

    fn search_slqb(self) -> u8 {
        let least = (self.min_objects as u64).max(1);
        let first = self.min_order.max(self.fitting_order(self.size as u64));
        let small = (first..=1).find(|order| {
            let bytes = self.slab_bytes(*order);
            bytes / self.size as u64 >= least && bytes % self.size as u64 * 4 <= bytes
        });
        small.unwrap_or_else(|| {
            (first..=MAX_ORDER)
                .find(|order| self.slab_bytes(*order) / self.size as u64 >= least)
                .unwrap_or(first)
        })
    }
}
