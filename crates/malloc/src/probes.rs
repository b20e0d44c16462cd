//! The probes of OpenTelemetry's contract for heap profiles. `unsafe`: assembler for their places.
//!
//! ```text
//! otel_memory:alloc(user, size, weighted_bytes)     an allocation that was sampled
//! otel_memory:free(ptr)                             the free of one
//! ```
//!
//! A probe is an instruction that does nothing, and a note in the section `.note.stapsdt` that says where the
//! instruction, the arguments and a *semaphore* are. A profiler counts itself in the semaphore, and has the
//! kernel stop at the instruction. While no profiler listens, allocations come here on slow paths alone, to
//! read a semaphore.
//!
//! **Sampling.** Of allocations of `size` bytes, `weighted_bytes` add up to the bytes that were allocated. A
//! profiler gets one of some [`INTERVAL_BYTES`]. The fast path counts nothing but its credit, so a slot gets
//! [`CREDIT`] instead of its usual one: the allocation that is refused for want of credit stands for all that
//! were served since, and is sampled with a chance that follows from its size. Those on other slow paths
//! stand for themselves.
//!
//! **Frees.** A sampled object is a block of page frames, which no fast path frees. So the free of an object
//! that was not sampled does not look for it. The module `sampled` has the addresses.

use crate::sampled;
use crate::world::Native;
use slablab_native::Object;
use slablab_platform::Hooks;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Bytes of allocations for one that is sampled, on average.
const INTERVAL_BYTES: u64 = 512 << 10;
/// Objects that a slot gives from its arrays until one may be sampled: so few that the largest classes are
/// sampled every 2 MiB.
const CREDIT: u16 = 60;

/// How many profilers listen to allocations. In a section of its own, whose pages the kernel finds by the
/// note.
// SAFETY: the section is one of data, in which statics may be.
#[unsafe(link_section = ".probes")]
static ALLOC_SEMAPHORE: AtomicU16 = AtomicU16::new(0);
/// How many profilers listen to frees.
// SAFETY: as above.
#[unsafe(link_section = ".probes")]
static FREE_SEMAPHORE: AtomicU16 = AtomicU16::new(0);

/// Defines a function that is a probe: its arguments are those of the note, in these registers of x86-64 and
/// of aarch64.
macro_rules! probe {
    ($(#[$doc:meta])* $function:ident, $name:literal, $semaphore:path,
     $first:ident in $x86_64:tt $aarch64:tt
     $(, $argument:ident in $more_x86_64:tt $more_aarch64:tt)*) => {
        $(#[$doc])*
        #[inline(never)]
        fn $function($first: u64 $(, $argument: u64)*) {
            // SAFETY: the instruction does nothing. The note is in a section that no code reads.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                probe!(place $name, $semaphore,
                    concat!("8@%", $x86_64 $(, " 8@%", $more_x86_64)*),
                    $first in $x86_64 $(, $argument in $more_x86_64)*);
                #[cfg(target_arch = "aarch64")]
                probe!(place $name, $semaphore,
                    concat!("8@", $aarch64 $(, " 8@", $more_aarch64)*),
                    $first in $aarch64 $(, $argument in $more_aarch64)*);
            }
        }
    };
    (place $name:literal, $semaphore:path, $arguments:expr, $($argument:ident in $register:tt),*) => {
        std::arch::asm!(
            "990: nop",
            ".pushsection .note.stapsdt,\"\",\"note\"",
            ".balign 4",
            ".4byte 992f-991f, 994f-993f, 3",
            "991: .asciz \"stapsdt\"",
            "992: .balign 4",
            // The second word would tell of a file whose addresses were changed after it was linked.
            "993: .8byte 990b, 0, {semaphore}",
            ".asciz \"otel_memory\"",
            concat!(".asciz \"", $name, "\""),
            concat!(".asciz \"", $arguments, "\""),
            "994: .balign 4",
            ".popsection",
            semaphore = sym $semaphore,
            $(in($register) $argument,)*
            options(nostack, preserves_flags),
        )
    };
}

probe! {
    /// `otel_memory:alloc`.
    alloc_probe, "alloc", ALLOC_SEMAPHORE,
    user in "rdi" "x0", size in "rsi" "x1", weighted_bytes in "rdx" "x2"
}
probe! {
    /// `otel_memory:free`.
    free_probe, "free", FREE_SEMAPHORE,
    user in "rdi" "x0"
}

/// Whether a profiler listens to allocations.
#[inline(always)]
pub(crate) fn is_heard() -> bool {
    ALLOC_SEMAPHORE.load(Relaxed) > 0
}

/// Has slots get the credit that fits what is heard. Upkeep calls it, and each allocation that is heard.
pub(crate) fn look() {
    Native::set_credit(is_heard().then_some(CREDIT));
}

/// The bytes that a sampled allocation stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight(u64);

/// The weight of an allocation of `bytes` bytes that stands for `count` of them, if it is sampled.
pub(crate) fn sample(bytes: usize, count: u32) -> Option<Weight> {
    weight(bytes as u64, count, Native::random())
}

fn weight(bytes: u64, count: u32, random: u32) -> Option<Weight> {
    let stands_for = bytes.saturating_mul(count.into());
    let is_sampled = (u64::from(random) * INTERVAL_BYTES) >> 32 < stands_for;
    is_sampled.then_some(Weight(stands_for.max(INTERVAL_BYTES)))
}

/// Tells profilers of a sampled allocation, which [`freed`] will be told of. No profiler is told if there are
/// too many.
pub(crate) fn allocated(object: Object, bytes: usize, weight: Weight) {
    if sampled::add(object.addr()) {
        alloc_probe(object.addr() as u64, bytes as u64, weight.0);
    }
}

/// Tells profilers of a block of page frames or a mapping, if it is sampled.
#[cold]
pub(crate) fn block(object: Object, bytes: usize) {
    look();
    if let Some(weight) = sample(bytes, 1) {
        allocated(object, bytes, weight);
    }
}

/// Tells profilers of the free of a block or a mapping, if that was sampled.
#[inline]
pub(crate) fn freed(at: usize) {
    if sampled::any() && sampled::remove(at) {
        free_probe(at as u64);
    }
}

/// Tells profilers that a block or a mapping has another size, and maybe another address: as of a free and
/// an allocation.
#[inline]
pub(crate) fn resized(before: usize, object: Object, bytes: usize) {
    freed(before);
    if is_heard() {
        block(object, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many allocations of a size, the weights of the sampled ones add up to the bytes; there is one for
    /// each interval, or as many as are asked.
    #[test]
    fn weights_add_up_to_the_bytes() {
        for (bytes, count) in
            [(1, 1), (16, 61), (100, 61), (9000, 61), (32_768, 61), (40_000, 1), (1 << 30, 1)]
        {
            let tries = 1 << 21;
            let random = |index: u32| index.wrapping_mul(0x9e37_79b1);
            let weights = (0..tries).filter_map(|index| weight(bytes, count, random(index)));
            let (found, sum) =
                weights.fold((0u64, 0u128), |(found, sum), weight| (found + 1, sum + u128::from(weight.0)));
            let all = u128::from(bytes) * u128::from(count) * u128::from(tries);
            let expected = all / u128::from(INTERVAL_BYTES.max(bytes * u64::from(count)));
            assert!(
                sum.abs_diff(all) <= all / 50 + 2 * u128::from(INTERVAL_BYTES),
                "{bytes} x {count}: {sum} of {all}"
            );
            assert!(u128::from(found).abs_diff(expected) <= expected / 50 + 2, "{bytes} x {count}: {found}");
        }
        assert_eq!(weight(0, 61, 0), None);
    }
}
