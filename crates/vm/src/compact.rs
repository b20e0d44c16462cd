//! Compaction of 6.x: pages move from the beginning of a zone to free frames at its end, until a block is
//! free or the two scanners meet.
//!
//! ```text
//! direct / kcompactd
//!   zone ── is it suitable? ── loop
//!     migrate scanner   a pageblock from below: takes up to 32 pages out of their lists
//!     free scanner      pageblocks from above, movable ones: takes free frames
//!     State::migrate    each page into a free frame; those that fail go back to their lists
//!     is there a block? have the scanners met?
//! ```
//!
//! The scanners go on where the last compaction of the zone ended. A zone in which a compaction with waits
//! failed is left alone for twice as many requests as before, up to 64. Rules: docs/theory/vm.md 7.

use crate::counters::Counter;
use crate::frames::Flags;
use crate::host::{Block, Mark, Waited, Work};
use crate::ids::Frame;
use crate::state::State;
use crate::vm::{Host, Vm};

/// Pages that are taken at a time (`COMPACT_CLUSTER_MAX`).
const CLUSTER: usize = 32;
/// Below this, a request fails for lack of memory, not because memory is in pieces.
const FRAGMENTED: i32 = 500;
/// The order of a compaction that no block ends: no host has one as large.
const WHOLE: u8 = u8::MAX;
/// The highest order for which the index is not asked (`PAGE_ALLOC_COSTLY_ORDER`).
const COSTLY: u8 = 3;

/// What a compaction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Nothing; and for a request only pageblocks of its own type.
    Async,
    /// Locks of pages.
    Light,
    /// The ends of writes, too.
    Full,
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compacted {
    /// There is a block.
    Success,
    /// The scanners met.
    Complete,
    /// There was a block before, or there is too little memory to move pages to.
    Skipped,
    /// The zone is left alone for now.
    Deferred,
}

/// Who asks for which block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The order.
    pub order: u8,
    /// The type of its pageblocks.
    pub block: Block,
    /// The highest zone of a node.
    pub class: u8,
    /// What is waited for.
    pub effort: Effort,
    /// A request asks, not kcompactd.
    pub direct: bool,
}

/// A request compacts zones of a node, the highest first, until there is a block. Returns whether there may
/// be one (docs/theory/vm.md 7.3).
pub fn direct(vm: &Vm, host: &dyn Host, node: u16, wanted: Wanted) -> bool {
    let mut ran = false;
    for zone in zones(vm, node, wanted.class) {
        if wanted.effort > Effort::Async && vm.with(|state| state.scanners[zone].is_deferred(wanted.order)) {
            continue;
        }
        match compact_zone(vm, host, zone, wanted) {
            Compacted::Success => {
                vm.with(|state| {
                    state.scanners[zone].reset(wanted.order);
                    state.count(Counter::CompactStall);
                    state.count(Counter::CompactSuccess);
                });
                return true;
            }
            Compacted::Complete => {
                ran = true;
                if wanted.effort > Effort::Async {
                    vm.with(|state| state.scanners[zone].defer(wanted.order));
                }
            }
            Compacted::Skipped | Compacted::Deferred => {}
        }
    }
    if ran {
        vm.with(|state| {
            state.count(Counter::CompactStall);
            state.count(Counter::CompactFail);
        });
    }
    false
}

/// kcompactd compacts the zones of a node after kswapd has reclaimed for an order.
pub fn kcompactd(vm: &Vm, host: &dyn Host, node: u16, order: u8, class: u8) {
    vm.with(|state| state.count(Counter::KcompactdWake));
    let wanted = Wanted { order, block: Block::Movable, class, effort: Effort::Light, direct: false };
    for zone in zones(vm, node, class) {
        if vm.with(|state| state.scanners[zone].is_deferred(order)) {
            continue;
        }
        let compacted = compact_zone(vm, host, zone, wanted);
        vm.with(|state| match compacted {
            Compacted::Success => state.scanners[zone].reset(order),
            Compacted::Complete => state.scanners[zone].defer(order),
            Compacted::Skipped | Compacted::Deferred => {}
        });
    }
}

/// The administrator compacts all of a node's memory (`/proc/sys/vm/compact_memory`): each zone, from its
/// ends until the scanners meet, with waits.
pub fn whole(vm: &Vm, host: &dyn Host, node: u16) {
    let order = WHOLE;
    let wanted = Wanted { order, block: Block::Movable, class: u8::MAX, effort: Effort::Full, direct: false };
    for zone in zones(vm, node, u8::MAX) {
        vm.with(|state| state.scanners[zone].next = (0, 0));
        run_zone(vm, host, zone, wanted);
    }
}

