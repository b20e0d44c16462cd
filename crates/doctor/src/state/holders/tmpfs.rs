//! Files, folders and links of each tmpfs: all of their inodes are in memory, and a tmpfs counts them.

use super::{Counts, text_of};
use std::collections::BTreeSet;
use std::path::Path;

/// Counts the files of each tmpfs of this process's mount namespace.
pub(super) fn count(proc: &Path, counts: &mut Counts) {
    for place in mounted(&text_of(&proc.join("self/mountinfo"))) {
        if let Some(files) = files(&place) {
            counts.add_named(&format!("tmpfs at {place}"), "tmpfs file", files);
        }
    }
}

/// Where each tmpfs is mounted, once, and each place once, as another may be mounted over it:
/// `36 25 0:31 / /run rw shared:5 - tmpfs tmpfs rw,mode=755`.
fn mounted(mountinfo: &str) -> Vec<String> {
    let (mut devices, mut places) = (BTreeSet::new(), BTreeSet::new());
    let of_line = |line: &str| {
        let (mount, of) = line.split_once(" - ")?;
        let words: Vec<&str> = mount.split(' ').collect();
        let [_, _, device, _, place, ..] = words[..] else { return None };
        (of.starts_with("tmpfs ")).then(|| (device.to_string(), unescaped(place)))
    };
    let all = mountinfo.lines().filter_map(of_line);
    let new = |(device, place): &(String, String)| {
        let is_new = devices.insert(device.clone());
        places.insert(place.clone()) && is_new
    };
    all.filter(new).map(|(_, place)| place).collect()
}

/// A path as the kernel writes it there: blanks and backslashes as three octal digits.
pub(super) fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.extend(code.or(Some(b'\\')));
        let rest = if code.is_some() { &part[3..] } else { part };
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Files of the tmpfs at this place; `None` if something else is mounted over it, or it has no limit of files
/// and so does not count them.
#[cfg(target_os = "linux")]
fn files(place: &str) -> Option<u64> {
    const TMPFS: i64 = 0x0102_1994;
    let found = rustix::fs::statfs(place).ok()?;
    #[allow(clippy::unnecessary_cast, reason = "other widths on other machines")]
    let (kind, all, free) = (found.f_type as i64, found.f_files as u64, found.f_ffree as u64);
    (kind == TMPFS && all > 0).then(|| all.saturating_sub(free))
}

#[cfg(not(target_os = "linux"))]
fn files(_: &str) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tmpfs_once() {
        let text = "25 1 0:22 / / rw - ext4 /dev/vda rw\n\
                    36 25 0:31 / /run rw,nosuid shared:5 - tmpfs tmpfs rw,mode=755\n\
                    40 36 0:31 /lock /run/lock rw shared:5 - tmpfs tmpfs rw\n\
                    42 25 0:42 / /run rw - tmpfs tmpfs rw\n\
                    41 25 0:40 / /mnt/a\\040b rw - tmpfs none rw\n\
                    cut 25 0:41\n";
        assert_eq!(mounted(text), ["/run", "/mnt/a b"]);
        assert_eq!(unescaped("a\\134b\\9"), "a\\b\\9");
    }

    /// A file more of this machine's shared memory is one more.
    #[cfg(target_os = "linux")]
    #[test]
    fn files_are_counted() {
        let Some(before) = files("/dev/shm") else { return };
        let paths: Vec<String> =
            (0..200).map(|at| format!("/dev/shm/slablab-test-{}-{at}", std::process::id())).collect();
        paths.iter().for_each(|path| std::fs::write(path, "").expect("a file"));
        let after = files("/dev/shm").expect("a tmpfs");
        paths.iter().for_each(|path| std::fs::remove_file(path).expect("removed"));
        assert!(after >= before + 100, "{before}, then {after}");
        assert_eq!(files("/proc"), None);
    }
}
