//! Threads: what each has of its own, which slot is whose, and their ends.
//!
//! A thread has a number, which is its slot's too where slots are threads'. It gets one on its first slow
//! path, and lets go of it when it ends.

use crate::area::{self, SLOTS};
use crate::local::{header, set_area, set_header, swap_header};
use crate::{local, per_cpu, region, system};
use slablab_platform::CpuId;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::*};

/// What a thread has of its own. Written by the thread alone.
#[repr(C, align(64))]
struct Header {
    random: AtomicU64,
    ticks: AtomicU32,
    number: AtomicU16,
    /// Sections this thread is in, one inside another.
    sections: AtomicU32,
    /// Whether this thread walks its stack.
    walking: AtomicBool,
}

static HEADERS: [Header; SLOTS] = [const {
    Header {
        random: AtomicU64::new(0),
        ticks: AtomicU32::new(0),
        number: AtomicU16::new(0),
        sections: AtomicU32::new(0),
        walking: AtomicBool::new(false),
    }
}; SLOTS];

/// Stands for the header of a thread that ended: it gets no number again, as nobody would give that one back.
const ENDED: usize = 1;

/// This thread's header, if it has a number.
#[inline]
fn mine() -> Option<&'static Header> {
    let at = header();
    // What is there is one of `HEADERS`, 0 or `ENDED`.
    (at > ENDED).then(|| region::at(at))
}

/// Where this thread counts its sections, if it has a number.
#[inline]
pub(crate) fn sections() -> Option<&'static AtomicU32> {
    mine().map(|header| &header.sections)
}

/// Whether this thread walks its stack, if it has a number.
pub(crate) fn walking() -> Option<&'static AtomicBool> {
    mine().map(|header| &header.walking)
}

/// Where every thread that has a number counts its sections.
pub(crate) fn all_sections() -> impl Iterator<Item = &'static AtomicU32> {
    HEADERS.iter().take(NUMBERS.load(SeqCst) as usize).map(|header| &header.sections)
}

/// A number from a generator of this thread's.
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

/// Slow paths between two looks at what no caller waits for.
const TICKS: u32 = 8;

/// Counts a slow path; `true` every so often.
pub(crate) fn tick() -> bool {
    let Some(header) = mine() else { return false };
    let ticks = header.ticks.load(Relaxed).wrapping_add(1);
    header.ticks.store(ticks, Relaxed);
    ticks.is_multiple_of(TICKS)
}

const FREE: u8 = 0;
const LIVE: u8 = 1;
const CLAIMED: u8 = 2;

/// Who has a number; where slots are threads', who has the slot. Number 0 is nobody's.
static STATES: [AtomicU8; SLOTS] = [const { AtomicU8::new(FREE) }; SLOTS];
/// Numbers that threads had are below this.
static NUMBERS: AtomicU16 = AtomicU16::new(1);

/// Whether somebody may use a slot now.
pub(crate) fn is_live(slot: CpuId) -> bool {
    match per_cpu::is_up(slot) {
        Some(up) => up,
        None => STATES[slot.0 as usize].load(Relaxed) == LIVE,
    }
}

/// Whether a slot is this thread's, where slots are threads'.
pub(crate) fn is_mine(slot: CpuId) -> bool {
    area::is_mine() && area::slot() == slot
}

/// Calls for the thread's end: the key, and who is told which slot became free.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static ON_EXIT: OnceLock<fn(CpuId)> = OnceLock::new();

/// Asks the C library for a call at each thread's end. Once, when the world starts; allocates nothing.
pub(crate) fn start() {
    if let Some(key) = system::on_thread_exit(exit) {
        KEY.store(key, Relaxed);
    }
}

/// Asks for `hook` whenever a slot lost its thread: what is in the slot can be claimed from then on.
pub(crate) fn on_exit(hook: fn(CpuId)) {
    // A second hook is the first: there is one process.
    let _ = ON_EXIT.set(hook);
}

extern "C" fn exit(_mark: *mut c_void) {
    // What is allocated or freed from here on, by the hook, other destructors and the C library, goes without
    // a number.
    let Some(slot) = leave_for(ENDED) else { return };
    if let Some(hook) = ON_EXIT.get() {
        hook(slot);
    }
}

