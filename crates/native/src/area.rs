//! Areas: where they are, and which is mine.
//!
//! An area begins with a header; the hot parts of caches follow, at the same offsets in all areas. Where
//! slots are threads', where a thread's own is is the only thread-local word of the fast path. Where they are
//! CPUs', every thread's is the refusing one: what that refuses comes to the restartable sequences.

use crate::region::{Own, Region, Table};
use crate::{local, memory, per_cpu, space, system, topology};
use slablab_platform::{CpuId, NodeId};
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU16, AtomicU64, AtomicUsize, Ordering::*};

/// Bytes of an area.
pub(crate) const AREA_BYTES: usize = 1 << 19;
/// What hot parts begin at a multiple of.
pub(crate) const LINE: usize = 64;
/// Slots there are, where address space is not limited.
pub(crate) const SLOTS: usize = 4096;
/// Slots at least: with fewer the world does not start.
pub(crate) const SLOTS_MIN: usize = 2;
/// Bytes before the hot parts.
pub(crate) const HEADER_BYTES: usize = size_of::<Header>();

/// A thread's or a CPU's piece of memory. Zeros are an area that refuses every hot operation.
#[repr(C)]
pub(crate) struct Area {
    header: Header,
    /// The hot parts of caches, each at the offset that its cache took from `slot_space`.
    _hot_parts: [AtomicU64; (AREA_BYTES - HEADER_BYTES) / 8],
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
            credit: AtomicI32::new(0),
        };
        Area { header, _hot_parts: [const { AtomicU64::new(0) }; _] }
    }
}

/// The area of a thread that has none: never written.
///
/// What may be written is not part of the program's file: a constant of zeros would make it half a MiB
/// larger.
pub(crate) static REFUSING: Area = Area::new();
/// The area of a thread in a hot operation: never written.
static IN_USE: Area = Area::new();

/// What an area begins with: whose it is, where slots are threads'. Its line is not a page's first: objects
/// that begin with a page would drive it out of the first-level cache, where all of them have the same few
/// places.
#[repr(C, align(64))]
struct Header {
    _apart: [AtomicU64; 17 * LINE / 8],
    slot: AtomicU16,
    node: AtomicU16,
    pagemap: LocalPagemap,
    /// Pops from arrays until one is refused.
    credit: AtomicI32,
}

/// Where an area's credit is.
pub(crate) const CREDIT_AT: usize = offset_of!(Header, credit);
/// Pops from all arrays until one is refused: a prime, so that caches which take turns are all refused now
/// and then.
const CREDITS: i32 = 2039;

/// The part of the heap that is memory of a thread's node, and its pagemap, for the thread alone. Empty in
/// the refusing area.
pub(crate) struct LocalPagemap {
    /// Where the heap starts.
    pub(crate) heap: Own<usize>,
    pub(crate) start: Own<usize>,
    /// The pagemap's entries of its frames.
    pub(crate) pagemap: Own<Region<AtomicU64>>,
}

/// The areas of all slots.
static AREAS: Table<Area> = Table::new();
/// Slots are numbered below this.
static USED: AtomicU16 = AtomicU16::new(1);

/// Sets the areas of all slots. Once, when the world starts.
pub(crate) fn start(areas: Region<Area>) {
    AREAS.set(areas);
}

/// Slots below this have an area that may be written; it grows.
static OPENED: AtomicUsize = AtomicUsize::new(0);
/// Areas that are opened at a time: as many as are open, within these.
const STEP: std::ops::RangeInclusive<usize> = 8..=64;

/// Makes a slot's area writable, and those of the slots below; until then it refuses. `false` if there is no
/// such slot, or no memory.
#[inline]
pub(crate) fn open(slot: CpuId) -> bool {
    // Relaxed: the count says what the kernel did, and carries no memory of ours.
    (slot.0 as usize) < OPENED.load(Relaxed) || open_more(slot.0 as usize + 1)
}

#[cold]
fn open_more(slots: usize) -> bool {
    let opened = OPENED.load(Relaxed);
    let step = opened.clamp(*STEP.start(), *STEP.end());
    let at = first() + opened * AREA_BYTES;
    // As many as are wanted, if the kernel refuses more.
    slots <= room()
        && [(opened + step).max(slots).min(room()), slots].into_iter().any(|slots| {
            let done = space::commit(at, slots.saturating_sub(opened) * AREA_BYTES);
            if done {
                OPENED.fetch_max(slots, Relaxed);
            }
            done
        })
}

