//! The slow and cold rungs of a heap: any slot, the engine's own way, blocks, mappings, other sizes.
//! `unsafe`: hands out memory.

use crate::classes;
use crate::fast::{Freed, Given, double_free, fits_well, handed_out, is_marked, mark, mark_free};
use crate::heap::{Heap, not_here};
use crate::mappings;
use crate::probes;
use crate::sampled;
use crate::shared;
use crate::signals;
use crate::world::{Native, Over};
use slablab_native::report::{Line, misuse};
use slablab_native::{Location, Object, PagemapEntry, system};
use slablab_platform::Hooks;
use slablab_slabs::Front;
use std::ptr;

/// A mapping of its own stays one down to this part of the largest block of page frames: less is copied, so
/// that it leaves the list of mappings.
pub(crate) const KEPT_FRACTION: usize = 8;
/// While a profiler listens, of so many requests that spent a slot's credit one goes on to upkeep.
const UPKEEP_EVERY: u32 = 32;

impl<W: Over, E: Front<W>> Heap<E, W> {
    /// Slow rung of [`Heap::alloc`]: the slot of this thread or CPU, then the cold rung.
    #[inline(never)]
    pub(crate) fn alloc_slow(&self, bytes: usize) -> *mut u8 {
        self.alloc_slow_aligned(bytes, 1)
    }

    /// As [`Heap::alloc_slow`], aligned to `align`, as the objects of the request's class are.
    #[inline(always)]
    fn alloc_slow_aligned(&self, bytes: usize, align: usize) -> *mut u8 {
        if bytes <= classes::MAX {
            if self.is_heard()
                && let Some(object) = self.alloc_heard(bytes)
            {
                return object;
            }
            let class = classes::of(bytes);
            if let Some(object) = self.made(class).and_then(E::alloc_slow_slot) {
                return handed_out(object);
            }
        }
        self.alloc_cold(bytes, align)
    }

    /// Whether a profiler listens to this heap's allocations: the process's own heap if it is SLUB with
    /// nothing around it.
    #[inline]
    fn is_heard(&self) -> bool {
        probes::is_heard() && self.first() == shared::OWN * shared::NUMBERS
    }

    /// A request of a class that a profiler may want to see. `None` if it is an ordinary one.
    #[cold]
    #[inline(never)]
    fn alloc_heard(&self, bytes: usize) -> Option<*mut u8> {
        probes::look();
        // The first request of a class is an ordinary one.
        let class = self.made(classes::of(bytes))?;
        let spent = Native::take_spent();
        let Some(weight) = probes::sample(bytes, spent.unwrap_or(1)) else {
            // The credit is there again. Now and then upkeep takes its turn, as it does without a profiler.
            let goes_on = spent.is_some() && !Native::random().is_multiple_of(UPKEEP_EVERY);
            return if goes_on { class.alloc_fast().map(handed_out) } else { None };
        };
        let block = || {
            let _pass = Native::pass()?;
            let (object, zeros) = self.alloc_large(bytes, class.object_align() as usize)?;
            Some(if zeros { object.as_ptr() } else { handed_out(object) })
        };
        let at = system::keeping_errno(block)?;
        Object::at(at).inspect(|object| probes::allocated(*object, bytes, weight));
        Some(at)
    }

    #[cold]
    #[inline(never)]
    fn alloc_cold(&self, bytes: usize, align: usize) -> *mut u8 {
        if bytes > classes::MAX {
            return self.blocks(bytes, align).map_or(ptr::null_mut(), |(object, _)| object.as_ptr());
        }
        system::keeping_errno(|| {
            let Some(_pass) = Native::pass() else {
                return alloc_cold_lockless(bytes, align)
                    .map_or(ptr::null_mut(), |(object, _)| object.as_ptr());
            };
            self.free_deferred();
            shared::upkeep();
            let class = classes::of(bytes);
            // With guards around the engine, an object has no room for a key.
            let given = |object: Object| if E::GUARDS { object.as_ptr() } else { handed_out(object) };
            self.alloc_cold_engine(class, bytes).map_or(ptr::null_mut(), given)
        })
    }

    /// Frees the objects whose free was deferred, because the caller could not take a lock.
    #[inline]
    fn free_deferred(&self) {
        if self.is_own() && signals::any_deferred() {
            self.free_deferred_cold();
        }
    }

