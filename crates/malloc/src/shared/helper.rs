//! The helper: a thread that does the upkeep of a process that sleeps (`SLABLAB_BACKGROUND=1`).
//!
//! ```text
//! absent ── a thread on a slow path sees much idle memory ──▶ runs ── little is left ──▶ absent
//!   ▲                                                           │
//!   └──────────────── a fork's child: it has no helper ─────────┘
//! ```
//!
//! A thread that cannot be started is not tried again: a sandbox may forbid it.

use super::{decide, limit, purge, upkeep as callers};
use crate::probes;
use crate::world::Native;
use slablab_native::system;
use slablab_platform::Topology;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::*};

/// How long the helper sleeps.
const SLEEP_NS: u64 = 100_000_000;
/// Bytes of its stack, with room for the program's thread-local storage.
const STACK_BYTES: usize = 256 << 10;
/// After so many looks at which little was idle, it ends.
const LOOKS: u32 = 3;

const ABSENT: u8 = 0;
const RUNS: u8 = 1;
/// It could not be started.
const REFUSED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ABSENT);
/// Whether the process wants a helper.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Says that the process wants a helper.
pub(crate) fn want() {
    WANTED.store(true, Relaxed);
}

/// In a fork's child, which has no helper.
pub(super) fn forget() {
    let _ = STATE.compare_exchange(RUNS, ABSENT, Relaxed, Relaxed);
}

/// Does a bounded part of the upkeep that is due; or has a helper do it, if the process wants one. Slow paths
/// call it.
#[inline]
pub fn upkeep() {
    if callers::upkeep() {
        purge::on_slow_path();
        limit::look(0);
        probes::look();
        arm();
    }
}

/// Upkeep before a request of page frames.
pub(crate) fn before_block(bytes: usize) {
    upkeep();
    limit::look(bytes as u64);
}

/// Upkeep after a large block was freed: in a fall of what the process uses, memory goes back.
pub(crate) fn after_free() {
    callers::after_free();
    arm();
}

/// Starts the helper if the process wants one, has none, and keeps much memory that no caller needs. The
/// calling thread holds no lock.
#[inline]
fn arm() {
    if WANTED.load(Relaxed) && STATE.load(Relaxed) == ABSENT {
        arm_cold();
    }
}

#[cold]
fn arm_cold() {
    if !decide::arms_helper(callers::idle_frames(), Native::page_shift()) {
        return;
    }
    // The new thread's memory may be allocated here: such a request finds that there is a helper.
    if STATE.compare_exchange(ABSENT, RUNS, Acquire, Relaxed).is_ok()
        && !system::start_thread(run, STACK_BYTES)
    {
        STATE.store(REFUSED, Relaxed);
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    let mut little = 0;
    while little < LOOKS {
        system::sleep(SLEEP_NS);
        // While another thread forks, that may take longer.
        let Some(_pass) = Native::pass() else { continue };
        callers::of_sleeper(SLEEP_NS);
        little =
            if decide::ends_helper(callers::idle_frames(), Native::page_shift()) { little + 1 } else { 0 };
    }
    STATE.store(ABSENT, Release);
    std::ptr::null_mut()
}
