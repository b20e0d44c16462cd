//! Bytes of objects, as the profile fills, compares and copies them. `unsafe`: reads and writes memory of the
//! heap.
//!
//! Invariant of every function: the bytes lie in one object or block of a [`super::Hardened`] heap that its
//! caller owns: it was just taken from the engine, or its user gave it up ([`crate::fast::Given`]).

use crate::world::Native;
use slablab_native::Object;
use slablab_platform::{Memory, Pfn, Topology};
use std::{ptr, slice};

/// Bytes up to which memory is filled without a look at it: a page may be untouched, and reads as zeros.
const SMALL: usize = 4096;

/// The object `offset` bytes behind another one's start.
#[inline(always)]
pub(super) fn behind(object: Object, offset: usize) -> Object {
    Object::at(object.as_ptr().wrapping_add(offset)).expect("objects do not wrap around")
}

/// The word at `offset`, a multiple of 8.
#[inline(always)]
pub(super) fn word(object: Object, offset: usize) -> u64 {
    // SAFETY: the invariant of this module; objects are aligned to words.
    unsafe { object.as_ptr().add(offset).cast::<u64>().read() }
}

/// Stores the word at `offset`, a multiple of 8.
#[inline(always)]
pub(super) fn set_word(object: Object, offset: usize, value: u64) {
    // SAFETY: the invariant of this module; objects are aligned to words.
    unsafe { object.as_ptr().add(offset).cast::<u64>().write(value) }
}

/// Stores the word at `offset`, a multiple of 8. Returns the upper half of the word before. The first access
/// is a write, so that a page that was never used takes one page fault and not two.
#[inline(always)]
pub(super) fn replace_word(object: Object, offset: usize, value: u64) -> u32 {
    // SAFETY: the invariant of this module; objects are aligned to words.
    unsafe {
        let halves = object.as_ptr().add(offset).cast::<u32>();
        halves.write_volatile(value as u32);
        let upper = halves.add(1).read_volatile();
        halves.add(1).write_volatile((value >> 32) as u32);
        upper
    }
}

/// Whether the bytes from `from` up to `end`, which is a multiple of 8, are zeros.
#[inline(always)]
pub(super) fn are_zeros(object: Object, from: usize, end: usize) -> bool {
    if from >= end {
        return true;
    }
    let first = from & !7;
    // Bytes before `from` are the lower ones of the word (little endian).
    let mut other = word(object, first) >> (8 * (from - first));
    // SAFETY: the invariant of this module; objects are aligned to words.
    let words =
        unsafe { slice::from_raw_parts(object.as_ptr().add(first + 8).cast::<u64>(), (end - first) / 8 - 1) };
    for word in words {
        other |= word;
    }
    other == 0
}

/// Fills the first `bytes` bytes with zeros. Pages that already hold zeros are not written to: they may never
/// have been touched.
#[inline(always)]
pub(super) fn clear(object: Object, bytes: usize) {
    if bytes <= SMALL {
        // SAFETY: the invariant of this module.
        unsafe { object.as_ptr().write_bytes(0, bytes) };
    } else {
        clear_pages(object, bytes);
    }
}

#[inline(never)]
fn clear_pages(object: Object, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        let part = behind(object, at);
        let length = (SMALL - part.addr() % SMALL).min(bytes - at) as u32;
        if Native::differs(part, length, 0).is_some() {
            Native::fill(part, length, 0);
        }
        at += length as usize;
    }
}

/// Fills page frames with zeros.
pub(super) fn clear_frames(pfn: Pfn, frames: u32) {
    use slablab_platform::Frames;
    clear_pages(Native::address(pfn, 0), (frames as usize) << Native::page_shift());
}

/// Copies `bytes` bytes from one allocation to another.
pub(super) fn copy(from: *mut u8, to: *mut u8, bytes: usize) {
    // SAFETY: the invariant of this module, for both: they are two allocations, so they do not overlap.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
}

/// Fills the first `bytes` bytes of a new allocation with zeros.
pub(super) fn clear_new(at: *mut u8, bytes: usize) {
    // SAFETY: the invariant of this module.
    unsafe { at.write_bytes(0, bytes) };
}
