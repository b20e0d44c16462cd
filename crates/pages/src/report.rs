//! Reports: the columns of /proc/buddyinfo, /proc/pagetypeinfo and /proc/zoneinfo, and the check that every
//! frame is where the counters say.

use crate::allocator::Pages;
use crate::machine::{Marks, PcpSizes};
use crate::migrate::MigrateType;
use crate::policy::ORDERS;
use crate::zone::Held;
use slablab_platform::{CpuId, FrameKind, NodeId, PerCpu, PerNode, Pfn, Platform};

/// A zone as /proc/zoneinfo and /proc/pagetypeinfo show it, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// The zone's name.
    pub name: &'static str,
    /// First frame.
    pub start: Pfn,
    /// The zone's frames: `managed`.
    pub frames: u32,
    /// Frames in the buddy lists, untouched ones included, per-CPU lists not: `pages free`.
    pub free: u64,
    /// The watermarks.
    pub marks: Marks,
    /// Batch and high of the per-CPU lists.
    pub pcp: PcpSizes,
    /// Frames kept from requests of each class of zones: `protection`.
    pub lowmem_reserve: [u64; 3],
    /// Free blocks per order and migrate type ([`MigrateType`] as index), untouched ones included.
    pub blocks: [[u32; MigrateType::COUNT]; ORDERS],
}

/// The frames of a node, counted by their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Census {
    /// Beyond a frontier: never handed out.
    pub untouched: u64,
    /// On buddy lists.
    pub buddy: u64,
    /// On per-CPU lists.
    pub pcp: u64,
    /// Allocated, for neither of the next two.
    pub allocated: u64,
    /// In slabs.
    pub slab: u64,
    /// In large kmallocs.
    pub large: u64,
}

impl Census {
    /// All frames.
    pub const fn total(self) -> u64 {
        self.untouched + self.buddy + self.pcp + self.allocated + self.slab + self.large
    }
}

/// Two numbers that should be equal and are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imbalance {
    /// The node.
    pub node: NodeId,
    /// The zone's index within it.
    pub zone: u8,
    /// The frame it was noticed at, or the zone's first one.
    pub at: Pfn,
    /// The name of the number.
    pub what: &'static str,
    /// The number the counters or lists give.
    pub expected: u64,
    /// The number the frames give.
    pub found: u64,
}

impl core::fmt::Display for Imbalance {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Imbalance { node, zone, at, what, expected, found } = self;
        write!(f, "node {} zone {zone} frame {}: {what}: expected {expected}, found {found}", node.0, at.0)
    }
}

impl<P: Platform> Pages<P> {
    /// Frames of a node.
    pub fn total_frames(&self, node: NodeId) -> u64 {
        self.zones_of(node).map(|zone| self.machine.span::<P>(node, zone).frames as u64).sum()
    }

    /// Free frames of a node: buddy lists and untouched memory, per-CPU lists not included (`MemFree`).
    pub fn free_frames(&self, node: NodeId) -> u64 {
        if self.nodes.peek(node).is_none() {
            return self.total_frames(node);
        }
        self.zones_of(node).map(|zone| self.zone(node, zone).free()).sum()
    }

    /// Frames of all nodes that are not free: those on per-CPU lists count as taken.
    pub fn taken_frames(&self) -> u64 {
        let nodes = (0..P::nodes()).map(NodeId).filter_map(|node| Some((node, self.nodes.peek(node)?)));
        let zones = nodes.flat_map(|(node, state)| self.zones_of(node).map(move |zone| (node, state, zone)));
        zones
            .filter_map(|(node, state, zone)| {
                let free = state.zones[zone as usize].published_free()?;
                Some(u64::from(self.machine.span::<P>(node, zone).frames) - free)
            })
            .sum()
    }

    /// Indexes of the zones a node can have; some may have no frames.
    pub fn zones_of(&self, _node: NodeId) -> core::ops::Range<u8> {
        0..self.machine.zone_count()
    }

    /// The zone an index of [`Pages::zones_of`] stands for; `None` if the node has no frames there. Takes
    /// `zone->lock`.
    pub fn zone_info(&self, node: NodeId, index: u8) -> Option<ZoneInfo> {
        let zone = self.zone(node, index);
        if zone.span.frames == 0 {
            return None;
        }
        let mut blocks = [[0; MigrateType::COUNT]; ORDERS];
        let held = zone.lock();
        for order in 0..=self.machine.max_order {
            for (ty, list) in held.free_area[order as usize].iter().enumerate() {
                blocks[order as usize][ty] = list.count;
            }
            blocks[order as usize][MigrateType::Movable as usize] += held.frontier_blocks(order);
        }
        Some(ZoneInfo {
            name: self.machine.zones.ends()[index as usize].0,
            start: zone.span.start,
            frames: zone.span.frames,
            free: held.free,
            marks: zone.marks(),
            pcp: zone.pcp_sizes(self.local_cpus(node)),
            lowmem_reserve: core::array::from_fn(|class| {
                zone.lowmem_reserve((class as u8).min(self.machine.zone_count() - 1))
            }),
            blocks,
        })
    }

    /// Frames on a CPU's lists of a zone (`count` in /proc/zoneinfo); `None` while that CPU's slot is live.
    pub fn pcp_frames(&self, cpu: CpuId, node: NodeId, zone: u8) -> Option<u32> {
        let Some(state) = self.nodes.peek(node) else { return Some(0) };
        if !state.cpus.used(cpu) {
            return Some(0);
        }
        let slot = if cpu == P::cpu() { state.cpus.local() } else { state.cpus.claim(cpu) };
        Some(slot?.zones[zone as usize].frames)
    }

