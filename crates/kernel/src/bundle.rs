//! A dump of a machine's slab and page-allocator state: from a live system, a directory, or a tar in any compression.
//!
//! No file is opened here. A walker (the caller's, for a live root or a directory; [`Dump::from_tar`] for a tar) hands
//! each wanted file and link to a [`DumpBuilder`], in any order; paths may begin with `/`, `./` or the one or two
//! directories that support bundles put in front. [`WANTED`] lists what is worth reading.

use std::collections::BTreeMap;
use std::io::Read;

use crate::compressed::Decompressed;
pub use crate::page_size::PageSizeFrom;
use crate::page_size::page_size;
use crate::procfs::{self, FreeBlocks, Numbers, PageTypes, Zone};
use crate::slabinfo::{Slabinfo, SlabinfoError};
use crate::sysfs::SlabAttrs;
use crate::tar::{Entry, Tar, TarError};
use crate::text::{LineError, id_list, number, utf8};

/// Files that a dump is made of; `*` stands for any one path component.
pub const WANTED: &[&str] = &[
    "proc/slabinfo",
    "proc/meminfo",
    "proc/zoneinfo",
    "proc/buddyinfo",
    "proc/pagetypeinfo",
    "proc/vmstat",
    "proc/cmdline",
    "proc/version",
    "proc/sys/kernel/osrelease",
    "proc/sys/kernel/arch",
    "sos_commands/kernel/uname_-a",
    "sys/devices/system/cpu/possible",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/online",
    "sys/devices/system/node/online",
    "sys/devices/system/node/has_memory",
    "sys/devices/system/node/*/cpulist",
    "sys/devices/system/node/*/distance",
    "sys/devices/system/node/*/meminfo",
    "sys/kernel/slab/*",
    "sys/kernel/slab/*/*",
];

/// Why a dump could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The tar is damaged or could not be read.
    #[error(transparent)]
    Tar(#[from] TarError),
    /// A file in it is not as the kernel writes it.
    #[error("{path}: {source}")]
    File {
        /// Its path in the dump.
        path: String,
        /// Line and expectation.
        source: LineError,
    },
    /// A file is larger than any kernel writes it.
    #[error("{path}: expected at most {limit} bytes, found {size}")]
    TooLarge {
        /// Its path in the dump.
        path: String,
        /// Bytes it has.
        size: u64,
        /// Bytes it may have.
        limit: u64,
    },
    /// There are more caches or nodes than any kernel has.
    #[error("{path}: expected at most {limit} {what}")]
    TooMany {
        /// The one too many.
        path: String,
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Nothing about slabs was found.
    #[error(
        "expected proc/slabinfo or sys/kernel/slab among {files} files, found neither: not a dump, or read without the \
         permission to see them"
    )]
    Empty {
        /// Files seen.
        files: u64,
    },
}

/// The state of a machine. What the dump does not have is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dump {
    /// `uname -r`.
    pub release: Option<String>,
    /// `uname -m`.
    pub arch: Option<String>,
    /// Bytes in a page, and how that is known.
    pub page_size: Option<(u64, PageSizeFrom)>,
    /// CPUs that may ever be plugged in.
    pub cpus_possible: Vec<u32>,
    /// CPUs that are there. Sizes of caches follow these, as they were at cache creation.
    pub cpus_present: Vec<u32>,
    /// CPUs that run.
    pub cpus_online: Vec<u32>,
    /// Nodes, ascending.
    pub nodes: Vec<Node>,
    /// /proc/meminfo, in kB.
    pub meminfo: Numbers,
    /// /proc/vmstat.
    pub vmstat: Numbers,
    /// /proc/slabinfo.
    pub slabinfo: Option<Slabinfo>,
    /// /sys/kernel/slab, one for each directory, by name.
    pub caches: Vec<SlabAttrs>,
    /// /proc/zoneinfo.
    pub zones: Vec<Zone>,
    /// /proc/buddyinfo.
    pub buddyinfo: Vec<FreeBlocks>,
    /// /proc/pagetypeinfo.
    pub pagetypes: Option<PageTypes>,
    /// The kernel's command line.
    pub cmdline: Option<String>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its number.
    pub id: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// Distances to the nodes of [`Dump::nodes`] that are online, ascending.
    pub distances: Vec<u32>,
    /// Its meminfo, in kB.
    pub meminfo: Numbers,
    /// Whether it has memory; from its MemTotal where the kernel's own list is missing.
    pub has_memory: bool,
}

impl Dump {
    /// Reads a tar: plain, gz, zst or xz.
    ///
    /// # Errors
    /// A damaged tar, or as [`DumpBuilder`].
    pub fn from_tar(reader: impl Read) -> Result<Dump, BundleError> {
        let io = |source| TarError::Io { offset: 0, source };
        let mut tar = Tar::new(Decompressed::new(reader).map_err(io)?);
        let mut builder = DumpBuilder::new();
        while let Some(entry) = tar.next()? {
            match entry {
                Entry::File { path, size } if DumpBuilder::wants(&path) => {
                    DumpBuilder::check_size(&path, size)?;
                    builder.file(&path, &tar.content()?)?;
                }
                Entry::File { .. } => builder.files += 1,
                Entry::Link { path, target } => builder.link(&path, &target)?,
            }
        }
        builder.finish()
    }

