//! Where the bytes of a cache are: a sum that holds to the byte.
//!
//! ```text
//! slabs * slab bytes = in use     active * object size; parked objects are among these
//!                    + tail       the bytes after the last object of each slab
//!                    + metadata   the bytes between two objects: alignment, free pointer, debugging;
//!                                 and those for accounting, in the tail or in the alignment since 7.0
//!                    + free       (total - active) * object size
//!                    + raced      0, or less where the kernel counted while objects moved
//! ```
//!
//! The last four are `Loss` of the kernel's own slabinfo tool: slabs * slab bytes - active * object size.
//! Without sysfs the object size is unknown; then the size with metadata takes its place, and metadata is
//! `None` and counted as in use and free, as slabinfo would on such a dump.

use super::parked::{Bounds, parked_objects};
use crate::state::{Cache, State};

/// The bytes of a cache, or of all caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Bytes of the slabs as the kernel's own tools count them: slabs times bytes of a slab of the preferred
    /// order.
    pub bytes: u64,
    /// Objects that the kernel counts as active.
    pub in_use: u64,
    /// Parked objects among them: free objects in CPU slabs, sheaves or arrays.
    pub parked: Bounds,
    /// Whether the input does not tell what is parked, of any cache in a total. Then the bounds are the
    /// widest: none, and all that is in use.
    pub parked_unknown: bool,
    /// Objects that are free in slabs.
    pub free: u64,
    /// Behind the last object of each slab.
    pub tail: u64,
    /// Part of the tail that is no memory: slabs that fell back to a smaller order are counted with the
    /// preferred one.
    pub overstated: u64,
    /// Between objects. `None` where no object size is known; in a total, the part that is known.
    pub metadata: Option<Metadata>,
    /// What is counted twice, as a number of 0 or less: the counters of a cache are not read at one moment.
    pub raced: i64,
}

/// Bytes between objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Padding up to the next object's alignment.
    pub alignment: u64,
    /// Free pointers that may not lie in the object: it has a constructor, or may be read while it is free
    /// (RCU).
    pub pointer: u64,
    /// Red zones, room for poison, records of users.
    pub debugging: u64,
    /// Words for the cgroup and the line of code of each object, where the slab has them itself.
    pub accounting: u64,
}

