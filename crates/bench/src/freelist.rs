//! The simplest allocator: a list of free objects per thread, linked through the objects. `unsafe`: links
//! memory.
//!
//! The floor for the fast path of an object cache: no slab, no statistics, no other thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::ptr::{self, NonNull};

struct Node {
    next: *mut Node,
}

thread_local! {
    static FREE: Cell<*mut Node> = const { Cell::new(ptr::null_mut()) };
}

/// An object of the list. Dropping it returns it to the list.
#[derive(Debug)]
pub(crate) struct Listed(NonNull<Node>);

impl Listed {
    /// Takes the first object and writes eight bytes into it.
    #[inline(always)]
    pub(crate) fn pop() -> Option<Listed> {
        let first = NonNull::new(FREE.get())?;
        // SAFETY: every object in the list is free, and `push` or `fill` wrote its link.
        unsafe {
            FREE.set(first.as_ref().next);
            first.cast::<u64>().add(1).write(1);
        }
        Some(Listed(black_box(first)))
    }
}

impl Drop for Listed {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this value owns the object.
        unsafe { self.0.as_mut().next = FREE.get() };
        FREE.set(self.0.as_ptr());
    }
}

/// Empties this thread's list and puts `count` new objects of `bytes` bytes on it. Earlier objects are leaked
/// until the process ends.
pub(crate) fn fill(count: usize, bytes: usize) {
    let layout = Layout::from_size_align(bytes.max(16), 16).expect("small");
    FREE.set(ptr::null_mut());
    for _ in 0..count {
        // SAFETY: the layout has a size.
        let at = NonNull::new(unsafe { System.alloc(layout) }).expect("memory");
        drop(Listed(at.cast()));
    }
}
