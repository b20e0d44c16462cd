//! The way of bytes to a terminal, a pipe or a report: each print of the program goes through a [`Sink`].
//!
//! A renderer replaces the control characters of the names that it knows to be an input's. The sink does it
//! again for the whole text, so that a name which a renderer overlooked steers no terminal either. Line ends
//! and tabs stay. Colour is added behind the filter, or is a text's own ([`Sink::styled`]).

use crate::visible;
use std::fmt::Write as _;
use std::io::{self, Write};

/// A writer of text that replaces the characters which a terminal acts on ([`visible::is_control`]).
#[derive(Debug)]
pub struct Sink<W>(W);

impl<W: Write> Sink<W> {
    /// A sink to `to`.
    pub fn new(to: W) -> Sink<W> {
        Sink(to)
    }

    /// Writes text of one or more lines.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.bytes(&visible::text(text))
    }

    /// Writes text with the styles that `paint` adds. `paint` gets the text without control characters.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn painted(&mut self, text: &str, paint: impl FnOnce(&str) -> String) -> io::Result<()> {
        self.bytes(&paint(&visible::text(text)))
    }

    /// Writes text whose styles (`ESC [ numbers m`) are the program's own. Every other control character is
    /// replaced.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn styled(&mut self, text: &str) -> io::Result<()> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("\u{1b}[") {
            let (before, from) = rest.split_at(at);
            let numbers = from[2..].find(|char: char| !char.is_ascii_digit() && char != ';');
            let end = numbers.map(|end| end + 2).filter(|end| from[*end..].starts_with('m'));
            // An escape that is no style is replaced; what follows it is looked at again.
            let end = end.map_or(1, |end| end + 1);
            let style = if end > 1 { &from[..end] } else { "\\x1b" };
            write!(out, "{}{style}", visible::text(before)).expect("a string");
            rest = &from[end..];
        }
        out.push_str(&visible::text(rest));
        self.bytes(&out)
    }

    /// The writer.
    pub fn into_inner(self) -> W {
        self.0
    }

    fn bytes(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes())?;
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Sink<Vec<u8>>) -> io::Result<()>) -> String {
        let mut sink = Sink::new(Vec::new());
        write(&mut sink).expect("a vector takes all");
        String::from_utf8(sink.into_inner()).expect("text")
    }

    #[test]
    fn no_control_character_passes() {
        let hostile = "a\tb\u{1b}]0;OWNED\u{7}\u{9b}31m\u{202e}\r\n";
        let expected = "a\tb\\x1b]0;OWNED\\x07\\x9b31m\\u202e\\x0d\n";
        assert_eq!(written(|sink| sink.text(hostile)), expected);
        assert_eq!(written(|sink| sink.painted(hostile, |text| format!("\u{1b}[1m{text}"))), {
            format!("\u{1b}[1m{expected}")
        });
        assert_eq!(written(|sink| sink.styled(hostile)), expected);
    }

    #[test]
    fn a_styled_text_keeps_styles_alone() {
        let check = |text: &str, expected: &str| {
            assert_eq!(written(|sink| sink.styled(text)), expected);
        };
        check("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m x\n", "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m x\n");
        check("\u{1b}[1;31mx\u{1b}[m", "\u{1b}[1;31mx\u{1b}[m");
        check("\u{1b}[2Jx\u{1b}[1", "\\x1b[2Jx\\x1b[1");
        check("\u{1b}[\u{1b}[1mx\u{1b}", "\\x1b[\u{1b}[1mx\\x1b");
    }
}
