//! Slab orders: how many pages a slab has, by era.
//!
//! Each rule is one variant of an enum and one function. The rules are described in docs/theory/slub.md 5,
//! docs/theory/slqb.md 3 and docs/theory/slab.md 5. A rule computes with the object's size, the page size and
//! the number of CPUs. It runs when a cache is created, never on a fast path.
//!
//! Versions 1 and 2 of Patel's patch are known from version 3's list of changes alone (docs/theory/slub.md
//! 5.6). Deliberately absent: SLOB, whose pages belong to no cache.

pub mod slab;

use crate::cache::WORD;
use crate::release::Release;
use slab::{BREAK_ORDER, Orders, Shape};

/// The CPUs that an era counts when it creates a cache (docs/theory/slub.md 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpusCounted {
    /// All CPUs that may ever be present (`nr_cpu_ids`): until 5.10.
    Possible,
    /// The CPUs that are online when the cache is created; 1 for caches of early boot: 5.11.0 only.
    Online,
    /// The CPUs that are present; if that is 1, the possible CPUs: 5.11.1 and later.
    Present,
}

/// The CPUs of a machine when a cache is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCounts {
    /// The highest possible CPU number plus one (`nr_cpu_ids`).
    pub possible: u32,
    /// CPUs that are plugged in.
    pub present: u32,
    /// CPUs that are running.
    pub online: u32,
}

impl CpusCounted {
    /// The count that the release's rule uses.
    pub fn of(release: Release) -> CpusCounted {
        match release.cmp(&Release::new(5, 11, 0)) {
            core::cmp::Ordering::Less => CpusCounted::Possible,
            core::cmp::Ordering::Equal => CpusCounted::Online,
            core::cmp::Ordering::Greater => CpusCounted::Present,
        }
    }

    /// The number of CPUs, for [`OrderInput::cpus`].
    pub const fn count(self, cpus: CpuCounts) -> u32 {
        match self {
            CpusCounted::Possible => cpus.possible,
            CpusCounted::Online => cpus.online,
            CpusCounted::Present if cpus.present <= 1 => cpus.possible,
            CpusCounted::Present => cpus.present,
        }
    }
}

/// The input of every rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderInput {
    /// Bytes per object, including metadata and padding; 0 counts as 1.
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

/// The rule by which an era chooses a slab's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRule {
    /// 2.6.26: [`OrderRule::Halving`], but the tolerated waste begins with 1/8 instead of 1/16. It is not
    /// known which release changed it; 2.6.29 has 1/16.
    Halving8,
    /// 2.6.27 to 2.6.29: halve the number of wanted objects until an order fits.
    Halving,
    /// 2.6.30 to 6.6: limit the number of wanted objects, then decrease it one by one.
    Clamped,
    /// 6.7 and later: one search that tolerates a waste of up to half of the slab.
    Single,
    /// Jay Patel's RFC v1 of 2023, as version 3's list of changes tells it: the order that wastes least, from
    /// the smallest one for the wanted objects up to the largest; of two such orders the smaller one.
    PatelV1,
    /// Jay Patel's RFC v2 of 2023, as version 3's list of changes tells it: version 1; but order 3 where the
    /// wanted objects need more, and the smallest order where they fit in less than a page. Its
    /// `slub_max_order` is 2 at most.
    PatelV2,
    /// Jay Patel's RFC v3 of 2023: the tolerated fraction grows with the page size (docs/theory/slub.md 5.6).
    PatelV3,
    /// Programs' heaps, and no kernel: as [`OrderRule::Single`], but for no more objects than [`LEAN_BYTES`]
    /// hold, or four. Most caches of a program hold few objects, and a slab's pages are touched when it is
    /// made.
    Lean,
    /// SLQB: order 0 if it wastes at most a quarter, else 1, else the smallest order that holds an object.
    Slqb,
    /// SLAB of 2.6.32: order 0 if it wastes at most an eighth, else 1, else the smallest order that holds an
    /// object. The free list is in the slab or in an object of another cache ([`slab`]).
    Slab,
    /// SLAB since 3.13: like [`OrderRule::Slab`], but the free list has one byte per object.
    SlabIndex,
}

/// `PAGE_ALLOC_COSTLY_ORDER`: the default of `slub_max_order`.
pub const COSTLY_ORDER: u8 = 3;
/// `slub_max_order` of Patel's second version.
const PATEL_V2_MAX_ORDER: u8 = 2;
/// The largest order the page allocator serves.
pub const MAX_ORDER: u8 = 10;
/// Bytes that the objects of a slab of [`OrderRule::Lean`] need not exceed, if they are four.
pub const LEAN_BYTES: u64 = 16 << 10;
/// Most objects in a slab: 15 bits since 3.x. 2.6.32 allowed 65535, but no slab of these orders holds that
/// many.
pub const OBJECTS_MAX: u64 = 32767;

