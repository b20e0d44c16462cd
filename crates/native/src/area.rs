//! Areas: the memory of slots.
//!
//! An area begins with a header; the hot parts of caches follow, at the same offsets in all areas. Those of
//! the caches with the lowest numbers, a program's size classes, are at places that the compiler knows: so
//! the fast path has a slot's address from the class alone. With slots per thread, the address of the
//! thread's area is the only thread-local word of the fast path. With slots per CPU it is always the refusing
//! area, and the operations that fail there are tried by restartable sequences.

use crate::hot::Hot;
use crate::region::{self, Own, Region, Table, zeros};
use slablab_platform::CpuId;
use std::mem::offset_of;
use std::sync::atomic::{AtomicI32, AtomicU16, AtomicU64, AtomicUsize, Ordering::*};

/// Bytes of an area.
pub(crate) const AREA_BYTES: usize = 1 << 19;
/// Alignment of hot parts: a cache line.
pub(crate) const LINE: usize = 64;
/// Number of slots without a limit of address space.
pub(crate) const SLOTS: usize = 4096;
/// Least number of slots: with fewer the world does not start.
pub(crate) const SLOTS_MIN: usize = 2;
/// Caches with lower numbers have slots at fixed places: cache n has place n + 1.
pub(crate) const FIXED_CACHES: usize = 128;
/// Fixed places that eight bits can name. The first and those above [`FIXED_CACHES`] stay empty: bits of the
/// pagemap are a place without a comparison.
pub(crate) const PLACES: usize = 1 << u8::BITS;
/// Bytes of such a slot.
pub(crate) const FIXED_BYTES: usize = size_of::<FixedSlot>();
/// Bytes before the first of them.
pub(crate) const FIXED_AT: usize = offset_of!(Area, fixed);
/// Bytes before the hot parts of other caches.
pub(crate) const OTHERS_AT: usize = offset_of!(Area, _hot_parts);

zeros! {
    /// The memory of a thread's or a CPU's slots. An area of zeros refuses every hot operation.
    #[repr(C)]
    pub(crate) struct Area {
        pub(crate) header: Header,
        /// The slot of each cache below [`FIXED_CACHES`], at its place.
        fixed: [FixedSlot; PLACES],
        /// The hot parts of other caches, each at the offset that its cache took from `slot_space`.
        _hot_parts: [AtomicU64; (AREA_BYTES - size_of::<Header>() - PLACES * FIXED_BYTES) / 8],
    }
}

zeros! {
    /// A slot at a fixed place: as [`crate::slots`] lays it out.
    #[repr(C, align(64))]
    struct FixedSlot {
        hot: Hot,
        _cold: [AtomicU64; 10],
    }
}

impl Area {
    const fn new() -> Area {
        let header = Header {
            _apart: [const { AtomicU64::new(0) }; _],
            slot: AtomicU16::new(0),
            node: AtomicU16::new(0),
            pagemap: LocalPagemap {
                heap: Own::new(0),
                start: Own::new(0),
                pagemap: Own::new(Region::empty()),
            },
            secret: Own::new(0),
            credit: AtomicI32::new(0),
            granted: AtomicI32::new(0),
            reserved: AtomicU64::new(0),
        };
        let fixed = [const { FixedSlot { hot: Hot::new(), _cold: [const { AtomicU64::new(0) }; _] } }; _];
        Area { header, fixed, _hot_parts: [const { AtomicU64::new(0) }; _] }
    }
}

/// The refusing area, of a thread that has no other. Never written.
///
/// It is a `static` with interior mutability, which is not part of the program's file. A constant of zeros
/// would make the file half a MiB larger.
pub(crate) static REFUSING: Area = Area::new();
/// The refusing area of a thread in a hot operation. Never written.
pub(crate) static IN_USE: Area = Area::new();

