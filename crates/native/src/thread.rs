//! Threads: their headers, numbers, slots and ends.
//!
//! A thread gets a number on its first slow path, and releases it when it ends. With slots per thread the
//! number is also its slot's.

use crate::area::{self, SLOTS};
use crate::local::{header, set_area, set_header, swap_header};
use crate::{current, local, per_cpu, system};
use slablab_platform::CpuId;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::*};

/// A thread's own values. Only the thread writes them.
#[repr(C, align(64))]
struct Header {
    random: AtomicU64,
    ticks: AtomicU32,
    number: AtomicU16,
    /// How many sections this thread is in, one inside another (`fork::Section`).
    sections: AtomicU32,
    /// Whether this thread is walking its stack.
    walking: AtomicBool,
    /// What [`ASKED`] was when this thread last emptied its slot because of it.
    emptied: AtomicU32,
    /// Whether the thread has the slot of its number. Always `false` with slots per CPU.
    has_slot: AtomicBool,
}

static HEADERS: [Header; SLOTS] = [const {
    Header {
        random: AtomicU64::new(0),
        ticks: AtomicU32::new(0),
        number: AtomicU16::new(0),
        sections: AtomicU32::new(0),
        walking: AtomicBool::new(false),
        emptied: AtomicU32::new(0),
        has_slot: AtomicBool::new(false),
    }
}; SLOTS];

/// What a thread's header word holds: 0 without a header, [`ENDED`], or the thread's number plus this.
const FIRST_HEADER: usize = 2;
/// Stands for the header of a thread that ended. The thread gets no number again, because no call at a
/// thread's end would release it.
const ENDED: usize = 1;

/// This thread's header, if it has a number.
#[inline]
fn mine() -> Option<&'static Header> {
    HEADERS.get(header().wrapping_sub(FIRST_HEADER))
}

/// The word that counts this thread's sections, if the thread has a number.
#[inline]
pub(crate) fn sections() -> Option<&'static AtomicU32> {
    mine().map(|header| &header.sections)
}

/// Whether this thread is walking its stack, if it has a number.
pub(crate) fn walking() -> Option<&'static AtomicBool> {
    mine().map(|header| &header.walking)
}

/// The words that count the sections of all threads with a number.
pub(crate) fn all_sections() -> impl Iterator<Item = &'static AtomicU32> {
    HEADERS.iter().take(NUMBERS.load(SeqCst) as usize).map(|header| &header.sections)
}

/// A random number from this thread's generator.
pub(crate) fn random() -> u32 {
    let Some(header) = mine() else { return system::now_ns() as u32 };
    // Marsaglia's xorshift; the seed is the thread's number.
    let mut x = header.random.load(Relaxed);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    header.random.store(x, Relaxed);
    (x >> 32) as u32
}

/// Slow paths of a thread between two looks at the clock for upkeep.
const TICKS: u32 = 8;

/// Counts a slow path of this thread; `true` once in [`TICKS`], and if the thread's credit is spent: a thread
/// that needs no other slow path comes here for that alone.
pub(crate) fn tick() -> bool {
    let Some(header) = mine() else { return false };
    let ticks = header.ticks.load(Relaxed).wrapping_add(1);
    header.ticks.store(ticks, Relaxed);
    if !header.has_slot.load(Relaxed) {
        WITHOUT_SLOT.fetch_add(1, Relaxed);
    }
    ticks.is_multiple_of(TICKS) || current::is_credit_spent()
}

const FREE: u8 = 0;
const LIVE: u8 = 1;
const CLAIMED: u8 = 2;

/// Whether each number has a thread; with slots per thread, whether the slot has one. Number 0 is never given
/// out.
static STATES: [AtomicU8; SLOTS] = [const { AtomicU8::new(FREE) }; SLOTS];
/// The slot of the thread that ended last, if no other thread took it: its objects stay in it, for the next
/// thread. 0 for none.
static LEFT: AtomicU16 = AtomicU16::new(0);
/// Every number that was given out is below this. It only grows.
static NUMBERS: AtomicU16 = AtomicU16::new(1);

/// Whether a thread may be using a slot now.
pub(crate) fn is_live(slot: CpuId) -> bool {
    match per_cpu::is_up(slot) {
        Some(up) => up,
        None => STATES[slot.0 as usize].load(Relaxed) == LIVE,
    }
}

/// Whether a slot is this thread's. Always `false` with slots per CPU.
pub(crate) fn is_mine(slot: CpuId) -> bool {
    current::has_area() && current::slot() == slot
}

/// How often all threads were asked to empty their slots.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Asks every thread to empty its slot, as [`asked`] says. This thread counts as one that did. Nothing with
/// slots per CPU, which any thread can claim.
pub(crate) fn ask_all() {
    if per_cpu::on() {
        return;
    }
    let before = ASKED.fetch_add(1, Relaxed);
    mine().inspect(|header| header.emptied.store(before.wrapping_add(1), Relaxed));
}

