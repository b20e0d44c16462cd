//! Further heaps for C: a malloc of any engine, with debugging around it if the name says so. cbindgen makes
//! a part of `include/slablab.h` from this file.
//!
//! A heap is a pointer that `slab_heap_create` returned. Every address of a block is checked, and a wrong one
//! ends the process with a report. An address of a heap is trusted.

use crate::edge::{Given, Lent, MOST, Text, or_enomem, set_errno};
use libc::{EINVAL, ENOMEM, c_void, size_t};
use slablab_malloc::{ChosenHeap, NoHeap, api};
use std::ptr;

/// A malloc of its own, beside that of the process.
#[allow(non_camel_case_types, reason = "C's name")]
pub struct slab_heap {
    heap: ChosenHeap,
}

type Heap = Lent<slab_heap>;

impl slab_heap {
    fn alloc(&self, align: size_t, bytes: size_t) -> *mut c_void {
        let fits = bytes <= MOST;
        or_enomem(if fits { self.heap.alloc_aligned(bytes, align) } else { ptr::null_mut() })
    }
}

exports! { "C":
/// Creates a heap of an engine with its knobs: `slub@6.1`, `slab@6.1,debug=FZPU`; the names of `slablab
/// engines`. The heap stays until the process ends. Returns null and sets `errno` to `EINVAL` if no engine
/// has this name or the engine cannot serve malloc, to `ENOMEM` if there is no memory or the process has the
/// largest number of heaps and caches.
///
/// A block is freed and resized by the heap that allocated it: another heap, malloc's too, reports such a
/// block and ends the process. The functions may not be called in signal handlers.
///
/// # Safety
/// `engine` is a string that ends with 0, or null.
fn slab_heap_create(engine: Text) -> Option<Box<slab_heap>> {
    let refused = |error| {
        set_errno(error);
        None
    };
    let Some(Ok(name)) = engine.get().map(|name| name.to_str()) else { return refused(EINVAL) };
    match ChosenHeap::open(name) {
        Ok(heap) => Some(Box::new(slab_heap { heap })),
        Err(NoHeap::Engine(_)) => refused(EINVAL),
        Err(NoHeap::Memory) => refused(ENOMEM),
    }
}

/// Allocates `bytes` bytes, aligned to 16. Returns null and sets `errno` to `ENOMEM` without memory.
///
/// # Safety
/// `heap` came from `slab_heap_create`.
fn slab_heap_malloc(heap: Heap, bytes: size_t) -> *mut c_void {
    heap.get().alloc(1, bytes)
}

/// Allocates `count` times `bytes` bytes of zeros. Returns null and sets `errno` to `ENOMEM` without memory,
/// and if the product does not fit.
///
/// # Safety
/// `heap` came from `slab_heap_create`.
fn slab_heap_calloc(heap: Heap, count: size_t, bytes: size_t) -> *mut c_void {
    match count.checked_mul(bytes).filter(|bytes| *bytes <= MOST) {
        Some(bytes) => or_enomem(heap.get().heap.alloc_zeroed(bytes, 1)),
        None => or_enomem(ptr::null_mut()),
    }
}

/// Allocates `bytes` bytes, aligned to `align`. Returns null and sets `errno` to `EINVAL` if `align` is no
/// power of two, to `ENOMEM` without memory.
///
/// # Safety
/// `heap` came from `slab_heap_create`.
fn slab_heap_aligned_alloc(heap: Heap, align: size_t, bytes: size_t) -> *mut c_void {
    if !align.is_power_of_two() {
        set_errno(EINVAL);
        return ptr::null_mut();
    }
    heap.get().alloc(align, bytes)
}

/// Gives a block another size, where it is or elsewhere, as C's `realloc`: null is allocated, and a size of 0
/// frees. Without memory the function returns null, sets `errno` to `ENOMEM`, and the block stays as it is.
///
/// # Safety
/// `heap` came from `slab_heap_create`; no thread uses the block any more, unless null is returned.
fn slab_heap_realloc(heap: Heap, block: Given, bytes: size_t) -> *mut c_void {
    let heap = heap.get();
    if block.is_null() {
        return heap.alloc(1, bytes);
    }
    if bytes == 0 {
        heap.heap.free(block.give_up());
        return ptr::null_mut();
    }
    let fits = bytes <= MOST;
    or_enomem(if fits { heap.heap.realloc(block.give_up(), bytes, 1) } else { ptr::null_mut() })
}

/// Frees a block of the heap; null is allowed.
///
/// # Safety
/// `heap` came from `slab_heap_create`; no thread uses the block any more.
fn slab_heap_free(heap: Heap, block: Given) {
    if !block.is_null() {
        heap.get().heap.free(block.give_up());
    }
}

/// Bytes that may be used at the start of a block; 0 for null.
///
/// # Safety
/// `heap` came from `slab_heap_create`.
fn slab_heap_usable_size(heap: Heap, block: Given) -> size_t {
    if block.is_null() { 0 } else { heap.get().heap.usable(block.as_ptr()) }
}

/// Gives all memory that no object needs back to the system: that of malloc, of every heap and object cache,
/// and of every thread. Returns the bytes. Another thread's slot is emptied by that thread on its next slow
/// path, after 2,039 allocations at most: the number of threads that have not done so yet goes to `threads`,
/// unless that is null. With slots per CPU it is 0.
///
/// # Safety
/// `threads` can be written, or is null.
fn slab_purge(threads: Option<&mut size_t>) -> size_t {
    let purged = api::purge();
    if let Some(threads) = threads {
        *threads = purged.threads as size_t;
    }
    purged.given_back as size_t
}
}
