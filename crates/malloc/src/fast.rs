//! The fast rung of a heap: this thread's array, inline and without a call. `unsafe`: writes marks into
//! objects that their callers give up ([`Given`]).
//!
//! A freed object carries a key in its second word, made of a secret and its own address: so a second free is
//! found.

use crate::classes;
use crate::heap::Heap;
use crate::shared;
use crate::world::{FixedSlots, Native, Over};
use slablab_native::report::misuse;
use slablab_native::{Object, PagemapEntry, Place};
use slablab_platform::Memory;
use slablab_slabs::Front;
use std::hint::{assert_unchecked, black_box};
use std::ptr;

/// An address that its caller gives up, to `free` or to `realloc`.
///
/// Invariant: only [`Given::new`] makes one, so the promise that it asks for holds. Any address may be in it,
/// null too: each function looks the address up and reports one at which no allocation starts. Whether a
/// thread still uses the memory is what no function can find out.
#[derive(Debug)]
#[repr(transparent)]
#[must_use = "an address that is given up and not freed is leaked"]
pub struct Given(*mut u8);

impl Given {
    /// Gives up the address `at`.
    ///
    /// # Safety
    /// If an allocation starts at `at`, no thread uses the allocation from now on. A `realloc` that returns
    /// null hands it back to the caller.
    #[inline(always)]
    pub unsafe fn new(at: *mut u8) -> Given {
        Given(at)
    }

    /// The address.
    #[inline(always)]
    pub fn as_ptr(&self) -> *mut u8 {
        self.0
    }

    /// The entry of the address in the pagemap, if its memory is of this thread's node.
    #[inline(always)]
    pub(crate) fn pagemap_local(&self) -> Option<GivenEntry> {
        Native::pagemap_local(self.0).map(GivenEntry)
    }

    /// [`Given::pagemap_local`], and this thread's slots at fixed places.
    #[inline(always)]
    pub(crate) fn pagemap_and_slots(&self) -> Option<(GivenEntry, FixedSlots)> {
        Native::pagemap_and_slots(self.0).map(|(entry, slots)| (GivenEntry(entry), slots))
    }

    /// The entry of the address in the pagemap. `None` outside the heap.
    #[inline]
    pub(crate) fn pagemap(&self) -> Option<GivenEntry> {
        Native::pagemap(self.0).map(GivenEntry)
    }
}

/// The pagemap entry of an address that its caller gives up.
///
/// Invariant: only a [`Given`] makes one, of its own address.
pub(crate) struct GivenEntry(PagemapEntry);

impl GivenEntry {
    /// The entry.
    #[inline(always)]
    pub(crate) fn get(&self) -> PagemapEntry {
        self.0
    }
}

/// What a fast free did.
pub(crate) enum Freed {
    /// The object is in this thread's array.
    Yes,
    /// The object is marked as free, and is in no array yet: the slow rung goes on.
    Marked,
    /// The object was marked as free before: a double free.
    Before,
    /// Nothing: the address may be anything.
    No,
}

/// The class of a request of at most [`classes::LISTED_MAX`] bytes.
#[inline(always)]
fn listed(bytes: usize) -> usize {
    let class = classes::listed(bytes);
    // SAFETY: `classes::LISTED` holds numbers of classes only, each plus 1.
    unsafe { assert_unchecked(class < classes::COUNT) };
    class
}

/// Takes the mark off an object or a block that becomes live.
#[inline(always)]
pub(crate) fn handed_out(object: Object) -> *mut u8 {
    // SAFETY: an object has at least two words, and so has a block.
    unsafe { object.as_ptr().cast::<u64>().add(1).write(0) };
    object.as_ptr()
}

/// The second word of a free object, with the world's secret.
#[inline(always)]
fn key(secret: u64, object: Object) -> u64 {
    secret ^ object.addr() as u64
}

/// Whether an object is marked as free, with the world's secret.
///
/// # Safety
/// An object starts at `object`, and its class has marks: nothing is around its engine.
pub(crate) unsafe fn is_marked(secret: u64, object: Object) -> bool {
    // SAFETY: the section Safety above: an object starts at `object`; it has at least two words.
    let second = unsafe { object.as_ptr().cast::<u64>().add(1).read() };
    second == key(secret, object)
}

/// An object of the heap at the fixed places, `bytes` bytes large: null for a request of more than
/// [`classes::LISTED_MAX`] bytes, and if the array of this thread's slot is empty.
#[inline(always)]
pub(crate) fn alloc_fixed(bytes: usize) -> *mut u8 {
    if bytes > classes::LISTED_MAX {
        return ptr::null_mut();
    }
    Native::pop_fixed(classes::place_listed(bytes)).map_or(ptr::null_mut(), handed_out)
}

