//! The error of every room that reads files: which file, and what is wrong with it.

use crate::visible;
use std::path::{Path, PathBuf};

/// A result with this error.
pub type Result<T> = std::result::Result<T, Error>;

/// An input that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", shown(path), visible::lines(what))]
pub struct Error {
    /// The file, or the option, that is wrong; `-` is standard input.
    pub path: PathBuf,
    /// The error, and the expected form.
    pub what: String,
}

impl Error {
    /// An error about `path`.
    pub fn new(path: impl AsRef<Path>, what: impl std::fmt::Display) -> Error {
        Error { path: path.as_ref().to_path_buf(), what: what.to_string() }
    }
}

/// Where in a file an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// A byte, from 0; of compressed data, in what it decompresses to.
    Offset(u64),
}

impl Error {
    /// Where in the file the error is, if its reader says so: every reader writes `line 7: ..`,
    /// `line 7 of ..` or `at byte 4096`.
    pub fn place(&self) -> Option<Place> {
        let number = |rest: &str| {
            let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().ok()
        };
        if let Some(line) = self.what.strip_prefix("line ").and_then(number) {
            return Some(Place::Line(line));
        }
        let (_, rest) = self.what.split_once("at byte ")?;
        number(rest).map(Place::Offset)
    }
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".into();
    }
    visible::path(path)
}

/// Adds the path to a reader's error.
pub trait At<T> {
    /// The error with the path of the file it is about.
    fn at(self, path: &Path) -> Result<T>;
}

impl<T, E: std::fmt::Display> At<T> for std::result::Result<T, E> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| Error::new(path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_its_place() {
        let check = |what: &str, expected: Option<Place>| {
            assert_eq!(Error::new("f", what).place(), expected, "{what}");
        };
        check("line 7: expected a number", Some(Place::Line(7)));
        check("line 12 of the format text: expected `field`", Some(Place::Line(12)));
        check("at byte 4096: expected a record", Some(Place::Offset(4096)));
        check("the tar ends early at byte 512: was it copied whole?", Some(Place::Offset(512)));
        check("lines are missing", None);
        check("line up", None);
        check("No such file or directory (os error 2)", None);
    }
}
