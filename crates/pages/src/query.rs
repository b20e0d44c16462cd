//! What a reclaimer asks of one zone: its free frames, its watermarks, whether it is above one of them. And
//! what an administrator sets of them.

use crate::allocator::Pages;
use crate::machine::Marks;
use crate::tuning::Tuning;
use crate::watermark::{AllocFlags, Mark};
use slablab_platform::{NodeId, PerNode, Platform, Word};

/// One of a zone's watermarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// [`Marks::min`].
    Min,
    /// [`Marks::low`].
    Low,
    /// [`Marks::high`].
    High,
}

impl<P: Platform> Pages<P> {
    /// Free frames of a zone: buddy lists and untouched memory, per-CPU lists not included. Takes no lock.
    pub fn zone_free(&self, node: NodeId, zone: u8) -> u64 {
        self.zone(node, zone).free()
    }

    /// Frames by which the watermarks of a zone are raised since a block was taken for another migrate type
    /// (`watermark_boost`; since 5.0, where requests are repeated as the kernel does).
    pub fn zone_boost(&self, node: NodeId, zone: u8) -> u64 {
        self.zone(node, zone).boost()
    }

    /// Lowers them by at most so many frames: kswapd has reclaimed for them.
    pub fn lower_marks(&self, node: NodeId, zone: u8, frames: u64) {
        self.zone(node, zone).lower_marks(frames);
    }

    /// The watermarks of a zone, with what they are raised by.
    pub fn zone_marks(&self, node: NodeId, zone: u8) -> Marks {
        self.zone(node, zone).marks()
    }

    /// Whether a zone has free frames above a watermark for a block of this order and a request of a class of
    /// zones up to `class`, or to the highest one, without any right to reserves (`zone_watermark_ok`). Takes
    /// no lock.
    pub fn is_above(&self, node: NodeId, zone: u8, level: Level, order: u8, class: u8) -> bool {
        self.is_above_times(node, zone, 1, level, order, class)
    }

    /// As [`Pages::is_above`], with a watermark that is `times` as high: 8 times the high one lets 2.6's
    /// kswapd leave a zone alone.
    pub fn is_above_times(
        &self,
        node: NodeId,
        zone: u8,
        times: u64,
        level: Level,
        order: u8,
        class: u8,
    ) -> bool {
        let mark = match level {
            Level::Min => Mark::Min,
            Level::Low => Mark::Low,
            Level::High => Mark::High,
        };
        let flags = AllocFlags { mark, high: false, harder: false, no_fragment: false };
        let class = class.min(self.machine.zone_count() - 1);
        self.zone(node, zone).is_above_times(times, order, class, flags)
    }

    /// Whether a request that finds a near zone below its watermark asks for pages of it before it goes to
    /// another node (`zone_reclaim_mode`).
    pub fn reclaims_near(&self) -> bool {
        match self.near.peek(NodeId(0)).map_or(0, |word| word.0.load()) {
            0 => self.machine.zone_reclaim,
            set => set == 2,
        }
    }

    /// Sets [`Pages::reclaims_near`], which [`PagesPolicy::zone_reclaim`] decides at first.
    ///
    /// [`PagesPolicy::zone_reclaim`]: crate::PagesPolicy::zone_reclaim
    pub fn set_reclaims_near(&self, reclaims: bool) {
        self.near.get(NodeId(0)).0.store(1 + u64::from(reclaims));
    }

    /// What is set now.
    pub fn tuning(&self) -> Tuning {
        let set = self.tuning.peek(NodeId(0)).and_then(|word| Tuning::unpack(word.0.load()));
        set.unwrap_or_else(|| Tuning::of(&self.machine))
    }

    /// Sets it, for every zone. A request that runs meanwhile may see marks of before and after.
    pub fn tune(&self, tuning: Tuning) {
        self.tuning.get(NodeId(0)).0.store(tuning.pack());
    }
}
