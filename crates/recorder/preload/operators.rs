//! C++'s operator new and delete. `unsafe`: they are called by C++, and jump to other functions.
//!
//! The C++ library's operators call `malloc`. Those of an allocator do not, so they are called here: by the
//! name that answers null. A request that is not served leaves by a jump to the next operator new, which
//! calls the program's handler, or throws: no frame of this library is in the way of the exception. A stack
//! that is walked meanwhile has one, so the jumps say where they keep what (`.cfi`).

use super::chains::record_alloc;
use super::events::record;
use super::next::{self, MALLOC, NEXT, OPERATORS, reserve};
use super::raw::kind;
use super::system::{self, dlsym};
use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

macro_rules! places {
    ($($place:ident = $symbol:literal;)*) => {
        $(static $place: AtomicPtr<c_void> = AtomicPtr::new(null_mut());)*

        /// The places of the next operators, by their names.
        static PLACES: &[(&AtomicPtr<c_void>, &CStr)] = &[$((&$place, $symbol),)*];
    };
}

places! {
    NEW = c"_Znwm";
    NEW_ARRAY = c"_Znam";
    NEW_NOTHROW = c"_ZnwmRKSt9nothrow_t";
    NEW_ARRAY_NOTHROW = c"_ZnamRKSt9nothrow_t";
    NEW_ALIGNED = c"_ZnwmSt11align_val_t";
    NEW_ARRAY_ALIGNED = c"_ZnamSt11align_val_t";
    NEW_ALIGNED_NOTHROW = c"_ZnwmSt11align_val_tRKSt9nothrow_t";
    NEW_ARRAY_ALIGNED_NOTHROW = c"_ZnamSt11align_val_tRKSt9nothrow_t";
}

/// Nobody can throw `bad_alloc`: no C++ library was loaded when the program started.
unsafe extern "C" fn cannot_throw() -> ! {
    // SAFETY: the function has no preconditions.
    unsafe { system::abort() }
}

/// Finds the next operators.
pub(crate) fn find() {
    for (place, name) in PLACES {
        // SAFETY: the name is a C string.
        let found = unsafe { dlsym(system::NEXT, name.as_ptr()) };
        place.store(if found.is_null() { cannot_throw as *mut c_void } else { found }, Relaxed);
    }
}

/// The next operator new; null if there is none.
pub(crate) fn next_new() -> *const c_void {
    let new = NEW.load(Relaxed);
    if new == cannot_throw as *mut c_void { null_mut() } else { new }
}

/// A value for the argument that says "do not throw"; its address is all that counts.
static NOTHROW: c_char = 0;

/// Serves `size` bytes and records them. Null: not served, or for the next operator to serve.
unsafe extern "C" fn serve(size: usize) -> *mut c_void {
    if !next::resolve() {
        return reserve::take(size, 16);
    }
    // SAFETY: any size may be asked for.
    let at = match NEXT.operators.load(Relaxed) {
        // SAFETY: any size may be asked for.
        MALLOC => unsafe { (NEXT.malloc())(size.max(1)) },
        // SAFETY: any size may be asked for.
        OPERATORS => unsafe { (NEXT.new_plain())(size, &NOTHROW) },
        _ => null_mut(),
    };
    if !at.is_null() {
        record_alloc(kind::NEW, at, size, 0);
    }
    at
}

/// [`serve`] with an alignment.
unsafe extern "C" fn serve_aligned(size: usize, align: usize) -> *mut c_void {
    if !next::resolve() {
        return reserve::take(size, align);
    }
    let at = match NEXT.operators.load(Relaxed) {
        MALLOC => match size.max(1).checked_next_multiple_of(align) {
            // SAFETY: any alignment and size may be asked for.
            Some(bytes) => unsafe { (NEXT.aligned_alloc())(align, bytes) },
            None => null_mut(),
        },
        // SAFETY: any alignment and size may be asked for.
        OPERATORS => unsafe { (NEXT.new_aligned())(size, align, &NOTHROW) },
        _ => null_mut(),
    };
    if !at.is_null() {
        record_alloc(kind::ALIGNED, at, size, align);
    }
    at
}

