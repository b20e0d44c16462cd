//! The directory of the process, for `slablab top`: written once, when the process's heap runs.

use super::note::*;
use super::purge;
use super::stats::METADATA_BYTES;
use super::tenants::NUMBERS;
use crate::env::DEFAULT_ENGINE;
use crate::world::Native;
use crate::{kept_blocks, mappings};
use slablab_native::directory;
use slablab_slabs::Geometry;
use slablab_slabs::preset::Choice;
use std::fmt::{self, Write};
use std::mem::offset_of;

/// Writes the directory. Called once, when the process's heap runs. `choice` is `None` for the default
/// engine.
pub(crate) fn open(choice: Option<&Choice>) {
    let (mappings, mappings_most) = mappings::entries();
    let words = [
        (NOTES_AT, address(&NOTES)),
        (NOTE_BYTES_AT, size_of_val(&NOTES[0]) as u64),
        (NOTES_MOST_AT, TENANTS as u64),
        (METADATA_AT, address(&METADATA_BYTES)),
        (KEPT_AT, kept_blocks::frames_at()),
        (MAPPINGS_AT, mappings),
        (MAPPINGS_MOST_AT, mappings_most),
        (OBJECT_BYTES_AT, offset_of!(Geometry, object_size) as u64),
        (SLOT_BYTES_AT, offset_of!(Geometry, size) as u64),
        (OBJECTS_AT, offset_of!(Geometry, objects) as u64),
        (ORDER_AT, offset_of!(Geometry, order) as u64),
        (NUMBERS_AT, u64::from(NUMBERS)),
        (PURGES_AT, purge::words_at()),
    ];
    words.into_iter().for_each(|(at, value)| directory::set(at, value));
    let mut short = Short { bytes: [0; ENGINE_TEXT_BYTES], length: 0 };
    let engine = match choice {
        // What does not fit is cut. No formatting for the default: its code would be resident in every
        // process.
        Some(choice) => {
            let _ = write!(short, "{choice}");
            std::str::from_utf8(&short.bytes[..short.length]).unwrap_or_default()
        }
        None => DEFAULT_ENGINE,
    };
    directory::set_text(SLOTS_TEXT_AT, SLOTS_TEXT_BYTES, Native::slots().as_str());
    directory::set_text(ENGINE_TEXT_AT, ENGINE_TEXT_BYTES, engine);
    directory::set_text(VERSION_TEXT_AT, VERSION_TEXT_BYTES, env!("CARGO_PKG_VERSION"));
    directory::open();
}

/// Text of a directory's words.
struct Short {
    bytes: [u8; ENGINE_TEXT_BYTES],
    length: usize,
}

impl Write for Short {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let fits = part.len().min(ENGINE_TEXT_BYTES - self.length);
        self.bytes[self.length..self.length + fits].copy_from_slice(&part.as_bytes()[..fits]);
        self.length += fits;
        Ok(())
    }
}
