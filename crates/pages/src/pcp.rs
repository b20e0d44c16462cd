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
//! refresh                     once a second: lists that tune their length become shorter
//! cpu_down                    a CPU goes: its lists go back
//! ```

use crate::allocator::Pages;
use crate::machine::PcpSizes;
use crate::policy::PcpHigh;
use crate::request::Request;
use crate::tuned::{Bounds, Shortage};
use crate::watermark::AllocFlags;
use crate::zone::Zone;
use slablab_platform::{CpuId, Event, FrameState, Local, NodeId, PerCpu, PerNode, Pfn, Platform};

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
                let tuned = self.bounds(zone, sizes);
                return lists.alloc(zone, request, flags, (sizes.batch, tuned), asked);
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
                let overflow = match self.bounds(zone, sizes) {
                    _ if asked => lists.frames,
                    Some(bounds) => {
                        let shortage =
                            Shortage { reclaims: self.is_reclaiming(state.node), is_low: zone.is_low() };
                        lists.tuning.came(bounds, state.order, lists.frames, shortage)
                    }
                    None if lists.frames >= self.most_kept(state.node, sizes) => sizes.batch,
                    None => 0,
                };
                lists.drain(zone, overflow);
                if overflow > 0 && self.machine.policy.tunes() && zone.is_low() {
                    zone.set_low(!zone.is_above_high(0, self.machine.zone_count() - 1));
                }
                return;
            }
            P::count(Event::Slotless, 1);
        }
        zone.lock().give(pfn, state.order);
    }

    /// What bounds lists that tune their length; `None` if they do not.
    fn bounds(&self, zone: Zone<'_, P>, sizes: PcpSizes) -> Option<Bounds> {
        let most = || self.machine.pcp_most(sizes, zone.span.frames, self.local_cpus(zone.node));
        let PcpSizes { batch, high: least } = sizes;
        self.machine.policy.tunes().then(|| Bounds { batch, least, most: most() })
    }

    /// Whether the lists of CPUs tune their length: then [`Pages::refresh`] is due each second.
    pub fn tunes(&self) -> bool {
        self.machine.policy.tunes()
    }

    /// Once a second: a CPU may keep fewer pages, if its lists tune their length (`refresh_cpu_vm_stats`).
    /// Not if the slot cannot be claimed now.
    pub fn refresh(&self, cpu: CpuId) {
        for node in (0..P::nodes()).map(NodeId).filter(|_| self.machine.policy.tunes()) {
            let Some(state) = self.nodes.peek(node).filter(|state| state.cpus.used(cpu)) else { continue };
            let slot = if cpu == P::cpu() { state.cpus.local() } else { state.cpus.claim(cpu) };
            let Some(mut slot) = slot else { continue };
            for zone in (0..self.machine.zone_count()).map(|zone| self.zone(node, zone)) {
                let sizes = zone.pcp_sizes(self.local_cpus(node));
                let lists = &mut slot.zones[zone.index as usize];
                if let Some(bounds) = self.bounds(zone, sizes) {
                    let overflow = lists.tuning.decay(bounds, lists.frames);
                    lists.drain(zone, overflow);
                }
            }
        }
    }

    /// Frames that a CPU keeps of a zone at most (`nr_pcp_high`).
    fn most_kept(&self, node: NodeId, sizes: PcpSizes) -> u32 {
        let is_by_mark = !matches!(self.machine.policy.pcp.high, PcpHigh::Batches(_));
        let limits = is_by_mark && self.is_reclaiming(node);
        if limits { sizes.high.min(4 * sizes.batch) } else { sizes.high }
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
