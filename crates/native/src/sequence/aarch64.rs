//! The sequences on aarch64. `unsafe`: assembler.
//!
//! The first word that the conditions read is loaded with acquire: a thread on another CPU that gives a slot
//! back stores that word last, with release.

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
            "adrp {t}, 7b",
            "add {t}, {t}, :lo12:7b",
            "mrs {thread}, tpidr_el0",
            "ldr {slot}, [{places}, {sequence_at}]",
            "str {t}, [{thread}, {slot}]",
            "3:",
            $($body,)+
            "4:",
            "b 6f",
            concat!("8: ", $refused),
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
        )
    };
}

/// A sequence that first finds the slot of this CPU.
macro_rules! in_slot {
    ([$($body:expr,)+], refused $refused:literal, $places:expr, $cache:expr, $($operands:tt)+) => {
        sequence!(
            [
                "ldr {slot}, [{places}, {number_at}]",
                "ldr {slot:w}, [{thread}, {slot}]",
                "cmp {slot:w}, {slots}",
                "b.hs 8f",
                "ldr {t}, [{places}, {areas_at}]",
                "add {slot}, {t}, {slot}, lsl {area_shift}",
                "add {slot}, {slot}, {offset}",
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
            ],
            refused "mov {object}, #0",
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
            ],
            refused "mov {list}, #0",
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
                "add {t}, {slot}, {sizes_at}",
                "ldar {sizes}, [{t}]",
                "mov {object:w}, {sizes:w}",
                "cbz {object}, 8f",
                "ldr {t}, [{slot}, {storage_at}]",
                "add {t}, {t}, {object}, lsl #3",
                "ldr {object}, [{t}, {last}]",
                "sub {area}, {slot}, {offset}",
                "ldr {t:w}, [{area}, {credit_at}]",
                "subs {t:w}, {t:w}, #1",
                "b.mi 8f",
                "str {t:w}, [{area}, {credit_at}]",
                "sub {sizes}, {sizes}, #1",
                "str {sizes}, [{slot}, {sizes_at}]",
            ],
            refused "mov {object}, #0",
            places,
            cache,
            sizes_at = const offset_of!(Hot, sizes),
            storage_at = const offset_of!(Hot, storage),
            last = const super::FIRST_BYTES - 8,
            credit_at = const CREDIT_AT,
            area = out(reg) _,
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
                "add {t}, {slot}, {sizes_at}",
                "ldar {sizes}, [{t}]",
                "lsr {t}, {sizes}, #32",
                "cmp {sizes:w}, {t:w}",
                "b.hs 8f",
                "ldr {t}, [{slot}, {storage_at}]",
                "add {t}, {t}, {sizes:w}, uxtw #3",
                "str {object}, [{t}, {first}]",
                "add {sizes}, {sizes}, #1",
                "str {sizes}, [{slot}, {sizes_at}]",
            ],
            refused "mov {sizes}, #0",
            places,
            cache,
            sizes_at = const offset_of!(Hot, sizes),
            storage_at = const offset_of!(Hot, storage),
            first = const super::FIRST_BYTES,
            object = in(reg) object,
            sizes = out(reg) done,
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
                "ldr {here}, [{places}, {number_at}]",
                "ldr {here:w}, [{thread}, {here}]",
                "eor {here:w}, {here:w}, {cpu:w}",
                "cbnz {here:w}, 8f",
                "ldr {taken}, [{word}]",
                "str xzr, [{word}]",
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