/// As [`alloc_fixed`], filled with zeros.
#[inline(always)]
pub(crate) fn alloc_fixed_zeroed(bytes: usize) -> *mut u8 {
    if bytes > classes::LISTED_MAX {
        return ptr::null_mut();
    }
    let zeroed = |object| {
        Native::fill(object, bytes as u32, 0);
        handed_out(object)
    };
    Native::pop_fixed(classes::place_listed(bytes)).map_or(ptr::null_mut(), zeroed)
}

/// As [`alloc_fixed`], aligned to the power of two `align`. Null may also mean that only
/// [`classes::aligned`] knows a class.
#[inline(always)]
pub(crate) fn alloc_fixed_aligned(bytes: usize, align: usize) -> *mut u8 {
    let Some(place) = classes::place_aligned(bytes, align) else { return ptr::null_mut() };
    // The fixed places are of SLUB with nothing around it, whose slabs start with an object.
    Native::pop_fixed(place).map_or(ptr::null_mut(), handed_out)
}

/// As [`alloc_fixed`], for a request that [`classes::LISTED_MAX`] is too small for.
#[inline(always)]
pub(crate) fn alloc_fixed_reckoned(bytes: usize) -> *mut u8 {
    if bytes <= classes::LISTED_MAX || bytes > classes::MAX {
        return ptr::null_mut();
    }
    Native::pop_fixed(Place::of(classes::reckon(bytes) as u32)).map_or(ptr::null_mut(), handed_out)
}

/// Marks the object at the address of a pagemap entry as free, and returns its class. [`Freed::No`] if no
/// object of the heap starts there, or if only a slower look can tell.
#[inline]
pub(crate) fn mark_free<'a, W: Over, E: Front<W>>(
    heap: &'a Heap<E, W>,
    entry: &GivenEntry,
) -> Result<&'a E, Freed> {
    let number = entry.0.cache_index().wrapping_sub(heap.first() as usize);
    let Some(class) = heap.made(number) else { return Err(Freed::No) };
    let (slab, offset) = entry.0.place();
    if !class.starts_at(slab, offset) {
        return Err(Freed::No);
    }
    mark(Native::object_secret(), entry).map(|()| class)
}

/// As [`mark_free`], for the heap at the fixed places, of which a thread has these slots: returns the place
/// of the class's slots.
#[inline(always)]
pub(crate) fn mark_free_fixed(entry: &GivenEntry, slots: &FixedSlots) -> Result<Place, Freed> {
    if !slots.is_start(entry.0) {
        return Err(Freed::No);
    }
    mark(slots.object_secret(), entry).map(|()| entry.0.slots_place())
}

/// As [`mark_free_fixed`], for a free whose caller says how many bytes it asked for, at most
/// [`classes::LISTED_MAX`]. An entry of another class is [`Freed::No`].
#[inline(always)]
pub(crate) fn mark_free_sized(entry: &GivenEntry, bytes: usize, slots: &FixedSlots) -> Result<Place, Freed> {
    // The slot's address follows from the size, before the entry is there.
    let place = classes::place_listed(bytes);
    if entry.0.slots_place() != place || !slots.is_start(entry.0) {
        return Err(Freed::No);
    }
    mark(slots.object_secret(), entry).map(|()| place)
}

/// The place of the class of the live object, in the heap at the fixed places, that starts at the entry's
/// address. `None` may also mean that only a slower look can tell.
#[inline(always)]
pub(crate) fn live_place(entry: &GivenEntry, slots: &FixedSlots) -> Option<Place> {
    // SAFETY: `is_start`: an object starts here. Nothing is around the engine of the heap at the fixed
    // places.
    let is_live = slots.is_start(entry.0) && unsafe { !is_marked(slots.object_secret(), entry.0.object()) };
    is_live.then(|| entry.0.slots_place())
}

/// As [`live_place`], for a thread without slots of its own, and memory of any node.
#[inline]
pub(crate) fn live_place_anywhere(entry: &GivenEntry) -> Option<Place> {
    // SAFETY: `is_start_fixed`: an object starts here. Nothing is around the engine of the heap at the fixed
    // places.
    let is_live =
        entry.0.is_start_fixed() && unsafe { !is_marked(Native::object_secret(), entry.0.object()) };
    is_live.then(|| entry.0.slots_place())
}

/// What a `realloc` did.
pub(crate) enum Resized {
    /// The allocation serves as it is.
    Stays,
    /// Its contents are in a new object, and its own is freed.
    Moved(*mut u8),
    /// As [`Resized::Moved`], but the allocation is marked as free, and is in no array yet.
    Left(*mut u8),
    /// As [`Resized::Moved`], but the allocation was freed meanwhile: a double free.
    Before,
    /// Nothing: this thread's array has no object.
    No,
}

