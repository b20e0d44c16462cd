//! The directory that the library keeps at the start of a mapping, checked word by word: the process may be
//! any, and what looks like a directory may be anything.

use super::process::Memory;
use slablab_malloc::shared::note::*;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Bad {
    /// No mapping begins with a directory.
    None,
    /// A directory of another layout, by the library of this version.
    Layout { layout: u64 },
    /// A word that no library writes.
    Damaged { what: &'static str, found: u64 },
    /// The process's memory cannot be read, or not any more.
    Unread(io::Error),
}

impl From<io::Error> for Bad {
    fn from(error: io::Error) -> Bad {
        Bad::Unread(error)
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bad::None => f.write_str(
                "it does not run under slablab, or has not allocated yet; start it with \
                 LD_PRELOAD=libslablab.so, or build it with slablab-malloc as its allocator",
            ),
            Bad::Layout { layout } => write!(
                f,
                "its library keeps its counts in layout {layout}; this program reads layout {LAYOUT}: \
                 expected the slablab of the same version as libslablab.so"
            ),
            Bad::Damaged { what, found } => {
                write!(f, "its directory is damaged, or of no library: {what} is {found:#x}")
            }
            Bad::Unread(error) => write!(f, "its memory cannot be read: {error}"),
        }
    }
}

/// A checked value.
pub(super) fn within(what: &'static str, found: u64, range: RangeInclusive<u64>) -> Result<u64, Bad> {
    if range.contains(&found) { Ok(found) } else { Err(Bad::Damaged { what, found }) }
}

/// Where the library keeps its counts.
pub(super) struct Directory {
    words: [u64; WORDS],
}

/// Largest addresses: those of programs are below.
const ADDRESSES: RangeInclusive<u64> = 4096..=(1 << 56);
/// Largest offsets in a descriptor, a slot, a cache or a barn.
pub(super) const OFFSETS: RangeInclusive<u64> = 0..=65_536;

impl Directory {
    /// Finds the directory of a process.
    pub(super) fn find(memory: &impl Memory) -> Result<Directory, Bad> {
        let mut other = Bad::None;
        for mapping in memory.mappings()? {
            if !mapping.is_writable || !mapping.is_anonymous {
                continue;
            }
            // A mapping may have gone since it was listed, or be of a kind that is not memory.
            if memory.word(mapping.start).is_ok_and(|word| word == MAGIC) {
                match Directory::read(memory, mapping.start) {
                    Ok(directory) => return Ok(directory),
                    Err(error) => other = error,
                }
            }
        }
        Err(other)
    }

    /// Reads and checks the directory at an address.
    pub(super) fn read(memory: &impl Memory, at: u64) -> Result<Directory, Bad> {
        let mut bytes = [0; WORDS * 8];
        memory.read(at, &mut bytes)?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let directory = Directory { words };
        if directory.get(LAYOUT_AT) != LAYOUT {
            return Err(Bad::Layout { layout: directory.get(LAYOUT_AT) });
        }
        let numbers = [
            ("the page's shift", PAGE_SHIFT_AT, 12..=16),
            ("the number of frames", FRAMES_AT, 1..=1 << 28),
            ("the bytes of a descriptor", DESCRIPTOR_BYTES_AT, 8..=256),
            ("the bytes of an area", AREA_BYTES_AT, 4096..=1 << 20),
            ("the first slot", FIRST_SLOT_AT, 0..=1),
            ("the number of nodes", NODES_AT, 1..=64),
            ("the bytes of a note", NOTE_BYTES_AT, (NOTE_WORDS * 8) as u64..=4096),
            ("the number of notes", NOTES_MOST_AT, 1..=4096),
            ("the number of mappings", MAPPINGS_MOST_AT, 0..=65_536),
            ("the caches of a tenant", NUMBERS_AT, 1..=4096),
        ];
        for (what, at, range) in numbers {
            within(what, directory.get(at), range)?;
        }
        let (addresses, offsets) = (
            [
                MEMMAP_AT,
                AREAS_AT,
                USED_AT,
                GIVEN_BACK_AT,
                NOTES_AT,
                METADATA_AT,
                KEPT_AT,
                MAPPINGS_AT,
                PURGES_AT,
            ],
            [
                SLOT_OFFSET_AT,
                LIST_AT,
                SIZES_AT,
                TOP_AT,
                STORAGE_AT,
                BOTTOM_AT,
                COLD_AT,
                ROW_AT,
                OBJECT_BYTES_AT,
                SLOT_BYTES_AT,
                OBJECTS_AT,
                ORDER_AT,
            ],
        );
        for at in addresses {
            within("an address", directory.get(at), ADDRESSES)?;
        }
        for at in offsets {
            within("an offset", directory.get(at), OFFSETS)?;
        }
        let last_word = directory.get(DESCRIPTOR_BYTES_AT) - 8;
        for at in [STATE_AT, SLAB_AT, OWNER_AT, EXTRA_AT] {
            within("an offset in a descriptor", directory.get(at), 0..=last_word)?;
        }
        Ok(directory)
    }

    /// A word.
    pub(super) fn get(&self, at: usize) -> u64 {
        self.words[at]
    }

    /// Bytes of a page.
    pub(super) fn page_bytes(&self) -> u64 {
        1 << self.get(PAGE_SHIFT_AT)
    }

    /// A text of the directory.
    pub(super) fn text(&self, at: usize, bytes: usize) -> String {
        let words = self.words[at..].iter().flat_map(|word| word.to_le_bytes());
        let text: Vec<u8> = words.take(bytes).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// The texts: where they begin, and their most bytes.
pub(super) const SLOTS: (usize, usize) = (SLOTS_TEXT_AT, SLOTS_TEXT_BYTES);
pub(super) const ENGINE: (usize, usize) = (ENGINE_TEXT_AT, ENGINE_TEXT_BYTES);
pub(super) const VERSION: (usize, usize) = (VERSION_TEXT_AT, VERSION_TEXT_BYTES);
