//! YCSB's workload B on MongoDB, scaled down: a database whose own cache and whose files share a memory that
//! is too small for its data.
//!
//! ```text
//! operation ── leaf in the database's cache (anonymous memory) ── there: touched
//!      │            └ not: the oldest unused leaf leaves, written if dirty; the block is read from its file
//!      └ one in twenty is an update: the leaf is dirty
//! each so many operations a checkpoint: dirty leaves are written, fsync
//! ```
//!
//! The memory is that of the published memory group over `part`; the model has no memory groups, so it is the
//! machine's, and kswapd reclaims beside the database's threads. Counts are printed times `part`. Times that
//! the kernel has (age and rounds of the flusher) are divided by `part`, as is the run.

use super::draws::Draws;
use super::measures::{KERNEL, sample, with_kernel};
use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program, SECOND, US, ppm};
use crate::block::disk::queue::QueueSpec;
use crate::kernel::era::Era;
use crate::kernel::objects::Object;
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Mark, Task};
use crate::memory::{Guest, Here, Memory, with_recorded_memory};
use crate::params::params;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::disk::Disk;
use slablab_model::{MachineSpec, NodeSpec, Ps, Timed};
use slablab_pages::PagesPolicy;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile, Rules};
use slablab_vm::preset::Preset;
use slablab_vm::{Counter, MappingId, RegionId, Settings, SpaceId};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Pages of a leaf in the database's cache, and of its block in the file: WiredTiger's leaves have at most
/// 32 KiB; that YCSB's random fields compress to seven eighths is assumed.
const LEAF: u32 = 8;
const BLOCK: u32 = 7;
/// Records of a leaf: of 1 KB and their keys.
const RECORDS: u64 = 28;
/// Updates among 100 operations: YCSB-B.
const UPDATES: u64 = 5;
/// The database writes a checkpoint each minute: so many of the published operations, at the published rates.
const CHECKPOINT: u64 = 4_000_000;
const PAGE: u32 = 4_096;
/// Pages of the machine that are the kernel's, of each 16.
const KERNELS: u64 = 1;

params! {
    /// The workload's parameters.
    pub struct Params {
        vm: Preset = "vm@6.18,lru_gen"
            | "vm@7.2,lru_gen"
            | "vm@6.18"
            | "vm@7.2"
            | "vm@7.2,s3fifo"
            | "vm@7.2,lhd"
            | "vm@7.2,mru"
            | "vm@7.2,stride",
            "the policy of page replacement", "Kairui Song, April 2026: before and after his series";
        part: u32 = [256, 64, 16], 1..=1_024, "the part 1 / n of memory, cache, records, operations", "ours";
        memory_mib: u64 = [10_240], 256..=1_048_576, "memory of the whole in MiB", "the report: a group of 10 G";
        group: bool = "yes" | "no", "that is the limit of a memory group, on a machine with twice as much",
            "the report: a group";
        cache_mib: u64 = [4_608], 64..=1_048_576, "the database's cache of the whole in MiB", "the report: 4.5 G";
        records: u64 = [20_000_000], 1_000..=1_000_000_000, "records of the whole", "the report: 20 M";
        operations: u64 = [6_000_000], 1_000..=1_000_000_000, "operations of the whole", "the report: 6 M";
        threads: u32 = [32], 1..=1_000, "threads of the client, each with one of the database's", "the report: 32";
        user_us: u64 = [60], 0..=1_000_000, "CPU time of an operation, of client and database",
            "assumed: 32 threads at 80,000 operations a second leave 400 us for each, most of it waits";
        disk: Disk = "nvme" | "virtio", "the disk with the files", "the report: NVMe";
    }
}

impl Params {
    fn of_part(&self, number: u64) -> u64 {
        (number / u64::from(self.part)).max(1)
    }

    fn cache_leaves(&self) -> u32 {
        (self.of_part(self.cache_mib << 8) / u64::from(LEAF)).max(1) as u32
    }

    fn file_leaves(&self) -> u32 {
        self.of_part(self.records).div_ceil(RECORDS) as u32
    }
}

const fn count(name: &'static str, about: &'static str, unit: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit, per_unit: 1.0, decimals: 0 }
}