/// Gives a live object of the class with a place, in the heap at the fixed places, another size of at most
/// [`classes::LISTED_MAX`] bytes.
#[inline(always)]
pub(crate) fn resize(at: &Given, class: Place, bytes: usize) -> Resized {
    // The heap's caches are those of the classes, and the first ones.
    let usable = classes::size_listed(class.cache());
    if fits_well(usable, bytes) {
        return Resized::Stays;
    }
    let moved = alloc_fixed(bytes);
    let Some(object) = Object::at(at.0).filter(|_| !moved.is_null()) else { return Resized::No };
    // SAFETY: a live object of `usable` bytes starts at the address, and the new one has `bytes`. The
    // invariant of `Given`: no other thread uses the object.
    unsafe { ptr::copy_nonoverlapping(at.0, moved, usable.min(bytes)) };
    match mark_given(Native::object_secret(), object) {
        Ok(()) if Native::push_fixed(class, object) => Resized::Moved(moved),
        Ok(()) => Resized::Left(moved),
        Err(_) => Resized::Before,
    }
}

/// Whether an allocation with `usable` bytes serves a `realloc` to `bytes` bytes as it is: it has room, and
/// wastes little.
#[inline]
pub(crate) fn fits_well(usable: usize, bytes: usize) -> bool {
    let little = if usable > classes::MAX { usable / 8 } else { usable / 2 };
    bytes <= usable && (usable - bytes <= little || usable <= 64)
}

/// Marks an object as free, with the world's secret, if it was live. The caller found that an object starts
/// at the entry's address.
#[inline(always)]
pub(crate) fn mark(secret: u64, entry: &GivenEntry) -> Result<(), Freed> {
    mark_given(secret, entry.0.object())
}

/// As [`mark`], for an object whose address is that of a [`Given`].
#[inline(always)]
fn mark_given(secret: u64, object: Object) -> Result<(), Freed> {
    let key = key(secret, object);
    // SAFETY: the caller's finding: an object starts at `object`; it has at least two words. The invariant of
    // `GivenEntry`, and `Given::new`: no thread uses the object.
    let second = unsafe { &mut *object.as_ptr().cast::<u64>().add(1) };
    let live = *second != key;
    *second = key;
    if live { Ok(()) } else { Err(Freed::Before) }
}

impl<W: Over, E: Front<W>> Heap<E, W> {
    /// `bytes` bytes, aligned to 16; null without memory.
    #[inline(always)]
    pub fn alloc(&self, bytes: usize) -> *mut u8 {
        let object = self.alloc_fast(bytes);
        if object.is_null() { self.alloc_slow(bytes) } else { object }
    }

    /// Fast rung of [`Heap::alloc`]: this thread's array only. Null means "call `alloc_slow`", not "out of
    /// memory". Makes no call, so a caller that ends with `alloc_slow` needs no frame.
    #[inline(always)]
    pub(crate) fn alloc_fast(&self, bytes: usize) -> *mut u8 {
        if bytes > classes::LISTED_MAX {
            return ptr::null_mut();
        }
        let class = listed(bytes);
        let object = self.made(class).and_then(E::alloc_fast);
        object.map_or(ptr::null_mut(), handed_out)
    }

    /// Frees an object into this thread's array, if there is room.
    #[inline(always)]
    fn free_fast(&self, at: &Given) -> Freed {
        let Some(entry) = at.pagemap_local() else { return Freed::No };
        match mark_free(self, &entry) {
            Ok(class) if class.free_fast(entry.0.object(), entry.0.place().0) => Freed::Yes,
            Ok(_) => Freed::Marked,
            Err(what) => what,
        }
    }

    /// Frees memory. Any address may come: one that is no live allocation's start ends the process with a
    /// report.
    #[inline(always)]
    pub fn free(&self, at: Given) {
        match self.free_fast(&at) {
            Freed::Yes => {}
            // Called last, and looks the object up again: what is kept over a call would go through the
            // stack.
            Freed::Marked => self.free_slow_marked(at),
            Freed::Before => double_free(at.as_ptr()),
            Freed::No => self.free_slow(at),
        }
    }
}

/// Reports a double free, and does not return. The compiler must not know that: it calls a function last, and
/// without a frame, only if the function may return and does not unwind.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn double_free(at: *mut u8) {
    if black_box(true) {
        let class = Native::location(at).map_or(0, |location| location.cache % shared::NUMBERS);
        let bytes = classes::size(class as usize);
        misuse(format_args!("double free of {at:p} (malloc-{bytes})"))
    }
}
