//! Files where the system has none: those that a page was given, by name.

use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An open file.
pub type File = Cursor<Given>;

/// The bytes of a file.
#[derive(Clone, Debug)]
pub struct Given(Arc<Vec<u8>>);

impl AsRef<[u8]> for Given {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

static FILES: Mutex<BTreeMap<PathBuf, Given>> = Mutex::new(BTreeMap::new());

fn files() -> MutexGuard<'static, BTreeMap<PathBuf, Given>> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a file. One of the same name is replaced.
pub fn give(name: impl Into<PathBuf>, bytes: Vec<u8>) {
    files().insert(name.into(), Given(Arc::new(bytes)));
}

/// Forgets all files.
pub fn forget() {
    files().clear();
}

/// Opens a file for reading.
///
/// # Errors
/// A file that was not given.
pub fn open(path: &Path) -> io::Result<File> {
    let found = files().get(path.strip_prefix(".").unwrap_or(path)).cloned();
    found.map(Cursor::new).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file was given"))
}

/// Whether a file was given.
pub fn is_file(path: &Path) -> bool {
    open(path).is_ok()
}

/// The size of a file in bytes.
///
/// # Errors
/// A file that was not given.
pub fn size(path: &Path) -> io::Result<u64> {
    open(path).map(|file| file.get_ref().0.len() as u64)
}

/// The bytes of a file.
pub(super) fn length(file: &File) -> io::Result<Option<u64>> {
    Ok(Some(file.get_ref().0.len() as u64))
}
