//! What dumps say about the start: sizes, aliases and how many slabs are where.
//!
//! ```text
//! Before::read      one dump; Before::read_all: /sys/kernel/slab of one, newer /proc/slabinfo of another
//!   dump            caches of a dump: rows joined with directories, and the knobs that the kernel ran with
//!   totals          counts of a newer slabinfo, in the proportions of sysfs
//!   nodes           which node a page frame is on
//! ```

mod dump;
pub mod nodes;
mod totals;

use crate::recorded::{self, Snapshots};
use nodes::NodeSpan;
use slablab_doctor::state::read_folder;
use slablab_readers::bundle::{Dump, DumpBuilder, Form};
use slablab_readers::counters::{ConstRow, StateRow};
use slablab_readers::event::LARGEST_BLOCK_BYTES;
use slablab_readers::recording::{self, Moment};
use slablab_readers::slabinfo::Slabinfo;
use slablab_readers::slabs::{CacheSlabs, Snapshot};
use slablab_readers::text::{Breakdown, Count};
use slablab_report::error::{At, Error, Result};
use slablab_report::files;
use slablab_slabs::CacheFlags;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The state before a recording.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Where it was read.
    pub path: PathBuf,
    /// Caches by directory.
    pub caches: Vec<CacheBefore>,
    /// Name or alias to index.
    by_name: HashMap<String, usize>,
    /// The dump, when it was one.
    pub dump: Option<Dump>,
    /// The newest /proc/slabinfo of the start.
    pub slabinfo: Option<Slabinfo>,
    /// Which part of the recording is counted.
    pub windows: Windows,
    /// Where each node's memory is; empty for one node, or if no file tells.
    pub nodes: Vec<NodeSpan>,
    /// Every slab at the start and at the end, if the recording has them.
    pub snapshots: Option<Snapshots>,
    /// Sentences: how caches were found whose names are not in the dump.
    pub assumed: Vec<String>,
}

/// What an answer says of a state before a recording.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where it was read.
    pub path: PathBuf,
    /// Its caches.
    pub caches: usize,
    /// Their active objects.
    pub active: u64,
}

impl From<&Before> for Given {
    fn from(before: &Before) -> Given {
        let active = before.caches.iter().fold(0, |sum: u64, cache| sum.saturating_add(cache.active));
        Given { path: before.path.clone(), caches: before.caches.len(), active }
    }
}

/// The part of a recording that is counted, between marks in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Windows {
    /// All of it.
    #[default]
    All,
    /// For each cache, from the mark `SB name` to the mark `SA name`.
    OfCaches,
    /// For all caches, from the mark `PH before_end` to the mark `PH after_begin`.
    One,
}

/// One cache before the recording. What the dump does not say is `None`.
#[derive(Clone, Debug, Default)]
pub struct CacheBefore {
    /// The directory; the name in slabinfo where there is none, or where the links to it are lost.
    pub name: String,
    /// Other names of the same cache.
    pub aliases: Vec<String>,
    /// Bytes the user gets.
    pub object_size: Option<u64>,
    /// Bytes from one object to the next.
    pub size: u64,
    /// Pages of a slab, log2.
    pub order: u64,
    /// Objects of a slab.
    pub objects: u64,
    /// Flags that matter to engines.
    pub flags: CacheFlags,
    /// Alignment in bytes.
    pub align: Option<u64>,
    /// Objects in a sheaf.
    pub sheaf_capacity: u64,
    /// Slabs, in all and per node.
    pub slabs: Option<Breakdown>,
    /// `active_objs`: objects in use or parked at CPUs.
    pub active: u64,
    /// Slabs on node lists.
    pub partial: Option<Breakdown>,
    /// Objects in use on those.
    pub objects_partial: Option<Breakdown>,
    /// Slabs of CPUs, their partial lists included, per node.
    pub cpu_slabs: Option<Breakdown>,
    /// Slabs on CPUs' partial lists, per CPU.
    pub cpu_partial: Option<Breakdown>,
    /// Its limits and debugging.
    pub knobs: Knobs,
}

/// The limits of a cache as the kernel's files have them, and whether it is debugged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knobs {
    /// SLUB: objects that a CPU's partial list should hold.
    pub cpu_partial: Option<u64>,
    /// SLUB: slabs that a node's list keeps.
    pub min_partial: Option<u64>,
    /// SLAB: objects in a CPU's array.
    pub limit: Option<u64>,
    /// SLAB: objects moved at once.
    pub batchcount: Option<u64>,
    /// SLAB: batches in a node's shared array.
    pub shared: Option<u64>,
    /// SLAB: objects in the shared arrays of all nodes.
    pub shared_objects: Option<u64>,
    /// SLUB: red zones, poison, users, checks or tracing.
    pub debugged: bool,
}

