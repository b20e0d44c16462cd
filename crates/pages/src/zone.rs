//! A zone: the lists that `zone->lock` protects, and hints that CPUs read without the lock.
//!
//! Lock order: `zone->lock` is the innermost lock, and two of them are never held together.
//!
//! | state | protected by |
//! |---|---|
//! | [`Lists`], the `link` and `block` fields of free frames | `zone->lock` |
//! | [`Shared`]'s counters | written by the lock's holder when it unlocks; read without the lock, only as a hint |
//! | a free block's `state` | `zone->lock`; readers without the lock look for slabs only, and a free block is none |
//!
//! **Untouched memory is a range.** Every zone has a frontier: frames from `start + touched` on were never
//! handed out. They count as free movable blocks of the largest order behind the listed ones, and no
//! descriptor of theirs is ever read. A counter that was never published reads as what an untouched zone
//! would publish, so an unused zone costs its zeros.

use crate::list::List;
use crate::machine::{Machine, Marks, PcpSizes, Span};
use crate::migrate::MigrateType;
use crate::policy::ORDERS;
use crate::tuning::Tuning;
use core::ops::{Deref, DerefMut};
use slablab_platform::{Lock, NodeId, Platform, Word, rank};

/// What `zone->lock` protects.
#[derive(Debug)]
pub(crate) struct Lists {
    /// Free blocks per order and migrate type.
    pub(crate) free_area: [[List; MigrateType::COUNT]; ORDERS],
    /// Free frames: listed and beyond the frontier.
    pub(crate) free: u64,
    /// Frames in pageblocks reserved for atomic requests (`nr_reserved_highatomic`).
    pub(crate) reserved: u32,
    /// Frames before the frontier, counted from the zone's start.
    pub(crate) touched: u32,
    /// Where the frontier ends, counted from the zone's start: behind the last largest block.
    pub(crate) frontier_end: u32,
    /// Listed frames that may be resident (`report_free`).
    pub(crate) resident: u64,
    /// The least of `resident` since an epoch began ([`crate::Pages::least_resident`]).
    pub(crate) least_resident: u64,
    /// Orders whose counts changed since the lock was taken.
    pub(crate) dirty: u32,
    /// Whether the lock was ever taken.
    pub(crate) opened: bool,
}

impl Default for Lists {
    fn default() -> Self {
        Lists {
            free_area: [[List::default(); MigrateType::COUNT]; ORDERS],
            free: 0,
            reserved: 0,
            touched: 0,
            frontier_end: 0,
            resident: 0,
            least_resident: u64::MAX,
            dirty: 0,
            opened: false,
        }
    }
}

/// The shared state of a zone: the lock with the lists, and hints about them.
pub(crate) struct Shared<P: Platform> {
    lists: P::Lock<rank::Zone, Lists>,
    /// Free frames in the buddy lists and the frontier: [`published`].
    free: P::Word,
    /// Frames in pageblocks reserved for atomic requests.
    reserved: P::Word,
    /// Free frames that may be resident.
    resident: P::Word,
    /// Per order [`Blocks`], published.
    blocks: [P::Word; ORDERS],
    /// Frames by which the watermarks are raised (`watermark_boost`), and [`WAKES`]. Not atomic, as in Linux.
    boost: P::Word,
    /// Not 0: a request found the zone below its high mark (`ZONE_BELOW_HIGH`).
    is_low: P::Word,
}

impl<P: Platform> Default for Shared<P> {
    fn default() -> Self {
        Shared {
            lists: P::Lock::new(Lists::default()),
            free: P::Word::new(0),
            reserved: P::Word::new(0),
            resident: P::Word::new(0),
            blocks: core::array::from_fn(|_| P::Word::new(0)),
            boost: P::Word::new(0),
            is_low: P::Word::new(0),
        }
    }
}

impl<P: Platform> Shared<P> {
    /// Free frames in the buddy, as published; `None` before the zone's first use.
    pub(crate) fn published_free(&self) -> Option<u64> {
        match self.free.load() {
            0 => None,
            word => Some(word & !PUBLISHED),
        }
    }

