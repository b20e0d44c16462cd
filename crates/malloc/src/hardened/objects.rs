//! Requests of the size classes: allocations and frees.

use super::bytes;
use super::found;
use super::ring::{Ring, places};
use super::tail::{Says, TAIL, room};
use super::{Hardened, UNSAID};
use crate::classes;
use crate::fast::Given;
use crate::heap::not_here;
use crate::shared;
use crate::signals;
use crate::slow::alloc_cold_lockless;
use crate::world::Native;
use slablab_native::{Location, Object, system};
use slablab_platform::PerCpu;
use slablab_slabs::{Engine, Front, Misuse};
use std::ptr;

/// Objects up to this size are compared to zeros as a whole when they are allocated.
const CHECKED: usize = 1024;
/// Bytes that are compared at the start and before the tail of a larger object.
const CHECKED_ENDS: usize = 64;

/// [`Hardened::class_for`] for a request of at most [`LISTED_MAX`] bytes without an alignment.
#[inline(always)]
fn class_listed(bytes: usize) -> usize {
    classes::listed(bytes + TAIL).min(classes::COUNT - 1)
}

/// The most bytes of a request whose class is in the table.
const LISTED_MAX: usize = classes::LISTED_MAX - TAIL;

impl Hardened {
    /// The class for `bytes` bytes aligned to `align`, a power of two. `None` if the request needs a block.
    #[inline(always)]
    pub(super) fn class_for(&self, bytes: usize, align: usize) -> Option<usize> {
        let sized = bytes.checked_add(TAIL)?;
        let sized = if align <= classes::STEP { sized } else { self.heap.aligned(sized, align)? };
        let class = (sized <= classes::MAX).then(|| classes::of(sized))?;
        (class < classes::COUNT).then_some(class)
    }

    /// `bytes` bytes, aligned to 16; null without memory.
    #[inline]
    pub(super) fn alloc(&self, bytes: usize) -> *mut u8 {
        if bytes <= LISTED_MAX {
            let class = class_listed(bytes);
            if let Some(object) = self.take(class) {
                return self.hand_out(class, object, bytes);
            }
        }
        self.alloc_cold(self.class_for(bytes, 1), bytes, 1).0
    }

    /// `bytes` bytes, aligned to the power of two `align`, and to 16; null without memory.
    #[inline]
    pub(crate) fn alloc_aligned(&self, bytes: usize, align: usize) -> *mut u8 {
        match self.class_for(bytes, align) {
            Some(class) => match self.take(class) {
                Some(object) => self.hand_out(class, object, bytes),
                None => self.alloc_cold(Some(class), bytes, align).0,
            },
            None => self.alloc_cold(None, bytes, align).0,
        }
    }

    /// `bytes` zeros, aligned to the power of two `align`, and to 16; null without memory.
    #[inline]
    pub(crate) fn alloc_zeroed(&self, bytes: usize, align: usize) -> *mut u8 {
        let class = self.class_for(bytes, align);
        if let Some(class) = class
            && let Some(object) = self.take(class)
        {
            return self.hand_out(class, object, bytes);
        }
        let (at, zeros) = self.alloc_cold(class, bytes, align);
        if !at.is_null() && !zeros {
            bytes::clear_new(at, bytes);
        }
        at
    }

    /// An object of this thread's ring, in whose place is one of its sheaf then.
    #[inline(always)]
    fn take(&self, class: usize) -> Option<Object> {
        let Some(object) = self.heap.made(class).and_then(|cache| cache.alloc_fast()) else {
            return self.take_slow(class, None);
        };
        match self.guards.rings[class].hot(|ring| ring.exchange(object, places(class), &self.guards.keys)) {
            Some(Some(other)) => Some(other),
            Some(None) => self.take_slow(class, None),
            None => self.take_slow(class, Some(object)),
        }
    }

    /// [`Hardened::take`] of an object that the sheaf gave, or after a look at the sheaf in vain. The first
    /// objects of a thread fill its ring.
    #[inline(never)]
    fn take_slow(&self, class: usize, mut given: Option<Object>) -> Option<Object> {
        for _ in 0..2 {
            let object = given.take().or_else(|| self.alloc_slow_slot(class))?;
            match self.with_ring(class, |ring| ring.exchange(object, places(class), &self.guards.keys)) {
                Some(Some(other)) => return Some(other),
                Some(None) => {}
                // A signal handler that interrupted such an operation.
                None => return Some(object),
            }
        }
        self.alloc_slow_slot(class)
    }

    /// An object from the slot of this thread or CPU.
    fn alloc_slow_slot(&self, class: usize) -> Option<Object> {
        self.heap.made(class)?.alloc_slow_slot()
    }

    /// Runs `f` on this thread's ring of a class. `None` for a signal handler that interrupted such an
    /// operation.
    fn with_ring<R>(&self, class: usize, f: impl Fn(&Ring) -> R) -> Option<R> {
        if let Some(done) = self.guards.rings[class].hot(&f) {
            return Some(done);
        }
        let _pass = Native::pass()?;
        let held = self.guards.rings[class].local()?;
        Some(f(&held))
    }

    /// Makes an object live, which its last free left as zeros.
    #[inline(always)]
    fn hand_out(&self, class: usize, object: Object, requested: usize) -> *mut u8 {
        let room = room(class);
        let before = bytes::replace_word(object, room, self.guards.keys.tail(object, room, requested));
        let zeros = if room < CHECKED {
            bytes::are_zeros(object, 0, room)
        } else {
            bytes::are_zeros(object, 0, CHECKED_ENDS) && bytes::are_zeros(object, room - CHECKED_ENDS, room)
        };
        if before != 0 || !zeros {
            found::written_when_free(object, class, before);
        }
        object.as_ptr()
    }

