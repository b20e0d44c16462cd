//! Which cache lines of an area are in use. A cache's lines have the same offset in all areas.

use crate::area::{AREA_BYTES, FIXED_AT, FIXED_BYTES, FIXED_CACHES, LINE, OTHERS_AT};
use std::sync::atomic::{AtomicU8, Ordering::*};

/// 1 for each line of an area that a cache has.
static LINES: [AtomicU8; AREA_BYTES / LINE] = [const { AtomicU8::new(0) }; AREA_BYTES / LINE];

/// Takes lines for `bytes` bytes, and returns their offset in an area. `None` if areas are full.
pub(crate) fn take(bytes: usize) -> Option<usize> {
    let lines = bytes.div_ceil(LINE);
    (OTHERS_AT / LINE..LINES.len() - lines).find(|at| take_lines(*at, lines)).map(|at| at * LINE)
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
    for (taken, line) in LINES[at..at + lines].iter().enumerate() {
        if line.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            LINES[at..at + taken].iter().for_each(|line| line.store(0, Release));
            return false;
        }
    }
    true
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
    let lines = offset / LINE..(offset + bytes).div_ceil(LINE);
    LINES[lines].iter().for_each(|line| line.store(0, Release));
}
