//! Areas: where they are, and which is mine.
//!
//! An area begins with a header; the hot parts of caches follow, at the same offsets in all areas. Where
//! slots are threads', where a thread's own is is the only thread-local word of the fast path. Where they are
//! CPUs', every thread's is the refusing one: what that refuses comes to the restartable sequences.

use crate::{local, memory, per_cpu, region, space, system, topology};
use slablab_platform::{CpuId, NodeId};
use std::cell::Cell;
use std::mem::offset_of;
use std::sync::atomic::{AtomicI32, AtomicU16, AtomicU64, AtomicUsize, Ordering::*};

/// Bytes of an area.
pub(crate) const AREA_BYTES: usize = 1 << 19;
/// What hot parts begin at a multiple of.
pub(crate) const LINE: usize = 64;
/// Where in [`REFUSING`] the area is of threads that have none.
pub(crate) const REFUSING_AT: usize = LINE;
/// Slots there are, where address space is not limited.
pub(crate) const SLOTS: usize = 4096;
/// Slots at least: with fewer the world does not start.
pub(crate) const SLOTS_MIN: usize = 2;
/// Bytes before the hot parts.
pub(crate) const HEADER_BYTES: usize = size_of::<Header>();

#[repr(C, align(4096))]
pub(crate) struct Refusing([AtomicU64; (AREA_BYTES + LINE) / 8]);

/// All zeros, never written: every hot operation on it is refused. So it is at the start, where it stands for
/// the area of a thread in a hot operation, and [`REFUSING_AT`] bytes on, where it stands for no area.
///
/// What may be written is not part of the program's file: a constant of zeros would make it half a MiB
/// larger.
pub(crate) static REFUSING: Refusing = Refusing([const { AtomicU64::new(0) }; (AREA_BYTES + LINE) / 8]);

/// What an area begins with: whose it is, where slots are threads'. Its line is not a page's first: objects
/// that begin with a page would drive it out of the first-level cache, where all of them have the same few
/// places.
#[repr(C, align(64))]
struct Header {
    _apart: [u8; 17 * LINE],
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
#[repr(C)]
pub(crate) struct LocalPagemap {
    /// Where the heap starts.
    pub(crate) heap: Cell<usize>,
    pub(crate) start: Cell<usize>,
    pub(crate) bytes: Cell<usize>,
    /// Address of the pagemap entry of its first frame.
    pub(crate) pagemap: Cell<usize>,
}

/// Where the first area is; 0 before the start.
static AREAS: AtomicUsize = AtomicUsize::new(0);
/// Slots are numbered below this.
static USED: AtomicU16 = AtomicU16::new(1);

/// Slots that have an area.
static ROOM: AtomicUsize = AtomicUsize::new(0);

/// Says where the areas are, and for how many slots. Once, when the world starts.
pub(crate) fn start(at: usize, slots: usize) {
    ROOM.store(slots, Relaxed);
    AREAS.store(at, Release);
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
    let at = of(CpuId(opened as u16));
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
    ROOM.load(Relaxed)
}

/// Where the first area is; 0 before the start.
pub(crate) fn first() -> usize {
    AREAS.load(Acquire)
}

pub(crate) fn refusing() -> usize {
    (&raw const REFUSING).expose_provenance() + REFUSING_AT
}

/// What stands for the area of a thread in a hot operation.
#[inline(always)]
fn in_use() -> usize {
    (&raw const REFUSING).expose_provenance()
}

/// This thread's area, or the refusing one.
#[inline(always)]
pub(crate) fn mine() -> usize {
    local::area()
}

/// This thread in a hot operation. A signal handler that comes meanwhile finds another area in place of the
/// thread's, which refuses whatever it asks: so no hot operation tests for that. One that comes before it is
/// hidden has left when it is.
pub(crate) struct Hidden {
    area: usize,
}

impl Hidden {
    #[inline(always)]
    pub(crate) fn new() -> Hidden {
        let area = local::area();
        local::set_area(in_use());
        Hidden { area }
    }

    /// The area that is hidden.
    #[inline(always)]
    pub(crate) fn area(&self) -> usize {
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
    mine() == in_use()
}

/// What is left of an area's credit. Relaxed: where slots are CPUs', a holder of one cache's slot renews it
/// while another cache's pops spend it; either may be lost.
#[inline(always)]
pub(crate) fn credit(area: usize) -> &'static AtomicI32 {
    &header(area).credit
}

/// What is left of the credit of this thread's own area: while slots are threads', only the area's thread
/// reads or writes it. One decrement in memory, where an atomic takes a load, a decrement and a store.
#[inline(always)]
pub(crate) fn own_credit(area: usize) -> &'static Cell<i32> {
    // The header's credit: an `AtomicI32` is laid out as an `i32`.
    region::at(area + CREDIT_AT)
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
    if (per_cpu::on() || area == mine()) && credit(area).load(Relaxed) <= 0 {
        credit(area).store(CREDITS, Relaxed);
    }
}

/// Whether this thread has an area, and not a signal handler that came while it was hidden.
pub(crate) fn is_mine() -> bool {
    mine() != refusing() && !is_hidden()
}

/// The pagemap of the memory of this thread's node.
#[inline(always)]
pub(crate) fn local_pagemap() -> &'static LocalPagemap {
    &header(mine()).pagemap
}

/// Where a slot's area is.
#[inline]
pub(crate) fn of(slot: CpuId) -> usize {
    AREAS.load(Relaxed) + slot.0 as usize * AREA_BYTES
}

#[inline(always)]
fn header(area: usize) -> &'static Header {
    // An area begins with a header, and so does the refusing one.
    region::at(area)
}

/// The slot this code may use: this thread's, or its CPU's a moment ago. The first slot's number where there
/// is none.
#[inline]
pub(crate) fn slot() -> CpuId {
    match header(mine()).slot.load(Relaxed) {
        0 => per_cpu::cpu().unwrap_or(CpuId(0)),
        slot => CpuId(slot),
    }
}

/// The node a slot's thread was on when it got the slot; a CPU's node.
#[inline]
pub(crate) fn node_of(slot: CpuId) -> NodeId {
    match per_cpu::node_of(slot) {
        Some(node) => node,
        None => NodeId(header(of(slot)).node.load(Relaxed)),
    }
}

/// Says that a thread that runs here has this slot from now on.
pub(crate) fn name(slot: CpuId) {
    let header = header(of(slot));
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
