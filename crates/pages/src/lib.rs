//! The page allocator: zoned buddy, watermarks, per-CPU page lists, zonelists.
//!
//! # Theory
//!
//! The ideas are Knowlton's buddy system (1965) and Linux's arrangement of it: every node's memory is cut
//! into *zones* by address, every zone keeps *free lists* per order and *migrate type*, and every CPU keeps a
//! few blocks of its own in front of them. What this crate implements is written down in
//! docs/theory/pagealloc.md; which release did what is one table ([`policy`]).
//!
//! **A block** of order n is 2^n page frames at a multiple of 2^n. At any time every frame is in exactly one
//! block, and the block is in one of these states, which its head frame says ([`FrameState`]):
//!
//! ```text
//!             take                    alloc
//! untouched ───────▶ (under the lock) ───────▶ allocated | slab | large
//!               ▲  │                              │  ▲
//!          give │  │ refill                  free │  │ alloc
//!               │  ▼                              ▼  │
//!             buddy ◀──────── drain ───────────── pcp
//! ```
//!
//! **The equation**: frames of a zone = free in the buddy lists + beyond the frontier + on per-CPU lists +
//! allocated. [`Pages::check`] walks all of it.
//!
//! **Unusual**: untouched memory is a range, not a million descriptors (see `zone`), so a machine of 1 TiB
//! costs nothing until it is used. The lists are intrusive in the world's descriptors, and the counters that
//! CPUs read without a lock are published when the lock is released.
//!
//! # Call tree
//!
//! ```text
//! alloc
//!   permit                       the world's fault injection
//!   try_zonelist(low)           nearest zones first, each tested against its watermark
//!     watermark_ok
//!     alloc_from_zone              per-CPU list, refilled from the buddy; or the buddy
//!   alloc_slow                   wake kswapd, try at min, then what the caller's flags allow
//! free
//!   free_block                   per-CPU list, overflowing to the buddy; or the buddy
//! ```
//!
//! # Files
//!
//! | file | contents |
//! |---|---|
//! | `policy` | rules by release |
//! | `machine` | the rules as numbers of one machine: watermarks, batches, spans |
//! | `zonelist` | the order of nodes for a request |
//! | `watermark` | whether a request may take from a zone |
//! | `pcp` | per-CPU page lists |
//! | `zone`, `buddy`, `steal`, `list` | free lists under `zone->lock` |
//! | `slow` | what happens below the low watermark |
//! | `report_free` | free memory that goes back to the world; exact allocations |
//! | `report` | buddyinfo, zoneinfo, and the check that every frame is accounted for |
//!
//! Deliberately absent: this crate knows no world, reads no clock, allocates nothing, and has no statics.
//! Reclaim, compaction and the OOM killer are the world's; this crate decides which requests ask for them,
//! and when.
#![no_std]
#![forbid(unsafe_code)]

mod buddy;
mod exact;
mod list;
mod machine;
pub mod migrate;
mod pcp;
pub mod policy;
mod report;
mod report_free;
mod resident;
mod slow;
mod steal;
mod watermark;
mod zone;
mod zonelist;

pub use machine::{Marks, PcpSizes};
pub use migrate::MigrateType;
pub use policy::PagesPolicy;
pub use report::{Census, Imbalance, ZoneInfo};

use machine::{Machine, ZONES};
use pcp::CpuLists;
use resident::Resident;
use slablab_platform::{
    Event, Field, FrameKind, FrameState, Gfp, NodeId, PerCpu, PerNode, Pfn, Platform, Word,
};
use watermark::{AllocFlags, Mark};
use zone::{Shared, Zone};
use zonelist::Zonelists;

/// The page allocator of one machine.
pub struct Pages<P: Platform> {
    machine: Machine,
    nodes: P::PerNode<NodeState<P>>,
    zonelists: Zonelists<P>,
}

/// What a node has: its zones, and every CPU's page lists of them.
struct NodeState<P: Platform> {
    zones: [Shared<P>; ZONES],
    cpus: P::PerCpu<CpuLists>,
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

/// How far a request goes when no zone has a block above its low watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// As far as its flags allow.
    Full,
    /// As far as the request's flags allow, but without waking kswapd, whatever the release does.
    NoKswapd,
    /// One pass over the free lists.
    Once,
}

