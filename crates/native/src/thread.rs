//! Which area is mine, and who has which. `unsafe`: thread-local storage by hand, and the areas' memory.
//!
//! An area begins with a header of one line; the hot parts of caches follow, at the same offsets in all areas. The displacement
//! from the refusing area to a thread's own is the only thread-local word of the fast path. It is read by the initial-exec
//! model, which stable Rust cannot ask for in a shared library: so the word is declared and read in assembler.
//!
//! **Sections.** A thread that holds a lock or a slot is in a section: a counter in its area's header says so, without an atomic
//! operation. [`stop_sections`] makes all others leave theirs and stay out: it closes the gate, asks the kernel for a barrier
//! on every thread, and waits until no counter is above zero. A thread at the outermost entry looks at the gate after it
//! counted itself; one that is inside goes on.

use crate::system;
use crate::topology;
use slablab_platform::{CpuId, NodeId};
use std::arch::{asm, global_asm};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering::*, compiler_fence,
};

/// Bytes of an area.
pub(crate) const AREA_BYTES: usize = 1 << 17;
/// What hot parts begin at a multiple of.
pub(crate) const LINE: usize = 64;
/// Slots there are, where address space is not limited.
pub(crate) const SLOTS: usize = 4096;
/// Below this there is no point.
const SLOTS_MIN: usize = 4;

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

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".hidden slablab_displacement",
    ".globl slablab_displacement",
    ".type slablab_displacement,@object",
    ".size slablab_displacement,16",
    ".p2align 3",
    "slablab_displacement: .zero 16",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .tbss,\"awT\",%nobits",
    ".hidden slablab_displacement",
    ".globl slablab_displacement",
    ".type slablab_displacement,%object",
    ".size slablab_displacement,16",
    ".p2align 3",
    "slablab_displacement: .zero 16",
    ".popsection",
);

/// The words of thread-local storage: from the refusing area to this thread's, and whether the thread is ending.
const DISPLACEMENT: usize = 0;
const ENDING: usize = 8;

#[inline(always)]
fn word<const OFFSET: usize>() -> usize {
    let value: usize;
    // SAFETY: reads a word of this thread.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov {value}, qword ptr [rip + slablab_displacement@gottpoff]",
            "mov {value}, qword ptr fs:[{value} + {offset}]",
            value = out(reg) value,
            offset = const OFFSET,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "mrs {at}, tpidr_el0",
            "adrp {value}, :gottprel:slablab_displacement",
            "ldr {value}, [{value}, :gottprel_lo12:slablab_displacement]",
            "add {value}, {value}, {at}",
            "ldr {value}, [{value}, #{offset}]",
            at = out(reg) _,
            value = out(reg) value,
            offset = const OFFSET,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    value
}

fn set_word<const OFFSET: usize>(value: usize) {
    // SAFETY: writes a word of this thread that nothing else uses.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov {at}, qword ptr [rip + slablab_displacement@gottpoff]",
            "mov qword ptr fs:[{at} + {offset}], {value}",
            at = out(reg) _,
            value = in(reg) value,
            offset = const OFFSET,
            options(nostack, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "mrs {at}, tpidr_el0",
            "adrp {word}, :gottprel:slablab_displacement",
            "ldr {word}, [{word}, :gottprel_lo12:slablab_displacement]",
            "add {word}, {word}, {at}",
            "str {value}, [{word}, #{offset}]",
            at = out(reg) _,
            word = out(reg) _,
            value = in(reg) value,
            offset = const OFFSET,
            options(nostack, preserves_flags),
        );
    }
}

/// From the refusing area to this thread's.
#[inline(always)]
fn displacement() -> usize {
    word::<DISPLACEMENT>()
}

fn set_displacement(value: usize) {
    set_word::<DISPLACEMENT>(value);
}

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
/// Slots that have an area.
static ROOM: AtomicUsize = AtomicUsize::new(0);

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
    // A 16th of the address space there may be, where that is less.
    let most = (SLOTS * AREA_BYTES).min(system::address_space() / 16);
    let Some((areas, bytes)) = system::reserve_by_halves(most, SLOTS_MIN * AREA_BYTES) else { return false };
    ROOM.store(bytes / AREA_BYTES, Relaxed);
    AREAS.store(areas.as_ptr().expose_provenance(), Release);
    if let Some(key) = system::on_thread_exit(exit) {
        KEY.store(key, Relaxed);
    }
    true
}

/// Makes forks safe. May allocate: what it allocates from has started.
pub(crate) fn watch_forks() {
    // Known before anybody is in a section: one who entered without a fence could be overlooked.
    if !system::membarrier() {
        NO_BARRIER.store(true, SeqCst);
    }
    system::around_fork(before_fork, after_fork, in_child);
}

/// Asks for `hook` whenever a slot lost its thread: what is in the slot can be claimed from then on.
pub(crate) fn on_exit(hook: fn(CpuId)) {
    ON_EXIT.store(hook as *mut (), Release);
}

