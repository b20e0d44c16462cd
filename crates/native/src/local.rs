//! Thread-local words. `unsafe`: thread-local storage by hand.
//!
//! They use the initial-exec model, which stable Rust cannot choose for a shared library, so they are
//! declared and found in assembler. Reading one is two loads: its offset from the thread pointer, and its
//! value.

use crate::area::{Area, REFUSING};
use std::arch::{asm, global_asm};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// `asm!` with the lines of the machine that this is compiled for. The block that it stands in is the
/// `unsafe` one, and says what the lines of both machines do.
macro_rules! asm_of {
    (x86_64 { $($x86_64:tt)* } aarch64 { $($aarch64:tt)* }) => {{
        #[cfg(target_arch = "x86_64")]
        asm!($($x86_64)*);
        #[cfg(target_arch = "aarch64")]
        asm!($($aarch64)*);
    }};
}

/// A thread-local word of 8 bytes: its first value, the function that returns its offset from the thread
/// pointer, and its name in the assembler.
macro_rules! word {
    ($(#[$doc:meta])* $at:ident, $name:literal) => {
        word!($(#[$doc])* $at, $name, ".tbss", "nobits", ".zero 8",);
    };
    ($(#[$doc:meta])* $at:ident, $name:literal, $first:path) => {
        word!($(#[$doc])* $at, $name, ".tdata", "progbits", ".quad {first}", first = sym $first);
    };
    ($(#[$doc:meta])* $at:ident, $name:literal, $section:literal, $bits:literal, $value:literal, $($operand:tt)*) => {
        #[cfg(target_arch = "x86_64")]
        word!(define $name, $section, concat!("@", $bits), "@object", $value, $($operand)*);
        #[cfg(target_arch = "aarch64")]
        word!(define $name, $section, concat!("%", $bits), "%object", $value, $($operand)*);

        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $at() -> usize {
            let offset: usize;
            // SAFETY: loads an entry of the table that the dynamic linker filled in before the program began
            // and that is never written again (`nomem`); the entry is there because `define` above declares
            // the word.
            unsafe {
                asm_of! {
                    x86_64 {
                        concat!("mov {offset}, qword ptr [rip + ", $name, "@gottpoff]"),
                        offset = out(reg) offset,
                        options(pure, nomem, nostack, preserves_flags),
                    }
                    aarch64 {
                        concat!("adrp {offset}, :gottprel:", $name),
                        concat!("ldr {offset}, [{offset}, :gottprel_lo12:", $name, "]"),
                        offset = out(reg) offset,
                        options(pure, nomem, nostack, preserves_flags),
                    }
                }
            }
            offset
        }
    };
    (define $name:literal, $section:literal, $bits:expr, $object:literal, $value:literal, $($operand:tt)*) => {
        global_asm!(
            concat!(".pushsection ", $section, ",\"awT\",", $bits),
            concat!(".hidden ", $name),
            concat!(".globl ", $name),
            concat!(".type ", $name, ",", $object),
            concat!(".size ", $name, ",8"),
            ".p2align 3",
            concat!($name, ": ", $value),
            ".popsection",
            $($operand)*
        );
    };
}

word!(
    /// Offset of the address of this thread's area.
    area_at,
    "slablab_area",
    REFUSING
);
word!(
    /// Offset of the number of this thread's header.
    header_at,
    "slablab_header"
);
word!(
    /// Offset of the word in which a thread without a header counts its sections.
    sections_at,
    "slablab_sections"
);
word!(
    /// Offset of the number of this thread's sections that are passes.
    passes_at,
    "slablab_passes"
);
word!(
    /// For the contract's checks: offset of the CPU that this thread states it runs on.
    pretended_at,
    "slablab_pretended"
);
word!(
    /// For the contract's checks: offset of a word for the current sequence that the kernel does not read.
    unregistered_at,
    "slablab_unregistered"
);

/// This thread's area. A refusing one if it has none, during a hot operation, and with slots per CPU.
#[inline(always)]
pub(crate) fn area() -> &'static Area {
    // SAFETY: the word is the address of `REFUSING`, which the linker put there, or of what `set_area` got.
    unsafe { &*std::ptr::with_exposed_provenance(read(area_at())) }
}

/// Sets this thread's area.
#[inline(always)]
pub(crate) fn set_area(area: &'static Area) {
    write(area_at(), std::ptr::from_ref(area).expose_provenance());
}

/// The number of this thread's header, as `thread` counts; 0 while it has none.
#[inline(always)]
pub(crate) fn header() -> usize {
    read(header_at())
}

/// Sets the number of this thread's header.
pub(crate) fn set_header(value: usize) {
    write(header_at(), value);
}

/// Sets the number of this thread's header, and returns the one before. A signal handler sees it as one
/// instruction.
pub(crate) fn swap_header(value: usize) -> usize {
    let thread: usize;
    // SAFETY: reads the thread pointer: the first word of a thread's block is the block's address.
    unsafe {
        asm_of! {
            x86_64 {
                "mov {thread}, qword ptr fs:[0]", thread = out(reg) thread, options(nostack, preserves_flags)
            }
            aarch64 {
                "mrs {thread}, tpidr_el0", thread = out(reg) thread, options(nostack, preserves_flags)
            }
        }
    }
    let at: *mut usize = std::ptr::with_exposed_provenance_mut(thread.wrapping_add(header_at()));
    // SAFETY: a word of this thread, and aligned.
    unsafe { AtomicUsize::from_ptr(at) }.swap(value, Relaxed)
}

/// Number of sections that this thread is in, while it has no header.
pub(crate) fn sections() -> usize {
    read(sections_at())
}

/// Sets the number of [`sections`].
pub(crate) fn set_sections(count: usize) {
    write(sections_at(), count);
}

/// How many sections this thread was in when its innermost pass began, the pass's own with them; 0 without a
/// pass.
pub(crate) fn passes() -> usize {
    read(passes_at())
}

/// Sets the number of [`passes`].
pub(crate) fn set_passes(count: usize) {
    write(passes_at(), count);
}

/// For the contract's checks: the CPU that this thread states it runs on.
pub(crate) fn pretended() -> usize {
    read(pretended_at())
}

/// For the contract's checks: states which CPU this thread runs on.
pub(crate) fn pretend(cpu: usize) {
    write(pretended_at(), cpu);
}

/// A word of this thread.
#[inline(always)]
fn read(at: usize) -> usize {
    let value: usize;
    // SAFETY: reads a word of this thread. A signal handler that wrote the word restored it, or gave the
    // thread an area or a header that it did not have; a value read before that is as if the handler ran
    // later.
    unsafe {
        asm_of! {
            x86_64 {
                "mov {value}, qword ptr fs:[{at}]",
                at = in(reg) at,
                value = lateout(reg) value,
                options(pure, readonly, nostack, preserves_flags),
            }
            aarch64 {
                "mrs {value}, tpidr_el0",
                "ldr {value}, [{value}, {at}]",
                at = in(reg) at,
                value = out(reg) value,
                options(pure, readonly, nostack, preserves_flags),
            }
        }
    }
    value
}

#[inline(always)]
fn write(at: usize, value: usize) {
    // SAFETY: writes a word of this thread that nothing else uses.
    unsafe {
        asm_of! {
            x86_64 {
                "mov qword ptr fs:[{at}], {value}",
                at = in(reg) at,
                value = in(reg) value,
                options(nostack, preserves_flags),
            }
            aarch64 {
                "mrs {thread}, tpidr_el0",
                "str {value}, [{thread}, {at}]",
                thread = out(reg) _,
                at = in(reg) at,
                value = in(reg) value,
                options(nostack, preserves_flags),
            }
        }
    }
}

/// Half a word of this thread, `offset` bytes from the thread pointer.
#[inline(always)]
pub(crate) fn half_at(offset: usize) -> u32 {
    let value: u32;
    // SAFETY: the callers' offsets are of words that every thread has.
    unsafe {
        asm_of! {
            x86_64 {
                "mov {value:e}, dword ptr fs:[{offset}]",
                offset = in(reg) offset,
                value = out(reg) value,
                options(readonly, nostack, preserves_flags),
            }
            aarch64 {
                "mrs {at}, tpidr_el0",
                "ldr {value:w}, [{at}, {offset}]",
                at = out(reg) _,
                offset = in(reg) offset,
                value = out(reg) value,
                options(readonly, nostack, preserves_flags),
            }
        }
    }
    value
}

/// The C library's `__rseq_offset` and `__rseq_size`: the offset of each thread's area for restartable
/// sequences from the thread pointer, and its size. `None` if the C library has none.
pub(crate) fn registered_area() -> Option<(isize, u32)> {
    let (offset, size): (usize, usize);
    // SAFETY: reads two entries of the linker's table, which are 0 for symbols that no library defines.
    unsafe {
        asm_of! {
            x86_64 {
                ".weak __rseq_offset",
                ".weak __rseq_size",
                "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
                "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
                offset = out(reg) offset,
                size = out(reg) size,
                options(pure, readonly, nostack, preserves_flags),
            }
            aarch64 {
                ".weak __rseq_offset",
                ".weak __rseq_size",
                "adrp {offset}, :got:__rseq_offset",
                "ldr {offset}, [{offset}, :got_lo12:__rseq_offset]",
                "adrp {size}, :got:__rseq_size",
                "ldr {size}, [{size}, :got_lo12:__rseq_size]",
                offset = out(reg) offset,
                size = out(reg) size,
                options(pure, readonly, nostack, preserves_flags),
            }
        }
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
