//! Two builds of a kernel at a time, again and again: one on tmpfs, one on ext2 on a loop device on a file of
//! tmpfs, in too little memory.
//!
//! ```text
//! main        sync ── starts both builds ── waits for both ── again
//!   build     rm of the last tree ── untar ── make
//!     untar   bunzip2 reads the archive in tmpfs ── pipe ── tar writes directories and files
//!     make    up to `jobs` objects at a time, as in kbuild; the last one of a directory starts its link
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `site` | where one build works: its tree, its outputs |
//! | `unpack` | the removal of a tree, the archive and the pipe |
//! | `make` | objects and links |
//! | `counts` | what an iteration is measured by |
//! | `measured` | the workload's metrics |
//!
//! What an object does is [`kbuild`]'s table of steps, with its source, its headers and its
//! outputs in files whose pages can be evicted, and the compiler's heap in memory that can be swapped out.
//!
//! **What is left out.** Pages of libraries and of small processes are always in memory; so are those of tar,
//! bunzip2 and rm. `make` reads no makefiles. Directories' dentries and inodes are not shrunk.
//!
//! Touches of heaps and text are made by runs ([`mm::touch_run`]), if `compresses`: the answer is that of
//! single touches. Names and opens are single steps: between two of them there are always a walk over entries
//! of its own, a system call's end and other CPUs' turns, so no two pairs of one cache follow each other.
//!
//! `part` divides the tree, the archive, the image, the programs' text and the compiler's heap; the caller
//! divides the machine's memory, and [`part_of`] what is free, in swap and in queues. What an object
//! computes, looks up and opens stays.

mod counts;
mod make;
mod measured;
mod programs;
mod site;
mod unpack;

use super::kbuild;
use super::measures;
use super::program::{Estimate, Metric, Object as Described, Observed, Program, Sample};
use super::tree::{Size, Tree};
use crate::block::disk::pool::PoolSpec;
use crate::block::disk::queue::QueueSpec;
use crate::fs::ext2::Format;
use crate::kernel::Task;
use crate::kernel::objects::Object;
use crate::kernel::tally::{Failed, Outcome};
use crate::memory::loopback::LoopRules;
use crate::memory::volume::{Keeps, Volume};
use crate::memory::{Guest, Memory, with_recorded_memory};
use crate::params::{params, words};
use crate::process::{Children, Kind};
use crate::record::Recorder;
use crate::setup::Setup;
pub use counts::{Built, Counts, Iteration};
use programs::Programs;
use site::Site;
use slablab_model::disk::{Disk, DiskKind};
use slablab_model::{MachineSpec, Timed};
use slablab_slabs::Release;
use slablab_vm::mm::{self, Rules};
use slablab_vm::preset::Preset;
use slablab_vm::{Replacement, Settings};
use std::cell::RefCell;
use std::rc::Rc;

/// Pages of the archive: 50 MB (from memory).
const ARCHIVE: u32 = 12_207;
/// Bytes of a page.
const PAGE: u64 = 4_096;
/// The order of a pageblock of the whole: 2 MiB.
const PAGEBLOCK: u8 = 9;
/// Seed of the tree: every run builds the same.
const TREE: u64 = 2628;

/// Where the second build works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// On ext2 on a loop device.
    Loop,
    /// On tmpfs, as the first.
    Tmpfs,
}

words! { Second { Loop = "loop", Tmpfs = "tmpfs" } }

/// Which free block a file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// By ext2's rules.
    Ext2,
    /// The lowest one.
    Lowest,
}

words! { Blocks { Ext2 = "ext2", Lowest = "lowest" } }

