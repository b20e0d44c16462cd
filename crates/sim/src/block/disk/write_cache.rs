//! The write cache of a disk: sectors that it acknowledged and has not written.

use std::collections::BTreeMap;

/// Sectors that the disk writes back at a time at most (assumed: 128 KiB).
const PIECE: u64 = 256;

/// Ranges of sectors that wait, by their start; they neither overlap nor touch.
#[derive(Debug)]
pub(super) struct WriteCache {
    size: u64,
    used: u64,
    ranges: BTreeMap<u64, u64>,
}

impl WriteCache {
    /// A cache of `size` sectors; 0: it is off.
    pub(super) fn new(size: u64) -> WriteCache {
        WriteCache { size, used: 0, ranges: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a write is ever cached.
    pub(super) fn fits_at_all(&self, sectors: u32) -> bool {
        u64::from(sectors) <= self.size
    }

    /// Whether a write can be cached now.
    pub(super) fn fits(&self, sectors: u32) -> bool {
        self.size > 0 && self.used + u64::from(sectors) <= self.size
    }

    /// Whether all sectors from `from` to `to` are here.
    pub(super) fn has(&self, from: u64, to: u64) -> bool {
        self.ranges.range(..=from).next_back().is_some_and(|(_, end)| *end >= to)
    }

    pub(super) fn add(&mut self, from: u64, to: u64) {
        let touching: Vec<(u64, u64)> = self
            .ranges
            .range(..=to)
            .rev()
            .take_while(|(_, end)| **end >= from)
            .map(|(a, b)| (*a, *b))
            .collect();
        let (mut first, mut last) = (from, to);
        for (start, end) in touching {
            self.ranges.remove(&start);
            self.used -= end - start;
            (first, last) = (first.min(start), last.max(end));
        }
        self.ranges.insert(first, last);
        self.used += last - first;
    }

    /// Drops sectors that a write passed by.
    pub(super) fn forget(&mut self, from: u64, to: u64) {
        let overlapping: Vec<(u64, u64)> = self
            .ranges
            .range(..to)
            .rev()
            .take_while(|(_, end)| **end > from)
            .map(|(a, b)| (*a, *b))
            .collect();
        for (start, end) in overlapping {
            self.ranges.remove(&start);
            self.used -= end - start;
            for (first, last) in [(start, from), (to, end)] {
                if first < last {
                    self.add(first, last);
                }
            }
        }
    }

    /// Takes the range that comes next upward from `head`, or the first one; a piece of it if it is long.
    pub(super) fn take(&mut self, head: u64) -> Option<(u64, u64)> {
        let next = self.ranges.range(head..).next().or_else(|| self.ranges.first_key_value());
        let (from, end) = next.map(|(from, end)| (*from, *end))?;
        self.ranges.remove(&from);
        let to = end.min(from + PIECE);
        if to < end {
            self.ranges.insert(to, end);
        }
        self.used -= to - from;
        Some((from, to))
    }
}