/// Whether all threads were asked to empty their slots, and this one has not done so. `true` once for each
/// time: the caller empties the slot.
pub(crate) fn asked() -> bool {
    let Some(header) = mine() else { return false };
    let asked = ASKED.load(Relaxed);
    let is_asked = header.emptied.load(Relaxed) != asked;
    header.emptied.store(asked, Relaxed);
    is_asked
}

/// How many threads have not emptied their slots since all were asked to.
pub(crate) fn asked_left() -> u32 {
    let (numbers, asked) = (NUMBERS.load(Relaxed) as usize, ASKED.load(Relaxed));
    let threads = STATES.iter().zip(&HEADERS).take(numbers);
    let left = threads.filter(|(state, header)| {
        let has_slot = state.load(Relaxed) == LIVE && header.has_slot.load(Relaxed);
        has_slot && header.emptied.load(Relaxed) != asked
    });
    left.count() as u32
}

/// The key of the C library's call at a thread's end, and the function that learns which slot became free.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static ON_EXIT: OnceLock<fn(Option<CpuId>)> = OnceLock::new();

/// Asks the C library for a call at each thread's end. Once, when the world starts; allocates nothing.
pub(crate) fn start() {
    if let Some(key) = system::on_thread_exit(exit) {
        KEY.store(key, Relaxed);
    }
}

/// Has `hook` called when a thread ends: with the slot of one that ended before, if no thread took the slot
/// in between. The slot can be claimed from then on.
pub(crate) fn on_exit(hook: fn(Option<CpuId>)) {
    // A process has one hook: a second call passes the same function.
    let _ = ON_EXIT.set(hook);
}

extern "C" fn exit(_mark: *mut c_void) {
    if mine().is_none() {
        return;
    }
    // From here on the hook, other destructors and the C library allocate and free without a number.
    let slot = release_for(ENDED);
    let before = slot.map_or(0, |slot| LEFT.swap(slot.0, AcqRel));
    let before = Some(CpuId(before)).filter(|before| before.0 > 0 && Some(*before) != slot);
    if let Some(hook) = ON_EXIT.get() {
        hook(before);
    }
}

/// Takes a number for this thread if it has none, and with slots per thread the slot. `true` if there is a
/// slot that the thread may use now.
pub(crate) fn enter() -> bool {
    match mine() {
        Some(header) => {
            per_cpu::on() || !std::ptr::eq(current::area(), area::refusing()) || take_slot(header)
        }
        None => enter_first() || per_cpu::on(),
    }
}

/// A thread has no slot for so many of its first slow paths ([`spare_slots`]).
static SLOTLESS: AtomicU32 = AtomicU32::new(0);
/// Slow paths of threads without a slot, since the process started.
static WITHOUT_SLOT: AtomicU32 = AtomicU32::new(0);
/// Threads that have a number, and the most at a time.
static THREADS: AtomicU32 = AtomicU32::new(0);
static THREADS_MOST: AtomicU32 = AtomicU32::new(0);

/// Has threads do without a slot at first: for `slow_paths` of them, of which most threads do not do as many.
/// What they free goes to slabs, so that a thread that then sleeps keeps nothing. The first thread of the
/// process has its slot at once, and so has one that finds the slot of a thread that ended. So have all, once
/// threads did as many slow paths for each thread that there was at a time: they come and end.
pub(crate) fn spare_slots(slow_paths: u32) {
    SLOTLESS.store(slow_paths, Relaxed);
}

/// How many threads have a number.
pub(crate) fn live() -> u32 {
    THREADS.load(Relaxed)
}

/// Gives this thread, whose area refuses, its slot. `false` if it has to do without one for now.
#[cold]
fn take_slot(header: &Header) -> bool {
    // It has it: a signal handler took it while it interrupted a hot operation, which then restored the
    // refusing area.
    let slot = CpuId(header.number.load(Relaxed));
    if !header.has_slot.load(Relaxed) {
        let slotless = SLOTLESS.load(Relaxed);
        let all = slotless.saturating_mul(THREADS_MOST.load(Relaxed));
        let waits = header.ticks.load(Relaxed) < slotless && WITHOUT_SLOT.load(Relaxed) < all;
        if waits || !area::open(slot) {
            return false;
        }
        current::name(slot);
        header.has_slot.store(true, Relaxed);
    }
    set_area(area::of(slot));
    true
}

