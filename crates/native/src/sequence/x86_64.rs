//! The sequences on x86-64. `unsafe`: assembler.

use super::Hot;
use crate::area::{AREA_BYTES, CREDIT_AT, SLOTS};
use crate::per_cpu::Places;
use crate::region::Cache;
use slablab_platform::{CpuId, Want};
use std::arch::asm;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

/// A sequence: `body` from its start to its end. Label 8 is where it refuses, with `refused`. The kernel
/// sends an aborted thread to label 5; in front of it is the signature that glibc registered the areas with.
macro_rules! sequence {
    ([$($body:expr,)+], refused $refused:literal, $places:expr, $($operands:tt)+) => {
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
            $($body,)+
            "4:",
            ".pushsection .text.slablab_sequence, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "5: jmp 2b",
            concat!("8: ", $refused),
            "jmp 4b",
            ".popsection",
            places = in(reg) $places,
            sequence_at = const Places::SEQUENCE_AT,
            number_at = const Places::NUMBER_AT,
            slot = out(reg) _,
            t = out(reg) _,
            $($operands)+
            options(nostack),
        )
    };
}

/// A sequence that first finds the slot of this CPU.
macro_rules! in_slot {
    ([$($body:expr,)+], refused $refused:literal, $places:expr, $cache:expr, $($operands:tt)+) => {
        sequence!(
            [
                "mov {slot}, qword ptr [{places} + {number_at}]",
                "mov {slot:e}, dword ptr fs:[{slot}]",
                "cmp {slot:e}, {slots}",
                "jae 8f",
                "shl {slot}, {area_shift}",
                "add {slot}, qword ptr [{places} + {areas_at}]",
                "add {slot}, {offset}",
                $($body,)+
            ],
            refused $refused,
            $places,
            areas_at = const Places::AREAS_AT,
            slots = const SLOTS,
            area_shift = const AREA_BYTES.trailing_zeros(),
            offset = in(reg) $cache.offset() as u64,
            $($operands)+
        )
    };
}

/// Takes the list's head if the tag meets `want`. 0 if the tag does not, or if the list is empty.
#[inline(always)]
pub(crate) fn pop_if(places: &Places, cache: Cache, want: Want) -> u64 {
    let object: u64;
    // SAFETY: the invariants of `Places` and `Cache`; an object on a list is free, so its link is the list's.
    unsafe {
        in_slot!(
            [
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
            ],
            refused "xor {object:e}, {object:e}",
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
    object
}

/// Puts an object on the list if the tag meets `want` and the list has fewer than `limit` objects. `false` if
/// not.
#[inline(always)]
pub(crate) fn push_if(places: &Places, cache: Cache, want: Want, limit: u32, object: u64) -> bool {
    let done: u64;
    // SAFETY: the invariants of `Places` and `Cache`; `object` is one that an engine frees
    // (`PerCpu::push_if`).
    unsafe {
        in_slot!(
            [
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
            ],
            refused "xor {list:e}, {list:e}",
            places,
            cache,
            list_at = const offset_of!(Hot, list),
            tag_at = const offset_of!(Hot, tag),
            link = in(reg) cache.link() as u64,
            mask = in(reg) want.mask,
            value = in(reg) want.value,
            limit = in(reg) limit,
            object = in(reg) object,
            list = out(reg) done,
            count = out(reg) _,
        );
    }
    done != 0
}

/// Takes the array's last address. 0 if the array is empty or credit is used up.
#[inline(always)]
pub(crate) fn pop(places: &Places, cache: Cache) -> u64 {
    let object: u64;
    // SAFETY: the invariants of `Places` and `Cache`; an array that is not empty has its storage.
    unsafe {
        in_slot!(
            [
                "mov {sizes}, qword ptr [{slot} + {sizes_at}]",
                "mov {object:e}, {sizes:e}",
                "test {object:e}, {object:e}",
                "jz 8f",
                "mov {t}, qword ptr [{slot} + {storage_at}]",
                "mov {object}, qword ptr [{t} + {object} * 8 + {first} - 8]",
                "mov {t}, {slot}",
                "sub {t}, {offset}",
                "dec dword ptr [{t} + {credit_at}]",
                "js 8f",
                "dec {sizes}",
                "mov qword ptr [{slot} + {sizes_at}], {sizes}",
            ],
            refused "xor {object:e}, {object:e}",
            places,
            cache,
            sizes_at = const offset_of!(Hot, sizes),
            storage_at = const offset_of!(Hot, storage),
            first = const super::FIRST_BYTES,
            credit_at = const CREDIT_AT,
            object = out(reg) object,
            sizes = out(reg) _,
        );
    }
    object
}

/// Adds an address to the array. `false` if the array is full.
#[inline(always)]
pub(crate) fn push(places: &Places, cache: Cache, object: u64) -> bool {
    let done: u64;
    // SAFETY: the invariants of `Places` and `Cache`; an array with room has its storage.
    unsafe {
        in_slot!(
            [
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
            ],
            refused "xor {sizes:e}, {sizes:e}",
            places,
            cache,
            sizes_at = const offset_of!(Hot, sizes),
            storage_at = const offset_of!(Hot, storage),
            first = const super::FIRST_BYTES,
            object = in(reg) object,
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
            [
                "mov {here}, qword ptr [{places} + {number_at}]",
                "mov {here:e}, dword ptr fs:[{here}]",
                "xor {here:e}, {cpu:e}",
                "jnz 8f",
                "mov {taken}, qword ptr [{word}]",
                "mov qword ptr [{word}], 0",
            ],
            refused "nop",
            places,
            cpu = in(reg) cpu.0 as u32,
            word = in(reg) word.as_ptr(),
            taken = out(reg) taken,
            here = out(reg) here,
        );
    }
    (here == 0).then_some(taken)
}