impl CacheBefore {
    /// Whether a kernel can have such a cache, on a machine of about so many page frames. A dump may say any
    /// numbers. Objects that are too large for the machine are found when the cache is created.
    pub(super) fn is_possible(&self, frames: u64) -> bool {
        /// Slabs that a machine may have whatever its memory: a machine file may make it small.
        const SLABS_ALWAYS: u64 = 1 << 20;
        /// `limit` of SLAB's arrays and a sheaf's capacity are 32 bits; no kernel has arrays of more objects.
        const ARRAY_MAX: u64 = u16::MAX as u64;
        /// The largest page of a kernel, and the largest order of its page allocator.
        const PAGE: u64 = 65536;
        const ORDER_MAX: u64 = 13;
        let within = |most: u64| {
            move |part: &Option<Breakdown>| {
                let counts = |part: &Breakdown| {
                    let parts = part.nodes.iter().chain(&part.cpus).map(|(_, count)| *count);
                    parts
                        .chain([part.total])
                        .all(|Count { value, slabs }| value.max(slabs.unwrap_or(0)) <= most)
                };
                part.as_ref().is_none_or(counts)
            }
        };
        let most = frames.max(SLABS_ALWAYS);
        let slab = PAGE << self.order.min(ORDER_MAX);
        self.order <= ORDER_MAX
            && self.size.max(self.align.unwrap_or(0)) <= LARGEST_BLOCK_BYTES
            && self.objects <= ARRAY_MAX
            && self.objects * self.size <= slab
            && self.sheaf_capacity <= ARRAY_MAX
            && [&self.slabs, &self.partial, &self.cpu_slabs].into_iter().all(within(most))
            && [&self.objects_partial, &self.cpu_partial].into_iter().all(within(most * ARRAY_MAX))
            && self.active <= most * ARRAY_MAX
    }
}

impl Before {
    /// Reads a dump: a directory of the kernel's files (`/` for this machine), a tar of them, the text of
    /// /proc/slabinfo, or the output of `grep -r`. Files may be compressed.
    ///
    /// # Errors
    /// What is neither, or damaged.
    pub fn read(path: &Path) -> Result<Before> {
        let before = Before { snapshots: recorded::snapshots(path)?, ..Before::read_one(path)? };
        match recorded::slabinfo(path, recording::START)? {
            // Of a recording the totals are those of its start, which its dump was read some time before.
            Some(start) => before.with_totals(&Before::from_slabinfo(path, start)),
            None => Ok(before),
        }
    }

    fn read_one(path: &Path) -> Result<Before> {
        match read_dump(path, Moment::Before)? {
            (Some(Form::Slabinfo | Form::SlabinfoCsv), Dump { slabinfo: Some(slabinfo), .. }) => {
                Ok(Before::from_slabinfo(path, slabinfo))
            }
            (_, dump) => Before::from_any(path, dump),
        }
    }

    /// Reads one dump, or two of one machine, in any order: one with /sys/kernel/slab, and a /proc/slabinfo
    /// that was read nearer to the recording's start. The second has the totals, the first everything else.
    ///
    /// # Errors
    /// As [`Before::read`]; more than two dumps; or two that both have, or both lack, /sys/kernel/slab.
    pub fn read_all(paths: &[PathBuf]) -> Result<Option<Before>> {
        let mut all = paths.iter().map(|path| Before::read(path)).collect::<Result<Vec<_>>>()?;
        if let Some(path) = paths.get(2) {
            return Err(Error::new(path, "expected at most two dumps of the start"));
        }
        let Some(last) = all.pop() else { return Ok(None) };
        let Some(first) = all.pop() else { return Ok(Some(last)) };
        let has_sysfs = |before: &Before| before.dump.as_ref().is_some_and(|dump| !dump.caches.is_empty());
        match (has_sysfs(&first), has_sysfs(&last)) {
            (true, false) => first.with_totals(&last).map(Some),
            (false, true) => last.with_totals(&first).map(Some),
            (both, _) => {
                let has = if both { "both have sys/kernel/slab" } else { "neither has sys/kernel/slab" };
                let expected = format!(
                    "{has}, this and {}: expected one dump with it, and the text of a newer /proc/slabinfo",
                    first.path.display()
                );
                Err(Error::new(&last.path, expected))
            }
        }
    }

    /// Reads the state before the recording at `recording`: `dumps` as [`Before::read_all`] reads them, or,
    /// without any, the state in the recording, if it has one.
    ///
    /// # Errors
    /// As [`Before::read_all`]; a recording that cannot be read.
    pub fn read_for(recording: &Path, dumps: &[PathBuf]) -> Result<Option<Before>> {
        match dumps.is_empty() && recorded::has_start(recording)? {
            true => Before::read(recording).map(Some),
            false => Before::read_all(dumps),
        }
    }

    fn from_any(path: &Path, dump: Dump) -> Result<Before> {
        if dump.caches.is_empty() {
            let Some(slabinfo) = &dump.slabinfo else {
                return Err(Error::new(path, "holds neither proc/slabinfo nor sys/kernel/slab"));
            };
            let mut before = Before::from_slabinfo(path, slabinfo.clone());
            before.nodes = nodes::of_dump(&dump);
            before.dump = Some(dump);
            return Ok(before);
        }
        Ok(Before::from_dump(path, dump))
    }