/// The places of a node's zones up to a class, the highest first.
fn zones(vm: &Vm, node: u16, class: u8) -> Vec<usize> {
    vm.with(|state| {
        let zones = state.zones.iter().enumerate().rev();
        zones.filter(|(_, zone)| zone.node == node && zone.class <= class).map(|(at, _)| at).collect()
    })
}

/// Whether there is a block already, or enough memory to move pages to (docs/theory/vm.md 7.2).
fn suitable(host: &dyn Host, zone: usize, wanted: &Wanted) -> Option<Compacted> {
    let mark = if wanted.order > COSTLY { Mark::Low } else { Mark::Min };
    if host.is_above(zone, mark, wanted.order, wanted.class) {
        return Some(Compacted::Success);
    }
    if host.free_pages(zone) <= host.mark(zone, mark) + (2 << wanted.order) {
        return Some(Compacted::Skipped);
    }
    lacks_memory(wanted.order, host.fragmentation(zone, wanted.order)).then_some(Compacted::Skipped)
}

/// Whether a request of an order fails for lack of memory, which no compaction helps: its fragmentation index
/// says so (docs/theory/vm.md 7.2).
fn lacks_memory(order: u8, index: i32) -> bool {
    order > COSTLY && (0..=FRAGMENTED).contains(&index)
}

/// One run over a zone.
struct Run<'a> {
    vm: &'a Vm,
    host: &'a dyn Host,
    zone: usize,
    wanted: Wanted,
    /// Where each scanner is: the next frame to look at, and the first frame that was looked at.
    migrate: u32,
    free: u32,
    /// It began at the zone's ends.
    whole: bool,
    /// Free frames to move to.
    targets: Vec<Frame>,
}

fn compact_zone(vm: &Vm, host: &dyn Host, zone: usize, wanted: Wanted) -> Compacted {
    if let Some(compacted) = suitable(host, zone, &wanted) {
        return if compacted == Compacted::Success && wanted.direct { compacted } else { Compacted::Skipped };
    }
    run_zone(vm, host, zone, wanted)
}

/// Runs over a zone from where the last run ended.
fn run_zone(vm: &Vm, host: &dyn Host, zone: usize, wanted: Wanted) -> Compacted {
    let (frames, (migrate, free)) =
        vm.with(|state| (state.zones[zone].frames.clone(), state.scanners[zone].next));
    let whole = migrate <= frames.start && (free == 0 || free >= frames.end);
    let free = if free == 0 { frames.end } else { free };
    let migrate = migrate.max(frames.start);
    let mut run = Run { vm, host, zone, wanted, migrate, free, whole, targets: Vec::new() };
    let compacted = run.go();
    for frame in std::mem::take(&mut run.targets) {
        host.free(vm, frame);
    }
    let next = if compacted == Compacted::Complete { (0, 0) } else { (run.migrate, run.free) };
    vm.with(|state| state.scanners[zone].next = next);
    compacted
}

