//! C++'s `operator new` and `operator delete`, by the names of the Itanium ABI.
//!
//! A throwing form without memory calls the program's new-handler as long as there is one, then throws
//! `std::bad_alloc` through the C++ library of the program; a program without one cannot have called it.

#![allow(non_snake_case, reason = "the ABI's names")]

use crate::edge::{Given, new_handler, throw_bad_alloc};
use libc::{c_void, size_t};
use slablab_malloc::api;

#[inline(always)]
fn new(bytes: usize, align: usize) -> *mut c_void {
    let at = fast(bytes, align);
    if at.is_null() { new_rest(bytes, align) } else { at }
}

/// The thread's array: without a call, so a form that ends with a slower way needs no frame. Null for a
/// request that needs one.
#[inline(always)]
fn fast(bytes: usize, align: usize) -> *mut c_void {
    if align == 1 { api::alloc_fast(bytes).cast() } else { fast_aligned(bytes, align) }
}

#[inline(always)]
fn fast_aligned(bytes: usize, align: usize) -> *mut c_void {
    let at =
        if align.is_power_of_two() { api::alloc_aligned_fast(bytes, align) } else { std::ptr::null_mut() };
    at.cast()
}

#[inline(never)]
extern "C-unwind" fn new_rest(bytes: usize, align: usize) -> *mut c_void {
    let at = attempt(bytes, align);
    if at.is_null() { new_slow(bytes, align) } else { at }
}

#[inline(always)]
fn nothrow(bytes: usize, align: usize) -> *mut c_void {
    let at = fast(bytes, align);
    if at.is_null() { attempt(bytes, align) } else { at }
}

#[inline(never)]
extern "C" fn attempt(bytes: usize, align: usize) -> *mut c_void {
    if bytes > isize::MAX as usize { std::ptr::null_mut() } else { api::alloc_aligned(bytes, align).cast() }
}

#[cold]
#[inline(never)]
fn new_slow(bytes: usize, align: usize) -> *mut c_void {
    loop {
        match new_handler() {
            Some(handler) => handler(),
            None => throw_bad_alloc(),
        }
        let at = attempt(bytes, align);
        if !at.is_null() {
            return at;
        }
    }
}

/// Throwing forms of `operator new`: a name, its arguments, the bytes and the alignment.
macro_rules! new {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $bytes:expr, $align:expr;)*) => {
        exports! { "C-unwind": $($(#[$doc])* fn $name($($argument: $type),*) -> *mut c_void {
            new($bytes, $align)
        })* }
    };
}

/// Forms of `operator new` that answer null without memory.
macro_rules! nothrow {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $bytes:expr, $align:expr;)*) => {
        exports! { "C": $($(#[$doc])* fn $name($($argument: $type,)* _tag: *const c_void) -> *mut c_void {
            nothrow($bytes, $align)
        })* }
    };
}

/// Forms of `operator delete`: a name, its arguments after the address, the bytes if the form says them, the
/// alignment.
macro_rules! delete {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $bytes:expr, $align:expr;)*) => {
        exports! { "C": $($(#[$doc])* fn $name(at: Given $(, $argument: $type)*) {
            at.free_sized($bytes, $align);
        })* }
    };
}

new! {
    /// `operator new(size_t)`.
    _Znwm(bytes: size_t) = bytes, 1;
    /// `operator new[](size_t)`.
    _Znam(bytes: size_t) = bytes, 1;
    /// `operator new(size_t, align_val_t)`.
    _ZnwmSt11align_val_t(bytes: size_t, align: size_t) = bytes, align;
    /// `operator new[](size_t, align_val_t)`.
    _ZnamSt11align_val_t(bytes: size_t, align: size_t) = bytes, align;
}

nothrow! {
    /// `operator new(size_t, nothrow_t)`.
    _ZnwmRKSt9nothrow_t(bytes: size_t) = bytes, 1;
    /// `operator new[](size_t, nothrow_t)`.
    _ZnamRKSt9nothrow_t(bytes: size_t) = bytes, 1;
    /// `operator new(size_t, align_val_t, nothrow_t)`.
    _ZnwmSt11align_val_tRKSt9nothrow_t(bytes: size_t, align: size_t) = bytes, align;
    /// `operator new[](size_t, align_val_t, nothrow_t)`.
    _ZnamSt11align_val_tRKSt9nothrow_t(bytes: size_t, align: size_t) = bytes, align;
}

delete! {
    /// `operator delete(void*)`.
    _ZdlPv() = None, 1;
    /// `operator delete[](void*)`.
    _ZdaPv() = None, 1;
    /// `operator delete(void*, size_t)`.
    _ZdlPvm(bytes: size_t) = Some(bytes), 1;
    /// `operator delete[](void*, size_t)`.
    _ZdaPvm(bytes: size_t) = Some(bytes), 1;
    /// `operator delete(void*, align_val_t)`.
    _ZdlPvSt11align_val_t(align: size_t) = None, align;
    /// `operator delete[](void*, align_val_t)`.
    _ZdaPvSt11align_val_t(align: size_t) = None, align;
    /// `operator delete(void*, size_t, align_val_t)`.
    _ZdlPvmSt11align_val_t(bytes: size_t, align: size_t) = Some(bytes), align;
    /// `operator delete[](void*, size_t, align_val_t)`.
    _ZdaPvmSt11align_val_t(bytes: size_t, align: size_t) = Some(bytes), align;
    /// `operator delete(void*, nothrow_t)`.
    _ZdlPvRKSt9nothrow_t(_tag: *const c_void) = None, 1;
    /// `operator delete[](void*, nothrow_t)`.
    _ZdaPvRKSt9nothrow_t(_tag: *const c_void) = None, 1;
    /// `operator delete(void*, align_val_t, nothrow_t)`.
    _ZdlPvSt11align_val_tRKSt9nothrow_t(align: size_t, _tag: *const c_void) = None, align;
    /// `operator delete[](void*, align_val_t, nothrow_t)`.
    _ZdaPvSt11align_val_tRKSt9nothrow_t(align: size_t, _tag: *const c_void) = None, align;
}
