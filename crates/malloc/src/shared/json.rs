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
use std::fs::{self, File};
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
    let path_here = file_path(path).ok_or(ErrorKind::InvalidFilename.into());
    if let Err(error) = path_here.and_then(|path| write_new_file(engine, path.as_str())) {
        Line::say(format_args!("SLABLAB_STATS={path}: {error}; statistics are lost"));
    }
}

/// Writes the document to a new file in the same folder, which takes the path's place when it is whole.
///
/// A link at the path is replaced and not followed: another user may have put it there. To open the path
/// itself without following links would keep a file's mode, but wait for the reader of a pipe, and mix the
/// documents of two processes that end at once.
fn write_new_file(engine: &dyn fmt::Display, path: &str) -> io::Result<()> {
    let new = new_path(path).ok_or(ErrorKind::InvalidFilename)?;
    let new = new.as_str();
    let mut text = Text::to(Some(File::create_new(new)?));
    let written = document(engine, &mut text).and_then(|()| text.flush());
    let written = written.map_err(|_| text.error.unwrap_or(ErrorKind::Other.into()));
    let placed = written.and_then(|()| fs::rename(new, path));
    if placed.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(new);
    }
    placed
}

/// The path with the process's number in it. `None` if it is too long.
fn file_path(path: &str) -> Option<PathText> {
    let mut parts = path.split("%p");
    let mut place = PathText::EMPTY;
    place.write_str(parts.next()?).ok()?;
    parts.try_for_each(|part| write!(place, "{}{part}", std::process::id())).ok()?;
    Some(place)
}

/// A path in the folder of `path` that no other process can know.
fn new_path(path: &str) -> Option<PathText> {
    let folder = path.rfind('/').map_or("", |slash| &path[..=slash]);
    let mut place = PathText::EMPTY;
    write!(place, "{folder}.slablab-{}-{:016x}", std::process::id(), system::secret()).ok()?;
    Some(place)
}

/// A path as text.
struct PathText {
    bytes: [u8; PathText::MOST],
    length: usize,
}

impl PathText {
    /// Most bytes of a path.
    const MOST: usize = 1024;
    const EMPTY: PathText = PathText { bytes: [0; PathText::MOST], length: 0 };

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for PathText {
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
        let path = file_path("a%p/b-%p.json").expect("it fits");
        let number = std::process::id();
        assert_eq!(path.as_str(), format!("a{number}/b-{number}.json"));
        assert!(file_path(&"%p.json".repeat(PathText::MOST / 6)).is_none());
        for (path, folder) in [("a.json", ""), ("/a.json", "/"), ("a/b/c.json", "a/b/")] {
            let new = new_path(path).expect("it fits");
            assert!(new.as_str().starts_with(&format!("{folder}.slablab-{number}-")), "{}", new.as_str());
        }
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(Quoted("a\"b\\c\n\u{9b}é").to_string(), "\"a\\\"b\\\\c\\u000a\\u009bé\"");
    }
}
