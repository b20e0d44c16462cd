//! Recordings that several verbs read.

use crate::input::Progress;
use crate::outcome::Failure;
use slablab_replay::import::{self, Input};
use slablab_trace::Reader;
use std::path::Path;

/// Opens a recording, perhaps one of a folder. It is a trace, or anything that `slablab import` reads: then
/// it becomes a trace in a temporary file first.
pub(crate) fn open(path: &Path, recording: Option<&str>) -> Result<Reader, Failure> {
    let progress = Progress::new("import");
    let input = Input { path, recording, formats: None };
    Ok(import::open(input, &mut |events| progress.at(events, events))?)
}