extern "C" fn exit(_mark: *mut c_void) {
    // What is allocated or freed from here on, by the hook, other destructors and the C library, goes without a slot:
    // nobody would give another one back.
    set_word::<ENDING>(1);
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
    if areas == 0 || word::<ENDING>() != 0 {
        return false;
    }
    let free = (0..ROOM.load(Relaxed)).find(|number| {
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

/// Closed while somebody forks: the forking thread's own sections are let through.
static GATE: AtomicU32 = AtomicU32::new(0);
/// Sections of threads without an area.
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);
/// Whether the kernel has no barrier for all threads: then entering a section takes one of its own.
static NO_BARRIER: AtomicBool = AtomicBool::new(false);

/// Holding a lock or a slot; fork waits until nobody does.
#[derive(Debug)]
pub(crate) struct Section {
    /// Where this section is counted: a thread may get its area inside one.
    counter: &'static AtomicU32,
}

impl Section {
    #[inline]
    pub(crate) fn enter() -> Section {
        let area = area();
        if area == refusing() {
            return Section::enter_elsewhere();
        }
        let counter = &header(area).sections;
        let depth = counter.load(Relaxed);
        counter.store(depth + 1, Relaxed);
        // The gate is read after the count is visible: the one who closes it sees to that with a barrier on this thread.
        compiler_fence(SeqCst);
        // Acquire: pairs with the gate's opening after a fork.
        if depth == 0 && (GATE.load(Acquire) != 0 || NO_BARRIER.load(Relaxed)) {
            Section::wait(counter);
        }
        Section { counter }
    }

    #[cold]
    fn enter_elsewhere() -> Section {
        ELSEWHERE.fetch_add(1, SeqCst);
        while GATE.load(SeqCst) != 0 && ELSEWHERE.load(SeqCst) > 0 {
            ELSEWHERE.fetch_sub(1, SeqCst);
            wait_for_gate();
            ELSEWHERE.fetch_add(1, SeqCst);
        }
        Section { counter: &ELSEWHERE }
    }

    #[cold]
    fn wait(counter: &AtomicU32) {
        std::sync::atomic::fence(SeqCst);
        while GATE.load(SeqCst) != 0 {
            counter.store(0, SeqCst);
            wait_for_gate();
            counter.store(1, SeqCst);
        }
    }
}

impl Drop for Section {
    #[inline]
    fn drop(&mut self) {
        if std::ptr::eq(self.counter, &ELSEWHERE) {
            ELSEWHERE.fetch_sub(1, SeqCst);
        } else {
            compiler_fence(SeqCst);
            self.counter.store(self.counter.load(Relaxed) - 1, Release);
        }
    }
}

fn wait_for_gate() {
    while GATE.load(Acquire) != 0 {
        system::futex_wait(&GATE, 1);
    }
}

/// Waits until no other thread is in a section, and keeps them out. Two threads that fork at once take turns. While it lasts,
/// this thread is in a section itself, so that the gate does not hold it.
extern "C" fn before_fork() {
    enter();
    while GATE.compare_exchange(0, 1, SeqCst, SeqCst).is_err() {
        wait_for_gate();
    }
    if !system::membarrier() {
        NO_BARRIER.store(true, SeqCst);
    }
    let mine = area();
    loop {
        let busy = |number: &u16| {
            let area = area_of(CpuId(*number));
            area != mine && header(area).sections.load(Acquire) > 0
        };
        if ELSEWHERE.load(SeqCst) == 0 && !(0..slots_used()).any(|number| busy(&number)) {
            break;
        }
        system::pause();
    }
    if mine != refusing() {
        header(mine).sections.store(1, Relaxed);
    }
}

extern "C" fn after_fork() {
    let mine = area();
    if mine != refusing() {
        header(mine).sections.store(0, Relaxed);
    }
    GATE.store(0, Release);
    system::futex_wake_all(&GATE);
}

/// Of the parent's threads only this one is here: the others' slots are free.
extern "C" fn in_child() {
    let mine = (displacement() != 0).then(slot);
    for (number, state) in STATES.iter().enumerate().take(slots_used() as usize) {
        if mine != Some(CpuId(number as u16)) {
            state.store(FREE, Relaxed);
        }
    }
    after_fork();
}

/// Which lines of areas are some cache's.
static LINES: [AtomicU8; AREA_BYTES / LINE] = [const { AtomicU8::new(0) }; AREA_BYTES / LINE];

/// Lines at the same place in all areas. `None` when areas are full.
pub(crate) fn take_lines(bytes: usize) -> Option<usize> {
    let lines = bytes.div_ceil(LINE);
    let first = size_of::<Header>() / LINE;
    'places: for at in first..LINES.len() - lines {
        for (taken, line) in LINES[at..at + lines].iter().enumerate() {
            if line.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
                LINES[at..at + taken].iter().for_each(|line| line.store(0, Release));
                continue 'places;
            }
        }
        return Some(at * LINE);
    }
    None
}

/// Gives lines back; they are zeros in all areas.
pub(crate) fn give_lines(offset: usize, bytes: usize) {
    let lines = offset / LINE..(offset + bytes).div_ceil(LINE);
    LINES[lines].iter().for_each(|line| line.store(0, Release));
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
