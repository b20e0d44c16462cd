//! A finished import.

use slablab_trace::Metadata;
use std::path::PathBuf;

/// A finished import.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was imported.
    pub input: PathBuf,
    /// The trace.
    pub output: PathBuf,
    /// The trace's metadata.
    pub metadata: Metadata,
}

impl Report {
    /// Whether the recording is known to miss events.
    pub fn incomplete(&self) -> bool {
        self.metadata.is_incomplete()
    }
}
