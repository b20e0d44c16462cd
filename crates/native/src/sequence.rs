//! Restartable sequences: the hot operations on the slot of the CPU this code runs on.
//!
//! ```text
//!    say which sequence this is                      a word the kernel reads
//! ┌  slot = the CPU's area + the cache's offset      preempted, moved, a signal comes,
//! │  conditions, or out with a refusal               another CPU fences:
//! └  one store                                       from the start again
//! ```
//!
//! Of a sequence that the kernel aborts nothing is seen but words written where nobody looks: the link of the
//! object that is pushed, the array's place behind the last. The store that commits is the last instruction.
//!
//! Whoever empties another CPU's slot takes the words by exchange and fences. A sequence that read them
//! before may have stored what it made of them in between: then that is what the slot holds, and is taken
//! next.
//!
//! The assembler is in a file for each machine, all with the same functions; every place that one is inlined
//! to has a sequence of its own, which the section `__rseq_cs` lists.

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

/// The words of a slot that sequences read, and its two that they write. Those of the array are not where the
/// first two words of objects that begin with a line are: a processor that compares low bits of addresses
/// first would take them for those.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Hot {
    /// The list's head shifted by 16, and how many are on it + 1 in the 17 bits below.
    pub(crate) list: AtomicU64,
    /// What the owner says of the list.
    pub(crate) tag: AtomicU64,
    /// Of the array: size (32), capacity (32).
    pub(crate) sizes: AtomicU64,
    /// Where the array is.
    pub(crate) storage: AtomicU64,
}

/// What a sequence knows of a cache: where its lines are in each area, where its objects keep their link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cache {
    pub(crate) offset: u32,
    pub(crate) link: u32,
}