    #[cold]
    #[inline(never)]
    fn free_deferred_cold(&self) {
        signals::take_deferred().for_each(|object| self.free_deferred_one(object));
    }

    /// Page frames, or a mapping; and whether they are zeros.
    fn blocks(&self, bytes: usize, align: usize) -> Option<(Object, bool)> {
        let found = system::keeping_errno(|| self.find_blocks(bytes, align))?;
        // A unit of the region for signal handlers is no block.
        if self.is_heard()
            && (bytes > Native::largest_block() || Native::location(found.0.as_ptr()).is_some())
        {
            probes::block(found.0, bytes);
        }
        Some(found)
    }

    fn find_blocks(&self, bytes: usize, align: usize) -> Option<(Object, bool)> {
        let Some(_pass) = Native::pass() else { return alloc_cold_lockless(bytes, align) };
        if bytes.max(align) > Native::largest_block() {
            return Some((Object::at(mappings::alloc(bytes, align)?)?, true));
        }
        // A mapping of its own if the heap has no such block: its address space may be used up, or in pieces.
        let block = || {
            self.alloc_large(bytes, align).inspect(|(object, zeros)| {
                // The frames may hold the key of an object that began here. A `realloc` of a block that the
                // program never wrote would copy the key, and another one perhaps back to this address.
                if !zeros {
                    handed_out(*object);
                }
            })
        };
        block().or_else(|| Some((Object::at(mappings::alloc(bytes, align)?)?, true))).or_else(|| {
            shared::empty_caches();
            block()
        })
    }

    /// `bytes` bytes, aligned to the power of two `align`, and to 16; null without memory.
    #[inline]
    pub fn alloc_aligned(&self, bytes: usize, align: usize) -> *mut u8 {
        if align <= classes::STEP {
            return self.alloc(bytes);
        }
        match self.aligned(bytes, align) {
            Some(sized) => self.alloc_sized(sized, align),
            None => self.blocks(bytes, align).map_or(ptr::null_mut(), |(object, _)| object.as_ptr()),
        }
    }

    /// An object of the class of `bytes` bytes, whose objects are aligned to `align`.
    #[inline]
    fn alloc_sized(&self, bytes: usize, align: usize) -> *mut u8 {
        let object = self.alloc_fast(bytes);
        if object.is_null() { self.alloc_slow_aligned(bytes, align) } else { object }
    }

    /// `bytes` zeros, aligned to the power of two `align`, and to 16; null without memory.
    #[inline]
    pub fn alloc_zeroed(&self, bytes: usize, align: usize) -> *mut u8 {
        let sized = if align <= classes::STEP { Some(bytes) } else { self.aligned(bytes, align) };
        let (object, zeros) = match sized {
            Some(sized) if sized <= classes::MAX => (self.alloc_sized(sized, align), false),
            _ => self
                .blocks(bytes, align)
                .map_or((ptr::null_mut(), false), |(object, zeros)| (object.as_ptr(), zeros)),
        };
        if !object.is_null() && !zeros {
            // SAFETY: `alloc` gave an object of at least `sized` bytes, which are not fewer than `bytes`, or
            // `blocks` gave at least `bytes` bytes.
            unsafe { object.write_bytes(0, bytes) };
        }
        object
    }

    /// Slow rung of [`Heap::free`]: memory of another node, a slot of a CPU, or an address that only a slower
    /// look can tell.
    #[inline(never)]
    pub(crate) fn free_slow(&self, at: Given) {
        if let Some(entry) = at.pagemap() {
            let ((slab, _), object) = (entry.get().place(), entry.get().object());
            match mark_free(self, &entry) {
                Ok(class) if class.free_slow_slot(object, slab) => return,
                Err(Freed::Before) => double_free(at.as_ptr()),
                // Where an object starts may be known to the engine alone, if its slabs differ in size.
                Err(Freed::No)
                    if self.owns(entry.get()) && mark(Native::object_secret(), &entry).is_err() =>
                {
                    double_free(at.as_ptr())
                }
                _ => {}
            }
        }
        self.free_cold(at);
    }