zeros! {
    /// The start of an area: with slots per thread, whose it is. It is not in the first cache line of a
    /// page: objects that begin with a page would evict that line from the first-level cache, where they all
    /// share a few places.
    #[repr(C, align(64))]
    pub(crate) struct Header {
        _apart: [AtomicU64; 17 * LINE / 8],
        pub(crate) slot: AtomicU16,
        pub(crate) node: AtomicU16,
        pub(crate) pagemap: LocalPagemap,
        /// [`crate::memory::object_secret`], beside what a free reads before.
        pub(crate) secret: Own<u64>,
        /// Pops from arrays until one is refused.
        credit: AtomicI32,
        /// What the credit was when it was last renewed.
        pub(crate) granted: AtomicI32,
        /// Bytes of objects that engines counted for the arrays of the slots ([`Local::reserve`]). Atomic:
        /// with slots per CPU, those of two caches may have two holders.
        ///
        /// [`Local::reserve`]: slablab_platform::Local::reserve
        pub(crate) reserved: AtomicU64,
    }
}

/// Where an area's credit is.
pub(crate) const CREDIT_AT: usize = offset_of!(Header, credit);
/// Pops from all arrays until one is refused: a prime, so that caches which take turns are all refused now
/// and then.
pub(crate) const CREDITS: i32 = 2039;

zeros! {
    /// The part of the heap that is memory of a thread's node, and its pagemap, for the thread alone. Empty
    /// in the refusing area.
    pub(crate) struct LocalPagemap {
        /// The heap's address.
        pub(crate) heap: Own<usize>,
        pub(crate) start: Own<usize>,
        /// The pagemap's entries of its frames.
        pub(crate) pagemap: Own<Region<AtomicU64>>,
    }
}

/// The areas of all slots.
static AREAS: Table<Area> = Table::new();
/// Every used slot's number is below this.
static USED: AtomicU16 = AtomicU16::new(1);

/// Stores the areas of all slots. Called once, when the world starts.
pub(crate) fn start(areas: Region<Area>) {
    AREAS.set(areas);
}

/// Slots below this have a committed area. It only grows.
static OPENED: AtomicUsize = AtomicUsize::new(0);
/// Least and most areas that are committed at a time. Between them the step is the number of committed areas.
const STEP: std::ops::RangeInclusive<usize> = 8..=64;

/// Commits a slot's area, and those of the slots below it. Until then the area refuses. `false` if there is
/// no such slot, or no memory.
#[inline]
pub(crate) fn open(slot: CpuId) -> bool {
    // Relaxed: the count says what the kernel did. No memory is published by it.
    (slot.0 as usize) < OPENED.load(Relaxed) || open_more(slot.0 as usize + 1)
}

#[cold]
fn open_more(slots: usize) -> bool {
    let opened = OPENED.load(Relaxed);
    let step = opened.clamp(*STEP.start(), *STEP.end());
    let at = first() + opened * AREA_BYTES;
    // Only the requested areas, if the kernel refuses more.
    slots <= room()
        && [(opened + step).max(slots).min(room()), slots].into_iter().any(|slots| {
            let done = region::commit(at, slots.saturating_sub(opened) * AREA_BYTES);
            if done {
                OPENED.fetch_max(slots, Relaxed);
            }
            done
        })
}

/// Largest number of slots.
pub(crate) fn room() -> usize {
    AREAS.region().len()
}

/// Address of the first area; 0 before the start.
pub(crate) fn first() -> usize {
    AREAS.region().base()
}

/// Address of the refusing area.
pub(crate) fn refusing() -> &'static Area {
    &REFUSING
}

/// The credit left in an area. Relaxed: with slots per CPU, the holder of one cache's slot renews it while
/// pops of another cache spend it; either change may be lost.
#[inline(always)]
pub(crate) fn credit(area: &'static Area) -> &'static AtomicI32 {
    &area.header.credit
}

/// For the contract's checks: renews the credit of a CPU's slot, so that credit refuses none of its pops.
pub(crate) fn renew_credit(slot: CpuId) {
    credit(of(slot)).store(CREDITS, Relaxed);
}

/// A slot's area. The slot's number is below [`room`].
#[inline]
pub(crate) fn of(slot: CpuId) -> &'static Area {
    AREAS.get(slot.0 as usize).expect("a slot has an area")
}

/// Every used slot's number is below this. It only grows.
#[inline]
pub(crate) fn used() -> u16 {
    USED.load(Relaxed)
}

/// The address of [`used`].
pub(crate) fn used_at() -> usize {
    std::ptr::from_ref(&USED).addr()
}

/// Counts a slot whose area is committed as used.
pub(crate) fn use_slot(slot: CpuId) {
    if slot.0 >= used() {
        USED.fetch_max(slot.0 + 1, Relaxed);
    }
}
