//! mkfs: processes that each write an ext3 file system's tables to a disk of their own, all at once.
//!
//! ```text
//! process    for each group of the file system: superblock and descriptors (backups in some) ── bitmaps
//!              ── the inode table, zeros, in writes of 8 blocks
//!            fsync ── close: the disk's pages leave the page cache
//! write      for each page: tree of the page cache ── page ── a buffer_head for each of its blocks ── copy
//!            from `dirty_kib` dirty KiB on: write back
//! write back requests of up to 512 KiB, a bio for each buffer_head ── block.rs
//! fsync      write back ── wait for all requests
//! ```
//!
//! mke2fs' defaults of 2008 (mke2fs.conf 1.41, from memory): groups of 128 MiB, blocks of 4 KiB, an inode
//! of 256 bytes for each 16 KiB; backups in groups 0, 1 and powers of 3, 5 and 7. Other objects of the
//! program, and its reads of the disk, are not modelled.

use super::measures::{KERNEL, sample, with_kernel};
use super::program::{Estimate, Metric, Object as Described, Observed, Program, ppm};
use crate::block::{Affinity, Device, Disk, Io, Pending};
use crate::kernel::era::Era;
use crate::kernel::objects::{Held, Object};
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Mark, Task, WaitQueue, Waiting, with_recorded_kernel};
use crate::params::{params, words};
use crate::process::{Children, Kind};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{Access, MachineSpec, Ps, Timed};
use slablab_platform::{CpuId, Event, Topology};
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of a block of the file system, of a group, of the inodes of a group, and of a write of zeros.
const BLOCK: u64 = 4_096;
const GROUP: u64 = 128 << 20;
const INODES: u64 = GROUP / 16_384 * 256;
const STRIDE: u64 = 8 * BLOCK;
/// Pages of a node of the page cache's tree.
const TREE_PAGES: u64 = 64;
/// The largest request of 2.6.
const REQUEST: u32 = 512 << 10;
/// Cycles of a write for each page, and of writing back each block, beside allocator, lines and copy
/// (assumed).
const WRITE_PAGE: u64 = 1_000;
const SUBMIT_BLOCK: u64 = 150;
/// Bytes of a buffer_head that are written.
const BUFFER: u32 = 104;
/// Picoseconds of a microsecond.
const US: Ps = 1_000_000;
/// Time between the begin of the first and that of the last process.
const BEGIN: Ps = 1_000_000_000;

/// Where the interrupts of the disks come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// Those of a disk to one CPU: disk 0 to CPU 0, disk 1 to CPU 1.
    Disk,
    /// To the CPU that submitted.
    Submitter,
    /// To each CPU in turn.
    Turns,
}

words! { Interrupts { Disk = "disk", Submitter = "submitter", Turns = "turns" } }

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        processes: u32 = [10, 100, 100], 1..=2_000, "processes, each with a disk of its own",
            "the mail of September 2009: about 100";
        mib: u32 = [512, 1_024, 16_384], 1..=1_048_576, "MiB of each disk: 2 MiB of tables for each 128",
            "assumed";
        block_bytes: u32 = [4_096], 512..=65_536,
            "bytes of a block of a disk's page cache: a page has a buffer_head for each", "assumed";
        dirty_kib: u32 = [4_096], 64..=1_048_576, "KiB that a process has dirty when it writes them back",
            "assumed";
        interrupts: Interrupts,
            "the CPU that completes a request: one for each disk, the submitter's, each in turn", "assumed";
        latency_us: u64 = [1_000], 1..=1_000_000,
            "time of a request without its data, which takes 40 us for each KiB", "assumed";
    }
}

/// The program.
#[derive(Debug)]
pub enum Mkfs {}

impl Program for Mkfs {
    type Params = Params;

    const NAME: &'static str = "mkfs";
    const ABOUT: &'static str =
        "processes that each write a file system's tables through the page cache of a disk";
    const METRICS: &'static [Metric] = &METRICS;

