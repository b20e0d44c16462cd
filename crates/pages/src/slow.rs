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
//!   reclaim_rounds              2.6.32: reclaim, drain, try; OOM; wait for disks; again
//!   compact_rounds              2.6.35 on: compact, try; reclaim, try, drain, try; compact, try; OOM; again
//! ```
//!
//! Two things differ from Linux. Linux repeats requests up to order 3 for ever; here [`PagesPolicy::retries`]
//! may bound the rounds, for a modelled world without a task that frees memory. And an answer of no progress
//! from the world ends the rounds: the world knows that nothing will change. 2.6.32 asks such a world once
//! more before it ends them, whether it can wait ([`ReclaimStep::Wait`]).
//!
//! A world may hand a block over with its answer ([`Reclaimed::page`]): it is the request's, whatever the
//! free lists and the watermarks say.

use crate::allocator::Pages;
use crate::migrate::MigrateType;
use crate::policy::{Compaction, Kswapd, PagesPolicy, Retries};
use crate::request::{Attempt, Request};
use crate::resident::Resident;
use crate::watermark::{AllocFlags, Mark};
use crate::zone::Zone;
use slablab_platform::{
    Event, Field, FrameKind, FrameState, Gfp, NodeId, Pfn, Platform, Reclaim, ReclaimStep, Reclaimed, Word,
};

impl<P: Platform> Pages<P> {
    /// Everything after the first attempt failed.
    #[cold]
    pub(crate) fn alloc_slow(&self, request: &Request) -> Option<Pfn> {
        let request = &Request { reclaimer: P::is_reclaimer(), ..*request };
        let (policy, gfp) = (&self.machine.policy, request.gfp);
        P::count(Event::WatermarkLow, 1);
        if request.attempt == Attempt::Once {
            return None;
        }
        if policy.this_node_gives_up && gfp.has(Gfp::THISNODE | Gfp::NORETRY | Gfp::NOWARN) {
            return None;
        }
        self.wake_kswapd(request);
        let flags = AllocFlags::slow(policy, request);
        if let Some(pfn) = self.try_zonelist(request, flags) {
            return Some(pfn);
        }
        // A request that may not wait has no step left; a reclaimer, and one without any watermark, would
        // reclaim for itself for ever.
        if !gfp.has(Gfp::DIRECT_RECLAIM) || request.reclaimer || flags.mark == Mark::None {
            return None;
        }
        match policy.compaction {
            Compaction::None => self.reclaim_rounds(request, flags),
            Compaction::Direct => self.compact_rounds(request, flags),
        }
    }

    /// 2.6.32: steps 5 to 7.
    fn reclaim_rounds(&self, request: &Request, flags: AllocFlags) -> Option<Pfn> {
        let mut rounds = Rounds::default();
        while self.machine.policy.retries.allows(rounds.done) {
            let answer = self.ask(request, ReclaimStep::Direct, rounds.done);
            if answer.page.is_some() {
                return answer.page;
            }
            if answer.progress {
                if request.order > 0 {
                    self.drain_all();
                }
                if let Some(pfn) = self.try_zonelist(request, flags) {
                    return Some(pfn);
                }
            } else if request.may_kill() {
                if let Some(pfn) = self.kill(request, flags, rounds.done)? {
                    return Some(pfn);
                }
                rounds.add(answer);
                continue;
            }
            rounds.add(answer);
            if !request.repeats(rounds) || !self.waits(request, answer, rounds.done) {
                return None;
            }
        }
        None
    }

    /// Waits before the next round, where waiting costs time. Whether there is a next round.
    fn waits(&self, request: &Request, answer: Reclaimed, attempt: u32) -> bool {
        match self.machine.policy.retries {
            Retries::Bounded(_) => answer.progress,
            Retries::AsKernel => self.ask(request, ReclaimStep::Wait, attempt).progress,
        }
    }

    /// 2.6.35 and later.
    fn compact_rounds(&self, request: &Request, flags: AllocFlags) -> Option<Pfn> {
        let unmovable = request.migrate_type != MigrateType::Movable;
        if request.order > 0 && (request.costly() || unmovable) {
            let (_, pfn) = self.compact(request, flags, 0);
            if pfn.is_some() || request.costly() && request.gfp.has(Gfp::NORETRY) {
                return pfn;
            }
        }
        let mut rounds = Rounds::default();
        while self.machine.policy.retries.allows(rounds.done) {
            let answer = self.ask(request, ReclaimStep::Direct, rounds.done);
            if answer.page.is_some() {
                return answer.page;
            }
            let mut progress = answer.progress;
            if progress {
                let pfn = self.try_zonelist(request, flags).or_else(|| {
                    self.unreserve(request);
                    self.drain_all();
                    self.try_zonelist(request, flags)
                });
                if pfn.is_some() {
                    return pfn;
                }
            }
            if request.order > 0 {
                let (compacted, pfn) = self.compact(request, flags, rounds.done.saturating_add(1));
                if pfn.is_some() {
                    return pfn;
                }
                progress |= compacted;
            }
            let attempt = rounds.done;
            rounds.add(answer);
            if !request.repeats(rounds) {
                return None;
            }
            if !progress && let Some(pfn) = self.kill(request, flags, attempt)? {
                return Some(pfn);
            }
        }
        None
    }