const METRICS: [Metric; 7 + KERNEL.len()] = with_kernel([
    count("pgpgin_kib", "read from the disk, times `part`", "KiB"),
    count("refaults", "pages that came back after they were evicted, times `part`", "1"),
    count("pgpgout_kib", "written to the disk, times `part`", "KiB"),
    count("stalls", "allocations that reclaimed themselves, times `part`", "1"),
    count("activated", "pages that reclaim made active, times `part`", "1"),
    Metric {
        name: "operations_per_s",
        about: "operations a second",
        better: Some(Better::Higher),
        unit: "op/s",
        per_unit: 1.0,
        decimals: 0,
    },
    Metric::percent("cache_hits_ppm", "operations whose leaf the database's cache had", None),
]);

/// The workload.
pub struct Ycsb;

impl Program for Ycsb {
    type Params = Params;

    const NAME: &'static str = "ycsb";
    const ABOUT: &'static str = "YCSB-B on MongoDB: a database's cache and its files in too little memory";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] =
        &[Pair { machine: "laptop", parameters: "part = 256", why: "a database whose files do not fit" }];

    fn objects(release: Release) -> Vec<Described> {
        let row = Object::TreeNode.row(Era { release });
        let described = row.map(|row| Described {
            cache: row.name,
            bytes: row.bytes,
            per_operation: "1 for each 64 pages of a file".into(),
            source: row.source,
        });
        described.into_iter().collect()
    }

    fn check(_machine: &MachineSpec, params: &Params) -> Result<(), String> {
        let Params { memory_mib, cache_mib, part, .. } = params;
        let least = memory_mib / 8 + u64::from(*part);
        match cache_mib + least <= *memory_mib && memory_mib / u64::from(*part) >= 16 {
            true => Ok(()),
            false => Err(format!(
                "cache_mib = {cache_mib}: expected at most {} beside memory_mib = {memory_mib}, and 16 MiB of \
                 memory for each of part = {part}",
                memory_mib.saturating_sub(least)
            )),
        }
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// An operation with what it reads and reclaims (measured: 15 to 20 us).
        const OPERATION_NS: u64 = 20_000;
        let live = params.of_part(params.memory_mib << 20);
        let slabs = Estimate::of_operations(machine, 0, live);
        let operations = params.of_part(params.operations) * 3 / 2;
        Estimate { host_ns: operations * OPERATION_NS, host_bytes: slabs.host_bytes + live / 8 }
    }

    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let [major, minor, patch] = params.vm.kernel;
        let part = Ps::from(params.part);
        let pages = params.of_part(params.memory_mib << 8);
        let mut setup = setup.clone();
        let free = if params.group { 2 * pages } else { pages };
        let bytes = (free + free * KERNELS / 16) * u64::from(PAGE);
        let nodes = setup.spec.nodes.len() as u64;
        setup.spec.nodes.iter_mut().for_each(|node| *node = NodeSpec { bytes: bytes / nodes });
        let usual = Guest::default();
        let settings = Settings {
            dirty_expire: params.vm.settings.dirty_expire / part,
            group_pages: params.group.then_some(pages),
            ..params.vm.settings
        };
        let guest = Guest {
            zones: None,
            free_pages: Some(free),
            settings,
            swap_pages: 0,
            disk: [params.disk.clone(), params.disk.clone()],
            queue: QueueSpec::named("none@6.1").unwrap_or(usual.queue),
            pages: Some(PagesPolicy::for_release(major, minor, patch)),
            writeback_every: usual.writeback_every / part,
            ..usual
        };
        let rules = Rules::of(major, minor, patch);
        with_recorded_memory(&setup, seed, recorder, &guest, params.vm.policy(), rules, |memory| {
            let database = Rc::new(Database::new(memory, params, seed));
            database.start();
            memory.kernel.run()?;
            memory.check().map_err(Failed::Broken)?;
            Ok(database.observed(part))
        })
    }
}

/// A leaf of the database's cache.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    leaf: Option<u32>,
    is_used: bool,
    is_dirty: bool,
    /// A thread reads or writes it.
    is_busy: bool,
}

