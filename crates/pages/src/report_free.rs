//! Free page reporting: free memory that may be resident goes back to where it came from, and exact allocations.
//!
//! Linux tells a hypervisor which free blocks it need not keep (5.7, `page_reporting`); here the same tells the world.
//! A block that was used is *resident* until it was reported: a flag in its head's `extra` field, which belongs to the buddy
//! while the block is free. Merging keeps the flag of either half, cutting gives it to both.
//!
//! A block is reported outside `zone->lock`: it leaves its list as if it were allocated, and comes back not resident.

use crate::zone::Held;
use crate::{Attempt, Pages};
use slablab_platform::{Field, FrameKind, FrameState, Gfp, NodeId, PerNode, Pfn, Platform, Word};

/// Set in a free block's `extra`.
pub(crate) const RESIDENT: u64 = 1;

impl<P: Platform> Held<'_, P> {
    /// Whether memory behind a free block may be resident.
    pub(crate) fn is_resident(&self, pfn: Pfn) -> bool {
        P::with_frame(pfn, |frame| frame.extra.get() == RESIDENT)
    }

    pub(crate) fn set_resident(&self, pfn: Pfn, resident: bool) {
        P::with_frame(pfn, |frame| frame.extra.set(if resident { RESIDENT } else { 0 }));
    }

    /// Takes a resident free block of at least `order` off its list, the largest first.
    fn take_resident(&mut self, order: u8) -> Option<(Pfn, u8)> {
        for order in (order..=self.zone.machine.max_order).rev() {
            for index in 0..self.free_area[order as usize].len() {
                let list = self.free_area[order as usize][index];
                if let Some(pfn) = list.find::<P>(|pfn| self.is_resident(pfn)) {
                    let ty = crate::MigrateType::from_index(self.state(pfn).migrate_type as u64);
                    self.unlist(pfn, order, ty);
                    self.set_isolated(pfn, order);
                    return Some((pfn, order));
                }
            }
        }
        None
    }
}

impl<P: Platform> Pages<P> {
    /// Free frames that may be resident, as a hint: blocks that were used and not reported since.
    pub fn resident_free_frames(&self) -> u64 {
        (0..P::nodes()).flat_map(|node| self.zones_of(NodeId(node)).map(move |zone| (node, zone))).fold(
            0,
            |sum, (node, zone)| match self.nodes.peek(NodeId(node)) {
                Some(state) => sum + state.zones[zone as usize].resident(),
                None => sum,
            },
        )
    }

    /// Hands resident free blocks of at least `order` to `give_back`, which makes them read as zeros, until at most `keep`
    /// frames of them are left. Answers the frames given back.
    pub fn report_free(&self, order: u8, keep: u64, mut give_back: impl FnMut(Pfn, u8)) -> u64 {
        let mut reported = 0;
        for node in (0..P::nodes()).map(NodeId) {
            for index in self.zones_of(node) {
                let zone = self.zone(node, index);
                while zone.span.frames > 0 && self.resident_free_frames() > keep {
                    let taken = zone.lock().take_resident(order);
                    let Some((pfn, order)) = taken else { break };
                    give_back(pfn, order);
                    zone.lock().give_as(pfn, order, false);
                    reported += 1 << order;
                }
            }
        }
        reported
    }

    /// `frames` frames, not rounded to a power of two (`alloc_pages_exact`), from the node nearest to `node`, at a multiple of
    /// 2^`align` frames: the end of the
    /// block goes back. The head's `extra` says how many, and [`Pages::free_exact`] takes them back. Also answers whether
    /// the memory still reads as the world made it: zeros.
    pub fn alloc_exact(&self, gfp: Gfp, frames: u32, align: u8, node: NodeId) -> Option<(Pfn, bool)> {
        let order = (frames.checked_next_power_of_two()?.ilog2() as u8).max(align);
        let (pfn, untouched) = self.attempt_known(gfp, order, node, FrameKind::Allocated, Attempt::Full)?;
        P::with_frame(pfn, |frame| frame.extra.set(frames as u64));
        // Every frame stays in exactly one block whose head says its order.
        self.cut(pfn, 0, frames, |_| ());
        self.cut(pfn, frames, 1 << order, |piece| self.free(piece));
        Some((pfn, untouched))
    }

    /// Gives back what [`Pages::alloc_exact`] gave.
    pub fn free_exact(&self, pfn: Pfn) {
        let frames = P::with_frame(pfn, |frame| frame.extra.get()) as u32;
        self.cut(pfn, 0, frames, |piece| self.free(piece));
    }

    /// Frames of an exact allocation.
    pub fn exact_frames(pfn: Pfn) -> u32 {
        P::with_frame(pfn, |frame| frame.extra.get()) as u32
    }

    /// Makes frames `from` to `to` of the block at `pfn` the largest aligned blocks they can be, and calls `f` with each.
    fn cut(&self, pfn: Pfn, from: u32, to: u32, f: impl Fn(Pfn)) {
        let head = P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()));
        let mut at = from;
        while at < to {
            let fits = (to - at).ilog2();
            let order = (pfn.0 + at).trailing_zeros().min(fits) as u8;
            let piece = pfn.plus(at);
            let state = FrameState { kind: FrameKind::Allocated, order, tail: 0, ..head };
            P::with_frame(piece, |frame| frame.state.store(state.pack()));
            f(piece);
            at += 1 << order;
        }
    }
}