    /// Free frames that may be resident, as published.
    pub(crate) fn resident(&self) -> u64 {
        self.resident.load()
    }
}

/// Free blocks of one order, as CPUs without the lock may read them. Bits: usual 0-30, reserve 31-61, 63 set
/// once published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Blocks on the lists of usual migrate types, the frontier included.
    pub(crate) usual: u32,
    /// Blocks on the reserve's list.
    pub(crate) reserve: u32,
}

impl Blocks {
    const BITS: u32 = 31;

    pub(crate) const fn pack(self) -> u64 {
        PUBLISHED | self.usual as u64 | (self.reserve as u64) << Blocks::BITS
    }

    pub(crate) const fn unpack(word: u64) -> Blocks {
        let mask = (1 << Blocks::BITS) - 1;
        Blocks { usual: (word & mask) as u32, reserve: (word >> Blocks::BITS & mask) as u32 }
    }
}

/// Set in a boost that kswapd does not know of (`ZONE_BOOSTED_WATERMARK`).
const WAKES: u64 = 1 << 63;

/// Set in every published hint: 0 means untouched.
const PUBLISHED: u64 = 1 << 63;

/// A zone seen from one call: its shared state and the numbers that follow from the topology.
pub(crate) struct Zone<'a, P: Platform> {
    pub(crate) shared: &'a Shared<P>,
    pub(crate) machine: &'a Machine,
    pub(crate) node: NodeId,
    pub(crate) index: u8,
    pub(crate) span: Span,
    /// [`Tuning`], packed; `None`: nothing was ever set.
    pub(crate) tuning: Option<&'a P::Word>,
}

impl<P: Platform> Clone for Zone<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Zone<'_, P> {}

impl<'a, P: Platform> Zone<'a, P> {
    /// Free frames in the buddy, per-CPU lists not included.
    pub(crate) fn free(&self) -> u64 {
        self.shared.published_free().unwrap_or(self.span.frames as u64)
    }

    /// Frames in reserved pageblocks.
    pub(crate) fn reserved(&self) -> u64 {
        self.shared.reserved.load()
    }

    /// Free blocks of an order.
    pub(crate) fn blocks(&self, order: u8) -> Blocks {
        match self.shared.blocks[order as usize].load() {
            0 => Blocks { usual: self.untouched_blocks(order), reserve: 0 },
            word => Blocks::unpack(word),
        }
    }

    /// Blocks of an order in the untouched zone: largest blocks, and what is in front of them and behind by
    /// its binary digits.
    fn untouched_blocks(&self, order: u8) -> u32 {
        let (head, tail) = (self.machine.head(self.span), self.machine.tail(self.span));
        if order == self.machine.max_order {
            return (self.span.frames - head) >> order;
        }
        (head >> order & 1) + (tail >> order & 1)
    }

    /// The watermarks, with their boost.
    pub(crate) fn marks(&self) -> Marks {
        let Marks { min, low, high } = self.plain_marks();
        let boost = self.boost();
        Marks { min: min + boost, low: low + boost, high: high + boost }
    }

    /// The watermarks without their boost.
    fn plain_marks(&self) -> Marks {
        match self.tuning() {
            Some(tuning) => tuning.apply(self.machine).marks(self.index, self.span.frames),
            None => self.machine.marks(self.index, self.span.frames),
        }
    }

    /// What an administrator set; `None`: nothing.
    pub(crate) fn tuning(&self) -> Option<Tuning> {
        Tuning::unpack(self.tuning?.load())
    }

    /// Frames by which the watermarks are raised.
    pub(crate) fn boost(&self) -> u64 {
        if self.machine.policy.boosts() { self.shared.boost.load() & !WAKES } else { 0 }
    }

