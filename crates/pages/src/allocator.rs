//! The page allocator of a machine: a request's way through the zonelist, and the free. The other modules of
//! the call tree in [`crate`] continue it.

use crate::cpu_lists::CpuLists;
use crate::machine::{Machine, ZONES};
use crate::migrate::MigrateType;
use crate::policy::{PagesPolicy, Search};
use crate::request::{Attempt, Request};
use crate::resident::Resident;
use crate::watermark::AllocFlags;
use crate::zone::{Shared, Zone};
use crate::zonelist::{Nearest, Zonelists};
use slablab_platform::{
    Event, Field, FrameKind, FrameState, Gfp, NodeId, PerCpu, PerNode, Pfn, Platform, ReclaimStep, Word,
};

/// The page allocator of one machine.
pub struct Pages<P: Platform> {
    pub(crate) machine: Machine,
    pub(crate) nodes: P::PerNode<NodeState<P>>,
    zonelists: Zonelists<P>,
    /// `memory_pressure` of 2.4, on node 0. Made when it is first used: other policies have no such word.
    pressure: P::PerNode<Pressure<P>>,
    /// 1 while kswapd of a node reclaims (`ZONE_RECLAIM_ACTIVE`). Made when it is first used.
    reclaiming: P::PerNode<Pressure<P>>,
    /// `zone_reclaim_mode` on node 0: 1 off, 2 on. Made when it is first set.
    pub(crate) near: P::PerNode<Pressure<P>>,
    /// [`Tuning`], packed, on node 0. Made when it is first set: without, no CPU reads a word for it.
    ///
    /// [`Tuning`]: crate::Tuning
    pub(crate) tuning: P::PerNode<Pressure<P>>,
}

/// What a node has: its zones, and every CPU's page lists of them.
pub(crate) struct NodeState<P: Platform> {
    pub(crate) zones: [Shared<P>; ZONES],
    pub(crate) cpus: P::PerCpu<CpuLists>,
    /// CPUs on the node, plus one once counted.
    local_cpus: P::Word,
}

impl<P: Platform> Default for NodeState<P> {
    fn default() -> Self {
        NodeState {
            zones: core::array::from_fn(|_| Shared::default()),
            cpus: P::PerCpu::new(0),
            local_cpus: P::Word::new(0),
        }
    }
}

/// A counter that begins at 0.
pub(crate) struct Pressure<P: Platform>(pub(crate) P::Word);

impl<P: Platform> Default for Pressure<P> {
    fn default() -> Self {
        Pressure(P::Word::new(0))
    }
}

impl<P: Platform> Pages<P> {
    /// The free lists of a machine whose memory is untouched, and the zonelists of all nodes. Reads the
    /// topology from `P`; it does not change afterwards.
    pub fn new(policy: PagesPolicy) -> Self {
        Pages {
            machine: Machine::new::<P>(policy),
            nodes: P::PerNode::new(),
            zonelists: Zonelists::new(),
            pressure: P::PerNode::new(),
            reclaiming: P::PerNode::new(),
            near: P::PerNode::new(),
            tuning: P::PerNode::new(),
        }
    }

    /// The rules.
    pub fn policy(&self) -> &PagesPolicy {
        &self.machine.policy
    }

    /// The highest order there is, inclusive.
    pub fn max_order(&self) -> u8 {
        self.machine.max_order
    }

    /// A block of 2^`order` frames, from the node nearest to `node`; from `node` alone with
    /// [`Gfp::THISNODE`]. `None` when there is none, or when `order` is above the highest.
    ///
    /// The head frame's state says `kind` ([`FrameKind::Slab`], [`FrameKind::Large`] or
    /// [`FrameKind::Allocated`]), order, node and zone. Later frames of a slab, a large or a compound block
    /// say [`FrameKind::Tail`] and how far the head is.
    pub fn alloc(&self, gfp: Gfp, order: u8, node: NodeId, kind: FrameKind) -> Option<Pfn> {
        self.attempt(gfp, order, node, kind, Attempt::Full)
    }

    /// [`Pages::alloc`] that goes as far as `attempt` says.
    pub fn attempt(
        &self,
        gfp: Gfp,
        order: u8,
        node: NodeId,
        kind: FrameKind,
        attempt: Attempt,
    ) -> Option<Pfn> {
        // An order whose frames cannot be counted is above the highest, and refused.
        let frames = 1u32.checked_shl(order.into()).unwrap_or(0);
        self.attempt_known(gfp, (order, frames), node, kind, attempt).map(|(pfn, _)| pfn)
    }

    /// [`Pages::attempt`] that commits the block's first `frames` frames. Also returns which frames of the
    /// block may be resident, and so not read as the world made them.
    pub(crate) fn attempt_known(
        &self,
        gfp: Gfp,
        (order, frames): (u8, u32),
        node: NodeId,
        kind: FrameKind,
        attempt: Attempt,
    ) -> Option<(Pfn, Resident)> {
        let commit = |block| self.commit_block(block, gfp, (order, frames), kind);
        let found = self.alloc_block(gfp, order, node, attempt).and_then(|block| {
            let refused = || self.committed_block(&self.request(gfp, order, node, attempt), frames);
            commit(block).or_else(|| commit((refused()?, false)))
        });
        if found.is_none() {
            P::count(Event::PageAllocFail, 1);
        }
        found
    }

