//! One engine over the rows.

mod plug;
mod sheaves;
mod unseen;
mod windows;
mod world;

use super::caches::{CacheTable, Home};
use super::hotplug::Schedule;
use super::outcome::{LargeOutcome, Outcome, Traffic, Violations};
use super::own::Own;
use super::partitioned::Copies;
use super::plan::Plan;
use super::timeline::Sampler;
use super::tuned::Tuned;
use super::{Variant, order_under};
use plug::Plugged;
use rustc_hash::FxHashMap;
pub(super) use sheaves::{MetadataTraffic, SheafMemory, sheaf_memory};
use slablab_model::{Addr, Machine, MachineSpec, Model};
use slablab_pages::Pages;
use slablab_platform::{CpuId, FrameKind, Frames, Gfp, NodeId, Topology, WorkKind};
use slablab_report::error::{At, Error, Result};
use slablab_slabs::cache::WORD;
use slablab_slabs::{Backing, CacheId, CacheSpec, Common, Engine, Misuse};
use slablab_trace::{Batch, Columns, EventKind, Reader};
use std::cell::Cell;
use std::path::Path;
use std::time::Instant;
use windows::Window;
pub use world::{Note, Replayed, RunOne, World};

/// What every engine's run has in common.
pub struct Job<'a> {
    /// The trace's name in errors.
    pub path: &'a Path,
    /// The trace.
    pub reader: &'a Reader,
    /// Which cache a row belongs to.
    pub table: &'a CacheTable,
    /// The start.
    pub plan: &'a Plan,
    /// The machine.
    pub machine: &'a MachineSpec,
    /// CPUs that go off and on.
    pub(super) hotplug: &'a Schedule,
    /// Whether the engine is of the recording kernel's family, and has each cache's own knobs.
    pub(super) takes_over: bool,
    /// The copies of kmalloc caches, if there are any.
    pub(super) copies: Option<&'a Copies>,
}

/// An object of the trace that is live in the model.
#[derive(Clone, Copy)]
struct Live {
    /// Its address; `None` for one that is not there, or whose allocation failed.
    address: Option<Addr>,
    /// The cache it is in, [`LARGE`] for pages of its own, [`FAILED`] if the engine could not serve it.
    cache: u16,
    /// The CPU that allocated it.
    cpu: u16,
}

const LARGE: u16 = u16::MAX;
const FAILED: u16 = u16::MAX - 1;
const NOTHING: Live = Live { address: None, cache: 0, cpu: 0 };

pub(super) struct Run<'a, W: World, E: Engine<W>> {
    pub(super) job: &'a Job<'a>,
    pub(super) pages: Pages<W::Ground>,
    pub(super) common: E::Common,
    pub(super) caches: Vec<E>,
    /// Whether the engine has a layout for the cache. If not, its number has a cache of another size that no
    /// row reaches.
    pub(super) served: Vec<bool>,
    /// Objects of each cache that wait for readers in sheaves, if the engine takes them for live.
    pub(super) waiting: Vec<u64>,
    /// Whether it does; `None` before the first one. A kernel tree's does not.
    waits_live: Option<bool>,
    /// Allocations of each cache that is not served.
    pub(super) unserved: Vec<u64>,
    live: Vec<Live>,
    pub(super) old: Vec<Option<(Addr, u16)>>,
    /// The next entry of the plan's list of old frees.
    pub(super) next_old: usize,
    /// The next entry of the plan's list of frees without an event.
    pub(super) next_unseen: usize,
    /// The next entry of the plan's list of what left no event.
    next_untraced: usize,
    /// Objects that were allocated without an event, by the row that frees them.
    promised: FxHashMap<u64, Addr>,
    pub(super) traffic: Vec<Traffic>,
    /// What the caches' own metadata took of each cache while its window was open.
    pub(super) metadata: Vec<Cell<MetadataTraffic>>,
    pub(super) large: LargeOutcome,
    pub(super) windows: Vec<Window>,
    pub(super) unknown_frees: u64,
    pub(super) cpus: u16,
    pub(super) many_nodes: bool,
    pub(super) plugged: Plugged,
    /// The CPU that runs the row.
    cpu: u16,
    pub(super) sampler: Sampler,
    /// Bytes of objects that were live before the first row.
    live_start: u64,
    pub(super) violations: Violations,
    /// Whether frees of objects that were not allocated are counted as violations.
    checks: bool,
    /// The copy of its class that each call site has, by the site's number; empty without copies.
    copy_of_site: Vec<u8>,
}

