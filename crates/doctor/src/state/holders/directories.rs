//! Directories that own many directory entries, as far as the kernel tells whether a name is in its cache.
//!
//! No file lists the cache. But openat2(2) with `RESOLVE_CACHED` (5.12) opens a name only if it is cached,
//! and neither reads a disk for it nor makes an entry. An entry keeps that of its directory, so that a
//! directory which is not cached has no cached names: a walk from the mounts over cached directories passes
//! all entries of names that exist. Those of names that do not exist are in no list, because their names
//! are not known.
//!
//! The walk has a budget of time: some of it to find cached directories, the rest to look at names of those
//! that are largest, at some names of each. It stays on file systems whose lists make no entries themselves
//! (on those of /proc and of networks they do). It is only made where entries have a part of the memory
//! that matters.

#[cfg(target_os = "linux")]
mod walk;

use super::{Counts, text_of};
use std::path::Path;
use walk::walk;

/// The least part of the memory that all entries have, if it is worth a walk: 1 in so many.
const PART: u64 = 100;
/// Bytes of an entry (docs/caches.md; 64-bit kernels).
const ENTRY_BYTES: u64 = 192;
/// File systems that list names without looking them up.
const FILE_SYSTEMS: [&str; 7] = ["ext4", "ext3", "ext2", "xfs", "btrfs", "f2fs", "tmpfs"];

/// Counts the cached names of directories below the mounts of this process's mount namespace.
pub(super) fn count(proc: &Path, counts: &mut Counts) {
    if !is_worth(&text_of(&proc.join("sys/fs/dentry-state")), &text_of(&proc.join("meminfo"))) {
        return;
    }
    walk(&mounted(&text_of(&proc.join("self/mountinfo"))), counts);
}

/// Whether all entries have a part of the memory that matters.
fn is_worth(dentry_state: &str, meminfo: &str) -> bool {
    let first = |text: &str| text.split_whitespace().next()?.parse::<u64>().ok();
    let total = meminfo.lines().find_map(|line| first(line.strip_prefix("MemTotal:")?));
    let entries = first(dentry_state);
    entries
        .zip(total)
        .is_some_and(|(entries, kb)| entries.saturating_mul(ENTRY_BYTES) >= kb.saturating_mul(1024) / PART)
}

/// Where the file systems of these kinds are mounted, each once.
fn mounted(mountinfo: &str) -> Vec<String> {
    let mut devices = std::collections::BTreeSet::new();
    let of_line = |line: &str| {
        let (mount, of) = line.split_once(" - ")?;
        let words: Vec<&str> = mount.split(' ').collect();
        let [_, _, device, root, place, ..] = words[..] else { return None };
        let is_one = FILE_SYSTEMS.contains(&of.split(' ').next()?) && root == "/";
        (is_one && devices.insert(device.to_string())).then(|| super::tmpfs::unescaped(place))
    };
    mountinfo.lines().filter_map(of_line).collect()
}

#[cfg(not(target_os = "linux"))]
mod walk {
    pub(super) fn walk(_: &[String], _: &mut super::Counts) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_is_worth_it_from_a_part_of_the_memory_on() {
        let check = |entries: u64, expected: bool| {
            let state = format!("{entries}\t5\t45\t0\t3\t0\n");
            assert_eq!(is_worth(&state, "MemFree: 1 kB\nMemTotal:  1920000 kB\n"), expected, "{entries}");
        };
        check(102_400, true);
        check(102_399, false);
        assert!(!is_worth("", "MemTotal: 1 kB\n") && !is_worth("1000 1", ""));
    }

    #[test]
    fn file_systems_that_list_without_looking_up() {
        let text = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n21 20 0:5 / /proc rw - proc proc rw\n\
                    22 20 8:1 /x /bind rw - ext4 /dev/sda1 rw\n23 20 0:9 / /a\\040b rw - tmpfs t rw\n\
                    24 20 0:8 / /net rw - nfs4 s rw\n25 20 8:1 / /twice rw - ext4 /dev/sda1 rw\n";
        assert_eq!(mounted(text), ["/", "/a b"]);
    }

    /// Names that this test made are counted in their directory. Those of tmpfs are cached as long as their
    /// files are there; others go when the kernel wants memory.
    #[cfg(target_os = "linux")]
    #[test]
    fn names_are_counted_where_they_are() {
        let root = Path::new("/dev/shm").join(format!("slablab-directories-{}", std::process::id()));
        let many = root.join("many");
        if std::fs::create_dir_all(&many).is_err() {
            return;
        }
        (0..1500).for_each(|at| std::fs::write(many.join(format!("{at}")), "").expect("written"));
        let mut counts = Counts::default();
        walk(&[root.to_string_lossy().into_owned()], &mut counts);
        std::fs::remove_dir_all(&root).expect("removed");
        let by = super::super::By::Named(many.to_string_lossy().into_owned());
        // A kernel without the call tells nothing.
        if let Some(count) = counts.0.get(&(by, "directory".to_string())) {
            assert_eq!(*count, 1500);
        }
    }
}