macro_rules! new {
    ($($name:ident = $symbol:literal: $serve:ident, $next:ident;)*) => {$(
        /// An operator new: [`serve`], else the next one in its place.
        #[unsafe(naked)]
        #[unsafe(export_name = $symbol)]
        extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi", "push rsi", "push rdx", ".cfi_adjust_cfa_offset 24",
                "call {serve}",
                "pop rdx", "pop rsi", "pop rdi", ".cfi_adjust_cfa_offset -24",
                "test rax, rax", "jz 2f", "ret",
                "2: mov rax, qword ptr [rip + {next}]", "jmp rax",
                ".cfi_endproc",
                serve = sym $serve, next = sym $next
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                ".cfi_startproc",
                "stp x29, x30, [sp, #-48]!", "stp x0, x1, [sp, #16]", "str x2, [sp, #32]",
                ".cfi_def_cfa_offset 48", ".cfi_offset w30, -40", ".cfi_offset w29, -48",
                "bl {serve}",
                "mov x9, x0", "ldp x0, x1, [sp, #16]", "ldr x2, [sp, #32]", "ldp x29, x30, [sp], #48",
                ".cfi_def_cfa_offset 0", ".cfi_restore w30", ".cfi_restore w29",
                "cbz x9, 2f", "mov x0, x9", "ret",
                "2: adrp x9, {next}", "ldr x9, [x9, :lo12:{next}]", "br x9",
                ".cfi_endproc",
                serve = sym $serve, next = sym $next
            );
        }
    )*};
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
new! {
    new = "_Znwm": serve, NEW;
    new_array = "_Znam": serve, NEW_ARRAY;
    new_nothrow = "_ZnwmRKSt9nothrow_t": serve, NEW_NOTHROW;
    new_array_nothrow = "_ZnamRKSt9nothrow_t": serve, NEW_ARRAY_NOTHROW;
    new_aligned = "_ZnwmSt11align_val_t": serve_aligned, NEW_ALIGNED;
    new_array_aligned = "_ZnamSt11align_val_t": serve_aligned, NEW_ARRAY_ALIGNED;
    new_aligned_nothrow = "_ZnwmSt11align_val_tRKSt9nothrow_t": serve_aligned, NEW_ALIGNED_NOTHROW;
    new_array_aligned_nothrow = "_ZnamSt11align_val_tRKSt9nothrow_t": serve_aligned, NEW_ARRAY_ALIGNED_NOTHROW;
}

/// Frees a block of an operator new.
unsafe extern "C" fn end(at: *mut c_void, align: usize) {
    if reserve::holds(at) || !next::resolve() {
        return;
    }
    let operators = NEXT.operators.load(Relaxed);
    if matches!(operators, MALLOC | OPERATORS) {
        record(kind::DELETE, at, 0, 0);
    }
    // SAFETY: the caller's block, of the operator new that the same rule chose.
    unsafe {
        match (operators, align) {
            (MALLOC, _) => (NEXT.free())(at),
            (_, 0) => (NEXT.delete_plain())(at),
            _ => (NEXT.delete_aligned())(at, align),
        }
    }
}

macro_rules! plain {
    ($($name:ident = $symbol:literal($($more:ident: $type:ty),*) $align:expr;)*) => {$(
        /// An operator delete.
        ///
        /// # Safety
        /// As in C++.
        #[unsafe(export_name = $symbol)]
        pub(crate) unsafe extern "C" fn $name(at: *mut c_void $(, $more: $type)*) {
            $(let _ = $more;)*
            // SAFETY: the caller's block.
            unsafe { end(at, $align) }
        }
    )*};
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
plain! {
    delete = "_ZdlPv"() 0;
    delete_array = "_ZdaPv"() 0;
    delete_sized = "_ZdlPvm"(size: usize) 0;
    delete_array_sized = "_ZdaPvm"(size: usize) 0;
    delete_nothrow = "_ZdlPvRKSt9nothrow_t"(nothrow: *const c_char) 0;
    delete_array_nothrow = "_ZdaPvRKSt9nothrow_t"(nothrow: *const c_char) 0;
    delete_aligned = "_ZdlPvSt11align_val_t"(align: usize) align;
    delete_array_aligned = "_ZdaPvSt11align_val_t"(align: usize) align;
    delete_sized_aligned = "_ZdlPvmSt11align_val_t"(size: usize, align: usize) align;
    delete_array_sized_aligned = "_ZdaPvmSt11align_val_t"(size: usize, align: usize) align;
}
