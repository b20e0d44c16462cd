//! A file that no user asked for.

use crate::interrupts::TEMPORARY;
use std::path::PathBuf;
use std::sync::PoisonError;

/// A file that goes with the program, also when a signal ends it.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    /// Makes no file: only its removal is sure.
    pub(crate) fn new(path: PathBuf) -> Temporary {
        *TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.clone());
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is not there if nothing was written.
        let _ = std::fs::remove_file(&self.0);
    }
}
