//! The folder of a recording that is under way, and what recorders left that were killed.
//!
//! ```text
//! .slablab-record.PID-START       beside the trace; closed to other users, or search only
//!   raw-RANDOM                    a raw file for each process
//!     lock                        locked by the recorder as long as it lives
//!   counts                        a link to the folder below
//! .slablab-record.PID-START       in the folder for temporary files; search only
//!   libslablab-record.so          what is preloaded
//!   lock                          as above
//!   counts-RANDOM                 heads of raw files: of processes that cannot write to the first folder
//!   recording                     a link to the first folder
//! ```
//!
//! A process of root may give up its rights and must still be recorded. So if the recorder is root, everyone
//! may write to the two inner folders who knows their names: the processes that are recorded do, and nobody
//! can list the folders around them. The programs also inherit a descriptor of the inner folder, as a folder
//! further up may be closed to them.
//!
//! If libraries cannot be loaded from the folder for temporary files, the second folder is the first.

use crate::files::{Process, processes};
use crate::owner::Owner;
use crate::preloaded;
use crate::raw::HEAD_BYTES;
use rustix::fs::{Mode, OFlags, StatVfsMountFlags, statvfs};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::geteuid;
use slablab_trace::Error;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// What the names of folders begin with.
const PREFIX: &str = ".slablab-record.";
/// The library in the recorded program looks for a file of this name.
const LOCK: &str = "lock";

/// Programs that count descriptors, or select among them, use low numbers.
const DESCRIPTOR_LEAST: i32 = 200;

/// Tries to remove a folder that a program still writes to.
const TRIES: u32 = 10;

/// The folders of a recording. Their end removes them, unless the recording is to be kept.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    raw: PathBuf,
    counts: PathBuf,
    /// The folder of the library, if it is another one.
    library: Option<PathBuf>,
    keep: bool,
    descriptor: Option<OwnedFd>,
    _locks: Vec<File>,
}

impl Folder {
    /// Folders in `beside`, where the trace will be: there is room for raw files if there is room for the
    /// trace. The library is in `temporary`, or in `beside` if no library can be loaded from there.
    ///
    /// # Errors
    /// Folders that cannot be made, or none from which a library can be loaded.
    pub fn create(beside: &Path, temporary: &Path) -> Result<Folder, Error> {
        let beside = beside.canonicalize().map_err(|source| Error::Io { path: beside.into(), source })?;
        // Programs may change their folder. One that is not there is not loadable either.
        let temporary = &temporary.canonicalize().unwrap_or_else(|_| temporary.to_path_buf());
        let name = format!("{PREFIX}{}", Owner::own());
        let path = beside.join(&name);
        let library = match (is_loadable(temporary), is_loadable(&beside)) {
            (true, _) => Some(temporary.join(&name)).filter(|library| *library != path),
            (false, true) => None,
            (false, false) => return Err(not_loadable(temporary, &beside)),
        };
        let random = || format!("{:016x}", RandomState::new().hash_one(0));
        let (raw, counts) = (format!("raw-{}", random()), format!("counts-{}", random()));
        let inner = if geteuid().is_root() { 0o1733 } else { 0o700 };
        make(&path, 0o711)?;
        // From here on the end removes what is there.
        let mut folder = Folder {
            raw: path.join(raw),
            counts: library.as_ref().unwrap_or(&path).join(counts),
            library: None,
            keep: false,
            descriptor: None,
            _locks: Vec::new(),
            path,
        };
        make(&folder.raw, inner)?;
        folder._locks.push(lock(&folder.raw)?);
        if let Some(library) = library {
            make(&library, 0o711)?;
            folder.library = Some(library.clone());
            folder._locks.push(lock(&library)?);
            let link = library.join("recording");
            symlink(&folder.path, &link).map_err(|source| Error::Io { path: link, source })?;
            let link = folder.path.join("counts");
            symlink(&folder.counts, &link).map_err(|source| Error::Io { path: link, source })?;
        }
        make(&folder.counts, inner)?;
        let file = folder.library();
        let written = fs::write(&file, preloaded::LIBRARY);
        let written = written.and_then(|()| fs::set_permissions(&file, Permissions::from_mode(0o555)));
        written.map_err(|source| Error::Io { path: file, source })?;
        if geteuid().is_root() {
            folder.descriptor = inherited(&folder.raw);
        }
        Ok(folder)
    }