    /// Hands out a block, and whether it comes from the reserves, if the world can commit its first `frames`
    /// frames; else the block becomes free again.
    fn commit_block(
        &self,
        (pfn, reserve): (Pfn, bool),
        gfp: Gfp,
        (order, frames): (u8, u32),
        kind: FrameKind,
    ) -> Option<(Pfn, Resident)> {
        let resident = self.hand_out(pfn, gfp, order, (kind, reserve));
        if P::commit_frames(pfn, frames) {
            return Some((pfn, resident));
        }
        let state = P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()));
        self.zone(state.node, state.zone).lock().give_as(pfn, order, resident);
        None
    }

    /// A block whose first `frames` frames the world committed before, for a request whose first block it
    /// could not commit.
    #[cold]
    fn committed_block(&self, request: &Request, frames: u32) -> Option<Pfn> {
        // What the world keeps for later has its memory, too.
        let may_ask = request.attempt == Attempt::Full && request.gfp.has(Gfp::DIRECT_RECLAIM);
        if may_ask && !P::is_reclaimer() {
            let answer = self.ask(request, ReclaimStep::Direct, 0);
            answer.page.into_iter().for_each(|page| self.free(page));
        }
        let mut zones = self.nodes_for(request).flat_map(|node| {
            let zones = (0..=request.class).rev().map(move |zone| self.zone(node, zone));
            zones.filter(|zone| zone.span.frames > 0)
        });
        zones.find_map(|zone| zone.lock().smallest_committed(request.order, frames))
    }

    /// Gives a block back. Its order and zone are in its head's state.
    ///
    /// A `pfn` that is not the head of an allocated block is [`slablab_platform::Hooks::broken`]: a caller
    /// freed the block twice.
    pub fn free(&self, pfn: Pfn) {
        let state = P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()));
        let allocated = matches!(state.kind, FrameKind::Allocated | FrameKind::Slab | FrameKind::Large);
        if !allocated {
            P::broken(None, format_args!("free of frame {}, which is {:?}", pfn.0, state.kind));
        }
        if self.machine.policy.search != Search::Zonelist && self.freed_24(pfn, state) {
            return;
        }
        self.free_block(pfn, state);
    }

    /// The head of the slab or large block an address is in, and its state. `None` if it is in no such block.
    pub fn block_of(object: P::Ptr) -> Option<(Pfn, FrameState)> {
        let (pfn, _) = P::locate(object);
        let state = P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()));
        match state.kind {
            FrameKind::Slab | FrameKind::Large => Some((pfn, state)),
            FrameKind::Tail => {
                let head = state.head(pfn);
                let head_state = P::with_frame(head, |frame| FrameState::unpack(frame.state.load()));
                // Tails are not wiped when a block is freed: the head must still vouch for this one.
                let vouched = matches!(head_state.kind, FrameKind::Slab | FrameKind::Large)
                    && state.tail < 1 << head_state.order;
                vouched.then_some((head, head_state))
            }
            _ => None,
        }
    }

    /// The nodes with memory, nearest to `local` first.
    pub fn nearest(&self, local: NodeId) -> Nearest<'_, P> {
        self.zonelists.nearest(local)
    }

    /// CPUs on a node, for the sizes of per-CPU lists: counted once, when first asked for.
    pub(crate) fn local_cpus(&self, node: NodeId) -> u32 {
        let counted = &self.nodes.get(node).local_cpus;
        match counted.load() {
            0 => {
                let cpus = Machine::cpus_on::<P>(node);
                counted.store(cpus as u64 + 1);
                cpus
            }
            word => word as u32 - 1,
        }
    }

    /// Allocations, and stolen clean pages, less frees, as far as the world did not let them decay
    /// (`memory_pressure` of 2.4.8 and 2.4.9). 0 under a policy that does not count it.
    pub fn pressure(&self) -> u64 {
        self.pressure.peek(NodeId(0)).map_or(0, |pressure| pressure.0.load())
    }

    /// Sets [`Pages::pressure`]: once a second the world takes 1/64 off, and it adds the clean pages that
    /// kreclaimd moved. Not atomic, as in Linux: an increment of another CPU may get lost.
    pub fn set_pressure(&self, pressure: u64) {
        self.pressure.get(NodeId(0)).0.store(pressure);
    }

    /// kswapd of a node begins or ends to reclaim. Meanwhile a CPU keeps at most four batches, so that the
    /// watermarks see what is freed (since 5.14).
    pub fn set_reclaiming(&self, node: NodeId, reclaims: bool) {
        self.reclaiming.get(node).0.store(u64::from(reclaims));
    }

    /// Whether kswapd of a node reclaims.
    pub(crate) fn is_reclaiming(&self, node: NodeId) -> bool {
        self.reclaiming.peek(node).is_some_and(|word| word.0.load() > 0)
    }

    /// Whether at most one in `share` of the machine's frames is free.
    pub fn is_scarce(&self, share: u64) -> bool {
        let nodes = || (0..P::nodes()).map(NodeId);
        let free: u64 = nodes().map(|node| self.free_frames(node)).sum();
        let total: u64 = nodes().map(|node| self.total_frames(node)).sum();
        free * share <= total
    }

    /// A block, and whether it comes from the reserves: taken after the first attempt, by a caller that may
    /// ignore the watermarks.
    fn alloc_block(&self, gfp: Gfp, order: u8, node: NodeId, attempt: Attempt) -> Option<(Pfn, bool)> {
        if order > self.machine.max_order || !P::permit(order, gfp) {
            return None;
        }
        let request = self.request(gfp, order, node, attempt);
        if self.machine.policy.search != Search::Zonelist {
            return self.alloc_24(&request).map(|pfn| (pfn, false));
        }
        let flags = AllocFlags::fast(&self.machine.policy);
        let block = self.try_zonelist(&request, flags).map(|pfn| (pfn, false));
        block.or_else(|| Some((self.alloc_slow(&request)?, P::takes_reserves(gfp))))
    }

    fn request(&self, gfp: Gfp, order: u8, node: NodeId, attempt: Attempt) -> Request {
        let grouping = self.machine.grouping;
        let migrate_type = if grouping { MigrateType::of(gfp) } else { MigrateType::Movable };
        let class = self.machine.class_of(gfp);
        Request { gfp, attempt, order, node, class, migrate_type, reclaimer: false }
    }

    /// One attempt: the zones of the zonelist, nearest node and highest zone first.
    pub(crate) fn try_zonelist(&self, request: &Request, mut flags: AllocFlags) -> Option<Pfn> {
        flags.no_fragment = flags.no_fragment && self.has_lower_zone(request);
        for node in self.nodes_for(request) {
            if flags.no_fragment && node != request.node {
                break;
            }
            for zone in (0..=request.class).rev().map(|zone| self.zone(node, zone)) {
                let is_there = zone.span.frames > 0;
                // From now on CPUs keep fewer pages of the zone.
                if is_there
                    && self.machine.policy.tunes()
                    && !zone.is_low()
                    && !zone.is_above_high(request.order, request.class)
                {
                    zone.set_low(true);
                }
                let may_take = is_there
                    && (zone.watermark_ok(request.order, request.class, flags)
                        || self.reclaims_near() && self.reclaimed(zone, request, flags));
                if may_take && let Some(pfn) = self.alloc_from_zone(zone, request, flags) {
                    if zone.takes_wake() && request.gfp.has(Gfp::KSWAPD_RECLAIM) {
                        P::reclaim(request.reclaim(node, ReclaimStep::WakeKswapd, 0));
                    }
                    return Some(pfn);
                }
            }
        }
        // Mixing migrate types is worse than a lower zone, and better than a remote node or failure.
        if flags.no_fragment {
            return self.try_zonelist(request, AllocFlags { no_fragment: false, ..flags });
        }
        None
    }

    /// The nodes a request may use, nearest first.
    pub(crate) fn nodes_for(&self, request: &Request) -> impl Iterator<Item = NodeId> {
        let this_node = request.gfp.has(Gfp::THISNODE);
        let at_home = P::node_frames(request.node).1 > 0;
        self.nearest(request.node).take(if this_node { at_home as usize } else { usize::MAX })
    }

    /// Whether the request's own node has a populated zone below its best one: only then can one be preferred
    /// to mixing.
    fn has_lower_zone(&self, request: &Request) -> bool {
        let frames = |zone: u8| self.machine.span::<P>(request.node, zone).frames;
        request.class > 0 && frames(request.class) > 0 && frames(request.class - 1) > 0
    }

    /// Writes a block's use, and whether it comes from the reserves, into its frames; returns which of them
    /// may be resident.
    fn hand_out(&self, pfn: Pfn, gfp: Gfp, order: u8, (kind, reserve): (FrameKind, bool)) -> Resident {
        let (head, resident) = P::with_frame(pfn, |frame| {
            let state = FrameState { kind, reserve, ..FrameState::unpack(frame.state.load()) };
            frame.state.store(state.pack());
            let resident = Resident::unpack(frame.extra.get());
            frame.extra.set(0);
            (state, resident)
        });
        if kind == FrameKind::Allocated && !gfp.has(Gfp::COMP) {
            return resident;
        }
        for tail in 1..1 << order {
            let state = FrameState { kind: FrameKind::Tail, tail, ..head };
            P::with_frame(pfn.plus(tail), |frame| frame.state.store(state.pack()));
        }
        resident
    }

    /// A zone of a node, which may have no frames.
    pub(crate) fn zone(&self, node: NodeId, index: u8) -> Zone<'_, P> {
        let shared = &self.nodes.get(node).zones[index as usize];
        let span = self.machine.span::<P>(node, index);
        let tuning = self.tuning.peek(NodeId(0)).map(|word| &word.0);
        Zone { shared, machine: &self.machine, node, index, span, tuning }
    }
}
