//! Memory that no library wrote, for the tests and the fuzzer of `top`.

use super::directory::Directory;
use super::process::{Mapping, Memory};
use super::view::{self, Question, Sort};
use super::{Look, directory, profile, sample};
use slablab_malloc::shared::note::*;
use std::io::{self, ErrorKind};
use std::time::Instant;

const PAGE: u64 = 4096;
/// Where the tests have the directory, and the tables that it points at.
pub(super) const AT: u64 = 0x10_0000;
const TABLES: u64 = 0x4000_0000;

/// A directory that a library could have written, over memory of noise.
pub(super) struct Noise {
    seed: u64,
    pub(super) directory: [u64; WORDS],
}

/// A number that looks like any, from a place and a seed.
pub(super) fn mix(seed: u64, at: u64) -> u64 {
    let mut word = (seed ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^= word >> 29;
    word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ word >> 32
}

impl Noise {
    pub(super) fn new(seed: u64) -> Noise {
        let mut directory = [0; WORDS];
        let words = [
            (MAGIC_AT, MAGIC),
            (LAYOUT_AT, LAYOUT),
            (PAGE_SHIFT_AT, 12),
            (FRAMES_AT, 1 << 12),
            (MEMMAP_AT, TABLES),
            (DESCRIPTOR_BYTES_AT, 48),
            (SLAB_AT, 8),
            (OWNER_AT, 24),
            (EXTRA_AT, 32),
            (AREAS_AT, TABLES + (1 << 24)),
            (AREA_BYTES_AT, 1 << 19),
            (USED_AT, TABLES + (2 << 24)),
            (SIZES_AT, 16),
            (TOP_AT, 24),
            (STORAGE_AT, 32),
            (BOTTOM_AT, 24),
            (COLD_AT, 40),
            (NODES_AT, 2),
            (GIVEN_BACK_AT, TABLES + (3 << 24)),
            (NOTES_AT, TABLES + (4 << 24)),
            (NOTE_BYTES_AT, 128),
            (NOTES_MOST_AT, 8),
            (METADATA_AT, TABLES),
            (KEPT_AT, TABLES + 8),
            (MAPPINGS_AT, TABLES + (5 << 24)),
            (MAPPINGS_MOST_AT, 16),
            (SLOT_BYTES_AT, 4),
            (OBJECTS_AT, 8),
            (ORDER_AT, 12),
            (NUMBERS_AT, 256),
            (PURGES_AT, TABLES + (7 << 24)),
        ];
        words.into_iter().for_each(|(at, word)| directory[at] = word);
        Noise { seed, directory }
    }

    /// A word of noise: small ones are frequent, so that counts and offsets are often believed.
    pub(super) fn noise(&self, at: u64) -> u64 {
        let word = mix(self.seed, at);
        let in_note = at.wrapping_sub(TABLES + (4 << 24)) < 8 * 128 && !word.is_multiple_of(1024);
        let field = (at / 8) as usize % NOTE_WORDS;
        if in_note && matches!(field, COUNT | CACHE_BYTES) {
            return 8 + (word >> 8) % 64;
        }
        match word % 4 {
            _ if in_note && field == CACHES => TABLES + (word >> 8) % (6 << 24),
            _ if in_note => (word >> 8) % 64,
            0 if word.is_multiple_of(32) => u64::MAX,
            0 => word >> 8,
            1 => (word >> 8) % 64,
            2 => 0,
            _ => TABLES + (word >> 8) % (6 << 24),
        }
    }
}

impl Memory for Noise {
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        if mix(!self.seed, at).is_multiple_of(64) || at > 1 << 50 {
            return Err(ErrorKind::InvalidInput.into());
        }
        for (index, byte) in (0..).zip(into.iter_mut()) {
            let word = (at + index) & !7;
            let in_directory = (word >= AT).then(|| self.directory.get(((word - AT) / 8) as usize)).flatten();
            let value = in_directory.copied().unwrap_or_else(|| self.noise(word));
            *byte = value.to_le_bytes()[((at + index) & 7) as usize];
        }
        Ok(())
    }

    fn present(&self, at: u64, page: u64, pages: usize) -> Option<Vec<bool>> {
        let holds = |index: usize| mix(self.seed, at + index as u64 * page).is_multiple_of(2);
        (!self.seed.is_multiple_of(8) || pages < 64).then(|| (0..pages).map(holds).collect())
    }

    fn mappings(&self) -> io::Result<Vec<Mapping>> {
        let mapping = |start, end, is_writable| Mapping {
            start,
            end,
            is_writable,
            is_anonymous: start.is_multiple_of(4096),
        };
        let all = (mapping(0, u64::MAX, true), mapping(TABLES + 1, TABLES + 40 * PAGE, true));
        let pages = mapping(TABLES + 2 * PAGE, TABLES + 40 * PAGE, true);
        let last = if self.seed.is_multiple_of(2) { all.0 } else { all.1 };
        Ok(vec![mapping(0, PAGE, false), mapping(AT, AT + PAGE, true), pages, last])
    }
}

/// The answers for a directory with changed words, over noise. In two of three runs some words are wrong.
pub(crate) fn fuzz(data: &[u8]) -> Result<String, String> {
    let seed = data.iter().fold(1, |seed, byte| mix(seed, u64::from(*byte)));
    let mut noise = Noise::new(seed);
    for change in 0..seed % 3 {
        let at = mix(seed, change) as usize % WORDS;
        noise.directory[at] = noise.noise(u64::MAX - change);
    }
    let found = Directory::find(&noise).map_err(|bad| bad.to_string())?;
    let sample = sample::take(&noise, &found).map_err(|bad| bad.to_string())?;
    let look = Look {
        pid: 1,
        command: String::from_utf8_lossy(data).into_owned(),
        engine: found.text(directory::ENGINE.0, directory::ENGINE.1),
        slots: found.text(directory::SLOTS.0, directory::SLOTS.1),
        version: found.text(directory::VERSION.0, directory::VERSION.1),
        page_bytes: found.page_bytes(),
        at: Instant::now(),
        minor_faults: seed,
        major_faults: 0,
        sample,
    };
    profile::of(&look);
    view::answer(&look, None, Sort::Bytes, &Question::Pins);
    let answer = view::answer(&look, None, Sort::Bytes, &Question::Holds);
    Ok(["table", "json", "csv"].map(|form| answer.text_of(form, false).unwrap_or_default()).concat())
}
