//! What a program calls a heap for: bytes for addresses. `unsafe`: hands out memory.
//!
//! A freed object carries a key in its second word, made of a secret and its own address: who frees it again is found. Above
//! [`Native::FLAG_BYTES`] a flag beside the heap says the same: the beginnings of such objects meet in few sets of a cache, and
//! are better left alone.

use crate::classes;
use crate::heap::{Heap, Over};
use crate::mappings;
use crate::shared;
use crate::signals;
use crate::world::Native;
use slablab_native::report::{Line, misuse};
use slablab_native::{Home, Object, Spot, system};
use slablab_slabs::Engine;
use std::hint::{assert_unchecked, black_box, cold_path};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// The secret of keys.
static SECRET: AtomicU64 = AtomicU64::new(0);

/// Chooses the secret. Once, before there is a heap.
pub(crate) fn start() {
    SECRET.store(system::secret(), Relaxed);
}

/// What became of an address.
pub(crate) enum Freed {
    /// It is in the slot.
    Yes,
    /// It is an object's, marked as free, and nothing else.
    Marked,
    /// It is an object's that was marked as free before.
    Before,
    /// Nothing.
    No,
}

/// A mapping of its own stays one down to this part of the largest block of page frames: less is copied, so that it leaves the
/// list of mappings.
const KEPT_FRACTION: usize = 8;

/// The first class whose objects have a flag.
const FLAGGED: usize = classes::reckon(Native::FLAG_BYTES) + 1;
const FREED: u8 = 1;

#[inline(always)]
fn listed(bytes: usize) -> usize {
    let class = classes::listed(bytes);
    // SAFETY: there is nothing but classes in the table.
    unsafe { assert_unchecked(class < classes::COUNT) };
    class
}

/// The object is live from here on.
#[inline(always)]
fn handed_out(class: usize, object: Object) -> *mut u8 {
    if class < FLAGGED { keyed(object) } else { flagged(object) }
}

#[inline(always)]
fn keyed(object: Object) -> *mut u8 {
    // SAFETY: an object has at least two words.
    unsafe { object.as_ptr().cast::<u64>().add(1).write(0) };
    object.as_ptr()
}

#[inline(always)]
fn flagged(object: Object) -> *mut u8 {
    Native::flag(object).store(0, Relaxed);
    object.as_ptr()
}

/// What the second word of a free object of a class with keys holds.
#[inline(always)]
fn key(object: Object) -> u64 {
    SECRET.load(Relaxed) ^ object.addr() as u64
}

/// The object of a class with keys is free from here on; whether it was live.
///
/// # Safety
/// An object starts there, and nobody uses it.
#[inline(always)]
unsafe fn take_key(object: Object) -> bool {
    let key = key(object);
    // SAFETY: an object has at least two words, and they are the caller's.
    let second = unsafe { &mut *object.as_ptr().cast::<u64>().add(1) };
    let live = *second != key;
    *second = key;
    live
}

/// The same of a class with flags.
#[inline(always)]
fn take_flag(object: Object) -> bool {
    let flag = Native::flag(object);
    let live = flag.load(Relaxed) != FREED;
    flag.store(FREED, Relaxed);
    live
}

/// Gives back what is at a spot, as far as this thread's slot takes it. The heap is asked for where a slab has a number of its
/// caches.
#[inline(always)]
pub(crate) fn free_fast<'a, W: Over, E: Engine<W> + 'a>(
    heap: impl FnOnce() -> &'a Heap<E, W>,
    first: u32,
    spot: Spot,
) -> Freed {
    match mark_free(heap, first, spot) {
        Ok(class) if class.free_first(spot.object(), spot.place().0) => Freed::Yes,
        Ok(_) => Freed::Marked,
        Err(what) => what,
    }
}

/// Marks the object at a spot as free, and answers its class. [`Freed::No`] where no object of the heap starts, as far as
/// can be told fast.
#[inline(always)]
fn mark_free<'a, W: Over, E: Engine<W> + 'a>(
    heap: impl FnOnce() -> &'a Heap<E, W>,
    first: u32,
    spot: Spot,
) -> Result<&'a E, Freed> {
    let ((slab, offset), object) = (spot.place(), spot.object());
    let number = spot.cache().wrapping_sub(first) as usize;
    let (class, live) = if number < FLAGGED {
        let class = heap().class(number);
        if !class.starts_at(slab, offset) {
            return Err(Freed::No);
        }
        // SAFETY: an object starts there, and it is the caller's.
        (class, unsafe { take_key(object) })
    } else {
        cold_path();
        if number >= classes::COUNT {
            return Err(Freed::No);
        }
        let class = heap().class(number);
        if !class.starts_at(slab, offset) {
            return Err(Freed::No);
        }
        (class, take_flag(object))
    };
    if live { Ok(class) } else { Err(Freed::Before) }
}

