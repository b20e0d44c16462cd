//! The slow path: what happens when no zone has a block above its low watermark (docs/theory/pagealloc.md 5).
//!
//! This file decides which requests ask for reclaim, compaction and the OOM killer, and when; what those do
//! is the world's ([`Hooks::reclaim`](slablab_platform::Hooks::reclaim)). The page allocator holds no lock
//! and no slot of its own when it asks, so the world may free pages or call shrinkers that do.
//!
//! ```text
//! alloc_slow
//!   wake_kswapd                 once per node with a zone below low for this order
//!   try_zonelist(min)          with the right to reserves that the flags give
//!   reclaim_rounds              2.6.32: reclaim, drain, try; OOM; again
//!   compact_rounds              2.6.35 on: compact, try; reclaim, try, drain, try; compact, try; OOM; again
//! ```
//!
//! Two things differ from Linux. Linux repeats requests up to order 3 for ever; here [`PagesPolicy::retries`]
//! rounds are the most, because a modelled world may have no task that frees memory. And an answer of `false`
//! from the world ends the rounds at once: the world knows that nothing will change.

use crate::allocator::Pages;
use crate::migrate::MigrateType;
use crate::policy::{Compaction, Kswapd, PagesPolicy};
use crate::request::{Attempt, Request};
use crate::watermark::{AllocFlags, Mark};
use slablab_platform::{Event, Gfp, NodeId, Pfn, Platform, Reclaim, ReclaimStep};

/// Pages a round of direct reclaim frees when it makes progress (`SWAP_CLUSTER_MAX`).
const RECLAIM_BATCH: u32 = 32;

impl<P: Platform> Pages<P> {
    /// Everything after the first attempt failed.
    #[cold]
    pub(crate) fn alloc_slow(&self, request: &Request) -> Option<Pfn> {
        let (policy, gfp) = (&self.machine.policy, request.gfp);
        P::count(Event::WatermarkLow, 1);
        if request.attempt == Attempt::Once {
            return None;
        }
        if policy.this_node_gives_up && gfp.has(Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN) {
            return None;
        }
        self.wake_kswapd(request);
        let flags = AllocFlags::slow(policy, gfp);
        if let Some(pfn) = self.try_zonelist(request, flags) {
            return Some(pfn);
        }
        // A request that may not wait has no step left; one without any watermark would reclaim for itself
        // for ever.
        if !gfp.has(Gfp::DIRECT_RECLAIM) || flags.mark == Mark::None {
            return None;
        }
        match policy.compaction {
            Compaction::None => self.reclaim_rounds(request, flags),
            Compaction::Direct => self.compact_rounds(request, flags),
        }
    }

    /// 2.6.32: steps 5 to 7.
    fn reclaim_rounds(&self, request: &Request, flags: AllocFlags) -> Option<Pfn> {
        for attempt in 0..self.machine.policy.retries {
            let progress = self.ask(request, ReclaimStep::Direct, attempt);
            if progress {
                if request.order > 0 {
                    self.drain_all();
                }
                if let Some(pfn) = self.try_zonelist(request, flags) {
                    return Some(pfn);
                }
            } else if let Some(pfn) = self.kill(request, flags, attempt)? {
                return Some(pfn);
            }
            if !request.repeats(attempt) {
                return None;
            }
        }
        None
    }

    /// 2.6.35 and later.
    fn compact_rounds(&self, request: &Request, flags: AllocFlags) -> Option<Pfn> {
        let attempt_freelists = || self.try_zonelist(request, flags);
        let unmovable = request.migrate_type != MigrateType::Movable;
        if request.order > 0 && (request.costly() || unmovable) {
            if self.ask(request, ReclaimStep::Compact, 0)
                && let Some(pfn) = attempt_freelists()
            {
                return Some(pfn);
            }
            if request.costly() && request.gfp.has(Gfp::NORETRY) {
                return None;
            }
        }
        for attempt in 0..self.machine.policy.retries {
            let mut progress = self.ask(request, ReclaimStep::Direct, attempt);
            if progress {
                let pfn = attempt_freelists().or_else(|| {
                    self.unreserve(request);
                    self.drain_all();
                    attempt_freelists()
                });
                if pfn.is_some() {
                    return pfn;
                }
            }
            if request.order > 0 && self.ask(request, ReclaimStep::Compact, attempt + 1) {
                progress = true;
                if let Some(pfn) = attempt_freelists() {
                    return Some(pfn);
                }
            }
            if !request.repeats(attempt) {
                return None;
            }
            if !progress && let Some(pfn) = self.kill(request, flags, attempt)? {
                return Some(pfn);
            }
        }
        None
    }