    /// The cache that is called `name`, as directory or alias.
    pub fn cache(&self, name: &str) -> Option<&SlabAttrs> {
        self.caches.iter().find(|cache| cache.is_called(name))
    }
}

/// Takes the files of a dump one by one.
#[derive(Debug, Default)]
pub struct DumpBuilder {
    dump: Dump,
    nodes: BTreeMap<u32, Node>,
    nodes_online: Vec<u32>,
    nodes_with_memory: Option<Vec<u32>>,
    caches: BTreeMap<String, SlabAttrs>,
    /// Target and alias.
    links: Vec<(String, String)>,
    files: u64,
}

impl DumpBuilder {
    /// The largest file read, in bytes. /proc/zoneinfo of 4,096 CPUs and 64 nodes is the largest real one.
    pub const FILE_LIMIT: u64 = 64 << 20;
    const CACHE_LIMIT: usize = 1 << 16;
    const NODE_LIMIT: usize = 1 << 12;

    /// An empty dump.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the file at `path` is worth reading ([`WANTED`]).
    pub fn wants(path: &str) -> bool {
        let parts: Vec<&str> = below_root(path).collect();
        WANTED.iter().any(|wanted| {
            wanted.split('/').count() == parts.len()
                && wanted.split('/').zip(&parts).all(|(wanted, part)| wanted == "*" || wanted == *part)
        })
    }

    fn check_size(path: &str, size: u64) -> Result<(), BundleError> {
        let (path, limit) = (path.to_string(), Self::FILE_LIMIT);
        if size > limit { Err(BundleError::TooLarge { path, size, limit }) } else { Ok(()) }
    }

    /// Takes a file. One that is not wanted is passed over.
    ///
    /// # Errors
    /// The first line that is not as the kernel writes it.
    pub fn file(&mut self, path: &str, content: &[u8]) -> Result<(), BundleError> {
        self.files += 1;
        Self::check_size(path, content.len() as u64)?;
        self.take(path, content)?.map_err(|source| BundleError::File { path: path.to_string(), source })
    }

    /// Takes a symbolic link: an alias of a cache.
    ///
    /// # Errors
    /// More caches than a kernel has.
    pub fn link(&mut self, path: &str, target: &str) -> Result<(), BundleError> {
        self.files += 1;
        let parts: Vec<&str> = below_root(path).collect();
        let target = target.rsplit('/').next().unwrap_or("");
        if let ["sys", "kernel", "slab", alias] = parts[..]
            && !target.is_empty()
        {
            if self.links.len() >= Self::CACHE_LIMIT {
                return Err(too_many(path, "caches", Self::CACHE_LIMIT));
            }
            self.links.push((target.to_string(), alias.to_string()));
        }
        Ok(())
    }

    fn take(&mut self, path: &str, content: &[u8]) -> Result<Result<(), LineError>, BundleError> {
        let parts: Vec<&str> = below_root(path).collect();
        match parts[..] {
            ["sys", "kernel", "slab", cache, attribute] => {
                if self.caches.len() >= Self::CACHE_LIMIT && !self.caches.contains_key(cache) {
                    return Err(too_many(path, "caches", Self::CACHE_LIMIT));
                }
                let attrs = self.caches.entry(cache.to_string()).or_default();
                Ok(utf8(content).and_then(|text| attrs.set(attribute, text)))
            }
            ["sys", "devices", "system", "node", node, file] => {
                let Some(id) = node.strip_prefix("node").and_then(number) else { return Ok(Ok(())) };
                if self.nodes.len() >= Self::NODE_LIMIT && !self.nodes.contains_key(&id) {
                    return Err(too_many(path, "nodes", Self::NODE_LIMIT));
                }
                Ok(self.node_file(id, file, content))
            }
            _ => Ok(self.machine_file(&parts, content)),
        }
    }

    fn node_file(&mut self, id: u32, file: &str, content: &[u8]) -> Result<(), LineError> {
        let node = self.nodes.entry(id).or_insert_with(|| Node { id, ..Node::default() });
        match file {
            "cpulist" => node.cpus = ids(content)?,
            "distance" => {
                let text = utf8(content)?;
                let distances = text.split_whitespace().map(number).collect::<Option<_>>();
                node.distances = distances.ok_or_else(|| LineError::new(1, "distances", text))?;
            }
            "meminfo" => node.meminfo = procfs::parse_numbers(content)?,
            _ => {}
        }
        Ok(())
    }

