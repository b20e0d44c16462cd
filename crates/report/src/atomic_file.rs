//! An output file that appears whole or not at all.
//!
//! On Linux the new file has no name until [`AtomicFile::commit`]. So however the program ends, by Ctrl-C or
//! by a power cut, no incomplete file remains. A new path gets its whole file by one system call. Two are
//! needed to replace a file, and a program killed between them leaves the whole file under a temporary name.
//! If the filesystem has no unnamed files, the new file has a temporary name from the start. A drop removes
//! it; only a killed program leaves it there.
//!
//! The rules are those that users of `cc -o` and of a shell's `>` know:
//!
//! | at the path | what happens |
//! |---|---|
//! | nothing | a new file, with the mode that the umask gives |
//! | a file | replaced by the commit; mode and, where permitted, owner stay; other hard links keep the old content |
//! | a file that may not be written | refused, although a rename would replace it |
//! | a link | it stays; the file it names is created or replaced |
//! | a link of another user in a folder like /tmp | refused, as the kernel does where `fs.protected_symlinks` is 1 |
//! | a device, a pipe, a name below /proc | opened and written directly, since a rename would destroy it |
//! | a folder | refused |

use crate::error::{At, Error, Result};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file being written, to become `path`. Dropped without [`AtomicFile::commit`], it is gone.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// The path that the user gave, for messages.
    path: PathBuf,
    /// Where the new file goes; `None` if the file at `path` is written directly.
    target: Option<PathBuf>,
    /// The temporary name of the new file, while it has one.
    named: Option<PathBuf>,
}

impl AtomicFile {
    /// Opens a file that will become `path`. The file at `path` stays as it is until the commit.
    ///
    /// # Errors
    /// A path that is a folder, that may not be written, whose folder is missing, or whose links go in a
    /// circle.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        AtomicFile::begin(path, false, nameless)
    }

    /// As [`AtomicFile::create`], for what only the file's owner may read. The mode of a file that is there
    /// already stays.
    ///
    /// # Errors
    /// As [`AtomicFile::create`].
    pub fn create_private(path: &Path) -> Result<AtomicFile> {
        AtomicFile::begin(path, true, nameless)
    }

    fn begin(path: &Path, private: bool, nameless: impl FnOnce(&Path) -> Option<File>) -> Result<AtomicFile> {
        if path.is_dir() {
            let what = "is a directory: expected the name of a file";
            return Err(Error::new(path, what));
        }
        let (path, named) = (path.to_path_buf(), None);
        let Some(target) = end_of_links(&path).at(&path)? else {
            let options = File::options().write(true).truncate(path.is_file()).open(&path);
            return Ok(AtomicFile { file: options.at(&path)?, path, target: None, named });
        };
        // Opened for writing and not written: fails where the user may not write. A link that was put in the
        // place of the file since is refused.
        let old = match unfollowed().write(true).open(&target) {
            Ok(old) => Some(old.metadata().at(&path)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::new(path, error)),
        };
        let (file, named) = match nameless(folder(&target)) {
            Some(file) => (file, named),
            None => {
                let named = temporary(&target);
                (create_private(&named, private || old.is_some()).at(&path)?, Some(named))
            }
        };
        if private {
            for_owner(&file).at(&path)?;
        }
        let new = AtomicFile { file, path, target: Some(target), named };
        if let Some(old) = old {
            take_over(&new.file, &old).at(&new.path)?;
        }
        Ok(new)
    }

    /// Makes the file appear at its path, replacing the file that was there.
    ///
    /// # Errors
    /// The system refuses the new name: the folder was removed, or the disk is full.
    pub fn commit(mut self) -> Result<()> {
        let Some(target) = self.target.clone() else { return Ok(()) };
        let named = match self.named.take() {
            Some(named) => named,
            None => match link(&self.file, &target) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let named = temporary(&target);
                    link(&self.file, &named).at(&self.path)?;
                    named
                }
                linked => return linked.at(&self.path),
            },
        };
        // From here on the temporary name is removed if the rename fails.
        self.named = Some(named.clone());
        std::fs::rename(&named, &target).at(&self.path)?;
        self.named = None;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(named) = &self.named {
            // A drop has no caller that could be told of an error.
            let _ = std::fs::remove_file(named);
        }
    }
}

/// Options that open no link.
#[cfg(unix)]
fn unfollowed() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    options
}

#[cfg(not(unix))]
fn unfollowed() -> OpenOptions {
    File::options()
}

