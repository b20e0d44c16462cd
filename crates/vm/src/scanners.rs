//! What compaction remembers of a zone: where its scanners are, and how long the zone is left alone.

/// The most requests that a zone is left alone for, as a power of two.
const DEFER_SHIFT_MAX: u32 = 6;

/// What a zone remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanners {
    /// Where the migrate scanner goes on, and the free scanner; both 0: at the zone's ends.
    pub(crate) next: (u32, u32),
    /// Requests since a compaction failed.
    considered: u32,
    shift: u32,
    /// Orders from this on are left alone; 0: none failed.
    failed: u8,
}

impl Scanners {
    /// A compaction gave a block of an order.
    pub fn reset(&mut self, order: u8) {
        (self.considered, self.shift) = (0, 0);
        if self.failed != 0 && order >= self.failed {
            self.failed = order + 1;
        }
    }

    /// A compaction that waited gave no block of an order.
    pub fn defer(&mut self, order: u8) {
        self.considered = 0;
        self.shift = (self.shift + 1).min(DEFER_SHIFT_MAX);
        self.failed = if self.failed == 0 { order } else { self.failed.min(order) };
    }

    /// Whether the zone is left alone for a request of an order, which is counted (docs/theory/vm.md 7.4).
    pub fn is_deferred(&mut self, order: u8) -> bool {
        if self.failed == 0 || order < self.failed || self.shift == 0 {
            return false;
        }
        self.considered = (self.considered + 1).min(1 << self.shift);
        self.considered < 1 << self.shift
    }
}
