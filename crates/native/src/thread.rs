//! Which area is mine, and who has which. `unsafe`: the areas' memory.
//!
//! An area begins with a header of one line; the hot parts of caches follow, at the same offsets in all areas. The displacement
//! from the refusing area to a thread's own is the only thread-local word of the fast path.

use crate::local::{displacement, set_displacement};
use crate::{system, topology};
use slablab_platform::{CpuId, NodeId};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering::*};

/// Bytes of an area.
pub(crate) const AREA_BYTES: usize = 1 << 17;
/// What hot parts begin at a multiple of.
pub(crate) const LINE: usize = 64;
/// Slots there are.
pub(crate) const SLOTS: usize = 4096;

#[repr(C, align(4096))]
struct Area([u8; AREA_BYTES]);

/// All zeros, never written: every hot operation on it is refused.
static REFUSING: Area = Area([0; AREA_BYTES]);

/// The first line of an area.
#[repr(C, align(64))]
struct Header {
    cpu: Cell<u16>,
    node: Cell<u16>,
    random: Cell<u64>,
    ticks: Cell<u32>,
    /// Sections this thread is in, one inside another. Written by the thread alone.
    sections: AtomicU32,
}

/// Bytes before the hot parts.
pub(crate) const HEADER_BYTES: usize = size_of::<Header>();

fn refusing() -> usize {
    (&raw const REFUSING).addr()
}

/// This thread's area, or the refusing one.
#[inline(always)]
pub(crate) fn area() -> usize {
    refusing().wrapping_add(displacement())
}

#[inline]
fn header(area: usize) -> &'static Header {
    // SAFETY: an area begins with a header, is never unmapped, and zeros are a header.
    unsafe { &*std::ptr::with_exposed_provenance(area) }
}

/// This thread's slot; the first slot's number while it has none, as the refusing area's header is zeros.
#[inline]
pub(crate) fn slot() -> CpuId {
    CpuId(header(area()).cpu.get())
}

/// The node a slot's thread was on when it got the slot.
#[inline]
pub(crate) fn node_of(cpu: CpuId) -> NodeId {
    NodeId(header(area_of(cpu)).node.get())
}

/// Where this thread counts its sections, if it has an area.
#[inline]
pub(crate) fn sections() -> Option<&'static AtomicU32> {
    let area = area();
    (area != refusing()).then(|| &header(area).sections)
}

/// Where a slot's thread counts its sections.
pub(crate) fn sections_of(cpu: CpuId) -> &'static AtomicU32 {
    &header(area_of(cpu)).sections
}

/// A number from a generator of this thread's.
pub(crate) fn random() -> u32 {
    let area = area();
    if area == refusing() {
        return system::now_ns() as u32;
    }
    // Marsaglia's xorshift; the seed is the slot's number.
    let mut x = header(area).random.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    header(area).random.set(x);
    (x >> 32) as u32
}

/// Slow paths between two looks at what no caller waits for.
const TICKS: u32 = 16;

/// Counts a slow path; `true` every so often.
pub(crate) fn tick() -> bool {
    let area = area();
    if area == refusing() {
        return false;
    }
    let ticks = header(area).ticks.get().wrapping_add(1);
    header(area).ticks.set(ticks);
    ticks.is_multiple_of(TICKS)
}

const FREE: u8 = 0;
const LIVE: u8 = 1;
const CLAIMED: u8 = 2;

static STATES: [AtomicU8; SLOTS] = [const { AtomicU8::new(FREE) }; SLOTS];
static USED: AtomicU16 = AtomicU16::new(1);
static AREAS: AtomicUsize = AtomicUsize::new(0);

/// Slots are numbered below this; it grows.
#[inline]
pub(crate) fn slots_used() -> u16 {
    USED.load(Relaxed)
}

pub(crate) fn is_live(cpu: CpuId) -> bool {
    STATES[cpu.0 as usize].load(Relaxed) == LIVE
}

/// Where a slot's area is.
pub(crate) fn area_of(cpu: CpuId) -> usize {
    AREAS.load(Relaxed) + cpu.0 as usize * AREA_BYTES
}

