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

use crate::block::{Affinity, Device, Disk, Io, Pending};
use crate::kernel::objects::{Held, Object};
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Mark, Task, WaitQueue, Waiting, with_recorded_kernel};
use crate::process::{Children, Kind};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{Access, Ps, Timed};
use slablab_platform::{CpuId, Topology};
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
/// Time between the begin of the first and that of the last process.
const BEGIN: Ps = 1_000_000_000;

/// The program's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mkfs {
    /// Processes.
    pub processes: u32,
    /// MiB of each disk.
    pub mib: u32,
    /// Bytes of a block of the disk's page cache: a page has a buffer_head for each.
    pub block_bytes: u32,
    /// KiB that a process has dirty when it begins to write back.
    pub dirty_kib: u32,
    /// Where the requests' interrupts come.
    pub interrupts: Interrupts,
    /// Time of a request without its data.
    pub latency: Ps,
}

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
    mkfs: Mkfs,
    device: Rc<Device>,
    cache: RefCell<Cache>,
    pending: Rc<Pending>,
}

impl Volume {
    fn new(mkfs: Mkfs, number: u32) -> Volume {
        // A write of the array's cache: 40 us for each KiB make 25 MB/s.
        let disk = Disk { latency: mkfs.latency, kib: 40_000_000, disks: 1, requests: 128 };
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
pub fn pages(mkfs: &Mkfs, shift: u32) -> u64 {
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

fn main(task: &Task, mkfs: Mkfs) -> Mark {
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
pub fn run(setup: &Setup, mkfs: &Mkfs, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
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
