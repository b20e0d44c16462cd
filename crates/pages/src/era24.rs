//! The orders of 2.4 in which a request tries free lists, clean pages and reclaim (docs/theory/pagealloc.md
//! 8).
//!
//! ```text
//! alloc_24
//!   free_and_clean              2.4.8, 2.4.9, -ac; again and again
//!     zones with free pages at low; kreclaimd for those below min
//!     limit(high), limit(low)    free and clean pages together: steal a clean one, else the buddy
//!     kswapd, yield, limit(min)
//!     launder_and_free           order > 0: clean pages go to the free lists, one by one
//!     reclaim
//!     last_resort                a quarter of min
//!   classzone                   2.4.10
//!     zones above low; kswapd; zones above min, or a quarter of it
//!     balance                    reclaim, which hands a page over; zones above min; again
//! ```
//!
//! As in the slow path of 2.6, what reclaim does is the world's. A request of 2.4.8 and 2.4.9 that may use
//! the filesystem repeats also when reclaim made no progress: it ends when the OOM killer makes its task a
//! reclaimer (`Hooks::is_reclaimer`). Under [`Retries::Bounded`] an answer of no progress ends it.

use crate::allocator::Pages;
use crate::machine::Marks;
use crate::policy::{Kswapd, Retries, Search};
use crate::request::{Attempt, Request};
use crate::watermark::AllocFlags;
use crate::zone::Zone;
use slablab_platform::{Event, FrameKind, FrameState, Gfp, NodeId, Pfn, Platform, ReclaimStep, Word};

impl<P: Platform> Pages<P> {
    /// A block by the rules of 2.4. No block of 2.4 is marked as coming from the reserves.
    pub(crate) fn alloc_24(&self, request: &Request) -> Option<Pfn> {
        if self.machine.policy.counts_pressure {
            self.set_pressure(self.pressure() + 1);
        }
        match self.machine.policy.search {
            Search::Classzone { .. } => self.classzone(request),
            Search::FreeAndClean { steals } => {
                let waits = request.gfp.has(Gfp::DIRECT_RECLAIM);
                self.free_and_clean(request, steals && waits && request.order == 0)
            }
            Search::Zonelist => None,
        }
    }

    /// What a free means for 2.4: whether the block stays with the task that freed it.
    pub(crate) fn freed_24(&self, pfn: Pfn, state: FrameState) -> bool {
        if self.machine.policy.counts_pressure && self.pressure() > P::cpus() as u64 {
            self.set_pressure(self.pressure() - 1);
        }
        let keeps = matches!(self.machine.policy.search, Search::Classzone { keeps_freed: true });
        if !keeps || !P::keeps_freed(pfn, state.order) {
            return false;
        }
        let state = FrameState { kind: FrameKind::Allocated, ..state };
        P::with_frame(pfn, |frame| frame.state.store(state.pack()));
        true
    }

    fn free_and_clean(&self, request: &Request, steals: bool) -> Option<Pfn> {
        let mut attempt = 0;
        loop {
            if let Some(pfn) = self.free_pages_at_low(request) {
                return Some(pfn);
            }
            if attempt == 0 {
                P::count(Event::WatermarkLow, 1);
            }
            if request.attempt == Attempt::Once {
                return None;
            }
            let near = self.limit(request, steals, |marks| marks.high);
            if let Some(pfn) = near.or_else(|| self.limit(request, steals, |marks| marks.low)) {
                return Some(pfn);
            }
            self.wake_24(request);
            if request.gfp.has(Gfp::DIRECT_RECLAIM) {
                self.ask(request, ReclaimStep::Yield, attempt);
            }
            if let Some(pfn) = self.limit(request, steals, |marks| marks.min) {
                return Some(pfn);
            }
            let request = &Request { reclaimer: P::is_reclaimer(), ..*request };
            if request.reclaimer || !request.gfp.has(Gfp::DIRECT_RECLAIM) {
                return self.last_resort(request, steals);
            }
            if let Some(pfn) = self.launder_and_free(request, attempt) {
                return Some(pfn);
            }
            if request.order > 0 && !self.free_shortage() {
                return self.last_resort(request, steals);
            }
            let answer = self.ask(request, ReclaimStep::Direct, attempt);
            if answer.page.is_some() {
                return answer.page;
            }
            attempt += 1;
            let policy = &self.machine.policy;
            let hopes = request.gfp.has(Gfp::FS) && policy.retries == Retries::AsKernel;
            // No kernel of 2.4 has NORETRY: it ends the attempts on one node of engines that know nodes.
            let ends = request.gfp.has(Gfp::NORETRY) || !policy.retries.allows(attempt);
            if ends || !(answer.progress || hopes) {
                return None;
            }
        }
    }

    /// Step 2: a block of a zone with enough free pages. Zones with few of them wake kreclaimd.
    fn free_pages_at_low(&self, request: &Request) -> Option<Pfn> {
        for zone in self.zones_for(request) {
            if zone.free() >= zone.marks().low {
                if let Some(pfn) = self.take(zone, request) {
                    return Some(pfn);
                }
            } else if zone.free() < zone.marks().min && request.attempt != Attempt::Once {
                P::reclaim(request.about(zone, ReclaimStep::WakeKreclaimd));
            }
        }
        None
    }

