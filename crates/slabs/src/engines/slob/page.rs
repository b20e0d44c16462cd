//! One page of the heap: its free blocks, in its free memory.
//!
//! Sizes and places are in *units*: 2 bytes, or 4 if a page has too many units of 2 bytes
//! (docs/theory/slob.md 1). A free block of two or more units begins with its size and the place of the next
//! free block. A free block of one unit contains only the place of the next one, as a negative number. The
//! last block's next place is the page's end. The frame has the number of free units and the place of the
//! first free block.
//!
//! The frame also remembers how many of the first blocks have no room for the last request. A kernel walks
//! these blocks again; this engine counts the walk and skips it. A replay becomes twenty times as fast, and
//! its results do not change.

use super::ask::{Ask, Block};
use super::frame::{Known, PageState};
use crate::cache::WORD;
use crate::slab::Slab;
use core::marker::PhantomData;
use slablab_platform::frames::Links;
use slablab_platform::{Field, Platform, Word};

/// The position of a block among a page's free blocks.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The free block before the position.
    prev: Option<Block>,
    /// The place of the free block after the position, or the page's end if there is none.
    next: u32,
    /// The number of free blocks before the position.
    walked: u64,
}

impl Gap {
    fn holds(self, block: Block) -> bool {
        self.prev.is_none_or(|prev| prev.end() <= block.at) && block.end() <= self.next
    }

    /// Records that the blocks before this position have no room for `ask`.
    fn known(self, ask: Ask) -> Known {
        let last = self.prev.map_or(Known::NOWHERE, |prev| prev.at);
        Known { ask, blocks: self.walked as u32, last }
    }
}

/// log2 of a unit's bytes, chosen so that an offset in a page fits into 15 bits and a sign.
#[inline]
fn unit_shift(page_shift: u32) -> u32 {
    if page_shift < 16 { 1 } else { 2 }
}

/// A page of the heap.
pub(super) struct HeapPage<P> {
    slab: Slab<P>,
    /// log2 of its bytes.
    shift: u32,
    state: PageState,
    known: Known,
    world: PhantomData<fn() -> P>,
}

impl<P: Platform> HeapPage<P> {
    /// log2 of a unit's bytes.
    #[inline]
    pub(super) fn unit_shift() -> u32 {
        unit_shift(P::page_shift())
    }

    /// The number of units in a page.
    #[inline]
    pub(super) fn page_units() -> u32 {
        1 << (P::page_shift() - Self::unit_shift())
    }

    /// The number of units for `bytes` bytes.
    #[inline]
    pub(super) fn units_of(bytes: u32) -> u32 {
        (bytes + (1 << Self::unit_shift()) - 1) >> Self::unit_shift()
    }

    /// Loads a page of the heap from its frame.
    #[inline]
    pub(super) fn load(slab: Slab<P>) -> Self {
        Self::load_with_next(slab).0
    }

    /// Loads a page of the heap from its frame, and the page after it on its list.
    #[inline]
    pub(super) fn load_with_next(slab: Slab<P>) -> (Self, Option<Slab<P>>) {
        P::with_frame(slab.pfn(), |frame| {
            let state = PageState::unpack(frame.extra.get());
            let known = Known::unpack(frame.slab.load());
            let next = Links::unpack(frame.link.get()).next.map(Slab::at);
            (HeapPage { slab, shift: P::page_shift(), state, known, world: PhantomData }, next)
        })
    }

    fn store(&self) {
        P::with_frame(self.slab.pfn(), |frame| {
            frame.extra.set(self.state.pack());
            frame.slab.store(self.known.pack());
        });
    }

    /// Makes a new page into one free block.
    pub(super) fn init(slab: Slab<P>) -> Self {
        let units = Self::page_units();
        let state = PageState { units, free: 0, blocks: 1 };
        let shift = P::page_shift();
        let page = HeapPage { slab, shift, state, known: Known::NOTHING, world: PhantomData };
        page.write(Block { at: 0, units }, units);
        page.store();
        page
    }

    /// log2 of a unit's bytes.
    #[inline]
    fn unit(&self) -> u32 {
        unit_shift(self.shift)
    }

    /// The page's end. No block begins there.
    #[inline]
    fn end(&self) -> u32 {
        1 << (self.shift - self.unit())
    }

