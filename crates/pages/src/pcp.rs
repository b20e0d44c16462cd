//! Per-CPU page lists: small blocks kept by a CPU, so that most requests take no `zone->lock`
//! (docs/theory/pagealloc.md 3).
//!
//! A CPU has lists of every zone it took blocks of, per order and migrate type. Blocks go to and come from
//! the head (the hot end); overflow leaves from the tails. The lists count as allocated to the zone: its free
//! counter and watermarks do not see them.
//!
//! The slot may refuse ([`PerCpu::local`]): then the request goes to the buddy, counted as
//! [`Event::Slotless`]. No CPU reaches into another CPU's live slot: draining asks the slot's owner, which
//! empties it the next time it refills or overflows.
//!
//! ```text
//! alloc_from_zone             pcp if the order is kept per CPU, else buddy
//!   pcp_alloc                   head of the list; refilled by one batch under one zone->lock
//! free_block                  pcp, else buddy
//!   drain_one                   a batch from the tails when the CPU holds too much
//! drain_all                   before the last attempt of a slow path
//! cpu_down                    a CPU goes: its lists go back
//! ```

use crate::list::List;
use crate::machine::ZONES;
use crate::migrate::MigrateType;
use crate::policy::PCP_ORDERS;
use crate::resident::Resident;
use crate::watermark::AllocFlags;
use crate::zone::{Held, Zone};
use crate::{Pages, Request};
use slablab_platform::{
    CpuId, Event, Field, FrameKind, FrameState, Local, NodeId, PerCpu, PerNode, Pfn, Platform, Word,
};

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
}

impl<P: Platform> Pages<P> {
    /// A block from this zone, head state not yet the caller's; `None` if it has none.
    pub(crate) fn alloc_from_zone(
        &self,
        zone: Zone<'_, P>,
        request: &Request,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        let sizes = zone.pcp_sizes(self.local_cpus(zone.node));
        if sizes.batch > 0 && request.order <= self.machine.policy.pcp.max_order {
            if let Some(mut slot) = self.nodes.get(zone.node).cpus.local() {
                let asked = slot.asked();
                let lists = &mut slot.zones[zone.index as usize];
                return lists.alloc(zone, request, flags, sizes.batch, asked);
            }
            P::count(Event::Slotless, 1);
        }
        zone.lock().take_for(request, flags)
    }

    /// Gives a block back to where its head says.
    pub(crate) fn free_block(&self, pfn: Pfn, state: FrameState) {
        let zone = self.zone(state.node, state.zone);
        let sizes = zone.pcp_sizes(self.local_cpus(state.node));
        if sizes.batch > 0 && state.order <= self.machine.policy.pcp.max_order {
            if let Some(mut slot) = self.nodes.get(state.node).cpus.local() {
                let asked = slot.asked();
                let lists = &mut slot.zones[zone.index as usize];
                lists.free::<P>(pfn, state);
                if asked || lists.frames >= sizes.high {
                    let frames = if asked { lists.frames } else { sizes.batch };
                    lists.drain(zone, frames);
                }
                return;
            }
            P::count(Event::Slotless, 1);
        }
        zone.lock().give(pfn, state.order);
    }

    /// Gives the blocks that a CPU keeps back to the buddy lists, after the CPU went down. Where the slot
    /// cannot be claimed now, its next user is asked to empty it.
    #[cold]
    pub fn cpu_down(&self, cpu: CpuId) {
        (0..P::nodes()).map(NodeId).for_each(|node| self.drain_cpu(node, cpu));
    }

    /// Empties every CPU's lists of every node, as far as their owners can be reached now.
    #[cold]
    pub(crate) fn drain_all(&self) {
        for node in (0..P::nodes()).map(NodeId) {
            (0..P::cpus()).map(CpuId).for_each(|cpu| self.drain_cpu(node, cpu));
        }
    }

    fn drain_cpu(&self, node: NodeId, cpu: CpuId) {
        let Some(state) = self.nodes.peek(node).filter(|state| state.cpus.used(cpu)) else { return };
        let own = cpu == P::cpu();
        let slot = if own { state.cpus.local() } else { state.cpus.claim(cpu) };
        match slot {
            Some(mut slot) => {
                for zone in 0..self.machine.zone_count() {
                    let lists = &mut slot.zones[zone as usize];
                    lists.drain(self.zone(node, zone), lists.frames);
                }
            }
            None => state.cpus.ask(cpu),
        }
    }
}

impl ZoneLists {
    fn alloc<P: Platform>(
        &mut self,
        zone: Zone<'_, P>,
        request: &Request,
        flags: AllocFlags,
        batch: u32,
        asked: bool,
    ) -> Option<Pfn> {
        let (order, ty) = (request.order as usize, request.migrate_type as usize);
        if self.lists[order][ty].count == 0 {
            let blocks = (batch >> order).max(if order == 0 { 1 } else { 2 });
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

    fn free<P: Platform>(&mut self, pfn: Pfn, state: FrameState) {
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
    fn drain<P: Platform>(&mut self, zone: Zone<'_, P>, frames: u32) {
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
    fn take_for(&mut self, request: &Request, flags: AllocFlags) -> Option<Pfn> {
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