/// The database's cache: leaves in slots, and a hand that looks for one to leave.
#[derive(Default)]
struct Cache {
    slots: Vec<Slot>,
    /// The slot of each leaf.
    of: BTreeMap<u32, u32>,
    hand: u32,
}

impl Cache {
    /// Takes the slot of the next leaf that was not used since the hand came by, for another leaf. Returns
    /// the slot, and the leaf that leaves if it is dirty. `None`: all are busy.
    fn take(&mut self, leaf: u32) -> Option<(u32, Option<u32>)> {
        for _ in 0..2 * self.slots.len() {
            let at = self.hand;
            self.hand = (at + 1) % self.slots.len() as u32;
            let slot = &mut self.slots[at as usize];
            if slot.is_busy || std::mem::take(&mut slot.is_used) {
                continue;
            }
            let dirty = slot.leaf.filter(|_| slot.is_dirty);
            let old = std::mem::replace(slot, Slot { leaf: Some(leaf), is_busy: true, ..Slot::default() });
            if let Some(old) = old.leaf {
                self.of.remove(&old);
            }
            self.of.insert(leaf, at);
            return Some((at, dirty));
        }
        None
    }
}

struct Database {
    memory: Rc<Memory>,
    cache: RefCell<Cache>,
    space: SpaceId,
    /// The slots' memory.
    region: RegionId,
    file: MappingId,
    /// Sums of the weights of records by rank.
    weights: Vec<u64>,
    draws: RefCell<Draws>,
    user: Ps,
    threads: u32,
    /// Operations until the counted ones begin, and all; how many began, how many ended, and how many of
    /// those that count found their leaf.
    warm_up: u64,
    all: u64,
    checkpoint: u64,
    begun: Cell<u64>,
    hits: Cell<u64>,
    running: Cell<u32>,
    /// The counts and the clock when the counted operations began, and when they ended.
    mark: RefCell<Option<(Mark, Counts)>>,
    counted: RefCell<Option<(Outcome, Counts)>>,
}

/// What is counted, in the order of the metrics.
const COUNTS: [Counter; 5] =
    [Counter::PgpgIn, Counter::RefaultFile, Counter::PgpgOut, Counter::AllocStall, Counter::PgActivate];

/// Counters, and the clock.
type Counts = ([u64; COUNTS.len()], Ps);

/// No page was free, and the task was killed.
struct NoMemory;

impl Database {
    fn new(memory: &Rc<Memory>, params: &Params, seed: u64) -> Database {
        let (leaves, slots) = (params.file_leaves(), params.cache_leaves());
        let operations = params.of_part(params.operations);
        let (space, file) = memory
            .vm
            .with(|state| (state.spaces.create(), state.mappings.create(Kind::File, leaves * BLOCK)));
        let region = mm::anon(&memory.vm, space, slots * LEAF);
        memory.processes.show("mongod", space);
        let cache = Cache { slots: vec![Slot::default(); slots as usize], ..Cache::default() };
        Database {
            memory: memory.clone(),
            cache: RefCell::new(cache),
            space,
            region,
            file,
            weights: zipf(u64::from(leaves) * RECORDS),
            draws: RefCell::new(Draws(seed)),
            user: params.user_us * US,
            threads: params.threads,
            warm_up: operations / 2,
            all: operations + operations / 2,
            checkpoint: params.of_part(CHECKPOINT),
            begun: Cell::new(0),
            hits: Cell::new(0),
            running: Cell::new(params.threads),
            mark: RefCell::default(),
            counted: RefCell::default(),
        }
    }

    fn start(self: &Rc<Self>) {
        let kernel = &self.memory.kernel;
        let mm = kernel.new_process();
        for _ in 0..self.threads {
            let database = self.clone();
            kernel.start(mm, None, move |task| {
                task.call_it(|| "mongod".into());
                if database.thread(task).is_err() {
                    let kernel = &database.memory.kernel;
                    kernel.fail(Failed::out_of_memory(&*kernel.heap, 0));
                }
                database.running.set(database.running.get() - 1);
                if database.running.get() == 0 {
                    database.end(task);
                }
            });
        }
    }

