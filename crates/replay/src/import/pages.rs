//! Which objects live in which page frame.
//!
//! Objects have virtual addresses, page events have frame numbers; between them is where the kernel's linear
//! map begins, which moves with architecture, kernel and (KASLR) boot, and which no recording says. It is
//! found from the recording itself: an object allocated on a CPU that has just allocated pages is often in
//! these pages, so that its address minus the frame's is the beginning. That is a multiple of 1 GiB; a chance
//! meeting gives one with probability 2^-18, and then rarely the same one, so [`VOTES`] equal findings from
//! different blocks decide. Until then page events are not checked, and counted.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;

/// Findings that decide.
const VOTES: u32 = 3;
/// What the linear map's beginning is a multiple of.
const ALIGNMENT: u64 = 1 << 30;
/// Different findings remembered; hostile recordings have no more than these.
const CANDIDATES: usize = 64;
/// Blocks of a CPU remembered: most go to user space and page tables, between those of slabs.
const BLOCKS: usize = 16;
/// The largest order believed.
const ORDER_LIMIT: u32 = 20;

/// Live objects by page, and where the linear map begins.
pub(super) struct Pages {
    shift: u32,
    base: Option<u64>,
    votes: Vec<(u64, u32)>,
    /// The last blocks allocated by each CPU that no object was found in.
    blocks: FxHashMap<u32, VecDeque<Block>>,
    /// Live objects that begin in a page, by the page's virtual address.
    live: FxHashMap<u64, u32>,
}

#[derive(Clone, Copy)]
struct Block {
    pfn: u64,
    order: u32,
}

impl Pages {
    pub(super) fn new() -> Pages {
        let (votes, blocks, live) = Default::default();
        Pages { shift: 12, base: None, votes, blocks, live }
    }

    /// Sets the page size; only before the first object.
    pub(super) fn set_page_size(&mut self, bytes: u64) {
        if self.live.is_empty() && bytes.is_power_of_two() {
            self.shift = bytes.trailing_zeros();
        }
    }

    /// Where the linear map begins, once known.
    pub(super) fn base(&self) -> Option<u64> {
        self.base
    }

    pub(super) fn born(&mut self, cpu: u32, address: u64) {
        *self.live.entry(address >> self.shift).or_default() += 1;
        if self.base.is_none() && !self.blocks.is_empty() {
            self.vote(cpu, address);
        }
    }

    pub(super) fn died(&mut self, address: u64) {
        use std::collections::hash_map::Entry;
        if let Entry::Occupied(mut count) = self.live.entry(address >> self.shift) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Notes a block that `cpu` allocated.
    pub(super) fn block(&mut self, cpu: u32, pfn: u64, order: u32) {
        if self.base.is_none() && order <= ORDER_LIMIT && pfn < 1 << 52 {
            let blocks = self.blocks.entry(cpu).or_default();
            if blocks.len() == BLOCKS {
                blocks.pop_front();
            }
            blocks.push_back(Block { pfn, order });
        }
    }

    #[cold]
    fn vote(&mut self, cpu: u32, address: u64) {
        let Some(blocks) = self.blocks.get_mut(&cpu) else { return };
        let shift = self.shift;
        let begin = |block: &Block| {
            let distance = address.checked_sub(block.pfn << shift)?;
            let base = distance - distance % ALIGNMENT;
            let kernel_half = base >> 63 == 1;
            (kernel_half && distance - base < 1 << (shift + block.order)).then_some(base)
        };
        let found = blocks.iter().enumerate().rev().find_map(|(index, block)| Some((index, begin(block)?)));
        let Some((index, base)) = found else { return };
        // A block speaks once: two objects in it say the same.
        blocks.remove(index);
        let Some(place) = self.votes.iter().position(|(candidate, _)| *candidate == base) else {
            if self.votes.len() < CANDIDATES {
                self.votes.push((base, 1));
            }
            return;
        };
        self.votes[place].1 += 1;
        if self.votes[place].1 >= VOTES {
            self.base = Some(base);
            self.blocks = FxHashMap::default();
        }
    }

    /// The addresses of each page of a block in which objects live. `None` while the base is not known.
    pub(super) fn inhabited(&self, pfn: u64, order: u32) -> Option<Vec<Range<u64>>> {
        let base = self.base?;
        if order > ORDER_LIMIT || pfn >= 1 << 52 {
            return Some(Vec::new());
        }
        let first = (base >> self.shift).wrapping_add(pfn);
        let pages = (0..1u64 << order).map(|index| first.wrapping_add(index));
        let range = |page: u64| page << self.shift..(page << self.shift) + (1 << self.shift);
        Some(pages.filter(|page| self.live.contains_key(page)).map(range).collect())
    }

    /// How many objects begin in the page at `address`.
    pub(super) fn live_at(&self, address: u64) -> u32 {
        self.live.get(&(address >> self.shift)).copied().unwrap_or(0)
    }
}
