//! The words of one line, taken from left to right.

use super::error::{ScriptError, near};

/// The words of a line that are not taken yet.
pub(super) struct Words<'a> {
    file: &'a str,
    /// The line, from 1.
    line: u32,
    /// The form of the command; empty before the command is known.
    pub(super) form: &'static str,
    rest: std::vec::IntoIter<&'a str>,
}

impl<'a> Words<'a> {
    /// The words of `text`. A `#` at the start of a word begins a comment.
    pub(super) fn new(file: &'a str, line: u32, text: &'a str) -> Words<'a> {
        let words: Vec<&str> = text.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        Words { file, line, form: "", rest: words.into_iter() }
    }

    /// The next word; `None` at the line's end.
    pub(super) fn take(&mut self) -> Option<&'a str> {
        self.rest.next()
    }

    /// Whether no word is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.len() == 0
    }

    /// The next word, which is `expected`.
    pub(super) fn word(&mut self, expected: &str) -> Result<&'a str, ScriptError> {
        self.take().ok_or_else(|| self.error(expected, "the end of the line"))
    }

    /// The next word as a number of at most `most`.
    pub(super) fn number(&mut self, expected: &str, most: u64) -> Result<u64, ScriptError> {
        let word = self.word(expected)?;
        let value = number(word).filter(|value| *value <= most);
        value.ok_or_else(|| self.error(&format!("{expected} (a number of at most {most})"), word))
    }

    /// The next word as a number of 32 bits.
    pub(super) fn number32(&mut self, expected: &str) -> Result<u32, ScriptError> {
        Ok(self.number(expected, u32::MAX.into())? as u32)
    }

    /// The next word as a number of 32 bits, at least 1.
    pub(super) fn positive(&mut self, expected: &str) -> Result<u32, ScriptError> {
        match self.number32(expected)? {
            0 => Err(self.error(&format!("{expected} (at least 1)"), "0")),
            value => Ok(value),
        }
    }

    /// One of `known`, as the value beside it.
    pub(super) fn one_of<T: Copy>(&mut self, expected: &str, known: &[(&str, T)]) -> Result<T, ScriptError> {
        let word = self.word(expected)?;
        let found = known.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| *value).ok_or_else(|| self.error(expected, word))
    }

    /// Refuses words that are left.
    pub(super) fn end(mut self) -> Result<(), ScriptError> {
        match self.take() {
            Some(word) => Err(self.error("the end of the line", word)),
            None => Ok(()),
        }
    }

    /// An error at this line.
    pub(super) fn error(&self, expected: &str, found: &str) -> ScriptError {
        let form = if self.form.is_empty() { String::new() } else { format!(" in `{}`", self.form) };
        let (expected, found) = (format!("{expected}{form}"), found.chars().take(60).collect());
        ScriptError { file: self.file.to_string(), line: self.line, expected, found, near: Vec::new() }
    }

    /// An error about a name that is none of `known`.
    pub(super) fn unknown<'k>(
        &self,
        expected: &str,
        found: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> ScriptError {
        ScriptError { near: near(found, known), ..self.error(expected, found) }
    }
}

/// A number of ASCII digits only; `str::parse` would also take `+1`.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
