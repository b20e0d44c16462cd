//! What can be wrong with a perf.data.

use crate::bytes::Short;
use crate::tracepoint::FormatError;

/// Why a perf.data cannot be read (further). Offsets are in the file as perf wrote it, after decompression of the
/// whole file (gz, zst, xz) but before that of perf's own compressed records.
#[derive(Debug, thiserror::Error)]
pub enum PerfDataError {
    /// The input could not be read.
    #[error("at byte {offset}: {source}")]
    Io {
        /// Bytes read so far.
        offset: u64,
        /// The reader's error.
        source: std::io::Error,
    },
    /// The first eight bytes are not perf's.
    #[error("at byte 0: expected `PERFILE2`, found {found:02x?}: not a perf.data")]
    Magic {
        /// The bytes there.
        found: [u8; 8],
    },
    /// The recording was not closed: perf writes the data size last.
    #[error("at byte 48: the data size is 0: perf record was killed before it could finish this file")]
    Unfinished,
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
    /// A value that no perf writes.
    #[error("at byte {offset}: expected {expected}, found {found}")]
    Value {
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
        /// What is.
        found: u64,
    },
    /// There are no format texts, so that payloads mean nothing.
    #[error(
        "the recording has no tracepoint formats (HEADER_TRACING_DATA): record with `perf record -e 'kmem:*'`, not as \
         hardware or software events"
    )]
    NoFormats,
    /// None of the formats is an event we read.
    #[error("the recording has no allocation events: expected kmem:kmalloc or its like, found {found}")]
    NoEvents {
        /// Names of the events it has, shortened.
        found: String,
    },
    /// The samples lack what a replay needs.
    #[error("the recording's samples have no {field}: record with `perf record -a -e 'kmem:*'`")]
    NoField {
        /// The missing field.
        field: &'static str,
    },
    /// A format text is unusable.
    #[error("format text at byte {offset}: {source}")]
    Format {
        /// Where the text begins.
        offset: u64,
        /// What is wrong in it.
        source: FormatError,
    },
    /// A compressed record does not decompress.
    #[error("at byte {offset}: a compressed record cannot be decompressed: {message}")]
    Zstd {
        /// Where the record begins.
        offset: u64,
        /// The decompressor's words.
        message: String,
    },
}

impl From<Short> for PerfDataError {
    fn from(short: Short) -> Self {
        let Short { what, offset, need, have } = short;
        PerfDataError::Truncated { offset, what, need, have }
    }
}
