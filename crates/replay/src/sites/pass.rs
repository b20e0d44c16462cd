//! One pass over the rows of a trace: counts for each pair of cache and call site.

use super::lifetimes::Lifetimes;
use rustc_hash::FxHashMap;
use slablab_platform::Gfp;
use slablab_report::error::{Error, Result};
use slablab_slabs::kmalloc::{KmallocConfig, KmallocRule, KmallocType};
use slablab_slabs::{Preset, Release, kmalloc::Class};
use slablab_trace::{Batch, Columns, EventKind, Metadata, NONE, Reader, Texts, flags};
use std::path::Path;

/// Places of the time line.
pub(super) const TIMES: usize = 240;

const COLUMNS: [Columns; 11] = [
    Columns::TIME_NS,
    Columns::CPU,
    Columns::COMM,
    Columns::EVENT,
    Columns::OBJECT,
    Columns::CACHE,
    Columns::BYTES_REQ,
    Columns::BYTES_ALLOC,
    Columns::GFP,
    Columns::CALL_SITE,
    Columns::STACK,
];

/// Counts of one cache and call site.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) allocs: u64,
    pub(super) requested: u64,
    pub(super) allocated: u64,
    pub(super) live: u64,
    pub(super) live_requested: u64,
    pub(super) live_allocated: u64,
    pub(super) peak: u64,
    pub(super) same_cpu: u64,
    pub(super) other_cpu: u64,
    pub(super) other_node: u64,
    /// Frees without an event: when and where is not known.
    pub(super) implied: u64,
    pub(super) lifetimes: Lifetimes,
    /// Allocations by task.
    pub(super) tasks: FxHashMap<u32, u64>,
    /// Frees by call site.
    pub(super) freed_by: FxHashMap<u32, u64>,
    /// Change of live bytes in each part of the recording.
    pub(super) line: Vec<i64>,
}

/// Counts of one call chain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    pub(super) allocs: u64,
    pub(super) live: u64,
    pub(super) waste: u64,
}

/// A cache: named in the events, or a size and type of kmalloc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CacheKey {
    Named(u32),
    Kmalloc { bytes: u32, kind: u8 },
}

/// What one pass finds.
pub(super) struct Pass {
    pub(super) keys: Vec<(CacheKey, u32)>,
    pub(super) counts: Vec<Counts>,
    /// By site and call chain; chains are numbers of [`Texts::stack`].
    pub(super) chains: FxHashMap<(u32, u32), Chain>,
    /// Frees of objects from before the recording.
    pub(super) older: u64,
    pub(super) texts: Texts,
    kmalloc: Kmalloc,
}

/// An object that lives.
#[derive(Clone, Copy)]
struct Object {
    site: u32,
    cpu: u16,
    stack: u32,
    since: u64,
    requested: u32,
    allocated: u32,
}

const FREE: Object = Object { site: NONE, cpu: 0, stack: NONE, since: 0, requested: 0, allocated: 0 };

/// The names of kmalloc caches that events do not have.
struct Kmalloc {
    rule: KmallocRule,
    config: KmallocConfig,
}

const KINDS: [KmallocType; 4] =
    [KmallocType::Normal, KmallocType::Reclaimable, KmallocType::Cgroup, KmallocType::Dma];

impl Kmalloc {
    /// Those of the recorded kernel, or if its release is unknown, of the newest.
    fn of(metadata: &Metadata) -> Kmalloc {
        let release = metadata.release.as_deref().and_then(Release::parse);
        let newest = || Preset::parse("slub").expect("SLUB has presets");
        let preset = release.and_then(Preset::of_kernel).unwrap_or_else(newest);
        let shift = metadata.page_size_bytes.filter(|bytes| bytes.is_power_of_two()).map_or(12, u64::ilog2);
        let rule = KmallocRule::of(&preset, shift.clamp(12, 18));
        Kmalloc { rule, config: KmallocConfig::of(&preset) }
    }

