//! Restartable sequences: the hot operations on the slot of the CPU this code runs on. `unsafe`: assembler.
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
//! A function is an operation with the lines of both machines, which share its operands. It is inlined, and
//! each inlined copy is a sequence of its own, listed in the section `__rseq_cs`. On aarch64 the first word
//! that the conditions read is loaded with acquire (on x86-64 each load is): a thread on another CPU that
//! gives a slot back stores that word last, with release.

use crate::area::{AREA_BYTES, CREDIT_AT, SLOTS};
use crate::hot::Hot;
use crate::object::{FIRST_BYTES, Object};
use crate::per_cpu::Places;
use crate::region::Cache;
use slablab_platform::{CpuId, Want};
use std::arch::asm;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

/// A sequence: for each machine the lines from its start to its end, and the line where it refuses, at label
/// 8. The kernel sends an aborted thread to label 5; in front of it is the signature that glibc registered
/// the areas with.
macro_rules! sequence {
    (
        x86_64 [$($x86_64:expr,)+] refused $x86_64_refused:literal,
        aarch64 [$($aarch64:expr,)+] refused $aarch64_refused:literal,
        $places:expr, $($operands:tt)+
    ) => {
        #[cfg(target_arch = "x86_64")]
        asm!(
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "7: .long 0, 0",
            ".quad 3f, 4f - 3f, 5f",
            ".popsection",
            "2:",
            "lea {t}, [rip + 7b]",
            "mov {slot}, qword ptr [{places} + {sequence_at}]",
            "mov qword ptr fs:[{slot}], {t}",
            "3:",
            $($x86_64,)+
            "4:",
            ".pushsection .text.slablab_sequence, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "5: jmp 2b",
            concat!("8: ", $x86_64_refused),
            "jmp 4b",
            ".popsection",
            places = in(reg) $places,
            sequence_at = const Places::SEQUENCE_AT,
            number_at = const Places::NUMBER_AT,
            slot = out(reg) _,
            t = out(reg) _,
            $($operands)+
            options(nostack),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            ".pushsection __rseq_cs, \"aw\"",
            ".balign 32",
            "7: .long 0, 0",
            ".quad 3f, 4f - 3f, 5f",
            ".popsection",
            "2:",
            "adrp {t}, 7b",
            "add {t}, {t}, :lo12:7b",
            "mrs {thread}, tpidr_el0",
            "ldr {slot}, [{places}, {sequence_at}]",
            "str {t}, [{thread}, {slot}]",
            "3:",
            $($aarch64,)+
            "4:",
            "b 6f",
            concat!("8: ", $aarch64_refused),
            "6:",
            ".pushsection .text.slablab_sequence, \"ax\"",
            ".inst 0xd428bc00",
            "5: b 2b",
            ".popsection",
            places = in(reg) $places,
            sequence_at = const Places::SEQUENCE_AT,
            number_at = const Places::NUMBER_AT,
            thread = out(reg) _,
            slot = out(reg) _,
            t = out(reg) _,
            $($operands)+
            options(nostack),
        );
    };
}

/// A sequence that first finds the slot of this CPU.
macro_rules! in_slot {
    (
        x86_64 [$($x86_64:expr,)+] refused $x86_64_refused:literal,
        aarch64 [$($aarch64:expr,)+] refused $aarch64_refused:literal,
        $places:expr, $cache:expr, $($operands:tt)+
    ) => {
        sequence!(
            x86_64 [
                "mov {slot}, qword ptr [{places} + {number_at}]",
                "mov {slot:e}, dword ptr fs:[{slot}]",
                "cmp {slot:e}, {slots}",
                "jae 8f",
                "shl {slot}, {area_shift}",
                "add {slot}, qword ptr [{places} + {areas_at}]",
                "add {slot}, {offset}",
                $($x86_64,)+
            ] refused $x86_64_refused,
            aarch64 [
                "ldr {slot}, [{places}, {number_at}]",
                "ldr {slot:w}, [{thread}, {slot}]",
                "cmp {slot:w}, {slots}",
                "b.hs 8f",
                "ldr {t}, [{places}, {areas_at}]",
                "add {slot}, {t}, {slot}, lsl {area_shift}",
                "add {slot}, {slot}, {offset}",
                $($aarch64,)+
            ] refused $aarch64_refused,
            $places,
            areas_at = const Places::AREAS_AT,
            slots = const SLOTS,
            area_shift = const AREA_BYTES.trailing_zeros(),
            offset = in(reg) $cache.offset() as u64,
            $($operands)+
        )
    };
}

