//! A purge: all memory that no object needs goes back to the system, that of all threads.
//!
//! ```text
//! purge           the caller's slot, those of ended threads and of CPUs, barns, kept blocks, free frames
//!   ask_all       the other threads: each empties its slot on its next slow path ([`on_slow_path`])
//! ```
//!
//! No thread reaches into the slot of another one that runs, so a thread that sleeps keeps its slot's objects
//! until it allocates again: the answer says how many such threads there are.
//!
//! Another process asks for a purge by a word ([`note::PURGES_AT`](super::note::PURGES_AT)), which slow paths
//! look at.

use super::note::{PURGE_ANSWERED, PURGE_ASKED, PURGE_BYTES, PURGE_THREADS, PURGE_WORDS, address};
use super::upkeep;
use crate::world::Native;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// What a purge did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// Bytes that went back to the system.
    pub given_back: u64,
    /// Other threads that were asked to empty their slots, and have not done so yet.
    pub threads: u32,
}

/// The words that another process asks by, and the answer to it.
static WORDS: [AtomicU64; PURGE_WORDS] = [const { AtomicU64::new(0) }; PURGE_WORDS];
/// The last request that a thread took.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// What a pass gave back, in bytes, if it is worth another one: a cache that gives a sheaf back after the
/// sheaf's class had its turn frees an object that keeps a slab.
const WORTH_BYTES: u64 = 64 << 10;
/// Most passes of a purge.
const PASSES: u32 = 4;

/// Gives the system all memory that no object needs, and asks every other thread for the objects of its slot.
pub fn purge() -> Purged {
    Native::ask_all();
    let mut given_back = 0;
    for _ in 0..PASSES {
        let bytes = upkeep::trim();
        given_back += bytes;
        if bytes < WORTH_BYTES {
            break;
        }
    }
    Purged { given_back, threads: Native::asked_left() }
}

/// Empties this thread's slot if a purge asked for it, and purges if another process asks. The calling thread
/// has a pass.
#[inline]
pub(super) fn on_slow_path() {
    if Native::asked() {
        // Slabs of its objects may be empty then: as a whole, this is what gives them back.
        upkeep::trim();
    }
    // Acquire: pairs with the exchange in `answer`. Who sees that a request was taken reads that one there.
    if WORDS[PURGE_ASKED].load(Relaxed) != TAKEN.load(Acquire) {
        answer();
    }
}

/// Purges, and writes what it did for the process that asked.
#[cold]
fn answer() {
    let asked = WORDS[PURGE_ASKED].load(Relaxed);
    if TAKEN.swap(asked, AcqRel) == asked {
        return;
    }
    let purged = purge();
    WORDS[PURGE_BYTES].store(purged.given_back, Relaxed);
    WORDS[PURGE_THREADS].store(purged.threads.into(), Relaxed);
    // Release: the process reads this word before the two others.
    WORDS[PURGE_ANSWERED].store(asked, Release);
}

/// The address of the words.
pub(super) fn words_at() -> u64 {
    address(&WORDS)
}