    /// Whether an object of this heap starts at an entry's address, by the engine's exact answer. Not for
    /// heaps with guards: their objects have no marks.
    #[cold]
    fn owns(&self, entry: PagemapEntry) -> bool {
        let class = self.made(entry.cache().wrapping_sub(self.first()) as usize);
        !E::GUARDS && class.is_some_and(|class| class.owns(entry.object()).is_ok())
    }

    /// Slow rung of a free whose object is marked as free, and found no room in an array: engines without
    /// arrays have other places in the slot.
    #[inline(never)]
    pub(crate) fn free_slow_marked(&self, at: Given) {
        if let Some(entry) = Native::pagemap(at.as_ptr())
            && let number = entry.cache().wrapping_sub(self.first()) as usize
            && let Some(class) = self.made(number)
            && let (object, slab) = (entry.object(), entry.place().0)
            && class.free_slow_slot(object, slab)
        {
            return;
        }
        self.free_cold(at);
    }

    /// Cold rung of [`Heap::free`]: an object that is marked as free, and for which the slot has no room; and
    /// any other address.
    #[cold]
    #[inline(never)]
    fn free_cold(&self, at: Given) {
        system::keeping_errno(|| {
            let Some(object) = Object::at(at.as_ptr()) else { return };
            let location = Native::location(at.as_ptr());
            if location.is_none() {
                match signals::free(at.as_ptr()) {
                    signals::Freed::Yes => return,
                    signals::Freed::Not => misuse(format_args!(
                        "free of {object:?}: in the signal-handler reserve, but not allocated (double free?)"
                    )),
                    signals::Freed::Elsewhere => {}
                }
            }
            let Some(_pass) = Native::pass() else {
                return self.free_lockless(object, location);
            };
            self.free_deferred();
            self.free_cold_engine(object, location);
        });
    }

    /// Cold rung of [`Heap::free`] for a caller without a pass, who may take no lock: unmaps a mapping, and
    /// defers the free of an object. What is neither is reported, and not written to.
    #[cold]
    fn free_lockless(&self, object: Object, location: Option<Location>) {
        let Some(location) = location else {
            probes::freed(object.addr());
            if !mappings::free(object.as_ptr()) {
                not_here("free", object.as_ptr());
            }
            return;
        };
        if self.class_at(location).is_none() {
            self.defer_block(object, location);
        } else if let Ok((_, class)) = self.start_at("free", object, location)
            && E::GUARDS
            && class.check_live(object).is_err()
        {
            let bytes = class.geometry().object_size;
            misuse(format_args!("double free of {object:?} (malloc-{bytes})"));
        }
        signals::defer_free(object);
    }

    /// The class number and the cache of the object that starts at `object`, live or not. `Err` is the usable
    /// bytes of the large block that starts there. Anything else ends the process with a report that names
    /// `call`. Takes no lock.
    pub(crate) fn start_at(
        &self,
        call: &str,
        object: Object,
        location: Location,
    ) -> Result<(usize, &E), usize> {
        let Some((number, class)) = self.class_at(location) else {
            return Err(self.live_block(call, object, location));
        };
        if !class.starts_at(location.slab, location.offset) && class.owns(object).is_err() {
            let (offset, bytes) = (location.offset, class.geometry().object_size);
            misuse(format_args!(
                "{call} of {object:?}: not the start of an object: at offset {offset} in a slab of malloc-{bytes}"
            ));
        }
        Ok((number, class))
    }

    /// Bytes that may be used at the start of a live allocation; 0 for null.
    pub fn usable(&self, at: *const u8) -> usize {
        if at.is_null() { 0 } else { self.live("malloc_usable_size", at.cast_mut()).0 }
    }

    /// The usable bytes of the live allocation that starts at `at`, and its slab or block if it is in one.
    /// Any address may come: what is no live allocation ends the process with a report that names `call`.
    fn live(&self, call: &str, at: *mut u8) -> (usize, Option<Location>) {
        let Some((object, location)) = Object::at(at).zip(Native::location(at)) else {
            let elsewhere = signals::usable(at.addr()).or_else(|| mappings::usable(at.addr()));
            return (elsewhere.unwrap_or_else(|| not_here(call, at)), None);
        };
        let (_, class) = match self.start_at(call, object, location) {
            Ok(found) => found,
            Err(bytes) => return (bytes, Some(location)),
        };
        let bytes = class.geometry().object_size;
        let is_live = if E::GUARDS {
            class.check_live(object).is_ok()
        } else {
            // SAFETY: `starts_at` or `owns` said that an object of this class starts here; without guards the
            // class has marks.
            unsafe { !is_marked(Native::object_secret(), object) }
        };
        if !is_live {
            misuse(format_args!("{call} of {object:?}: already freed (malloc-{bytes})"));
        }
        (class.usable(object) as usize, Some(location))
    }