impl OrderRule {
    /// All rules, oldest first.
    pub const ALL: [OrderRule; 11] = [
        OrderRule::Slab,
        OrderRule::Halving8,
        OrderRule::Halving,
        OrderRule::Slqb,
        OrderRule::Clamped,
        OrderRule::SlabIndex,
        OrderRule::PatelV1,
        OrderRule::PatelV2,
        OrderRule::PatelV3,
        OrderRule::Single,
        OrderRule::Lean,
    ];

    /// The name that users write.
    pub const fn name(self) -> &'static str {
        match self {
            OrderRule::Halving8 => "halving-8",
            OrderRule::Halving => "halving",
            OrderRule::Clamped => "clamped",
            OrderRule::Single => "single",
            OrderRule::PatelV1 => "patel-v1",
            OrderRule::PatelV2 => "patel-v2",
            OrderRule::PatelV3 => "patel-v3",
            OrderRule::Lean => "lean",
            OrderRule::Slqb => "slqb",
            OrderRule::Slab => "slab",
            OrderRule::SlabIndex => "slab-index",
        }
    }

    /// The allocator and releases that use the rule, in a few words.
    pub const fn whose(self) -> &'static str {
        match self {
            OrderRule::Halving8 => "SLUB 2.6.26",
            OrderRule::Halving => "SLUB 2.6.27 to 2.6.29",
            OrderRule::Clamped => "SLUB 2.6.30 to 6.6",
            OrderRule::Single => "SLUB 6.7 and later",
            OrderRule::PatelV1 => "Jay Patel's RFC v1 of 2023, from v3's list of changes",
            OrderRule::PatelV2 => "Jay Patel's RFC v2 of 2023, from v3's list of changes",
            OrderRule::PatelV3 => "Jay Patel's RFC v3 of 2023",
            OrderRule::Lean => "no kernel: SLUB as a program's malloc",
            OrderRule::Slqb => "SLQB",
            OrderRule::Slab => "SLAB 2.6.32, caches that are not reclaimable",
            OrderRule::SlabIndex => "SLAB 6.1, caches that are not reclaimable",
        }
    }

    /// The rule with this name. `jay-v1` to `jay-v3` are other names of `patel-v1` to `patel-v3`.
    pub fn parse(name: &str) -> Option<OrderRule> {
        let name = match name {
            "jay-v1" => "patel-v1",
            "jay-v2" => "patel-v2",
            "jay-v3" => "patel-v3",
            other => other,
        };
        OrderRule::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// SLUB's rule in a release.
    pub fn of(release: Release) -> OrderRule {
        match release {
            release if release < Release::new(2, 6, 27) => OrderRule::Halving8,
            release if release < Release::new(2, 6, 30) => OrderRule::Halving,
            release if release < Release::new(6, 7, 0) => OrderRule::Clamped,
            _ => OrderRule::Single,
        }
    }

    /// The number of objects in a slab of this order. SLAB stores its free list in the slab, so fewer objects
    /// fit. For any order but the one that SLAB's rule chooses, this is the number without a list.
    pub fn objects(self, input: OrderInput, order: u8) -> u64 {
        let fit = input.slab_bytes(order) / input.bytes();
        match self {
            OrderRule::Slab | OrderRule::SlabIndex => match self.shape(input) {
                Some(shape) if shape.order == order => shape.objects,
                _ => fit,
            },
            // A page counts its objects in 16 bits (docs/theory/slqb.md 1).
            OrderRule::Slqb => fit.min(u16::MAX as u64),
            // The order cannot be lowered below 0, and one page of 256 KiB has room for more objects.
            _ => fit.min(OBJECTS_MAX),
        }
    }

    /// The order that the rule chooses. Above [`MAX_ORDER`] only if no slab of the machine holds an object.
    pub fn order(self, input: OrderInput) -> u8 {
        match self {
            OrderRule::Halving8 => input.search_downwards(input.wanted_objects(), 8, |m| m / 2, true),
            OrderRule::Halving => input.search_downwards(input.wanted_objects(), 16, |m| m / 2, true),
            OrderRule::Clamped => {
                let clamped = input.wanted_objects().min(input.slab_bytes(input.max_order) / input.bytes());
                input.search_downwards(clamped, 16, |m| m - 1, true)
            }
            OrderRule::Single => input.search_once(input.wanted_objects()),
            OrderRule::Lean => {
                let few = (LEAN_BYTES / input.bytes()).max(4);
                input.search_once(input.wanted_objects().min(few))
            }
            OrderRule::PatelV1 => input.search_least_waste(),
            OrderRule::PatelV2 => {
                let bytes = input.wanted_objects() * input.bytes();
                match bytes {
                    _ if bytes > input.slab_bytes(COSTLY_ORDER) => {
                        COSTLY_ORDER.max(input.fitting_order(input.bytes()))
                    }
                    _ if bytes < input.slab_bytes(0) => input.min_order,
                    _ => {
                        let max_order = input.max_order.min(PATEL_V2_MAX_ORDER);
                        OrderInput { max_order, ..input }.search_least_waste()
                    }
                }
            }
            OrderRule::PatelV3 => {
                let clamped = input.wanted_objects().min(input.slab_bytes(input.max_order) / input.bytes());
                let pages_of_4k = 1u64 << (input.page_shift - 12);
                let fraction = 16 + if pages_of_4k == 1 { 0 } else { pages_of_4k };
                input.search_downwards(clamped, fraction, |m| m - 1, false)
            }
            OrderRule::Slqb => input.search_slqb(),
            OrderRule::Slab | OrderRule::SlabIndex => {
                self.shape(input).map_or(input.fitting_order(input.bytes()), |shape| shape.order)
            }
        }
    }

    /// SLAB's slab. Sizes are rounded already here, so the alignment is one word. A free object is assumed to
    /// hold the index, because a size does not tell whether the contents of free objects must survive.
    fn shape(self, input: OrderInput) -> Option<Shape> {
        let OrderInput { page_shift, .. } = input;
        let size = input.size.max(1);
        if self == OrderRule::SlabIndex {
            let orders = Orders::of(false, BREAK_ORDER);
            return Shape::with_index(size, size, page_shift, orders).map(|found| found.shape);
        }
        Shape::of(size, WORD, page_shift, false)
    }
}

