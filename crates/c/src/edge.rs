//! The edge to C: how functions are exported, and the pointers that C passes as types, each with what C says
//! of it. `unsafe`: here what C says becomes what Rust asks for.

use libc::{c_int, c_void, size_t};
use slablab_malloc::{self as malloc, api};
use std::cell::Cell;

/// Defines functions under names that C programs call.
///
/// SAFETY of `no_mangle`: each name is one that C, C++'s ABI, POSIX or glibc gives to a function with these
/// arguments and this result. The library is there to define it in the C library's place, and no crate in it
/// defines the name twice.
macro_rules! exports {
    ($abi:literal: $($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?
        $body:block)*) => {
        $($(#[$meta])*
        #[unsafe(no_mangle)]
        pub(crate) extern $abi fn $name($($argument: $type),*) $(-> $result)? $body)*
    };
}

// SAFETY: glibc's signature, a reference in place of the pointer: this thread's word, for as long as the
// thread runs. A `Cell` stays in its thread.
unsafe extern "C" {
    safe fn __errno_location() -> &'static Cell<c_int>;
}

pub(crate) fn set_errno(error: c_int) {
    __errno_location().set(error);
}

pub(crate) fn errno() -> c_int {
    __errno_location().get()
}

/// An address that the program hands over.
///
/// Invariant: only C and C++ make one, as an argument of a function here. Their standards say that it is null
/// or was allocated, and that the program does not use the memory any more, nor while `realloc` runs. Any
/// address is looked up and checked; it is this use of the memory that no check can find.
#[repr(transparent)]
pub(crate) struct Given(*mut c_void);

impl Given {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The address, given up to the allocator.
    #[inline(always)]
    fn give_up(self) -> malloc::Given {
        // SAFETY: the invariant of `Given`.
        unsafe { malloc::Given::new(self.0.cast()) }
    }

    #[inline(always)]
    pub(crate) fn free(self) {
        api::free(self.give_up());
    }

    /// `align` counts as 1 where it is no power of two.
    #[inline(always)]
    pub(crate) fn free_sized(self, bytes: Option<size_t>, align: size_t) {
        let align = if align.is_power_of_two() { align } else { 1 };
        api::free_sized(self.give_up(), bytes, align);
    }

    pub(crate) fn realloc(self, bytes: size_t) -> *mut u8 {
        api::realloc(self.give_up(), bytes, 1)
    }
}

/// Where the program wants a result.
///
/// Invariant: only C makes one, as an argument of a function here, which says that it can be written.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    pub(crate) fn put(self, value: T) {
        // SAFETY: the invariant of `Out`.
        unsafe { self.0.write(value) }
    }
}

/// A stream of the program's.
///
/// Invariant: only C makes one, as an argument of a function here, which says that it is open.
#[repr(transparent)]
pub(crate) struct Stream(*mut libc::FILE);

impl Stream {
    /// Whether all of `text` was written.
    pub(crate) fn write(self, text: &[u8]) -> bool {
        // SAFETY: the invariant of `Stream`; `text` has so many bytes.
        unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len(), self.0) == text.len() }
    }
}
