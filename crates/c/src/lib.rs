//! `libslablab.so`: the names that C and C++ programs call.
//!
//! Preloaded (`LD_PRELOAD=libslablab.so`) or linked before the C library, it serves every allocation of a
//! program. What each function does is what POSIX and the C standard say; where they leave a choice, glibc's
//! is taken: a request of no bytes gets an address, `realloc` to no bytes frees and answers null, alignments
//! that are no power of two are `EINVAL`.

use edge::{Given, MOST, Out, or_enomem, set_errno};
use libc::{EINVAL, ENOMEM, c_int, c_void, size_t};
use slablab_malloc::api;

#[expect(unsafe_code, reason = "what C says becomes what Rust asks for")]
#[macro_use]
mod edge;
mod cplusplus;
pub mod heaps;
mod info;
pub mod objects;

/// Called last: without a frame.
#[inline(never)]
extern "C" fn malloc_rest(bytes: size_t) -> *mut c_void {
    or_enomem(api::alloc_slow(bytes))
}

/// `align` is a power of two.
#[inline(always)]
fn aligned(align: usize, bytes: usize) -> *mut c_void {
    let at = api::alloc_aligned_fast(bytes, align);
    if at.is_null() { aligned_rest(align, bytes) } else { at.cast() }
}

/// Called last: without a frame.
#[inline(never)]
extern "C" fn aligned_rest(align: usize, bytes: usize) -> *mut c_void {
    or_enomem(if bytes > MOST { std::ptr::null_mut() } else { api::alloc_aligned_slow(bytes, align) })
}

/// Called last: without a frame.
#[cold]
#[inline(never)]
extern "C" fn invalid() -> *mut c_void {
    set_errno(EINVAL);
    std::ptr::null_mut()
}

exports! { "C":
    /// C's `malloc`.
    fn malloc(bytes: size_t) -> *mut c_void {
        let at = api::alloc_fast(bytes);
        if at.is_null() { malloc_rest(bytes) } else { at.cast() }
    }

    /// C's `free`. Leaves `errno` alone.
    fn free(at: Given) {
        at.free();
    }

    /// C's `calloc`: zeros, and no more than fits.
    fn calloc(count: size_t, bytes: size_t) -> *mut c_void {
        match count.checked_mul(bytes).filter(|bytes| *bytes <= MOST) {
            Some(bytes) => or_enomem(api::alloc_zeroed(bytes, 1)),
            None => or_enomem(std::ptr::null_mut()),
        }
    }

    /// C's `realloc`.
    fn realloc(at: Given, bytes: size_t) -> *mut c_void {
        if at.is_null() {
            return malloc(bytes);
        }
        if bytes == 0 {
            at.free();
            return std::ptr::null_mut();
        }
        if bytes > MOST {
            return or_enomem(std::ptr::null_mut());
        }
        or_enomem(at.realloc(bytes))
    }

    /// glibc's `reallocarray`.
    fn reallocarray(at: Given, count: size_t, bytes: size_t) -> *mut c_void {
        match count.checked_mul(bytes) {
            Some(bytes) => realloc(at, bytes),
            None => or_enomem(std::ptr::null_mut()),
        }
    }

    /// `memalign`: any alignment, rounded up to a power of two.
    fn memalign(align: size_t, bytes: size_t) -> *mut c_void {
        match align.checked_next_power_of_two() {
            Some(align) => aligned(align, bytes),
            None => invalid(),
        }
    }

    /// C11's `aligned_alloc`.
    fn aligned_alloc(align: size_t, bytes: size_t) -> *mut c_void {
        if align.is_power_of_two() { aligned(align, bytes) } else { invalid() }
    }

    /// POSIX's `posix_memalign`. Leaves `errno` alone if there is memory; else it is `ENOMEM` too, as glibc's
    /// is.
    fn posix_memalign(out: Out<*mut c_void>, align: size_t, bytes: size_t) -> c_int {
        if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
            return EINVAL;
        }
        let at = aligned(align, bytes);
        if at.is_null() {
            return ENOMEM;
        }
        out.put(at);
        0
    }

    /// `valloc`: aligned to a page.
    fn valloc(bytes: size_t) -> *mut c_void {
        memalign(api::page_size(), bytes)
    }

    /// `pvalloc`: whole pages.
    fn pvalloc(bytes: size_t) -> *mut c_void {
        match bytes.max(1).checked_next_multiple_of(api::page_size()) {
            Some(bytes) => memalign(api::page_size(), bytes),
            None => or_enomem(std::ptr::null_mut()),
        }
    }

    /// `malloc_usable_size`.
    fn malloc_usable_size(at: *const c_void) -> size_t {
        api::usable(at.cast())
    }

    /// `malloc_trim`: 1 if memory was given back. `keep` is not looked at.
    fn malloc_trim(_keep: size_t) -> c_int {
        c_int::from(api::purge().given_back > 0)
    }

    /// C23's `free_sized`. With `debug=` a size that is not the allocation's is reported, and the memory is
    /// freed all the same.
    fn free_sized(at: Given, bytes: size_t) {
        at.free_sized(Some(bytes), 1);
    }

    /// C23's `free_aligned_sized`. With `debug=` a size or an alignment that is not the allocation's is
    /// reported, and the memory is freed all the same.
    fn free_aligned_sized(at: Given, align: size_t, bytes: size_t) {
        at.free_sized(Some(bytes), align);
    }
}
