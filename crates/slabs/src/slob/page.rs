//! One page of the heap: its free blocks, in its free memory.
//!
//! Sizes and places are in *units*: 2 bytes, or 4 where a page has too many units of 2 (reference/slob.md 1). A free block
//! of two units or more begins with its size and the place of the next one; a block of one unit holds the next one's place,
//! negative. The last one's next is the page's end. How much is free and where the first free block is says the frame.
//!
//! The frame also remembers the last request that found no room. A kernel walks all blocks to find that out again; here the
//! walk is counted and not done, which makes a replay twenty times as fast and changes nothing else.

use crate::cache::WORD;
use crate::slab::Slab;
use core::marker::PhantomData;
use slablab_platform::frame::Links;
use slablab_platform::{Field, Platform};

/// A range of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Its first unit.
    pub(super) at: u32,
    /// How many units.
    pub(super) units: u32,
}

impl Block {
    fn end(self) -> u32 {
        self.at + self.units
    }
}

/// What is asked of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Bytes, with what lies before the object.
    pub(super) bytes: u32,
    /// What the object's address is a multiple of, bytes; at most a page.
    pub(super) align: u32,
    /// Bytes before the object.
    pub(super) lead: u32,
}

impl Request {
    /// What of it decides whether there is room; `shift` is log2 of a unit.
    #[inline]
    pub(super) fn asked(&self, shift: u32) -> Failed {
        Failed {
            units: self.bytes.div_ceil(1 << shift),
            align: (self.align / WORD).ilog2(),
            lead: self.lead > 0 && self.align > WORD,
        }
    }
}

/// What a page's frame says of it. Bits: units 0-14, free 15-29, blocks 30-43, failed 44-63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageState {
    /// Units that are free.
    units: u32,
    /// The first free block; the page's end if there is none.
    free: u32,
    /// Free blocks.
    blocks: u32,
    /// A request that had no room, and cannot have until something is freed.
    failed: Failed,
}

impl PageState {
    #[inline]
    const fn pack(self) -> u64 {
        self.units as u64
            | (self.free as u64) << 15
            | (self.blocks as u64) << 30
            | (self.failed.units as u64) << 44
            | (self.failed.align as u64) << 59
            | (self.failed.lead as u64) << 63
    }

    #[inline]
    const fn unpack(word: u64) -> PageState {
        PageState {
            units: word as u32 & 0x7fff,
            free: (word >> 15) as u32 & 0x7fff,
            blocks: (word >> 30) as u32 & 0x3fff,
            failed: Failed {
                units: (word >> 44) as u32 & 0x7fff,
                align: (word >> 59) as u32 & 15,
                lead: word >> 63 == 1,
            },
        }
    }
}

/// A request as far as it decides whether a page has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    units: u32,
    /// log2 of the alignment in words.
    align: u32,
    /// Whether the header before the object makes a difference: not to what is aligned to a word.
    lead: bool,
}

impl Failed {
    /// No request.
    const NONE: Failed = Failed { units: 0x7fff, align: 0, lead: false };

    /// Whether what has no room for this has none for the other, which has at least as many units and is aligned as much.
    /// Behind a header there is an object without one: that would have had room.
    #[inline]
    fn implies(self, other: Failed, header_units: u32) -> bool {
        let header = if other.lead && !self.lead { header_units } else { 0 };
        other.units >= self.units + header && other.align >= self.align && (other.lead || !self.lead)
    }
}

/// Where a block goes among a page's free ones.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The free block before it.
    prev: Option<Block>,
    /// The place of the free block after it; the page's end if there is none.
    next: u32,
    /// Free blocks looked at.
    walked: u64,
}

impl Gap {
    fn holds(self, block: Block) -> bool {
        self.prev.is_none_or(|prev| prev.end() <= block.at) && block.end() <= self.next
    }
}

/// A page of the heap.
pub(super) struct HeapPage<P> {
    slab: Slab<P>,
    state: PageState,
    world: PhantomData<fn() -> P>,
}

impl<P: Platform> HeapPage<P> {
    /// log2 of a unit's bytes: a page's offsets must fit into 15 bits and a sign.
    #[inline]
    pub(super) fn unit_shift() -> u32 {
        if P::page_shift() < 16 { 1 } else { 2 }
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
        HeapPage { slab, state: PageState::unpack(slab.extra()), world: PhantomData }
    }

    /// Makes one free block of a fresh page.
    pub(super) fn init(slab: Slab<P>) -> Self {
        let units = Self::page_units();
        let page = HeapPage {
            slab,
            state: PageState { units, free: 0, blocks: 1, failed: Failed::NONE },
            world: PhantomData,
        };
        page.write(Block { at: 0, units }, units);
        page.store();
        page
    }