/// How many slots there can be.
pub(crate) fn room() -> usize {
    AREAS.region().len()
}

/// Where the first area is; 0 before the start.
pub(crate) fn first() -> usize {
    AREAS.region().base()
}

/// The area of a thread that has none.
pub(crate) fn refusing() -> &'static Area {
    &REFUSING
}

/// This thread's area, or a refusing one.
#[inline(always)]
pub(crate) fn mine() -> &'static Area {
    local::area()
}

/// This thread in a hot operation. A signal handler that comes meanwhile finds another area in place of the
/// thread's, which refuses whatever it asks: so no hot operation tests for that. One that comes before it is
/// hidden has left when it is.
pub(crate) struct Hidden {
    area: &'static Area,
}

impl Hidden {
    #[inline(always)]
    pub(crate) fn new() -> Hidden {
        let area = local::area();
        local::set_area(&IN_USE);
        Hidden { area }
    }

    /// The area that is hidden.
    #[inline(always)]
    pub(crate) fn area(&self) -> &'static Area {
        self.area
    }
}

impl Drop for Hidden {
    #[inline(always)]
    fn drop(&mut self) {
        local::set_area(self.area);
    }
}

/// Whether this is a signal handler in the middle of its thread's hot operation.
#[inline]
pub(crate) fn is_hidden() -> bool {
    ptr::eq(mine(), &IN_USE)
}

/// What is left of an area's credit. Relaxed: where slots are CPUs', a holder of one cache's slot renews it
/// while another cache's pops spend it; either may be lost.
#[inline(always)]
pub(crate) fn credit(area: &'static Area) -> &'static AtomicI32 {
    &area.header.credit
}

/// For the contract's checks: new credit for a CPU's slot, so that none of its pops is refused for want of
/// it.
pub(crate) fn renew_credit(slot: CpuId) {
    credit(of(slot)).store(CREDITS, Relaxed);
}

/// New credit for a slot that has none: a CPU's, or this thread's own. Slow paths of one cache spare no other
/// its turn.
pub(crate) fn give_credit(slot: CpuId) {
    let area = of(slot);
    if (per_cpu::on() || ptr::eq(area, mine())) && credit(area).load(Relaxed) <= 0 {
        credit(area).store(CREDITS, Relaxed);
    }
}

/// Whether this thread has an area, and not a signal handler that came while it was hidden.
pub(crate) fn is_mine() -> bool {
    !ptr::eq(mine(), &REFUSING) && !is_hidden()
}

/// The pagemap of the memory of this thread's node.
#[inline(always)]
pub(crate) fn local_pagemap() -> &'static LocalPagemap {
    &mine().header.pagemap
}

/// A slot's area. The slot's number is below [`room`].
#[inline]
pub(crate) fn of(slot: CpuId) -> &'static Area {
    AREAS.get(slot.0 as usize).expect("a slot has an area")
}

/// The slot this code may use: this thread's, or its CPU's a moment ago. The first slot's number where there
/// is none.
#[inline]
pub(crate) fn slot() -> CpuId {
    match mine().header.slot.load(Relaxed) {
        0 => per_cpu::cpu().unwrap_or(CpuId(0)),
        slot => CpuId(slot),
    }
}

/// The node a slot's thread was on when it got the slot; a CPU's node.
#[inline]
pub(crate) fn node_of(slot: CpuId) -> NodeId {
    match per_cpu::node_of(slot) {
        Some(node) => node,
        None => NodeId(of(slot).header.node.load(Relaxed)),
    }
}

/// Says that a thread that runs here has this slot from now on.
pub(crate) fn name(slot: CpuId) {
    let header = &of(slot).header;
    header.slot.store(slot.0, Relaxed);
    header.node.store(topology::node_of_cpu(system::cpu_of_machine()), Relaxed);
    memory::set_local_pagemap(topology::memory_node(header.node.load(Relaxed)), &header.pagemap);
    use_slot(slot);
}

/// Slots are numbered below this; it grows.
#[inline]
pub(crate) fn used() -> u16 {
    USED.load(Relaxed)
}

/// Says that a slot whose area is open is used.
pub(crate) fn use_slot(slot: CpuId) {
    if slot.0 >= used() {
        USED.fetch_max(slot.0 + 1, Relaxed);
    }
}
