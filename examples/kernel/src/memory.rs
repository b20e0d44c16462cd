//! Memory: 64 MiB at 32 MiB, each address mapped to itself. `unsafe`: owns all objects.
//!
//! A kernel takes start and length from its firmware's map, and has the tables below at addresses of its
//! choice: together 5 % of memory, or 3 % without `LIVE`, which only debugging uses.

use crate::cpu::Region;
use crate::world::Kernel;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use slablab_platform::{Descriptor, Field, MAP_BYTES, Memory, Pfn, Word};

pub const PAGE: usize = 4096;
/// The first frame's number: a multiple of the largest block, as `Topology::node_frames` wants.
pub const FIRST: u32 = (32 << 20) / PAGE as u32;
pub const FRAME_COUNT: usize = (64 << 20) / PAGE;
const START: usize = FIRST as usize * PAGE;
const BYTES: usize = FRAME_COUNT * PAGE;
const MAP_WORDS: usize = PAGE / (MAP_BYTES * u64::BITS) as usize;

pub type Object = NonNull<u8>;
pub type Frame = Descriptor<Shared, Shared>;

#[expect(clippy::declare_interior_mutable_const, reason = "each use is a word of its own")]
const ZERO: Shared = Shared(AtomicU64::new(0));
#[expect(clippy::declare_interior_mutable_const, reason = "each use is a frame of its own")]
const FRESH: Frame =
    Descriptor { state: ZERO, slab: ZERO, link: ZERO, owner: ZERO, extra: ZERO, block: ZERO };
static FRAMES: [Frame; FRAME_COUNT] = [FRESH; FRAME_COUNT];
static MAPS: [Shared; FRAME_COUNT * MAP_WORDS] = [ZERO; FRAME_COUNT * MAP_WORDS];
static LIVE: [Shared; BYTES / 512] = [ZERO; BYTES / 512];
/// For each frame, the cache of the slab that begins there.
static OWNERS: [AtomicU32; FRAME_COUNT] = [const { AtomicU32::new(0) }; FRAME_COUNT];

/// Whether the machine has the memory that this file hands out.
pub fn is_there(regions: &[Region]) -> bool {
    let holds = |region: &Region| {
        region.kind == 1
            && region.start <= START as u64
            && region.start + region.bytes >= (START + BYTES) as u64
    };
    regions.iter().any(holds)
}

/// Whether an address is in this memory. Only such addresses may be given to `locate`.
pub fn contains(at: *const u8) -> bool {
    at.addr().wrapping_sub(START) < BYTES
}

#[inline]
pub fn frame(pfn: Pfn) -> &'static Frame {
    &FRAMES[(pfn.0 - FIRST) as usize]
}

#[inline]
pub fn map_word(pfn: Pfn, word: u32) -> &'static Shared {
    &MAPS[(pfn.0 - FIRST) as usize * MAP_WORDS + word as usize]
}

#[inline]
pub fn owner(pfn: Pfn) -> &'static AtomicU32 {
    &OWNERS[(pfn.0 - FIRST) as usize]
}

#[inline]
pub fn address(pfn: Pfn, offset: u64) -> Object {
    let at = pfn.0 as usize * PAGE + offset as usize;
    NonNull::new(ptr::with_exposed_provenance_mut(at)).expect("frame 0 is not ours")
}

#[inline]
pub fn locate(object: Object) -> (Pfn, u32) {
    let at = object.addr().get();
    (Pfn((at / PAGE) as u32), (at % PAGE) as u32)
}

#[inline]
fn word<'a>(object: Object, offset: u32) -> &'a AtomicU64 {
    // SAFETY: engines owe `Memory` words of free objects and of storage, aligned, that nobody refers to.
    unsafe { object.add(offset as usize).cast().as_ref() }
}

/// All tables as at boot. Only while nothing is allocated.
pub fn forget() {
    for frame in &FRAMES {
        let words = [&frame.state, &frame.slab, &frame.link, &frame.owner, &frame.extra, &frame.block];
        words.into_iter().for_each(|word| word.0.store(0, Relaxed));
    }
    MAPS.iter().chain(&LIVE).for_each(|word| word.0.store(0, Relaxed));
}

// SAFETY: all objects lie in this file's memory, where frames are apart. Engines alone call the functions:
// the type `Kernel` is this program's own.
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
        // SAFETY: free memory, at an even address.
        unsafe { at.cast().read() }
    }
    fn set_half(at: Object, value: u16) {
        // SAFETY: free memory, at an even address.
        unsafe { at.cast().write(value) }
    }
    fn storage_attach(object: Object, words: u32) {
        Self::fill(object, words * 8, 0);
    }
    #[inline]
    fn storage_load(object: Object, index: u32) -> Option<Object> {
        NonNull::new(ptr::with_exposed_provenance_mut(word(object, index * 8).load(Relaxed) as usize))
    }
    #[inline]
    fn storage_store(object: Object, index: u32, value: Option<Object>) {
        let raw = value.map_or(0, |object| object.as_ptr().expose_provenance());
        word(object, index * 8).store(raw as u64, Relaxed);
    }
    fn storage_detach(_object: Object) {}
    fn fill(at: Object, bytes: u32, value: u8) {
        // SAFETY: the bytes are the caller's, in one block.
        unsafe { at.write_bytes(value, bytes as usize) }
    }
    fn differs(at: Object, bytes: u32, value: u8) -> Option<(u32, u8)> {
        // SAFETY: the bytes are the caller's, in one block, and were written.
        let bytes = unsafe { core::slice::from_raw_parts(at.as_ptr(), bytes as usize) };
        bytes.iter().zip(0..).find(|(byte, _)| **byte != value).map(|(byte, offset)| (offset, *byte))
    }
    fn word(at: Object) -> u64 {
        word(at, 0).load(Relaxed)
    }
    fn set_word(at: Object, value: u64) {
        word(at, 0).store(value, Relaxed);
    }
    fn mark_live(object: Object, live: bool) -> bool {
        let index = (object.addr().get() - START) / 8;
        let (word, bit) = (&LIVE[index / 64].0, 1 << (index % 64));
        let before = if live { word.fetch_or(bit, Relaxed) } else { word.fetch_and(!bit, Relaxed) };
        before & bit != 0
    }
}

/// A word of a table: shared by CPUs, or protected by a lock or an owner.
#[derive(Debug)]
pub struct Shared(AtomicU64);

impl Word for Shared {
    fn new(value: u64) -> Self {
        Shared(AtomicU64::new(value))
    }
    #[inline]
    fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }
    #[inline]
    fn load_acquire(&self) -> u64 {
        self.0.load(Acquire)
    }
    #[inline]
    fn store(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
    #[inline]
    fn store_release(&self, value: u64) {
        self.0.store(value, Release);
    }
    #[inline]
    fn compare_exchange(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, AcqRel, Acquire)
    }
}

impl Field for Shared {
    fn new(value: u64) -> Self {
        Shared(AtomicU64::new(value))
    }
    #[inline]
    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
    #[inline]
    fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}
