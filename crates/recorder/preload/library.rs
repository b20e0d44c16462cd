//! `libslablab-record.so`: preloaded, it writes down every allocation call of a process and passes it on.
//! `unsafe`: it is called by C, calls the next allocator, and writes to mapped memory.
//!
//! ```text
//! library     the names that programs call
//!   operators   C++'s operator new and delete
//!   next        the functions of the allocator behind this library; memory until they are known
//!   chains      an allocation, and of some the call chain
//!     events      a thread's window on its chunk of the process's file
//!       memory      how much memory the process has, and the mappings of its code
//!     process     state that a forked child finds empty; threads and their windows
//!       file        the process's file: its head, its chunks
//!         folder      the recording's folders, and whether its recorder lives
//!           system      the C library's functions
//! ```
//!
//! **Order.** An event of an allocation has a time after the allocator answered, an event of a free one
//! before the allocator is called. So events in the order of time are possible: no address is allocated twice
//! without a free between, whatever threads do.
//!
//! **Safety.** The library allocates nothing. A thread reserves an event by one atomic addition, so a signal
//! handler that allocates gets the next one. A new chunk is taken with signals blocked. All state is in
//! memory that the kernel hands to a forked child as zeros: the child opens a file of its own at its first
//! call, and finds no lock held.

#![cfg_attr(not(clippy), no_std)]
#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]

mod chains;
mod events;
mod file;
mod folder;
mod memory;
mod next;
mod operators;
mod process;
#[path = "../src/raw.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod raw;
mod system;

use chains::record_alloc;
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use events::record;
use next::{NEXT, Next, reserve};
use raw::kind;

/// The C library's numbers of errors.
const EINVAL: c_int = 22;
const ENOMEM: c_int = 12;

#[cfg(not(clippy))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: the function has no preconditions.
    unsafe { system::abort() }
}

/// Rust's own library, which is built for programs that unwind, names this function. Nothing unwinds here.
#[cfg(not(clippy))]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Finds the allocator before the program's own threads start.
extern "C" fn start() {
    next::resolve();
    chains::prepare();
}

/// How much memory the process has at its end.
extern "C" fn finish() {
    events::record_resident();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static FINISH: extern "C" fn() = finish;

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// C's `malloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    if !next::resolve() {
        return reserve::take(size, 16);
    }
    // SAFETY: any size may be asked for.
    let at = unsafe { (NEXT.malloc())(size) };
    record_alloc(kind::MALLOC, at, size, 0);
    at
}

/// C's `calloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    if !next::resolve() {
        // The reserve is zeros, and is handed out once.
        return count.checked_mul(size).map_or(null_mut(), |bytes| reserve::take(bytes, 16));
    }
    // SAFETY: any numbers may be asked for.
    let at = unsafe { (NEXT.calloc())(count, size) };
    record_alloc(kind::CALLOC, at, count.saturating_mul(size), 0);
    at
}

/// C's `free`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free(at: *mut c_void) {
    if reserve::holds(at) || !next::resolve() {
        return;
    }
    record(kind::FREE, at, 0, 0);
    // SAFETY: the caller's block.
    unsafe { (NEXT.free())(at) }
}

/// C's `realloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if reserve::holds(old) || !next::resolve() {
        // SAFETY: a block of the reserve, or null.
        return unsafe { reserve::moved(old, malloc(size), size) };
    }
    if !old.is_null() {
        record(kind::REALLOC_BEGIN, old, 0, 0);
    }
    // SAFETY: the caller's block.
    let at = unsafe { (NEXT.realloc())(old, size) };
    record_alloc(kind::REALLOC_DONE, at, size, 0);
    at
}

/// The C library's `reallocarray`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's block.
        Some(bytes) => unsafe { realloc(old, bytes) },
        None => {
            system::set_errno(ENOMEM);
            null_mut()
        }
    }
}

/// POSIX's `posix_memalign`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !next::resolve() {
        return EINVAL;
    }
    // SAFETY: the caller's place for the address.
    let answer = unsafe { (NEXT.posix_memalign())(out, align, size) };
    // SAFETY: as above; the place was written if the call succeeded.
    let at = if answer == 0 { unsafe { *out } } else { null_mut() };
    record_alloc(kind::ALIGNED, at, size, align);
    answer
}

/// C's `aligned_alloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    aligned(Next::aligned_alloc, align, size)
}

/// The C library's `memalign`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    aligned(Next::memalign, align, size)
}

/// The C library's `valloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    aligned(Next::memalign, system::page_bytes(), size)
}

/// The C library's `pvalloc`.
///
/// # Safety
/// As in C.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let page = system::page_bytes();
    aligned(Next::memalign, page, size.checked_next_multiple_of(page).unwrap_or(usize::MAX))
}

/// An aligned request to a function of the next allocator.
fn aligned(of: fn(&Next) -> next::Aligned, align: usize, size: usize) -> *mut c_void {
    if !next::resolve() {
        return reserve::take(size, align);
    }
    // SAFETY: any alignment and size may be asked for.
    let at = unsafe { of(&NEXT)(align, size) };
    record_alloc(kind::ALIGNED, at, size, align);
    at
}
