//! Boot memory: blocks for the world's own values, and rows of such values. `unsafe`: a block is raw memory.
//!
//! The world needs memory for values per node and per CPU before there is any allocator. Boot memory serves
//! them in blocks of a power of two bytes, cut from reserved address space; a freed block is kept for reuse,
//! by size. Lock order: [`BOOT_MEMORY`] is the innermost lock of all.

use crate::lock::Sleep;
use crate::{region, system};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::*};

/// Bytes of boot memory that are committed from the start.
pub(crate) const BOOT_BYTES_AT_FIRST: usize = 8 << 20;
/// Bytes that are committed beyond the newest block; bytes committed at a time.
const AHEAD: usize = 1 << 20;
const STEP: usize = 2 << 20;
const SMALLEST: usize = 64;
const SIZES: usize = 26;

/// The address space of boot memory.
///
/// Invariant: `next..end` was reserved for blocks and is in none yet; each list of `free` links blocks of its
/// size that no [`Block`] has. Only [`Block::take`] and its `drop` take and free a block.
struct BootMemory {
    /// Address of the next new block, and the end of the address space; 0 before the world started.
    next: usize,
    end: usize,
    /// The end of the committed part.
    committed: usize,
    /// Freed blocks, a list for each size. A block holds the address of the next one.
    free: [usize; SIZES],
}

static BOOT_MEMORY: Sleep<BootMemory> =
    Sleep::new(BootMemory { next: 0, end: 0, committed: 0, free: [0; SIZES] });

fn size_index(bytes: usize) -> usize {
    (bytes.max(SMALLEST).next_power_of_two() / SMALLEST).ilog2() as usize
}

/// Stores the address space of boot memory. Called once, when the world starts.
pub(crate) fn start(at: usize, bytes: usize) {
    let mut memory = BOOT_MEMORY.lock();
    memory.next = at;
    memory.end = at + bytes;
    // The directory is in the first page too.
    memory.committed = (at + BOOT_BYTES_AT_FIRST.min(bytes)) & !(system::page_size() - 1);
}

impl BootMemory {
    /// Takes a block of size `index`, all zeros, aligned to its size, a page at most. `None` if the address
    /// space is used up or the kernel refuses to commit it.
    fn take(&mut self, index: usize) -> Option<NonNull<u8>> {
        let size = SMALLEST << index;
        if let Some(block) = NonNull::new(ptr::with_exposed_provenance_mut::<u8>(self.free[index])) {
            // SAFETY: the invariant of `BootMemory`: the block is free, `drop` of its last owner wrote the
            // link, and it has `size` bytes.
            unsafe {
                self.free[index] = block.cast::<usize>().read();
                block.write_bytes(0, size);
            }
            return Some(block);
        }
        let at = self.next.next_multiple_of(size.min(system::page_size()));
        if at + size > self.end {
            return None;
        }
        // Ahead of need: a caller that makes a cache's values cannot continue without memory.
        if at + size + AHEAD > self.committed && self.committed < self.end {
            let wanted = (at + size).max(self.committed + STEP).min(self.end);
            let all = wanted.saturating_sub(self.committed);
            if region::commit(self.committed, all) {
                self.committed = wanted;
            } else if at + size > self.committed {
                return None;
            }
        }
        self.next = at + size;
        NonNull::new(ptr::with_exposed_provenance_mut(at))
    }
}

/// A block, freed when it is dropped. What it does is not of each type of value, of which there are thirty.
///
/// Invariant: `at` is the address of a block that no other `Block` has, of at least `bytes` bytes, aligned to
/// its size, a page at most.
#[derive(Debug)]
struct Block {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the invariant of `Block`: it is the owner's alone, and threads may read and write any memory. A
// block drops no value: the code that puts one there decides which threads may use it.
unsafe impl Send for Block {}
// SAFETY: a shared block exposes its address only.
unsafe impl Sync for Block {}

impl Block {
    /// A block of at least `bytes` bytes, all zeros. `None` when the address space is used up.
    #[inline(never)]
    fn take(bytes: usize) -> Option<Block> {
        let at = BOOT_MEMORY.lock().take(size_index(bytes))?;
        Some(Block { at, bytes })
    }

    /// [`Block::take`] for a caller that cannot go on without it.
    #[inline(never)]
    fn take_or_die(bytes: usize) -> Block {
        Block::take(bytes).unwrap_or_else(|| no_room())
    }
}

impl Drop for Block {
    #[inline(never)]
    fn drop(&mut self) {
        let index = size_index(self.bytes);
        let mut memory = BOOT_MEMORY.lock();
        // SAFETY: the invariant of `Block`: it has a word, and nothing else is in it.
        unsafe { self.at.cast::<usize>().write(memory.free[index]) };
        memory.free[index] = self.at.as_ptr().expose_provenance();
    }
}

/// Room for values, one after another, in a block of its own.
///
/// Invariant: the block is aligned for `T`. A new room is all zeros.
#[derive(Debug)]
struct Room<T> {
    block: Block,
    values: PhantomData<fn() -> T>,
}

impl<T> Room<T> {
    /// Room for `count` values, all zeros. `None` when the address space is used up.
    fn take(count: usize) -> Option<Room<T>> {
        Some(Room::of(Block::take(Self::bytes(count))?))
    }

