//! The thread-local word of the fast path. `unsafe`: thread-local storage by hand.
//!
//! It is read by the initial-exec model, which stable Rust cannot ask for in a shared library: so the word is declared and read
//! in assembler.

use std::arch::{asm, global_asm};

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".hidden slablab_displacement",
    ".globl slablab_displacement",
    ".type slablab_displacement,@object",
    ".size slablab_displacement,8",
    ".p2align 3",
    "slablab_displacement: .zero 8",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .tbss,\"awT\",%nobits",
    ".hidden slablab_displacement",
    ".globl slablab_displacement",
    ".type slablab_displacement,%object",
    ".size slablab_displacement,8",
    ".p2align 3",
    "slablab_displacement: .zero 8",
    ".popsection",
);

/// From the refusing area to this thread's. 0 at first.
#[inline(always)]
pub(crate) fn displacement() -> usize {
    let value: usize;
    // SAFETY: reads a word of this thread.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov {value}, qword ptr [rip + slablab_displacement@gottpoff]",
            "mov {value}, qword ptr fs:[{value}]",
            value = out(reg) value,
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
            "ldr {value}, [{at}, {value}]",
            at = out(reg) _,
            value = out(reg) value,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    value
}

/// Says where this thread's area is from here on.
pub(crate) fn set_displacement(value: usize) {
    // SAFETY: writes a word of this thread that nothing else uses.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov {at}, qword ptr [rip + slablab_displacement@gottpoff]",
            "mov qword ptr fs:[{at}], {value}",
            at = out(reg) _,
            value = in(reg) value,
            options(nostack, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "mrs {at}, tpidr_el0",
            "adrp {offset}, :gottprel:slablab_displacement",
            "ldr {offset}, [{offset}, :gottprel_lo12:slablab_displacement]",
            "str {value}, [{at}, {offset}]",
            at = out(reg) _,
            offset = out(reg) _,
            value = in(reg) value,
            options(nostack, preserves_flags),
        );
    }
}
