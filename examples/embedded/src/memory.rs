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
use slablab_platform::{Base, Descriptor, Field, MAP_BYTES, Memory, Pfn, Real, RealMemory, Word, delegate};

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
static LIVE: [Real; MEMORY_BYTES / 512] = [const { Real::new(0) }; MEMORY_BYTES / 512];

static MAPS: [Shared; MEMORY_BYTES / MAP_WORD_BYTES] =
    [const { Shared(Real::new(0)) }; MEMORY_BYTES / MAP_WORD_BYTES];
/// Bytes of memory for each word of a map.
const MAP_WORD_BYTES: usize = (MAP_BYTES * u64::BITS) as usize;

type Frame = Descriptor<Shared, Owned>;

#[expect(clippy::declare_interior_mutable_const, reason = "each use is a frame of its own")]
const FRESH: Frame = Descriptor {
    state: Shared(Real::new(0)),
    slab: Shared(Real::new(0)),
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

// SAFETY: all objects lie in `RAM`, which this file alone reaches, and `address` keeps frames apart. That
// only engines call the functions is the kernel's rule (see `Kernel`).
unsafe impl Memory for Kernel {
    delegate! { Kernel => RealMemory<Kernel>: link set_link half set_half storage_attach storage_load storage_store
    storage_detach differs word set_word mark_live }

    fn fill(at: Object, bytes: u32, value: u8) {
        asked();
        // SAFETY: the bytes are the caller's, in one mapped block.
        unsafe { at.write_bytes(value, bytes as usize) }
    }
}

impl Base for Kernel {
    #[inline]
    fn at(object: Object, offset: u32) -> &'static Real {
        asked();
        // SAFETY: engines owe `Memory` words of free objects and storage only: those are in the array,
        // aligned, and no reference to their bytes exists.
        unsafe { object.add(offset as usize).cast().as_ref() }
    }
    #[inline]
    fn to_raw(object: Object) -> u64 {
        object.as_ptr().expose_provenance() as u64
    }
    #[inline]
    fn from_raw(raw: u64) -> Option<Object> {
        Object::new(core::ptr::with_exposed_provenance_mut(raw as usize))
    }
    fn mark(object: Object) -> (&'static Real, u32) {
        asked();
        let index = (object.addr().get() - base().addr()) / 8;
        (&LIVE[index / 64], index as u32 % 64)
    }
}

/// A word that an interrupt may change between two looks: its operations are one instruction each.
#[derive(Debug)]
pub struct Shared(Real);

impl Word for Shared {
    fn new(value: u64) -> Self {
        Shared(Real::new(value))
    }
    #[inline]
    fn load(&self) -> u64 {
        asked();
        self.0.load()
    }
    #[inline]
    fn load_acquire(&self) -> u64 {
        asked();
        self.0.load_acquire()
    }
    #[inline]
    fn store(&self, value: u64) {
        asked();
        self.0.store(value);
    }
    #[inline]
    fn store_release(&self, value: u64) {
        asked();
        self.0.store_release(value);
    }
    #[inline]
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        asked();
        self.0.compare_exchange(current, new)
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
    LIVE.iter().for_each(|word| word.store(0));
    // SAFETY: tests call this before the first allocation, so no object exists.
    unsafe { base().write_bytes(0, MEMORY_BYTES) };
}
