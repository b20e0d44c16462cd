//! The page lists of a CPU, per zone, order and migrate type: refilled from the buddy by the batch, and
//! drained to it. Their owner holds the CPU's slot (`pcp`).

use crate::list::List;
use crate::machine::ZONES;
use crate::migrate::MigrateType;
use crate::policy::PCP_ORDERS;
use crate::request::Request;
use crate::resident::Resident;
use crate::tuned::{Bounds, Length};
use crate::watermark::AllocFlags;
use crate::zone::{Held, Zone};
use slablab_platform::{Event, Field, FrameKind, FrameState, Pfn, Platform, Word};

/// A CPU's page lists of one node.
#[derive(Debug, Default)]
pub(crate) struct CpuLists {
    pub(crate) zones: [ZoneLists; ZONES],
}

/// A CPU's page lists of one zone.
#[derive(Debug, Default)]
pub(crate) struct ZoneLists {
    pub(crate) lists: [[List; MigrateType::USUAL]; PCP_ORDERS],
    /// Frames on them.
    pub(crate) frames: u32,
    /// What they remember to tune their length.
    pub(crate) tuning: Length,
}

impl ZoneLists {
    pub(crate) fn alloc<P: Platform>(
        &mut self,
        zone: Zone<'_, P>,
        request: &Request,
        flags: AllocFlags,
        (batch, tuned): (u32, Option<Bounds>),
        asked: bool,
    ) -> Option<Pfn> {
        let (order, ty) = (request.order as usize, request.migrate_type as usize);
        if tuned.is_some() {
            self.tuning.taken();
        }
        if self.lists[order][ty].count == 0 {
            let blocks = match tuned {
                Some(bounds) => self.tuning.fetch(bounds, request.order, self.frames, zone.is_low()),
                None => (batch >> order).max(if order == 0 { 1 } else { 2 }),
            };
            self.refill(zone, request, flags, if asked { 1 } else { blocks });
        }
        let pfn = self.lists[order][ty].pop_front::<P>()?;
        self.frames -= 1 << order;
        P::count(Event::PcpAlloc, 1);
        Some(pfn)
    }

    /// Fetches up to `blocks` blocks under one `zone->lock`, in the order they come.
    fn refill<P: Platform>(&mut self, zone: Zone<'_, P>, request: &Request, flags: AllocFlags, blocks: u32) {
        let list = &mut self.lists[request.order as usize][request.migrate_type as usize];
        let mut held = zone.lock();
        for _ in 0..blocks {
            let Some(pfn) = held.take_for(request, flags) else { break };
            set_kind::<P>(pfn, FrameKind::Pcp);
            list.push_back::<P>(pfn);
            self.frames += 1 << request.order;
        }
        P::count(Event::PcpRefill, (list.count > 0) as u64);
    }

    pub(crate) fn free<P: Platform>(&mut self, pfn: Pfn, state: FrameState) {
        set_kind::<P>(pfn, FrameKind::Pcp);
        // Pages of a reserved pageblock go to the movable list: the reserve has none here.
        let ty = match MigrateType::from_index(state.migrate_type as u64) {
            MigrateType::Reserve => MigrateType::Movable,
            ty => ty,
        };
        P::with_frame(pfn, |frame| frame.extra.set(Resident::all(state.order).pack()));
        self.lists[state.order as usize][ty as usize].push_front::<P>(pfn);
        self.frames += 1 << state.order;
        P::count(Event::PcpFree, 1);
    }

    /// Returns at least `frames` frames, or all there are: from the tails, one block of each list in turn.
    pub(crate) fn drain<P: Platform>(&mut self, zone: Zone<'_, P>, frames: u32) {
        if frames == 0 || self.frames == 0 {
            return;
        }
        P::count(Event::PcpDrain, 1);
        let mut held = zone.lock();
        let mut done = 0;
        // List by list, starting over: the last round may stop anywhere.
        for turn in (0..PCP_ORDERS * MigrateType::USUAL).cycle() {
            if done >= frames || self.frames == 0 {
                return;
            }
            let order = turn / MigrateType::USUAL;
            let Some(pfn) = self.lists[order][turn % MigrateType::USUAL].pop_back::<P>() else { continue };
            held.give(pfn, order as u8);
            self.frames -= 1 << order;
            done += 1 << order;
        }
    }
}

impl<P: Platform> Held<'_, P> {
    /// A block for a request, under the flags of this attempt.
    pub(crate) fn take_for(&mut self, request: &Request, flags: AllocFlags) -> Option<Pfn> {
        let steal_from = if flags.no_fragment { self.zone.machine.pageblock_order } else { 0 };
        self.take(request.order, request.migrate_type, flags.harder, steal_from)
    }
}

/// Changes what a block is used for; its owner calls.
fn set_kind<P: Platform>(pfn: Pfn, kind: FrameKind) {
    P::with_frame(pfn, |frame| {
        let state = FrameState { kind, ..FrameState::unpack(frame.state.load()) };
        frame.state.store(state.pack());
    });
}
