//! What can be wrong with a trace.

use std::path::PathBuf;

use parquet::errors::ParquetError;

/// Why a trace cannot be read or written. The caller knows the file's name and puts it in front.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not Parquet, or cut off: the footer is at the end.
    #[error("expected a whole Parquet file, which ends in its footer: {0}")]
    NotParquet(ParquetError),
    /// Parquet, but without our metadata.
    #[error("a Parquet file, but not a slablab trace: the footer has no key \"{0}\"")]
    NotATrace(&'static str),
    /// Written by a later program.
    #[error(
        "the trace has format {major}.{minor}, this program reads up to {read}.x: a newer slablab is needed"
    )]
    TooNew {
        /// The file's major version.
        major: u32,
        /// The file's minor version.
        minor: u32,
        /// The newest major version that this program reads.
        read: u32,
    },
    /// A metadata value that does not parse.
    #[error("footer key \"slablab.{key}\": {why}")]
    Metadata {
        /// The key without its prefix.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// A column that must be there is not.
    #[error("column \"{0}\" is missing")]
    MissingColumn(&'static str),
    /// A column of another type.
    #[error("column \"{column}\": expected {expected}, found {found}")]
    ColumnType {
        /// Which.
        column: &'static str,
        /// The format's type.
        expected: String,
        /// The file's type.
        found: String,
    },
    /// A damaged or contradictory part of the file.
    #[error("row group {group}, column \"{column}\": {why}")]
    Corrupt {
        /// Which row group, from 0.
        group: usize,
        /// Which column.
        column: String,
        /// What is wrong.
        why: String,
    },
    /// An earlier write had failed, and its error was given then.
    #[error("writing the trace had failed before")]
    Stopped,
    /// Parquet could not write.
    #[error("writing the trace: {0}")]
    Write(#[from] ParquetError),
}

impl Error {
    /// The message without a path, for a caller that names the file itself.
    pub fn without_path(self) -> String {
        match self {
            Error::Io { source, .. } => source.to_string(),
            error => error.to_string(),
        }
    }
}
