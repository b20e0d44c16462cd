//! Messages to standard error, without allocating. Words in them may be a user's: control characters become
//! escapes.

use crate::system;
use core::fmt::{self, Write};
use std::sync::OnceLock;

/// Most bytes of a message.
const MOST: usize = 1024;

/// Whether a terminal acts on the character instead of showing it: C0 without line ends and tabs, DEL, C1,
/// the line and paragraph separators, and the controls of bidirectional text. `slablab_report::visible` has
/// these characters, too, for programs that may allocate.
fn is_control(char: char) -> bool {
    let marks = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}');
    let bidi = marks || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (char.is_control() && !matches!(char, '\n' | '\t')) || bidi
}

/// A message of one or more lines in `BYTES` bytes. Text that does not fit is cut.
pub struct Line<const BYTES: usize = MOST> {
    bytes: [u8; BYTES],
    length: usize,
}

impl Line {
    /// Writes `slablab: ...` to standard error.
    pub fn say(text: fmt::Arguments<'_>) {
        let mut line = Line { bytes: [0; MOST], length: 0 };
        // The only error is that the message is full.
        let _ = write!(line, "slablab: {text}");
        line.end();
    }

    /// Writes one line without a prefix.
    pub fn print(text: fmt::Arguments<'_>) {
        let mut line = Line { bytes: [0; MOST], length: 0 };
        let _ = line.write_fmt(text);
        line.end();
    }

    /// Writes one line: `name`, padded to `width` columns, then `rest`.
    pub fn columns(name: fmt::Arguments<'_>, width: usize, rest: fmt::Arguments<'_>) {
        let mut line = Line { bytes: [0; MOST], length: 0 };
        let _ = line.write_fmt(name);
        let missing = width.saturating_sub(line.length);
        let _ = write!(line, "{:missing$} {rest}", "");
        line.end();
    }
}

impl<const BYTES: usize> Line<BYTES> {
    /// Writes the lines that `make` makes, by one write. No lock is held while `make` runs, so it may wait
    /// for other threads.
    pub fn write_all(make: impl FnOnce(&mut Self) -> fmt::Result) {
        let mut lines = Line { bytes: [0; BYTES], length: 0 };
        let _ = make(&mut lines);
        lines.end();
    }

    /// Adds the escape of a control character, as `\x1b` or `\u202e`.
    fn escape(&mut self, code: u32) -> fmt::Result {
        let (mark, digits) = if code <= 0xff { ("\\x", 2) } else { ("\\u", 4) };
        self.take(mark)?;
        (0..digits).rev().try_for_each(|digit| {
            let nibble = (code >> (4 * digit)) as usize & 0xf;
            self.take(&"0123456789abcdef"[nibble..=nibble])
        })
    }

    /// Adds what fits.
    fn take(&mut self, part: &str) -> fmt::Result {
        let fits = part.len().min(self.bytes.len() - 1 - self.length);
        self.bytes[self.length..self.length + fits].copy_from_slice(&part.as_bytes()[..fits]);
        self.length += fits;
        if fits == part.len() { Ok(()) } else { Err(fmt::Error) }
    }

    fn end(&mut self) {
        let end = self.length.min(self.bytes.len() - 1);
        self.bytes[end] = b'\n';
        system::complain(&self.bytes[..=end]);
    }
}

impl<const BYTES: usize> Write for Line<BYTES> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let mut rest = part;
        while let Some(at) = rest.find(is_control) {
            let (before, from) = rest.split_at(at);
            let char = from.chars().next().unwrap_or_default();
            self.take(before)?;
            self.escape(char.into())?;
            rest = &from[char.len_utf8()..];
        }
        self.take(rest)
    }
}

/// Writes the name of a cache by its number. Must not allocate and must not take a lock: a report of damaged
/// memory calls it, in a thread that may hold any lock.
pub type WriteCacheName = fn(u32, &mut dyn fmt::Write) -> fmt::Result;

static WRITE_CACHE_NAME: OnceLock<WriteCacheName> = OnceLock::new();

/// Has reports name caches as `write` does. The first call of the process counts.
pub fn name_caches(write: WriteCacheName) {
    let _ = WRITE_CACHE_NAME.set(write);
}

/// Displays a cache's number as the cache's name, or as the number before [`name_caches`].
struct CacheName(u32);

impl fmt::Display for CacheName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match WRITE_CACHE_NAME.get() {
            Some(write) => write(self.0, f),
            None => write!(f, "cache {}", self.0),
        }
    }
}

/// Ends the process with a report of damaged memory; `cache` is the number of the cache whose memory it is.
#[cold]
pub(crate) fn damage(cache: Option<u32>, what: fmt::Arguments<'_>) -> ! {
    match cache {
        Some(cache) => misuse(format_args!("{}: {what}", CacheName(cache))),
        None => misuse(what),
    }
}

/// Prints a report of a caller's mistake and ends the process.
#[cold]
pub fn misuse(what: fmt::Arguments<'_>) -> ! {
    Line::say(what);
    system::die("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_passes() {
        let check = |text: &str, expected: &str| {
            let mut line = Line::<64> { bytes: [0; 64], length: 0 };
            let _ = line.write_str(text);
            assert_eq!(std::str::from_utf8(&line.bytes[..line.length]), Ok(expected), "{text:?}");
        };
        check("slub@7.1\n\tx", "slub@7.1\n\tx");
        check("\u{1b}]0;OWNED\u{7}\u{9b}", "\\x1b]0;OWNED\\x07\\x9b");
        check("a\u{202e}b\u{2066}c\u{7f}\r", "a\\u202eb\\u2066c\\x7f\\x0d");
        check("\u{e9}\u{200f}\u{2029}", "\u{e9}\\u200f\\u2029");
        check(&"x".repeat(100), &"x".repeat(63));
    }
}
