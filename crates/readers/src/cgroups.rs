//! Who holds kernel memory: memory cgroups with their slab memory, the names of containers, and processes
//! with many descriptors or threads.
//!
//! The kernel's files are `memory.stat`, `cgroup.stat` and (version 1) `memory.kmem.usage_in_bytes`, a set
//! for each cgroup, and /proc/cgroups. The other two are tables of this program, because the kernel's own
//! files would be one for each descriptor, or hold secrets:
//!
//! ```text
//! slablab/containers   ID <tab> NAME                                    a container's id and name
//! slablab/holders      PID <tab> KIND <tab> COUNT <tab> CGROUP <tab> COMM   descriptors of a kind, or
//! threads
//! ```

use crate::procfs;
use crate::text::{LineError, number, utf8};
use std::collections::{BTreeMap, BTreeSet};

/// A memory cgroup. What its files do not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path below the root of the hierarchy, such as `/system.slice/nginx.service`; `/` for the root.
    pub path: String,
    /// Bytes of reclaimable slabs charged to it and to its children (`slab_reclaimable`).
    pub reclaimable: Option<u64>,
    /// Bytes of other slabs charged to it and to its children (`slab_unreclaimable`).
    pub unreclaimable: Option<u64>,
    /// Version 1 has no counts of slabs: bytes of all kernel memory charged to it and to its children.
    pub kernel: Option<u64>,
    /// Removed cgroups below it that still hold memory (`nr_dying_descendants`).
    pub dying: Option<u64>,
}

impl Cgroup {
    /// Bytes of slabs; on version 1, of all kernel memory.
    pub fn bytes(&self) -> Option<u64> {
        match (self.reclaimable, self.unreclaimable) {
            (None, None) => self.kernel,
            (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        }
    }
}

/// A process, or something else with a name, that has many of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its number; 0 for what is no process: a user, mounts, ended processes.
    pub pid: u32,
    /// Of what: `socket`, `thread`, `mapping`, or the name of an anonymous inode such as `eventpoll`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The path of its memory cgroup.
    pub cgroup: String,
    /// Its name.
    pub comm: String,
}

/// Everything about cgroups and holders in a dump.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owners {
    /// Memory cgroups, by path.
    pub cgroups: Vec<Cgroup>,
    /// Memory cgroups that the kernel has, dying ones included (/proc/cgroups).
    pub counted: Option<u64>,
    /// Names of containers by id.
    pub containers: BTreeMap<String, String>,
    /// Processes that have many of a kind, most first.
    pub holders: Vec<Holder>,
}

/// Files of a cgroup that are read.
pub const FILES: [&str; 3] = ["memory.stat", "cgroup.stat", "memory.kmem.usage_in_bytes"];
/// The most cgroups that are read.
pub const LIMIT: usize = 1 << 16;

impl Owners {
    /// Removed cgroups that still hold memory: what the root says, or what /proc/cgroups counts beyond the
    /// cgroups that are there. /proc/cgroups is the machine's also in a container, which sees a part of the
    /// tree: of a root alone, or of more cgroups than are read, nothing is known.
    pub fn dying(&self) -> Option<u64> {
        let root = self.cgroups.iter().find(|cgroup| cgroup.path == "/").and_then(|root| root.dying);
        root.or_else(|| {
            let there = self.cgroups.len() as u64;
            let is_tree = (2..LIMIT as u64).contains(&there);
            self.counted.filter(|_| is_tree).map(|counted| counted.saturating_sub(there))
        })
    }

    /// The name of a cgroup for people: its container's name, its service or slice, else its path.
    pub fn name_of(&self, path: &str) -> String {
        let last = path.rsplit('/').find(|part| !part.is_empty());
        let Some(last) = last else { return "/ (all)".into() };
        let id = last.split(['-', '.', ':']).find(|part| is_id(part));
        if let Some(id) = id {
            return match self.containers.get(id) {
                Some(name) => name.clone(),
                None => format!("container {}", &id[..12]),
            };
        }
        // LXC's `lxc.payload.NAME`, systemd's `machine-NAME.scope`.
        let named = last.strip_prefix("lxc.payload.");
        let named = named.or_else(|| last.strip_prefix("machine-")?.strip_suffix(".scope"));
        match named {
            Some(name) => name.into(),
            None if last.ends_with(".service") || last.ends_with(".slice") || last.ends_with(".scope") => {
                last.into()
            }
            None => path.into(),
        }
    }

    /// Cgroups without children: containers, services and scopes, without the slices around them.
    pub fn leaves(&self) -> impl Iterator<Item = &Cgroup> {
        let parent = |path: &str| path.rsplit_once('/').map(|(parent, _)| parent.to_string());
        let parents: BTreeSet<String> =
            self.cgroups.iter().filter_map(|cgroup| parent(&cgroup.path)).collect();
        self.cgroups.iter().filter(move |cgroup| cgroup.path != "/" && !parents.contains(&cgroup.path))
    }
}

