//! Which cache lines of an area are in use. A cache's lines have the same offset in all areas.

use crate::area::{AREA_BYTES, HEADER_BYTES, LINE};
use std::sync::atomic::{AtomicU8, Ordering::*};

/// 1 for each line of an area that a cache has.
static LINES: [AtomicU8; AREA_BYTES / LINE] = [const { AtomicU8::new(0) }; AREA_BYTES / LINE];

/// Takes lines for `bytes` bytes, and returns their offset in an area. `None` if areas are full.
pub(crate) fn take(bytes: usize) -> Option<usize> {
    let lines = bytes.div_ceil(LINE);
    let first = HEADER_BYTES / LINE;
    'places: for at in first..LINES.len() - lines {
        for (taken, line) in LINES[at..at + lines].iter().enumerate() {
            if line.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                LINES[at..at + taken].iter().for_each(|line| line.store(0, Release));
                continue 'places;
            }
        }
        return Some(at * LINE);
    }
    None
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
