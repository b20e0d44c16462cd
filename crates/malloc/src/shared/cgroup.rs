//! The memory limit of this process's cgroup: what is used, of how much, and how long tasks waited for
//! memory.
//!
//! The files of version 2 (`memory.max`, `memory.high`, `memory.current`) and of version 1
//! (`memory.limit_in_bytes`, `memory.usage_in_bytes`) are read without allocating. Of a cgroup and those
//! above it, the one with the least room counts.

use slablab_native::system;
use std::ffi::CStr;

/// Most bytes of a path.
const PATH_BYTES: usize = 512;
/// Where cgroups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// A folder of a cgroup, without a slash at the end.
#[derive(Clone, Copy)]
pub(crate) struct Folder {
    bytes: [u8; PATH_BYTES],
    length: usize,
}

/// What a cgroup says of its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) limit_bytes: u64,
    /// Without what the kernel keeps of files, which it drops before it ends a process.
    pub(super) used_bytes: u64,
    /// How long some task waited for memory, since the cgroup began. 0 without pressure information.
    pub(super) waited_us: u64,
}

/// Names of files: limits, of which the least counts; use; and in `memory.stat` the bytes of files.
struct Names {
    limits: &'static [&'static str],
    used: &'static str,
    files: [&'static str; 2],
}

const NAMES: [Names; 2] = [
    Names {
        limits: &["memory.max", "memory.high"],
        used: "memory.current",
        files: ["inactive_file", "active_file"],
    },
    Names {
        limits: &["memory.limit_in_bytes"],
        used: "memory.usage_in_bytes",
        files: ["total_inactive_file", "total_active_file"],
    },
];
/// A limit above this is none: version 1 has no word for it.
const NO_LIMIT: u64 = 1 << 60;

impl Folder {
    /// No folder.
    pub(crate) const NONE: Folder = Folder { bytes: [0; PATH_BYTES], length: 0 };

    /// The folder at a path. `None` if the path is too long.
    pub(crate) fn new(parts: &[&str]) -> Option<Folder> {
        let mut folder = Folder::NONE;
        for part in parts {
            let end = folder.length + part.len();
            // With room for the 0 that ends it.
            folder
                .bytes
                .get_mut(folder.length..end)
                .filter(|_| end < PATH_BYTES)?
                .copy_from_slice(part.as_bytes());
            folder.length = end;
        }
        while folder.length > 1 && folder.bytes[folder.length - 1] == b'/' {
            folder.length -= 1;
        }
        Some(folder)
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// The folder above.
    fn above(&self) -> Option<Folder> {
        let (above, _) = self.as_str().rsplit_once('/').filter(|(above, _)| !above.is_empty())?;
        Folder::new(&[above])
    }

    /// The text of a file in the folder; empty if it cannot be read.
    fn read<'a>(&self, name: &str, room: &'a mut [u8]) -> &'a str {
        let text = Folder::new(&[self.as_str(), "/", name, "\0"]).and_then(|path| {
            let path = CStr::from_bytes_until_nul(&path.bytes).ok()?;
            system::read_file(path, room)
        });
        text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
    }

    /// A number that a file holds.
    fn number(&self, name: &str) -> Option<u64> {
        self.read(name, &mut [0; 64]).trim().parse().ok()
    }

    /// What this cgroup alone says. `None` if it has no limit.
    fn own_memory(&self) -> Option<Memory> {
        NAMES.iter().find_map(|names| {
            let limits = names.limits.iter().filter_map(|name| self.number(name));
            let limit_bytes = limits.min().filter(|limit| *limit < NO_LIMIT)?;
            let used = self.number(names.used)?;
            // The file of statistics is long: only where it may matter.
            let of_files = if used / 3 < limit_bytes / 4 { 0 } else { self.of_files(names.files) };
            let waited_us = waited(self.read("memory.pressure", &mut [0; 256]));
            Some(Memory { limit_bytes, used_bytes: used.saturating_sub(of_files), waited_us })
        })
    }

    fn of_files(&self, names: [&str; 2]) -> u64 {
        let mut room = [0; 4096];
        let text = self.read("memory.stat", &mut room);
        names.iter().filter_map(|name| field(text, name)).sum()
    }

    /// What the cgroup of the folder says, or one above it that has less room. `None` if none has a limit.
    pub(super) fn memory(&self) -> Option<Memory> {
        let folders = std::iter::successors(Some(*self), Folder::above);
        let all = folders.filter_map(|folder| folder.own_memory());
        all.min_by_key(|memory| memory.limit_bytes.saturating_sub(memory.used_bytes))
    }
}