impl<W: Over, E: Engine<W>> Heap<E, W> {
    /// `bytes` bytes, aligned to 16; null without memory.
    #[inline(always)]
    pub fn alloc(&self, bytes: usize) -> *mut u8 {
        let object = self.alloc_fast(bytes);
        if object.is_null() { self.alloc_slow(bytes) } else { object }
    }

    /// The same from this thread's slot alone. Calls nothing, so that whoever ends with a call of the rest needs no frame.
    #[inline(always)]
    pub(crate) fn alloc_fast(&self, bytes: usize) -> *mut u8 {
        if bytes <= Native::FLAG_BYTES {
            return self.alloc_fast_keyed(bytes);
        }
        cold_path();
        if bytes <= classes::LISTED_MAX { self.alloc_fast_flagged(bytes) } else { ptr::null_mut() }
    }

    /// The same for a class with keys.
    #[inline(always)]
    pub(crate) fn alloc_fast_keyed(&self, bytes: usize) -> *mut u8 {
        self.class(listed(bytes)).alloc_first().map_or(ptr::null_mut(), keyed)
    }

    /// The same for a class with flags.
    #[inline(always)]
    pub(crate) fn alloc_fast_flagged(&self, bytes: usize) -> *mut u8 {
        self.class(listed(bytes)).alloc_first().map_or(ptr::null_mut(), flagged)
    }

    /// The same from any slot that may be used here, or by the slow way.
    #[inline(never)]
    pub(crate) fn alloc_slow(&self, bytes: usize) -> *mut u8 {
        if bytes <= classes::MAX {
            let class = classes::of(bytes);
            if let Some(object) = self.class(class).alloc_hot() {
                return handed_out(class, object);
            }
        }
        self.alloc_cold(bytes)
    }

    #[cold]
    #[inline(never)]
    fn alloc_cold(&self, bytes: usize) -> *mut u8 {
        if bytes > classes::MAX {
            return self.blocks(bytes, 1).map_or(ptr::null_mut(), |(object, _)| object.as_ptr());
        }
        let Some(_pass) = Native::pass() else {
            return allocate_apart(bytes, 1).map_or(ptr::null_mut(), |(object, _)| object.as_ptr());
        };
        self.free_waiting();
        let class = classes::of(bytes);
        // What looks after its objects itself leaves no room for a key.
        let given = |object: Object| if E::GUARDS { object.as_ptr() } else { handed_out(class, object) };
        self.alloc_in_engine(class, bytes).map_or(ptr::null_mut(), given)
    }

    /// Frees the objects that were freed without a pass.
    #[inline]
    fn free_waiting(&self) {
        if self.is_own() && signals::any_waits() {
            self.free_waiting_cold();
        }
    }

    #[cold]
    #[inline(never)]
    fn free_waiting_cold(&self) {
        signals::waiting()
            .filter_map(Object::at)
            .for_each(|object| self.free_in_engine(object, Native::home(object.as_ptr())));
    }

    #[inline]
    fn free_in_engine(&self, object: Object, home: Option<Home>) {
        if home.is_none() && mappings::free(object.as_ptr()) {
            return;
        }
        self.free_object(object, home);
    }

    /// Page frames, or a mapping; and whether they are zeros.
    fn blocks(&self, bytes: usize, align: usize) -> Option<(Object, bool)> {
        let Some(_pass) = Native::pass() else { return allocate_apart(bytes, align) };
        if bytes.max(align) > Native::largest_block() {
            return Some((Object::at(mappings::alloc(bytes, align)?)?, true));
        }
        // A mapping of its own if the heap has no such block: its address space may be used up, or in pieces.
        self.alloc_large(bytes, align).or_else(|| Some((Object::at(mappings::alloc(bytes, align)?)?, true)))
    }

    /// The same, aligned to a power of two.
    #[inline]
    pub fn alloc_aligned(&self, bytes: usize, align: usize) -> *mut u8 {
        if align <= classes::STEP {
            return self.alloc(bytes);
        }
        match Self::aligned(bytes, align) {
            Some(bytes) => self.alloc(bytes),
            None => self.blocks(bytes, align).map_or(ptr::null_mut(), |(object, _)| object.as_ptr()),
        }
    }

