//! What is asked of the heap, and where in a block there is room for it.

use crate::cache::WORD;

/// A range of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Its first unit.
    pub(super) at: u32,
    /// How many units.
    pub(super) units: u32,
}

impl Block {
    #[inline]
    pub(super) fn end(self) -> u32 {
        self.at + self.units
    }

    /// Whether it has no room for a request.
    #[inline]
    pub(super) fn holds_none(self, ask: Ask, shift: u32) -> bool {
        ask.place_in(self, shift).is_none()
    }
}

/// What is asked of the heap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Bytes, with what lies before the object.
    pub(super) bytes: u32,
    /// What the object's address is a multiple of, bytes: a power of two, at most a page.
    pub(super) align: u32,
    /// Bytes before the object: none, or a header of a word.
    pub(super) lead: u32,
}

impl Request {
    /// What of it decides whether a page has room; `shift` is log2 of a unit.
    #[inline]
    pub(super) fn ask(&self, shift: u32) -> Ask {
        Ask {
            units: self.bytes.div_ceil(1 << shift),
            align: (self.align / WORD).ilog2(),
            lead: self.lead > 0 && self.align > WORD,
        }
    }
}

/// A request as far as it decides whether a page has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// How many units.
    pub(super) units: u32,
    /// log2 of the alignment in words.
    pub(super) align: u32,
    /// Whether the header before the object makes a difference: not to what is aligned to a word.
    pub(super) lead: bool,
}

impl Ask {
    /// More than any page has, so that every other request implies it and it implies none.
    pub(super) const NEVER: Ask = Ask { units: 0x7fff, align: 15, lead: true };

    /// Where in a block there is room; `shift` is log2 of a unit.
    #[inline]
    pub(super) fn place_in(self, block: Block, shift: u32) -> Option<u32> {
        let lead = if self.lead { WORD } else { 0 };
        let object = ((block.at << shift) + lead).next_multiple_of(WORD << self.align);
        let at = (object - lead) >> shift;
        (block.end() >= at + self.units).then_some(at)
    }

    /// Whether what has no room for this has none for the other, which has at least as many units and is aligned as much.
    /// Behind a header there is an object without one: that would have had room.
    #[inline]
    pub(super) fn implies(self, other: Ask, header_units: u32) -> bool {
        let header = if other.lead && !self.lead { header_units } else { 0 };
        other.units >= self.units + header && other.align >= self.align && (other.lead || !self.lead)
    }
}
