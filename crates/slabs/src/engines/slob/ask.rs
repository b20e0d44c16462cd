//! A request to the heap, and the place for it in a free block.

use crate::cache::WORD;

/// A range of units in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The first unit.
    pub(super) at: u32,
    /// The number of units.
    pub(super) units: u32,
}

impl Block {
    #[inline]
    pub(super) fn end(self) -> u32 {
        self.at + self.units
    }

    /// Whether the block has no room for `ask`.
    #[inline]
    pub(super) fn holds_none(self, ask: Ask, shift: u32) -> bool {
        ask.place_in(self, shift).is_none()
    }
}

/// A request to the heap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Size in bytes, including the header.
    pub(super) bytes: u32,
    /// Alignment of the object's address in bytes: a power of two, at most a page.
    pub(super) align: u32,
    /// Bytes before the object: 0, or the size of a header (one word).
    pub(super) lead: u32,
}

impl Request {
    /// The part of the request that decides whether a page has room. `shift` is log2 of a unit's bytes.
    #[inline]
    pub(super) fn ask(&self, shift: u32) -> Ask {
        Ask {
            units: self.bytes.div_ceil(1 << shift),
            align: (self.align / WORD).ilog2(),
            lead: self.lead > 0 && self.align > WORD,
        }
    }
}

/// The part of a request that decides whether a page has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// The number of units.
    pub(super) units: u32,
    /// log2 of the alignment in words.
    pub(super) align: u32,
    /// Whether the header moves the object. It does not if the alignment is a word.
    pub(super) lead: bool,
}

impl Ask {
    /// A request larger than any page. It implies no other request, and every other request implies it.
    pub(super) const NEVER: Ask = Ask { units: 0x7fff, align: 15, lead: true };

    /// The unit in `block` at which the request fits; `None` if it does not. `shift` is log2 of a unit's
    /// bytes.
    #[inline]
    pub(super) fn place_in(self, block: Block, shift: u32) -> Option<u32> {
        let lead = if self.lead { WORD } else { 0 };
        let object = ((block.at << shift) + lead).next_multiple_of(WORD << self.align);
        let at = (object - lead) >> shift;
        (block.end() >= at + self.units).then_some(at)
    }

    /// Whether a block without room for `self` has no room for `other` either: `other` needs at least as many
    /// units and at least the same alignment. If only `other` has a header, the object behind that header
    /// would itself fit `self`.
    #[inline]
    pub(super) fn implies(self, other: Ask, header_units: u32) -> bool {
        let header = if other.lead && !self.lead { header_units } else { 0 };
        other.units >= self.units + header && other.align >= self.align && (other.lead || !self.lead)
    }
}
