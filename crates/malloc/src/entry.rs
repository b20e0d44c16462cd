//! What the interfaces of C and Rust call.
//!
//! Every call has up to three rungs, everywhere under the same names:
//!
//! ```text
//! alloc(bytes)              free(at)                     free_sized(at, ..), realloc(at, ..)
//!   fast   alloc_fixed             OnceHeap::free_fast     the array of this thread's slot: inline, no call
//!   slow   alloc_slow              free_slow               the heap there is: Heap::alloc_slow, Heap::free_slow,
//!                                                          or Serves::alloc_aligned, Serves::free
//!   cold   alloc_cold                                      no heap started yet
//! ```
//!
//! The slow and cold rungs are `extern "C"`: a panic in them ends the process, and never unwinds into a
//! caller of malloc. They are called last, so that the fast rung needs no frame.

use crate::classes;
use crate::engine::{self, HEAP, Which};
use crate::env;
use crate::fast::{self, Freed, Given, Resized};
use crate::hardened::UNSAID;
use crate::shared;
use slablab_native::Place;
use slablab_native::report::misuse;
use slablab_native::system;
use std::ptr;

/// What the interfaces of C and Rust are made of.
pub mod api {
    use super::*;

    /// Starts the process's heap, if no thread has allocated yet.
    pub fn start_now() {
        engine::start_now();
    }

    /// `bytes` bytes, aligned to 16; null without memory.
    #[inline(always)]
    pub fn alloc(bytes: usize) -> *mut u8 {
        let object = alloc_fast(bytes);
        if object.is_null() { alloc_slow(bytes) } else { object }
    }

    /// Fast rung of [`alloc`]: this thread's array only. Null means "call [`alloc_slow`]", not "out of
    /// memory". Makes no call, so a caller that ends with `alloc_slow` needs no frame.
    #[inline(always)]
    pub fn alloc_fast(bytes: usize) -> *mut u8 {
        fast::alloc_fixed(bytes)
    }

    /// Slow rung of [`alloc`], after [`alloc_fast`] gave null.
    #[inline(never)]
    pub extern "C" fn alloc_slow(bytes: usize) -> *mut u8 {
        let object = fast::alloc_fixed_reckoned(bytes);
        if !object.is_null() {
            return object;
        }
        match HEAP.get() {
            Which::Slub(heap) => heap.alloc_slow(bytes),
            Which::Other(heap) => heap.alloc_aligned(bytes, 1),
            Which::None => alloc_cold(bytes, 1, false),
        }
    }

    /// `bytes` bytes, aligned to the power of two `align`, and to 16; null without memory.
    #[inline]
    pub fn alloc_aligned(bytes: usize, align: usize) -> *mut u8 {
        if align <= classes::STEP {
            return alloc(bytes);
        }
        let object = alloc_aligned_fast(bytes, align);
        if object.is_null() { alloc_aligned_slow(bytes, align) } else { object }
    }

    /// Fast rung of [`alloc_aligned`]: this thread's array only, for any power of two `align`. Null means
    /// "call [`alloc_aligned_slow`]", not "out of memory". Makes no call.
    #[inline(always)]
    pub fn alloc_aligned_fast(bytes: usize, align: usize) -> *mut u8 {
        fast::alloc_fixed_aligned(bytes, align)
    }

    /// Slow rung of [`alloc_aligned`], after [`alloc_aligned_fast`] gave null.
    #[inline(never)]
    pub extern "C" fn alloc_aligned_slow(bytes: usize, align: usize) -> *mut u8 {
        // The smallest class with the alignment may be one that only `aligned` knows.
        let object = classes::aligned(bytes, align).map_or(ptr::null_mut(), alloc_fast);
        if !object.is_null() {
            return object;
        }
        match HEAP.get() {
            Which::Slub(heap) => heap.alloc_aligned(bytes, align),
            Which::Other(heap) => heap.alloc_aligned(bytes, align),
            Which::None => alloc_cold(bytes, align, false),
        }
    }

    /// As [`alloc_aligned`], filled with zeros.
    #[inline]
    pub fn alloc_zeroed(bytes: usize, align: usize) -> *mut u8 {
        let fast = align <= classes::STEP;
        let object = if fast { fast::alloc_fixed_zeroed(bytes) } else { ptr::null_mut() };
        if object.is_null() { alloc_zeroed_slow(bytes, align) } else { object }
    }

    #[inline(never)]
    extern "C" fn alloc_zeroed_slow(bytes: usize, align: usize) -> *mut u8 {
        match HEAP.get() {
            Which::Slub(heap) => heap.alloc_zeroed(bytes, align),
            Which::Other(heap) => heap.alloc_zeroed(bytes, align),
            Which::None => alloc_cold(bytes, align, true),
        }
    }

    /// Cold rung of every allocation: no heap started yet.
    #[cold]
    #[inline(never)]
    extern "C" fn alloc_cold(bytes: usize, align: usize, zeroed: bool) -> *mut u8 {
        match (HEAP.start(), zeroed) {
            (false, _) => ptr::null_mut(),
            (true, true) => alloc_zeroed_slow(bytes, align),
            (true, false) => alloc_aligned_slow(bytes, align),
        }
    }

    /// Frees memory. Any address may come: one that is no live allocation's start ends the process with a
    /// report.
    #[inline(always)]
    pub fn free(at: Given) {
        after_fast(HEAP.free_fast(&at), at, |at| free_slow(at));
    }

    /// Ends a free whose fast rung did `freed`. `slow` is for an address that only a slower look can tell.
    #[inline(always)]
    fn after_fast(freed: Freed, at: Given, slow: impl FnOnce(Given)) {
        match freed {
            Freed::Yes => {}
            Freed::Marked => free_slow_marked(at),
            Freed::Before => fast::double_free(at.as_ptr()),
            Freed::No => slow(at),
        }
    }

