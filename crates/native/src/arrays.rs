//! The array of free objects in a slot of a thread. `unsafe`: uses an atomic word of an area as a thread's
//! own.
//!
//! While the slot is idle, two of its words say where the array's last address and its last word are,
//! relative to the area. The word in front of the array's first one is 0: so a pop reads the last address,
//! and finds an empty array by it. In an area of zeros both places are the area's first word, which is 0,
//! too: no object, and no room. While the slot is held both words are 0.
//!
//! **Credit.** A thread whose pops always succeed would never take a slow path, where upkeep runs. So each
//! pop from an array spends one unit of the area's credit, and fails without credit; holding the slot then
//! renews it. An aborted sequence may have spent a unit too.

use crate::area::{self, Area, FIXED_AT, FIXED_BYTES, FIXED_CACHES};
use crate::hot::Hot;
use crate::object::Object;
use crate::place::Place;
use crate::region::HeapAccess;
use slablab_platform::HotArray;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::*, compiler_fence};

/// Bytes of a word of an array.
const WORD: u64 = 8;

/// The array of a cache in a thread's area.
#[derive(Clone, Copy)]
pub(crate) struct Array<'a> {
    pub(crate) heap: HeapAccess,
    pub(crate) area: &'static Area,
    pub(crate) hot: &'a Hot,
}

impl Array<'static> {
    /// The array of the slot at a fixed place.
    #[inline(always)]
    pub(crate) fn fixed(heap: HeapAccess, area: &'static Area, place: Place) -> Self {
        Array::at(heap, area, FIXED_AT + place.bytes())
    }

    /// The array of the slot `offset` bytes into an area; at its start there are zeros, which refuse.
    #[inline(always)]
    pub(crate) fn at(heap: HeapAccess, area: &'static Area, offset: usize) -> Self {
        Array { heap, area, hot: heap.at(std::ptr::from_ref(area).addr() + offset) }
    }
}

impl Array<'_> {
    /// Takes an object from the array of a slot in a hidden area.
    #[inline(always)]
    pub(crate) fn pop(self) -> Option<Object> {
        let top = self.own(&self.hot.top);
        let at = top.get();
        // None in the refusing area: it is not written to, and only a thread's own area gets past here.
        let object = Object::from_raw(self.word(at).load(Relaxed))?;
        if !spend_credit(self.area) {
            return None;
        }
        top.set(at.wrapping_sub(WORD));
        Some(object)
    }

    /// Adds an object to the array of a slot in a hidden area.
    #[inline(always)]
    pub(crate) fn push(self, object: Object) -> bool {
        let top = self.own(&self.hot.top);
        // Not "equal": while the slot is let go of, `top` is there before `end`.
        if top.get() >= self.own(self.hot.end()).get() {
            return false;
        }
        let next = top.get().wrapping_add(WORD);
        self.word(next).store(Object::to_raw(Some(object)), Relaxed);
        // In this order: a fork between the stores leaves the array without `object`.
        compiler_fence(Release);
        top.set(next);
        true
    }

    /// The array, while the slot is idle.
    #[inline]
    pub(crate) fn read(self) -> HotArray<Object> {
        let storage = self.storage();
        let words = |place: &AtomicU64| {
            storage
                .map_or(0, |storage| (place.load(Relaxed).wrapping_sub(self.bottom(storage)) / WORD) as u32)
        };
        HotArray { storage, size: words(&self.hot.top), capacity: words(self.hot.end()) }
    }

    /// Makes the array empty, without room: the slot is held from now on.
    #[inline]
    pub(crate) fn refuse(self) {
        self.hot.top.store(0, Relaxed);
        self.hot.end().store(0, Relaxed);
    }

    /// Writes the array of a slot that is idle from now on: its storage is in the slot already. A signal
    /// handler that runs between the two stores pops, and finds no room.
    #[inline]
    pub(crate) fn write(self, size: u32, capacity: u32) {
        let Some(storage) = self.storage() else { return self.refuse() };
        let bottom = self.bottom(storage);
        self.word(bottom).store(0, Relaxed);
        let place = |words: u32| bottom.wrapping_add(u64::from(words) * WORD);
        // After the word that it leads to if there is no object.
        self.hot.top.store(place(size), Release);
        self.hot.end().store(place(capacity), Release);
    }

    /// The slot's place; `None` if it is at no fixed one.
    pub(crate) fn place(self) -> Option<Place> {
        let at = (std::ptr::from_ref(self.hot).addr() - self.origin()).wrapping_sub(FIXED_AT);
        let number = at / FIXED_BYTES;
        (1..=FIXED_CACHES).contains(&number).then(|| Place::of(number as u32 - 1))
    }

    /// The array's storage.
    #[inline]
    fn storage(self) -> Option<Object> {
        Object::from_raw(self.hot.storage.load(Relaxed))
    }

    /// Where the word in front of an array's first one is: the last of the header.
    #[inline]
    fn bottom(self, storage: Object) -> u64 {
        let header_bytes = u64::from(HotArray::<Object>::HEADER) * WORD;
        (Object::to_raw(Some(storage)) + header_bytes - WORD).wrapping_sub(self.origin() as u64)
    }

    /// A word of the slot as a plain one, which takes fewer instructions.
    #[inline(always)]
    fn own(self, word: &AtomicU64) -> &Cell<u64> {
        // SAFETY: an `AtomicU64` is laid out as a `u64`. The area is this thread's own, and hidden, so only
        // this operation uses the word; or it is a refusing one, whose words are 0: those are only read.
        unsafe { &*std::ptr::from_ref(word).cast() }
    }

    /// The word at a place.
    #[inline(always)]
    fn word(self, place: u64) -> &'static AtomicU64 {
        self.heap.at(self.origin().wrapping_add(place as usize))
    }

    /// The address that places are relative to.
    #[inline(always)]
    fn origin(self) -> usize {
        std::ptr::from_ref(self.area).addr()
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

/// Spends a unit of this thread's credit. `false` if there is none. The area has an object, so it is not the
/// refusing one.
#[inline(always)]
fn spend_credit(area: &'static Area) -> bool {
    let credit = own_credit(area);
    credit.set(credit.get().wrapping_sub(1));
    credit.get() >= 0
}