    /// The number of blocks that a search for `ask` visits here without finding room; `None` if there may be
    /// room, according to the frame.
    #[inline]
    pub(super) fn barren(&self, ask: Ask) -> Option<u64> {
        if self.state.units < ask.units {
            return Some(0);
        }
        let all = self.known.blocks == self.state.blocks && self.implies(ask);
        all.then_some(self.state.blocks as u64)
    }

    /// Whether the blocks that [`Known`] covers have no room for `ask`.
    #[inline]
    fn implies(&self, ask: Ask) -> bool {
        self.known.ask.implies(ask, WORD >> self.unit())
    }

    /// The number of free units.
    #[inline]
    pub(super) fn free_units(&self) -> u32 {
        self.state.units
    }

    #[inline]
    fn address(&self, at: u32) -> P::Ptr {
        P::address(self.slab.pfn(), (at << self.unit()) as u64)
    }

    /// The free block at a place, and the place of the next one.
    #[inline]
    fn read(&self, at: u32) -> (Block, u32) {
        match P::half(self.address(at)) as i16 {
            next @ ..0 => (Block { at, units: 1 }, -(next as i32) as u32),
            units => (Block { at, units: units as u32 }, P::half(self.address(at + 1)) as u32),
        }
    }

    #[inline]
    fn write(&self, block: Block, next: u32) {
        if block.units == 1 {
            P::set_half(self.address(block.at), -(next as i32) as u16);
        } else {
            P::set_half(self.address(block.at), block.units as u16);
            P::set_half(self.address(block.at + 1), next as u16);
        }
    }

    /// Links the block at `next` after another block, or makes it the page's first.
    #[inline]
    fn link(&mut self, prev: Option<Block>, next: u32) {
        match prev {
            Some(Block { at, units: 1 }) => self.write(Block { at, units: 1 }, next),
            Some(prev) => P::set_half(self.address(prev.at + 1), next as u16),
            None => self.state.free = next,
        }
    }

    /// Takes the first block with room. Returns the place for the request. Adds the visited blocks to
    /// `walked`.
    pub(super) fn alloc(&mut self, ask: Ask, walked: &mut u64) -> Option<u32> {
        let mut gap = if self.implies(ask) { self.behind_known(Known::NOWHERE) } else { self.front() };
        while gap.next < self.end() {
            let (block, next) = self.read(gap.next);
            if let Some(place) = ask.place_in(block, self.unit()) {
                *walked += gap.walked + 1;
                self.take(gap, block, next, Block { at: place, units: ask.units }, ask);
                return Some(place);
            }
            gap = Gap { prev: Some(block), next, walked: gap.walked + 1 };
        }
        *walked += gap.walked;
        self.known = gap.known(ask);
        self.store();
        None
    }

    /// Takes the request's units out of the block after `gap`.
    fn take(&mut self, mut gap: Gap, block: Block, next: u32, taken: Block, ask: Ask) {
        let all_known = self.known.blocks == self.state.blocks;
        let head = Block { at: block.at, units: taken.at - block.at };
        let rest = Block { at: taken.end(), units: block.end() - taken.end() };
        self.state.units -= taken.units;
        self.state.blocks -= 1;
        if rest.units > 0 {
            self.write(rest, next);
            self.state.blocks += 1;
        }
        let behind = if rest.units > 0 { rest.at } else { next };
        if head.units > 0 {
            // The units that the alignment skips stay free, as a block at the old place.
            self.write(head, behind);
            gap = Gap { prev: Some(head), next: behind, walked: gap.walked + 1 };
            self.state.blocks += 1;
        } else {
            self.link(gap.prev, behind);
        }
        self.known = match all_known {
            // No block had room for `ask` before, so none has room now.
            true => {
                let last = if self.known.last == block.at { Known::NOWHERE } else { self.known.last };
                Known { blocks: self.state.blocks, last, ..self.known }
            }
            false => gap.known(ask),
        };
        self.store();
    }

    /// Whether the page is empty without this block.
    pub(super) fn is_last(&self, block: Block) -> bool {
        self.state.units + block.units == self.end()
    }

    /// Whether no unit of the block is free, so that the block can be an allocated one.
    pub(super) fn is_allocated(&self, block: Block) -> bool {
        self.gap(block.at).holds(block)
    }