params! {
    /// The workload's parameters.
    pub struct Params {
        vm: Preset = "vm@2.6.29"
            | "vm@2.6.29,lumpy=no"
            | "vm@2.6.29,kswapd_order=no"
            | "vm@2.6.29,tmpfs_two_visits=no",
            "the policy of page replacement", "2.6.29; the others to ask what it does";
        second: Second, "where the second build works", "2.6.29; the others to ask what it does";
        jobs: u32 = [2], 1..=64, "objects at a time: make -j", "no mail says it";
        // As many iterations as have metrics of their own (`measured::METRICS`).
        iterations: u32 = [2, 4, 10], 1..=10, "times that both build", "the mail: 10";
        part: u32 = [32, 8, 1], 1..=64, "the part 1 / n of tree, archive, image, heaps, memory and swap",
            "ours";
        memory_mib: u64 = [1_024], 64..=1_048_576, "memory of the whole in MiB", "the mail: mem=1GB";
        kernel_mib: u64 = [24], 0..=1_048_576,
            "of it the kernel's from its boot on, in MiB: its image, a descriptor for each page",
            "from memory: a kernel of 2009 says so at its boot";
        swap_mib: u64 = [35_840], 64..=1_048_576, "swap of the whole in MiB", "the mail: 35GB";
        image_mib: u32 = [1_536], 512..=1_048_576, "image on the loop device of the whole in MiB", "assumed";
        disk: Disk = "scsi-15k-2009" | "sata-7200-2009", "the disk with swap",
            "no mail names it: a server's disk is assumed";
        seek_percent: u64 = [100], 1..=1_000, "percent of the disk's times for seeks", "ours";
        heap_mib: u32 = [27], 1..=1_024, "the compiler's heap in MiB, of the whole", "from memory: 15 to 40";
        user_ms: u64 = [63], 1..=10_000, "CPU time of an object's programs",
            "the mail: 91 s a build; over 1,450 objects (assumed)";
        overwrite_reads: bool = "yes" | "no", "a block in swap is read before it is overwritten",
            "2.6.29; the others to ask what it does";
        read_dirties: bool = "yes" | "no", "a block read from swap gives its slot up and is dirty",
            "2.6.29; the others to ask what it does";
        restricted: bool = "yes" | "no", "loop0's requests for pages start no I/O and enter no file system",
            "2.6.29; the others to ask what it does";
        tmpfs_frees_slot: bool = "yes" | "no", "a page of tmpfs that a program reads back gives its slot up",
            "2.6.29; the others to ask what it does";
        tmpfs_dirty: bool = "no" | "yes", "pages of tmpfs count in the writers' dirty limits",
            "2.6.29; the others to ask what it does";
        tree_nodes: bool = "yes" | "no", "nodes of the page cache's trees are slab objects",
            "2.6.29; the others to ask what it does";
        shrink: bool = "yes" | "no", "reclaim frees dentries and inodes of ext2's files",
            "2.6.29; the others to ask what it does";
        discard: bool = "no" | "yes", "a removed file's blocks leave the image",
            "2.6.29; the others to ask what it does";
        blocks: Blocks, "which free block a file gets: by ext2's rules, or the lowest one",
            "2.6.29; the others to ask what it does";
        compress: bool = "yes" | "no", "a run of touches is one step: the same answer, faster", "ours";
    }
}

impl Params {
    /// KiB of the whole that are not the kernel's.
    fn program_kib(&self) -> u64 {
        self.memory_mib.saturating_sub(self.kernel_mib) << 10
    }

    /// The part of the machine's memory.
    fn memory(&self, whole: &Setup) -> Setup {
        let mut setup = whole.clone();
        let nodes = setup.spec.nodes.len() as u64;
        for node in &mut setup.spec.nodes {
            node.bytes = self.program_kib() / 4 / u64::from(self.part) / nodes * PAGE;
        }
        setup
    }

    /// The disk with its times for seeks.
    fn seeking(&self) -> Disk {
        let mut disk = self.disk.clone();
        if let DiskKind::Rotating(arm) = &mut disk.kind {
            for seek in [&mut arm.seek_track, &mut arm.seek_average, &mut arm.seek_full, &mut arm.seek_write]
            {
                *seek = *seek * self.seek_percent / 100;
            }
        }
        disk
    }

    fn guest(&self) -> Guest {
        let disk = self.seeking();
        let whole = Guest {
            swap_pages: (self.swap_mib << 8) as u32,
            disk: [disk.clone(), disk],
            queue: QueueSpec::named("cfq@2.6.29").expect("a queue of this name"),
            zones: None,
            tree_nodes: self.tree_nodes,
            ..Guest::default()
        };
        part_of(whole, self.memory_mib << 10, self.part)
    }

    fn program(&self) -> TmpfsSwap {
        TmpfsSwap {
            second: self.second,
            kbuild: kbuild::Params {
                jobs: self.jobs,
                heap_mib: self.heap_mib,
                user_us: self.user_ms * 1_000,
                ..kbuild::Params::default()
            },
            iterations: self.iterations,
            part: self.part,
            image_mib: self.image_mib,
            rules: LoopRules {
                overwrite_reads: self.overwrite_reads,
                read_dirties: self.read_dirties,
                is_restricted: self.restricted,
            },
            keeps: Keeps {
                discards: self.discard,
                shrinks: self.shrink,
                packs: self.blocks == Blocks::Lowest,
            },
            compresses: self.compress,
        }
    }
}

