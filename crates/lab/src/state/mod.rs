//! What slab memory looks like on a machine: a dump, or less than one, as one list of caches.
//!
//! ```text
//! read                  any input: the live machine, a directory, a tar, a support bundle, a bare slabinfo
//!   Dump                the kernel's files as values (slablab_kernel)
//!   join                rows of /proc/slabinfo with directories of /sys/kernel/slab
//!   State               caches, the machine they are on, and what could not be read
//! ```
//!
//! Totals come from /proc/slabinfo where there is one: a walk through sysfs allocates slabs itself, and is read later.
//! Sizes without padding, node lists and CPU slabs come from sysfs, and are `None` without it.

mod join;
mod one;

pub use one::one_cache;

use crate::error::{At, Error, Result};
use crate::replay::folder;
use slablab_kernel::bundle::Dump;
use slablab_kernel::slabinfo::Slabinfo;
use slablab_kernel::sysfs::SlabAttrs;
use slablab_slabs::Release;
use slablab_slabs::order::CpuCounts;
use std::path::{Path, PathBuf};

/// Where to read, and what the user says about it.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// A directory, a tar in any compression, a slabinfo; `None` for the running machine, `-` for standard input.
    pub path: Option<PathBuf>,
    /// Bytes in a page, which some inputs do not tell.
    pub page_size: Option<u64>,
    /// CPUs, which some inputs do not tell.
    pub cpus: Option<u32>,
}

/// The slab memory of a machine at a moment.
#[derive(Clone, Debug)]
pub struct State {
    /// What was read, as the user wrote it; `/` for the running machine.
    pub path: PathBuf,
    /// Caches in the order of the input. Names repeat: the key is name and ordinal.
    pub caches: Vec<Cache>,
    /// Bytes in a page.
    pub page_size: u64,
    /// CPUs as the order rules count them; `None` if neither input nor user said.
    pub cpus: Option<CpuCounts>,
    /// The kernel's release, as far as its numbers go; `None` if the input does not tell.
    pub release: Option<Release>,
    /// Seconds since 1970 when the dump was taken, if anything in it tells.
    pub taken_s: Option<u64>,
    /// Seconds the machine was up, if anything tells.
    pub up_s: Option<f64>,
    /// What was not in the input or could not be read.
    pub missing: Vec<Missing>,
    /// Sentences on what was assumed.
    pub assumed: Vec<String>,
    /// Everything that was read.
    pub dump: Dump,
}

/// A file that would have told more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its path on the machine, such as `/proc/slabinfo`.
    pub file: String,
    /// Why it is not there: not in the bundle, no permission, this kernel has none.
    pub why: String,
    /// What cannot be said without it.
    pub costs: String,
    /// The one command that makes it readable or collects it; `None` if there is none.
    pub command: Option<String>,
}

/// One cache: a row of /proc/slabinfo, a directory of /sys/kernel/slab, or both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cache {
    /// The name in slabinfo, else an alias, else the directory.
    pub name: String,
    /// 0 for the first cache of that name, 1 for the second.
    pub ordinal: u32,
    /// Other names of the same cache: it was merged.
    pub aliases: Vec<String>,
    /// Bytes the user gets; `None` without sysfs.
    pub object_size: Option<u64>,
    /// Bytes from one object to the next.
    pub size: u64,
    /// Objects in a slab.
    pub objects_per_slab: u64,
    /// Pages of a slab, log2.
    pub order: u32,
    /// Slabs.
    pub slabs: u64,
    /// Objects there is room for.
    pub total_objects: u64,
    /// Objects in use, or parked in CPU slabs, CPU partial slabs and sheaves, as the kernel counts.
    pub active_objects: u64,
    /// Everything its directory says, if there is one.
    pub attrs: Option<SlabAttrs>,
}

impl Cache {
    /// Bytes of its slabs.
    pub fn bytes(&self, page_size: u64) -> u64 {
        self.slabs * self.slab_bytes(page_size)
    }

    /// Bytes of one slab.
    pub fn slab_bytes(&self, page_size: u64) -> u64 {
        page_size << self.order
    }
}

impl State {
    /// Bytes of all slabs.
    pub fn bytes(&self) -> u64 {
        self.caches.iter().map(|cache| cache.bytes(self.page_size)).sum()
    }

    /// The cache that is called `name`, in slabinfo, as directory or alias.
    pub fn cache(&self, name: &str) -> Option<&Cache> {
        self.caches.iter().find(|cache| cache.name == name).or_else(|| {
            self.caches.iter().find(|cache| {
                cache.aliases.iter().any(|alias| alias == name)
                    || cache.attrs.as_ref().is_some_and(|attrs| attrs.is_called(name))
            })
        })
    }
}

/// Reads the state of a machine.
///
/// # Errors
/// What is no state of a machine, is damaged, or does not tell the page size while the user does not either.
pub fn read(input: &Input) -> Result<State> {
    let path = input.path.clone().unwrap_or_else(|| PathBuf::from("/"));
    let dump = read_dump(&path)?;
    let Some(page_size) = input.page_size.or(dump.page_size.map(|(bytes, _)| bytes)) else {
        return Err(Error::new(&path, "does not tell the page size; say it with --page-size"));
    };
    let release = dump.release.as_deref().and_then(Release::parse);
    let cpus = match input.cpus {
        Some(cpus) => Some(CpuCounts { possible: cpus, present: cpus, online: cpus }),
        None => counted(&dump),
    };
    Ok(State {
        path,
        caches: join::join(&dump),
        page_size,
        cpus,
        release,
        taken_s: None,
        up_s: None,
        missing: Vec::new(),
        assumed: Vec::new(),
        dump,
    })
}

fn read_dump(path: &Path) -> Result<Dump> {
    if path.is_dir() {
        return folder::read(path);
    }
    let bytes = std::fs::read(path).at(path)?;
    if bytes.starts_with(b"slabinfo") {
        let slabinfo = Slabinfo::parse(&bytes).at(path)?;
        return Ok(Dump { slabinfo: Some(slabinfo), ..Dump::default() });
    }
    Dump::from_tar(&bytes[..]).at(path)
}

/// CPUs as a dump lists them.
fn counted(dump: &Dump) -> Option<CpuCounts> {
    let possible = dump.cpus_possible.iter().max()? + 1;
    let or_possible = |cpus: &[u32]| if cpus.is_empty() { possible } else { cpus.len() as u32 };
    Some(CpuCounts {
        possible,
        present: or_possible(&dump.cpus_present),
        online: or_possible(&dump.cpus_online),
    })
}
