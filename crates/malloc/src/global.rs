//! The heaps as Rust's allocators. `unsafe`: promises what [`GlobalAlloc`] asks for, and takes over what its
//! callers promise.

use crate::engines::{ChosenHeap, ExtraHeap};
use crate::entry::api;
use crate::fast::Given;
use crate::world::Native;
use slablab_slabs::Front;
use std::alloc::{GlobalAlloc, Layout};

/// The process's heap as Rust's global allocator: `#[global_allocator] static HEAP: Slablab = Slablab;`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slablab;

/// Implements [`GlobalAlloc`] for a type, by the functions of the heap `$heap`.
///
/// SAFETY of the implementation: memory that a heap hands out is the caller's alone, and as large and as
/// aligned as asked; null is the answer without memory; nothing unwinds.
macro_rules! global_alloc {
    (
        impl[$($generics:tt)*] $type:ty: $self:ident, $at:ident, $layout:ident, $bytes:ident;
        alloc => $alloc:expr, zeroed => $zeroed:expr, free => $free:expr, realloc => $realloc:expr
    ) => {
        // SAFETY: the comment of the macro.
        unsafe impl<$($generics)*> GlobalAlloc for $type {
            #[inline]
            unsafe fn alloc(&$self, $layout: Layout) -> *mut u8 {
                $alloc
            }
            #[inline]
            unsafe fn alloc_zeroed(&$self, $layout: Layout) -> *mut u8 {
                $zeroed
            }
            #[inline]
            unsafe fn dealloc(&$self, $at: *mut u8, $layout: Layout) {
                // SAFETY: `GlobalAlloc::dealloc`: the caller gives up the block at `$at`.
                let $at = unsafe { Given::new($at) };
                $free
            }
            #[inline]
            unsafe fn realloc(&$self, $at: *mut u8, $layout: Layout, $bytes: usize) -> *mut u8 {
                // SAFETY: `GlobalAlloc::realloc`: the caller gives up the block at `$at`, unless the result
                // is null.
                let $at = unsafe { Given::new($at) };
                $realloc
            }
        }
    };
}

global_alloc! {
    impl[] Slablab: self, at, layout, bytes;
    alloc => api::alloc_aligned(layout.size(), layout.align()),
    zeroed => api::alloc_zeroed(layout.size(), layout.align()),
    free => api::free_sized(at, Some(layout.size()), layout.align()),
    realloc => api::realloc(at, bytes, layout.align())
}

global_alloc! {
    impl[E: Front<Native>] ExtraHeap<E>: self, at, layout, bytes;
    alloc => self.heap().alloc_aligned(layout.size(), layout.align()),
    zeroed => self.heap().alloc_zeroed(layout.size(), layout.align()),
    free => { let _ = layout; self.heap().free(at) },
    realloc => self.heap().realloc(at, bytes, layout.align())
}

global_alloc! {
    impl[] ChosenHeap: self, at, layout, bytes;
    alloc => self.alloc_aligned(layout.size(), layout.align()),
    zeroed => self.alloc_zeroed(layout.size(), layout.align()),
    free => self.free_sized(at, layout.size(), layout.align()),
    realloc => self.realloc(at, bytes, layout.align())
}
