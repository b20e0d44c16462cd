//! Untrusted names: the author of an input chooses the names of its caches, files, kernels and commands.
//!
//! A name can hold escape sequences that set a terminal's title, and characters that reverse the text around
//! them. [`name`] replaces each such character by the escape that Rust, C and bash write for it: `\x1b`,
//! `\u202e`. Every renderer of this crate and every [`crate::Error`] does so; pages show U+FFFD instead
//! ([`crate::html::escape`]).

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Whether a terminal or a viewer acts on the character instead of showing it: C0, DEL, C1, the line and
/// paragraph separators, and the controls of bidirectional text.
pub fn is_control(char: char) -> bool {
    let marks = matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let bidi = marks || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    char.is_control() || bidi || matches!(char, '\u{2028}' | '\u{2029}')
}

/// A name for one line of text: every control character as its escape, line ends and tabs included.
pub fn name(text: &str) -> Cow<'_, str> {
    shown(text, is_control)
}

/// The name of a file, as [`name`].
pub fn path(path: &Path) -> String {
    name(&path.to_string_lossy()).into_owned()
}

/// Text of several lines: as [`name`], but line ends stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |char| char != '\n' && is_control(char))
}

/// Text as a program prints it: as [`lines`], but tabs stay, too.
pub fn text(text: &str) -> Cow<'_, str> {
    shown(text, |char| !matches!(char, '\n' | '\t') && is_control(char))
}

fn shown(text: &str, hidden: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match (char, u32::from(char)) {
            (char, code) if hidden(char) && code <= 0xff => write!(out, "\\x{code:02x}").expect("a string"),
            (char, code) if hidden(char) => write!(out, "\\u{code:04x}").expect("a string"),
            (char, _) => out.push(char),
        }
    }
    Cow::Owned(out)
}

/// A word of a command as a shell reads it: quoted unless every character is a letter, a digit or in `plain`.
/// A word with control characters is quoted as `$'...'`, which bash, zsh and ksh read back and which is safe
/// to look at.
pub fn shell_word<'a>(word: &'a str, plain: &str) -> Cow<'a, str> {
    if word.contains(is_control) {
        let mut out = String::from("$'");
        for char in word.chars() {
            match (char, u32::from(char)) {
                ('\'' | '\\', _) => out.extend(['\\', char]),
                (_, code @ ..=0x7f) if is_control(char) => write!(out, "\\x{code:02x}").expect("a string"),
                (_, code) if is_control(char) => write!(out, "\\u{code:04x}").expect("a string"),
                _ => out.push(char),
            }
        }
        return Cow::Owned(out + "'");
    }
    if !word.is_empty() && word.chars().all(|char| char.is_ascii_alphanumeric() || plain.contains(char)) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_word_back() {
        let cases = [
            ("/a-b", "/a-b"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
            ("a\u{1b}'\\\u{9b}\u{202e}", r"$'a\x1b\'\\\u009b\u202e'"),
        ];
        for (word, expected) in cases {
            assert_eq!(shell_word(word, "/-"), expected);
        }
    }

    #[test]
    fn control_characters_become_escapes() {
        let cases = [
            ("kmalloc-64", "kmalloc-64", "kmalloc-64"),
            ("\u{1b}]0;x\u{7}", "\\x1b]0;x\\x07", "\\x1b]0;x\\x07"),
            ("a\tb\r\nc", "a\\x09b\\x0d\\x0ac", "a\\x09b\\x0d\nc"),
            ("\u{7f}\u{80}\u{9f}\u{a0}", "\\x7f\\x80\\x9f\u{a0}", "\\x7f\\x80\\x9f\u{a0}"),
            ("\u{202e}\u{2066}\u{2028}é", "\\u202e\\u2066\\u2028é", "\\u202e\\u2066\\u2028é"),
        ];
        for (text, as_name, as_lines) in cases {
            assert_eq!((&*name(text), &*lines(text)), (as_name, as_lines));
        }
    }
}
