//! The array of free objects in a slot. `unsafe`: reads atomic words of an area as a thread's own.
//!
//! **The top.** At fixed places, where a program's size classes are, and with slots per thread the array's
//! last address is in the slot's word `top`, and its word in the array is stale. So a pop knows the object
//! after one load. With the object behind two loads, size and array, the address that malloc's first store
//! to the object goes to is late, and a processor that has met a free just before a malloc holds back the
//! loads of the next call until it is known: 3 ns of 9 where sizes alternate. Object caches store nothing
//! to the object: their arrays have no top, which saves a load and two stores a pair. A slot that is held
//! has all of its addresses in the array.
//!
//! **Credit.** A thread whose pops always succeed would never take a slow path, where upkeep runs. So each
//! pop from an array spends one unit of the area's credit, and fails without credit; holding the slot then
//! renews it. An aborted sequence may have spent a unit too.

use crate::area::{self, Area};
use crate::hot::Hot;
use crate::object::Object;
use crate::region::HeapAccess;
use std::cell::Cell;
use std::sync::atomic::{Ordering::*, compiler_fence};

impl Hot {
    /// The array's size and capacity, for the slot's thread.
    #[inline(always)]
    pub(crate) fn halves(&self) -> (&Cell<u32>, &Cell<u32>) {
        // SAFETY: the halves of a word, in this order on both machines. With slots per thread no other thread
        // uses the word meanwhile; else it is a word of the refusing area, which is never written.
        unsafe {
            let first: *const Cell<u32> = (&raw const self.sizes).cast();
            (&*first, &*first.add(1))
        }
    }
}

/// The credit left in this thread's own area. One decrement in memory, where an atomic takes a load,
/// a decrement and a store.
#[inline(always)]
fn own_credit(area: &'static Area) -> &'static Cell<i32> {
    // SAFETY: an `AtomicI32` is laid out as an `i32`. `spend_credit`, the only caller, uses the cell of an
    // area with an object alone: that is its thread's own, and only that thread's operations use its credit
    // while slots are threads'.
    unsafe { &*std::ptr::from_ref(area::credit(area)).cast() }
}

/// How the arrays of a cache's slots are read.
#[derive(Clone, Copy)]
pub(crate) struct Arrays {
    pub(crate) heap: HeapAccess,
    /// The last address is in `top` while a thread's slot is idle.
    pub(crate) has_top: bool,
}

impl Arrays {
    /// Takes an object from the array of a slot in a hidden area.
    #[inline(always)]
    pub(crate) fn pop(self, area: &'static Area, hot: &Hot) -> Option<Object> {
        if self.has_top {
            return pop_top(self.heap, area, hot);
        }
        let (size, _) = hot.halves();
        let last = size.get().checked_sub(1)?;
        if !spend_credit(area) {
            return None;
        }
        // An array that is not empty has storage.
        let storage = self.heap.object(hot.storage.load(Relaxed));
        let object = self.heap.object(self.heap.before_nth(storage, last + 1).load(Relaxed));
        size.set(last);
        Some(object)
    }

    /// Adds an object to the array of a slot in a hidden area.
    #[inline(always)]
    pub(crate) fn push(self, hot: &Hot, object: Object) -> bool {
        if self.has_top {
            return push_top(self.heap, hot, object);
        }
        let (size, capacity) = hot.halves();
        let end = size.get();
        if end >= capacity.get() {
            return false;
        }
        // An array that has room has storage.
        let storage = self.heap.object(hot.storage.load(Relaxed));
        self.heap.before_nth(storage, end + 1).store(Object::to_raw(Some(object)), Relaxed);
        // In this order: a fork between the stores leaves the array without `object`.
        compiler_fence(Release);
        size.set(end + 1);
        true
    }

    /// Writes the top of an array to its place in the array.
    #[inline]
    pub(crate) fn top_to_array(self, hot: &Hot, size: u32) {
        if let (Some(storage), true) = (Object::from_raw(hot.storage.load(Relaxed)), self.has_top && size > 0)
        {
            self.heap.before_nth(storage, size).store(hot.top.load(Relaxed), Relaxed);
        }
    }

    /// Reads the top of an array from the array.
    #[inline]
    pub(crate) fn array_to_top(self, hot: &Hot, size: u32) {
        if let (Some(storage), true) = (Object::from_raw(hot.storage.load(Relaxed)), self.has_top && size > 0)
        {
            hot.top.store(self.heap.before_nth(storage, size).load(Relaxed), Relaxed);
        }
    }
}

/// Spends a unit of this thread's credit. `false` if there is none. The area has an object, so it is not the
/// refusing one.
#[inline(always)]
fn spend_credit(area: &'static Area) -> bool {
    let credit = own_credit(area);
    credit.set(credit.get().wrapping_sub(1));
    credit.get() >= 0
}

/// Pops from an array with a top, of a slot in a hidden area.
#[inline(always)]
pub(crate) fn pop_top(heap: HeapAccess, area: &'static Area, hot: &Hot) -> Option<Object> {
    let (size, _) = hot.halves();
    // The refusing area has no object: it is not written to, and only a thread's own area gets past here.
    let last = size.get().checked_sub(1)?;
    if !spend_credit(area) {
        return None;
    }
    // An array that is not empty has storage, and `top` its last address.
    let (storage, object) = (heap.object(hot.storage.load(Relaxed)), heap.object(hot.top.load(Relaxed)));
    let below = heap.before_nth(storage, last).load(Relaxed);
    size.set(last);
    // In this order: a fork between the two stores leaves `object` in the array, and loses the one below.
    compiler_fence(Release);
    hot.top.store(below, Relaxed);
    Some(object)
}

/// Pushes onto an array with a top, of a slot in a hidden area.
#[inline(always)]
pub(crate) fn push_top(heap: HeapAccess, hot: &Hot, object: Object) -> bool {
    let (size, capacity) = hot.halves();
    let end = size.get();
    if end >= capacity.get() {
        return false;
    }
    // An array that has room has storage. Where it is empty, the word before the first is written in vain.
    let storage = heap.object(hot.storage.load(Relaxed));
    heap.before_nth(storage, end).store(hot.top.load(Relaxed), Relaxed);
    hot.top.store(Object::to_raw(Some(object)), Relaxed);
    // In this order: a fork between the stores leaves `object` in the place of the one below, which is lost.
    compiler_fence(Release);
    size.set(end + 1);
    true
}