/// Takes a number for this thread if it has none, and the slot if slots are threads'; whether there is a slot
/// for it now.
pub(crate) fn enter() -> bool {
    match mine() {
        Some(header) => {
            // A signal handler found it for this thread, just when a hot operation hid that there was none.
            if area::mine() == area::refusing() && !per_cpu::on() {
                set_area(area::of(CpuId(header.number.load(Relaxed))));
            }
            true
        }
        None => enter_first() || per_cpu::on(),
    }
}

#[cold]
fn enter_first() -> bool {
    // In a section it would count the next ones elsewhere.
    if area::first() == 0 || local::sections() > 0 {
        return false;
    }
    // Signal handlers that come from here on go without a number.
    let before = swap_header(ENDED);
    if before != 0 {
        set_header(before);
        mine().inspect(|header| stay(header.number.load(Relaxed)));
        return before != ENDED;
    }
    let free = (1..area::room()).find(|number| {
        let state = &STATES[*number];
        state.load(Relaxed) == FREE && state.compare_exchange(FREE, LIVE, Acquire, Relaxed).is_ok()
    });
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
    // Before this thread counts sections there.
    NUMBERS.fetch_max(slot.0 + 1, SeqCst);
    if !per_cpu::on() {
        area::name(slot);
        set_area(area::of(slot));
    }
    become_number(slot);
    stay(slot.0);
    // May allocate: from here on that is served.
    system::mark_thread(KEY.load(Relaxed));
    true
}

/// Says again who has a number: a signal handler that forked meanwhile found nobody who had it.
fn stay(number: u16) {
    STATES[number as usize].store(LIVE, Release);
}

fn become_number(number: CpuId) {
    let header = &HEADERS[number.0 as usize];
    header.random.store(0x9e37_79b9_7f4a_7c15 ^ number.0 as u64, Relaxed);
    header.number.store(number.0, Relaxed);
    set_header(std::ptr::from_ref(header).expose_provenance());
}

/// Lets go of this thread's number, and answers which slot lost its thread with that: what is in it stays for
/// whoever claims it or gets it next.
pub(crate) fn leave() -> Option<CpuId> {
    leave_for(0)
}

/// The same; `next` stands where its header's address stood.
fn leave_for(next: usize) -> Option<CpuId> {
    let Some(mine) = mine() else {
        set_header(next);
        return None;
    };
    let number = mine.number.load(Relaxed);
    // In this order: who has a header gets the area back.
    set_header(next);
    set_area(area::refusing());
    STATES[number as usize].store(FREE, Release);
    (!per_cpu::on()).then_some(CpuId(number))
}

/// Says that this process has no other thread: the others' numbers are free.
pub(crate) fn alone() {
    let mine = mine().map(|header| header.number.load(Relaxed) as usize);
    for (number, state) in STATES.iter().enumerate().take(NUMBERS.load(Relaxed) as usize) {
        if mine != Some(number) {
            // Its thread may have looked at the gate just when the fork was made.
            HEADERS[number].sections.store(0, Relaxed);
            state.store(FREE, Relaxed);
        }
    }
}

/// A slot that no thread has, taken to empty it.
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

/// For the contract's checks: `f` as another slot's thread, which need not have one.
pub(crate) fn as_slot<R>(slot: CpuId, f: impl FnOnce() -> R) -> R {
    if per_cpu::on() {
        return per_cpu::pretending(slot, f);
    }
    let before = (area::mine(), header());
    STATES[slot.0 as usize].store(LIVE, Release);
    NUMBERS.fetch_max(slot.0 + 1, SeqCst);
    assert!(area::open(slot), "there is memory for the checks");
    area::name(slot);
    become_number(slot);
    set_area(area::of(slot));
    let result = f();
    set_area(before.0);
    set_header(before.1);
    result
}

/// For the contract's checks: a slot's thread comes or goes, a CPU goes up or down.
pub(crate) fn set_live(slot: CpuId, live: bool) {
    if !per_cpu::set_up(slot, live) {
        STATES[slot.0 as usize].store(if live { LIVE } else { FREE }, Release);
    }
}