    fn counts(&self) -> Counts {
        (self.memory.vm.with(|state| COUNTS.map(|counter| state.counters.get(counter))), Timed::clock())
    }

    /// A thread of the client and the one of the database that serves it.
    fn thread(&self, task: &Task) -> Result<(), NoMemory> {
        task.unpin();
        let mut file = OpenFile::new(self.file);
        loop {
            let at = self.begun.get();
            if at == self.all {
                return Ok(());
            }
            self.begun.set(at + 1);
            if at == self.warm_up {
                *self.mark.borrow_mut() = Some((task.kernel.mark(), self.counts()));
            }
            task.compute(self.user);
            let (leaf, is_update) = self.next();
            self.operation(task, &mut file, leaf, is_update, at >= self.warm_up)?;
            if (at + 1).is_multiple_of(self.checkpoint) {
                self.write_checkpoint(task, &mut file)?;
            }
        }
    }

    /// The leaf of the next operation's record, and whether it is an update.
    fn next(&self) -> (u32, bool) {
        let mut draws = self.draws.borrow_mut();
        let total = *self.weights.last().expect("records");
        let drawn = draws.below(total);
        let rank = self.weights.partition_point(|sum| *sum <= drawn) as u64;
        // Popular records are anywhere in the file (YCSB: a hash of the rank).
        let record = Draws(rank).below(self.weights.len() as u64);
        ((record / RECORDS) as u32, draws.below(100) < UPDATES)
    }

    fn operation(
        &self,
        task: &Task,
        file: &mut OpenFile,
        leaf: u32,
        is_update: bool,
        counts: bool,
    ) -> Result<(), NoMemory> {
        let found = self.cache.borrow().of.get(&leaf).copied();
        self.hits.set(self.hits.get() + u64::from(counts && found.is_some()));
        let slot = match found {
            Some(slot) => slot,
            None => match self.bring(task, file, leaf)? {
                Some(slot) => slot,
                // Each slot is another thread's: the operation does without.
                None => return Ok(()),
            },
        };
        self.touch(task, slot * LEAF + leaf % LEAF, is_update)?;
        let of = &mut self.cache.borrow_mut().slots[slot as usize];
        // Another thread may have taken the slot while this one waited for its page.
        if of.leaf == Some(leaf) {
            of.is_used = true;
            of.is_dirty |= is_update;
        }
        Ok(())
    }

    /// Brings a leaf from the file into the cache. Returns its slot; `None`: all are busy.
    fn bring(&self, task: &Task, file: &mut OpenFile, leaf: u32) -> Result<Option<u32>, NoMemory> {
        let taken = self.cache.borrow_mut().take(leaf);
        let Some((slot, dirty)) = taken else { return Ok(None) };
        if let Some(dirty) = dirty {
            self.write(task, file, dirty)?;
        }
        let (memory, block) = (&self.memory, leaf * BLOCK);
        let here = Here::new(memory, task);
        task.syscall(|| {
            // A pread of a block at random reads it in one request, and nothing ahead of it.
            let pages = block..block + BLOCK;
            mm::read_group(&memory.vm, &here, &memory.rules, self.file, pages, block);
            (block..block + BLOCK).try_for_each(|page| {
                mm::read(&memory.vm, &here, &memory.rules, file, page)?;
                task.copy(PAGE);
                Some(())
            })
        })
        .ok_or(NoMemory)?;
        (0..LEAF).try_for_each(|page| self.touch(task, slot * LEAF + page, true))?;
        self.cache.borrow_mut().slots[slot as usize].is_busy = false;
        Ok(Some(slot))
    }

    /// A leaf's block is written to its file.
    fn write(&self, task: &Task, file: &mut OpenFile, leaf: u32) -> Result<(), NoMemory> {
        let memory = &self.memory;
        let here = Here::new(memory, task);
        for page in leaf * BLOCK..(leaf + 1) * BLOCK {
            let written = task.syscall(|| {
                task.copy(PAGE);
                mm::write(&memory.vm, &here, &memory.rules, file, page, page + 1, true)
            });
            written.ok_or(NoMemory)?;
        }
        Ok(())
    }

