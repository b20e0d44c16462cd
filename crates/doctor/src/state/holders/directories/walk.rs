//! The walk over directories that are in the kernel's cache.

use super::Counts;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Finds cached directories, nearest to the mounts first, then counts the names of the largest of them,
/// each for as long as the budget allows.
pub(super) fn walk(places: &[String], counts: &mut Counts) {
    const TO_FIND: Duration = Duration::from_millis(40);
    const TO_COUNT: Duration = Duration::from_millis(60);
    let begun = Instant::now();
    let mut queue: VecDeque<Found> = places.iter().filter_map(|place| Found::of(place.as_ref())).collect();
    let mut found = Vec::new();
    while let Some(directory) = queue.pop_front().filter(|_| begun.elapsed() < TO_FIND) {
        queue.extend(directory.below());
        found.push(directory);
    }
    found.extend(queue);
    // Of directories that were once large the size stays: that costs a look.
    found.sort_by_key(|directory| std::cmp::Reverse(directory.bytes));
    let begun = Instant::now();
    for directory in found {
        let left = TO_COUNT.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        let Some(names) = directory.names(left) else { continue };
        // A line of the table has one line of text.
        let name = directory.path.to_string_lossy().replace(['\n', '\t'], "?");
        counts.add_named(&name, "directory", names);
    }
}

/// A directory that is in the kernel's cache.
struct Found {
    path: PathBuf,
    /// Its own size, which grows with its names.
    bytes: u64,
    /// Whether it has no directories in it, as far as the file system counts them.
    is_leaf: bool,
}

impl Found {
    /// The directory at this path; `None` if it is not cached.
    fn of(path: &Path) -> Option<Found> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED).ok()?;
        let status = rustix::fs::fstat(&descriptor).ok()?;
        let bytes = u64::try_from(status.st_size).unwrap_or(0);
        // Two links are its name and its own dot: each directory in it is one more. Others count none.
        Some(Found { path: path.to_path_buf(), bytes, is_leaf: status.st_nlink == 2 })
    }

    fn list(&self) -> Option<(OwnedFd, Dir)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = openat2(CWD, &self.path, flags, Mode::empty(), ResolveFlags::CACHED).ok()?;
        let names = Dir::read_from(&descriptor).ok()?;
        Some((descriptor, names))
    }

    /// The cached directories in it.
    fn below(&self) -> Vec<Found> {
        let Some((_, names)) = self.list().filter(|_| !self.is_leaf) else { return Vec::new() };
        let directories =
            names.map_while(Result::ok).filter(|entry| entry.file_type() == FileType::Directory);
        let directories = directories.filter(|entry| ![c".", c".."].contains(&entry.file_name()));
        let at =
            |entry: rustix::fs::DirEntry| self.path.join(OsStr::from_bytes(entry.file_name().to_bytes()));
        directories.filter_map(|entry| Found::of(&at(entry))).collect()
    }

    /// How many of its names are cached; of a large directory an estimate, by names that are spread over it.
    fn names(&self, time: Duration) -> Option<u64> {
        const SAMPLED: usize = 128;
        let begun = Instant::now();
        let (descriptor, names) = self.list()?;
        let (mut sample, mut step, mut count): (Vec<OsString>, u64, u64) = (Vec::new(), 1, 0);
        for entry in names.map_while(Result::ok) {
            if count % step == 0 {
                sample.push(OsStr::from_bytes(entry.file_name().to_bytes()).to_os_string());
            }
            count += 1;
            if sample.len() == 2 * SAMPLED {
                // Every second one stays.
                let mut at = 0;
                sample.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                step *= 2;
            }
            if count % 1024 == 0 && begun.elapsed() > time {
                break;
            }
        }
        sample.retain(|name| name != "." && name != "..");
        let hits = sample.iter().filter(|name| is_cached(&descriptor, name)).count() as u64;
        Some(hits * count.saturating_sub(2) / (sample.len() as u64).max(1))
    }
}

/// Whether a name of a directory is in the kernel's cache.
fn is_cached(directory: &OwnedFd, name: &OsStr) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat2(directory, name, flags, Mode::empty(), ResolveFlags::CACHED);
    !matches!(found, Err(Errno::AGAIN | Errno::NOSYS | Errno::INVAL | Errno::PERM))
}