impl Metadata {
    /// All of it.
    pub fn total(self) -> u64 {
        let parts = [self.alignment, self.pointer, self.debugging, self.accounting];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl Split {
    /// Slabinfo's Loss.
    pub fn loss(&self) -> i64 {
        signed(i128::from(self.bytes) - i128::from(self.in_use))
    }

    /// The terms of the sum, which make [`Split::bytes`].
    pub fn sum(&self) -> i128 {
        let metadata = self.metadata.map_or(0, Metadata::total);
        let parts = [self.in_use, self.free, self.tail, metadata].map(i128::from);
        parts.iter().sum::<i128>() + i128::from(self.raced)
    }

    /// The split of a cache.
    pub fn of(cache: &Cache, state: &State) -> Split {
        let slab_bytes = i128::from(state.page_size) << cache.order.min(32);
        let [slabs, total, active, size] =
            [cache.slabs, cache.total_objects, cache.active_objects, cache.size].map(i128::from);
        let object_size = cache.object_size.map_or(size, |object| i128::from(object).min(size));
        let bytes = slabs * slab_bytes;
        let (tail, free) = (bytes - total * size, (total - active) * object_size);
        let metadata = cache.object_size.map(|_| Between::of(cache)).map(|between| Metadata {
            alignment: unsigned(total * i128::from(between.alignment)),
            pointer: unsigned(total * i128::from(between.pointer)),
            debugging: unsigned(total * i128::from(between.debugging)),
            accounting: 0,
        });
        let known = parked_objects(cache, state);
        let parked = known.unwrap_or(Bounds { low: 0, high: cache.active_objects.min(cache.total_objects) });
        let parked_bytes = |objects: u64| unsigned(i128::from(objects) * object_size);
        Split {
            bytes: unsigned(bytes),
            in_use: unsigned(active * object_size),
            parked: Bounds { low: parked_bytes(parked.low), high: parked_bytes(parked.high) },
            parked_unknown: known.is_none(),
            free: unsigned(free),
            tail: unsigned(tail),
            overstated: Fallback::of(cache, state).map_or(0, |fallback| fallback.overstated_bytes),
            metadata,
            raced: signed(tail.min(0) + free.min(0)),
        }
    }

    /// Adds another cache.
    pub fn add(&mut self, other: &Split) {
        let add = |into: &mut u64, value: u64| *into = into.saturating_add(value);
        add(&mut self.bytes, other.bytes);
        add(&mut self.in_use, other.in_use);
        add(&mut self.parked.low, other.parked.low);
        add(&mut self.parked.high, other.parked.high);
        self.parked_unknown |= other.parked_unknown;
        add(&mut self.free, other.free);
        add(&mut self.tail, other.tail);
        add(&mut self.overstated, other.overstated);
        self.raced = self.raced.saturating_add(other.raced);
        if let Some(other) = other.metadata {
            let mine = self.metadata.get_or_insert_default();
            add(&mut mine.alignment, other.alignment);
            add(&mut mine.pointer, other.pointer);
            add(&mut mine.debugging, other.debugging);
            add(&mut mine.accounting, other.accounting);
        }
    }
}

/// Bytes from the end of an object to the start of the next object, by their use.
pub(super) struct Between {
    pub(super) alignment: u64,
    pointer: u64,
    debugging: u64,
}

impl Between {
    /// The object is rounded up to words, then the free pointer is put behind it where it may not lie inside,
    /// then the whole is rounded up to the alignment (docs/theory/slub.md 7). What is beyond that is
    /// debugging.
    pub(super) fn of(cache: &Cache) -> Between {
        let object = cache.object_size.unwrap_or(cache.size).min(cache.size);
        let all = cache.size - object;
        let Some(attrs) = &cache.attrs else { return Between { alignment: all, pointer: 0, debugging: 0 } };
        let debugged = [attrs.red_zone, attrs.poison, attrs.store_user].contains(&Some(true));
        let outside = attrs.destroy_by_rcu == Some(true) || attrs.ctor.is_some();
        let align = attrs.align.unwrap_or(WORD).max(WORD);
        let plain = |pointer: u64| {
            object.checked_next_multiple_of(WORD)?.checked_add(pointer)?.checked_next_multiple_of(align)
        };
        // Some caches tell the kernel a place inside the object even for RCU: then there is no room outside.
        let pointer = if outside && plain(WORD).is_some_and(|size| size <= cache.size) { WORD } else { 0 };
        let undebugged = plain(pointer).filter(|size| debugged && *size <= cache.size).unwrap_or(cache.size);
        let debugging = cache.size - undebugged;
        let pointer = pointer.min(all - debugging);
        Between { alignment: all - debugging - pointer, pointer, debugging }
    }
}

/// Bytes of a word: all kernels this is about have 64 bits.
const WORD: u64 = 8;

/// Slabs that were got at the smallest order, because the preferred one was not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// How many, if the kernel counted at one moment.
    pub slabs: u64,
    /// How much less memory they are than slabinfo's product says.
    pub overstated_bytes: u64,
}

impl Fallback {
    /// The objects that are missing tell: a slab of the smallest order holds fewer. `None` where none is
    /// missing.
    pub fn of(cache: &Cache, state: &State) -> Option<Fallback> {
        let room = cache.slabs.checked_mul(cache.objects_per_slab)?;
        let missing = room.checked_sub(cache.total_objects).filter(|missing| *missing > 0)?;
        let slab_bytes = state.page_size.checked_shl(cache.order.min(32))?;
        let pages = cache.size.div_ceil(state.page_size).max(1);
        let smallest = state.page_size.checked_mul(pages.checked_next_power_of_two()?)?;
        let fewer = cache.objects_per_slab.checked_sub(smallest / cache.size.max(1))?;
        if fewer == 0 || smallest >= slab_bytes {
            return None;
        }
        let slabs = missing.div_ceil(fewer).min(cache.slabs);
        Some(Fallback { slabs, overstated_bytes: slabs.saturating_mul(slab_bytes - smallest) })
    }
}

/// No kernel has as much memory; a file may say so nevertheless.
fn unsigned(value: i128) -> u64 {
    u64::try_from(value.max(0)).unwrap_or(u64::MAX)
}

fn signed(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}
