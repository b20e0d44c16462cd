//! The statistics as JSON, for `SLABLAB_STATS=json`. Nothing here allocates: it runs when the process ends.
//!
//! The fields are described in docs/native.md; `slablab top` prints the same ones of a running process.

use super::stats::{Totals, totals};
use super::tenants;
use crate::world::Native;
use slablab_native::report::Line;
use slablab_native::system;
use slablab_slabs::{Geometry, Usage};
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};

/// The document's name and version: a field that is removed, or means something else, makes a new one.
const SCHEMA: &str = "slablab.malloc.1";

/// Bytes that are written at a time.
const PIECE: usize = 4096;

/// Prints the document on standard error, as one line.
pub(super) fn print(engine: &dyn fmt::Display) {
    let mut text = Text::to(None);
    // A full standard error is no reason to end otherwise.
    let _ = document(engine, &mut text);
    let _ = text.flush();
}

/// Writes the document to a file. `%p` in the path is the process's number.
pub(super) fn write_file(engine: &dyn fmt::Display, path: &str) {
    let mut place = [0; 1024];
    let place = file_path(path, &mut place).ok_or(ErrorKind::InvalidFilename.into());
    let written = place.and_then(File::create).and_then(|file| {
        let mut text = Text::to(Some(file));
        let done = document(engine, &mut text).and_then(|()| text.flush());
        done.map_err(|_| text.error.unwrap_or(ErrorKind::Other.into()))
    });
    if let Err(error) = written {
        Line::say(format_args!("SLABLAB_STATS={path}: {error}; statistics are lost"));
    }
}

/// The path with the process's number in it. `None` if it is longer than `place`.
fn file_path<'a>(path: &str, place: &'a mut [u8]) -> Option<&'a str> {
    let mut parts = path.split("%p");
    let mut number = Digits { bytes: [0; 10], length: 0 };
    write!(number, "{}", std::process::id()).ok()?;
    let mut end = 0;
    let mut add = |part: &[u8]| {
        place.get_mut(end..end + part.len())?.copy_from_slice(part);
        end += part.len();
        Some(())
    };
    add(parts.next()?.as_bytes())?;
    for part in parts {
        add(&number.bytes[..number.length])?;
        add(part.as_bytes())?;
    }
    std::str::from_utf8(&place[..end]).ok()
}

/// A number as text.
struct Digits {
    bytes: [u8; 10],
    length: usize,
}

impl Write for Digits {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.length..self.length + part.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.length += part.len();
        Ok(())
    }
}

/// Text on its way to a file, or to standard error, a piece at a time.
struct Text {
    bytes: [u8; PIECE],
    length: usize,
    /// `None`: standard error.
    file: Option<File>,
    /// Why the file was not written.
    error: Option<io::Error>,
}

impl Text {
    fn to(file: Option<File>) -> Text {
        Text { bytes: [0; PIECE], length: 0, file, error: None }
    }

    fn flush(&mut self) -> fmt::Result {
        let text = &self.bytes[..self.length];
        self.length = 0;
        let Some(file) = &mut self.file else {
            system::complain(text);
            return Ok(());
        };
        file.write_all(text).map_err(|error| {
            self.error = Some(error);
            fmt::Error
        })
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let mut rest = part.as_bytes();
        while !rest.is_empty() {
            if self.length == PIECE {
                self.flush()?;
            }
            let fits = rest.len().min(PIECE - self.length);
            self.bytes[self.length..self.length + fits].copy_from_slice(&rest[..fits]);
            self.length += fits;
            rest = &rest[fits..];
        }
        Ok(())
    }
}

/// A value as a JSON string.
struct Quoted<T>(T);

impl<T: fmt::Display> fmt::Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"")?;
        write!(Escaped(f), "{}", self.0)?;
        write!(f, "\"")
    }
}

/// Writes quotes, backslashes and control characters as JSON has them.
struct Escaped<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        part.chars().try_for_each(|char| match char {
            '"' | '\\' => write!(self.0, "\\{char}"),
            char if char.is_control() => write!(self.0, "\\u{:04x}", u32::from(char)),
            char => self.0.write_char(char),
        })
    }
}

/// The whole document, in one line.
fn document(engine: &dyn fmt::Display, text: &mut Text) -> fmt::Result {
    let (minor, major) = system::faults();
    let page = system::page_size() as u64;
    let Totals { heap_bytes, live_bytes, free_frame_bytes, mappings, mapping_bytes, .. } = totals();
    write!(text, "{{\"schema\":\"{SCHEMA}\",\"version\":\"{}\",", env!("CARGO_PKG_VERSION"))?;
    write!(text, "\"pid\":{},\"engine\":{},", std::process::id(), Quoted(engine))?;
    write!(text, "\"slots\":{},\"slots_used\":{},", Quoted(Native::slots()), Native::slots_used())?;
    write!(text, "\"page_bytes\":{page},\"huge_pages\":{},", Native::has_huge_pages())?;
    write!(text, "\"heap_bytes\":{heap_bytes},\"live_bytes\":{live_bytes},")?;
    write!(text, "\"free_frame_bytes\":{free_frame_bytes},")?;
    write!(text, "\"given_back_bytes\":{},", Native::given_back_frames() * page)?;
    write!(text, "\"mappings\":{mappings},\"mapping_bytes\":{mapping_bytes},")?;
    write!(text, "\"minor_faults\":{minor},\"major_faults\":{major},\"caches\":[")?;
    let state = RefCell::new((text, false, Ok(())));
    tenants::each(|tenant| {
        tenant.each_cache(&mut |name, usage, geometry| {
            let (text, follows, done) = &mut *state.borrow_mut();
            if usage.slabs > 0 && done.is_ok() {
                let comma = if std::mem::replace(follows, true) { "," } else { "" };
                *done = text.write_str(comma).and_then(|()| cache(text, name, usage, geometry));
            }
        });
    });
    let (text, _, done) = state.into_inner();
    done?;
    writeln!(text, "]}}")
}

/// A cache, unless it is empty.
fn cache(text: &mut Text, name: fmt::Arguments<'_>, usage: &Usage, geometry: &Geometry) -> fmt::Result {
    let live = usage.live_objects();
    let held = live + usage.parked + usage.quarantined;
    write!(text, "{{\"name\":{},\"object_bytes\":{},", Quoted(name), geometry.object_size)?;
    write!(text, "\"slot_bytes\":{},\"objects_per_slab\":{},", geometry.size, geometry.objects)?;
    write!(text, "\"pages_per_slab\":{},\"slabs\":{},", 1u32 << geometry.order, usage.slabs)?;
    write!(text, "\"bytes\":{},", usage.frames * system::page_size() as u64)?;
    write!(text, "\"objects\":{},\"live_objects\":{live},", usage.total_objects)?;
    write!(text, "\"parked_objects\":{},", usage.parked)?;
    write!(text, "\"quarantined_objects\":{},", usage.quarantined)?;
    write!(text, "\"free_objects\":{}}}", usage.total_objects.saturating_sub(held))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_gets_the_process_number() {
        let mut place = [0; 64];
        let path = file_path("a%p/b-%p.json", &mut place).expect("it fits");
        let number = std::process::id();
        assert_eq!(path, format!("a{number}/b-{number}.json"));
        assert_eq!(file_path("a%p.json", &mut [0; 6]), None);
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(Quoted("a\"b\\c\n\u{9b}é").to_string(), "\"a\\\"b\\\\c\\u000a\\u009bé\"");
    }
}
