//! What compaction needs of the page allocator: free frames of a range, types of pageblocks, and whether
//! there is a block.

use crate::allocator::Pages;
use crate::migrate::MigrateType;
use slablab_platform::{FrameKind, NodeId, Pfn, Platform};

impl<P: Platform> Pages<P> {
    /// Takes the free frames of `frames` frames from `first` on, which are of one zone, and calls `f` with
    /// each: each is a block of order 0 now, and [`Pages::free`] takes it back. Per-CPU lists are not looked
    /// at, nor memory that was never used. A block that begins before `first` is left alone; one that begins
    /// in the range is taken as a whole. Returns the number of frames.
    pub fn take_free(&self, first: Pfn, frames: u32, mut f: impl FnMut(Pfn)) -> u32 {
        let Some((node, zone)) = self.zone_with(first) else { return 0 };
        let zone = self.zone(node, zone);
        let mut held = zone.lock();
        let (mut at, mut taken) = (first.0, 0);
        let touched = zone.span.start.0 + held.touched;
        let listed_end = zone.span.start.0 + held.frontier_end;
        while at < first.0.saturating_add(frames).min(zone.span.start.0 + zone.span.frames) {
            // Descriptors beyond the frontier were never written; the rest behind it is listed.
            if (touched..listed_end).contains(&at) {
                at = listed_end;
                continue;
            }
            let state = held.state(Pfn(at));
            if state.kind != FrameKind::Buddy {
                at += 1;
                continue;
            }
            held.unlist(Pfn(at), state.order, MigrateType::from_index(state.migrate_type as u64));
            for frame in (at..at + (1 << state.order)).map(Pfn) {
                held.set_allocated(frame);
                f(frame);
            }
            at += 1 << state.order;
            taken += 1 << state.order;
        }
        taken
    }

    /// The migrate type of the pageblock that has a frame; `None` if no zone has the frame.
    pub fn pageblock_type(&self, pfn: Pfn) -> Option<MigrateType> {
        let (node, zone) = self.zone_with(pfn)?;
        Some(self.zone(node, zone).lock().block_type(pfn))
    }

    /// Frames of a pageblock.
    pub fn pageblock_frames(&self) -> u32 {
        1 << self.machine.pageblock_order
    }

    /// Whether a zone has a free block of this order or a higher one on the list of a type.
    pub fn has_block(&self, node: NodeId, zone: u8, order: u8, ty: MigrateType) -> bool {
        let held = self.zone(node, zone).lock();
        (order..=self.machine.max_order).any(|order| held.has(order, ty))
    }

    /// Why a request of an order fails in a zone, in thousandths: near 0 for lack of memory, near 1000
    /// because memory is in pieces (`extfrag_index`); -1000 if there is a block.
    pub fn fragmentation(&self, node: NodeId, zone: u8, order: u8) -> i32 {
        let zone = self.zone(node, zone);
        let blocks = |order: u8| u64::from(zone.blocks(order).usual) + u64::from(zone.blocks(order).reserve);
        let all: u64 = (0..=self.machine.max_order).map(blocks).sum();
        let large = (order..=self.machine.max_order).any(|order| blocks(order) > 0);
        match all {
            0 => 0,
            _ if large => -1000,
            _ => 1000 - ((1000 + zone.free() * 1000 / (1 << order)) / all) as i32,
        }
    }

    fn zone_with(&self, pfn: Pfn) -> Option<(NodeId, u8)> {
        let nodes = (0..P::nodes()).map(NodeId);
        let mut zones = nodes.flat_map(|node| self.zones_of(node).map(move |zone| (node, zone)));
        zones.find(|(node, zone)| {
            let span = self.machine.span::<P>(*node, *zone);
            pfn.0.wrapping_sub(span.start.0) < span.frames
        })
    }
}