    /// The library to preload.
    pub fn library(&self) -> PathBuf {
        self.library.as_ref().unwrap_or(&self.path).join(preloaded::LIBRARY_NAME)
    }

    /// Variables of the program's environment, beside the list of libraries to preload. `limit` is the
    /// largest size of a process's file in bytes; about one allocation in each `sample` bytes has its call
    /// chain recorded.
    pub fn environment(&self, limit: u64, sample: Option<u64>) -> Vec<(&'static str, OsString)> {
        let mut all = vec![
            (preloaded::FOLDER, self.raw.clone().into_os_string()),
            (preloaded::COUNTS, self.counts.clone().into_os_string()),
            (preloaded::LIMIT, limit.to_string().into()),
        ];
        all.extend(sample.map(|bytes| (preloaded::SAMPLE, bytes.to_string().into())));
        if let Some(descriptor) = &self.descriptor {
            all.push((preloaded::DESCRIPTOR, descriptor.as_raw_fd().to_string().into()));
        }
        all
    }

    /// The folder, which [`Left::open`] takes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The recorded processes, see [`processes`].
    ///
    /// # Errors
    /// A folder or a file that cannot be read.
    pub fn processes(&self) -> io::Result<Vec<Process>> {
        processes(&[&self.raw, &self.counts])
    }

    /// Leaves the recording where it is, if it has calls. Returns whether it does.
    pub fn keep(&mut self) -> bool {
        self.keep = call_bytes(&self.raw) > 0;
        self.keep
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        for folder in self.library.iter().chain([&self.path]) {
            // What is left is found by the next recorder.
            let _ = remove(folder);
        }
    }
}

/// Makes a folder with this mode, whatever the mask of new files is.
fn make(path: &Path, mode: u32) -> Result<(), Error> {
    let made = DirBuilder::new().mode(0o700).create(path);
    let made = made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)));
    made.map_err(|source| Error::Io { path: path.into(), source })
}

/// A locked file in a folder. Every process may look whether it is locked.
fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join(LOCK);
    let made = || {
        let file = File::options().create_new(true).read(true).write(true).open(&path)?;
        file.set_permissions(Permissions::from_mode(0o444))?;
        if file.try_lock().is_err() {
            // This file system has no locks. Without the file the library takes the recorder for alive.
            fs::remove_file(&path)?;
        }
        Ok(file)
    };
    made().map_err(|source| Error::Io { path, source })
}

/// A descriptor of the folder that programs inherit. `None`: this process may open no more.
fn inherited(folder: &Path) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let low = rustix::fs::open(folder, flags, Mode::empty()).ok()?;
    let high = fcntl_dupfd_cloexec(low, DESCRIPTOR_LEAST).ok()?;
    fcntl_setfd(&high, FdFlags::empty()).ok()?;
    Some(high)
}

/// Whether the loader can load a library from this folder: it splits its list at spaces and colons.
fn is_loadable(folder: &Path) -> bool {
    let splits = |byte: &u8| matches!(byte, b' ' | b':');
    folder.is_dir() && !is_noexec(folder) && !folder.as_os_str().as_encoded_bytes().iter().any(splits)
}

fn is_noexec(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

fn not_loadable(temporary: &Path, beside: &Path) -> Error {
    let why = |folder: &Path| match (folder.is_dir(), is_noexec(folder)) {
        (false, _) => "is no folder",
        (true, true) => "is mounted noexec",
        (true, false) => "has a space or a colon in its path",
    };
    let other = format!("{} {}", beside.display(), why(beside));
    let what = format!(
        "{}, and {other}: the recorder's library cannot be loaded from there; expected another folder in \
         TMPDIR, or another place of the trace (-o)",
        why(temporary)
    );
    Error::Io { path: temporary.into(), source: io::Error::other(what) }
}

/// Bytes of the events in a folder of raw files: what is more than heads.
fn call_bytes(raw: &Path) -> u64 {
    let files = fs::read_dir(raw).into_iter().flatten().flatten();
    let sizes = files.filter_map(|entry| entry.metadata().ok().filter(fs::Metadata::is_file));
    sizes.map(|file| file.len().saturating_sub(HEAD_BYTES as u64)).sum()
}

/// Removes a folder; more than once if a program writes a file to it meanwhile.
fn remove(folder: &Path) -> io::Result<()> {
    for _ in 1..TRIES {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            other => return other,
        }
    }
    fs::remove_dir_all(folder)
}

