//! A recording that an experiment names: a file in the experiment's folder, read once for all cells.

use super::recorded::recorded;
use sha2::{Digest, Sha256};
use slablab_report::error::{At, Error, Result};
use slablab_sim::recorded::Recorded;
use std::cmp::Ordering;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// A recording by its name in the experiment. Two of the same name are equal: an experiment has one folder.
pub struct Input {
    given: String,
    /// The line of the experiment that names it.
    line: usize,
    found: OnceLock<Found>,
    recorded: OnceLock<std::result::Result<Arc<Recorded>, String>>,
}

/// A file that was found.
struct Found {
    path: PathBuf,
    sha256: String,
}

impl Input {
    /// A recording that is not found yet.
    pub fn new(given: &str, line: usize) -> Input {
        Input { given: given.into(), line, found: OnceLock::new(), recorded: OnceLock::new() }
    }

    /// Its name in the experiment.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// Finds it in the folder of `experiment`.
    ///
    /// # Errors
    /// A file outside of the folder, or one that cannot be read, with the line that names it.
    pub(super) fn find(&self, folder: &Path, experiment: &Path) -> Result<()> {
        let expected = "expected a recording in the experiment's folder";
        let bad = |what: String| {
            Error::new(experiment, format!("line {}: {}: {what}: {expected}", self.line, self.given))
        };
        let inside = folder.canonicalize().at(folder)?;
        let whole = folder.join(&self.given).canonicalize().map_err(|error| bad(error.to_string()))?;
        if !whole.starts_with(&inside) {
            return Err(bad("this file is outside of the folder".into()));
        }
        self.find_at(whole).map_err(|error| bad(error.what))
    }

    /// Finds it in this file, whatever its name is.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn find_at(&self, path: PathBuf) -> Result<()> {
        let mut file = slablab_report::files::open(&path).at(&path)?;
        let (mut digest, mut bytes) = (Sha256::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut bytes).at(&path)? {
                0 => break,
                read => digest.update(&bytes[..read]),
            }
        }
        let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = self.found.set(Found { path, sha256 });
        Ok(())
    }

    /// The digest of its bytes; empty if it was not found.
    pub fn sha256(&self) -> &str {
        self.found.get().map_or("", |found| &found.sha256)
    }

    /// Where it was found.
    pub(super) fn path(&self) -> Option<&Path> {
        Some(&self.found.get()?.path)
    }

    /// What was recorded.
    ///
    /// # Errors
    /// What cannot be read or is no recording.
    pub fn recorded(&self) -> std::result::Result<Arc<Recorded>, String> {
        let read = || match self.path() {
            Some(path) => recorded(path).map(Arc::new).map_err(|error| error.to_string()),
            None => Err(format!("{}: the recording is not there", self.given)),
        };
        self.recorded.get_or_init(read).clone()
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Input").field(&self.given).field(&self.sha256()).finish()
    }
}

impl PartialEq for Input {
    fn eq(&self, other: &Input) -> bool {
        self.given == other.given
    }
}

impl Eq for Input {}

impl PartialOrd for Input {
    fn partial_cmp(&self, other: &Input) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Input {
    fn cmp(&self, other: &Input) -> Ordering {
        self.given.cmp(&other.given)
    }
}
