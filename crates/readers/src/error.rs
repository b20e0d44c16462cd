//! The error of the readers of recordings and of tables: where, and what is wrong there.

use crate::bytes::Short;
use crate::text::LineError;
use std::fmt;

/// Where a reader stopped. The readers count in the file as its program wrote it: after the decompression of
/// the whole file (gz, zst, xz) and before that of its own compressed records. A place inside of a compressed
/// section counts from the section's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A byte, from 0.
    Offset(u64),
    /// A line, from 1.
    Line(usize),
    /// No single place: something is missing from the whole input, or the message names the place.
    Whole,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Offset(offset) => write!(f, "at byte {offset}: "),
            At::Line(line) => write!(f, "line {line}: "),
            At::Whole => Ok(()),
        }
    }
}

/// Why a recording or a table cannot be read (further).
#[derive(Debug, thiserror::Error)]
#[error("{at}{what}")]
pub struct ReadError {
    /// Where.
    pub at: At,
    /// What is wrong there.
    pub what: What,
}

/// What is wrong with an input.
#[derive(Debug, thiserror::Error)]
pub enum What {
    /// The input could not be read, or not be decompressed.
    #[error("{0}")]
    Io(std::io::Error),
    /// The input ends early, or a size field in it is too large.
    #[error("expected {need} bytes of {what}, {have} are there")]
    Truncated {
        /// The part that is cut off.
        what: &'static str,
        /// Bytes that it should have.
        need: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// The content has not the form that the program or the kernel writes. The text has the expected and the
    /// found value.
    #[error("{0}")]
    Content(String),
}

impl ReadError {
    pub(crate) fn new(at: At, what: impl fmt::Display) -> ReadError {
        ReadError { at, what: What::Content(what.to_string()) }
    }

    pub(crate) fn at_byte(offset: u64, what: impl fmt::Display) -> ReadError {
        ReadError::new(At::Offset(offset), what)
    }

    pub(crate) fn value(offset: u64, expected: &str, found: impl fmt::Display) -> ReadError {
        ReadError::at_byte(offset, format_args!("expected {expected}, found {found}"))
    }

    /// `found` is shown as text, shortened.
    pub(crate) fn text(offset: u64, expected: &str, found: &[u8]) -> ReadError {
        let found: String = crate::bytes::text_lossy(found).chars().take(60).collect();
        ReadError::value(offset, expected, format_args!("`{found}`"))
    }

    /// The message of compressed data that ends early names the place itself.
    pub(crate) fn io(at: At, error: std::io::Error) -> ReadError {
        let cut = error.kind() == std::io::ErrorKind::UnexpectedEof;
        ReadError { at: if cut { At::Whole } else { at }, what: What::Io(error) }
    }

    /// `found` names what is there instead of allocation events.
    pub(crate) fn no_events(expected: &str, found: &str) -> ReadError {
        let what = format_args!("the recording has no allocation events: expected {expected}, {found}");
        ReadError::new(At::Whole, what)
    }

    /// `known` are the tracepoints that the recording has.
    pub(crate) fn no_kmem(known: &[String]) -> ReadError {
        ReadError::no_events("kmem:kmalloc or its like", &format!("found {}", known.join(", ")))
    }
}

impl From<Short> for ReadError {
    fn from(Short { what, offset, need, have }: Short) -> ReadError {
        ReadError { at: At::Offset(offset), what: What::Truncated { what, need, have } }
    }
}

impl From<LineError> for ReadError {
    fn from(LineError { line, expected, found }: LineError) -> ReadError {
        ReadError::new(At::Line(line), format_args!("expected {expected}, found `{found}`"))
    }
}
