//! Allocations of any number of frames, not rounded to a power of two (`alloc_pages_exact`), which may grow
//! and shrink in place.
//!
//! A block is cut into the largest aligned pieces there are. Every frame stays in exactly one piece, whose
//! head says its order; the first head's `extra` says how many frames the allocation has.
//!
//! ```text
//! alloc_exact        a block, whose end goes back
//! resize_exact
//!   shrink             the end goes back
//!   grow               takes the free blocks behind it, if they are large enough; the frames beyond the new end go back
//! split_exact        cuts it in two: the pieces of both are made again
//! join_exact         two that lie one behind the other become one, with the pieces of both
//! free_exact         piece by piece, made again as large as they can be
//! ```

use crate::allocator::Pages;
use crate::migrate::MigrateType;
use crate::request::Attempt;
use crate::resident::Resident;
use crate::zone::Held;
use slablab_platform::{Field, FrameKind, FrameState, Gfp, NodeId, Pfn, Platform, Word};

impl<P: Platform> Pages<P> {
    /// `frames` frames from the node nearest to `node`, at a multiple of 2^`align` frames.
    /// [`Pages::free_exact`] takes them back. Also returns whether the memory still reads as the world made
    /// it: zeros.
    pub fn alloc_exact(&self, gfp: Gfp, frames: u32, align: u8, node: NodeId) -> Option<(Pfn, bool)> {
        let order = (frames.checked_next_power_of_two()?.ilog2() as u8).max(align);
        let (pfn, resident) =
            self.attempt_known(gfp, (order, frames), node, FrameKind::Allocated, Attempt::Full)?;
        P::with_frame(pfn, |frame| frame.extra.set(frames as u64));
        self.cut(pfn, 0, frames, |_, _| ());
        // Frames that were not used are not resident when they go back.
        self.cut(pfn, frames, 1 << order, |piece, state| {
            let part = resident.part(piece.0 - pfn.0, 1 << state.order);
            self.zone(state.node, state.zone).lock().give_as(piece, state.order, part);
        });
        Some((pfn, resident.part(0, frames) == Resident::NONE))
    }

    /// Resizes an allocation of [`Pages::alloc_exact`] in place to `frames` frames, at least one; returns
    /// whether that could be done. New frames may hold anything.
    pub fn resize_exact(&self, pfn: Pfn, frames: u32) -> bool {
        let before = Self::exact_frames(pfn);
        if frames < before {
            // The new end cuts pieces: they are made again.
            self.cut(pfn, 0, frames, |_, _| ());
            P::with_frame(pfn, |frame| frame.extra.set(frames as u64));
            self.cut(pfn, frames, before, |piece, _| self.free(piece));
            return true;
        }
        let head = P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()));
        let grown = self.zone(head.node, head.zone).lock().take_behind(pfn.plus(before), frames - before);
        let Some((got, resident)) = grown else { return false };
        let committed = P::commit_frames(pfn.plus(before), frames - before);
        let end = if committed { frames } else { before };
        self.cut(pfn, before, end, |_, _| ());
        self.cut(pfn, end, before + got, |piece, state| {
            let part = resident.part(piece.0 - pfn.0 - before, 1 << state.order);
            self.zone(state.node, state.zone).lock().give_as(piece, state.order, part);
        });
        P::with_frame(pfn, |frame| frame.extra.set(end as u64));
        committed
    }

    /// Frees an allocation of [`Pages::alloc_exact`].
    pub fn free_exact(&self, pfn: Pfn) {
        let frames = P::with_frame(pfn, |frame| frame.extra.get()) as u32;
        self.cut(pfn, 0, frames, |piece, _| self.free(piece));
    }

    /// Frees an allocation of [`Pages::alloc_exact`] whose memory was given back to the system: it reads as
    /// zeros.
    pub fn free_exact_discarded(&self, pfn: Pfn) {
        self.cut(pfn, 0, Self::exact_frames(pfn), |piece, state| {
            self.zone(state.node, state.zone).lock().give_as(piece, state.order, Resident::NONE);
        });
    }

    /// Cuts an allocation of [`Pages::alloc_exact`] in two: the first keeps `frames` frames, at least one and
    /// not all. Returns where the second begins. Its owner's words in the descriptor are anything.
    pub fn split_exact(&self, pfn: Pfn, frames: u32) -> Pfn {
        let all = Self::exact_frames(pfn);
        let second = pfn.plus(frames);
        self.cut(pfn, 0, frames, |_, _| ());
        self.cut(pfn, frames, all, |_, _| ());
        P::with_frame(pfn, |frame| frame.extra.set(frames as u64));
        P::with_frame(second, |frame| frame.extra.set((all - frames) as u64));
        second
    }

    /// Makes one of two allocations of [`Pages::alloc_exact`]; the second begins where the first ends, and is
    /// of the same node and zone.
    pub fn join_exact(pfn: Pfn, second: Pfn) {
        let frames = Self::exact_frames(pfn) + Self::exact_frames(second);
        P::with_frame(pfn, |frame| frame.extra.set(frames as u64));
    }

    /// Frames of an exact allocation.
    pub fn exact_frames(pfn: Pfn) -> u32 {
        P::with_frame(pfn, |frame| frame.extra.get()) as u32
    }

    /// The node that an exact allocation is of.
    pub fn exact_node(pfn: Pfn) -> NodeId {
        P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load())).node
    }

    /// Makes frames `from` to `to` of the block at `pfn` the largest aligned blocks they can be, and calls
    /// `f` with each and its state.
    fn cut(&self, pfn: Pfn, from: u32, to: u32, f: impl Fn(Pfn, FrameState)) {
        let head = P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()));
        let mut at = from;
        while at < to {
            let fits = (to - at).ilog2().min(self.machine.max_order.into());
            let order = (pfn.0 + at).trailing_zeros().min(fits) as u8;
            let piece = pfn.plus(at);
            let state = FrameState { kind: FrameKind::Allocated, order, tail: 0, ..head };
            P::with_frame(piece, |frame| frame.state.store(state.pack()));
            f(piece, state);
            at += 1 << order;
        }
    }
}

impl<P: Platform> Held<'_, P> {
    /// Takes the free blocks from `at` on that make up `frames` frames or more; returns the number of frames,
    /// and which of them may be resident. `None`, and no block is taken, if one of them is not free.
    fn take_behind(&mut self, at: Pfn, frames: u32) -> Option<(u32, Resident)> {
        let span = self.zone.span;
        let mut got = 0;
        while got < frames {
            let block = at.plus(got);
            let inside = block.0.wrapping_sub(span.start.0) < span.frames;
            let state = Some(block).filter(|_| inside).map(|block| self.state(block))?;
            if state.kind != FrameKind::Buddy {
                return None;
            }
            got += 1 << state.order;
        }
        let (mut taken, mut resident) = (0, Resident::NONE);
        while taken < got {
            let block = at.plus(taken);
            let state = self.state(block);
            resident = resident.before(self.resident_of(block), taken);
            self.unlist(block, state.order, MigrateType::from_index(state.migrate_type as u64));
            self.set_isolated(block, state.order);
            taken += 1 << state.order;
        }
        Some((got, resident))
    }
}