    /// Wakes the daemon of every node with a zone that this order would push below low.
    fn wake_kswapd(&self, request: &Request) {
        let wakes = match self.machine.policy.kswapd {
            Kswapd::Always => true,
            Kswapd::IfAsked => request.gfp.has(Gfp::KSWAPD_RECLAIM),
            Kswapd::Never => false,
        };
        if !wakes || request.attempt == Attempt::NoKswapd {
            return;
        }
        let flags = AllocFlags::fast(&self.machine.policy);
        for node in self.nodes_for(request) {
            let zones = (0..=request.class).map(|zone| self.zone(node, zone));
            let mut populated = zones.filter(|zone| zone.span.frames > 0);
            if populated.any(|zone| !zone.watermark_ok(request.order, request.class, flags)) {
                P::count(Event::KswapdWake, 1);
                P::reclaim(request.reclaim(node, ReclaimStep::WakeKswapd, 0));
            }
        }
    }

    fn ask(&self, request: &Request, step: ReclaimStep, attempt: u32) -> bool {
        if step == ReclaimStep::Direct {
            P::count(Event::DirectReclaim, 1);
        }
        P::reclaim(request.reclaim(request.node, step, attempt))
    }

    /// Nothing was reclaimed: a last attempt above the high watermark, so that only pages that other CPUs
    /// freed meanwhile count, then the OOM killer and another attempt. `None` when the request may not kill
    /// or there is no task to kill; `Some(None)` when a task was killed in vain.
    fn kill(&self, request: &Request, flags: AllocFlags, attempt: u32) -> Option<Option<Pfn>> {
        let may_kill = !request.costly() || request.gfp.has(Gfp::NOFAIL);
        let excused = Gfp::NORETRY | Gfp::RETRY_MAYFAIL | Gfp::THISNODE;
        if !may_kill || !request.gfp.has(Gfp::FS) || request.gfp.any(excused) {
            return None;
        }
        let last_look = AllocFlags { mark: Mark::High, ..AllocFlags::fast(&self.machine.policy) };
        if let Some(pfn) = self.try_zonelist(request, last_look) {
            return Some(Some(pfn));
        }
        // The killed task left memory behind: try before reclaiming again.
        self.ask(request, ReclaimStep::Oom, attempt).then(|| self.try_zonelist(request, flags))
    }

    /// Gives one reserved pageblock of the nearest zones back to the request's type.
    fn unreserve(&self, request: &Request) {
        for node in self.nodes_for(request) {
            for zone in (0..=request.class).rev().map(|zone| self.zone(node, zone)) {
                if zone.reserved() > 0 && zone.lock().unreserve_pageblock(request.migrate_type) {
                    return;
                }
            }
        }
    }
}

impl Request {
    fn costly(&self) -> bool {
        self.order > PagesPolicy::COSTLY_ORDER
    }

    /// Whether another round is due after one that gave nothing.
    fn repeats(&self, attempt: u32) -> bool {
        if self.gfp.has(Gfp::NOFAIL) {
            return true;
        }
        if self.gfp.has(Gfp::NORETRY) {
            return false;
        }
        // Until 2^order pages were reclaimed, for requests that ask for it.
        let reclaimed = (attempt + 1) * RECLAIM_BATCH;
        !self.costly() || self.gfp.has(Gfp::RETRY_MAYFAIL) && reclaimed < 1 << self.order
    }

    fn reclaim(&self, node: NodeId, step: ReclaimStep, attempt: u32) -> Reclaim {
        Reclaim { node, order: self.order, gfp: self.gfp, attempt, step }
    }
}
