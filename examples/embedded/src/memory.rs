//! Memory. `unsafe`: this file owns the array that all objects lie in.
//!
//! ```text
//! MEMORY    frame 1024 | frame 1025 | ...     4 KiB each
//! FRAMES    descriptor | descriptor | ...     48 bytes each, found by the frame's number
//! OWNERS    cache      | cache      | ...     whose slab begins at this frame
//! LIVE      a bit for every 8 bytes           debugging alone uses it
//! ```
//!
//! A kernel with its own page tables has these three at addresses of its choice, for as much memory as its
//! firmware says.

use crate::cpu::asked;
use crate::world::Kernel;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering::*};
use slablab_platform::{Descriptor, Field, MAP_BYTES, Memory, Pfn, Word};

/// What the one CPU uses.
#[derive(Debug)]
pub(crate) struct OneCpu<T>(pub(crate) T);

// SAFETY: there is one CPU; interrupts run on it too, one inside another. With more CPUs this type must go.
unsafe impl<T> Sync for OneCpu<T> {}

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;
/// Page frames.
pub(crate) const FRAME_COUNT: usize = 1024;
/// Bytes of memory there are.
pub const MEMORY_BYTES: usize = FRAME_COUNT * PAGE;
/// The first frame's number, a multiple of the largest block and not 0: a slab's name is never 0.
pub(crate) const FIRST: u32 = 1024;

#[repr(align(4096))]
struct Ram(UnsafeCell<[u8; MEMORY_BYTES]>);

static MEMORY: OneCpu<Ram> = OneCpu(Ram(UnsafeCell::new([0; MEMORY_BYTES])));
static FRAMES: OneCpu<[Frame; FRAME_COUNT]> = OneCpu([const { FRESH }; FRAME_COUNT]);
static OWNERS: OneCpu<[Cell<u32>; FRAME_COUNT]> = OneCpu([const { Cell::new(0) }; FRAME_COUNT]);
static LIVE: [AtomicU64; MEMORY_BYTES / 512] = [const { AtomicU64::new(0) }; MEMORY_BYTES / 512];

static MAPS: [Shared; MEMORY_BYTES / MAP_WORD_BYTES] =
    [const { Shared(AtomicU64::new(0)) }; MEMORY_BYTES / MAP_WORD_BYTES];
/// Bytes of memory for each word of a map.
const MAP_WORD_BYTES: usize = (MAP_BYTES * u64::BITS) as usize;

type Frame = Descriptor<Shared, Owned>;

#[expect(clippy::declare_interior_mutable_const, reason = "each use is a frame of its own")]
const FRESH: Frame = Descriptor {
    state: Shared(AtomicU64::new(0)),
    slab: Shared(AtomicU64::new(0)),
    link: Owned(Cell::new(0)),
    owner: Owned(Cell::new(0)),
    extra: Owned(Cell::new(0)),
    block: Owned(Cell::new(0)),
};

/// An object's address.
pub(crate) type Object = NonNull<u8>;

fn base() -> *mut u8 {
    MEMORY.0.0.get().cast()
}

/// Whether an address is in the array. Only such addresses may be given to the functions below.
pub(crate) fn contains(at: *const u8) -> bool {
    at.addr().wrapping_sub(base().addr()) < MEMORY_BYTES
}

#[inline]
fn index(pfn: Pfn) -> usize {
    (pfn.0 - FIRST) as usize
}

#[inline]
pub(crate) fn frame(pfn: Pfn) -> &'static Frame {
    &FRAMES.0[index(pfn)]
}

/// A word of the map of the block that begins at a frame.
#[inline]
pub(crate) fn map_word(pfn: Pfn, word: u32) -> &'static Shared {
    &MAPS[index(pfn) * (PAGE / MAP_WORD_BYTES) + word as usize]
}

/// The cache whose slab begins at a frame.
#[inline]
pub(crate) fn owner(pfn: Pfn) -> &'static Cell<u32> {
    &OWNERS.0[index(pfn)]
}

#[inline]
pub(crate) fn address(pfn: Pfn, offset: u64) -> Object {
    let at = index(pfn) * PAGE + offset as usize;
    assert!(at < MEMORY_BYTES, "offset {offset} from frame {}", pfn.0);
    // SAFETY: it is inside the array, which is not at address 0.
    unsafe { NonNull::new_unchecked(base().add(at)) }
}

#[inline]
pub(crate) fn locate(object: Object) -> (Pfn, u32) {
    let at = object.addr().get() - base().addr();
    (Pfn(FIRST + (at / PAGE) as u32), (at % PAGE) as u32)
}

/// The word at `offset` in an object.
#[inline]
pub(crate) fn word(object: Object, offset: u32) -> &'static AtomicU64 {
    // SAFETY: engines owe `Memory` words of free objects and storage only: those are in the array, aligned,
    // and no reference to their bytes exists.
    unsafe { object.add(offset as usize).cast().as_ref() }
}

#[inline]
pub(crate) fn half(at: Object) -> u16 {
    // SAFETY: free memory of a mapped block, at an even address.
    unsafe { at.cast().read() }
}

