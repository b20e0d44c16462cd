//! What can be wrong with a text recording.

use crate::text::LineError;

/// Why a text recording cannot be read (further).
#[derive(Debug, thiserror::Error)]
pub enum FtraceError {
    /// The input could not be read.
    #[error("after line {line}: {source}")]
    Io {
        /// Lines read so far.
        line: usize,
        /// The reader's error.
        source: std::io::Error,
    },
    /// A line is neither an event nor one of those that stand between events.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Not one event of the vocabulary was in it.
    #[error(
        "the recording has no allocation events: expected lines such as `bash-12 [000] 3.141592: kmalloc: ..`, {found}"
    )]
    NoEvents {
        /// What was found instead.
        found: String,
    },
}