#[cold]
fn enter_first() -> bool {
    // Inside of a section a number would change the word that counts this thread's sections.
    if area::first() == 0 || local::sections() > 0 {
        return false;
    }
    // Signal handlers that run from here on see a thread that ended, and take no number.
    let before = swap_header(ENDED);
    if before != 0 {
        set_header(before);
        mine().inspect(|header| set_live_again(header.number.load(Relaxed)));
        return before != ENDED;
    }
    let take = |number: &usize| {
        let state = &STATES[*number];
        state.load(Relaxed) == FREE && state.compare_exchange(FREE, LIVE, Acquire, Relaxed).is_ok()
    };
    let left = LEFT.swap(0, Acquire);
    let mut free = Some(left as usize).filter(|left| *left > 0 && take(left));
    let is_warm = free.is_some();
    if free.is_none() {
        if left > 0 {
            // Another thread is emptying a part of it: it stays the one to give back.
            let _ = LEFT.compare_exchange(0, left, AcqRel, Relaxed);
        }
        free = (1..area::room()).find(take);
    }
    let Some(number) = free else {
        set_header(0);
        return false;
    };
    let slot = CpuId(number as u16);
    if !per_cpu::on() && !area::open(slot) {
        STATES[number].store(FREE, Release);
        set_header(0);
        return false;
    }
    // Before this thread counts sections in its header.
    let is_first = NUMBERS.fetch_max(slot.0 + 1, SeqCst) == 1;
    // The slow paths that it did so far.
    let ticks = if is_first || is_warm { SLOTLESS.load(Relaxed) } else { 0 };
    HEADERS[number].ticks.store(ticks, Relaxed);
    HEADERS[number].has_slot.store(false, Relaxed);
    set_number(slot);
    let has_slot = !per_cpu::on() && take_slot(&HEADERS[number]);
    set_live_again(slot.0);
    // May allocate, which works from here on.
    system::mark_thread(KEY.load(Relaxed));
    has_slot
}

/// Stores `LIVE` again. If a signal handler forked before this thread's header was set, the child's
/// [`forget_other_threads`] reset the state to `FREE`.
fn set_live_again(number: u16) {
    STATES[number as usize].store(LIVE, Release);
}

fn set_number(number: CpuId) {
    let header = &HEADERS[number.0 as usize];
    header.random.store(0x9e37_79b9_7f4a_7c15 ^ number.0 as u64, Relaxed);
    header.number.store(number.0, Relaxed);
    THREADS_MOST.fetch_max(THREADS.fetch_add(1, Relaxed) + 1, Relaxed);
    header.emptied.store(ASKED.load(Relaxed), Relaxed);
    set_header(number.0 as usize + FIRST_HEADER);
}

/// Releases this thread's number. With slots per thread, returns the thread's slot: its objects stay in it
/// until it is claimed, or serve the next thread.
pub(crate) fn release() -> Option<CpuId> {
    release_for(0)
}

/// [`release`], which stores `next` in place of the number of this thread's header.
fn release_for(next: usize) -> Option<CpuId> {
    let Some(mine) = mine() else {
        set_header(next);
        return None;
    };
    let number = mine.number.load(Relaxed);
    // In this order: `enter` restores the area of a thread that has a header.
    set_header(next);
    set_area(area::refusing());
    let has_slot = mine.has_slot.load(Relaxed);
    THREADS.fetch_sub(1, Relaxed);
    STATES[number as usize].store(FREE, Release);
    has_slot.then_some(CpuId(number))
}

/// In a fork's child, which has no other thread: frees the other threads' numbers.
pub(crate) fn forget_other_threads() {
    let mine = mine().map(|header| header.number.load(Relaxed) as usize);
    THREADS.store(mine.is_some().into(), Relaxed);
    for (number, state) in STATES.iter().enumerate().take(NUMBERS.load(Relaxed) as usize) {
        if mine != Some(number) {
            // The thread may have been checking the gate at the moment of the fork.
            HEADERS[number].sections.store(0, Relaxed);
            state.store(FREE, Relaxed);
        }
    }
}

/// A slot without a thread, taken to empty it. Dropping the claim frees the slot.
#[derive(Debug)]
pub(crate) struct Claim(CpuId);

impl Claim {
    pub(crate) fn new(slot: CpuId) -> Option<Claim> {
        let state = &STATES[slot.0 as usize];
        let claimed = state.compare_exchange(FREE, CLAIMED, Acquire, Relaxed).is_ok();
        // Not `then_some`: a claim that was not made must not be dropped.
        claimed.then(|| Claim(slot))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        STATES[self.0.0 as usize].store(FREE, Release);
    }
}

/// For the contract's checks: runs `f` as the thread of another slot, whether that has a thread or not.
pub(crate) fn as_slot<R>(slot: CpuId, f: impl FnOnce() -> R) -> R {
    if per_cpu::on() {
        return per_cpu::pretending(slot, f);
    }
    let before = (current::area(), header());
    STATES[slot.0 as usize].store(LIVE, Release);
    NUMBERS.fetch_max(slot.0 + 1, SeqCst);
    assert!(area::open(slot), "there is memory for the checks");
    current::name(slot);
    set_number(slot);
    set_area(area::of(slot));
    let result = f();
    set_area(before.0);
    set_header(before.1);
    result
}

/// For the contract's checks: gives a slot a thread or takes it away, or takes a CPU up or down.
pub(crate) fn set_live(slot: CpuId, live: bool) {
    if !per_cpu::set_up(slot, live) {
        STATES[slot.0 as usize].store(if live { LIVE } else { FREE }, Release);
    }
}