    fn kind(&self, gfp: u32) -> u8 {
        let kind = KmallocType::of(Gfp(gfp), &self.config);
        KINDS.iter().position(|one| *one == kind).unwrap_or(0) as u8
    }

    fn name(&self, bytes: u32, kind: u8) -> String {
        match self.rule.class_recorded(u64::from(bytes), Some(u64::from(bytes))) {
            Class::Small(index) if self.rule.class_size(index) == bytes => {
                self.rule.name(KINDS[kind as usize], index).to_string()
            }
            Class::Large(_) => "(large kmalloc)".into(),
            Class::Small(_) | Class::Zero => format!("kmalloc-{bytes}"),
        }
    }
}

impl Pass {
    /// Reads all rows.
    pub(super) fn over(reader: &Reader, path: &Path, progress: &dyn Fn(u64, u64)) -> Result<Pass> {
        let metadata = reader.metadata();
        let (ids, rows) = (metadata.statistics.object_ids, reader.rows());
        if ids > rows {
            return Err(Error::new(
                path,
                format!("object ids below {ids} in {rows} rows: expected dense ids"),
            ));
        }
        let columns = COLUMNS.into_iter().fold(Columns::FLAGS, |all, one| all | one);
        let mut batches = reader.batches(columns);
        let mut batch = Batch::default();
        let mut running = Running {
            pass: Pass {
                keys: Vec::new(),
                counts: Vec::new(),
                chains: FxHashMap::default(),
                older: 0,
                texts: Texts::default(),
                kmalloc: Kmalloc::of(metadata),
            },
            index: FxHashMap::default(),
            live: vec![FREE; ids as usize],
            node_of: nodes(metadata),
            first: metadata.statistics.first_time_ns,
            span: metadata.statistics.last_time_ns.saturating_sub(metadata.statistics.first_time_ns).max(1),
        };
        let mut done = 0;
        let bad = |error: slablab_trace::Error| Error::new(path, error.without_path());
        while batches.next(&mut batch).map_err(bad)? {
            for row in 0..batch.len() {
                running.row(&batch, row);
            }
            done += batch.len() as u64;
            progress(done, rows);
        }
        let mut pass = running.finish(metadata.statistics.last_time_ns);
        pass.texts = batches.texts().clone();
        Ok(pass)
    }

    /// The name of a cache.
    pub(super) fn cache(&self, key: CacheKey) -> String {
        match key {
            CacheKey::Named(id) => self.texts.cache.get(id).unwrap_or("").to_string(),
            CacheKey::Kmalloc { bytes, kind } => self.kmalloc.name(bytes, kind),
        }
    }
}

/// The node of each CPU; empty if the recording does not say.
pub(super) fn nodes(metadata: &Metadata) -> Vec<u32> {
    let mut node_of = Vec::new();
    for node in &metadata.topology.nodes {
        for cpu in node.cpus.iter().map(|cpu| *cpu as usize).filter(|cpu| *cpu < 1 << 16) {
            if node_of.len() <= cpu {
                node_of.resize(cpu + 1, u32::MAX);
            }
            node_of[cpu] = node.node;
        }
    }
    node_of
}

struct Running {
    pass: Pass,
    index: FxHashMap<(CacheKey, u32), u32>,
    /// By object id.
    live: Vec<Object>,
    node_of: Vec<u32>,
    first: u64,
    span: u64,
}

impl Running {
    fn row(&mut self, batch: &Batch, row: usize) {
        let object = batch.object[row];
        let kind = EventKind::ALL.get(usize::from(batch.event[row])).filter(|_| object != NONE);
        let Some(&kind) = kind else { return };
        if kind.is_alloc() {
            self.alloc(batch, row, object);
        } else if kind.is_free() {
            if batch.flags[row] & flags::UNSEEN != 0 {
                self.pass.older += 1;
            } else {
                self.free(batch, row, object, kind);
            }
        }
    }