    /// Dirty leaves are written, and the disk has them.
    fn write_checkpoint(&self, task: &Task, file: &mut OpenFile) -> Result<(), NoMemory> {
        let slots = self.cache.borrow().slots.len();
        for slot in 0..slots {
            let dirty = {
                let of = &mut self.cache.borrow_mut().slots[slot];
                let is_dirty = !of.is_busy && std::mem::take(&mut of.is_dirty);
                of.leaf.filter(|_| is_dirty)
            };
            if let Some(leaf) = dirty {
                self.write(task, file, leaf)?;
            }
        }
        let memory = &self.memory;
        let here = Here::new(memory, task);
        task.syscall(|| mm::fsync(&memory.vm, &here, &memory.rules, self.file));
        Ok(())
    }

    /// Touches a page of the cache's memory.
    fn touch(&self, task: &Task, page: u32, write: bool) -> Result<(), NoMemory> {
        let memory = &self.memory;
        task.charge(memory.prices().touch);
        if mm::touch_present(&memory.vm, self.region, [page], write) == 1 {
            return Ok(());
        }
        let here = Here::new(memory, task);
        mm::touch(&memory.vm, &here, &memory.rules, self.region, page, write).map(drop).ok_or(NoMemory)
    }

    /// The last thread ends.
    fn end(&self, task: &Task) {
        if let Some((mark, _)) = &*self.mark.borrow() {
            let mut outcome = task.kernel.outcome(mark);
            outcome.messages = self.all - self.warm_up;
            *self.counted.borrow_mut() = Some((outcome, self.counts()));
        }
        let memory = &self.memory;
        let here = Here::new(memory, task);
        memory.processes.hide(self.space);
        task.syscall(|| {
            mm::sync(&memory.vm, &here, &memory.rules);
            mm::exit(&memory.vm, &here, self.space);
            mm::unlink(&memory.vm, &here, self.file);
        });
        memory.stop();
    }

    fn observed(&self, part: u64) -> Observed {
        let (_, before) = self.mark.take().expect("operations were counted");
        let (outcome, after) = self.counted.take().expect("operations were counted");
        let operations = self.all - self.warm_up;
        let per_s = u128::from(operations) * u128::from(SECOND) / u128::from((after.1 - before.1).max(1));
        let mut own: Vec<_> = (METRICS.iter().zip(before.0).zip(after.0))
            .map(|((metric, before), after)| (metric.name, (after - before) * part))
            .collect();
        own.push(("operations_per_s", per_s as u64));
        own.push(("cache_hits_ppm", ppm(self.hits.get(), operations)));
        Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) }
    }
}

/// Sums of weights by rank, of Zipf's distribution with the exponent 1 in whole numbers; YCSB's is 0.99.
fn zipf(records: u64) -> Vec<u64> {
    let sums = (1..=records).scan(0_u64, |sum, rank| {
        *sum += (1 << 40) / rank;
        Some(*sum)
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_that_was_not_used_since_the_hand_came_by_leaves() {
        let slot = |leaf, is_used, is_dirty| Slot { leaf: Some(leaf), is_used, is_dirty, is_busy: false };
        let busy = Slot { is_busy: true, ..slot(9, false, false) };
        // Slots; the slot that is taken for another leaf, and the leaf that has to be written.
        for (slots, expected) in [
            (vec![Slot::default(), slot(1, true, false)], Some((0, None))),
            (vec![slot(1, true, false), slot(2, false, false)], Some((1, None))),
            (vec![slot(1, true, false), slot(2, false, true)], Some((1, Some(2)))),
            (vec![slot(1, true, true), slot(2, true, false)], Some((0, Some(1)))),
            (vec![busy, slot(2, false, false)], Some((1, None))),
            (vec![busy], None),
        ] {
            let mut cache = Cache { slots: slots.clone(), ..Cache::default() };
            assert_eq!(cache.take(7), expected, "{slots:?}");
        }
    }

    #[test]
    fn weights_fall_by_rank() {
        const ALL: u64 = 1 << 40;
        assert_eq!(zipf(4), [ALL, ALL + ALL / 2, ALL + ALL / 2 + ALL / 3, ALL + ALL / 2 + ALL / 3 + ALL / 4]);
    }
}
