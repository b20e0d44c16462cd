//! Which cache lines of an area are in use. A cache's lines have the same offset in all areas.

use crate::area::{AREA_BYTES, FIXED_AT, FIXED_BYTES, FIXED_CACHES, LINE, OTHERS_AT};
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Lines of an area.
const COUNT: usize = AREA_BYTES / LINE;
/// A bit for each line of an area that a cache has.
static LINES: [AtomicU64; COUNT.div_ceil(u64::BITS as usize)] = [const { AtomicU64::new(0) }; _];

/// The word of a line, and its bit.
fn bit_of(line: usize) -> (&'static AtomicU64, u64) {
    (&LINES[line / u64::BITS as usize], 1 << (line % u64::BITS as usize))
}

/// Takes lines for `bytes` bytes, and returns their offset in an area. `None` if areas are full.
pub(crate) fn take(bytes: usize) -> Option<usize> {
    let lines = bytes.div_ceil(LINE);
    (OTHERS_AT / LINE..COUNT - lines).find(|at| take_lines(*at, lines)).map(|at| at * LINE)
}

/// Takes the fixed place of a cache, and returns its offset. `None` if the cache's number has none, if the
/// place is taken, or if it has other than `bytes` bytes.
pub(crate) fn take_fixed(cache: u32, bytes: usize) -> Option<usize> {
    let offset = FIXED_AT + (cache as usize + 1) * FIXED_BYTES;
    let is_free = (cache as usize) < FIXED_CACHES
        && bytes == FIXED_BYTES
        && take_lines(offset / LINE, FIXED_BYTES / LINE);
    is_free.then_some(offset)
}

/// Takes the lines from `at` on, unless one of them is taken.
fn take_lines(at: usize, lines: usize) -> bool {
    for line in at..at + lines {
        let (word, bit) = bit_of(line);
        if word.fetch_or(bit, Acquire) & bit > 0 {
            give_lines(at..line);
            return false;
        }
    }
    true
}

fn give_lines(lines: std::ops::Range<usize>) {
    for (word, bit) in lines.map(bit_of) {
        word.fetch_and(!bit, Release);
    }
}

/// Whether an area has room for `bytes` bytes. Another thread may take it meanwhile.
pub(crate) fn has_room(bytes: usize) -> bool {
    take(bytes).is_some_and(|at| {
        give(at, bytes);
        true
    })
}

/// Frees the lines of `bytes` bytes at `offset`. They must hold zeros in all areas.
pub(crate) fn give(offset: usize, bytes: usize) {
    give_lines(offset / LINE..(offset + bytes).div_ceil(LINE));
}
