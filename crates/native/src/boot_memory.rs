//! Memory for the world's own values. `unsafe`: a lump is a piece of raw memory.
//!
//! Values per node and per CPU have to live somewhere before there is any allocator. They live in lumps of a
//! power of two bytes, cut from reserved address space and kept for reuse by size. Lock order: the lumps'
//! lock is the innermost of all.

use crate::lock::Sleep;
use crate::{space, system};
use std::ptr::NonNull;

/// Bytes of new lumps that are committed before they are needed, and at a time.
const AHEAD: usize = 1 << 20;
const STEP: usize = 2 << 20;
const SMALLEST: usize = 64;
const SIZES: usize = 26;

struct Lumps {
    /// Where the next new lump begins, and where the address space ends; 0 before the first.
    next: usize,
    end: usize,
    /// Where the lumps end that may be written.
    committed: usize,
    /// Lumps given back, by log2 of their size above the smallest; each holds the address of the one after
    /// it.
    free: [usize; SIZES],
}

static LUMPS: Sleep<Lumps> = Sleep::new(Lumps { next: 0, end: 0, committed: 0, free: [0; SIZES] });

fn size_index(bytes: usize) -> usize {
    (bytes.max(SMALLEST).next_power_of_two() / SMALLEST).ilog2() as usize
}

/// Says where the address space for lumps is. Once, when the world starts.
pub(crate) fn start(at: usize, bytes: usize) {
    let mut lumps = LUMPS.lock();
    lumps.next = at;
    lumps.end = at + bytes;
    lumps.committed = at + space::LUMP_BYTES_AT_FIRST.min(bytes);
}

/// A lump of at least `bytes`, all zeros, aligned to its size up to a page. `None` when the address space is
/// used up.
pub(crate) fn take(bytes: usize) -> Option<NonNull<u8>> {
    let index = size_index(bytes);
    let size = SMALLEST << index;
    let mut lumps = LUMPS.lock();
    if let Some(lump) = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(lumps.free[index])) {
        // SAFETY: a free lump holds the address of the next one; nobody else has it.
        unsafe {
            lumps.free[index] = lump.cast::<usize>().read();
            lump.write_bytes(0, size);
        }
        return Some(lump);
    }
    let at = lumps.next.next_multiple_of(size.min(system::page_size()));
    if at + size > lumps.end {
        return None;
    }
    // Ahead of need: who makes a cache's values cannot go on without.
    if at + size + AHEAD > lumps.committed && lumps.committed < lumps.end {
        let wanted = (at + size).max(lumps.committed + STEP).min(lumps.end);
        let all = wanted.saturating_sub(lumps.committed);
        if space::commit(lumps.committed, all) {
            lumps.committed = wanted;
        } else if at + size > lumps.committed {
            return None;
        }
    }
    lumps.next = at + size;
    NonNull::new(std::ptr::with_exposed_provenance_mut(at))
}

/// Gives a lump back.
///
/// # Safety
/// It came from [`take`] of as many bytes, and nobody uses it.
pub(crate) unsafe fn give(lump: NonNull<u8>, bytes: usize) {
    let index = size_index(bytes);
    let mut lumps = LUMPS.lock();
    // SAFETY: the caller says that the lump is ours.
    unsafe { lump.cast::<usize>().write(lumps.free[index]) };
    lumps.free[index] = lump.as_ptr().expose_provenance();
}

/// Plain values one after another. The room for them doubles.
pub(crate) struct Array<T: Copy> {
    room: Option<NonNull<T>>,
    capacity: usize,
    count: usize,
}

// SAFETY: the room is the array's own.
unsafe impl<T: Copy + Send> Send for Array<T> {}

impl<T: Copy> Array<T> {
    pub(crate) const fn new() -> Self {
        Array { room: None, capacity: 0, count: 0 }
    }

    pub(crate) fn all(&mut self) -> &mut [T] {
        match self.room {
            // SAFETY: `push` wrote the first `count` values.
            Some(room) => unsafe { std::slice::from_raw_parts_mut(room.as_ptr(), self.count) },
            None => &mut [],
        }
    }

    /// Adds a value; `false` where there is no room to be had.
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.count == self.capacity && !self.grow() {
            return false;
        }
        let Some(room) = self.room else { return false };
        // SAFETY: `grow` made room for more than `count`.
        unsafe { room.add(self.count).write(value) };
        self.count += 1;
        true
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.all().last().copied()?;
        self.count -= 1;
        Some(last)
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    fn grow(&mut self) -> bool {
        const { assert!(align_of::<T>() <= SMALLEST) };
        let capacity = (self.capacity * 2).max(64);
        let Some(room) = take(capacity * size_of::<T>()) else { return false };
        let room = room.cast::<T>();
        if let Some(old) = self.room {
            // SAFETY: both rooms have `count` values and do not overlap; the old one came from `take`.
            unsafe {
                old.copy_to_nonoverlapping(room, self.count);
                give(old.cast(), self.capacity * size_of::<T>());
            }
        }
        (self.room, self.capacity) = (Some(room), capacity);
        true
    }
}