    fn objects(release: Release) -> Vec<Described> {
        let used = [
            (Object::BufferHead, "1 for each block of a page that is written"),
            (Object::Bio, "1 for each block that is written back"),
            (Object::Request, "1 for each request of up to 512 KiB"),
            (Object::ScsiCommand, "1 for each request of up to 512 KiB"),
            (Object::ScatterList, "1 for each request of up to 512 KiB"),
            (Object::TreeNode, "1 for each 64 pages of a disk"),
        ];
        let object = |(object, per_operation): (Object, &'static str)| {
            let row = object.row(Era { release })?;
            Some(Described {
                cache: row.name,
                bytes: row.bytes,
                per_operation: per_operation.into(),
                source: row.source,
            })
        };
        used.into_iter().filter_map(object).collect()
    }

    fn ignores(cost: &str) -> bool {
        cost == "page_fault"
    }

    fn check(machine: &MachineSpec, params: &Params) -> Result<(), String> {
        let (block, page) = (u64::from(params.block_bytes), 1 << machine.page_shift);
        if !block.is_power_of_two() || block > page {
            return Err(format!("block_bytes = {block}: expected a power of two up to the page, {page}"));
        }
        let tables = (u64::from(params.processes) * u64::from(params.mib) / 64) << 20;
        let memory: u64 = machine.nodes.iter().map(|node| node.bytes).sum();
        match tables < memory / 4 * 3 {
            true => Ok(()),
            false => Err(format!(
                "processes and mib write {} MiB of tables: expected less than 3/4 of the machine's {} MiB",
                tables >> 20,
                memory >> 20
            )),
        }
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// A page with what is written for it (measured).
        const PAGE_NS: u64 = 2_000;
        let pages = pages(params, machine.page_shift);
        let buffers = pages * (1 << machine.page_shift) / u64::from(params.block_bytes);
        let slabs = Estimate::of_operations(machine, buffers * 4, buffers * 104);
        Estimate {
            host_ns: slabs.host_ns + pages * PAGE_NS,
            host_bytes: slabs.host_bytes + (pages + buffers) * 128,
        }
    }

    /// A repeat draws when each process begins, and what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let outcome = run(setup, params, seed, recorder)?;
        let sample = sample(&METRICS, &outcome, &own(&outcome));
        Ok(Observed { sample, profile: Some(outcome.profile) })
    }
}

const fn share(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit: "1", per_unit: 1e6, decimals: 3 }
}

const fn count(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: Some(Better::Lower), unit: "1", per_unit: 1.0, decimals: 0 }
}

const METRICS: [Metric; 10 + KERNEL.len()] = with_kernel([
    Metric {
        name: "elapsed_ps",
        about: "time from the first process's begin to the end of the last one",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 4,
    },
    share("grows_per_refill_ppm", "SLAB: attempts to make a slab for each refill of a CPU's array"),
    share("fallbacks_per_refill_ppm", "SLAB: searches of other nodes for each refill of a CPU's array"),
    Metric {
        better: Some(Better::Higher),
        ..share("own_node_per_refill_ppm", "SLAB: refills that did not have to search other nodes")
    },
    share("refills_per_alloc_ppm", "SLAB: refills of a CPU's array for each allocation"),
    share("calls_per_alloc_ppm", "SLAB: functions that an allocation enters, as the mail traced them"),
    Metric {
        name: "alloc_ps",
        about: "time of an allocation",
        better: Some(Better::Lower),
        unit: "us",
        per_unit: 1e6,
        decimals: 3,
    },
    count("refills", "SLAB: refills of a CPU's array"),
    count("grows", "SLAB: attempts to make a slab"),
    count("fallbacks", "SLAB: searches of other nodes for an object"),
]);

