//! `libslablab.so`: the names that C and C++ programs call. `unsafe`: addresses come from anywhere.
//!
//! Preloaded (`LD_PRELOAD=libslablab.so`) or linked before the C library, it serves every allocation of a
//! program. What each function does is what POSIX and the C standard say; where they leave a choice, glibc's
//! is taken: a request of no bytes gets an address, `realloc` to no bytes frees and answers null, alignments
//! that are no power of two are `EINVAL`.
#![expect(unsafe_code, reason = "C's interface")]

mod cplusplus;
mod info;
pub mod objects;

use libc::{EINVAL, ENOMEM, c_int, c_void, size_t};
use slablab_malloc::api;

/// More than this is refused, as everywhere: differences of addresses are signed.
const MOST: usize = isize::MAX as usize;

fn set_errno(error: c_int) {
    // SAFETY: the address is this thread's.
    unsafe { *libc::__errno_location() = error };
}

fn errno() -> c_int {
    // SAFETY: the address is this thread's.
    unsafe { *libc::__errno_location() }
}

/// What `at` says, and `ENOMEM` if it is null.
fn or_enomem(at: *mut u8) -> *mut c_void {
    if at.is_null() {
        set_errno(ENOMEM);
    }
    at.cast()
}

/// C's `malloc`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc(bytes: size_t) -> *mut c_void {
    let at = api::alloc_fast(bytes);
    if at.is_null() { malloc_rest(bytes) } else { at.cast() }
}

/// Called last: without a frame.
#[inline(never)]
extern "C" fn malloc_rest(bytes: size_t) -> *mut c_void {
    or_enomem(api::alloc_slow(bytes))
}

/// C's `free`. Leaves `errno` alone.
///
/// # Safety
/// As C says; what was not allocated ends the process with a report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(at: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { api::free(at.cast()) }
}

/// C's `calloc`: zeros, and no more than fits.
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: size_t, bytes: size_t) -> *mut c_void {
    match count.checked_mul(bytes).filter(|bytes| *bytes <= MOST) {
        Some(bytes) => or_enomem(api::alloc_zeroed(bytes, 1)),
        None => or_enomem(std::ptr::null_mut()),
    }
}

/// C's `realloc`.
///
/// # Safety
/// As C says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(at: *mut c_void, bytes: size_t) -> *mut c_void {
    if at.is_null() {
        return malloc(bytes);
    }
    if bytes == 0 {
        // SAFETY: the caller's promise.
        unsafe { free(at) };
        return std::ptr::null_mut();
    }
    if bytes > MOST {
        return or_enomem(std::ptr::null_mut());
    }
    // SAFETY: the caller's promise.
    or_enomem(unsafe { api::realloc(at.cast(), bytes, 1) })
}

/// glibc's `reallocarray`.
///
/// # Safety
/// As C says of `realloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(at: *mut c_void, count: size_t, bytes: size_t) -> *mut c_void {
    match count.checked_mul(bytes) {
        // SAFETY: the caller's promise.
        Some(bytes) => unsafe { realloc(at, bytes) },
        None => or_enomem(std::ptr::null_mut()),
    }
}

fn aligned(align: usize, bytes: usize) -> *mut u8 {
    if bytes > MOST { std::ptr::null_mut() } else { api::alloc_aligned(bytes, align) }
}

/// `memalign`: any alignment, rounded up to a power of two.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: size_t, bytes: size_t) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => or_enomem(aligned(align, bytes)),
        None => {
            set_errno(EINVAL);
            std::ptr::null_mut()
        }
    }
}

/// C11's `aligned_alloc`.
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: size_t, bytes: size_t) -> *mut c_void {
    if !align.is_power_of_two() {
        set_errno(EINVAL);
        return std::ptr::null_mut();
    }
    or_enomem(aligned(align, bytes))
}

/// POSIX's `posix_memalign`. Leaves `errno` alone if there is memory; else it is `ENOMEM` too, as glibc's is.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: size_t, bytes: size_t) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return EINVAL;
    }
    let before = errno();
    let at = aligned(align, bytes);
    if at.is_null() {
        set_errno(ENOMEM);
        return ENOMEM;
    }
    set_errno(before);
    // SAFETY: the caller's promise.
    unsafe { *out = at.cast() };
    0
}

/// `valloc`: aligned to a page.
#[unsafe(no_mangle)]
pub extern "C" fn valloc(bytes: size_t) -> *mut c_void {
    memalign(api::page_size(), bytes)
}

/// `pvalloc`: whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(bytes: size_t) -> *mut c_void {
    match bytes.max(1).checked_next_multiple_of(api::page_size()) {
        Some(bytes) => memalign(api::page_size(), bytes),
        None => or_enomem(std::ptr::null_mut()),
    }
}

/// `malloc_usable_size`.
///
/// # Safety
/// The address was allocated, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(at: *const c_void) -> size_t {
    api::usable(at.cast())
}

/// `malloc_trim`: 1 if memory was given back. `keep` is not looked at.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_keep: size_t) -> c_int {
    c_int::from(api::trim())
}

/// C23's `free_sized`. With `debug=` a size that is not the allocation's is reported, and the memory is freed
/// all the same.
///
/// # Safety
/// As C says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(at: *mut c_void, bytes: size_t) {
    // SAFETY: the caller's promise.
    unsafe { api::free_sized(at.cast(), Some(bytes), 1) }
}

/// C23's `free_aligned_sized`. With `debug=` a size or an alignment that is not the allocation's is reported,
/// and the memory is freed all the same.
///
/// # Safety
/// As C says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(at: *mut c_void, align: size_t, bytes: size_t) {
    let align = if align.is_power_of_two() { align } else { 1 };
    // SAFETY: the caller's promise; the alignment is a power of two.
    unsafe { api::free_sized(at.cast(), Some(bytes), align) }
}
