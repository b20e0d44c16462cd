//! The state of a machine as values: its caches, and what is known around them.

use schemars::JsonSchema;
use serde::Serialize;
use slablab_readers::bundle::Dump;
use slablab_readers::slabinfo::SlabinfoRow;
use slablab_readers::sysfs::SlabAttrs;
use slablab_slabs::Release;
use slablab_slabs::order::CpuCounts;
use std::path::PathBuf;

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
    /// The assumptions, as sentences.
    pub assumed: Vec<String>,
    /// Everything that was read.
    pub dump: Dump,
}

/// What is missing of an input that is cut off, as a file.
pub(super) const REST: &str = "the rest of the input";

/// A file that would have told more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
    /// Whether only its bytes are known, not its objects: then the numbers of objects here are bytes, in
    /// slabs of a page.
    pub bytes_only: bool,
    /// Everything its directory says, if there is one.
    pub attrs: Option<SlabAttrs>,
    /// Index of its row in the rows of the dump's slabinfo; `None` for a cache that only /sys/kernel/slab
    /// has.
    pub row: Option<usize>,
}

impl Cache {
    /// Bytes of its slabs.
    pub fn bytes(&self, page_size: u64) -> u64 {
        self.slabs.saturating_mul(self.slab_bytes(page_size))
    }

    /// Bytes of one slab.
    pub fn slab_bytes(&self, page_size: u64) -> u64 {
        page_size.saturating_mul(1u64.checked_shl(self.order).unwrap_or(u64::MAX))
    }
}

impl State {
    /// Bytes of all slabs.
    pub fn bytes(&self) -> u64 {
        self.caches.iter().fold(0, |sum, cache| sum.saturating_add(cache.bytes(self.page_size)))
    }

    /// Whether the input ends before its end.
    pub fn is_cut_off(&self) -> bool {
        self.missing.iter().any(|missing| missing.file == REST)
    }

    /// The row of /proc/slabinfo that `cache`, one of [`State::caches`], was made from.
    pub fn row(&self, cache: &Cache) -> Option<&SlabinfoRow> {
        self.dump.slabinfo.as_ref()?.rows.get(cache.row?)
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