/// The workload's own metrics. An allocation enters three functions and one more for each refill, for each
/// attempt to make a slab, on a node's lists and on other nodes.
fn own(outcome: &Outcome) -> [(&'static str, u64); 10] {
    let count = |event: Event| -> u64 {
        let events = outcome.caches.iter().flat_map(|cache| &cache.events);
        events.filter(|(of, _)| *of == event).map(|(_, count)| count).sum()
    };
    let allocs = count(Event::AllocFastpath) + count(Event::AllocSlowpath);
    let refills = count(Event::SlabAllocMiss);
    let (grows, fallbacks) = (count(Event::SlabGrowTry), count(Event::SlabFallback));
    let calls = 3 * allocs + refills + grows + fallbacks + count(Event::SlabNodeTry);
    [
        ("elapsed_ps", outcome.elapsed),
        ("grows_per_refill_ppm", ppm(grows, refills)),
        ("fallbacks_per_refill_ppm", ppm(fallbacks, refills)),
        ("own_node_per_refill_ppm", ppm(refills - fallbacks.min(refills), refills)),
        ("refills_per_alloc_ppm", ppm(refills, allocs)),
        ("calls_per_alloc_ppm", if refills > 0 { ppm(calls, allocs) } else { 0 }),
        (
            "alloc_ps",
            outcome.allocating / outcome.caches.iter().map(|cache| cache.allocs).sum::<u64>().max(1),
        ),
        ("refills", refills),
        ("grows", grows),
        ("fallbacks", fallbacks),
    ]
}

/// A page of a disk's page cache.
struct Page {
    page: Held,
    buffers: Vec<Held>,
    dirty: bool,
}

/// A disk's page cache.
#[derive(Default)]
struct Cache {
    pages: BTreeMap<u64, Page>,
    nodes: BTreeMap<u64, Held>,
    dirty: u64,
}

/// One process's disk.
struct Volume {
    mkfs: Params,
    device: Rc<Device>,
    cache: RefCell<Cache>,
    pending: Rc<Pending>,
}

impl Volume {
    fn new(mkfs: Params, number: u32) -> Volume {
        // A write of the array's cache: 40 us for each KiB make 25 MB/s.
        let disk = Disk { latency: mkfs.latency_us * US, kib: 40_000_000, disks: 1, requests: 128 };
        let affinity = match mkfs.interrupts {
            Interrupts::Disk => Affinity::Cpu(CpuId((number % u32::from(Timed::cpus())) as u16)),
            Interrupts::Submitter => Affinity::Submitter,
            Interrupts::Turns => Affinity::Turns,
        };
        Volume {
            mkfs,
            device: Device::new(number, disk, affinity),
            cache: RefCell::default(),
            pending: Rc::default(),
        }
    }

    /// Writes the tables of all groups.
    fn format(&self, task: &Task) {
        let size = u64::from(self.mkfs.mib) << 20;
        for group in 0..size.div_ceil(GROUP) {
            let start = group * GROUP;
            if has_backup(group) {
                self.write(task, start, 2 * BLOCK);
            }
            self.write(task, start + 2 * BLOCK, 2 * BLOCK);
            let end = INODES.min(size - start);
            (0..end).step_by(STRIDE as usize).for_each(|at| {
                self.write(task, start + 4 * BLOCK + at, STRIDE.min(end - at));
            });
        }
        self.sync(task);
        self.close(task);
    }

    /// A write of `bytes` bytes at byte `at`.
    fn write(&self, task: &Task, at: u64, bytes: u64) {
        let shift = Timed::page_shift();
        for page in at >> shift..=(at + bytes - 1) >> shift {
            let bytes = bytes.min(1 << shift) as u32;
            step(task, || self.write_page(task, page, bytes));
        }
        task.syscall(|| {
            if self.cache.borrow().dirty << shift >= u64::from(self.mkfs.dirty_kib) << 10 {
                self.write_back(task);
            }
        });
    }

    fn write_page(&self, task: &Task, number: u64, bytes: u32) {
        task.work(WRITE_PAGE);
        if !self.cache.borrow().pages.contains_key(&number) {
            let page = self.new_page(task, number);
            self.cache.borrow_mut().pages.insert(number, page);
        }
        let mut cache = self.cache.borrow_mut();
        let page = cache.pages.get_mut(&number).expect("inserted above");
        let was_dirty = std::mem::replace(&mut page.dirty, true);
        cache.dirty += u64::from(!was_dirty);
        drop(cache);
        task.copy(bytes);
    }

    fn new_page(&self, task: &Task, number: u64) -> Page {
        let node = number / TREE_PAGES;
        if !self.cache.borrow().nodes.contains_key(&node) {
            let held = task.alloc(Object::TreeNode);
            task.touch(&held, BUFFER, Access::Write);
            self.cache.borrow_mut().nodes.insert(node, held);
        }
        let page = task.alloc_pages(0);
        let count = (1u32 << Timed::page_shift()) / self.mkfs.block_bytes;
        let buffer = |_| {
            let held = task.alloc(Object::BufferHead);
            task.touch(&held, BUFFER, Access::Write);
            held
        };
        Page { page, buffers: (0..count.max(1)).map(buffer).collect(), dirty: false }
    }

    /// Submits all dirty pages, those that follow each other as one request.
    fn write_back(&self, task: &Task) {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let most = u64::from(REQUEST) >> Timed::page_shift();
        let mut cache = self.cache.borrow_mut();
        for (number, page) in cache.pages.iter_mut().filter(|(_, page)| page.dirty) {
            page.dirty = false;
            match runs.last_mut() {
                Some((start, count)) if *start + *count == *number && *count < most => *count += 1,
                _ => runs.push((*number, 1)),
            }
        }
        cache.dirty = 0;
        drop(cache);
        for (_, pages) in runs {
            let bytes = (pages << Timed::page_shift()) as u32;
            let bios = bytes / self.mkfs.block_bytes;
            task.work(u64::from(bios) * SUBMIT_BLOCK);
            self.pending.submit(task, &self.device, Io { bytes, bios });
        }
    }

    fn sync(&self, task: &Task) {
        task.syscall(|| {
            self.write_back(task);
            self.pending.wait(task);
        });
    }

    /// The last close of the disk: its pages leave the page cache.
    fn close(&self, task: &Task) {
        let Cache { pages, nodes, .. } = self.cache.take();
        for Page { page, buffers, .. } in pages.into_values() {
            step(task, || {
                buffers.into_iter().for_each(|buffer| task.free(buffer));
                task.free(page);
                task.kernel.count_message();
            });
        }
        nodes.into_values().for_each(|node| task.free_after_grace(node));
    }
}

/// A part of a system call that ends with a preemption point, as the kernel's loops over pages have one.
fn step(task: &Task, part: impl FnOnce()) {
    Timed::turn();
    part();
    task.preemption_point();
}

/// Whether a group has a superblock and descriptors: 0, 1, powers of 3, 5 and 7.
fn has_backup(group: u64) -> bool {
    let is_power = |base: u64| {
        let mut power = base;
        while power < group {
            power *= base;
        }
        power == group
    };
    group < 2 || [3, 5, 7].into_iter().any(is_power)
}

/// Pages that a run of these parameters writes, with pages of `1 << shift` bytes.
pub fn pages(mkfs: &Params, shift: u32) -> u64 {
    let groups = (u64::from(mkfs.mib) << 20).div_ceil(GROUP);
    u64::from(mkfs.processes) * groups * (INODES >> shift)
}

/// What all processes share.
#[derive(Default)]
struct Begin {
    ready: Cell<u32>,
    all_ready: WaitQueue,
    has_begun: Cell<bool>,
    begun: WaitQueue,
}

fn main(task: &Task, mkfs: Params) -> Mark {
    task.call_it(|| "main".into());
    let (children, begin) = (Rc::new(Children::default()), Rc::new(Begin::default()));
    for number in 0..mkfs.processes {
        let begin = begin.clone();
        children.start(task, Kind::Process, move |task| {
            task.call_it(|| format!("mkfs {number}"));
            begin.ready.set(begin.ready.get() + 1);
            if begin.ready.get() == mkfs.processes {
                begin.all_ready.wake_one(&task.kernel, false);
            }
            if !begin.has_begun.get() {
                begin.begun.wait(task, Waiting { what: "to begin, mkfs", number });
            }
            task.sleep(1 + task.kernel.random(BEGIN));
            Volume::new(mkfs, number).format(task);
        });
        task.preemption_point();
    }
    if begin.ready.get() < mkfs.processes {
        begin.all_ready.wait(task, Waiting { what: "for processes, ready", number: begin.ready.get() });
    }
    let mark = task.kernel.mark();
    begin.has_begun.set(true);
    begin.begun.wake_all(&task.kernel, false);
    children.wait(task);
    mark
}

/// Runs the program, and records its timed part. Its messages are pages.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
pub fn run(setup: &Setup, mkfs: &Params, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    with_recorded_kernel(setup, seed, recorder, |kernel: &Rc<Kernel>| {
        let ended: Rc<RefCell<Option<Outcome>>> = Rc::default();
        let (result, mkfs) = (ended.clone(), *mkfs);
        kernel.start(kernel.new_process(), None, move |task| {
            let mark = main(task, mkfs);
            let mut outcome = task.kernel.outcome(&mark);
            outcome.locks.push(crate::block::locks());
            *result.borrow_mut() = Some(outcome);
        });
        kernel.run()?;
        Ok(ended.borrow_mut().take().expect("main ended"))
    })
}