/// The folder of this process's cgroup that has the files of its memory. `None` if there is none.
pub(super) fn own() -> Option<Folder> {
    let mut room = [0; 4096];
    let text = Folder::new(&["/proc/self"])?.read("cgroup", &mut room);
    let found = |folder: &Folder| NAMES.iter().any(|names| folder.number(names.used).is_some());
    // In a container the path may be the host's: then the mount's own folder is the container's.
    let folders = text.lines().filter_map(place).flat_map(|(mount, path)| {
        [Folder::new(&[MOUNT, mount, path]), Folder::new(&[MOUNT, mount])].into_iter().flatten()
    });
    folders.into_iter().find(found)
}

/// The folder below [`MOUNT`] and the path of a line of /proc/self/cgroup, if it may be that of memory.
fn place(line: &str) -> Option<(&'static str, &str)> {
    let mut parts = line.splitn(3, ':');
    let (hierarchy, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    match hierarchy {
        "0" => Some(("", path)),
        _ => controllers.split(',').any(|controller| controller == "memory").then_some(("/memory", path)),
    }
}

/// The number behind a name in a file of names and numbers.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Microseconds for which some task waited, in a file of pressure information.
fn waited(text: &str) -> u64 {
    let some = text.lines().find(|line| line.starts_with("some "));
    let total = some.and_then(|line| line.rsplit_once("total="));
    total.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cgroup_files() {
        let places = [
            ("0::/user.slice/a:b", Some(("", "/user.slice/a:b"))),
            ("4:memory:/x", Some(("/memory", "/x"))),
            ("4:cpu,memory:/x", Some(("/memory", "/x"))),
            ("4:memorial:/x", None),
            ("9:name=systemd:/", None),
            ("", None),
        ];
        for (line, expected) in places {
            assert_eq!(place(line), expected, "{line}");
        }
        let stat = "anon 4\ninactive_file 70\nactive_file 8\n";
        assert_eq!(field(stat, "active_file"), Some(8));
        assert_eq!(field(stat, "file"), None);
        assert_eq!(waited("some avg10=0.00 avg60=1.00 avg300=0.00 total=1234\nfull avg10=0 total=9\n"), 1234);
        assert_eq!(waited("full total=9"), 0);
    }

    #[test]
    fn the_cgroup_with_the_least_room_counts() {
        let folder = std::env::temp_dir().join(format!("slablab-cgroup-{}", std::process::id()));
        let inner = folder.join("a/b");
        std::fs::create_dir_all(&inner).expect("a folder");
        let write = |place: &std::path::Path, name: &str, text: &str| {
            std::fs::write(place.join(name), text).expect("a file");
        };
        write(&inner, "memory.max", "max\n");
        write(&inner, "memory.current", "70\n");
        write(&folder.join("a"), "memory.max", "100\n");
        write(&folder.join("a"), "memory.high", "90\n");
        write(&folder.join("a"), "memory.current", "80\n");
        write(&folder.join("a"), "memory.stat", "inactive_file 20\nactive_file 10\n");
        write(&folder.join("a"), "memory.pressure", "some avg10=0.00 total=5\n");
        write(&folder, "memory.limit_in_bytes", "200\n");
        write(&folder, "memory.usage_in_bytes", "100\n");
        let path = format!("{}/", inner.display());
        let memory = Folder::new(&[&path]).expect("a short path").memory();
        assert_eq!(memory, Some(Memory { limit_bytes: 90, used_bytes: 50, waited_us: 5 }));
        std::fs::remove_dir_all(&folder).expect("it goes");
        assert_eq!(Folder::new(&[&path]).expect("a short path").memory(), None);
        assert!(Folder::new(&["/x"; 300]).is_none());
    }
}
