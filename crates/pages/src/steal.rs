//! When a migrate type has no block left: taking another type's, and the reserve.
//!
//! Mixing types within a pageblock is what makes memory unusable for large blocks later, so a stolen block
//! should be large, and the whole pageblock is relabelled when at least half of it could be moved: the next
//! requests of that type then need not steal.

use crate::migrate::MigrateType;
use crate::policy::Steal;
use crate::zone::Held;
use slablab_platform::{Event, FrameKind, Pfn, Platform};

impl<P: Platform> Held<'_, P> {
    /// A block of another type of at least order `from`, cut to size; the largest one there is, unless it
    /// cannot be claimed.
    pub(crate) fn steal(&mut self, order: u8, ty: MigrateType, from: u8) -> Option<Pfn> {
        let max = self.zone.machine.max_order;
        for high in (order.max(from)..=max).rev() {
            let Some(other) = self.other_type(high, ty) else { continue };
            if self.may_claim(high, ty) {
                return self.claim(high, order, ty, other);
            }
            return match self.zone.machine.policy.steal {
                Steal::Largest => self.borrow(high, order, other),
                // Nothing to claim: break up as little as possible instead.
                Steal::ClaimOrSmallest => (order.max(from)..=max).find_map(|low| {
                    let other = self.other_type(low, ty)?;
                    self.borrow(low, order, other)
                }),
            };
        }
        None
    }

    fn other_type(&self, order: u8, ty: MigrateType) -> Option<MigrateType> {
        ty.fallbacks().into_iter().find(|other| self.has(order, *other))
    }

    /// Whether a block of this order justifies taking its pageblock over.
    fn may_claim(&self, order: u8, ty: MigrateType) -> bool {
        let machine = self.zone.machine;
        let usually_claims = match machine.policy.steal {
            Steal::Largest => ty == MigrateType::Reclaimable,
            Steal::ClaimOrSmallest => ty != MigrateType::Movable,
        };
        order >= machine.pageblock_order / 2 || usually_claims || !machine.grouping
    }

    /// Takes a block and leaves its pageblock alone: the remainder stays with its type.
    fn borrow(&mut self, high: u8, order: u8, other: MigrateType) -> Option<Pfn> {
        let pfn = self.pop(high, other)?;
        P::count(Event::BuddySteal, 1);
        if high < self.zone.machine.pageblock_order {
            self.zone.raise_marks();
        }
        Some(self.expand(pfn, high, order, other))
    }

    /// Takes a block and with it the free part of its pageblock; the label too if that part is at least half.
    fn claim(&mut self, high: u8, order: u8, ty: MigrateType, other: MigrateType) -> Option<Pfn> {
        let pageblock_order = self.zone.machine.pageblock_order;
        P::count(Event::BuddySteal, 1);
        if high >= pageblock_order {
            let pfn = self.pop(high, other)?;
            for block in 0..1u32 << (high - pageblock_order) {
                self.set_block_type(pfn.plus(block << pageblock_order), ty);
            }
            return Some(self.expand(pfn, high, order, ty));
        }
        self.zone.raise_marks();
        let pfn = self.free_area[high as usize][other as usize].first()?;
        let moved = self.move_pageblock(pfn, ty);
        if moved >= 1 << pageblock_order >> 1 {
            self.set_block_type(pfn, ty);
        }
        self.unlist(pfn, high, ty);
        Some(self.expand(pfn, high, order, ty))
    }

    /// Moves the free blocks of a pageblock to the lists of `ty`; returns how many frames they have.
    ///
    /// Steps from head to head: every touched frame is in exactly one block, free or not, whose head says its
    /// order.
    fn move_pageblock(&mut self, pfn: Pfn, ty: MigrateType) -> u32 {
        let span = self.zone.span;
        let first = self.pageblock(pfn);
        let end = (first.0 + (1 << self.zone.machine.pageblock_order)).min(span.start.0 + span.frames);
        let (mut at, mut moved) = (first, 0);
        while at.0 < end {
            let state = self.state(at);
            if state.kind == FrameKind::Buddy {
                let listed = MigrateType::from_index(state.migrate_type as u64);
                self.relist(at, state.order, listed, ty);
                moved += 1 << state.order;
            }
            at = at.plus(1 << state.order);
        }
        moved
    }

    /// After an atomic request above order 0 was served: keeps its pageblock for such requests, up to 1 % of
    /// the zone.
    pub(crate) fn reserve_pageblock(&mut self, pfn: Pfn) {
        let frames = 1u32 << self.zone.machine.pageblock_order;
        let limit = self.zone.span.frames / 100 + frames;
        if self.reserved + frames > limit || self.block_type(pfn) == MigrateType::Reserve {
            return;
        }
        self.reserved += frames;
        self.set_block_type(pfn, MigrateType::Reserve);
        self.move_pageblock(pfn, MigrateType::Reserve);
    }

    /// Gives one reserved pageblock with free memory back to a type; whether there was one.
    pub(crate) fn unreserve_pageblock(&mut self, ty: MigrateType) -> bool {
        let reserve = MigrateType::Reserve as usize;
        let Some(pfn) = self.free_area.iter().find_map(|lists| lists[reserve].first()) else { return false };
        let pageblock_order = self.zone.machine.pageblock_order;
        let pageblocks = 1u32 << self.state(pfn).order.saturating_sub(pageblock_order);
        for block in (0..pageblocks).map(|block| pfn.plus(block << pageblock_order)) {
            self.set_block_type(block, ty);
        }
        self.reserved -= (pageblocks << pageblock_order).min(self.reserved);
        self.move_pageblock(pfn, ty);
        true
    }

    /// `MIGRATE_RESERVE`: the first pageblocks of the zone, as many as its min watermark fills, two at most.
    pub(crate) fn set_last_resort_aside(&mut self) {
        let pageblock_order = self.zone.machine.pageblock_order;
        let max = self.zone.machine.max_order;
        let wanted = self.zone.marks().min.div_ceil(1 << pageblock_order).min(2) as u32;
        let mut done = 0;
        while done < wanted && self.zone.machine.grouping {
            let Some(pfn) = self.pop(max, MigrateType::Movable) else { return };
            let pfn = self.expand(pfn, max, pageblock_order, MigrateType::Movable);
            self.list(pfn, pageblock_order, MigrateType::Movable);
            let here = (wanted - done).min(1 << (max - pageblock_order));
            for block in (0..here).map(|block| pfn.plus(block << pageblock_order)) {
                self.set_block_type(block, MigrateType::Reserve);
                self.move_pageblock(block, MigrateType::Reserve);
            }
            done += here;
        }
    }
}
