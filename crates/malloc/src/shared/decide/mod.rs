//! When caches shrink, and which free memory goes back to the system: the tables of "States of upkeep" in
//! docs/native.md.
//!
//! Nothing is read, locked or written here: what a thread saw goes in, what it does comes out.
//! [`super::upkeep`] looks, and carries the decisions out. Amounts of memory are page frames.
//!
//! ```text
//! turns    which caches shrink, when, by how much
//! epochs   which free memory is idle, and how much stays
//! falls    what goes at once: a process may go to sleep
//! limits   what goes near a limit
//! ```

mod epochs;
mod falls;
mod limits;
#[cfg(test)]
mod tables;
mod turns;

pub(super) use epochs::{Epoch, Stock, begins_anew, epoch, leave, stays};
pub(super) use falls::{Crowd, Tide, arms_helper, ends_helper};
pub(super) use limits::{Limited, is_near, purges, waits};
pub(super) use turns::{Due, Held, TURN_EVERY_NS, Why, has_grown};

/// Free memory that stays for the next request, in bytes.
pub(super) const KEEP_BYTES: u64 = 2 << 20;

/// Whether `free` frames are hardly any.
pub(super) fn is_little(free: u64, page_shift: u32) -> bool {
    free <= KEEP_BYTES >> page_shift
}