#[inline]
pub(crate) fn set_half(at: Object, value: u16) {
    // SAFETY: as above.
    unsafe { at.cast().write(value) }
}

#[inline]
pub(crate) fn fill(at: Object, bytes: u32, value: u8) {
    // SAFETY: the bytes are the caller's, in one mapped block.
    unsafe { at.write_bytes(value, bytes as usize) }
}

pub(crate) fn bytes<'a>(at: Object, bytes: u32) -> &'a [u8] {
    // SAFETY: the bytes are the caller's, in one mapped block, and were written.
    unsafe { core::slice::from_raw_parts(at.as_ptr(), bytes as usize) }
}

pub(crate) fn mark_live(object: Object, live: bool) -> bool {
    let index = (object.addr().get() - base().addr()) / 8;
    let (word, bit) = (&LIVE[index / 64], 1 << (index % 64));
    let before = if live { word.fetch_or(bit, Relaxed) } else { word.fetch_and(!bit, Relaxed) };
    before & bit != 0
}

// SAFETY: all objects lie in `RAM`, which this file alone reaches, and `address` keeps frames apart. That
// only engines call the functions is the kernel's rule (see `Kernel`).
unsafe impl Memory for Kernel {
    #[inline]
    fn link(object: Object, offset: u32) -> Option<Object> {
        Self::storage_load(object, offset / 8)
    }
    #[inline]
    fn set_link(object: Object, offset: u32, next: Option<Object>) {
        Self::storage_store(object, offset / 8, next);
    }
    fn half(at: Object) -> u16 {
        asked();
        self::half(at)
    }
    fn set_half(at: Object, value: u16) {
        asked();
        self::set_half(at, value);
    }
    fn storage_attach(object: Object, words: u32) {
        asked();
        self::fill(object, words * 8, 0);
    }
    #[inline]
    fn storage_load(object: Object, index: u32) -> Option<Object> {
        asked();
        let raw = self::word(object, index * 8).load(Relaxed) as usize;
        Object::new(core::ptr::with_exposed_provenance_mut(raw))
    }
    #[inline]
    fn storage_store(object: Object, index: u32, value: Option<Object>) {
        asked();
        let raw = value.map_or(0, |object| object.as_ptr().expose_provenance());
        self::word(object, index * 8).store(raw as u64, Relaxed);
    }
    fn storage_detach(_object: Object) {
        asked();
    }
    fn fill(at: Object, bytes: u32, value: u8) {
        asked();
        self::fill(at, bytes, value);
    }
    fn differs(at: Object, bytes: u32, value: u8) -> Option<(u32, u8)> {
        asked();
        let other = |(_, byte): &(usize, &u8)| **byte != value;
        self::bytes(at, bytes).iter().enumerate().find(other).map(|(offset, byte)| (offset as u32, *byte))
    }
    fn word(at: Object) -> u64 {
        asked();
        self::word(at, 0).load(Relaxed)
    }
    fn set_word(at: Object, value: u64) {
        asked();
        self::word(at, 0).store(value, Relaxed);
    }
    fn mark_live(object: Object, live: bool) -> bool {
        asked();
        self::mark_live(object, live)
    }
}

/// A word that an interrupt may change between two looks: its operations are one instruction each.
#[derive(Debug)]
pub struct Shared(AtomicU64);

impl Word for Shared {
    fn new(value: u64) -> Self {
        Shared(AtomicU64::new(value))
    }
    #[inline]
    fn load(&self) -> u64 {
        asked();
        self.0.load(Relaxed)
    }
    #[inline]
    fn load_acquire(&self) -> u64 {
        asked();
        self.0.load(Acquire)
    }
    #[inline]
    fn store(&self, value: u64) {
        asked();
        self.0.store(value, Relaxed);
    }
    #[inline]
    fn store_release(&self, value: u64) {
        asked();
        self.0.store(value, Release);
    }
    #[inline]
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        asked();
        self.0.compare_exchange(current, new, AcqRel, Acquire)
    }
}

/// A word that a lock or an owner protects.
#[derive(Debug)]
pub struct Owned(Cell<u64>);

impl Field for Owned {
    fn new(value: u64) -> Self {
        Owned(Cell::new(value))
    }
    #[inline]
    fn get(&self) -> u64 {
        asked();
        self.0.get()
    }
    #[inline]
    fn set(&self, value: u64) {
        asked();
        self.0.set(value);
    }
}

/// Memory as it is at boot.
#[cfg(test)]
pub(crate) fn forget() {
    for frame in &FRAMES.0 {
        frame.state.store(0);
        frame.slab.store(0);
        [&frame.link, &frame.owner, &frame.extra, &frame.block].into_iter().for_each(|field| field.set(0));
    }
    OWNERS.0.iter().for_each(|owner| owner.set(0));
    LIVE.iter().for_each(|word| word.store(0, Relaxed));
    // SAFETY: tests call this before the first allocation, so no object exists.
    unsafe { base().write_bytes(0, MEMORY_BYTES) };
}
