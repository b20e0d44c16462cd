//! The frames of a free block that may be resident: used once, and not reported since (`report_free`).

/// The frames of a block that may be resident, counted from its head; the others are as the world made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resident {
    from: u32,
    to: u32,
}

impl Resident {
    pub(crate) const NONE: Resident = Resident { from: 0, to: 0 };

    /// All frames of a block.
    pub(crate) fn all(order: u8) -> Resident {
        Resident { from: 0, to: 1 << order }
    }

    pub(crate) fn pack(self) -> u64 {
        (self.to as u64) << 32 | self.from as u64
    }

    pub(crate) fn unpack(word: u64) -> Resident {
        Resident { from: word as u32, to: (word >> 32) as u32 }
    }

    pub(crate) fn frames(self) -> u64 {
        (self.to - self.from) as u64
    }

    /// The part of the range among `count` frames from `first` on, counted from `first`.
    pub(crate) fn part(self, first: u32, count: u32) -> Resident {
        let from = self.from.clamp(first, first + count) - first;
        let to = self.to.clamp(first, first + count) - first;
        if from < to { Resident { from, to } } else { Resident::NONE }
    }

    /// The range around this one and `other`, whose frames begin `count` frames after the first.
    pub(crate) fn before(self, other: Resident, count: u32) -> Resident {
        let other = Resident { from: other.from + count, to: other.to + count };
        match (self.frames(), other.frames()) {
            (_, 0) => self,
            (0, _) => other,
            _ => Resident { from: self.from, to: other.to },
        }
    }
}