/// A call of [`Pages::alloc`], with everything derived from its arguments.
#[derive(Clone, Copy, Debug)]
struct Request {
    gfp: Gfp,
    attempt: Attempt,
    order: u8,
    node: NodeId,
    /// Highest zone allowed.
    class: u8,
    migrate_type: MigrateType,
}

impl<P: Platform> Pages<P> {
    /// The free lists of a machine whose memory is untouched, and the zonelists of all nodes. Reads the
    /// topology from `P`; it does not change afterwards.
    pub fn new(policy: PagesPolicy) -> Self {
        Pages { machine: Machine::new::<P>(policy), nodes: P::PerNode::new(), zonelists: Zonelists::new() }
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
    fn attempt_known(
        &self,
        gfp: Gfp,
        (order, frames): (u8, u32),
        node: NodeId,
        kind: FrameKind,
        attempt: Attempt,
    ) -> Option<(Pfn, Resident)> {
        let Some((pfn, reserve)) = self.alloc_block(gfp, order, node, attempt) else {
            P::count(Event::PageAllocFail, 1);
            return None;
        };
        let resident = self.hand_out(pfn, gfp, order, (kind, reserve));
        if !P::commit_frames(pfn, frames) {
            let state = P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()));
            self.zone(state.node, state.zone).lock().give_as(pfn, order, resident);
            P::count(Event::PageAllocFail, 1);
            return None;
        }
        Some((pfn, resident))
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

    /// Whether the best zone for a request near `node` has fewer free frames than its high watermark: kswapd
    /// is at work, or will be soon.
    pub fn is_low(&self, gfp: Gfp, node: NodeId) -> bool {
        let class = self.machine.class_of(gfp);
        let flags = AllocFlags { mark: Mark::High, ..AllocFlags::fast(&self.machine.policy) };
        let zones =
            self.nearest(node).flat_map(|node| (0..=class).rev().map(move |zone| self.zone(node, zone)));
        let mut populated = zones.into_iter().filter(|zone| zone.span.frames > 0);
        populated.next().is_none_or(|zone| !zone.watermark_ok(0, class, flags))
    }

    /// A block, and whether it comes from the reserves: taken after the first attempt, by a caller that may
    /// ignore the watermarks.
    fn alloc_block(&self, gfp: Gfp, order: u8, node: NodeId, attempt: Attempt) -> Option<(Pfn, bool)> {
        if order > self.machine.max_order || !P::permit(order, gfp) {
            return None;
        }
        let grouping = self.machine.grouping;
        let migrate_type = if grouping { MigrateType::of(gfp) } else { MigrateType::Movable };
        let class = self.machine.class_of(gfp);
        let request = Request { gfp, attempt, order, node, class, migrate_type };
        let flags = AllocFlags::fast(&self.machine.policy);
        let block = self.try_zonelist(&request, flags).map(|pfn| (pfn, false));
        block.or_else(|| Some((self.alloc_slow(&request)?, gfp.takes_reserves())))
    }

    /// One attempt: the zones of the zonelist, nearest node and highest zone first.
    fn try_zonelist(&self, request: &Request, mut flags: AllocFlags) -> Option<Pfn> {
        flags.no_fragment &= self.has_lower_zone(request);
        for node in self.nodes_for(request) {
            if flags.no_fragment && node != request.node {
                break;
            }
            for zone in (0..=request.class).rev().map(|zone| self.zone(node, zone)) {
                if zone.span.frames == 0 || !zone.watermark_ok(request.order, request.class, flags) {
                    continue;
                }
                if let Some(pfn) = self.alloc_from_zone(zone, request, flags) {
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
    fn nodes_for(&self, request: &Request) -> impl Iterator<Item = NodeId> {
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
    fn zone(&self, node: NodeId, index: u8) -> Zone<'_, P> {
        let shared = &self.nodes.get(node).zones[index as usize];
        Zone { shared, machine: &self.machine, node, index, span: self.machine.span::<P>(node, index) }
    }
}