    /// The page after this one on its list, read along.
    #[inline]
    pub(super) fn load_with_next(slab: Slab<P>) -> (Self, Option<Slab<P>>) {
        let (extra, link) = P::with_frame(slab.pfn(), |frame| (frame.extra.get(), frame.link.get()));
        let page = HeapPage { slab, state: PageState::unpack(extra), world: PhantomData };
        (page, Links::unpack(link).next.map(Slab::at))
    }

    /// Whether there is room as far as the frame knows; if that took a walk, how long it was.
    #[inline]
    pub(super) fn may_have_room(&self, asked: Failed, walked: &mut u64) -> bool {
        if self.state.units < asked.units {
            return false;
        }
        let failed = self.state.failed.implies(asked, WORD >> Self::unit_shift());
        *walked += if failed { self.state.blocks as u64 } else { 0 };
        !failed
    }

    /// Units that are free.
    #[inline]
    pub(super) fn free_units(&self) -> u32 {
        self.state.units
    }

    fn store(&self) {
        self.slab.set_extra(self.state.pack());
    }

    #[inline]
    fn address(&self, at: u32) -> P::Ptr {
        P::address(self.slab.pfn(), (at << Self::unit_shift()) as u64)
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
            Some(prev) => self.write(prev, next),
            None => self.state.free = next,
        }
    }

    /// Takes the first block that has room; answers the place of what was asked for. `walked` counts the blocks looked at.
    pub(super) fn alloc(&mut self, request: &Request, walked: &mut u64) -> Option<u32> {
        let shift = Self::unit_shift();
        let units = Self::units_of(request.bytes);
        let (mut prev, mut at) = (None, self.state.free);
        while at < Self::page_units() {
            *walked += 1;
            let (block, next) = self.read(at);
            let object = ((at << shift) + request.lead).next_multiple_of(request.align);
            let aligned = (object - request.lead) >> shift;
            if block.end() >= aligned + units {
                if aligned > at {
                    // What the alignment skips stays free, as a block of its own.
                    let head = Block { at, units: aligned - at };
                    self.write(head, aligned);
                    prev = Some(head);
                }
                let rest = Block { at: aligned + units, units: block.end() - aligned - units };
                if rest.units > 0 {
                    self.write(rest, next);
                }
                self.link(prev, if rest.units > 0 { rest.at } else { next });
                self.state.units -= units;
                self.state.blocks = self.state.blocks + (aligned > at) as u32 + (rest.units > 0) as u32 - 1;
                self.store();
                return Some(aligned);
            }
            (prev, at) = (Some(block), next);
        }
        self.state.failed = request.asked(shift);
        self.store();
        None
    }

    /// Whether the page is empty without this block.
    pub(super) fn is_last(&self, block: Block) -> bool {
        self.state.units + block.units == Self::page_units()
    }

    /// Whether nothing of the block is free: only then is it somebody's.
    pub(super) fn is_allocated(&self, block: Block) -> bool {
        self.gap(block.at).holds(block)
    }

    /// Puts a block among the free ones, in the order of addresses, merged with its neighbours. Answers how many blocks
    /// were looked at; `None`, and nothing happened, if some of the block is free already.
    pub(super) fn free(&mut self, block: Block) -> Option<u64> {
        let gap = self.gap(block.at);
        if !gap.holds(block) {
            return None;
        }
        let Gap { prev, next, walked } = gap;
        let (mut merged, mut after) = (block, next);
        self.state.blocks += 1;
        self.state.failed = Failed::NONE;
        if block.end() == next && next < Self::page_units() {
            let (behind, next) = self.read(next);
            merged.units += behind.units;
            self.state.blocks -= 1;
            after = next;
        }
        match prev {
            Some(prev) if prev.end() == block.at => {
                self.write(Block { at: prev.at, units: prev.units + merged.units }, after);
                self.state.blocks -= 1;
            }
            _ => {
                self.write(merged, after);
                self.link(prev, merged.at);
            }
        }
        self.state.units += block.units;
        self.store();
        Some(walked)
    }

    /// The free blocks around a place.
    fn gap(&self, at: u32) -> Gap {
        let mut gap = Gap { prev: None, next: self.state.free, walked: 0 };
        while gap.next < at {
            let (block, next) = self.read(gap.next);
            gap = Gap { prev: Some(block), next, walked: gap.walked + 1 };
        }
        gap
    }

    /// Whether the free blocks are in order, apart, inside, as many and of as many units as the frame says.
    pub(super) fn is_sound(&self) -> bool {
        let (mut at, mut end, mut units, mut blocks) = (self.state.free, None, 0, 0);
        while at < Self::page_units() {
            let (block, next) = self.read(at);
            if block.units == 0 || end.is_some_and(|end| at <= end) {
                return false;
            }
            (at, end, units, blocks) = (next, Some(block.end()), units + block.units, blocks + 1);
        }
        at == Self::page_units()
            && end.is_none_or(|end| end <= at)
            && (units, blocks) == (self.state.units, self.state.blocks)
    }
}