    /// The same, all zeros.
    #[inline]
    pub fn alloc_zeroed(&self, bytes: usize, align: usize) -> *mut u8 {
        let sized = if align <= classes::STEP { Some(bytes) } else { Self::aligned(bytes, align) };
        match sized {
            Some(sized) if sized <= classes::MAX => {
                let object = self.alloc(sized);
                if !object.is_null() {
                    // SAFETY: the object has so many bytes.
                    unsafe { object.write_bytes(0, bytes) };
                }
                object
            }
            _ => match self.blocks(bytes, align) {
                Some((object, true)) => object.as_ptr(),
                Some((object, false)) => {
                    // SAFETY: the block has so many bytes.
                    unsafe { object.as_ptr().write_bytes(0, bytes) };
                    object.as_ptr()
                }
                None => ptr::null_mut(),
            },
        }
    }

    /// Gives memory back. Any address may come: what was not allocated ends the process with a report.
    ///
    /// # Safety
    /// Nobody uses the memory.
    #[inline(always)]
    pub unsafe fn free(&self, at: *mut u8) {
        let spot = Native::near(at);
        match spot.map_or(Freed::No, |spot| free_fast(|| self, self.first(), spot)) {
            Freed::Yes => {}
            // Called last, and looks again: what is kept over a call goes through the stack.
            Freed::Marked => self.free_marked_slow(at),
            Freed::Before => double_free(at),
            Freed::No => self.free_slow(at),
        }
    }

    /// What is not near: of another node, where slots are CPUs', or not to be told fast.
    #[inline(never)]
    pub(crate) fn free_slow(&self, at: *mut u8) {
        if let Some(spot) = Native::spot(at) {
            let ((slab, _), object) = (spot.place(), spot.object());
            match mark_free(|| self, self.first(), spot) {
                Ok(class) if class.free_hot(object, slab) => return,
                Err(Freed::Before) => double_free(at),
                _ => {}
            }
        }
        self.free_cold(at);
    }

    /// What is near and marked as free, and was not taken at first: engines without arrays have other places in the slot.
    #[inline(never)]
    pub(crate) fn free_marked_slow(&self, at: *mut u8) {
        if let Some(spot) = Native::spot(at)
            && let number = spot.cache().wrapping_sub(self.first()) as usize
            && number < classes::COUNT
            && self.class(number).free_hot(spot.object(), spot.place().0)
        {
            return;
        }
        self.free_cold(at);
    }

    /// What is marked as free, and found no room; and everything else.
    #[cold]
    #[inline(never)]
    fn free_cold(&self, at: *mut u8) {
        system::keeping_errno(|| self.free_cold_inner(at));
    }

    fn free_cold_inner(&self, at: *mut u8) {
        let Some(object) = Object::at(at) else { return };
        let home = Native::home(at);
        if home.is_none() {
            match signals::free(at) {
                signals::Freed::Yes => return,
                signals::Freed::Not => {
                    misuse(format_args!("free of {at:p}: not allocated, of what signal handlers get"))
                }
                signals::Freed::Elsewhere => {}
            }
        }
        let Some(_pass) = Native::pass() else {
            // SAFETY: the caller says that it is allocated and that nobody uses it.
            return unsafe { signals::keep(at) };
        };
        self.free_waiting();
        self.free_in_engine(object, home);
    }

    /// Bytes that may be used at an address that was allocated; 0 for null.
    pub fn usable(&self, at: *const u8) -> usize {
        if at.is_null() { 0 } else { self.live("malloc_usable_size", at.cast_mut()).0 }
    }

    /// The usable bytes of the live allocation that starts at `at`, and its slab or block if it is in one. Any address may
    /// come: what is no live allocation ends the process with a report that names `call`.
    fn live(&self, call: &str, at: *mut u8) -> (usize, Option<Home>) {
        let Some((object, home)) = Object::at(at).zip(Native::home(at)) else {
            let elsewhere = signals::usable(at.addr()).or_else(|| mappings::usable(at.addr()));
            let bytes = elsewhere.unwrap_or_else(|| {
                misuse(format_args!("{call} of {at:p}: not in the heap, or in an empty slab"))
            });
            return (bytes, None);
        };
        let Some((number, class)) = self.class_at(home) else {
            return (self.live_block(call, object, home), Some(home));
        };
        let bytes = class.geometry().object_size;
        if !class.starts_at(home.slab, home.offset) && class.owns(object).is_err() {
            let offset = home.offset;
            misuse(format_args!(
                "{call} of {object:?}: inside an object, or behind the last, of a slab of malloc-{bytes} at offset {offset}"
            ));
        }
        let is_live = if E::GUARDS {
            class.check_live(object).is_ok()
        } else if number < FLAGGED {
            // SAFETY: an object starts here, as was seen above; it has two words, and the caller says that it is theirs.
            let second = unsafe { object.as_ptr().cast::<u64>().add(1).read() };
            second != key(object)
        } else {
            Native::flag(object).load(Relaxed) != FREED
        };
        if !is_live {
            misuse(format_args!("{call} of {object:?}: already freed (malloc-{bytes})"));
        }
        (class.usable(object) as usize, Some(home))
    }

