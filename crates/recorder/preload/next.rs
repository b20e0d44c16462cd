//! The allocator behind this library, and memory for calls before it is known. `unsafe`: calls functions by
//! their addresses.

use super::system::{self, dlsym, library_of};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering::*};

/// `aligned_alloc` and `memalign`.
pub(crate) type Aligned = unsafe extern "C" fn(usize, usize) -> *mut c_void;

macro_rules! functions {
    ($($name:ident = $symbol:literal: $type:ty;)*) => {
        /// The functions of the next allocator. Null: it has none of that name.
        pub(crate) struct Next {
            $($name: AtomicPtr<c_void>,)*
            pub(crate) operators: AtomicU8,
        }

        /// The next allocator.
        pub(crate) static NEXT: Next = Next {
            $($name: AtomicPtr::new(core::ptr::null_mut()),)*
            operators: AtomicU8::new(MALLOC),
        };

        impl Next {
            fn find(&self) {
                $(
                    // SAFETY: the name is a C string; no function of that name is an answer, too.
                    let found = unsafe { dlsym(system::NEXT, $symbol.as_ptr()) };
                    self.$name.store(found, Relaxed);
                )*
            }

            $(
                /// The function of this name. Callers know that the allocator has it.
                #[inline]
                pub(crate) fn $name(&self) -> $type {
                    let at = self.$name.load(Relaxed);
                    if at.is_null() {
                        // SAFETY: the function has no preconditions.
                        unsafe { system::abort() }
                    }
                    // SAFETY: the C library's name for a function of this type.
                    unsafe { transmute::<*mut c_void, $type>(at) }
                }
            )*
        }
    };
}

functions! {
    malloc = c"malloc": unsafe extern "C" fn(usize) -> *mut c_void;
    calloc = c"calloc": unsafe extern "C" fn(usize, usize) -> *mut c_void;
    realloc = c"realloc": unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    free = c"free": unsafe extern "C" fn(*mut c_void);
    posix_memalign = c"posix_memalign": unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;
    aligned_alloc = c"aligned_alloc": Aligned;
    memalign = c"memalign": Aligned;
    new_plain = c"_ZnwmRKSt9nothrow_t": unsafe extern "C" fn(usize, *const c_char) -> *mut c_void;
    new_aligned = c"_ZnwmSt11align_val_tRKSt9nothrow_t":
        unsafe extern "C" fn(usize, usize, *const c_char) -> *mut c_void;
    delete_plain = c"_ZdlPv": unsafe extern "C" fn(*mut c_void);
    delete_aligned = c"_ZdlPvSt11align_val_t": unsafe extern "C" fn(*mut c_void, usize);
}

/// How C++'s operators are served: by the next `malloc` and `free`, as those of the C++ library do.
pub(crate) const MALLOC: u8 = 0;
/// By the operators that the next allocator brings.
pub(crate) const OPERATORS: u8 = 1;
/// By another library's operators, whose calls of `malloc` are recorded.
pub(crate) const OTHER: u8 = 2;

static READY: AtomicBool = AtomicBool::new(false);
static SEARCHING: AtomicBool = AtomicBool::new(false);

/// Whether the next allocator is known. The first call finds it; calls that the search itself makes get
/// `false`.
#[inline]
pub(crate) fn resolve() -> bool {
    READY.load(Acquire) || search()
}

#[cold]
fn search() -> bool {
    if SEARCHING.swap(true, Acquire) {
        return false;
    }
    NEXT.find();
    super::operators::find();
    NEXT.operators.store(operators(), Relaxed);
    // Pairs with the load in `resolve`.
    READY.store(true, Release);
    true
}

/// Whose operator new is behind this library.
fn operators() -> u8 {
    let new = super::operators::next_new();
    let (Some(new), Some(malloc)) = (library_of(new), library_of(NEXT.malloc.load(Relaxed))) else {
        return MALLOC;
    };
    if new.base == malloc.base {
        return OPERATORS;
    }
    // SAFETY: `dladdr` succeeded, so the file is a C string of the loader.
    let file = unsafe { CStr::from_ptr(new.file) }.to_bytes();
    let named = |name: &[u8]| file.windows(name.len()).any(|part| part == name);
    if named(b"libstdc++") || named(b"libc++") { MALLOC } else { OTHER }
}

/// The path of the library whose `malloc` is next.
pub(crate) fn allocator() -> &'static [u8] {
    match library_of(NEXT.malloc.load(Relaxed)) {
        // SAFETY: `dladdr` succeeded, so the file is a C string of the loader, which stays loaded.
        Some(found) if !found.file.is_null() => unsafe { CStr::from_ptr(found.file) }.to_bytes(),
        _ => b"",
    }
}

/// A few KiB for calls while the next allocator is searched. They are never given back.
pub(crate) mod reserve {
    use core::cell::UnsafeCell;
    use core::ffi::c_void;
    use core::ptr::null_mut;
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    const BYTES: usize = 1 << 15;

    #[repr(align(4096))]
    struct Memory(UnsafeCell<[u8; BYTES]>);

    // SAFETY: each byte is handed out once.
    unsafe impl Sync for Memory {}

    static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));
    static USED: AtomicUsize = AtomicUsize::new(0);

    /// Takes `bytes` bytes, zeros; null if there are none left.
    #[cold]
    pub(crate) fn take(bytes: usize, align: usize) -> *mut c_void {
        let align = align.clamp(16, 4096);
        // Room for what the alignment skips.
        let (Some(more), base) = (bytes.checked_add(align), MEMORY.0.get() as usize) else {
            return null_mut();
        };
        let from = USED.fetch_add(more.min(BYTES), Relaxed);
        let at = (base + from).next_multiple_of(align);
        if more <= BYTES && at + bytes <= base + BYTES { at as *mut c_void } else { null_mut() }
    }

    /// Whether the reserve handed out the block.
    #[inline]
    pub(crate) fn holds(at: *mut c_void) -> bool {
        (at as usize).wrapping_sub(MEMORY.0.get() as usize) < BYTES
    }

    /// Copies a block of the reserve, whose size is not known, to a new block of `bytes` bytes.
    ///
    /// # Safety
    /// `old` is null, or [`holds`] it; `new` is null or has `bytes` bytes.
    #[cold]
    pub(crate) unsafe fn moved(old: *mut c_void, new: *mut c_void, bytes: usize) -> *mut c_void {
        if !old.is_null() && !new.is_null() {
            let most = MEMORY.0.get() as usize + BYTES - old as usize;
            // SAFETY: the reserve has `most` bytes from `old` on, and `new` has `bytes`; the caller's
            // promise.
            unsafe { core::ptr::copy(old.cast::<u8>(), new.cast::<u8>(), bytes.min(most)) };
        }
        new
    }
}