/// Takes the list's head if the tag meets `want`. `None` if the tag does not, or if the list is empty.
#[inline(always)]
pub(crate) fn pop_if(places: &Places, cache: Cache, want: Want) -> Option<Object> {
    let object: u64;
    // SAFETY: the invariants of `Places` and `Cache`; an object on a list is free, so its link is the list's.
    unsafe {
        in_slot!(
            x86_64 [
                "mov {list}, qword ptr [{slot} + {list_at}]",
                "mov {object}, {list}",
                "shr {object}, 16",
                "and {object}, -8",
                "jz 8f",
                "mov {t}, qword ptr [{slot} + {tag_at}]",
                "and {t}, {mask}",
                "cmp {t}, {value}",
                "jne 8f",
                "mov {t}, qword ptr [{object} + {link}]",
                "shl {t}, 16",
                "and {list:e}, 0x1ffff",
                "lea {t}, [{t} + {list} - 1]",
                "mov qword ptr [{slot} + {list_at}], {t}",
            ] refused "xor {object:e}, {object:e}",
            aarch64 [
                "add {t}, {slot}, {list_at}",
                "ldar {list}, [{t}]",
                "lsr {object}, {list}, #16",
                "ands {object}, {object}, #0xfffffffffffffff8",
                "b.eq 8f",
                "ldr {t}, [{slot}, {tag_at}]",
                "and {t}, {t}, {mask}",
                "cmp {t}, {value}",
                "b.ne 8f",
                "ldr {t}, [{object}, {link}]",
                "and {list}, {list}, #0x1ffff",
                "sub {list}, {list}, #1",
                "add {t}, {list}, {t}, lsl #16",
                "str {t}, [{slot}, {list_at}]",
            ] refused "mov {object}, #0",
            places,
            cache,
            list_at = const offset_of!(Hot, list),
            tag_at = const offset_of!(Hot, tag),
            link = in(reg) cache.link() as u64,
            mask = in(reg) want.mask,
            value = in(reg) want.value,
            object = out(reg) object,
            list = out(reg) _,
        );
    }
    Object::from_raw(object)
}

/// Puts an object of the cache on the list if the tag meets `want` and the list has fewer than `limit`
/// objects. `false` if not.
#[inline(always)]
pub(crate) fn push_if(places: &Places, cache: Cache, want: Want, limit: u32, object: Object) -> bool {
    let done: u64;
    // SAFETY: the invariants of `Places` and `Cache`: `object` is the cache's, and free, so that its link is
    // written.
    unsafe {
        in_slot!(
            x86_64 [
                "mov {list}, qword ptr [{slot} + {list_at}]",
                "mov {count:e}, {list:e}",
                "and {count:e}, 0x1ffff",
                "dec {count:e}",
                "cmp {count:e}, {limit:e}",
                "jae 8f",
                "mov {t}, qword ptr [{slot} + {tag_at}]",
                "and {t}, {mask}",
                "cmp {t}, {value}",
                "jne 8f",
                "shr {list}, 16",
                "and {list}, -8",
                "mov qword ptr [{object} + {link}], {list}",
                "mov {list}, {object}",
                "shl {list}, 16",
                "lea {list}, [{list} + {count} + 2]",
                "mov qword ptr [{slot} + {list_at}], {list}",
            ] refused "xor {list:e}, {list:e}",
            aarch64 [
                "add {t}, {slot}, {list_at}",
                "ldar {list}, [{t}]",
                "and {count}, {list}, #0x1ffff",
                "sub {count:w}, {count:w}, #1",
                "cmp {count:w}, {limit:w}",
                "b.hs 8f",
                "ldr {t}, [{slot}, {tag_at}]",
                "and {t}, {t}, {mask}",
                "cmp {t}, {value}",
                "b.ne 8f",
                "lsr {list}, {list}, #16",
                "and {list}, {list}, #0xfffffffffffffff8",
                "str {list}, [{object}, {link}]",
                "add {list}, {count}, {object}, lsl #16",
                "add {list}, {list}, #2",
                "str {list}, [{slot}, {list_at}]",
            ] refused "mov {list}, #0",
            places,
            cache,
            list_at = const offset_of!(Hot, list),
            tag_at = const offset_of!(Hot, tag),
            link = in(reg) cache.link() as u64,
            mask = in(reg) want.mask,
            value = in(reg) want.value,
            limit = in(reg) limit,
            object = in(reg) object.addr(),
            list = out(reg) done,
            count = out(reg) _,
        );
    }
    done != 0
}