    /// Cold rung of an allocation. Also answers whether the memory is zeros.
    #[cold]
    #[inline(never)]
    fn alloc_cold(&self, class: Option<usize>, bytes: usize, align: usize) -> (*mut u8, bool) {
        system::keeping_errno(|| self.find_cold(class, bytes, align))
    }

    fn find_cold(&self, class: Option<usize>, bytes: usize, align: usize) -> (*mut u8, bool) {
        let none = (ptr::null_mut(), false);
        let Some(_pass) = Native::pass() else {
            return alloc_cold_lockless(bytes, align)
                .map_or(none, |(object, zeros)| (object.as_ptr(), zeros));
        };
        self.free_deferred();
        shared::upkeep();
        match class {
            Some(class) => match self.alloc_slow_slot(class) {
                Some(object) => (self.hand_out(class, object, bytes), true),
                None => self
                    .heap
                    .alloc_cold_engine(class, classes::size(class) as usize)
                    .map_or(none, |object| (self.hand_out(class, object, bytes), true)),
            },
            None => self.alloc_block(bytes, align).map_or(none, |at| (at, true)),
        }
    }

    /// Frees memory whose size, unless it is [`UNSAID`], and alignment the caller says: wrong ones end the
    /// process with a report. Any address may come: one that is no live allocation's start ends it, too.
    #[inline]
    pub(crate) fn free_sized(&self, at: Given, said: usize, align: usize) {
        if let Some(entry) = at.pagemap_local() {
            let (slab, offset) = entry.get().place();
            let class = entry.get().cache().wrapping_sub(self.heap.first()) as usize;
            if let Some(cache) = self.heap.made(class)
                && cache.starts_at(slab, offset)
            {
                let object = entry.get().object();
                self.end_life(class, object, said, align);
                if !cache.free_fast(object, slab) {
                    self.put(class, object);
                }
                return;
            }
        }
        self.free_cold(at, said, align);
    }

    /// Checks that the object of a class that starts at `object` is live, and makes it zeros.
    #[inline(always)]
    fn end_life(&self, class: usize, object: Object, said: usize, align: usize) {
        let requested = self.live_bytes("free", class, object);
        if said != UNSAID && said != requested || object.addr() & (align - 1) != 0 {
            found::said_wrong(object, class, requested, said, align);
        }
        bytes::set_word(object, room(class), 0);
        // The slack is zeros.
        bytes::clear(object, requested);
    }

    /// The requested bytes of a live object, whose slack and tail are as they should be. Anything else ends
    /// the process with a report that names `call`.
    #[inline(always)]
    pub(super) fn live_bytes(&self, call: &str, class: usize, object: Object) -> usize {
        let room = room(class);
        match self.guards.keys.read(object, room, room) {
            Says::Live(requested) if bytes::are_zeros(object, requested, room) => requested,
            says => found::not_live(call, object, class, &says, self.guards.keys.canary(object)),
        }
    }

    /// Puts an object of zeros where its engine keeps it: the slot, then the slab.
    #[cold]
    #[inline(never)]
    fn put(&self, class: usize, object: Object) {
        let Some(location) = Native::location(object.as_ptr()) else {
            return self.put_in_slab(class, object);
        };
        if self.heap.class(class).free_slow_slot(object, location.slab) {
            return;
        }
        system::keeping_errno(|| match Native::pass() {
            Some(_pass) => {
                self.free_deferred();
                shared::upkeep();
                self.put_in_slab(class, object);
            }
            None => signals::defer_free(object),
        });
    }

    /// Frees an object of zeros by the engine's own `free`. A damaged ring or sheaf ends the process.
    pub(super) fn put_in_slab(&self, class: usize, object: Object) {
        match self.heap.class(class).free(&self.heap.backing(), object) {
            Ok(()) => {}
            Err(Misuse::AlreadyFree) => found::double_free(object, class),
            Err(other) => found::ring_wrong(object, class, &other),
        }
    }

    /// Cold rung of a free: blocks, mappings, addresses at which nothing starts.
    #[cold]
    #[inline(never)]
    fn free_cold(&self, at: Given, said: usize, align: usize) {
        system::keeping_errno(|| {
            let Some(object) = Object::at(at.as_ptr()) else { return };
            let Some(location) = Native::location(at.as_ptr()) else {
                return self.free_elsewhere(object);
            };
            if let Some(block) = self.block_at(location) {
                return self.free_block_sized(&block, object, location, said, align);
            }
            let class = self.start_of("free", object, location);
            self.end_life(class, object, said, align);
            self.put(class, object);
        });
    }

    /// Frees the objects whose free was deferred, because the caller could not take a lock.
    pub(super) fn free_deferred(&self) {
        if signals::any_deferred() {
            signals::take_deferred().for_each(|object| self.free_deferred_one(object));
        }
    }

    #[cold]
    fn free_deferred_one(&self, object: Object) {
        let Some(location) = Native::location(object.as_ptr()) else { return };
        if let Some(block) = self.block_at(location) {
            return self.put_block(&block);
        }
        if let Some((class, _)) = self.heap.class_at(location) {
            // The link of the list of deferred frees.
            bytes::set_word(object, 0, 0);
            self.put_in_slab(class, object);
        }
    }

    /// The class of the object that starts at `object`, live or not. Anything else ends the process with a
    /// report that names `call`.
    pub(super) fn start_of(&self, call: &str, object: Object, location: Location) -> usize {
        match self.heap.start_at(call, object, location) {
            Ok((class, _)) => class,
            // A block of metadata.
            Err(_) => not_here(call, object.as_ptr()),
        }
    }
}