/// A container's id: 64 hexadecimal digits.
fn is_id(part: &str) -> bool {
    part.len() == 64 && part.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Takes a file of a cgroup.
///
/// # Errors
/// The first line that is not as the kernel writes it.
pub fn take(cgroup: &mut Cgroup, file: &str, content: &[u8]) -> Result<(), LineError> {
    if file == "memory.kmem.usage_in_bytes" {
        let text = utf8(content)?.trim();
        let bytes = number(text).ok_or_else(|| LineError::new(1, "a number of bytes", text))?;
        cgroup.kernel = Some(bytes);
        return Ok(());
    }
    let numbers = procfs::parse_numbers(content)?;
    let of = |name: &str| numbers.get(name).copied();
    if file == "memory.stat" {
        (cgroup.reclaimable, cgroup.unreclaimable) = (of("slab_reclaimable"), of("slab_unreclaimable"));
    } else {
        cgroup.dying = of("nr_dying_descendants");
    }
    Ok(())
}

/// The number of memory cgroups in /proc/cgroups.
///
/// # Errors
/// A line of memory cgroups without that number.
pub fn counted(content: &[u8]) -> Result<Option<u64>, LineError> {
    for (index, line) in utf8(content)?.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["memory", _, count, ..] = words[..] {
            let error = || LineError::new(index + 1, "a number of cgroups in the third column", line);
            return number(count).map(Some).ok_or_else(error);
        }
    }
    Ok(None)
}

/// The table of containers.
///
/// # Errors
/// A line without a tab.
pub fn containers(content: &[u8]) -> Result<BTreeMap<String, String>, LineError> {
    let line = |(index, line): (usize, &str)| {
        let (id, name) = line
            .split_once('\t')
            .ok_or_else(|| LineError::new(index + 1, "an id, a tab and a name", line))?;
        Ok((id.to_string(), name.to_string()))
    };
    utf8(content)?.lines().enumerate().map(line).collect()
}

/// The table of holders.
///
/// # Errors
/// A line without five columns, or a number that is none.
pub fn holders(content: &[u8]) -> Result<Vec<Holder>, LineError> {
    let line = |(index, line): (usize, &str)| {
        let error = || LineError::new(index + 1, "a pid, a kind, a count, a cgroup and a name", line);
        let parts: Vec<&str> = line.splitn(5, '\t').collect();
        let [pid, kind, count, cgroup, comm] = parts[..] else { return Err(error()) };
        Ok(Holder {
            pid: number(pid).ok_or_else(error)?,
            kind: kind.to_string(),
            count: number(count).ok_or_else(error)?,
            cgroup: cgroup.to_string(),
            comm: comm.to_string(),
        })
    };
    utf8(content)?.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn names_of_cgroups() {
        let owners = Owners { containers: [(ID.into(), "web".into())].into(), ..Owners::default() };
        let other = ID.replace('0', "f");
        for (path, expected) in [
            ("/", "/ (all)".to_string()),
            (&format!("/system.slice/docker-{ID}.scope"), "web".into()),
            (&format!("/docker/{ID}"), "web".into()),
            (&format!("/docker/{other}"), format!("container {}", &other[..12])),
            (&format!("/kubepods.slice/pod1.slice/cri-containerd-{ID}.scope"), "web".into()),
            ("/lxc.payload.mail", "mail".into()),
            ("/machine.slice/machine-build.scope", "build".into()),
            ("/system.slice/nginx.service", "nginx.service".into()),
            ("/some/where", "/some/where".into()),
        ] {
            assert_eq!(owners.name_of(path), expected, "{path}");
        }
    }

    #[test]
    fn dying_cgroups_are_counted() {
        let cgroup = |path: &str, dying| Cgroup { path: path.into(), dying, ..Cgroup::default() };
        let two = vec![cgroup("/", None), cgroup("/a", None)];
        let owners = Owners { cgroups: two, counted: Some(22), ..Owners::default() };
        assert_eq!(owners.dying(), Some(20));
        let said = Owners { cgroups: vec![cgroup("/", Some(7))], counted: Some(22), ..Owners::default() };
        assert_eq!(said.dying(), Some(7));
        assert_eq!(Owners { counted: Some(22), ..Owners::default() }.dying(), None);
        let container = Owners { cgroups: vec![cgroup("/", None)], counted: Some(22), ..Owners::default() };
        assert_eq!(container.dying(), None);
        let tree = ["/", "/a", "/a-b", "/a/c"].map(|path| cgroup(path, None));
        let owners = Owners { cgroups: tree.to_vec(), ..Owners::default() };
        assert_eq!(owners.leaves().map(|leaf| leaf.path.as_str()).collect::<Vec<_>>(), ["/a-b", "/a/c"]);
    }

    #[test]
    fn files_of_cgroups() {
        let mut cgroup = Cgroup::default();
        take(&mut cgroup, "memory.stat", b"anon 5\nslab_reclaimable 100\nslab_unreclaimable 30\n").unwrap();
        take(&mut cgroup, "cgroup.stat", b"nr_descendants 3\nnr_dying_descendants 2\n").unwrap();
        assert_eq!((cgroup.bytes(), cgroup.dying), (Some(130), Some(2)));
        let mut old = Cgroup::default();
        take(&mut old, "memory.stat", b"cache 5\nrss 3\n").unwrap();
        take(&mut old, "memory.kmem.usage_in_bytes", b"4096\n").unwrap();
        assert_eq!(old.bytes(), Some(4096));
        let error = take(&mut old, "memory.kmem.usage_in_bytes", b"many\n").unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("a number of bytes"), "{error}");
        assert_eq!(counted(b"#subsys_name\thierarchy\nmemory\t4\t22\t1\n").unwrap(), Some(22));
        assert!(counted(b"cpu 1 1 1\nmemory\t4\tx\t1\n").unwrap_err().to_string().contains("line 2"));
        let holder = &holders(b"12\tsocket\t50000\t/a\ta name\n").unwrap()[0];
        assert_eq!((holder.pid, holder.count, holder.comm.as_str()), (12, 50000, "a name"));
        assert!(holders(b"12\tsocket\n").unwrap_err().to_string().contains("line 1"));
    }
}