    /// Raises the watermarks by a pageblock, up to 1.5 times the high one or as
    /// [`Tuning::boost_factor`] says (`boost_watermark`). Small zones have no boost.
    pub(crate) fn raise_marks(&self) {
        let pageblock = 1u64 << self.machine.pageblock_order;
        if !self.machine.policy.boosts() || 4 * pageblock > u64::from(self.span.frames) {
            return;
        }
        let factor = self.tuning().map_or(Tuning::BOOST_FACTOR, |tuning| tuning.boost_factor);
        if factor == 0 {
            return;
        }
        let most = (self.plain_marks().high * u64::from(factor) / 10_000).max(pageblock);
        self.shared.boost.store((self.boost() + pageblock).min(most) | WAKES);
    }

    /// Whether kswapd has to be told of a boost; once for each.
    pub(crate) fn takes_wake(&self) -> bool {
        let boost = if self.machine.policy.boosts() { self.shared.boost.load() } else { 0 };
        if boost & WAKES > 0 {
            self.shared.boost.store(boost & !WAKES);
        }
        boost & WAKES > 0
    }

    /// Lowers the boost.
    pub(crate) fn lower_marks(&self, frames: u64) {
        self.shared.boost.store(self.boost().saturating_sub(frames));
    }

    /// Whether a request found the zone below its high mark, and no page came back since.
    pub(crate) fn is_low(&self) -> bool {
        self.shared.is_low.load() > 0
    }

    pub(crate) fn set_low(&self, is_low: bool) {
        self.shared.is_low.store(u64::from(is_low));
    }

    /// The sizes of the per-CPU lists.
    pub(crate) fn pcp_sizes(&self, local_cpus: u32) -> PcpSizes {
        match self.tuning() {
            Some(tuning) => tuning.apply(self.machine).pcp_sizes(self.index, self.span.frames, local_cpus),
            None => self.machine.pcp_sizes(self.index, self.span.frames, local_cpus),
        }
    }

    /// Frames kept from requests that could have used a zone up to `class`: `lowmem_reserve`.
    pub(crate) fn lowmem_reserve(&self, class: u8) -> u64 {
        let ratio = self.machine.policy.lowmem_reserve_ratio as u64;
        if ratio == 0 || class <= self.index {
            return 0;
        }
        let above =
            (self.index + 1..=class).map(|zone| self.machine.span::<P>(self.node, zone).frames as u64);
        above.sum::<u64>() / ratio
    }

    /// Takes `zone->lock`.
    pub(crate) fn lock(self) -> Held<'a, P> {
        let lists = self.shared.lists.lock();
        let mut held = Held { zone: self, lists };
        if !held.opened {
            held.open();
        }
        held
    }
}

/// A zone whose lock is held. Dereferences to its lists; dropping it publishes the hints and unlocks.
pub(crate) struct Held<'a, P: Platform> {
    pub(crate) zone: Zone<'a, P>,
    lists: <P::Lock<rank::Zone, Lists> as Lock<Lists>>::Guard<'a>,
}

impl<P: Platform> Deref for Held<'_, P> {
    type Target = Lists;
    fn deref(&self) -> &Lists {
        &self.lists
    }
}

impl<P: Platform> DerefMut for Held<'_, P> {
    fn deref_mut(&mut self) -> &mut Lists {
        &mut self.lists
    }
}

impl<P: Platform> Drop for Held<'_, P> {
    fn drop(&mut self) {
        let mut dirty = core::mem::take(&mut self.lists.dirty);
        if dirty == 0 {
            return;
        }
        let lists = &mut *self.lists;
        lists.least_resident = lists.least_resident.min(lists.resident);
        let shared = self.zone.shared;
        shared.free.store(PUBLISHED | self.lists.free);
        shared.reserved.store(self.lists.reserved as u64);
        shared.resident.store(self.lists.resident);
        while dirty != 0 {
            let order = dirty.trailing_zeros() as u8;
            dirty &= dirty - 1;
            shared.blocks[order as usize].store(self.counted(order).pack());
        }
    }
}