/// A folder of a recorder that has ended without removing it.
#[derive(Debug)]
pub struct Left {
    /// The folder.
    pub path: PathBuf,
    /// Bytes of recorded events. 0: nothing is lost with the folder.
    pub bytes: u64,
    folders: Vec<PathBuf>,
}

impl Left {
    /// What recorders of this user left in `folders`, and the recordings that belong to it. Folders of
    /// recorders that live are not among them.
    pub fn find(folders: &[&Path]) -> Vec<Left> {
        let mut paths = Vec::new();
        for entry in folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
            if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                continue;
            }
            // The recording may be elsewhere.
            let found = [entry.path(), entry.path().join("recording")];
            paths.extend(found.iter().filter_map(|path| fs::canonicalize(path).ok()));
        }
        paths.sort();
        paths.dedup();
        let mut all: Vec<Left> = paths.into_iter().filter_map(Left::of).collect();
        // A library stays with its recording, whose counts are beside it.
        let kept: Vec<PathBuf> =
            all.iter().filter(|left| left.bytes > 0).map(|left| left.path.clone()).collect();
        all.retain(|left| {
            let recording = fs::canonicalize(left.path.join("recording"));
            left.bytes > 0 || !recording.is_ok_and(|recording| kept.contains(&recording))
        });
        all
    }

    /// What is at `path`, if this user's recorder made it and has ended.
    fn of(path: PathBuf) -> Option<Left> {
        let owner = Owner::parse(path.file_name()?.to_str()?.strip_prefix(PREFIX)?)?;
        let found = fs::symlink_metadata(&path).ok()?;
        let is_own = found.is_dir() && found.uid() == geteuid().as_raw();
        let left = Left::at(path).ok()?;
        (is_own && !owner.is_alive() && !left.is_live()).then_some(left)
    }

    /// The recording in a folder, to be recovered.
    ///
    /// # Errors
    /// A folder without a recording, or of a recorder that lives.
    pub fn open(path: &Path) -> Result<Left, Error> {
        let fail = |source| Error::Io { path: path.into(), source };
        let left = Left::at(path.to_path_buf()).map_err(fail)?;
        if left.folders.is_empty() {
            let what =
                "no recording: expected a folder .slablab-record.PID-START that a killed recorder left";
            return Err(fail(io::Error::other(what)));
        }
        if left.is_live() {
            return Err(fail(io::Error::other("its recorder still runs: expected one that has ended")));
        }
        Ok(left)
    }

    fn at(path: PathBuf) -> io::Result<Left> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let is_raw = entry.file_name().to_string_lossy().starts_with("raw-");
            if is_raw && entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
        let bytes = folders.iter().map(|raw| call_bytes(raw)).sum();
        Ok(Left { path, bytes, folders })
    }

    /// Whether a recorder has a lock: one of another container, too, whose processes are not seen here.
    fn is_live(&self) -> bool {
        self.folders.iter().chain([&self.path]).any(|folder| {
            let lock = File::open(folder.join(LOCK));
            lock.is_ok_and(|lock| lock.try_lock_shared().is_err())
        })
    }

    /// The recorded processes, see [`processes`].
    ///
    /// # Errors
    /// A folder or a file that cannot be read.
    pub fn processes(&self) -> io::Result<Vec<Process>> {
        let counts = fs::canonicalize(self.path.join("counts")).ok();
        processes(&self.folders.iter().cloned().chain(counts).collect::<Vec<_>>())
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}