    /// Reports a size or an alignment that is not what the live allocation at `at` was asked with; `bytes` is `None` where the
    /// caller does not say. Says nothing of an address at which no allocation starts: its free is reported.
    pub(crate) fn check_sized(&self, at: *mut u8, bytes: Option<usize>, align: usize) {
        let Some((object, home)) = Object::at(at).zip(Native::home(at)) else { return };
        if !at.addr().is_multiple_of(align) {
            Line::say(format_args!(
                "sized free of {object:?}: given an alignment of {align} bytes, expected less"
            ));
            return;
        }
        let Some(given) = bytes else { return };
        match self.class_at(home) {
            Some((number, class)) if class.check_live(object).is_ok() => {
                let usable = class.usable(object) as usize;
                if !self.is_of_class(number, usable, given, align) {
                    let size = class.geometry().object_size;
                    Line::say(format_args!(
                        "sized free of {object:?}: given {given} bytes, expected {usable} (malloc-{size})"
                    ));
                }
            }
            Some(_) => {}
            None if home.offset != 0 => {}
            None => {
                let usable = self.live_block("sized free", object, home);
                if given > usable || usable - given > (usable / 8).max(system::page_size()) {
                    Line::say(format_args!(
                        "sized free of {object:?}: given {given} bytes, expected up to {usable} (a large block)"
                    ));
                }
            }
        }
    }

    /// Whether an object of class `number` with `usable` bytes may be what a request of `bytes` bytes got. Where the size that
    /// was asked for is noted in the object, it is the usable size.
    fn is_of_class(&self, number: usize, usable: usize, bytes: usize, align: usize) -> bool {
        let sized = if align <= classes::STEP { Some(bytes) } else { Self::aligned(bytes, align) };
        sized.is_some_and(|bytes| match classes::size(number) as usize {
            size if usable < size => usable == bytes.max(size_of::<usize>()),
            _ => bytes <= classes::MAX && classes::of(bytes) == number,
        })
    }

    /// Moves an allocation to another size; null without memory, and then the old one stays.
    ///
    /// # Safety
    /// Nobody else uses the memory.
    pub unsafe fn realloc(&self, at: *mut u8, bytes: usize, align: usize) -> *mut u8 {
        let (usable, home) = self.live("realloc", at);
        // It stays as it is if it fits and wastes little; then where it is, if it can. Where objects are looked after, it stays
        // only if a new one would be like it: red zones and sized frees go by the size that was asked for last.
        let little = if usable > classes::MAX { usable / 8 } else { usable / 2 };
        let class = home.and_then(|home| self.class_at(home)).filter(|_| E::GUARDS);
        let fits =
            bytes <= usable && class.is_none_or(|(number, _)| self.is_of_class(number, usable, bytes, align));
        if fits && (usable - bytes <= little || usable <= 64) {
            return at;
        }
        let pass = if bytes > classes::MAX { Native::pass() } else { None };
        if pass.is_some() {
            let resized = match home {
                Some(home) if self.resize_large(home, bytes) => Some(at),
                None if bytes > Native::largest_block() / KEPT_FRACTION => mappings::resize(at, bytes, align),
                _ => None,
            };
            if let Some(resized) = resized {
                return resized;
            }
        }
        if fits && usable - bytes <= usable / 2 {
            return at;
        }
        let moved = self.alloc_aligned(bytes, align);
        if !moved.is_null() {
            // SAFETY: both are allocated, and have that many bytes; the old one is the caller's to give.
            unsafe {
                ptr::copy_nonoverlapping(at, moved, usable.min(bytes));
                self.free(at);
            }
        }
        moved
    }
}

/// Memory for a request without a pass, which may lock nothing: a unit of the region for signal handlers or, where that has
/// none, a mapping. Also answers whether it is zeros.
#[cold]
fn allocate_apart(bytes: usize, align: usize) -> Option<(Object, bool)> {
    let unit = signals::alloc(bytes, align).and_then(Object::at).map(|object| (object, false));
    unit.or_else(|| Some((Object::at(mappings::alloc(bytes, align)?)?, true)))
}

/// Does not return. The compiler is not to know: what may return is called last, and needs no frame. C's, as it does not unwind.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn double_free(at: *mut u8) {
    if black_box(true) {
        let class = Native::home(at).map_or(0, |home| home.cache % shared::NUMBERS);
        let bytes = classes::size(class as usize);
        misuse(format_args!("double free of {at:p} (malloc-{bytes})"))
    }
}