/// The `slub_max_order` that a release boots with: 1 until 2.6.25, then 3 (docs/theory/slub.md 1).
pub fn default_max_order(release: Release) -> u8 {
    if release < Release::new(2, 6, 26) { 1 } else { COSTLY_ORDER }
}

/// The `slub_min_objects` that a release boots with: 4 until 2.6.25, then 0, which computes it from the CPUs
/// (docs/theory/slub.md 5.1).
pub fn default_min_objects(release: Release) -> u32 {
    if release < Release::new(2, 6, 26) { 4 } else { 0 }
}

impl OrderInput {
    /// The number of objects a slab should hold: `min_objects`, or 4 * (bits in the number of CPUs + 1) if
    /// that is 0.
    pub fn wanted_objects(self) -> u64 {
        match self.min_objects {
            0 => 4 * (u32::BITS - self.cpus.leading_zeros() + 1) as u64,
            set => set as u64,
        }
    }

    /// Bytes per object, at least 1.
    fn bytes(self) -> u64 {
        self.size.max(1) as u64
    }

    /// Bytes of a slab of this order.
    pub fn slab_bytes(self, order: u8) -> u64 {
        1u64 << (self.page_shift + order as u32)
    }

    /// The smallest order whose slab has at least `bytes` bytes.
    pub fn fitting_order(self, bytes: u64) -> u8 {
        let pages = bytes.div_ceil(1 << self.page_shift).max(1);
        pages.next_power_of_two().ilog2() as u8
    }

    /// The first order, from the smallest one for `objects` objects up to the maximum, that wastes at most
    /// 1/`fraction` of the slab.
    fn scan(self, objects: u64, fraction: u64) -> Option<u8> {
        if self.slab_bytes(self.min_order) / self.bytes() > OBJECTS_MAX {
            return Some(self.fitting_order(self.bytes() * OBJECTS_MAX).saturating_sub(1));
        }
        let first = self.min_order.max(self.fitting_order(objects * self.bytes()));
        (first..=self.max_order).find(|order| {
            let bytes = self.slab_bytes(*order);
            bytes % self.bytes() <= bytes / fraction
        })
    }

    fn search_downwards(self, objects: u64, fraction: u64, less: fn(u64) -> u64, single: bool) -> u8 {
        // Patel's version counts down to one object, and has no separate step for a single object. The other
        // rules stop at two, and have that step.
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
        self.fitting_order(self.bytes())
    }

    fn search_once(self, wanted: u64) -> u8 {
        let most = (self.slab_bytes(self.max_order) / self.bytes()).max(1);
        let wanted = wanted.min(most);
        [16, 8, 4, 2]
            .into_iter()
            .find_map(|fraction| self.scan(wanted, fraction))
            .unwrap_or(self.fitting_order(self.bytes()))
    }

    /// The order that wastes the smallest part of its slab, from the smallest for the wanted objects, or as
    /// many as the largest slab has, up to the largest.
    fn search_least_waste(self) -> u8 {
        let fits = self.fitting_order(self.bytes());
        let wanted = self.wanted_objects().min(self.slab_bytes(self.max_order) / self.bytes()).max(1);
        let first = self.min_order.max(self.fitting_order(wanted * self.bytes()));
        // In parts of the largest slab, whose bytes are a multiple of each other one's.
        let waste = |order: u8| (self.slab_bytes(order) % self.bytes()) << (MAX_ORDER - order);
        (first..=self.max_order.min(MAX_ORDER)).min_by_key(|order| waste(*order)).unwrap_or(fits)
    }

    fn search_slqb(self) -> u8 {
        let least = (self.min_objects as u64).max(1);
        let first = self.min_order.max(self.fitting_order(self.bytes()));
        let small = (first..=1).find(|order| {
            let bytes = self.slab_bytes(*order);
            bytes / self.bytes() >= least && bytes % self.bytes() * 4 <= bytes
        });
        small.unwrap_or_else(|| {
            (first..=MAX_ORDER).find(|order| self.slab_bytes(*order) / self.bytes() >= least).unwrap_or(first)
        })
    }
}
