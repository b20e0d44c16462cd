//! A dump of a machine's slab and page-allocator state: from a live system, a directory, or a tar in any
//! compression.
//!
//! No file is opened here. A walker (the caller's, for a live root or a directory; [`Dump::from_tar`] for a
//! tar) hands each wanted file and link to a [`DumpBuilder`], in any order; paths may begin with `/`, `./` or
//! the one or two directories that support bundles put in front. [`WANTED`] lists what is worth reading.

mod builder;
mod listing;
mod machine;
mod page_size;
mod supportconfig;
mod text_dump;
mod wanted;

use std::collections::BTreeMap;
use std::io::Read;

pub use builder::DumpBuilder;
pub use machine::CpusFrom;
pub(crate) use machine::config_page_size;
pub use page_size::PageSizeFrom;
pub use text_dump::Form;
pub use wanted::{WANTED, cgroup_file, fits};

use crate::allocinfo::AllocSite;
use crate::cgroups::Owners;
use crate::modules::Module;
use crate::pasted::{Caches, Pasted};
use crate::procfs::{DentryState, FreeBlocks, Numbers, PageTypes, Zone};
use crate::slabinfo::{Slabinfo, SlabinfoError};
use crate::slabs::Snapshot;
use crate::sysfs::SlabAttrs;
use crate::tar::TarError;
use crate::text::LineError;

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
    /// All files together are larger than those of any kernel.
    #[error("{path}: expected at most {limit} bytes in all files up to here")]
    TooMuch {
        /// The file that was too much.
        path: String,
        /// Bytes of all files.
        limit: u64,
    },
    /// The input is a slabinfo, and damaged.
    #[error(transparent)]
    Slabinfo(#[from] SlabinfoError),
    /// There is nothing in the input.
    #[error(
        "the file is empty: expected the files of a kernel (a tar, a support bundle, the output of `grep -r .`) or a \
         text with /proc/slabinfo or messages about slabs"
    )]
    NoBytes,
    /// Not one of the forms an input can have.
    #[error(
        "expected a tar of the kernel's files or a support bundle, the text of /proc/slabinfo, or the output of \
         `grep -r . /proc/slabinfo /sys/kernel/slab`: begins like none of them"
    )]
    Unknown,
    /// A text without anything about slabs.
    #[error(
        "none of the {lines} lines is of slabtop, vmstat -m, /proc/slabinfo, /proc/meminfo or a message of the kernel \
         about slabs; the first is line {line}: `{first}`"
    )]
    NothingPasted {
        /// Lines with anything in them.
        lines: usize,
        /// The first of them, from 1.
        line: usize,
        /// What is there, shortened.
        first: String,
    },
    /// A text of another tool about memory.
    #[error("{0}")]
    OtherText(String),
    /// A recording, where a dump is expected.
    #[error(
        "a {0}: expected a tar of the kernel's files or a support bundle, the text of /proc/slabinfo, or the output \
         of `grep -r . /proc/slabinfo /sys/kernel/slab`"
    )]
    Recording(&'static str),
    /// A recording without the state that was asked for.
    #[error("a recording without {0}, the state that is asked for: it was ended before that was read")]
    NoState(&'static str),
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
    /// /proc/slabinfo, or the caches of a text as its rows.
    pub slabinfo: Option<Slabinfo>,
    /// Every slab then, of a recording whose recorder read them one by one.
    pub slabs: Option<Box<Snapshot>>,
    /// Earlier snapshots of the caches, oldest first, from a text that has several.
    pub earlier: Vec<Caches>,
    /// Caches of which only bytes are known: name, bytes in use if that is known, and bytes.
    pub sized: Vec<(String, Option<u64>, u64)>,
    /// What else was found in a text.
    pub pasted: Option<Box<Pasted>>,
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
    /// Options of the kernel's configuration about slabs, memory, nodes and CPUs: name without `CONFIG_`, and
    /// value, `n` for one that is not set.
    pub config: BTreeMap<String, String>,
    /// How many CPUs there are, where the lists of /sys/devices/system/cpu are missing.
    pub cpus_counted: Option<(u32, CpusFrom)>,
    /// Seconds since 1970, of a `date` in the dump.
    pub date_s: Option<u64>,
    /// Seconds since 1970, of the newest of the files about slabs, as the archive or directory has it. 0 is
    /// the stamp of a reproducible archive, and no time.
    pub changed_s: Option<u64>,
    /// Seconds the machine was up.
    pub up_s: Option<f64>,
    /// The boot: an id that the kernel makes up once (/proc/sys/kernel/random/boot_id).
    pub boot_id: Option<String>,
    /// The machine's name.
    pub host: Option<String>,
    /// /proc/sys/fs/dentry-state, of the machine or in a text.
    pub dentry_state: Option<DentryState>,
    /// /proc/net/protocols: sockets by protocol.
    pub protocols: Numbers,
    /// /proc/allocinfo: live bytes of each line of code that allocates.
    pub alloc_sites: Vec<AllocSite>,
    /// /proc/modules.
    pub modules: Vec<Module>,
    /// Cgroups and processes that hold kernel memory.
    pub owners: Owners,
    /// Paths of files that are there and have nothing in them, from `proc`, `sys` or `sos_commands` on.
    pub empty: Vec<String>,
    /// Aliases come from a listing of /sys/kernel/slab, without its files.
    pub listed: bool,
    /// Per-cgroup caches, which have directories below their parent's (3.15 to 5.8). Slabinfo counts them
    /// with the parent.
    pub cgroup_caches: bool,
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
        let mut builder = DumpBuilder::new();
        match builder.tar(reader)? {
            None => builder.finish(),
            Some(cut_off) => Err(cut_off.into()),
        }
    }

    /// The cache that is called `name`, as directory or alias.
    pub fn cache(&self, name: &str) -> Option<&SlabAttrs> {
        self.caches.iter().find(|cache| cache.is_called(name))
    }
}