    fn site(&mut self, batch: &Batch, row: usize) -> u32 {
        let cache = match batch.cache[row] {
            NONE => {
                let kind = self.pass.kmalloc.kind(batch.gfp[row]);
                CacheKey::Kmalloc { bytes: batch.bytes_alloc[row], kind }
            }
            id => CacheKey::Named(id),
        };
        let key = (cache, batch.call_site[row]);
        let pass = &mut self.pass;
        *self.index.entry(key).or_insert_with(|| {
            pass.keys.push(key);
            pass.counts.push(Counts::default());
            pass.keys.len() as u32 - 1
        })
    }

    fn alloc(&mut self, batch: &Batch, row: usize, object: u32) {
        let site = self.site(batch, row);
        let (requested, allocated) = (batch.bytes_req[row], batch.bytes_alloc[row]);
        let (since, cpu, stack) = (batch.time_ns[row], batch.cpu[row], batch.stack[row]);
        // An id is free when it is given out; a damaged file may say otherwise.
        let Some(place) = self.live.get_mut(object as usize).filter(|place| place.site == NONE) else {
            return;
        };
        *place = Object { site, cpu, stack, since, requested, allocated };
        let counts = &mut self.pass.counts[site as usize];
        counts.allocs += 1;
        counts.requested += u64::from(requested);
        counts.allocated += u64::from(allocated);
        counts.live += 1;
        counts.live_requested += u64::from(requested);
        counts.live_allocated += u64::from(allocated);
        counts.peak = counts.peak.max(counts.live_allocated);
        *counts.tasks.entry(batch.comm[row]).or_default() += 1;
        if stack != NONE {
            let chain = self.pass.chains.entry((site, stack)).or_default();
            chain.allocs += 1;
        }
        self.moved(site, since, i64::from(allocated));
    }

    fn free(&mut self, batch: &Batch, row: usize, object: u32, kind: EventKind) {
        let Some(place) = self.live.get_mut(object as usize).filter(|place| place.site != NONE) else {
            return;
        };
        let Object { site, cpu, since, requested, allocated, .. } = std::mem::replace(place, FREE);
        let counts = &mut self.pass.counts[site as usize];
        counts.live -= 1;
        counts.live_requested -= u64::from(requested);
        counts.live_allocated -= u64::from(allocated);
        counts.lifetimes.freed(batch.time_ns[row].saturating_sub(since));
        if kind == EventKind::ImpliedFree {
            counts.implied += 1;
        } else {
            let by = batch.cpu[row];
            let node = |cpu: u16| self.node_of.get(usize::from(cpu)).copied();
            match () {
                () if by == cpu => counts.same_cpu += 1,
                () if node(by) == node(cpu) => counts.other_cpu += 1,
                () => counts.other_node += 1,
            }
            *counts.freed_by.entry(batch.call_site[row]).or_default() += 1;
        }
        self.moved(site, batch.time_ns[row], -i64::from(allocated));
    }

    /// Notes a change of live bytes.
    fn moved(&mut self, site: u32, time_ns: u64, by: i64) {
        let since = u128::from(time_ns.saturating_sub(self.first).min(self.span));
        let at = (since * (TIMES as u128 - 1) / u128::from(self.span)) as usize;
        let line = &mut self.pass.counts[site as usize].line;
        if line.len() <= at {
            line.resize(at + 1, 0);
        }
        line[at] += by;
    }

    /// Adds what lives at the end.
    fn finish(mut self, end: u64) -> Pass {
        for object in self.live.iter().filter(|object| object.site != NONE) {
            self.pass.counts[object.site as usize].lifetimes.lives(end.saturating_sub(object.since));
            if object.stack != NONE {
                let chain = self.pass.chains.entry((object.site, object.stack)).or_default();
                chain.live += u64::from(object.allocated);
                chain.waste += u64::from(object.allocated.saturating_sub(object.requested));
            }
        }
        self.pass
    }
}
