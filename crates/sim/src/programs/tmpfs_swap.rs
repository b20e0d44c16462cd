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
//!
//! What an object does is [`kbuild`](super::kbuild)'s table of steps, with its source, its headers and its
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
mod programs;
mod site;
mod unpack;

use super::kbuild::Kbuild;
use super::tree::{Size, Tree};
use crate::block::disk::pool::PoolSpec;
use crate::block::disk::queue::QueueSpec;
use crate::fs::ext2::Format;
use crate::kernel::Task;
use crate::kernel::tally::{Failed, Outcome};
use crate::memory::loopback::LoopRules;
use crate::memory::volume::{Keeps, Volume};
use crate::memory::{Guest, Memory, with_recorded_memory};
use crate::process::{Children, Kind};
use crate::record::Recorder;
use crate::setup::Setup;
pub use counts::{Built, Counts, Iteration};
use programs::Programs;
use site::Site;
use slablab_model::{Ps, Timed};
use slablab_vm::mm::{self, Rules};
use slablab_vm::{Replacement, Settings};
use std::cell::RefCell;
use std::rc::Rc;

/// Pages of the archive: 50 MB (from memory).
const ARCHIVE: u32 = 12_207;
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

/// The program's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TmpfsSwap {
    /// Where the second build works.
    pub second: Second,
    /// What an object does; its count of objects is the tree's.
    pub kbuild: Kbuild,
    /// Times that both build.
    pub iterations: u32,
    /// The part 1 / n of everything is built.
    pub part: u32,
    /// MiB of the image on the loop device.
    pub image_mib: u32,
    /// CPU time to unpack the archive.
    pub unpack: Ps,
    /// The loop device.
    pub rules: LoopRules,
    /// What becomes of blocks and names of ext2 that are not needed.
    pub keeps: Keeps,
    /// A run of touches of a heap or of text is one step: the same answer in less time of the host.
    pub compresses: bool,
}

impl Default for TmpfsSwap {
    /// The whole test, with two jobs. The image's size is not told: three trees with their outputs (assumed).
    fn default() -> TmpfsSwap {
        TmpfsSwap {
            second: Second::Loop,
            kbuild: Kbuild { jobs: 2, ..Kbuild::default() },
            iterations: 10,
            part: 1,
            image_mib: 1_536,
            // 10 to 15 s (from memory): the middle.
            unpack: 12_500_000_000_000,
            rules: LoopRules::default(),
            keeps: Keeps { discards: false, shrinks: true, packs: false },
            compresses: true,
        }
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
        let before = Counts::now(memory, &sites[1]);
        let here = crate::memory::Here::new(memory, task);
        task.syscall(|| mm::sync(&memory.vm, &here, &memory.rules));
        let (builds, is_unpacking) = build_both(task, &sites);
        let counts = Counts::now(memory, &sites[1]).since(before);
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