/// Calls for the thread's end: the key, and who is told which slot became free.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static ON_EXIT: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Prepares for threads: their areas and their ends. Once; allocates nothing.
pub(crate) fn start() -> bool {
    let Some(areas) = system::reserve(SLOTS * AREA_BYTES) else { return false };
    AREAS.store(areas.as_ptr().expose_provenance(), Release);
    if let Some(key) = system::on_thread_exit(exit) {
        KEY.store(key, Relaxed);
    }
    true
}

/// Asks for `hook` whenever a slot lost its thread: what is in the slot can be claimed from then on.
pub(crate) fn on_exit(hook: fn(CpuId)) {
    ON_EXIT.store(hook as *mut (), Release);
}

extern "C" fn exit(_mark: *mut c_void) {
    let Some(slot) = leave() else { return };
    let hook = ON_EXIT.load(Acquire);
    if !hook.is_null() {
        // SAFETY: only `on_exit` stores there, and what it stores is such a function.
        let hook: fn(CpuId) = unsafe { std::mem::transmute(hook) };
        hook(slot);
    }
}

/// Takes a slot for this thread if it has none; whether it has one now.
pub(crate) fn enter() -> bool {
    displacement() != 0 || enter_first()
}

#[cold]
fn enter_first() -> bool {
    let areas = AREAS.load(Acquire);
    if areas == 0 {
        return false;
    }
    let free = (0..SLOTS).find(|number| {
        let state = &STATES[*number];
        state.load(Relaxed) == FREE && state.compare_exchange(FREE, LIVE, Acquire, Relaxed).is_ok()
    });
    let Some(number) = free else { return false };
    USED.fetch_max(number as u16 + 1, Relaxed);
    let area = areas + number * AREA_BYTES;
    name(area, CpuId(number as u16));
    set_displacement(area.wrapping_sub(refusing()));
    // May allocate: from here on that is served.
    system::mark_thread(KEY.load(Relaxed));
    true
}

/// Writes an area's header for its new thread.
fn name(area: usize, cpu: CpuId) {
    let header = header(area);
    header.cpu.set(cpu.0);
    header.node.set(topology::node_of_cpu(system::cpu_of_machine()));
    header.random.set(0x9e37_79b9_7f4a_7c15 ^ cpu.0 as u64);
}

/// Lets go of this thread's slot; what is in it stays for whoever claims it or gets it next. Answers which it was.
pub(crate) fn leave() -> Option<CpuId> {
    if displacement() == 0 {
        return None;
    }
    let slot = slot();
    set_displacement(0);
    STATES[slot.0 as usize].store(FREE, Release);
    Some(slot)
}

/// Says that this process has no other thread: the others' slots are free.
pub(crate) fn alone() {
    let mine = (displacement() != 0).then(slot);
    for (number, state) in STATES.iter().enumerate().take(slots_used() as usize) {
        if mine != Some(CpuId(number as u16)) {
            state.store(FREE, Relaxed);
        }
    }
}

/// A slot nobody has, taken to empty it.
#[derive(Debug)]
pub(crate) struct Claim(CpuId);

impl Claim {
    pub(crate) fn new(cpu: CpuId) -> Option<Claim> {
        let state = &STATES[cpu.0 as usize];
        let claimed = state.compare_exchange(FREE, CLAIMED, Acquire, Relaxed).is_ok();
        // Not `then_some`: a claim that was not made must not be dropped.
        claimed.then(|| Claim(cpu))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        STATES[self.0.0 as usize].store(FREE, Release);
    }
}

/// For the contract's checks: `f` as another slot's thread, which need not have one.
pub(crate) fn as_slot<R>(cpu: CpuId, f: impl FnOnce() -> R) -> R {
    let before = displacement();
    STATES[cpu.0 as usize].store(LIVE, Release);
    USED.fetch_max(cpu.0 + 1, Relaxed);
    name(area_of(cpu), cpu);
    set_displacement(area_of(cpu).wrapping_sub(refusing()));
    let result = f();
    set_displacement(before);
    result
}

/// For the contract's checks: a slot's thread comes or goes.
pub(crate) fn set_live(cpu: CpuId, live: bool) {
    STATES[cpu.0 as usize].store(if live { LIVE } else { FREE }, Release);
}
