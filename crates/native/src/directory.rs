//! The directory: words at the start of boot memory that tell another process where the library keeps its
//! counts. `slablab top` reads them, and then the counts, through `/proc/PID/mem`.
//!
//! The library writes the directory once, when the heap starts, and never reads it. The other process writes
//! one word, by which it asks for a purge. The counts stay where they are, so they cost nothing while no
//! process looks. The directory is found without a name: boot memory begins a writable anonymous mapping,
//! because the page in front of it is never committed, and its first word is [`MAGIC`].
//!
//! Each word is at a fixed place, one of the constants here. The directory says addresses, sizes and offsets;
//! how a word that it points at is packed (`FrameState`, `SlabWord`, `Resident`, a slot's `Hot`) is part of
//! [`LAYOUT`]. Whoever changes a place here, or one of these, raises [`LAYOUT`].

use crate::area::{self, AREA_BYTES};
use crate::lazy::Nodes;
use crate::memory;
use crate::object::FIRST_BYTES;
use crate::region::{Region, Table};
use crate::slots;
use crate::topology;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::*};

/// The first word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"slablab\x01");
/// The number of this layout: the value of the word [`LAYOUT_AT`].
pub const LAYOUT: u64 = 3;
/// Words of the directory.
pub const WORDS: usize = 64;

/// The places of words. `_AT` are of words of the directory; what an address is of is in its line.
macro_rules! places {
    ($($(#[$doc:meta])* $name:ident = $index:literal;)*) => {
        $($(#[$doc])* pub const $name: usize = $index;)*
        const _: () = assert!($($index < WORDS)&&*);
    };
}

places! {
    /// [`MAGIC`]. Written last.
    MAGIC_AT = 0;
    /// [`LAYOUT`].
    LAYOUT_AT = 1;
    /// log2 of the bytes of a page.
    PAGE_SHIFT_AT = 2;
    /// Page frames of the heap.
    FRAMES_AT = 3;
    /// The address of the descriptors, one for each frame.
    MEMMAP_AT = 4;
    /// Bytes of a descriptor.
    DESCRIPTOR_BYTES_AT = 5;
    /// The offset of `state` in a descriptor.
    STATE_AT = 6;
    /// The offset of `slab` in a descriptor.
    SLAB_AT = 7;
    /// The offset of `owner` in a descriptor.
    OWNER_AT = 8;
    /// The offset of `extra` in a descriptor.
    EXTRA_AT = 9;
    /// The address of the areas.
    AREAS_AT = 10;
    /// Bytes of an area.
    AREA_BYTES_AT = 11;
    /// The address of 16 bits: every used slot's number is below it.
    USED_AT = 12;
    /// The number of the first slot.
    FIRST_SLOT_AT = 13;
    /// In a cache's slots (`Slots`), the offset of 32 bits: the offset of the cache's slot in each area.
    SLOT_OFFSET_AT = 14;
    /// In a slot, the offset of the hot list's word: objects + 1 in the low 17 bits; 0 while it is held.
    LIST_AT = 15;
    /// With slots per CPU, in a slot, the offset of the array's word: objects in the low 32 bits.
    SIZES_AT = 16;
    /// In a slot, the offset of the engine's own part.
    COLD_AT = 17;
    /// Nodes.
    NODES_AT = 18;
    /// In a value for each node (`Nodes`), the offset of the address of an address for each node.
    ROW_AT = 19;
    /// The address of a word: page frames given back to the kernel.
    GIVEN_BACK_AT = 20;
    /// With slots per thread, in a slot, the offset of the word that says where the array's last address is,
    /// relative to the area; 0 while it is held. Else 0.
    TOP_AT = 21;
    /// In a slot, the offset of the array's address.
    STORAGE_AT = 22;
    /// Bytes from an array's address to the word in front of its first address.
    BOTTOM_AT = 23;
    /// What slots belong to, as 8-byte words of text from here on.
    SLOTS_TEXT_AT = 24;
    /// The engine, as text.
    ENGINE_TEXT_AT = 32;
    /// The library's version, as text.
    VERSION_TEXT_AT = 44;
    /// Words of the heaps and object caches from here on.
    HEAPS_AT = 48;
}

/// Most bytes of the texts.
pub const SLOTS_TEXT_BYTES: usize = (ENGINE_TEXT_AT - SLOTS_TEXT_AT) * 8;
/// Most bytes of the engine's name.
pub const ENGINE_TEXT_BYTES: usize = (VERSION_TEXT_AT - ENGINE_TEXT_AT) * 8;
/// Most bytes of the version.
pub const VERSION_TEXT_BYTES: usize = (HEAPS_AT - VERSION_TEXT_AT) * 8;

static DIRECTORY: Table<AtomicU64> = Table::new();

/// Stores where the directory is. Called once, when the world starts.
pub(crate) fn start(words: Region<AtomicU64>) {
    DIRECTORY.set(words);
}

/// Writes a word of the directory, before [`open`].
pub fn set(at: usize, value: u64) {
    if let Some(word) = DIRECTORY.get(at) {
        word.store(value, Relaxed);
    }
}

/// Writes a text of at most `bytes` bytes from the word `at` on; what does not fit is cut.
pub fn set_text(at: usize, bytes: usize, text: &str) {
    let text = text.as_bytes();
    for (index, part) in text[..text.len().min(bytes)].chunks(8).enumerate() {
        let word = part.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        set(at + index, word);
    }
}

/// Writes the world's own words, and then the first one: from here on a process may read the directory.
pub fn open() {
    let by_cpu = crate::per_cpu::on();
    let native: [(usize, usize); 21] = [
        (PAGE_SHIFT_AT, memory::page_shift() as usize),
        (FRAMES_AT, memory::frames() as usize),
        (MEMMAP_AT, memory::memmap()),
        (DESCRIPTOR_BYTES_AT, size_of::<memory::Frame>()),
        (STATE_AT, offset_of!(memory::Frame, state)),
        (SLAB_AT, offset_of!(memory::Frame, slab)),
        (OWNER_AT, offset_of!(memory::Frame, owner)),
        (EXTRA_AT, offset_of!(memory::Frame, extra)),
        (AREAS_AT, area::first()),
        (AREA_BYTES_AT, AREA_BYTES),
        (USED_AT, area::used_at()),
        (FIRST_SLOT_AT, usize::from(!by_cpu)),
        (SLOT_OFFSET_AT, slots::OFFSET_AT),
        (LIST_AT, slots::LIST_AT),
        (SIZES_AT, slots::SIZES_AT),
        (TOP_AT, if by_cpu { 0 } else { slots::TOP_AT }),
        (STORAGE_AT, slots::STORAGE_AT),
        (BOTTOM_AT, FIRST_BYTES as usize - 8),
        (COLD_AT, slots::COLD_AT),
        (NODES_AT, usize::from(topology::nodes())),
        (ROW_AT, Nodes::<u64>::ROW_AT),
    ];
    native.into_iter().for_each(|(at, value)| set(at, value as u64));
    set(GIVEN_BACK_AT, std::ptr::from_ref(&memory::GIVEN_BACK).addr() as u64);
    set(LAYOUT_AT, LAYOUT);
    if let Some(magic) = DIRECTORY.get(MAGIC_AT) {
        // Release: a process that reads the magic reads the words above, as far as another process can.
        magic.store(MAGIC, Release);
    }
}