impl Run<'_> {
    fn go(&mut self) -> Compacted {
        while self.migrate < self.free {
            let pages = self.take_pages();
            let failed = self.move_pages(pages);
            self.host.resched();
            if self.has_block() {
                return Compacted::Success;
            }
            if failed && self.targets.is_empty() && self.migrate >= self.free {
                break;
            }
        }
        // A run that did not begin at the ends has not seen all: the next one begins there.
        if self.whole { Compacted::Complete } else { Compacted::Skipped }
    }

    /// Whether there is a block for the request. A block of another type can be stolen; the kernel looks for
    /// that at the ends of pageblocks only, if it waits (docs/theory/vm.md 7.5).
    fn has_block(&self) -> bool {
        let Wanted { order, block, effort, .. } = self.wanted;
        if self.host.has_block(self.zone, order, block) {
            return true;
        }
        let at_end = self.migrate.is_multiple_of(self.host.pageblock_frames());
        let others = [Block::Movable, Block::Reclaimable, Block::Unmovable];
        let steals = block != Block::Movable || order >= 4;
        steals
            && (effort == Effort::Async || at_end)
            && others.into_iter().any(|other| self.host.has_block(self.zone, order, other))
    }

    /// Takes pages of the pageblock of the migrate scanner out of their lists (docs/theory/vm.md 7.1).
    fn take_pages(&mut self) -> Vec<Frame> {
        let frames = self.host.pageblock_frames();
        let end = (self.migrate / frames + 1) * frames;
        let is_source = self.wanted.effort != Effort::Async
            || !self.wanted.direct
            || self.host.block_of(Frame(self.migrate)) == self.wanted.block;
        let mut pages = Vec::new();
        if !is_source {
            self.migrate = end.min(self.free);
            return pages;
        }
        let from = self.migrate;
        while self.migrate < end.min(self.free) && pages.len() < CLUSTER {
            let frame = Frame(self.migrate);
            self.migrate += 1;
            if self.vm.with(|state| self.can_move(state, frame) && self.vm.policy.isolate(state, frame)) {
                pages.push(frame);
            }
        }
        let scanned = self.migrate - from;
        self.host.work(Work::Scan, scanned);
        self.vm.with(|state| {
            state.counters.add(Counter::CompactMigrateScanned, scanned.into());
            state.counters.add(Counter::CompactIsolated, pages.len() as u64);
        });
        pages
    }

    fn can_move(&self, state: &State, frame: Frame) -> bool {
        let flags = state.frames.flags(frame);
        flags.has(Flags::USED | Flags::LISTED)
            && !flags.any(Flags::LOCKED)
            && (self.wanted.effort == Effort::Full || !flags.any(Flags::WRITEBACK))
    }

    /// Moves pages to free frames. Returns whether one could not be moved for want of a frame.
    fn move_pages(&mut self, pages: Vec<Frame>) -> bool {
        let mut failed = false;
        for frame in pages {
            if self.targets.is_empty() {
                self.take_targets();
            }
            if self.wanted.effort == Effort::Full && self.is_written(frame) {
                self.host.wait(self.vm, frame, Waited::Writeback);
            }
            let target = self.targets.pop();
            failed |= target.is_none();
            let moved = self.vm.with(|state| move_page(self.vm, state, frame, target));
            let freed = match moved {
                Moved::Done => {
                    if let Some(to) = target.filter(|to| self.has_buffers(*to)) {
                        self.host.buffers_moved(frame, to);
                    }
                    self.host.work(Work::Copy, 1);
                    Some(frame)
                }
                Moved::Gone => Some(frame),
                Moved::Failed => None,
            };
            if moved != Moved::Done {
                self.targets.extend(target);
            }
            if let Some(frame) = freed {
                self.host.free(self.vm, frame);
            }
        }
        failed
    }

    fn has_buffers(&self, frame: Frame) -> bool {
        self.vm.with(|state| state.frames.has(frame, Flags::BUFFERS))
    }

    fn is_written(&self, frame: Frame) -> bool {
        self.vm.with(|state| state.frames.has(frame, Flags::WRITEBACK))
    }

    /// Takes free frames of movable pageblocks, from the free scanner down.
    fn take_targets(&mut self) {
        let frames = self.host.pageblock_frames();
        let mut scanned = 0;
        while self.targets.len() < CLUSTER && self.free > self.migrate {
            let first = ((self.free - 1) / frames * frames).max(self.migrate);
            if self.host.block_of(Frame(first)) == Block::Movable {
                scanned += self.free - first;
                // The frames nearest to the end are used first.
                let mut taken = self.host.take_free(Frame(first), self.free - first);
                taken.append(&mut self.targets);
                self.targets = taken;
            }
            self.free = first;
        }
        self.host.work(Work::Scan, scanned);
        self.vm.with(|state| {
            state.counters.add(Counter::CompactFreeScanned, scanned.into());
            state.counters.add(Counter::CompactIsolated, self.targets.len() as u64);
        });
    }
}

/// What became of a page that should move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    /// It is in the other frame.
    Done,
    /// Its frame is free: the page is gone.
    Gone,
    /// It is where it was.
    Failed,
}

fn move_page(vm: &Vm, state: &mut State, frame: Frame, target: Option<Frame>) -> Moved {
    if state.frames.has(frame, Flags::GONE) {
        let is_gone = state.let_go(frame);
        assert!(is_gone, "frame {} holds no page", frame.0);
        return Moved::Gone;
    }
    let is_busy = state.frames.flags(frame).any(Flags::LOCKED | Flags::WRITEBACK);
    let Some(target) = target.filter(|_| !is_busy) else {
        state.count(Counter::PgMigrateFail);
        vm.policy.put_back(state, frame);
        return Moved::Failed;
    };
    state.migrate(frame, target);
    vm.policy.put_back(state, target);
    state.count(Counter::PgMigrateSuccess);
    Moved::Done
}

#[cfg(test)]
mod tests {
    use super::lacks_memory;

    #[test]
    fn an_index_up_to_500_says_lack_of_memory() {
        for (order, index, expected) in [
            (4, 0, true),
            (4, 500, true),
            (4, 501, false),
            (9, 1000, false),
            // There is a block.
            (4, -1000, false),
            // Up to order 3 the index is not asked.
            (3, 0, false),
        ] {
            assert_eq!(lacks_memory(order, index), expected, "order {order}, index {index}");
        }
    }
}