    fn from_slabinfo(path: &Path, slabinfo: Slabinfo) -> Before {
        let caches = slabinfo.rows.iter().filter(|row| row.ordinal == 0).map(CacheBefore::of_row);
        let caches = caches.collect();
        Before { path: path.to_path_buf(), caches, slabinfo: Some(slabinfo), ..Before::default() }.indexed()
    }

    fn from_dump(path: &Path, dump: Dump) -> Before {
        let (caches, assumed) = dump::caches(&dump);
        Before {
            path: path.to_path_buf(),
            caches,
            slabinfo: dump.slabinfo.clone(),
            nodes: nodes::of_dump(&dump),
            assumed,
            dump: Some(dump),
            ..Before::default()
        }
        .indexed()
    }

    /// The start of a recorded run of a kernel with SLAB that counted: its /proc/slabinfo then.
    pub fn from_counted_slabinfo(path: &Path, slabinfo: Slabinfo) -> Before {
        Before { windows: Windows::One, ..Before::from_slabinfo(path, slabinfo) }
    }

    /// The start of a recorded run with counters: constants and the state at each cache's `SB` mark.
    pub fn from_counters(path: &Path, constants: &[ConstRow], states: &[StateRow], label: &str) -> Before {
        let state: HashMap<&str, &StateRow> = states
            .iter()
            .filter(|row| row.label == label && row.phase == "before")
            .map(|row| (row.cache.as_str(), row))
            .collect();
        let caches = constants.iter().map(|constant| {
            let state = state.get(constant.cache.as_str());
            CacheBefore {
                name: constant.cache.clone(),
                aliases: constant.aliases.clone(),
                object_size: Some(constant.object_size),
                size: constant.slab_size,
                order: constant.order,
                objects: constant.objs_per_slab,
                flags: CacheFlags::NONE
                    .with(CacheFlags::HWCACHE_ALIGN, constant.hwcache_align)
                    .with(CacheFlags::TYPESAFE_BY_RCU, constant.destroy_by_rcu)
                    .with(CacheFlags::RECLAIM_ACCOUNT, constant.reclaim_account),
                align: Some(constant.align),
                sheaf_capacity: 0,
                active: state.map_or(0, |state| state.objects.total.value),
                slabs: Some(state.map_or(whole(0), |state| state.slabs.clone())),
                partial: state.map(|state| state.partial.clone()),
                objects_partial: state.map(|state| state.objects_partial.clone()),
                cpu_slabs: state.map(|state| state.cpu_slabs.clone()),
                cpu_partial: state.map(|state| state.slabs_cpu_partial.clone()),
                knobs: Knobs {
                    cpu_partial: Some(constant.cpu_partial),
                    min_partial: Some(constant.min_partial),
                    ..Knobs::default()
                },
            }
        });
        let caches = caches.collect();
        Before { path: path.to_path_buf(), caches, windows: Windows::OfCaches, ..Before::default() }.indexed()
    }

    fn indexed(mut self) -> Before {
        for (index, cache) in self.caches.iter().enumerate() {
            for name in std::iter::once(&cache.name).chain(&cache.aliases) {
                self.by_name.entry(name.clone()).or_insert(index);
            }
        }
        self
    }

    /// The slabs at the start of the cache that has one of these names.
    pub(crate) fn slabs_of<'a>(
        &self,
        mut names: impl Iterator<Item = &'a String>,
    ) -> Option<(&Snapshot, &CacheSlabs)> {
        let start = &self.snapshots.as_ref()?.start;
        names.find_map(|name| start.only(name)).map(|cache| (start, cache))
    }

    /// The cache that is called `name`, as directory or alias.
    pub fn find(&self, name: &str) -> Option<(usize, &CacheBefore)> {
        self.by_name.get(name).map(|index| (*index, &self.caches[*index]))
    }
}

fn whole(value: u64) -> Breakdown {
    Breakdown { total: Count { value, slabs: None }, ..Breakdown::default() }
}

/// Reads a dump: a directory of the kernel's files, or a file of any [`Form`]. The form is `None` for a
/// directory. Of a recording it is the dump of `moment`. A file that ends early is an error, because a replay
/// needs all of it.
pub(crate) fn read_dump(path: &Path, moment: Moment) -> Result<(Option<Form>, Dump)> {
    if path.is_dir() {
        return Ok((None, read_folder(path)?));
    }
    let mut builder = DumpBuilder::of(moment);
    let (form, cut_off) = builder.input(files::open(path).at(path)?).at(path)?;
    if let Some(cut_off) = cut_off {
        return Err(Error::new(path, cut_off));
    }
    Ok((Some(form), builder.finish().at(path)?))
}