/// The program, without its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TmpfsSwap {
    /// Where the second build works.
    pub second: Second,
    /// What an object does; its count of objects is the tree's.
    pub kbuild: kbuild::Params,
    /// Times that both build.
    pub iterations: u32,
    /// The part 1 / n of everything is built.
    pub part: u32,
    /// MiB of the image on the loop device.
    pub image_mib: u32,
    /// The loop device.
    pub rules: LoopRules,
    /// What becomes of blocks and names of ext2 that are not needed.
    pub keeps: Keeps,
    /// A run of touches of a heap or of text is one step: the same answer in less time of the host.
    pub compresses: bool,
}

impl Program for TmpfsSwap {
    type Params = Params;

    const NAME: &'static str = "tmpfs-swap";
    const ABOUT: &'static str =
        "two kernel builds at a time, on tmpfs and on ext2 on a loop device on tmpfs, which swap";
    const METRICS: &'static [Metric] = measured::METRICS;

    fn objects(release: Release) -> Vec<Described> {
        let objects = [
            (Object::Name, "1 for each lookup of a path"),
            (Object::File, "1 for each open, in vain or not"),
            (Object::Bio, "1 for each 31 pages through the loop device, or less"),
            (Object::FileInode, "1 for each file"),
            (Object::Dentry, "1 for each file"),
            (Object::TreeNode, "1 for each file of 2 pages or more, and for each 64 pages"),
        ];
        measures::rows(release, &objects)
    }

    fn check(_machine: &MachineSpec, params: &Params) -> Result<(), String> {
        let Params { memory_mib, kernel_mib, part, .. } = params;
        match params.program_kib() / u64::from(*part) >= 16 << 10 {
            true => Ok(()),
            false => Err(format!(
                "memory_mib = {memory_mib}: expected at least 16 beside kernel_mib = {kernel_mib} for each of \
                 part = {part}"
            )),
        }
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// A build of the whole without heaps, and its heaps' faults, which fall by the square (measured).
        const BUILD_NS: u64 = 4_000_000_000;
        const HEAPS_NS: u64 = 10_000_000_000;
        let part = u64::from(params.part);
        let build = BUILD_NS / part + HEAPS_NS / (part * part);
        let live = (params.memory_mib / part) << 20;
        let slots = (params.swap_mib / part) << 8;
        let slabs = Estimate::of_operations(machine, 0, live);
        let host_ns = 2 * build * u64::from(params.iterations);
        Estimate { host_ns, host_bytes: slabs.host_bytes + slots * 16 }
    }

    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let [major, minor, patch] = params.vm.kernel;
        let rules = Rules {
            tmpfs_read_frees_slot: params.tmpfs_frees_slot,
            tmpfs_counts_dirty: params.tmpfs_dirty,
            ..Rules::of(major, minor, patch)
        };
        let (setup, guest, policy) = (params.memory(setup), params.guest(), params.vm.policy());
        let (answer, outcome) = run(&setup, seed, &guest, policy, rules, &params.program(), recorder)?;
        let metrics = measured::numbers(&answer, params.part.into()).into_iter().collect();
        let sample = Sample { metrics, ..measures::sample(&[], &outcome, &[]) };
        Ok(Observed { sample, profile: Some(outcome.profile) })
    }
}

/// The machine of the part 1 / n: numbers of pages and of requests are that part of those of the whole, whose
/// memory has `kib` KiB, and so is a pageblock. So the same part of memory is kept free, in reserve, and may
/// be under write. The time of a request stays, and so do the pages that a pass of reclaim looks at: a part
/// allocates as many pages a second as the whole.
pub fn part_of(whole: Guest, kib: u64, part: u32) -> Guest {
    // `min_free_kbytes` of 2.6.29.
    let min_free = whole.min_free_kib.unwrap_or((16 * kib).isqrt().clamp(128, 65_536) as u32);
    let pool = match whole.queue.pool {
        PoolSpec::Batching { limit, congested, cleared, more, window } => {
            let of = |requests: u32| (requests / part).max(2);
            let (limit, congested, cleared, more) = (of(limit), of(congested), of(cleared), of(more));
            PoolSpec::Batching { limit, congested, cleared, more, window }
        }
        other => other,
    };
    Guest {
        swap_pages: whole.swap_pages / part,
        min_free_kib: Some(min_free / part),
        queue: QueueSpec { pool, ..whole.queue },
        settings: Settings { part, ..whole.settings },
        pageblock_order: (part > 1).then(|| PAGEBLOCK - part.ilog2() as u8),
        ..whole
    }
}