    /// A page of a zone whose free and clean pages reach a mark.
    fn limit(&self, request: &Request, steals: bool, mark: impl Fn(Marks) -> u64) -> Option<Pfn> {
        self.zones_for(request).find_map(|zone| {
            if self.free_or_clean(zone) < mark(zone.marks()) {
                return None;
            }
            let stolen = if steals { self.steal_clean(zone, request) } else { None };
            stolen.or_else(|| self.take(zone, request))
        })
    }

    /// A clean page of a zone.
    fn steal_clean(&self, zone: Zone<'_, P>, request: &Request) -> Option<Pfn> {
        let request = &Request { order: 0, ..*request };
        let page = self.answer(request, request.about(zone, ReclaimStep::StealClean)).page?;
        if self.machine.policy.counts_pressure {
            self.set_pressure(self.pressure() + 1);
        }
        Some(page)
    }

    /// Orders above 0: dirty pages are written, and clean ones freed until they make a block.
    fn launder_and_free(&self, request: &Request, attempt: u32) -> Option<Pfn> {
        if request.order == 0 {
            return None;
        }
        self.ask(request, ReclaimStep::Launder, attempt);
        for zone in self.zones_for(request) {
            while P::clean_frames(zone.node, zone.index) > 0 {
                let Some(page) = self.steal_clean(zone, request) else { break };
                self.free(page);
                if let Some(pfn) = self.take(zone, request) {
                    return Some(pfn);
                }
            }
        }
        None
    }

    /// Step 7: a clean page for a reclaimer (from memory), or a block of a zone that has a quarter of min, or
    /// any block for a reclaimer.
    fn last_resort(&self, request: &Request, steals: bool) -> Option<Pfn> {
        self.zones_for(request).find_map(|zone| {
            let stolen = if steals { self.steal_clean(zone, request) } else { None };
            stolen.or_else(|| {
                let enough = request.reclaimer || zone.free() >= zone.marks().min / 4;
                enough.then(|| self.take(zone, request)).flatten()
            })
        })
    }

    /// Whether free and clean pages are short: in one zone, or all together.
    fn free_shortage(&self) -> bool {
        let (mut all, mut high, mut short) = (0, 0, false);
        for node in (0..P::nodes()).map(NodeId) {
            for zone in (0..self.machine.zone_count()).map(|zone| self.zone(node, zone)) {
                if zone.span.frames > 0 {
                    let (free, marks) = (self.free_or_clean(zone), zone.marks());
                    (all, high, short) = (all + free, high + marks.high, short || free < marks.low);
                }
            }
        }
        short || all < high
    }

    fn classzone(&self, request: &Request) -> Option<Pfn> {
        let waits = request.gfp.has(Gfp::DIRECT_RECLAIM);
        if let Some(pfn) = self.above(request, |marks| marks.low) {
            return Some(pfn);
        }
        P::count(Event::WatermarkLow, 1);
        if request.attempt == Attempt::Once {
            return None;
        }
        self.wake_24(request);
        let min = |marks: Marks| if waits { marks.min } else { marks.min / 4 };
        if let Some(pfn) = self.above(request, min) {
            return Some(pfn);
        }
        let request = &Request { reclaimer: P::is_reclaimer(), ..*request };
        if request.reclaimer {
            return self.zones_for(request).find_map(|zone| self.take(zone, request));
        }
        let mut attempt = 0;
        while waits && self.machine.policy.retries.allows(attempt) {
            let answer = self.ask(request, ReclaimStep::Direct, attempt);
            if answer.page.is_some() {
                return answer.page;
            }
            if !answer.progress {
                break;
            }
            if let Some(pfn) = self.above(request, |marks| marks.min) {
                return Some(pfn);
            }
            attempt += 1;
        }
        self.above(request, |marks| marks.high)
    }

    /// A block of the first zone whose free pages without the block are above a mark.
    fn above(&self, request: &Request, mark: impl Fn(Marks) -> u64) -> Option<Pfn> {
        self.zones_for(request).find_map(|zone| {
            let free = zone.free().saturating_sub(1 << request.order);
            (free > mark(zone.marks())).then(|| self.take(zone, request)).flatten()
        })
    }

    /// Wakes kswapd, and says which zones are to be balanced.
    fn wake_24(&self, request: &Request) {
        if request.attempt != Attempt::NoKswapd && self.machine.policy.kswapd != Kswapd::Never {
            P::count(Event::KswapdWake, 1);
            P::reclaim(request.reclaim(request.node, ReclaimStep::WakeKswapd, 0));
        }
    }

    fn free_or_clean(&self, zone: Zone<'_, P>) -> u64 {
        zone.free() + P::clean_frames(zone.node, zone.index)
    }

    fn take(&self, zone: Zone<'_, P>, request: &Request) -> Option<Pfn> {
        self.alloc_from_zone(zone, request, AllocFlags::fast(&self.machine.policy))
    }

    /// The zones of a request that have frames, nearest node and highest zone first.
    fn zones_for(&self, request: &Request) -> impl Iterator<Item = Zone<'_, P>> {
        let class = request.class;
        let zones = self
            .nodes_for(request)
            .flat_map(move |node| (0..=class).rev().map(move |zone| self.zone(node, zone)));
        zones.filter(|zone| zone.span.frames > 0)
    }
}
