//! What the directory ([`slablab_native::directory`]) says of heaps and object caches: a note for each
//! tenant, with the addresses of its caches and the offsets of their counts.
//!
//! A note is written when its tenant is published, and cleared before the tenant goes. The reader is another
//! process, which no lock keeps from reading meanwhile: it checks what it reads.

use crate::world::Over;
pub use slablab_native::directory::*;
pub use slablab_platform::{FrameKind, FrameState};
use slablab_slabs::{Engine, Exposed};
use std::sync::atomic::{AtomicU64, Ordering::*};

/// Most tenants at a time.
pub(super) const TENANTS: usize = 4096;

/// Words of a note.
pub const NOTE_WORDS: usize = 16;

macro_rules! places {
    ($($(#[$doc:meta])* $name:ident = $index:expr;)*) => { $($(#[$doc])* pub const $name: usize = $index;)* };
}

// Words of the directory.
places! {
    /// The address of the notes, one for each tenant.
    NOTES_AT = HEAPS_AT;
    /// Bytes of a note.
    NOTE_BYTES_AT = HEAPS_AT + 1;
    /// Notes that there can be.
    NOTES_MOST_AT = HEAPS_AT + 2;
    /// The address of a word: bytes of live objects and blocks that hold metadata of engines.
    METADATA_AT = HEAPS_AT + 3;
    /// The address of a word: page frames of kept blocks.
    KEPT_AT = HEAPS_AT + 4;
    /// The address of the entries of blocks with a mapping of their own: an address, which is above 1 where
    /// there is a block, and its bytes.
    MAPPINGS_AT = HEAPS_AT + 5;
    /// Entries of mappings.
    MAPPINGS_MOST_AT = HEAPS_AT + 6;
    /// The offset of `object_size`, 32 bits, in a `Geometry`.
    OBJECT_BYTES_AT = HEAPS_AT + 7;
    /// The offset of `size`, 32 bits.
    SLOT_BYTES_AT = HEAPS_AT + 8;
    /// The offset of `objects`, 32 bits.
    OBJECTS_AT = HEAPS_AT + 9;
    /// The offset of `order`, 8 bits.
    ORDER_AT = HEAPS_AT + 10;
    /// Cache numbers of a tenant. A slab's `owner` has the cache's number in its low 24 bits.
    NUMBERS_AT = HEAPS_AT + 11;
    /// The address of [`PURGE_WORDS`] words, of which the other process writes one: [`PURGE_ASKED`].
    PURGES_AT = HEAPS_AT + 12;
}

// Words by which another process asks for a purge.
places! {
    /// Another number than the last one asks for a purge.
    PURGE_ASKED = 0;
    /// The number of the last purge that was done.
    PURGE_ANSWERED = 1;
    /// The bytes that it gave back to the system.
    PURGE_BYTES = 2;
    /// Threads that had not emptied their slots by then.
    PURGE_THREADS = 3;
}

/// How many those words are.
pub const PURGE_WORDS: usize = PURGE_THREADS + 1;

// Words of a note. All but the first three are offsets in a cache, of fields of that cache; those of spare
// sheaves are offsets in the engine's part of a slot. 0 for what the engine does not have.
places! {
    /// Caches; 0: there is no tenant.
    COUNT = 0;
    /// The address of the first cache. The others follow.
    CACHES = 1;
    /// Bytes of a cache.
    CACHE_BYTES = 2;
    /// The `Geometry`.
    GEOMETRY = 3;
    /// The slots, plus 1.
    SLOTS = 4;
    /// Objects of a full sheaf, 32 bits.
    SHEAF_CAPACITY = 5;
    /// The spare sheaf's address, which is 0 without one.
    SPARE = 6;
    /// Objects in the spare sheaf, 32 bits.
    SPARE_SIZE = 7;
    /// The barns, for each node.
    BARNS = 8;
    /// In a barn, the offset of a word: full sheaves.
    FULL_SHEAVES = 9;
    /// Whether a slab's word is in its descriptor's `extra`, not in `slab`.
    IS_IN_EXTRA = 10;
    /// The address of the name; 0: each cache is `malloc-` and the bytes of its objects.
    NAME = 11;
    /// Bytes of the name.
    NAME_BYTES = 12;
}

/// A note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note([u64; NOTE_WORDS]);

pub(super) static NOTES: [[AtomicU64; NOTE_WORDS]; TENANTS] =
    [const { [const { AtomicU64::new(0) }; NOTE_WORDS] }; TENANTS];

pub(super) fn address<T: ?Sized>(value: &T) -> u64 {
    std::ptr::from_ref(value).addr() as u64
}

impl Note {
    /// The note of a tenant with `count` caches, one behind the other from the first on, which stay where
    /// they are as long as the tenant is published. Their name is `name`, or that of the size classes if it
    /// is empty.
    pub fn of<W: Over, E: Engine<W>>(first: &E, count: usize, name: &str) -> Note {
        let start = address(first);
        // Where the engine has no such field, the address is 0.
        let offset = |field: usize| (field as u64).saturating_sub(start);
        let exposed: Exposed = first.exposed();
        let mut note = [0; NOTE_WORDS];
        note[COUNT] = count as u64;
        note[CACHES] = start;
        note[CACHE_BYTES] = size_of::<E>() as u64;
        note[GEOMETRY] = offset(exposed.geometry);
        note[SLOTS] = if exposed.slots == 0 { 0 } else { offset(exposed.slots) + 1 };
        note[SHEAF_CAPACITY] = offset(exposed.sheaf_capacity);
        note[SPARE] = exposed.spare as u64;
        note[SPARE_SIZE] = exposed.spare_size as u64;
        note[BARNS] = offset(exposed.barns);
        note[FULL_SHEAVES] = exposed.full_sheaves as u64;
        note[IS_IN_EXTRA] = u64::from(exposed.is_in_extra);
        if !name.is_empty() {
            (note[NAME], note[NAME_BYTES]) = (address(name), name.len() as u64);
        }
        Note(note)
    }
}

/// Writes a tenant's note.
pub(super) fn publish(tenant: u32, note: Note) {
    let words = &NOTES[tenant as usize];
    (COUNT + 1..NOTE_WORDS).for_each(|at| words[at].store(note.0[at], Relaxed));
    words[COUNT].store(note.0[COUNT], Release);
}

/// Clears a tenant's note.
pub(super) fn withdraw(tenant: u32) {
    NOTES[tenant as usize][COUNT].store(0, Release);
}
