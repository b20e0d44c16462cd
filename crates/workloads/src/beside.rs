//! A file that appears whole or not at all.
//!
//! On Linux it has no name until [`Beside::commit`]: whatever ends the program, Ctrl-C or a power cut, nothing is left.
//! Where the filesystem cannot do that, the file has a name of its own beside the target, removed when dropped; only a
//! program that is killed leaves it behind.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A file being written, to become `path`. Dropped without [`Beside::commit`], it is gone.
#[derive(Debug)]
pub struct Beside {
    file: File,
    path: PathBuf,
    /// The name it has meanwhile, if it has one.
    named: Option<PathBuf>,
    /// It is a device or a pipe: written as it is, since replacing it would destroy it.
    in_place: bool,
}

impl Beside {
    /// Opens a file that will become `path`. What is at `path` now stays until the commit.
    pub fn create(path: &Path) -> Result<Beside, Error> {
        Beside::begin(path, nameless(folder(path)))
    }

    fn begin(path: &Path, nameless: Option<File>) -> Result<Beside, Error> {
        let fail = |source| Error::Io { path: path.into(), source };
        if path.is_dir() {
            return Err(fail(io::ErrorKind::IsADirectory.into()));
        }
        let (named, in_place) = (None, path.exists() && !path.is_file());
        if in_place {
            let file = File::options().write(true).open(path).map_err(fail)?;
            return Ok(Beside { file, path: path.into(), named, in_place });
        }
        match nameless {
            Some(file) => Ok(Beside { file, path: path.into(), named, in_place }),
            None => {
                let named = temporary(path);
                let file = File::create_new(&named).map_err(fail)?;
                Ok(Beside { file, path: path.into(), named: Some(named), in_place })
            }
        }
    }

    /// Makes the file appear at its path, replacing what was there.
    pub fn commit(mut self) -> Result<(), Error> {
        if self.in_place {
            return Ok(());
        }
        let named = match self.named.take() {
            Some(named) => named,
            None => {
                let named = temporary(&self.path);
                link(&self.file, &named).map_err(|source| self.fail(source))?;
                named
            }
        };
        // From here on the name is cleaned up if the rename fails.
        self.named = Some(named.clone());
        std::fs::rename(&named, &self.path).map_err(|source| self.fail(source))?;
        self.named = None;
        Ok(())
    }

    fn fail(&self, source: io::Error) -> Error {
        Error::Io { path: self.path.clone(), source }
    }
}

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(named) = &self.named {
            // Nobody is left to be told.
            let _ = std::fs::remove_file(named);
        }
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    folder(path).join(format!(".{name}.{}.tmp", std::process::id()))
}

#[cfg(target_os = "linux")]
fn nameless(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let mode = Mode::from_raw_mode(0o666);
    let file = rustix::fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode).ok()?;
    // Without /proc the file could not be named later.
    Path::new("/proc/self/fd").exists().then(|| File::from(file))
}

#[cfg(target_os = "linux")]
fn link(file: &File, to: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    use std::os::fd::AsRawFd;
    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::linkat(CWD, from, CWD, to, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_folder: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happens where a filesystem has no files without names.
    #[test]
    fn a_named_file_is_removed_or_renamed() {
        let folder = std::env::temp_dir().join(format!("slablab-named-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("out");
        let names = || -> Vec<_> {
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        let mut file = Beside::begin(&path, None).unwrap();
        file.write_all(b"first").unwrap();
        assert_eq!(names().len(), 1);
        assert_ne!(names()[0], "out");
        drop(file);
        assert!(names().is_empty());
        Beside::begin(&path, None).unwrap().commit().unwrap();
        assert_eq!(names(), ["out"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
