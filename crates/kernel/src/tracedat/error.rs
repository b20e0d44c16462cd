//! What can be wrong with a trace.dat.

use crate::bytes::Short;
use crate::tracepoint::FormatError;

/// Why a trace.dat cannot be read (further). Offsets are in the file as trace-cmd wrote it: after decompression of the
/// whole file (gz, zst, xz), and for what is inside one of its compressed parts, that part's beginning plus the offset
/// in what comes out of it.
#[derive(Debug, thiserror::Error)]
pub enum TraceDatError {
    /// The input could not be read.
    #[error("at byte {offset}: {source}")]
    Io {
        /// Where.
        offset: u64,
        /// The reader's error.
        source: std::io::Error,
    },
    /// The first ten bytes are not trace-cmd's.
    #[error("at byte 0: expected 17 08 44 `tracing`, found {found:02x?}: not a trace.dat")]
    Magic {
        /// The bytes there.
        found: Vec<u8>,
    },
    /// A version other than 6 and 7.
    #[error("at byte 10: expected version 6 or 7, found `{found}`")]
    Version {
        /// The version there, shortened.
        found: String,
    },
    /// Something is cut off, or its size field is wrong.
    #[error("at byte {offset}: expected {need} bytes of {what}, {have} are there")]
    Truncated {
        /// Where it should begin.
        offset: u64,
        /// What it is.
        what: &'static str,
        /// Bytes it should have.
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// A value that no trace-cmd writes.
    #[error("at byte {offset}: expected {expected}, found {found}")]
    Value {
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
        /// What is.
        found: u64,
    },
    /// A text that no trace-cmd writes there.
    #[error("at byte {offset}: expected {expected}, found `{found}`")]
    Text {
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
        /// What is, shortened.
        found: String,
    },
    /// None of the formats is an event we read.
    #[error("the recording has no allocation events: expected kmem:kmalloc or its like, found {found}")]
    NoEvents {
        /// Names of the events it has, shortened.
        found: String,
    },
    /// A format text is unusable.
    #[error("format text at byte {offset}: {source}")]
    Format {
        /// Where the text begins.
        offset: u64,
        /// What is wrong in it.
        source: FormatError,
    },
    /// A compressed part does not decompress.
    #[error("at byte {offset}: a part compressed with {algorithm} cannot be decompressed: {message}")]
    Compressed {
        /// Where the part begins.
        offset: u64,
        /// As the file's header names it.
        algorithm: &'static str,
        /// The decompressor's words.
        message: String,
    },
}

impl TraceDatError {
    pub(super) fn text(offset: u64, expected: &'static str, found: &[u8]) -> Self {
        let found = crate::bytes::text_lossy(found).chars().take(60).collect();
        TraceDatError::Text { offset, expected, found }
    }
}

impl From<Short> for TraceDatError {
    fn from(short: Short) -> Self {
        let Short { what, offset, need, have } = short;
        TraceDatError::Truncated { offset, what, need, have }
    }
}
