//! Which objects of a malloc are free: a byte for each, 1 while it is free, apart from the object. So a free
//! touches no memory that its program may not have used for long, and no program can overwrite the answer.
//!
//! | table | a byte for every | of |
//! |---|---|---|
//! | coarse | 64 bytes of the heap | caches with objects of at least 64 bytes |
//! | fine | 16 bytes of the heap | caches with smaller objects |
//!
//! An object's byte is that of its first address: no two objects begin in the same 64 or 16 bytes. Bytes of
//! a new slab of a cache with a fixed place are 1; those of other caches are what they were.

use crate::area::PLACES;
use crate::place::Place;
use crate::region::{self, HeapAccess, Region, Table};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// log2 of the bytes of the heap that a byte of the coarse table stands for.
const COARSE: u32 = 6;
/// log2 of those of the fine one: every object is a multiple of it.
const FINE: u32 = 4;

static COARSE_TABLE: Table<AtomicU8> = Table::new();
static FINE_TABLE: Table<AtomicU8> = Table::new();

/// The tables of a heap, as they were reserved.
pub(crate) struct Tables {
    pub(crate) coarse: Region<AtomicU8>,
    pub(crate) fine: Region<AtomicU8>,
}

/// Bytes of the tables for `heap_bytes` bytes of the heap.
pub(crate) fn bytes_for(heap_bytes: usize) -> [usize; 2] {
    [COARSE, FINE].map(|shift| (heap_bytes >> shift) + shift as usize)
}

/// By place, where the byte of address 0 would be, of a cache's objects. Written before anybody knows an
/// object of the cache.
///
/// Its low six bits are log2 of the bytes that a byte stands for: a table begins so many bytes behind a
/// multiple of 64, and the heap's address is a multiple of a large block. So one word says both.
static WHERE: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; _];

/// Where the bytes of a table begin.
fn base(table: &Table<AtomicU8>, shift: u32) -> usize {
    table.region().base() + shift as usize
}

/// [`WHERE`] the bytes of a table are, for a heap at address `heap`.
fn to_where(table: &Table<AtomicU8>, shift: u32, heap: usize) -> u64 {
    // The table is behind the heap in one mapping.
    let origin = base(table, shift) - (heap >> shift);
    assert!(origin % 64 == shift as usize, "the heap is at {heap:#x}");
    origin as u64
}

/// Stores where the tables of the heap at `heap` are.
pub(crate) fn start(tables: &Tables, heap: usize) {
    COARSE_TABLE.set(tables.coarse);
    FINE_TABLE.set(tables.fine);
    WHERE[Place::NONE.index()].store(to_where(&COARSE_TABLE, COARSE, heap), Relaxed);
    WHERE[Place::NONE_SMALL.index()].store(to_where(&FINE_TABLE, FINE, heap), Relaxed);
}

/// The address of each table, and log2 of the bytes of the heap that a byte of it stands for.
pub(crate) fn tables() -> [(usize, u32); 2] {
    [(base(&COARSE_TABLE, COARSE), COARSE), (base(&FINE_TABLE, FINE), FINE)]
}

/// Commits the bytes of the heap's bytes in `range`, which counts from the heap's start; `false` if the
/// kernel refuses.
pub(crate) fn commit(range: &Range<usize>) -> bool {
    tables().iter().all(|(at, shift)| region::commit(at + (range.start >> shift), range.len() >> shift))
}

/// Notes a new slab, before anybody knows an object of it: `bytes` bytes at `start`, objects of `size` bytes.
/// Those of a cache with a fixed place are free. Returns the cache's place in the pagemap.
pub(crate) fn note(
    access: HeapAccess,
    place: Place,
    (heap, start): (usize, usize),
    bytes: u32,
    size: u32,
) -> Place {
    // A block of page frames has no objects: its size is 0.
    let is_coarse = !(1..1 << COARSE).contains(&size);
    if place == Place::NONE {
        return if is_coarse { place } else { Place::NONE_SMALL };
    }
    let (table, shift) = if is_coarse { (&COARSE_TABLE, COARSE) } else { (&FINE_TABLE, FINE) };
    WHERE[place.index()].store(to_where(table, shift, heap), Relaxed);
    let at = base(table, shift) + ((start - heap) >> shift);
    access.fill(access.object(at as u64), bytes >> shift, 1);
    place
}

/// The byte of the object at the address `at`, of a slab of a cache with this place.
#[inline(always)]
fn byte(access: HeapAccess, place: Place, at: usize) -> &'static AtomicU8 {
    let word = WHERE[place.index()].load(Relaxed);
    access.at((at >> (word % 64)) + word as usize)
}

/// Whether an object is free.
#[inline(always)]
pub(crate) fn is_free(access: HeapAccess, place: Place, at: usize) -> bool {
    byte(access, place, at).load(Relaxed) != 0
}

/// Notes that an object is free; returns whether it was before.
#[inline(always)]
pub(crate) fn set_free(access: HeapAccess, place: Place, at: usize) -> bool {
    let byte = byte(access, place, at);
    let before = byte.load(Relaxed);
    byte.store(1, Relaxed);
    before != 0
}

/// Notes that an object is live.
#[inline(always)]
pub(crate) fn set_live(access: HeapAccess, place: Place, at: usize) {
    byte(access, place, at).store(0, Relaxed);
}