    /// Asks for compaction: whether it made progress, and the block that the request has then.
    fn compact(&self, request: &Request, flags: AllocFlags, attempt: u32) -> (bool, Option<Pfn>) {
        let answer = self.ask(request, ReclaimStep::Compact, attempt);
        let search = || answer.progress.then(|| self.try_zonelist(request, flags)).flatten();
        (answer.progress, answer.page.or_else(search))
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

    /// `zone_reclaim_mode`: whether a zone below its watermark has enough free pages after local reclaim.
    /// Only zones of the CPU's node, and of nodes without CPUs, which no CPU of their own would reclaim.
    #[cold]
    pub(crate) fn reclaimed(&self, zone: Zone<'_, P>, request: &Request, flags: AllocFlags) -> bool {
        let near = zone.node == P::cpu_node(P::cpu()) || self.local_cpus(zone.node) == 0;
        let may_wait = request.gfp.has(Gfp::DIRECT_RECLAIM) && request.attempt != Attempt::Once;
        if !near || !may_wait || P::is_reclaimer() {
            return false;
        }
        P::reclaim(request.about(zone, ReclaimStep::Zone));
        zone.watermark_ok(request.order, request.class, flags)
    }

    /// Asks the world for a step that may free pages of any zone.
    pub(crate) fn ask(&self, request: &Request, step: ReclaimStep, attempt: u32) -> Reclaimed {
        if step == ReclaimStep::Direct {
            P::count(Event::DirectReclaim, 1);
        }
        self.answer(request, request.reclaim(request.node, step, attempt))
    }

    /// The world's answer, with a block that it hands over made the request's.
    pub(crate) fn answer(&self, request: &Request, ask: Reclaim) -> Reclaimed {
        let answer = P::reclaim(ask);
        if let Some(pfn) = answer.page {
            self.take_over(request, pfn);
        }
        answer
    }

    /// Makes a block that the world handed over look like one that comes from the free lists.
    fn take_over(&self, request: &Request, pfn: Pfn) {
        P::with_frame(pfn, |frame| {
            let state = FrameState::unpack(frame.state.load());
            let allocated = state.kind == FrameKind::Allocated && state.order == request.order;
            let usable = state.zone <= request.class
                && (state.node == request.node || !request.gfp.has(Gfp::THISNODE));
            if !allocated || !usable {
                P::broken(
                    None,
                    format_args!("reclaim handed frame {} over for {request:?}: {state:?}", pfn.0),
                );
            }
            // All of it was used.
            frame.extra.set(Resident::all(state.order).pack());
        });
    }

    /// Nothing was reclaimed: a last attempt above the high watermark, so that only pages that other CPUs
    /// freed meanwhile count, then the OOM killer and another attempt. `None` when the request may not kill
    /// or there is no task to kill; `Some(None)` when a task was killed in vain.
    fn kill(&self, request: &Request, flags: AllocFlags, attempt: u32) -> Option<Option<Pfn>> {
        if !request.may_kill() {
            return None;
        }
        let last_look = AllocFlags { mark: Mark::High, ..AllocFlags::fast(&self.machine.policy) };
        if let Some(pfn) = self.try_zonelist(request, last_look) {
            return Some(Some(pfn));
        }
        let answer = self.ask(request, ReclaimStep::Oom, attempt);
        // The killed task left memory behind: try before reclaiming again.
        answer.progress.then(|| answer.page.or_else(|| self.try_zonelist(request, flags)))
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
    /// A request about one zone.
    pub(crate) fn about<P: Platform>(&self, zone: Zone<'_, P>, step: ReclaimStep) -> Reclaim {
        Reclaim { zone: zone.index, ..self.reclaim(zone.node, step, 0) }
    }

    /// Whether a task may be killed for this request.
    fn may_kill(&self) -> bool {
        let excused = Gfp::NORETRY | Gfp::RETRY_MAYFAIL | Gfp::THISNODE;
        let may_insist = !self.costly() || self.gfp.has(Gfp::NOFAIL);
        may_insist && self.gfp.has(Gfp::FS) && !self.gfp.any(excused)
    }

    fn costly(&self) -> bool {
        self.order > PagesPolicy::COSTLY_ORDER
    }

    /// Whether another round is due after rounds that gave nothing.
    fn repeats(&self, rounds: Rounds) -> bool {
        if self.gfp.has(Gfp::NOFAIL) {
            return true;
        }
        if self.gfp.has(Gfp::NORETRY) {
            return false;
        }
        // Until 2^order pages were reclaimed, for requests that ask for it.
        let costly =
            self.gfp.has(Gfp::RETRY_MAYFAIL) && rounds.freed < 1 << self.order && rounds.done < COSTLY_ROUNDS;
        !self.costly() || costly
    }

    /// A request about all zones that it may use.
    pub(crate) fn reclaim(&self, node: NodeId, step: ReclaimStep, attempt: u32) -> Reclaim {
        let Request { class, order, gfp, reclaimer, .. } = *self;
        Reclaim { node, class, zone: class, order, gfp, reclaimer, attempt, step }
    }
}

/// Most rounds for a costly order (`MAX_RECLAIM_RETRIES` of 4.7; from memory). Before, pages that were freed
/// bound them.
const COSTLY_ROUNDS: u32 = 16;

/// The rounds of direct reclaim of one request.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    done: u32,
    /// Pages that they freed.
    freed: u32,
}

impl Rounds {
    fn add(&mut self, answer: Reclaimed) {
        self.done = self.done.saturating_add(1);
        self.freed = self.freed.saturating_add(answer.freed);
    }
}
