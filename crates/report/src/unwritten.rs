//! A page in a browser writes no files.

use crate::error::{Error, Result};
use std::convert::Infallible;
use std::io::{self, Write};
use std::path::Path;

/// A file that is never there.
#[derive(Debug)]
pub struct AtomicFile(Infallible);

impl AtomicFile {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        Err(Error::new(path, "a page writes no files"))
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn commit(self) -> Result<()> {
        match self.0 {}
    }
}

impl Write for AtomicFile {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