    /// [`Room::take`] for a caller that cannot go on without it.
    fn take_or_die(count: usize) -> Room<T> {
        Room::of(Block::take_or_die(Self::bytes(count)))
    }

    fn of(block: Block) -> Room<T> {
        Room { block, values: PhantomData }
    }

    fn bytes(count: usize) -> usize {
        const { assert!(align_of::<T>() <= SMALLEST) };
        count * size_of::<T>()
    }

    fn count(&self) -> usize {
        self.block.bytes / size_of::<T>().max(1)
    }

    fn at<U>(&self) -> NonNull<U> {
        self.block.at.cast()
    }

    /// The values, made or not.
    fn values(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the invariant of `Room`; a value that may be unmade may hold anything.
        unsafe { NonNull::slice_from_raw_parts(self.at(), self.count()).as_mut() }
    }
}

/// Plain values one after another. The room for them doubles.
///
/// Invariant: the first `count` values of the room were written.
pub(crate) struct Array<T: Copy> {
    room: Option<Room<T>>,
    count: usize,
}

impl<T: Copy> Array<T> {
    pub(crate) const fn new() -> Self {
        Array { room: None, count: 0 }
    }

    pub(crate) fn all(&mut self) -> &mut [T] {
        let Some(room) = &mut self.room else { return &mut [] };
        // SAFETY: the invariant of `Array`.
        unsafe { room.values()[..self.count].assume_init_mut() }
    }

    /// Adds a value; `false` where there is no room to be had.
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.room.as_ref().is_none_or(|room| room.count() == self.count) && !self.grow() {
            return false;
        }
        let Some(room) = &mut self.room else { return false };
        room.values()[self.count].write(value);
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
        let capacity = self.room.as_ref().map_or(0, |room| room.count());
        let Some(mut room) = Room::take((capacity * 2).max(64)) else { return false };
        if let Some(old) = &mut self.room {
            room.values()[..capacity].copy_from_slice(old.values());
        }
        self.room = Some(room);
        true
    }
}

/// A row of values, each made when a thread first asks for it.
///
/// Invariant: each place is null, or [`Row::make`] stored a pointer there to a value in a room of one that it
/// forgot. The value stays there until the row is dropped.
#[derive(Debug)]
pub(crate) struct Row<T> {
    places: Room<AtomicPtr<T>>,
    /// What a row does with its values, any thread may do with a `OnceLock`'s: they are made, shared and
    /// dropped through it.
    values: PhantomData<OnceLock<T>>,
}

impl<T: Default> Row<T> {
    pub(crate) fn new(count: usize) -> Self {
        Row { places: Room::take_or_die(count), values: PhantomData }
    }

    #[inline]
    pub(crate) fn peek(&self, index: u16) -> Option<&T> {
        // Acquire: pairs with the exchange in `make`, after the value was written.
        let value = NonNull::new(self.places()[index as usize].load(Acquire));
        // SAFETY: the invariant of `Row`.
        value.map(|value| unsafe { value.as_ref() })
    }

    #[inline]
    pub(crate) fn get(&self, index: u16) -> &T {
        self.peek(index).unwrap_or_else(|| self.make(index))
    }

    #[cold]
    fn make(&self, index: u16) -> &T {
        let mut room: Room<T> = Room::take_or_die(1);
        let value = ptr::from_mut(room.values()[0].write(T::default()));
        let place = &self.places()[index as usize];
        match place.compare_exchange(ptr::null_mut(), value, AcqRel, Acquire) {
            Ok(_) => std::mem::forget(room),
            // Another thread was first: its value serves.
            Err(_) => drop(Made(room)),
        }
        self.peek(index).expect("a place keeps its value")
    }
}

impl<T> Row<T> {
    /// For the directory: the offset of the places' address.
    pub(crate) const PLACES_AT: usize = std::mem::offset_of!(Self, places.block.at);

    #[inline]
    fn places(&self) -> &[AtomicPtr<T>] {
        // SAFETY: the invariant of `Room`; a new room is all zeros, which are null pointers, and the row
        // alone has it.
        unsafe { NonNull::slice_from_raw_parts(self.places.at(), self.places.count()).as_ref() }
    }
}

impl<T> Drop for Row<T> {
    fn drop(&mut self) {
        let values = self.places().iter().filter_map(|place| NonNull::new(place.load(Relaxed)));
        // By the invariant of `Row`: the room that `make` forgot, with its value.
        values.for_each(|at| {
            let block = Block { at: at.cast(), bytes: Room::<T>::bytes(1) };
            drop(Made(Room::<T>::of(block)));
        });
    }
}

/// A room of one, with its value: `Row` makes it so.
struct Made<T>(Room<T>);

impl<T> Drop for Made<T> {
    fn drop(&mut self) {
        // SAFETY: `Row::make` wrote the value before it or `Row::drop` gave the room here.
        unsafe { self.0.values()[0].assume_init_drop() };
    }
}

/// The address space for the world's own values is used up: caches were made without end.
#[cold]
fn no_room() -> ! {
    system::die("slablab: no address space for another cache\n")
}
