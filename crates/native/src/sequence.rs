//! Restartable sequences: the hot operations on the slot of the CPU this code runs on.
//!
//! ```text
//!    store which sequence this is                    a word that the kernel reads
//! ┌  slot = the CPU's area + the cache's offset      preempted, moved, interrupted by
//! │  check the conditions, or refuse                 a signal, fenced by another CPU:
//! └  one store                                       from the start again
//! ```
//!
//! The store that commits is the last instruction. An aborted sequence has written only words that no thread
//! reads: the link of the object it pushed, the array's element behind the last.
//!
//! A thread that empties another CPU's slot takes the words by exchange, then fences that CPU. A sequence
//! that read the words before the exchange may have committed before the fence: then the slot holds its
//! result, which the thread takes next.
//!
//! There is one file of assembler for each machine, with the same functions. A function is inlined, and each
//! inlined copy is a sequence of its own, listed in the section `__rseq_cs`.

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "assembler")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "assembler")]
mod x86_64;

use crate::object::Object;
#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{pop, pop_if, push, push_if, take};
use slablab_platform::HotArray;
use std::sync::atomic::AtomicU64;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{pop, pop_if, push, push_if, take};

/// Bytes before an array's first address.
pub(crate) const FIRST_BYTES: u32 = HotArray::<Object>::HEADER * 8;

/// The words of a slot that sequences use; they write `list` and `sizes`. The array's words do not have the
/// offsets in a cache line that the first two words of most objects have: a processor that first compares the
/// low bits of addresses would take one for the other.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Hot {
    /// The list's head shifted left by 16, and in the low 17 bits the number of objects on it + 1.
    pub(crate) list: AtomicU64,
    /// The engine's tag of the list.
    pub(crate) tag: AtomicU64,
    /// The array's size (low 32 bits) and capacity (high 32 bits).
    pub(crate) sizes: AtomicU64,
    /// The array's address.
    pub(crate) storage: AtomicU64,
}