/// Takes the array's last address. `None` if the array is empty or credit is used up.
#[inline(always)]
pub(crate) fn pop(places: &Places, cache: Cache) -> Option<Object> {
    let object: u64;
    // SAFETY: the invariants of `Places` and `Cache`; an array that is not empty has its storage.
    unsafe {
        in_slot!(
            x86_64 [
                "mov {sizes}, qword ptr [{slot} + {sizes_at}]",
                "mov {object:e}, {sizes:e}",
                "test {object:e}, {object:e}",
                "jz 8f",
                "mov {t}, qword ptr [{slot} + {storage_at}]",
                "mov {object}, qword ptr [{t} + {object} * 8 + {last}]",
                "mov {t}, {slot}",
                "sub {t}, {offset}",
                "dec dword ptr [{t} + {credit_at}]",
                "js 8f",
                "dec {sizes}",
                "mov qword ptr [{slot} + {sizes_at}], {sizes}",
            ] refused "xor {object:e}, {object:e}",
            aarch64 [
                "add {t}, {slot}, {sizes_at}",
                "ldar {sizes}, [{t}]",
                "mov {object:w}, {sizes:w}",
                "cbz {object}, 8f",
                "ldr {t}, [{slot}, {storage_at}]",
                "add {t}, {t}, {object}, lsl #3",
                "ldr {object}, [{t}, {last}]",
                "sub {thread}, {slot}, {offset}",
                "ldr {t:w}, [{thread}, {credit_at}]",
                "subs {t:w}, {t:w}, #1",
                "b.mi 8f",
                "str {t:w}, [{thread}, {credit_at}]",
                "sub {sizes}, {sizes}, #1",
                "str {sizes}, [{slot}, {sizes_at}]",
            ] refused "mov {object}, #0",
            places,
            cache,
            sizes_at = const offset_of!(Hot, sizes),
            storage_at = const offset_of!(Hot, storage),
            last = const FIRST_BYTES - 8,
            credit_at = const CREDIT_AT,
            object = out(reg) object,
            sizes = out(reg) _,
        );
    }
    Object::from_raw(object)
}

/// Adds the address of an object of the cache to the array. `false` if the array is full.
#[inline(always)]
pub(crate) fn push(places: &Places, cache: Cache, object: Object) -> bool {
    let done: u64;
    // SAFETY: the invariants of `Places` and `Cache`; an array with room has its storage.
    unsafe {
        in_slot!(
            x86_64 [
                "mov {sizes}, qword ptr [{slot} + {sizes_at}]",
                "mov {t}, {sizes}",
                "shr {t}, 32",
                "cmp {sizes:e}, {t:e}",
                "jae 8f",
                "mov {t:e}, {sizes:e}",
                "mov {storage}, qword ptr [{slot} + {storage_at}]",
                "mov qword ptr [{storage} + {t} * 8 + {first}], {object}",
                "inc {sizes}",
                "mov qword ptr [{slot} + {sizes_at}], {sizes}",
            ] refused "xor {sizes:e}, {sizes:e}",
            aarch64 [
                "add {t}, {slot}, {sizes_at}",
                "ldar {sizes}, [{t}]",
                "lsr {t}, {sizes}, #32",
                "cmp {sizes:w}, {t:w}",
                "b.hs 8f",
                "ldr {storage}, [{slot}, {storage_at}]",
                "add {storage}, {storage}, {sizes:w}, uxtw #3",
                "str {object}, [{storage}, {first}]",
                "add {sizes}, {sizes}, #1",
                "str {sizes}, [{slot}, {sizes_at}]",
            ] refused "mov {sizes}, #0",
            places,
            cache,
            sizes_at = const offset_of!(Hot, sizes),
            storage_at = const offset_of!(Hot, storage),
            first = const FIRST_BYTES,
            object = in(reg) object.addr(),
            sizes = out(reg) done,
            storage = out(reg) _,
        );
    }
    done != 0
}

/// Takes the value of a word of `cpu`'s slot and stores 0. `None` if this thread runs on another CPU.
pub(crate) fn take(places: &Places, cpu: CpuId, word: &AtomicU64) -> Option<u64> {
    let (taken, here): (u64, u64);
    // SAFETY: the invariant of `Places`; `word` is a shared atomic, which the sequence reads and writes
    // whole.
    unsafe {
        sequence!(
            x86_64 [
                "mov {here}, qword ptr [{places} + {number_at}]",
                "mov {here:e}, dword ptr fs:[{here}]",
                "xor {here:e}, {cpu:e}",
                "jnz 8f",
                "mov {taken}, qword ptr [{word}]",
                "mov qword ptr [{word}], 0",
            ] refused "nop",
            aarch64 [
                "ldr {here}, [{places}, {number_at}]",
                "ldr {here:w}, [{thread}, {here}]",
                "eor {here:w}, {here:w}, {cpu:w}",
                "cbnz {here:w}, 8f",
                "ldr {taken}, [{word}]",
                "str xzr, [{word}]",
            ] refused "nop",
            places,
            cpu = in(reg) cpu.0 as u32,
            word = in(reg) word.as_ptr(),
            taken = out(reg) taken,
            here = out(reg) here,
        );
    }
    (here == 0).then_some(taken)
}
