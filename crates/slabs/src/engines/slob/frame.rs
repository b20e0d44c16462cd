//! The two words of a page's frame that SLOB uses. The heap's lock protects them.

use super::ask::Ask;

/// The first word: the page's free blocks. Bits: units 0-14, free 15-29, blocks 30-43.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageState {
    /// The number of free units.
    pub(super) units: u32,
    /// The first free block, or the page's end if there is none.
    pub(super) free: u32,
    /// The number of free blocks.
    pub(super) blocks: u32,
}

impl PageState {
    #[inline]
    pub(super) const fn pack(self) -> u64 {
        self.units as u64 | (self.free as u64) << 15 | (self.blocks as u64) << 30
    }

    #[inline]
    pub(super) const fn unpack(word: u64) -> PageState {
        PageState {
            units: word as u32 & 0x7fff,
            free: (word >> 15) as u32 & 0x7fff,
            blocks: (word >> 30) as u32 & 0x3fff,
        }
    }
}

/// The second word: a request that the page's first free blocks have no room for. Bits: units 0-14, align
/// 15-18, lead 19, blocks 20-33, last 34-48.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The request.
    pub(super) ask: Ask,
    /// The number of free blocks, from the first one, that have no room for the request.
    pub(super) blocks: u32,
    /// The place of the last of those blocks; [`Known::NOWHERE`] if it is not known.
    pub(super) last: u32,
}

impl Known {
    pub(super) const NOWHERE: u32 = 0x7fff;
    pub(super) const NOTHING: Known = Known { ask: Ask::NEVER, blocks: 0, last: Known::NOWHERE };

    #[inline]
    pub(super) const fn pack(self) -> u64 {
        self.ask.units as u64
            | (self.ask.align as u64) << 15
            | (self.ask.lead as u64) << 19
            | (self.blocks as u64) << 20
            | (self.last as u64) << 34
    }

    #[inline]
    pub(super) const fn unpack(word: u64) -> Known {
        Known {
            ask: Ask {
                units: word as u32 & 0x7fff,
                align: (word >> 15) as u32 & 15,
                lead: word >> 19 & 1 == 1,
            },
            blocks: (word >> 20) as u32 & 0x3fff,
            last: (word >> 34) as u32 & 0x7fff,
        }
    }
}
