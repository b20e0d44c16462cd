//! One page of the heap: its free blocks, in its free memory.
//!
//! Sizes and places are in *units*: 2 bytes, or 4 where a page has too many units of 2
//! (docs/theory/slob.md 1). A free block of two units or more begins with its size and the place of the next
//! one; a block of one unit holds the next one's place, negative. The last one's next is the page's end. How
//! much is free and where the first free block is says the frame.
//!
//! The frame also remembers how many of the first blocks have no room for what was asked last. A kernel walks these blocks to
//! find that out again; here the walk is counted and not done, which makes a replay twenty times as fast and changes nothing
//! else.

use super::ask::{Ask, Block};
use super::frame::{Known, PageState};
use crate::cache::WORD;
use crate::slab::Slab;
use core::marker::PhantomData;
use slablab_platform::frames::Links;
use slablab_platform::{Field, Platform, Word};

/// Where a block goes among a page's free ones.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The free block before it.
    prev: Option<Block>,
    /// The place of the free block after it; the page's end if there is none.
    next: u32,
    /// Free blocks before it.
    walked: u64,
}

impl Gap {
    fn holds(self, block: Block) -> bool {
        self.prev.is_none_or(|prev| prev.end() <= block.at) && block.end() <= self.next
    }

    /// That the blocks before it have no room for a request.
    fn known(self, ask: Ask) -> Known {
        let last = self.prev.map_or(Known::NOWHERE, |prev| prev.at);
        Known { ask, blocks: self.walked as u32, last }
    }
}

/// log2 of a unit's bytes: a page's offsets must fit into 15 bits and a sign.
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

    /// Units of a page.
    #[inline]
    pub(super) fn page_units() -> u32 {
        1 << (P::page_shift() - Self::unit_shift())
    }

    /// Units for so many bytes.
    #[inline]
    pub(super) fn units_of(bytes: u32) -> u32 {
        (bytes + (1 << Self::unit_shift()) - 1) >> Self::unit_shift()
    }

    /// A page that the heap has.
    #[inline]
    pub(super) fn load(slab: Slab<P>) -> Self {
        Self::load_with_next(slab).0
    }

    /// The same, and the page after it on its list, read along.
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

    /// Makes one free block of a fresh page.
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

    /// The page's end, which no block's place is.
    #[inline]
    fn end(&self) -> u32 {
        1 << (self.shift - self.unit())
    }

    /// How many blocks a search looks at here in vain; `None` if there may be room, as far as the frame knows.
    #[inline]
    pub(super) fn barren(&self, ask: Ask) -> Option<u64> {
        if self.state.units < ask.units {
            return Some(0);
        }
        let all = self.known.blocks == self.state.blocks && self.implies(ask);
        all.then_some(self.state.blocks as u64)
    }

    /// Whether the known blocks have no room for a request.
    #[inline]
    fn implies(&self, ask: Ask) -> bool {
        self.known.ask.implies(ask, WORD >> self.unit())
    }

    /// Units that are free.
    #[inline]
    pub(super) fn free_units(&self) -> u32 {
        self.state.units
    }

    #[inline]
    fn address(&self, at: u32) -> P::Ptr {
        P::address(self.slab.pfn(), (at << self.unit()) as u64)
    }

    /// A free block and the place of the next one.
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

    /// Puts `next` behind a block, or at the page's front.
    #[inline]
    fn link(&mut self, prev: Option<Block>, next: u32) {
        match prev {
            Some(Block { at, units: 1 }) => self.write(Block { at, units: 1 }, next),
            Some(prev) => P::set_half(self.address(prev.at + 1), next as u16),
            None => self.state.free = next,
        }
    }

    /// Takes the first block that has room; answers the place of what was asked for. `walked` counts the blocks looked at.
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

    /// Takes what was asked for out of the block behind the gap.
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
            // What the alignment skips stays free, as a block of its own, where the whole was.
            self.write(head, behind);
            gap = Gap { prev: Some(head), next: behind, walked: gap.walked + 1 };
            self.state.blocks += 1;
        } else {
            self.link(gap.prev, behind);
        }
        self.known = match all_known {
            // No block had room for that, and none has now.
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

    /// Whether nothing of the block is free: only then is it somebody's.
    pub(super) fn is_allocated(&self, block: Block) -> bool {
        self.gap(block.at).holds(block)
    }

    /// Puts a block among the free ones, in the order of addresses, merged with its neighbours. Answers how many blocks
    /// were looked at; `None`, and nothing happened, if some of the block is free already. `sought` is what searches look
    /// for: that there is no room for it stays known if it can.
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

    /// What is known when a block stands where the blocks from number `from` to before number `to` stood.
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

    /// The page had no room for `sought`, and has none if the block that grew has none.
    fn keep_barren(&mut self, sought: Ask, grown: Block) {
        let barren = grown.holds_none(sought, self.unit());
        if barren && self.barren(sought).is_none() {
            self.known = Known { ask: sought, blocks: self.state.blocks, last: Known::NOWHERE };
        }
    }

    /// Before all free blocks.
    #[inline]
    fn front(&self) -> Gap {
        Gap { prev: None, next: self.state.free, walked: 0 }
    }

    /// Behind the known blocks, if the last of them is before `at`; else before all.
    #[inline]
    fn behind_known(&self, at: u32) -> Gap {
        if self.known.last >= at {
            return self.front();
        }
        let (last, next) = self.read(self.known.last);
        Gap { prev: Some(last), next, walked: self.known.blocks as u64 }
    }

    /// The free blocks around a place.
    fn gap(&self, at: u32) -> Gap {
        let mut gap = self.behind_known(at);
        while gap.next < at {
            let (block, next) = self.read(gap.next);
            gap = Gap { prev: Some(block), next, walked: gap.walked + 1 };
        }
        gap
    }

    /// Whether the free blocks are in order, apart, inside, as many and of as many units as the frame says, and what it knows
    /// of them is so.
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
