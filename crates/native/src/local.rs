//! Thread-local words. `unsafe`: thread-local storage by hand.
//!
//! They are read by the initial-exec model, which stable Rust cannot ask for in a shared library: so they are declared and read
//! in assembler.

use std::arch::{asm, global_asm};

/// A thread-local word of 8 bytes, 0 at first: how to read it, how to write it, and what the assembler calls it.
macro_rules! word {
    ($(#[$get_doc:meta])* $get:ident, $(#[$set_doc:meta])* $set:ident, $name:literal) => {
        #[cfg(target_arch = "x86_64")]
        global_asm!(
            ".pushsection .tbss,\"awT\",@nobits",
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",@object"),
            concat!(".size ", $name, ",8"),
            ".p2align 3",
            concat!($name, ": .zero 8"),
            ".popsection",
        );

        #[cfg(target_arch = "aarch64")]
        global_asm!(
            ".pushsection .tbss,\"awT\",%nobits",
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",%object"),
            concat!(".size ", $name, ",8"),
            ".p2align 3",
            concat!($name, ": .zero 8"),
            ".popsection",
        );

        $(#[$get_doc])*
        #[inline(always)]
        pub(crate) fn $get() -> usize {
            let value: usize;
            // SAFETY: reads a word of this thread.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                asm!(
                    concat!("mov {value}, qword ptr [rip + ", $name, "@gottpoff]"),
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
                    concat!("adrp {value}, :gottprel:", $name),
                    concat!("ldr {value}, [{value}, :gottprel_lo12:", $name, "]"),
                    "ldr {value}, [{at}, {value}]",
                    at = out(reg) _,
                    value = out(reg) value,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            value
        }

        $(#[$set_doc])*
        pub(crate) fn $set(value: usize) {
            // SAFETY: writes a word of this thread that nothing else uses.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                asm!(
                    concat!("mov {at}, qword ptr [rip + ", $name, "@gottpoff]"),
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
                    concat!("adrp {offset}, :gottprel:", $name),
                    concat!("ldr {offset}, [{offset}, :gottprel_lo12:", $name, "]"),
                    "str {value}, [{at}, {offset}]",
                    at = out(reg) _,
                    offset = out(reg) _,
                    value = in(reg) value,
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

word!(
    /// From the refusing area to this thread's. 0 where slots are CPUs'.
    displacement,
    /// Says where this thread's area is from here on.
    set_displacement,
    "slablab_displacement"
);

word!(
    /// Where this thread's header is; 0 while it has none.
    header,
    /// Says where this thread's header is from here on.
    set_header,
    "slablab_header"
);

word!(
    /// The number of the CPU that this thread says it is on: for the contract's checks.
    pretended,
    /// Says which CPU this thread is on.
    pretend,
    "slablab_pretended"
);

/// Where [`pretended`] is, from the thread pointer.
pub(crate) fn pretended_at() -> usize {
    let offset: usize;
    // SAFETY: reads a constant of the linker's.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov {offset}, qword ptr [rip + slablab_pretended@gottpoff]",
            offset = out(reg) offset,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "adrp {offset}, :gottprel:slablab_pretended",
            "ldr {offset}, [{offset}, :gottprel_lo12:slablab_pretended]",
            offset = out(reg) offset,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    offset
}

/// Half a word of this thread, so many bytes from the thread pointer.
#[inline(always)]
pub(crate) fn half_at(offset: usize) -> u32 {
    let value: u32;
    // SAFETY: the callers' offsets are of words that every thread has.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            "mov {value:e}, dword ptr fs:[{offset}]",
            offset = in(reg) offset,
            value = out(reg) value,
            options(readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            "mrs {at}, tpidr_el0",
            "ldr {value:w}, [{at}, {offset}]",
            at = out(reg) _,
            offset = in(reg) offset,
            value = out(reg) value,
            options(readonly, nostack, preserves_flags),
        );
    }
    value
}

/// The C library's `__rseq_offset` and `__rseq_size`: where each thread's restartable-sequences area is, from the thread pointer,
/// and how much of it there is; `None` where the C library has none of it.
pub(crate) fn registered_area() -> Option<(isize, u32)> {
    let (offset, size): (usize, usize);
    // SAFETY: reads two entries of the linker's table, which are 0 for symbols that nobody defines.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "adrp {offset}, :got:__rseq_offset",
            "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
            "adrp {size}, :got:__rseq_size",
            "ldr {size}, [{size}, :got_lo12:__rseq_size]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    if offset == 0 || size == 0 {
        return None;
    }
    // SAFETY: the C library's constants, of these types.
    unsafe {
        let offset: *const isize = std::ptr::with_exposed_provenance(offset);
        let size: *const u32 = std::ptr::with_exposed_provenance(size);
        Some((*offset, *size))
    }
}
