//! The fast paths of malloc and free, each a function of its own whose machine code can be read. `unsafe`:
//! frees by address.
//!
//! ```text
//! cargo test -p slablab-check --test fastpath               reads the machine code: steps, calls, panics
//! cargo run --release -p slablab-malloc --example fastpath  runs each path
//! ```
#![expect(unsafe_code, reason = "frees by address")]

use slablab_malloc::{Given, api};
use std::hint::black_box;

#[inline(never)]
fn malloc_any(bytes: usize) -> *mut u8 {
    api::alloc(bytes)
}

#[inline(never)]
fn malloc_64() -> *mut u8 {
    api::alloc(64)
}

#[inline(never)]
fn malloc_4096() -> *mut u8 {
    api::alloc(4096)
}

/// # Safety
/// As [`Given::new`].
#[inline(never)]
unsafe fn free_any(at: *mut u8) {
    // SAFETY: the section Safety above: the caller gives `at` up.
    api::free(unsafe { Given::new(at) })
}

/// # Safety
/// As [`Given::new`].
#[inline(never)]
unsafe fn realloc_same(at: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the section Safety above: the caller gives `at` up.
    api::realloc(unsafe { Given::new(at) }, bytes, 1)
}

fn main() {
    for _ in 0..1000 {
        for at in [malloc_any(black_box(100)), malloc_64(), malloc_4096()] {
            assert!(!at.is_null(), "out of memory");
            // SAFETY: allocated just now.
            unsafe { free_any(realloc_same(at, black_box(60))) };
        }
    }
}