    fn machine_file(&mut self, parts: &[&str], content: &[u8]) -> Result<(), LineError> {
        let dump = &mut self.dump;
        match parts {
            ["proc", "slabinfo"] => {
                dump.slabinfo = Some(Slabinfo::parse(content).map_err(|error| match error {
                    SlabinfoError::Line(error) => error,
                    // The text form has no other error.
                    other => LineError::new(1, "a slabinfo", &other.to_string()),
                })?);
            }
            ["proc", "meminfo"] => dump.meminfo = procfs::parse_numbers(content)?,
            ["proc", "vmstat"] => dump.vmstat = procfs::parse_numbers(content)?,
            ["proc", "zoneinfo"] => dump.zones = procfs::parse_zoneinfo(content)?,
            ["proc", "buddyinfo"] => dump.buddyinfo = procfs::parse_buddyinfo(content)?,
            ["proc", "pagetypeinfo"] => dump.pagetypes = Some(procfs::parse_pagetypeinfo(content)?),
            ["proc", "cmdline"] => dump.cmdline = Some(utf8(content)?.trim().to_string()),
            ["proc", "sys", "kernel", "osrelease"] => dump.release = Some(utf8(content)?.trim().to_string()),
            ["proc", "sys", "kernel", "arch"] => dump.arch = Some(utf8(content)?.trim().to_string()),
            // `Linux version 6.1.0 (builder) (gcc) #1 SMP`
            ["proc", "version"] => {
                let release = utf8(content)?.split_whitespace().nth(2).map(str::to_string);
                dump.release = dump.release.take().or(release);
            }
            // `Linux host 6.1.0 #1 SMP <date> x86_64 GNU/Linux`
            ["sos_commands", "kernel", "uname_-a"] => {
                let words: Vec<&str> = utf8(content)?.split_whitespace().collect();
                let at = |index: usize| words.get(index).map(|word| word.to_string());
                dump.release = dump.release.take().or_else(|| at(2));
                let last = words.len().checked_sub(1 + usize::from(words.last() == Some(&"GNU/Linux")));
                dump.arch = dump.arch.take().or_else(|| at(last.filter(|&last| last > 2)?));
            }
            ["sys", "devices", "system", "cpu", "possible"] => dump.cpus_possible = ids(content)?,
            ["sys", "devices", "system", "cpu", "present"] => dump.cpus_present = ids(content)?,
            ["sys", "devices", "system", "cpu", "online"] => dump.cpus_online = ids(content)?,
            ["sys", "devices", "system", "node", "online"] => self.nodes_online = ids(content)?,
            ["sys", "devices", "system", "node", "has_memory"] => {
                self.nodes_with_memory = Some(ids(content)?)
            }
            _ => {}
        }
        Ok(())
    }

    /// Puts the dump together.
    ///
    /// # Errors
    /// [`BundleError::Empty`] when there was nothing about slabs.
    pub fn finish(mut self) -> Result<Dump, BundleError> {
        for (target, alias) in std::mem::take(&mut self.links) {
            // A link whose directory is not in the dump still tells the alias.
            self.caches.entry(target).or_default().aliases.push(alias);
        }
        let mut dump = self.dump;
        if dump.slabinfo.is_none() && self.caches.is_empty() {
            return Err(BundleError::Empty { files: self.files });
        }
        let name_cache = |(name, mut cache): (String, SlabAttrs)| {
            cache.aliases.sort();
            SlabAttrs { name, ..cache }
        };
        dump.caches = self.caches.into_iter().map(name_cache).collect();
        for &id in self.nodes_online.iter().take(Self::NODE_LIMIT) {
            self.nodes.entry(id).or_insert_with(|| Node { id, ..Node::default() });
        }
        dump.nodes = self.nodes.into_values().collect();
        // Without the directories of the nodes, a single node still has all CPUs.
        if let [node] = &mut dump.nodes[..]
            && node.cpus.is_empty()
        {
            node.cpus = dump.cpus_online.clone();
        }
        for node in &mut dump.nodes {
            node.has_memory = match &self.nodes_with_memory {
                Some(nodes) => nodes.contains(&node.id),
                None => node.meminfo.get("MemTotal").is_some_and(|&total| total > 0),
            };
        }
        dump.page_size = page_size(&dump);
        Ok(dump)
    }
}

fn too_many(path: &str, what: &'static str, limit: usize) -> BundleError {
    BundleError::TooMany { path: path.to_string(), what, limit }
}

fn ids(content: &[u8]) -> Result<Vec<u32>, LineError> {
    let text = utf8(content)?;
    id_list(text).ok_or_else(|| LineError::new(1, "a list such as `0-3,8`", text))
}

/// The components of `path` from `proc`, `sys` or `sos_commands` on, which may be up to two directories down.
fn below_root(path: &str) -> impl Iterator<Item = &str> {
    let parts = || path.split('/').filter(|part| !matches!(*part, "" | "."));
    let is_root = |part: &str| matches!(part, "proc" | "sys" | "sos_commands");
    let depth = parts().take(3).position(is_root).unwrap_or(0);
    parts().skip(depth)
}
