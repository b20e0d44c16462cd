//! What every answer about a recording says of it.

use schemars::JsonSchema;
use serde::Serialize;
use slablab_trace::{CutOff, Metadata};
use std::path::Path;

/// A recording in a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct Recording {
    /// Where the recording was cut off; null for a whole one.
    cut_off: Option<CutOff>,
    /// Events that the recording lost, as far as it says.
    events_lost: u64,
    /// Places in the recording where events were lost.
    lost_records: u64,
    /// The recording's path.
    recording: String,
    /// The release of the kernel, as `uname -r` prints it.
    release: Option<String>,
}

impl Recording {
    pub(super) fn new(path: &Path, metadata: &Metadata) -> Recording {
        Recording {
            cut_off: metadata.cut_off.clone(),
            events_lost: metadata.losses.events,
            lost_records: metadata.losses.records,
            recording: path.display().to_string(),
            release: metadata.release.clone(),
        }
    }
}

/// What a recording lacks, a line each.
pub(super) fn gaps(metadata: &Metadata) -> Vec<String> {
    metadata.gaps().into_iter().map(|gap| format!("INCOMPLETE: {gap}")).collect()
}
