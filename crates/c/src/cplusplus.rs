//! C++'s `operator new` and `operator delete`, by the names of the Itanium ABI. `unsafe`: addresses come from anywhere.
//!
//! A throwing form without memory calls the program's new-handler as long as there is one, then throws `std::bad_alloc`
//! through the C++ library of the program; a program without one cannot have called it.

#![allow(non_snake_case, reason = "the ABI's names")]

use libc::{c_void, size_t};
use slablab_malloc::api;

type Handler = Option<extern "C-unwind" fn()>;

/// A function of the program's C++ library.
fn symbol(name: &std::ffi::CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with 0.
    let at = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!at.is_null()).then_some(at)
}

fn new_handler() -> Handler {
    let get = symbol(c"_ZSt15get_new_handlerv")?;
    // SAFETY: the symbol is `std::new_handler std::get_new_handler() noexcept`.
    let get: extern "C" fn() -> Handler = unsafe { std::mem::transmute(get) };
    get()
}

fn throw_bad_alloc() -> ! {
    if let Some(throw) = symbol(c"_ZSt17__throw_bad_allocv") {
        // SAFETY: the symbol is `void std::__throw_bad_alloc()`.
        let throw: extern "C-unwind" fn() -> ! = unsafe { std::mem::transmute(throw) };
        throw()
    }
    // SAFETY: no memory is involved.
    unsafe { libc::abort() }
}

#[inline]
fn new(bytes: usize, align: usize) -> *mut c_void {
    let at = attempt(bytes, align);
    if at.is_null() { new_slow(bytes, align) } else { at }
}

#[inline]
fn attempt(bytes: usize, align: usize) -> *mut c_void {
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

macro_rules! operators {
    ($($(#[$doc:meta])* $kind:ident $name:ident($($argument:ident: $type:ty),*) $($align:ident)?;)*) => {
        $(operators!(@$kind $(#[$doc])* $name($($argument: $type),*) $($align)?);)*
    };
    (@new $(#[$doc:meta])* $name:ident($bytes:ident: $t:ty)) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) extern "C-unwind" fn $name($bytes: $t) -> *mut c_void { new($bytes, 1) }
    };
    (@new $(#[$doc:meta])* $name:ident($bytes:ident: $t:ty, $align:ident: $a:ty)) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) extern "C-unwind" fn $name($bytes: $t, $align: $a) -> *mut c_void { new($bytes, $align) }
    };
    (@nothrow $(#[$doc:meta])* $name:ident($bytes:ident: $t:ty, $tag:ident: $g:ty)) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($bytes: $t, _: $g) -> *mut c_void { attempt($bytes, 1) }
    };
    (@nothrow $(#[$doc:meta])* $name:ident($bytes:ident: $t:ty, $align:ident: $a:ty, $tag:ident: $g:ty)) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($bytes: $t, $align: $a, _: $g) -> *mut c_void { attempt($bytes, $align) }
    };
    (@delete $(#[$doc:meta])* $name:ident($at:ident: $t:ty $(, $rest:ident: $r:ty)*)) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As C++ says.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($at: $t $(, _: $r)*) {
            // SAFETY: the caller's promise.
            unsafe { api::free($at.cast()) }
        }
    };
}

operators! {
    /// `operator new(size_t)`.
    new _Znwm(bytes: size_t);
    /// `operator new[](size_t)`.
    new _Znam(bytes: size_t);
    /// `operator new(size_t, align_val_t)`.
    new _ZnwmSt11align_val_t(bytes: size_t, align: size_t);
    /// `operator new[](size_t, align_val_t)`.
    new _ZnamSt11align_val_t(bytes: size_t, align: size_t);
    /// `operator new(size_t, nothrow_t)`.
    nothrow _ZnwmRKSt9nothrow_t(bytes: size_t, tag: *const c_void);
    /// `operator new[](size_t, nothrow_t)`.
    nothrow _ZnamRKSt9nothrow_t(bytes: size_t, tag: *const c_void);
    /// `operator new(size_t, align_val_t, nothrow_t)`.
    nothrow _ZnwmSt11align_val_tRKSt9nothrow_t(bytes: size_t, align: size_t, tag: *const c_void);
    /// `operator new[](size_t, align_val_t, nothrow_t)`.
    nothrow _ZnamSt11align_val_tRKSt9nothrow_t(bytes: size_t, align: size_t, tag: *const c_void);
    /// `operator delete(void*)`.
    delete _ZdlPv(at: *mut c_void);
    /// `operator delete[](void*)`.
    delete _ZdaPv(at: *mut c_void);
    /// `operator delete(void*, size_t)`.
    delete _ZdlPvm(at: *mut c_void, bytes: size_t);
    /// `operator delete[](void*, size_t)`.
    delete _ZdaPvm(at: *mut c_void, bytes: size_t);
    /// `operator delete(void*, align_val_t)`.
    delete _ZdlPvSt11align_val_t(at: *mut c_void, align: size_t);
    /// `operator delete[](void*, align_val_t)`.
    delete _ZdaPvSt11align_val_t(at: *mut c_void, align: size_t);
    /// `operator delete(void*, size_t, align_val_t)`.
    delete _ZdlPvmSt11align_val_t(at: *mut c_void, bytes: size_t, align: size_t);
    /// `operator delete[](void*, size_t, align_val_t)`.
    delete _ZdaPvmSt11align_val_t(at: *mut c_void, bytes: size_t, align: size_t);
    /// `operator delete(void*, nothrow_t)`.
    delete _ZdlPvRKSt9nothrow_t(at: *mut c_void, tag: *const c_void);
    /// `operator delete[](void*, nothrow_t)`.
    delete _ZdaPvRKSt9nothrow_t(at: *mut c_void, tag: *const c_void);
    /// `operator delete(void*, align_val_t, nothrow_t)`.
    delete _ZdlPvSt11align_val_tRKSt9nothrow_t(at: *mut c_void, align: size_t, tag: *const c_void);
    /// `operator delete[](void*, align_val_t, nothrow_t)`.
    delete _ZdaPvSt11align_val_tRKSt9nothrow_t(at: *mut c_void, align: size_t, tag: *const c_void);
}