    /// Frees memory whose size or alignment the caller says: C++'s sized `delete`, C23's `free_sized`. With
    /// something around the engine a size or an alignment that is not the allocation's is reported, and the
    /// memory is freed all the same. `align` must be a power of two.
    #[inline(always)]
    pub fn free_sized(at: Given, bytes: Option<usize>, align: usize) {
        let freed = match bytes {
            // The class of an aligned object may be larger.
            Some(bytes) if bytes <= classes::LISTED_MAX && align <= classes::STEP => {
                HEAP.free_fast_sized(&at, bytes)
            }
            _ => HEAP.free_fast(&at),
        };
        after_fast(freed, at, |at| free_sized_slow(at, bytes.unwrap_or(UNSAID), align));
    }

    /// As [`free_sized`], for a size that is not known when the caller is compiled. Then the class is there
    /// sooner by the address's entry, which every free reads, than by the size as well.
    #[inline(always)]
    pub fn free_sized_any(at: Given, bytes: Option<usize>, align: usize) {
        after_fast(HEAP.free_fast(&at), at, |at| free_sized_slow(at, bytes.unwrap_or(UNSAID), align));
    }

    /// Slow rung of [`free_sized`].
    #[inline(never)]
    extern "C" fn free_sized_slow(at: Given, bytes: usize, align: usize) {
        match HEAP.get() {
            Which::Other(heap) => heap.free_sized(at, Some(bytes).filter(|bytes| *bytes != UNSAID), align),
            Which::Slub(_) | Which::None => free_slow(at),
        }
    }

    /// Slow rung of a free whose object is marked as free, and found no room in the array.
    #[inline(never)]
    extern "C" fn free_slow_marked(at: Given) {
        if let Some(heap) = HEAP.slub() {
            heap.free_slow_marked(at);
        }
    }

    /// Slow rung of [`free`].
    #[inline(never)]
    extern "C" fn free_slow(at: Given) {
        // Programs free null often.
        if at.as_ptr().is_null() {
            return;
        }
        match HEAP.get() {
            Which::Slub(heap) => heap.free_slow(at),
            Which::Other(heap) => heap.free(at),
            Which::None => none_yet("free", at.as_ptr()),
        }
    }

    /// Bytes that may be used at the start of a live allocation; 0 for null.
    pub extern "C" fn usable(at: *const u8) -> usize {
        match HEAP.get() {
            Which::Slub(heap) => heap.usable(at),
            Which::Other(heap) => heap.usable(at),
            Which::None if at.is_null() => 0,
            Which::None => none_yet("malloc_usable_size", at.cast_mut()),
        }
    }

    /// Gives an allocation another size, where it is or elsewhere; null without memory, and then the
    /// allocation stays as it is.
    #[inline(always)]
    pub fn realloc(at: Given, bytes: usize, align: usize) -> *mut u8 {
        // An aligned object may be of a larger class.
        if align <= classes::STEP
            && bytes <= classes::LISTED_MAX
            && let Some(class) = HEAP.live_place_fast(&at)
        {
            let stays = class == classes::place_listed(bytes);
            return if stays { at.as_ptr() } else { realloc_live(at, bytes, class) };
        }
        realloc_slow(at, bytes, align)
    }

    /// Slow rung of [`realloc`] for a live object of a class and another size, of at most
    /// [`classes::LISTED_MAX`] bytes.
    #[inline(never)]
    extern "C" fn realloc_live(at: Given, bytes: usize, class: Place) -> *mut u8 {
        match HEAP.resize(&at, class, bytes) {
            Resized::Stays => at.as_ptr(),
            Resized::Moved(to) => to,
            Resized::Left(to) => {
                free_slow_marked(at);
                to
            }
            Resized::Before => {
                fast::double_free(at.as_ptr());
                ptr::null_mut()
            }
            Resized::No => realloc_cold(at, bytes, 1),
        }
    }

    /// Slow rung of [`realloc`]: memory of another node, a thread without a slot, any size.
    #[inline(never)]
    extern "C" fn realloc_slow(at: Given, bytes: usize, align: usize) -> *mut u8 {
        let listed = align <= classes::STEP && bytes <= classes::LISTED_MAX;
        match HEAP.live_place(&at).filter(|_| listed) {
            Some(class) => realloc_live(at, bytes, class),
            None => realloc_cold(at, bytes, align),
        }
    }

    /// Cold rung of [`realloc`]: any address and size, and any heap.
    #[inline(never)]
    extern "C" fn realloc_cold(at: Given, bytes: usize, align: usize) -> *mut u8 {
        match HEAP.get() {
            Which::Slub(heap) => heap.realloc(at, bytes, align),
            Which::Other(heap) => heap.realloc(at, bytes, align),
            Which::None => none_yet("realloc", at.as_ptr()),
        }
    }

    #[cold]
    fn none_yet(call: &str, at: *mut u8) -> ! {
        misuse(format_args!("{call} of {at:p}: not allocated here: this heap has served no request yet"))
    }

    /// Bytes of a page.
    pub fn page_size() -> usize {
        system::page_size()
    }

    /// What all heaps and object caches of the process hold; zeros before the heap started.
    pub fn totals() -> shared::Totals {
        shared::totals()
    }

    /// Prints every cache on standard error, in slabinfo's columns; nothing before the heap started.
    pub fn print_stats() {
        if let Some(choice) = env::choice() {
            shared::print_stats(&choice);
        }
    }

    /// Gives all memory that no object needs back to the system, and asks the other threads for the objects
    /// of their slots. A thread asked so empties its slot on its next slow path.
    pub fn purge() -> shared::Purged {
        system::keeping_errno(shared::purge)
    }
}
