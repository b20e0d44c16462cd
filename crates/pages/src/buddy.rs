//! The buddy system: free blocks of 2^order frames.
//!
//! A free block's head frame says `Buddy`, its order and the migrate type of the list it is on; no other
//! frame of the zone says `Buddy`. Two blocks of one order whose numbers differ in that order's bit alone are
//! buddies and merge.
//!
//! The equation that always holds: frames on the lists + frames beyond the frontier = `free`.
//!
//! ```text
//! take(order, type)            the smallest block that is large enough, or a stolen one, or the reserve
//!   smallest                     first list with a block, from `order` up
//!     pop                          listed block, else the frontier
//!     expand                       upper halves go back, to the head of their lists
//!   steal (steal.rs)             another migrate type's block
//! give(pfn, order)             merges upwards, then lists the result
//!   put                          to the head, or to the tail if it would soon merge further
//! ```

use crate::migrate::MigrateType;
use crate::policy::Reserve;
use crate::resident::Resident;
use crate::zone::{Blocks, Held};
use slablab_platform::{Event, Field, FrameKind, FrameState, Pfn, Platform, Word};

/// Which end of a list a block goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Head,
    Tail,
}

impl<P: Platform> Held<'_, P> {
    /// Takes a block for a request of type `ty`. Its head says [`FrameKind::Inside`] and its pageblock's
    /// type; `atomic` requests may use the high-order atomic reserve; stolen blocks are at least of order
    /// `steal_from`.
    pub(crate) fn take(&mut self, order: u8, ty: MigrateType, atomic: bool, steal_from: u8) -> Option<Pfn> {
        let high_atomic = atomic && order > 0 && self.zone.machine.policy.reserve == Reserve::HighAtomic;
        let reserve = |held: &mut Self| held.smallest(order, MigrateType::Reserve);
        let mut taken = if high_atomic { reserve(self) } else { None };
        taken = taken.or_else(|| self.smallest(order, ty));
        taken = taken.or_else(|| self.steal(order, ty, steal_from));
        if self.zone.machine.policy.reserve == Reserve::LastResort {
            taken = taken.or_else(|| reserve(self));
        }
        let pfn = taken?;
        // Until now the head says `Buddy`; reserving a pageblock moves everything that says so.
        self.set_state(pfn, FrameKind::Inside, order, ty);
        if high_atomic {
            self.reserve_pageblock(pfn);
        }
        let block_type = self.block_type(pfn);
        self.set_state(pfn, FrameKind::Inside, order, block_type);
        Some(pfn)
    }

    /// The frames of a free block that may be resident.
    pub(crate) fn resident_of(&self, pfn: Pfn) -> Resident {
        P::with_frame(pfn, |frame| Resident::unpack(frame.extra.get()))
    }

    pub(crate) fn set_resident(&self, pfn: Pfn, resident: Resident) {
        P::with_frame(pfn, |frame| frame.extra.set(resident.pack()));
    }

    /// Takes back a block that was used: all its frames may be resident.
    pub(crate) fn give(&mut self, pfn: Pfn, order: u8) {
        self.give_as(pfn, order, Resident::all(order));
    }

    /// Takes back a block; `resident` says which of its frames may be resident.
    pub(crate) fn give_as(&mut self, pfn: Pfn, order: u8, mut resident: Resident) {
        let ty = self.block_type(pfn);
        let (mut head, mut order) = (pfn, order);
        self.set_state(pfn, FrameKind::Inside, order, ty);
        while order < self.zone.machine.max_order {
            let buddy = Pfn(head.0 ^ 1 << order);
            let Some(buddy_type) = self.listed(buddy, order) else { break };
            if !self.may_mix(order, ty, buddy_type) {
                break;
            }
            self.unlist(buddy, order, buddy_type);
            let other = self.resident_of(buddy);
            let (low, high) = if buddy.0 > head.0 { (resident, other) } else { (other, resident) };
            resident = low.before(high, 1 << order);
            self.set_state(buddy, FrameKind::Inside, order, buddy_type);
            P::count(Event::BuddyMerge, 1);
            head = Pfn(head.0 & !(1 << order));
            order += 1;
        }
        let end = if self.would_merge(head, order) { End::Tail } else { End::Head };
        self.set_resident(head, resident);
        self.put(head, order, ty, end);
    }

    /// The smallest listed block of a type that is large enough, cut to size.
    pub(crate) fn smallest(&mut self, order: u8, ty: MigrateType) -> Option<Pfn> {
        let max = self.zone.machine.max_order;
        let used = (order..=max).find(|high| self.resident_first() && self.has_used(*high, ty));
        for high in used.unwrap_or(order)..=max {
            if let Some(pfn) = self.pop(high, ty) {
                return Some(self.expand(pfn, high, order, ty));
            }
        }
        None
    }

    /// The smallest listed block whose first `frames` frames have their memory, cut to 2^`order` frames: its
    /// beginning. Its head says [`FrameKind::Inside`].
    pub(crate) fn smallest_committed(&mut self, order: u8, frames: u32) -> Option<Pfn> {
        for high in order..=self.zone.machine.max_order {
            for ty in MigrateType::ALL.into_iter().filter(|ty| *ty != MigrateType::Reserve) {
                let list = &self.free_area[high as usize][ty as usize];
                if let Some(pfn) = list.find::<P>(|pfn| P::has_memory(pfn, frames)) {
                    self.unlist(pfn, high, ty);
                    let pfn = self.cut_down(pfn, (high, order), ty, false);
                    let block_type = self.block_type(pfn);
                    self.set_state(pfn, FrameKind::Inside, order, block_type);
                    return Some(pfn);
                }
            }
        }
        None
    }

    fn resident_first(&self) -> bool {
        self.zone.machine.policy.resident_first
    }

    /// Whether a list has a block with resident frames, where those come first.
    fn has_used(&self, order: u8, ty: MigrateType) -> bool {
        let first = self.free_area[order as usize][ty as usize].first();
        first.is_some_and(|pfn| self.resident_of(pfn) != Resident::NONE)
    }

    /// Takes the first block of a list; the frontier stands behind the list of largest movable blocks.
    pub(crate) fn pop(&mut self, order: u8, ty: MigrateType) -> Option<Pfn> {
        if let Some(pfn) = self.free_area[order as usize][ty as usize].first() {
            self.unlist(pfn, order, ty);
            return Some(pfn);
        }
        let frontier = order == self.zone.machine.max_order && ty == MigrateType::Movable;
        if !frontier || self.touched >= self.frontier_end {
            return None;
        }
        let pfn = self.zone.span.start.plus(self.touched);
        if !P::commit_descriptors(pfn, 1 << order) {
            return None;
        }
        self.touched += 1 << order;
        self.free -= 1 << order;
        self.dirty |= 1 << order;
        Some(pfn)
    }

    /// Whether a list, with the frontier behind it, has a block.
    pub(crate) fn has(&self, order: u8, ty: MigrateType) -> bool {
        let frontier = order == self.zone.machine.max_order && ty == MigrateType::Movable;
        self.free_area[order as usize][ty as usize].count > 0 || frontier && self.touched < self.frontier_end
    }

    /// Cuts a block of order `high` down to order `low` and returns the piece's first frame: the block's
    /// beginning, or a half with resident frames where those come first. The other halves go to the heads of
    /// the lists of `ty`.
    pub(crate) fn expand(&mut self, pfn: Pfn, high: u8, low: u8, ty: MigrateType) -> Pfn {
        if high == low { pfn } else { self.cut_down(pfn, (high, low), ty, self.resident_first()) }
    }

    /// [`Held::expand`], which takes a half with resident frames if `resident_first` says so.
    fn cut_down(
        &mut self,
        mut pfn: Pfn,
        (high, low): (u8, u8),
        ty: MigrateType,
        resident_first: bool,
    ) -> Pfn {
        let mut resident = self.resident_of(pfn);
        for order in (low..high).rev() {
            P::count(Event::BuddySplit, 1);
            let mut left = pfn.plus(1 << order);
            let mut left_resident = resident.part(1 << order, 1 << order);
            resident = resident.part(0, 1 << order);
            if resident_first && resident == Resident::NONE && left_resident != Resident::NONE {
                (pfn, left) = (left, pfn);
                (resident, left_resident) = (left_resident, resident);
            }
            self.set_resident(left, left_resident);
            self.put(left, order, ty, End::Head);
        }
        self.set_resident(pfn, resident);
        pfn
    }

    /// Whether blocks of these types may merge. The high-order atomic reserve stays apart, or it would leak
    /// away.
    fn may_mix(&self, order: u8, ty: MigrateType, buddy_type: MigrateType) -> bool {
        let machine = self.zone.machine;
        let apart = (ty == MigrateType::Reserve) != (buddy_type == MigrateType::Reserve);
        !(apart && order >= machine.pageblock_order && machine.policy.reserve == Reserve::HighAtomic)
    }

    /// Puts a block on a list without merging it.
    fn put(&mut self, pfn: Pfn, order: u8, ty: MigrateType, end: End) {
        self.set_state(pfn, FrameKind::Buddy, order, ty);
        let used = self.resident_of(pfn) != Resident::NONE;
        let end = match self.resident_first() {
            true if used => End::Head,
            true => End::Tail,
            false => end,
        };
        let list = &mut self.free_area[order as usize][ty as usize];
        match end {
            End::Head => list.push_front::<P>(pfn),
            End::Tail => list.push_back::<P>(pfn),
        }
        self.free += 1 << order;
        self.resident += self.resident_of(pfn).frames();
        self.dirty |= 1 << order;
    }

    /// Takes a block off the list it is on. The caller sets the block's state.
    pub(crate) fn unlist(&mut self, pfn: Pfn, order: u8, ty: MigrateType) {
        self.free_area[order as usize][ty as usize].remove::<P>(pfn);
        self.free -= 1 << order;
        self.resident -= self.resident_of(pfn).frames();
        self.dirty |= 1 << order;
    }

    /// Puts a block that is on no list on one.
    pub(crate) fn list(&mut self, pfn: Pfn, order: u8, ty: MigrateType) {
        self.put(pfn, order, ty, End::Head);
    }

    /// Moves a listed block to the head of another type's list.
    pub(crate) fn relist(&mut self, pfn: Pfn, order: u8, from: MigrateType, to: MigrateType) {
        self.unlist(pfn, order, from);
        self.put(pfn, order, to, End::Head);
    }

    /// The type of the list that a free block of exactly this order is on; `None` if there is no such block
    /// here.
    fn listed(&self, pfn: Pfn, order: u8) -> Option<MigrateType> {
        let inside = pfn.0.wrapping_sub(self.zone.span.start.0) < self.zone.span.frames;
        if !inside {
            return None;
        }
        let state = self.state(pfn);
        let free = state.kind == FrameKind::Buddy && state.order == order;
        free.then(|| MigrateType::from_index(state.migrate_type as u64))
    }

    /// Whether the block that `pfn` and its buddy would form could merge at once: then it is better left
    /// alone for a while.
    fn would_merge(&self, pfn: Pfn, order: u8) -> bool {
        let policy = &self.zone.machine.policy;
        if !policy.merge_to_tail || order + 1 >= self.zone.machine.max_order {
            return false;
        }
        let parent = pfn.0 & !(1 << order);
        self.listed(Pfn(parent ^ 1 << (order + 1)), order + 1).is_some()
    }

    /// First use of the zone: lists what the frontier cannot hold, the frames in front of its largest blocks
    /// and those behind, and sets reserved pageblocks aside.
    #[cold]
    pub(crate) fn open(&mut self) {
        let (span, max) = (self.zone.span, self.zone.machine.max_order);
        let (head, tail) = (self.zone.machine.head(span), self.zone.machine.tail(span));
        self.opened = true;
        self.touched = head;
        self.frontier_end = span.frames - tail;
        self.free = (self.frontier_end - head) as u64;
        let mut at = 0;
        for order in (0..max).filter(|order| head >> order & 1 == 1) {
            self.put(span.start.plus(at), order, MigrateType::Movable, End::Head);
            at += 1 << order;
        }
        at = self.frontier_end;
        for order in (0..max).rev().filter(|order| tail >> order & 1 == 1) {
            self.put(span.start.plus(at), order, MigrateType::Movable, End::Head);
            at += 1 << order;
        }
        if self.zone.machine.policy.reserve == Reserve::LastResort {
            self.set_last_resort_aside();
        }
        self.dirty = (2 << max) - 1;
    }

    /// Free blocks of an order, as CPUs without the lock may read them.
    pub(crate) fn counted(&self, order: u8) -> Blocks {
        let lists = &self.free_area[order as usize];
        let reserve = lists[MigrateType::Reserve as usize].count;
        let listed: u32 = lists.iter().map(|list| list.count).sum();
        Blocks { usual: listed - reserve + self.frontier_blocks(order), reserve }
    }

    /// Blocks beyond the frontier, if this is their order.
    pub(crate) fn frontier_blocks(&self, order: u8) -> u32 {
        if order == self.zone.machine.max_order { (self.frontier_end - self.touched) >> order } else { 0 }
    }

    /// A frame's state.
    pub(crate) fn state(&self, pfn: Pfn) -> FrameState {
        P::with_frame(pfn, |frame| FrameState::unpack(frame.state.load()))
    }

    /// Marks a block that was taken off its list as inside a block: neither free nor allocated for now.
    pub(crate) fn set_isolated(&self, pfn: Pfn, order: u8) {
        self.set_state(pfn, FrameKind::Inside, order, self.block_type(pfn));
    }

    /// Marks one frame that was taken off its list as allocated.
    pub(crate) fn set_allocated(&self, pfn: Pfn) {
        self.set_state(pfn, FrameKind::Allocated, 0, self.block_type(pfn));
    }

    fn set_state(&self, pfn: Pfn, kind: FrameKind, order: u8, ty: MigrateType) {
        let (node, zone) = (self.zone.node, self.zone.index);
        let state = FrameState { kind, reserve: false, order, migrate_type: ty as u8, zone, node, tail: 0 };
        P::with_frame(pfn, |frame| frame.state.store(state.pack()));
    }

    /// The migrate type of the pageblock a frame is in.
    pub(crate) fn block_type(&self, pfn: Pfn) -> MigrateType {
        P::with_frame(self.pageblock(pfn), |frame| MigrateType::from_index(frame.block.get()))
    }

    /// Labels the pageblock a frame is in.
    pub(crate) fn set_block_type(&self, pfn: Pfn, ty: MigrateType) {
        P::with_frame(self.pageblock(pfn), |frame| frame.block.set(ty as u64));
    }

    /// The first frame of the pageblock a frame is in.
    pub(crate) fn pageblock(&self, pfn: Pfn) -> Pfn {
        Pfn(pfn.0 >> self.zone.machine.pageblock_order << self.zone.machine.pageblock_order)
    }
}
