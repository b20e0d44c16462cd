//! Watermarks: whether a request may take a block from a zone (docs/theory/pagealloc.md 2).
//!
//! The test reads hints without the lock, as the kernel does: the answer may be stale by a few blocks.

use crate::machine::Marks;
use crate::policy::{Harder, OrderCheck, PagesPolicy};
use crate::request::Request;
use crate::zone::Zone;
use slablab_platform::{Gfp, Platform};

/// How far down a request may push a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The first attempt of every request.
    Low,
    /// The slow path.
    Min,
    /// The last attempt before a task is killed: only pages that other CPUs freed meanwhile.
    High,
    /// No test: `__GFP_MEMALLOC`, and reclaimers.
    None,
}

/// The kernel's ALLOC flags of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocFlags {
    /// The watermark.
    pub(crate) mark: Mark,
    /// `ALLOC_HIGH`: half of the watermark is enough.
    pub(crate) high: bool,
    /// `ALLOC_HARDER`: a quarter less.
    pub(crate) harder: bool,
    /// `ALLOC_NOFRAGMENT`: rather another zone than mixing migrate types.
    pub(crate) no_fragment: bool,
}

impl AllocFlags {
    /// The flags of the first attempt.
    pub(crate) const fn fast(policy: &PagesPolicy) -> AllocFlags {
        AllocFlags { mark: Mark::Low, high: false, harder: false, no_fragment: policy.no_fragment }
    }

    /// The flags of the slow path.
    pub(crate) const fn slow(policy: &PagesPolicy, request: &Request) -> AllocFlags {
        let gfp = request.gfp;
        let may_wait = gfp.has(Gfp::DIRECT_RECLAIM);
        let harder = match policy.harder {
            Harder::CannotWait => !may_wait,
            Harder::Atomic => !may_wait && gfp.has(Gfp::HIGH) && !gfp.has(Gfp::NOMEMALLOC),
        };
        let frees = gfp.has(Gfp::MEMALLOC) || request.reclaimer;
        let mark = if frees && !gfp.has(Gfp::NOMEMALLOC) { Mark::None } else { Mark::Min };
        AllocFlags { mark, high: gfp.has(Gfp::HIGH), harder, no_fragment: false }
    }
}

impl<P: Platform> Zone<'_, P> {
    /// Whether a request of this order finds the zone above its high mark.
    pub(crate) fn is_above_high(&self, order: u8, class: u8) -> bool {
        let flags = AllocFlags { mark: Mark::High, ..AllocFlags::fast(&self.machine.policy) };
        self.watermark_ok(order, class, flags)
    }
}

impl Marks {
    fn of(self, mark: Mark) -> u64 {
        match mark {
            Mark::Low => self.low,
            Mark::Min => self.min,
            Mark::High => self.high,
            Mark::None => 0,
        }
    }
}

impl<P: Platform> Zone<'_, P> {
    /// Whether a request of this order, from a class of zones up to `class`, may take from this zone.
    pub(crate) fn watermark_ok(&self, order: u8, class: u8, flags: AllocFlags) -> bool {
        self.is_above_times(1, order, class, flags)
    }

    /// Whether the zone is as far above so many times the watermark.
    pub(crate) fn is_above_times(&self, times: u64, order: u8, class: u8, flags: AllocFlags) -> bool {
        if flags.mark == Mark::None {
            return true;
        }
        let mut min = (times * self.marks().of(flags.mark)) as i64;
        if flags.high {
            min -= min / 2;
        }
        if flags.harder {
            min -= min / 4;
        }
        let free = self.free() as i64 - (1 << order) + 1;
        let reserve = self.lowmem_reserve(class) as i64;
        match self.machine.policy.order_check {
            OrderCheck::Halving => free > min + reserve && self.halving_ok(order, free, min),
            OrderCheck::AnyBlock => {
                let kept = if flags.harder { 0 } else { self.reserved() as i64 };
                free - kept > min + reserve && self.any_block(order, flags.harder)
            }
        }
    }

    /// Free memory counts less the smaller its blocks are: what is left of it without the orders below o must
    /// exceed the mark halved o times.
    fn halving_ok(&self, order: u8, mut free: i64, mut min: i64) -> bool {
        (0..order).all(|below| {
            let blocks = self.blocks(below);
            free -= (blocks.usual as i64 + blocks.reserve as i64) << below;
            min >>= 1;
            free > min
        })
    }

    fn any_block(&self, order: u8, harder: bool) -> bool {
        order == 0
            || (order..=self.machine.max_order).any(|order| {
                let blocks = self.blocks(order);
                blocks.usual > 0 || harder && blocks.reserve > 0
            })
    }
}