/// The path at the end of `path`'s links, whether or not there is a file. `None` for a path that must be
/// opened as it is: a device, a pipe, or a descriptor of a process (`/dev/stdout` is a link to
/// `/proc/self/fd/1`).
///
/// # Errors
/// Links that lead to each other; a link of another user in a folder like /tmp.
pub fn end_of_links(path: &Path) -> io::Result<Option<PathBuf>> {
    /// As many links as the kernel follows before it answers ELOOP.
    const LINKS: usize = 40;
    let mut end = path.to_path_buf();
    for _ in 0..LINKS {
        let parent = folder(&end);
        if parent.canonicalize().is_ok_and(|parent| parent.starts_with("/proc")) {
            return Ok(None);
        }
        for part in parent.ancestors().filter(|part| part.is_symlink()) {
            refuse_foreign(part, folder(part))?;
        }
        match std::fs::read_link(&end) {
            Ok(next) => {
                refuse_foreign(&end, parent)?;
                end = parent.join(next);
            }
            Err(_) => return Ok((!end.exists() || end.is_file()).then_some(end)),
        }
    }
    Err(io::Error::other("too many links that lead to each other"))
}

/// Refuses a link that another user left where all users may: the next program of root writes to the path,
/// and so to a file of that user's choice. The kernel refuses it, too, if `fs.protected_symlinks` is set, but
/// only links that it follows by itself.
#[cfg(unix)]
fn refuse_foreign(link: &Path, folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (of_link, of_folder) = (link.symlink_metadata()?, folder.metadata()?);
    let user = rustix::process::geteuid().as_raw();
    if may_follow(of_link.uid(), (of_folder.mode(), of_folder.uid()), user) {
        return Ok(());
    }
    let what = format!(
        "{} is a link of another user (number {}) in a folder that all users may write to: expected a file, or a link of \
         your own",
        crate::visible::path(link),
        of_link.uid()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

#[cfg(not(unix))]
fn refuse_foreign(_link: &Path, _folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether `user` may follow a link of the user `link` in a folder with this mode and owner: proc(5) under
/// `/proc/sys/fs/protected_symlinks`.
#[cfg(unix)]
fn may_follow(link: u32, (mode, owner): (u32, u32), user: u32) -> bool {
    /// The sticky bit, and that all others may write.
    const PUBLIC: u32 = 0o1002;
    mode & PUBLIC != PUBLIC || link == user || link == owner
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

/// Creates the file under its temporary name. The new version of an existing file is the user's alone at
/// first: the old file may have been secret.
#[cfg(unix)]
fn create_private(path: &Path, private: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mode = if private { 0o600 } else { 0o666 };
    File::options().write(true).create_new(true).mode(mode).open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path, _private: bool) -> io::Result<File> {
    File::create_new(path)
}

/// Lets only the owner read and write.
#[cfg(unix)]
fn for_owner(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn for_owner(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Gives the new file the mode of the old file, and its owner if this process may. It sets the owner before
/// the mode, because a change of owner may clear bits of the mode.
#[cfg(unix)]
fn take_over(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let _ = fchown(new, Some(old.uid()), Some(old.gid()));
    new.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o777))
}

#[cfg(not(unix))]
fn take_over(new: &File, old: &Metadata) -> io::Result<()> {
    new.set_permissions(old.permissions())
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

    /// An empty folder of a test's own.
    fn folder_called(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("slablab-output-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn write(path: &Path, nameless: bool, text: &str) {
        let mut file = match nameless {
            true => AtomicFile::create(path).unwrap(),
            false => AtomicFile::begin(path, false, |_| None).unwrap(),
        };
        file.write_all(text.as_bytes()).unwrap();
        file.commit().unwrap();
    }

    #[test]
    fn a_file_that_exists_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder_called("mode");
        for (nameless, mode) in [(true, 0o600), (true, 0o666), (false, 0o600), (false, 0o640)] {
            let path = folder.join("out");
            std::fs::write(&path, "before").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            write(&path, nameless, "after");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
            let found = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            assert_eq!(found, mode, "mode {found:o}, expected {mode:o}; nameless: {nameless}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_link_stays_and_the_file_it_names_is_replaced() {
        use std::os::unix::fs::symlink;
        let folder = folder_called("link");
        std::fs::create_dir(folder.join("data")).unwrap();
        symlink("data/file", folder.join("one")).unwrap();
        symlink(folder.join("one"), folder.join("two")).unwrap();
        let target = folder.join("data/file");
        // The first link names a file that does not exist yet, as it does for `cc -o`.
        for (name, text) in [("one", "first"), ("two", "second"), ("one", "third")] {
            write(&folder.join(name), true, text);
            assert!(folder.join(name).is_symlink(), "{name} is a file now");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(folder.join("data")).unwrap().count(), 1);
        symlink("loop", folder.join("loop")).unwrap();
        assert!(AtomicFile::create(&folder.join("loop")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_named_by_its_descriptor_is_written_where_it_is() {
        use std::os::fd::AsRawFd;
        let folder = folder_called("descriptor");
        let path = folder.join("out");
        let file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        std::fs::write(&path, "longer than what comes").unwrap();
        write(&PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), true, "short");
        assert_eq!(io::read_to_string(&file).unwrap(), "short");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn who_may_follow_a_link() {
        // The owner of the link, the mode and the owner of the folder, the user.
        for (link, mode, owner, user, expected) in [
            (1000, 0o1777, 0, 1000, true),
            (1000, 0o1777, 0, 0, false),
            (1000, 0o1777, 0, 1001, false),
            (0, 0o1777, 0, 1000, true),
            (1000, 0o1777, 1000, 0, true),
            (1000, 0o0777, 0, 0, true),
            (1000, 0o1775, 0, 0, true),
            (1000, 0o0755, 1000, 0, true),
            (1000, 0o1773, 0, 0, false),
        ] {
            let found = may_follow(link, (mode, owner), user);
            assert_eq!(found, expected, "link of {link} in {mode:o} of {owner}, followed by {user}");
        }
    }

    /// As root: a link of the user nobody in a folder like /tmp, to a file of root and to a device.
    #[test]
    fn a_link_of_another_owner_in_a_public_folder_is_refused() {
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};
        const NOBODY: u32 = 65534;
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let public = folder_called("public");
        let secret = folder_called("secret").join("root.conf");
        std::fs::write(&secret, "root's").unwrap();
        std::fs::set_permissions(&public, std::fs::Permissions::from_mode(0o1777)).unwrap();
        let link = |name: &str, to: &Path| {
            let path = public.join(name);
            symlink(to, &path).unwrap();
            lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            path
        };
        let new = secret.with_file_name("new");
        for (name, to) in [("file", &*secret), ("none", &new), ("device", Path::new("/dev/null"))] {
            let path = link(name, to);
            let refused = AtomicFile::create(&path).unwrap_err();
            assert!(refused.what.contains("a link of another user (number 65534)"), "{name}: {refused}");
        }
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "root's");
        assert!(!new.exists());
        // Root's own link there, and nobody's in a folder of nobody's, as /proc/sys/fs/protected_symlinks
        // allows them.
        symlink(&secret, public.join("own")).unwrap();
        write(&public.join("own"), true, "by the own link");
        lchown(&public, Some(NOBODY), Some(NOBODY)).unwrap();
        write(&public.join("file"), true, "by the owner of the folder");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "by the owner of the folder");
        std::fs::remove_dir_all(&public).unwrap();
        std::fs::remove_dir_all(secret.parent().unwrap()).unwrap();
    }

    /// What happens where a filesystem has no files without names.
    #[test]
    fn a_named_file_is_removed_or_renamed() {
        let folder = std::env::temp_dir().join(format!("slablab-named-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("out");
        let names = || -> Vec<_> {
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        let mut file = AtomicFile::begin(&path, false, |_| None).unwrap();
        file.write_all(b"first").unwrap();
        assert_eq!(names().len(), 1);
        assert_ne!(names()[0], "out");
        drop(file);
        assert!(names().is_empty());
        AtomicFile::begin(&path, false, |_| None).unwrap().commit().unwrap();
        assert_eq!(names(), ["out"]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = folder_called("beside");
        let path = folder.join("out.trace.parquet");
        let names = || std::fs::read_dir(&folder).unwrap().count();
        let write = |text: &str| {
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        };
        drop(write("first"));
        assert_eq!(names(), 0, "a dropped file leaves nothing");
        // A new path needs no temporary name, so a kill leaves none.
        let taken = folder_called("taken");
        let path_of_new = taken.join("out");
        std::fs::write(temporary(&path_of_new), "of another").unwrap();
        AtomicFile::create(&path_of_new).unwrap().commit().unwrap();
        std::fs::remove_dir_all(&taken).unwrap();
        write("second").commit().unwrap();
        drop(write("third"));
        assert_eq!((names(), std::fs::read_to_string(&path).unwrap().as_str()), (1, "second"));
        write("fourth").commit().unwrap();
        assert_eq!((names(), std::fs::read_to_string(&path).unwrap().as_str()), (1, "fourth"));
        let refused = AtomicFile::create(&folder).unwrap_err();
        assert_eq!(refused.what, "is a directory: expected the name of a file");
        assert!(AtomicFile::create(&folder.join("none/out")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