impl Job<'_> {
    /// Runs one engine; `policy` is that of a cache with what it has of its own.
    pub fn run<W: World, E: Engine<W>>(
        &self,
        variant: &Variant,
        policy: &dyn Fn(&Own<'_>) -> E::Policy,
        tick: &dyn Fn(u64),
    ) -> Result<Outcome> {
        let mut machine = Machine::new(self.machine.clone()).at(self.path)?;
        let mut outcome = machine.enter(|| {
            let mut run = Run::<W, E>::start(self, variant, policy);
            let zero = Run::<W, E>::global();
            let start_frames = Model::mapped_frames().0;
            // A page has no clock of its own.
            let started = (!cfg!(target_family = "wasm")).then(Instant::now);
            let rows = run.rows(tick)?;
            let elapsed = started.map(|started| started.elapsed()).unwrap_or_default();
            run.finish(variant, rows, start_frames, elapsed, &zero)
        })?;
        outcome.model_bytes = machine.bytes();
        Ok(outcome)
    }
}

impl<'a, W: World, E: Engine<W>> Run<'a, W, E> {
    fn start(job: &'a Job<'a>, variant: &Variant, policy: &dyn Fn(&Own<'_>) -> E::Policy) -> Self {
        let cache_count = job.table.entries.len();
        assert!(cache_count < FAILED as usize, "{cache_count} caches: at most {FAILED} can be numbered");
        let create = |(id, entry): (usize, &super::caches::CacheEntry)| {
            let known_order = variant.orders.and_then(|preset| order_under(&preset, &entry.spec));
            let tuned = if job.takes_over { entry.tuned } else { Tuned::default() };
            let own = Own { tuned, name: &entry.name, caches: variant.of_caches };
            let (spec, policy) = (CacheSpec { known_order, ..entry.spec }, policy(&own));
            let is_served = E::layout(&spec, &policy).is_some();
            let spec = if is_served { spec } else { CacheSpec::of_size(WORD) };
            let mut cache = E::create(CacheId(id as u32), &spec, &policy);
            cache.set_name(&entry.name);
            (cache, is_served)
        };
        let (caches, served) = job.table.entries.iter().enumerate().map(create).unzip();
        let mut run = Run {
            job,
            pages: Pages::new(variant.pages.pages()),
            common: E::Common::default(),
            caches,
            served,
            waiting: vec![0; cache_count],
            waits_live: None,
            unserved: vec![0; cache_count],
            live: Vec::new(),
            old: vec![None; job.plan.old_objects as usize],
            next_old: 0,
            next_unseen: 0,
            next_untraced: 0,
            promised: FxHashMap::default(),
            traffic: vec![Traffic::default(); cache_count],
            metadata: vec![Cell::default(); cache_count],
            large: LargeOutcome::default(),
            windows: (0..cache_count).map(|_| Window::default()).collect(),
            unknown_frees: 0,
            cpus: Model::cpus(),
            many_nodes: Model::nodes() > 1,
            plugged: Plugged::default(),
            cpu: 0,
            sampler: Sampler::new(),
            live_start: 0,
            violations: Violations::default(),
            checks: variant.wrap.letters.checks,
            copy_of_site: Vec::new(),
        };
        let served: Vec<usize> = (0..cache_count).filter(|cache| run.served[*cache]).collect();
        for cache in &served {
            run.seed(*cache);
        }
        for cpu in (0..run.cpus).map(CpuId).filter(|cpu| Model::cpu_online(*cpu)) {
            let sheaf = sheaf_memory!(run);
            run.caches.iter().for_each(|cache| cache.cpu_up(&sheaf.backing(), cpu));
        }
        for cache in &served {
            run.seed_arrays(*cache);
        }
        run.seed_sheaves();
        run.live_start = run.caches.iter().map(live_bytes).sum();
        run
    }

    /// Not inlined: callgrind counts what this function does, see benches/replay.rs.
    #[inline(never)]
    fn rows(&mut self, tick: &dyn Fn(u64)) -> Result<u64> {
        let path = self.job.path;
        let reader = self.job.reader;
        self.live = vec![NOTHING; reader.metadata().statistics.object_ids as usize];
        let mut edges = self.edges();
        let sites = if self.job.copies.is_some() { Columns::CALL_SITE } else { Columns::default() };
        let mut batches = reader.batches(Columns::REPLAY | sites);
        let mut batch = Batch::default();
        let mut row = 0;
        while batches.next(&mut batch).at(path)? {
            let len = batch.len() as u64;
            if let Some(copies) = self.job.copies {
                copies.learn(&mut self.copy_of_site, &batches.texts().call_site);
            }
            if edges.last().is_some_and(|edge| edge.0 < row + len) {
                for index in 0..batch.len() {
                    while edges.last().is_some_and(|edge| edge.0 == row + index as u64) {
                        self.edge(edges.pop().expect("just seen"));
                    }
                    self.row(row + index as u64, &batch, index)?;
                }
            } else {
                for index in 0..batch.len() {
                    self.row(row + index as u64, &batch, index)?;
                }
            }
            row += len;
            tick(len);
        }
        // What is asked for later than any row that counts still happens.
        self.plug(u64::MAX);
        Ok(row)
    }

    #[inline]
    fn row(&mut self, row: u64, batch: &Batch, index: usize) -> Result<()> {
        let event = batch.event[index];
        const OTHER_FREES: [u8; 2] = [EventKind::ImpliedFree as u8, EventKind::KfreeRcu as u8];
        if event > EventKind::CacheFree as u8 && !OTHER_FREES.contains(&event) {
            return Ok(());
        }
        let now = batch.time_ns[index];
        if self.plugged.next_ns <= now {
            self.plug(now);
        }
        if self.sampler.is_due(now) {
            self.sample(now);
        }
        Model::advance_to(now);
        if Model::next_timer_ns() <= now {
            self.timers();
        }
        let cpu = batch.cpu[index];
        let cpu = if cpu < self.cpus { cpu } else { cpu % self.cpus };
        self.cpu = if self.plugged.off == 0 { cpu } else { self.row_elsewhere(cpu) };
        Model::run_on(CpuId(self.cpu));
        W::noted(Note::Row { row, time_ns: now, cpu: self.cpu });
        if self.job.plan.untraced.get(self.next_untraced).is_some_and(|next| next.row <= row) {
            self.untraced(row)?;
        }
        if event <= EventKind::CacheAlloc as u8 {
            while self.job.plan.freed_unseen.get(self.next_unseen).is_some_and(|next| next.0 <= row) {
                self.free_untraced(row)?;
            }
            self.alloc(row, batch, index);
            Ok(())
        } else {
            self.free(row, batch, index)
        }
    }

    #[cold]
    fn sample(&mut self, now_ns: u64) {
        let (slab_bytes, live_bytes) = self.held();
        self.sampler.take(now_ns, slab_bytes, live_bytes);
    }

    /// Bytes of slabs, and of allocated objects.
    pub(super) fn held(&self) -> (u64, u64) {
        let slabs = Model::mapped_frames().0 << Model::page_shift();
        if E::Common::SHARES_PAGES {
            return (slabs, self.caches.iter().map(live_bytes).sum());
        }
        let change = |(cache, traffic): (&E, &Traffic)| {
            (traffic.allocs as i64 - traffic.frees as i64) * size_of(cache) as i64
        };
        let change: i64 = self.caches.iter().zip(&self.traffic).map(change).sum();
        (slabs, self.live_start.saturating_add_signed(change))
    }

    #[inline]
    fn alloc(&mut self, row: u64, batch: &Batch, index: usize) {
        let Some(slot) = self.live.get_mut(batch.object[index] as usize) else { return };
        let (asked, given) = (batch.bytes_req[index], batch.bytes_alloc[index]);
        let home = self.job.table.home(batch.cache[index], given, batch.gfp[index]);
        let home = match self.job.copies {
            None => home,
            Some(copies) => {
                let site = batch.call_site[index] as usize;
                copies.home(home, self.copy_of_site.get(site).copied().unwrap_or(0))
            }
        };
        match home {
            Home::Cache(cache) if self.windows[cache as usize].open => {
                let cache_index = cache as usize;
                let node = match batch.node[index] {
                    node @ 0.. if (node as u16) < Model::nodes() => Some(NodeId(node as u16)),
                    _ => None,
                };
                let sheaf = sheaf_memory!(self);
                let backing = Backing { site: row + 1, ..sheaf.backing() };
                let address =
                    self.caches[cache_index].alloc_sized(&backing, asked, Gfp(batch.gfp[index]), node);
                let traffic = &mut self.traffic[cache_index];
                *slot = Live { address, cache: cache as u16, cpu: self.cpu };
                if let Some(object) = address {
                    W::noted(Note::Allocated(object));
                    traffic.allocs += 1;
                    traffic.requested_live += asked as i64;
                    traffic.given_live += given as i64;
                } else {
                    slot.cache = FAILED;
                    traffic.failed += 1;
                }
            }
            Home::Large(order) => {
                let node = Model::cpu_node(Model::cpu());
                let pfn = self.pages.alloc(Gfp(batch.gfp[index]) | Gfp::COMP, order, node, FrameKind::Large);
                let address = pfn.map(|pfn| Model::address(pfn, 0));
                *slot = Live { address, cache: if pfn.is_some() { LARGE } else { FAILED }, cpu: self.cpu };
                match pfn {
                    Some(_) => {
                        self.large.allocs += 1;
                        self.large.frames += 1 << order;
                    }
                    None => self.large.failed += 1,
                }
            }
            Home::Cache(cache) => {
                *slot = NOTHING;
                self.unserved[cache as usize] += u64::from(!self.served[cache as usize]);
            }
            Home::TooLarge => {
                *slot = Live { cache: FAILED, ..NOTHING };
                self.large.failed += 1;
            }
            Home::Unknown => *slot = NOTHING,
        }
    }

    #[inline]
    fn free(&mut self, row: u64, batch: &Batch, index: usize) -> Result<()> {
        let Some(slot) = self.live.get_mut(batch.object[index] as usize) else { return Ok(()) };
        let live = std::mem::replace(slot, NOTHING);
        let Some(address) = live.address else {
            return if live.cache == FAILED { Ok(()) } else { self.free_unseen(row, batch, index) };
        };
        if live.cache == LARGE {
            return self.free_large(address);
        }
        let cache = live.cache as usize;
        if !self.windows[cache].open {
            return Ok(());
        }
        let traffic = &mut self.traffic[cache];
        traffic.other_cpu += (live.cpu != self.cpu) as u64;
        traffic.implied += (batch.event[index] == EventKind::ImpliedFree as u8) as u64;
        traffic.requested_live -= batch.bytes_req[index] as i64;
        traffic.given_live -= batch.bytes_alloc[index] as i64;
        self.give_back(row, cache, address, batch.event[index])
    }

    #[inline]
    fn give_back(&mut self, row: u64, cache: usize, address: Addr, event: u8) -> Result<()> {
        self.traffic[cache].frees += 1;
        W::noted(Note::Freed(address));
        if self.many_nodes
            && let Some((_, state)) = Pages::<W>::block_of(address)
        {
            self.traffic[cache].other_node += (state.node != Model::cpu_memory_node(Model::cpu())) as u64;
        }
        if event == EventKind::KfreeRcu as u8 && self.collect(row, cache, address)? {
            return Ok(());
        }
        let sheaf = sheaf_memory!(self);
        let backing = Backing { site: row + 1, ..sheaf.backing() };
        self.caches[cache].free(&backing, address).map_err(|misuse| self.broken(cache, misuse))
    }

    /// Puts an object into a sheaf of `kfree_rcu`. `false`: the engine collects none, and is to free it now;
    /// a kernel would some milliseconds later.
    #[cold]
    fn collect(&mut self, row: u64, cache: usize, address: Addr) -> Result<bool> {
        let live = |run: &Self| run.caches[cache].usage().live_objects();
        let before = if self.waits_live.is_none() { live(self) } else { 0 };
        let is_collected = {
            let sheaf = sheaf_memory!(self);
            let backing = Backing { site: row + 1, ..sheaf.backing() };
            self.caches[cache].free_rcu(&backing, address).map_err(|misuse| self.broken(cache, misuse))?
        };
        if is_collected {
            let is_live = self.waits_live.unwrap_or_else(|| live(self) == before);
            self.waits_live = Some(is_live);
            self.waiting[cache] += u64::from(is_live);
        }
        Ok(is_collected)
    }

    fn broken(&self, cache: usize, misuse: Misuse) -> Error {
        let name = &self.job.table.entries[cache].name;
        Error::new(self.job.path, format!("replay is wrong: free of an object of {name}: {misuse}"))
    }

    fn free_large(&mut self, address: Addr) -> Result<()> {
        let (pfn, state) = Pages::<W>::block_of(address).expect("a large object has pages");
        self.large.frees += 1;
        self.large.frames -= 1 << state.order;
        self.pages.free(pfn);
        Ok(())
    }

    #[cold]
    pub(super) fn timers(&mut self) {
        while let Some((cpu, work)) = Model::next_due() {
            Model::run_on(CpuId(self.stand_in(cpu.0)));
            let sheaf = sheaf_memory!(self);
            let backing = sheaf.backing();
            let cache = &self.caches[work.cache as usize];
            // The kinds that our engines' sheaves have, and those of a kernel tree.
            if matches!(work.kind, WorkKind::FreeSheaf | WorkKind::FreeObject) {
                let before = cache.usage().live_objects();
                cache.work(&backing, cpu, work);
                self.waiting[work.cache as usize] -= before - cache.usage().live_objects();
            } else {
                cache.work(&backing, cpu, work);
            }
        }
    }
}

/// Bytes that a cache's live objects take.
fn live_bytes<W: World, E: Engine<W>>(cache: &E) -> u64 {
    let usage = cache.usage();
    usage.held_in_slabs().0 * size_of(cache) + usage.shared_bytes
}

/// Bytes that one object takes in a slab.
fn size_of<W: World, E: Engine<W>>(cache: &E) -> u64 {
    cache.geometry().size as u64
}
