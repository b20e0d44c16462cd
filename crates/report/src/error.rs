//! The error of every room that reads files: which file, and what is wrong with it.

use crate::visible;
use std::path::{Path, PathBuf};

/// A result with this error.
pub type Result<T> = std::result::Result<T, Error>;

/// An input that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", shown(path), visible::lines(what))]
pub struct Error {
    /// The file, or the option, that is wrong; `-` is standard input.
    pub path: PathBuf,
    /// The error, and the expected form.
    pub what: String,
}

impl Error {
    /// An error about `path`.
    pub fn new(path: impl AsRef<Path>, what: impl std::fmt::Display) -> Error {
        Error { path: path.as_ref().to_path_buf(), what: what.to_string() }
    }
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".into();
    }
    visible::name(&path.display().to_string()).into_owned()
}

/// Adds the path to a reader's error.
pub trait At<T> {
    /// The error with the path of the file it is about.
    fn at(self, path: &Path) -> Result<T>;
}

impl<T, E: std::fmt::Display> At<T> for std::result::Result<T, E> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| Error::new(path, error))
    }
}
