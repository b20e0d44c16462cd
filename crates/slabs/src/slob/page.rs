//! One page of the heap: its free blocks, in its free memory.
//!
//! Sizes and places are in *units*: 2 bytes, or 4 where a page has too many units of 2 (reference/slob.md 1). A free block
//! of two units or more begins with its size and the place of the next one; a block of one unit holds the next one's place,
//! negative. The last one's next is the page's end. How much is free and where the first free block is says the frame.

use crate::slab::Slab;
use core::marker::PhantomData;
use slablab_platform::Platform;

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

/// What a page's frame says of it, packed into the frame's own field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageState {
    /// Units that are free.
    pub(super) units: u32,
    /// The first free block; the page's end if there is none.
    pub(super) free: u32,
}

impl PageState {
    const fn pack(self) -> u64 {
        self.units as u64 | (self.free as u64) << 32
    }

    const fn unpack(word: u64) -> PageState {
        PageState { units: word as u32, free: (word >> 32) as u32 }
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
        let page = HeapPage { slab, state: PageState { units, free: 0 }, world: PhantomData };
        page.write(Block { at: 0, units }, units);
        page.store();
        page
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
                self.store();
                return Some(aligned);
            }
            (prev, at) = (Some(block), next);
        }
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
        if block.end() == next && next < Self::page_units() {
            let (behind, next) = self.read(next);
            merged.units += behind.units;
            after = next;
        }
        match prev {
            Some(prev) if prev.end() == block.at => {
                self.write(Block { at: prev.at, units: prev.units + merged.units }, after);
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

    /// Whether the free blocks are in order, apart, inside, and as many units as the frame says.
    pub(super) fn is_sound(&self) -> bool {
        let (mut at, mut end, mut units) = (self.state.free, None, 0);
        while at < Self::page_units() {
            let (block, next) = self.read(at);
            if block.units == 0 || end.is_some_and(|end| at <= end) {
                return false;
            }
            (at, end, units) = (next, Some(block.end()), units + block.units);
        }
        at == Self::page_units() && end.is_none_or(|end| end <= at) && units == self.state.units
    }
}
