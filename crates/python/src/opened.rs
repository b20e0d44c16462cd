//! A recording's trace.

use slablab_trace::Reader;
use std::path::PathBuf;

/// A trace that is open, and its name in errors.
pub(crate) struct Opened {
    pub(crate) path: PathBuf,
    pub(crate) reader: Reader,
}
