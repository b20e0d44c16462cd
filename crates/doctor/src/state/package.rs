//! The file of `slablab record`, as it is written: the states around a recording, then its events.

use super::archive;
use slablab_report::AtomicFile;
use slablab_report::error::{At, Result};
use std::io::{BufWriter, IntoInnerError, Read};
use std::path::{Path, PathBuf};

pub use slablab_readers::recording::{
    ABOUT, AFTER, BEFORE, END, END_SLABS, KALLSYMS, PERF_DATA, START, START_SLABS, TRACE_DAT,
};

/// A recording's file, which appears whole or not at all.
pub struct Package {
    file: BufWriter<AtomicFile>,
    path: PathBuf,
    seconds: u64,
}

impl Package {
    /// Begins the file at `path`; its members are of the time `seconds`, since 1970. The first member is
    /// [`ABOUT`], the last that of the events. Only the file's owner can read it: it has addresses of the
    /// kernel.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn create(path: &Path, seconds: u64) -> Result<Package> {
        let file = AtomicFile::create_private(path)?;
        Ok(Package { file: BufWriter::new(file), path: path.to_path_buf(), seconds })
    }

    /// Adds a member of `size` bytes, which `content` has.
    ///
    /// # Errors
    /// A file that cannot be written, `content` that ends early.
    pub fn add(&mut self, name: &str, size: u64, content: &mut dyn Read) -> Result<()> {
        archive::file(&mut self.file, name, (size, content), self.seconds).at(&self.path)
    }

    /// Ends the file, which then appears.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn commit(mut self) -> Result<()> {
        archive::end(&mut self.file).at(&self.path)?;
        let file = self.file.into_inner().map_err(IntoInnerError::into_error).at(&self.path)?;
        file.commit()
    }
}
