//! Memory: 64 MiB at 32 MiB, each address mapped to itself. `unsafe`: owns all objects.
//!
//! A kernel takes start and length from its firmware's map, and has the tables below at addresses of its
//! choice: together 5 % of memory, or 3 % without `LIVE`, which only debugging uses.

use crate::cpu::Region;
use crate::world::Kernel;
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU32;
use slablab_platform::{Base, Descriptor, Field, MAP_BYTES, Memory, Pfn, Real, RealMemory, delegate};

pub const PAGE: usize = 4096;
/// The first frame's number: a multiple of the largest block, as `Topology::node_frames` wants.
pub const FIRST: u32 = (32 << 20) / PAGE as u32;
pub const FRAME_COUNT: usize = (64 << 20) / PAGE;
const START: usize = FIRST as usize * PAGE;
const BYTES: usize = FRAME_COUNT * PAGE;
const MAP_WORDS: usize = PAGE / (MAP_BYTES * u64::BITS) as usize;

pub type Object = NonNull<u8>;
pub type Frame = Descriptor<Real, Real>;

#[expect(clippy::declare_interior_mutable_const, reason = "each use is a word of its own")]
const ZERO: Real = Real::new(0);
#[expect(clippy::declare_interior_mutable_const, reason = "each use is a frame of its own")]
const FRESH: Frame =
    Descriptor { state: ZERO, slab: ZERO, link: ZERO, owner: ZERO, extra: ZERO, block: ZERO };
static FRAMES: [Frame; FRAME_COUNT] = [FRESH; FRAME_COUNT];
static MAPS: [Real; FRAME_COUNT * MAP_WORDS] = [ZERO; FRAME_COUNT * MAP_WORDS];
static LIVE: [Real; BYTES / 512] = [ZERO; BYTES / 512];
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
pub fn map_word(pfn: Pfn, word: u32) -> &'static Real {
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

/// All tables as at boot. Only while nothing is allocated.
pub fn forget() {
    for frame in &FRAMES {
        let words = [&frame.state, &frame.slab, &frame.link, &frame.owner, &frame.extra, &frame.block];
        words.into_iter().for_each(|word| word.set(0));
    }
    MAPS.iter().chain(&LIVE).for_each(|word| word.set(0));
}

// SAFETY: all objects lie in this file's memory, where frames are apart. Engines alone call the functions:
// the type `Kernel` is this program's own.
unsafe impl Memory for Kernel {
    delegate! { Kernel => RealMemory<Kernel>: link set_link half set_half storage_attach storage_load storage_store
    storage_detach differs word set_word mark_live }

    fn fill(at: Object, bytes: u32, value: u8) {
        // SAFETY: the bytes are the caller's, in one block.
        unsafe { at.write_bytes(value, bytes as usize) }
    }
}

impl Base for Kernel {
    #[inline]
    fn at(object: Object, offset: u32) -> &'static Real {
        // SAFETY: engines owe `Memory` words of free objects and of storage, aligned, that nobody refers to.
        unsafe { object.add(offset as usize).cast().as_ref() }
    }
    #[inline]
    fn to_raw(object: Object) -> u64 {
        object.as_ptr().expose_provenance() as u64
    }
    #[inline]
    fn from_raw(raw: u64) -> Option<Object> {
        NonNull::new(ptr::with_exposed_provenance_mut(raw as usize))
    }
    fn mark(object: Object) -> (&'static Real, u32) {
        let index = (object.addr().get() - START) / 8;
        (&LIVE[index / 64], index as u32 % 64)
    }
}
