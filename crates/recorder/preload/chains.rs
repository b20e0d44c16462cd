//! Call chains: who called, of about one allocation in so many bytes.
//!
//! Every byte that is allocated has the same chance to be the one whose allocation gets a chain: the bytes to
//! the next one are drawn from an exponential distribution. So an allocation of `size` bytes has a chain with
//! the probability 1 - exp(-size / mean), and whoever reads it may divide by that.
//!
//! The chain is written before its allocation, and names its address: events of a signal handler may be
//! between them.

use super::events::{own, record};
use super::folder;
use super::memory;
use super::process::{self, Dice};
use super::raw::kind;
use super::system::{can_walk, errno, now, set_errno, walk};
use core::ffi::c_void;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// The most frames of a chain, with those of this library.
const FRAMES: usize = 96;

/// Bytes in each of which about one allocation has a chain; 0: none yet, or none at all.
static SAMPLE: AtomicU64 = AtomicU64::new(0);

/// Makes the C library load what it walks stacks with, which a signal handler may not.
pub(crate) fn prepare() {
    // A call that is not recorded: reads the environment, if the C library has one.
    drop(process::lock());
    if folder::sample() != 0 && can_walk() {
        black_box(walk(&mut [0; 4]));
        SAMPLE.store(folder::sample(), Relaxed);
    }
}

/// Records an allocation, and of some the call chain.
#[inline]
pub(crate) fn record_alloc(kind: u8, at: *mut c_void, size: usize, align: usize) {
    let sample = SAMPLE.load(Relaxed);
    if sample != 0
        && let Some(thread) = own()
        && is_due(&thread.dice, size as u64, sample)
    {
        record_chain(&thread.dice, at);
    }
    record(kind, at, size, align);
}

/// Whether an allocation of `size` bytes has a chain.
#[inline]
fn is_due(dice: &Dice, size: u64, sample: u64) -> bool {
    let until = dice.until.load(Relaxed);
    if size < until {
        dice.until.store(until - size, Relaxed);
        return false;
    }
    next_is_due(dice, size - until, sample)
}

/// Draws when the next chain is due, behind `over` bytes of this allocation.
#[cold]
fn next_is_due(dice: &Dice, over: u64, sample: u64) -> bool {
    let is_begun = dice.random.load(Relaxed) != 0;
    if sample == 1 {
        // Every one; the dice stay where they are.
        dice.until.store(0, Relaxed);
        return !dice.busy.load(Relaxed);
    }
    if !is_begun {
        // An odd number is never 0.
        dice.random
            .store(now().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ dice as *const Dice as u64 | 1, Relaxed);
        dice.until.store(draw(dice, sample), Relaxed);
        return is_due(dice, over, sample);
    }
    // What is left of the allocation counts for the next draw: a large one passes several.
    let mut over = over;
    let until = loop {
        let until = draw(dice, sample);
        match over.checked_sub(until) {
            // A block of terabytes is not worth its loop.
            Some(rest) if rest < sample << 6 => over = rest,
            Some(_) => over = 0,
            None => break until - over,
        }
    };
    dice.until.store(until, Relaxed);
    !dice.busy.load(Relaxed)
}

/// Bytes, exponentially distributed with this mean; at least 1.
fn draw(dice: &Dice, mean: u64) -> u64 {
    // Marsaglia's xorshift.
    let mut random = dice.random.load(Relaxed);
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    dice.random.store(random, Relaxed);
    // The negative binary logarithm of a number between 0 and 1: of its leading zeros and, within a
    // hundredth, of the bits behind them.
    let zeros = random.leading_zeros();
    let part = ((random << zeros << 1) >> 11) as f64 / (1u64 << 53) as f64;
    let log = f64::from(zeros) + 1.0 - part - 0.344 * part * (1.0 - part);
    (log * core::f64::consts::LN_2 * mean as f64) as u64 + 1
}

#[cold]
fn record_chain(dice: &Dice, at: *mut c_void) {
    if at.is_null() {
        return;
    }
    let errno = errno();
    dice.busy.store(true, Relaxed);
    let mut frames = [0; FRAMES];
    let count = walk(&mut frames);
    let frames = &frames[..count];
    let time_ns = now();
    if !memory::is_known(frames, time_ns)
        && let Some(state) = process::lock()
    {
        state.keep_maps(time_ns);
    }
    record(kind::CHAIN, at, count, 0);
    frames.iter().for_each(|&frame| record(kind::FRAME, frame as *mut c_void, 0, 0));
    dice.busy.store(false, Relaxed);
    set_errno(errno);
}