    /// The frames of a node by their use, found by walking them. No other CPU may use the allocator
    /// meanwhile.
    pub fn census(&self, node: NodeId) -> Census {
        let mut census = Census::default();
        self.zones_of(node).for_each(|zone| self.add_census(node, zone, &mut census));
        census
    }

    /// The frames of one zone of a node by their use, found by walking them. No other CPU may use the
    /// allocator meanwhile.
    pub fn zone_census(&self, node: NodeId, zone: u8) -> Census {
        let mut census = Census::default();
        self.add_census(node, zone, &mut census);
        census
    }

    fn add_census(&self, node: NodeId, zone: u8, census: &mut Census) {
        let is_used = self.nodes.peek(node).is_some();
        let zone = self.zone(node, zone);
        if !is_used {
            census.untouched += u64::from(zone.span.frames);
        } else if zone.span.frames > 0 {
            // Walking stops early only for an imbalance, which `check` reports.
            let _ = zone.lock().walk(census);
        }
    }

    /// Whether every frame is accounted for: walks lists and frames and compares them with each other and
    /// with the counters. No other CPU may use the allocator meanwhile.
    pub fn check(&self) -> Result<(), Imbalance> {
        for node in (0..P::nodes()).map(NodeId).filter(|node| self.nodes.peek(*node).is_some()) {
            for index in self.zones_of(node) {
                let zone = self.zone(node, index);
                if zone.span.frames == 0 {
                    continue;
                }
                let in_slots = self.in_slots(node, index);
                let hint = zone.free();
                let blocks = (0..=self.machine.max_order).map(|order| (order, zone.blocks(order)));
                let in_blocks: u64 =
                    blocks.map(|(order, blocks)| ((blocks.usual + blocks.reserve) as u64) << order).sum();
                let held = zone.lock();
                let mut census = Census::default();
                held.walk(&mut census)?;
                held.imbalance(zone.span.start, "free blocks as published", hint, in_blocks)?;
                held.check_lists(&census, hint, in_slots)?;
            }
        }
        Ok(())
    }

    /// Frames on all CPUs' lists of a zone; `None` if some slot is live.
    fn in_slots(&self, node: NodeId, zone: u8) -> Option<u64> {
        (0..P::cpus()).map(|cpu| self.pcp_frames(CpuId(cpu), node, zone).map(u64::from)).sum()
    }
}

impl<P: Platform> Held<'_, P> {
    fn imbalance(&self, at: Pfn, what: &'static str, expected: u64, found: u64) -> Result<(), Imbalance> {
        if expected == found {
            return Ok(());
        }
        Err(Imbalance { node: self.zone.node, zone: self.zone.index, at, what, expected, found })
    }

    /// Adds up the zone's blocks, from head to head.
    fn walk(&self, census: &mut Census) -> Result<(), Imbalance> {
        let span = self.zone.span;
        census.untouched += (self.frontier_end - self.touched) as u64;
        for (from, to) in [(0, self.touched), (self.frontier_end, span.frames)] {
            let mut at = from;
            while at < to {
                let head = span.start.plus(at);
                let state = self.state(head);
                let frames = 1 << state.order;
                let sum = match state.kind {
                    FrameKind::Buddy => &mut census.buddy,
                    FrameKind::Pcp => &mut census.pcp,
                    FrameKind::Allocated => &mut census.allocated,
                    FrameKind::Slab => &mut census.slab,
                    FrameKind::Large => &mut census.large,
                    other => return self.imbalance(head, "kind of a head frame", 1, other as u64),
                };
                *sum += frames as u64;
                self.imbalance(head, "frames past a multiple of the order", 0, (head.0 % frames) as u64)?;
                at += frames;
            }
            self.imbalance(span.start.plus(to), "end of the last block", to as u64, at as u64)?;
        }
        Ok(())
    }

    fn check_lists(&self, census: &Census, hint: u64, in_slots: Option<u64>) -> Result<(), Imbalance> {
        let start = self.zone.span.start;
        let mut listed = 0;
        for order in 0..=self.zone.machine.max_order {
            for ty in MigrateType::ALL {
                let list = &self.free_area[order as usize][ty as usize];
                let mut blocks = 0;
                let mut wrong = None;
                list.each::<P>(|pfn| {
                    let state = self.state(pfn);
                    let right = (FrameKind::Buddy, order, ty as u8);
                    if (state.kind, state.order, state.migrate_type) != right {
                        wrong = Some((pfn, state.kind));
                    }
                    blocks += 1;
                });
                if let Some((pfn, kind)) = wrong {
                    self.imbalance(pfn, "listed block that says otherwise", u64::MAX, kind as u64)?;
                }
                self.imbalance(start, "blocks on a list", list.count as u64, blocks)?;
                listed += blocks << order;
            }
        }
        self.imbalance(start, "frames on the lists", listed, census.buddy)?;
        self.imbalance(start, "free frames", self.free, census.buddy + census.untouched)?;
        self.imbalance(start, "free frames as published", hint, self.free)?;
        if let Some(in_slots) = in_slots {
            self.imbalance(start, "frames on per-CPU lists", in_slots, census.pcp)?;
        }
        Ok(())
    }
}