    /// Frees a block: inserts it in address order and merges it with its neighbours. Returns the number of
    /// blocks that the search for its position visited. Returns `None`, and changes nothing, if part of the
    /// block is free already. `sought` is the list's last request without room: the page remembers that it
    /// has no room for it, if that is still true.
    pub(super) fn free(&mut self, block: Block, sought: Ask) -> Option<u64> {
        let gap = self.gap(block.at);
        if !gap.holds(block) {
            return None;
        }
        let was_barren = self.barren(sought).is_some();
        let before = gap.prev.filter(|prev| prev.end() == block.at);
        let touches_next = block.end() == gap.next && gap.next < self.end();
        let (behind, next) =
            if touches_next { self.read(gap.next) } else { (Block { at: gap.next, units: 0 }, gap.next) };
        let merged = match before {
            Some(before) => Block { at: before.at, units: before.units + block.units + behind.units },
            None => Block { at: block.at, units: block.units + behind.units },
        };
        self.write(merged, next);
        if before.is_none() {
            self.link(gap.prev, merged.at);
        }
        let (from, to) =
            (gap.walked as u32 - before.is_some() as u32, gap.walked as u32 + touches_next as u32);
        self.state.units += block.units;
        self.state.blocks = self.state.blocks + 1 - (to - from);
        self.known = self.known_with(merged, from, to);
        if was_barren {
            self.keep_barren(sought, merged);
        }
        self.store();
        Some(gap.walked)
    }

    /// The new [`Known`] after `merged` replaced the blocks with the numbers `from..to`.
    fn known_with(&self, merged: Block, from: u32, to: u32) -> Known {
        let known = self.known;
        match merged.holds_none(known.ask, self.unit()) {
            true if known.blocks >= from => {
                let behind = known.blocks.saturating_sub(to);
                let last = if behind > 0 { known.last } else { merged.at };
                Known { blocks: from + 1 + behind, last, ..known }
            }
            false if known.blocks > from => Known { blocks: from, last: Known::NOWHERE, ..known },
            _ => known,
        }
    }

    /// If the page had no room for `sought`, and the block that grew has none, records that there is still no
    /// room.
    fn keep_barren(&mut self, sought: Ask, grown: Block) {
        let barren = grown.holds_none(sought, self.unit());
        if barren && self.barren(sought).is_none() {
            self.known = Known { ask: sought, blocks: self.state.blocks, last: Known::NOWHERE };
        }
    }

    /// The position before all free blocks.
    #[inline]
    fn front(&self) -> Gap {
        Gap { prev: None, next: self.state.free, walked: 0 }
    }

    /// The position after the known blocks if the last of them is before `at`; else the position before all
    /// blocks.
    #[inline]
    fn behind_known(&self, at: u32) -> Gap {
        if self.known.last >= at {
            return self.front();
        }
        let (last, next) = self.read(self.known.last);
        Gap { prev: Some(last), next, walked: self.known.blocks as u64 }
    }

    /// The position of `at` among the free blocks.
    fn gap(&self, at: u32) -> Gap {
        let mut gap = self.behind_known(at);
        while gap.next < at {
            let (block, next) = self.read(gap.next);
            gap = Gap { prev: Some(block), next, walked: gap.walked + 1 };
        }
        gap
    }

    /// Checks that the free blocks are in order, apart and inside the page, that the frame has their right
    /// number and units, and that what [`Known`] says is true.
    pub(super) fn is_sound(&self) -> bool {
        let (mut at, mut end, mut units, mut blocks) = (self.state.free, None, 0, 0);
        while at < self.end() {
            let (block, next) = self.read(at);
            let is_known = blocks < self.known.blocks;
            let is_last = blocks + 1 == self.known.blocks && self.known.last != Known::NOWHERE;
            if block.units == 0
                || end.is_some_and(|end| at <= end)
                || is_known && !block.holds_none(self.known.ask, self.unit())
                || is_last && self.known.last != at
            {
                return false;
            }
            (at, end, units, blocks) = (next, Some(block.end()), units + block.units, blocks + 1);
        }
        at == self.end()
            && end.is_none_or(|end| end <= at)
            && (units, blocks) == (self.state.units, self.state.blocks)
            && self.known.blocks <= blocks
    }
}