/// Both builds, once. Returns what they did, and whether the second unpacked when the first ended.
fn build_both(task: &Task, sites: &[Rc<Site>; 2]) -> ([Built; 2], bool) {
    let begin = Timed::clock();
    let children = Rc::new(Children::default());
    let built = Rc::new(RefCell::new([Built::default(); 2]));
    let is_unpacking = Rc::new(RefCell::new(false));
    for at in 0..2 {
        let (sites, built, flag) = (sites.clone(), built.clone(), is_unpacking.clone());
        children.start(task, Kind::Process, move |task| {
            let site = &sites[at];
            task.join(site.group);
            let before = site.done();
            site.build(task);
            // What the task did so far is its group's.
            task.join(site.group);
            built.borrow_mut()[at] = site.done().since(before, Timed::clock() - begin);
            if at == 0 {
                *flag.borrow_mut() = sites[1].is_unpacking.get();
            }
        });
    }
    children.wait(task);
    (*built.borrow(), *is_unpacking.borrow())
}

/// What a run has so far.
#[derive(Default)]
struct Results {
    iterations: Vec<Iteration>,
    outcome: Option<Outcome>,
}

/// The main task's program.
fn main(task: &Task, memory: &Rc<Memory>, program: &TmpfsSwap, results: &RefCell<Results>) {
    let tree = Rc::new(Tree::new(Size::LINUX.part(program.part), TREE));
    let programs = Rc::new(Programs::new(task, memory, program.part));
    let first = Rc::new(Volume::tmpfs(memory, task));
    let archive = Rc::new(first.create(task, first.root()));
    first.write(task, &archive, (ARCHIVE / program.part).max(1));
    let second = match program.second {
        Second::Tmpfs => Rc::new(Volume::tmpfs(memory, task)),
        Second::Loop => {
            let blocks = program.image_mib / program.part * 256;
            // The defaults of mke2fs in 2009 (from memory).
            let format = Format { blocks, bytes_per_inode: 8_192, inode_bytes: 128 };
            Rc::new(Volume::ext2(memory, task, format, program.rules, program.keeps))
        }
    };
    let site = |volume: &Rc<Volume>| {
        let archive = (first.clone(), archive.clone());
        Rc::new(Site::new(memory, program, &tree, &programs, volume.clone(), archive))
    };
    let sites = [site(&first), site(&second)];
    let begin = Timed::clock();
    let mark = task.kernel.mark();
    for at in 1..=program.iterations {
        let before = Counts::now(memory, &sites[1].volume);
        let here = crate::memory::Here::new(memory, task);
        task.syscall(|| mm::sync(&memory.vm, &here, &memory.rules));
        let (builds, is_unpacking) = build_both(task, &sites);
        let counts = Counts::now(memory, &sites[1].volume).since(before);
        let total = Timed::clock() - begin;
        results.borrow_mut().iterations.push(Iteration { builds, is_unpacking, total, counts });
        memory.end_part(|| format!("iteration {at}"));
    }
    results.borrow_mut().outcome = Some(task.kernel.outcome(&mark));
    sites.iter().for_each(|site| site.remove(task));
    memory.stop();
}

/// Runs the program. Returns its iterations, and the kernel's counts of all of them.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory; an image that is too small; pages
/// that are lost.
pub fn run(
    setup: &Setup,
    seed: u64,
    guest: &Guest,
    policy: Box<dyn Replacement>,
    rules: Rules,
    program: &TmpfsSwap,
    recorder: &Recorder,
) -> Result<(Vec<Iteration>, Outcome), Failed> {
    let program = *program;
    with_recorded_memory(setup, seed, recorder, guest, policy, rules, |memory| {
        let results = Rc::new(RefCell::new(Results::default()));
        let (of_task, of_results) = (memory.clone(), results.clone());
        memory.kernel.start(memory.kernel.new_process(), None, move |task| {
            task.call_it(|| "tmpfs_swap".into());
            main(task, &of_task, &program, &of_results);
        });
        memory.kernel.run()?;
        memory.check().map_err(Failed::Broken)?;
        let Results { iterations, outcome } = results.take();
        Ok((iterations, outcome.expect("the program ended")))
    })
}