    /// Reports a size or an alignment that is not what the live allocation at `at` was asked with; `bytes` is
    /// `None` where the caller does not say. Says nothing of an address at which no allocation starts: its
    /// free is reported.
    pub(crate) fn check_sized(&self, at: *mut u8, bytes: Option<usize>, align: usize) {
        let Some((object, location)) = Object::at(at).zip(Native::location(at)) else { return };
        if !at.addr().is_multiple_of(align) {
            Line::say(format_args!(
                "sized free of {object:?}: given an alignment of {align} bytes, expected less"
            ));
            return;
        }
        let Some(given) = bytes else { return };
        match self.class_at(location) {
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
            None if location.offset != 0 => {}
            None => {
                let usable = self.live_block("sized free", object, location);
                if given > usable || usable - given > (usable / 8).max(system::page_size()) {
                    Line::say(format_args!(
                        "sized free of {object:?}: given {given} bytes, expected up to {usable} (a large block)"
                    ));
                }
            }
        }
    }

    /// Whether an object of class `number` with `usable` bytes may be what a request of `bytes` bytes got.
    /// Where the size that was asked for is noted in the object, it is the usable size.
    fn is_of_class(&self, number: usize, usable: usize, bytes: usize, align: usize) -> bool {
        let sized = if align <= classes::STEP { Some(bytes) } else { self.aligned(bytes, align) };
        sized.is_some_and(|bytes| match classes::size(number) as usize {
            size if usable < size => usable == bytes.max(size_of::<usize>()),
            _ => bytes <= classes::MAX && classes::of(bytes) == number,
        })
    }

    /// Gives an allocation another size, where it is or elsewhere; null without memory, and then the
    /// allocation stays as it is.
    pub fn realloc(&self, given: Given, bytes: usize, align: usize) -> *mut u8 {
        let at = given.as_ptr();
        let (usable, location) = self.live("realloc", at);
        // It stays as it is if it fits and wastes little; then where it is, if it can. Where objects are
        // looked after, it stays only if a new one would be like it: red zones and sized frees go by the size
        // that was asked for last.
        let class = location.and_then(|location| self.class_at(location)).filter(|_| E::GUARDS);
        let fits =
            bytes <= usable && class.is_none_or(|(number, _)| self.is_of_class(number, usable, bytes, align));
        if fits && fits_well(usable, bytes) {
            return at;
        }
        let pass = if bytes > classes::MAX { Native::pass() } else { None };
        if pass.is_some() {
            let resized = system::keeping_errno(|| match location {
                Some(location) if self.resize_large(location, bytes) => Some(at),
                None if bytes > Native::largest_block() / KEPT_FRACTION => mappings::resize(at, bytes, align),
                _ => None,
            });
            if let Some(resized) = resized {
                if self.is_heard() || sampled::any() {
                    Object::at(resized).inspect(|object| probes::resized(at.addr(), *object, bytes));
                }
                return resized;
            }
        }
        if fits && usable - bytes <= usable / 2 {
            return at;
        }
        let moved = self.alloc_aligned(bytes, align);
        if !moved.is_null() {
            // SAFETY: `live` said that `at` has `usable` bytes, and `alloc_aligned` gave `bytes`.
            // `Given::new`: no other thread uses `at`.
            unsafe { ptr::copy_nonoverlapping(at, moved, usable.min(bytes)) };
            self.free(given);
        }
        moved
    }
}

/// Memory for a request without a pass, which may lock nothing: a unit of the region for signal handlers or,
/// where that has none, a mapping. Also answers whether it is zeros.
#[cold]
pub(crate) fn alloc_cold_lockless(bytes: usize, align: usize) -> Option<(Object, bool)> {
    let unit = signals::alloc(bytes, align).and_then(Object::at).map(|object| (object, false));
    unit.or_else(|| Some((Object::at(mappings::alloc(bytes, align)?)?, true)))
}
