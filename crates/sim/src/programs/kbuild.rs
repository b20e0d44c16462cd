//! A build of a kernel: make, and for each object a shell, the compiler's driver, the compiler, the
//! assembler, and two small programs.
//!
//! ```text
//! make        up to `jobs` objects at a time:
//!   sh          gcc    cc1    opens headers, many in vain ── computes ── its heap grows ── writes a .s
//!                      as     reads the .s ── writes the .o
//!               fixdep reads what cc1 opened ── writes the .cmd
//!               mv     gives the .o its name
//! flusher     writes dirty files back, one page for each bio
//! ```
//!
//! A step is a fork, an exec, and what the program does (`STEPS`). All sources are in the page cache, and
//! nothing is linked. The counts of lookups and opens of an object, the heaps and the sizes of files are the
//! middles of ranges that are given, from memory, in the parameters' documentation.

use super::measures::{KERNEL, rows, sample, with_kernel};
use super::program::{Estimate, MS, Metric, Object as Described, Observed, Pair, Program, US, ppm};
use crate::block::{self, Affinity, Device, Disk, Io};
use crate::fs::files::{self, Entry, FileTable, Files};
use crate::kernel::objects::{Object, ROWS};
use crate::kernel::tally::{CacheTally, Failed, Outcome};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting, with_recorded_kernel};
use crate::params::params;
use crate::process::mappings;
use crate::process::{Children, Image, Libraries, Shape};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{MachineSpec, Ps, Timed};
use slablab_platform::{CpuId, Event, Topology};
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        objects: u32 = [16, 64, 1_750], 1..=100_000, "objects that are compiled",
            "2.6.28, defconfig: 1,500 to 2,000 (from memory)";
        jobs: u32 = [8], 1..=10_000, "objects at a time: make -j", "no mail says it";
        lookups: u32 = [450], 90..=10_000, "paths that are looked up for an object, opens included",
            "300 to 600 (from memory of builds of 2.6.2x): the middle";
        opens: u32 = [325], 35..=10_000, "opens of an object, those in vain included",
            "250 to 400 (from memory of builds of 2.6.2x): the middle";
        heap_mib: u32 = [27], 1..=1_000, "heap of the compiler in MiB",
            "15 to 40 (from memory of builds of 2.6.2x): the middle";
        user_us: u64 = [63_000], 0..=10_000_000, "CPU time of an object's programs in themselves",
            "Zhang Yanmin, 5 February 2009: 91 s a build; over 1,450 objects (assumed)";
        flush_ms: u64 = [50, 200, 5_000], 1..=1_000_000, "time between two rounds of the flusher",
            "dirty_writeback_centisecs: 500; shorter in shorter runs, so that they have some";
    }
}

/// The fewest opens of an object are the least that [`Params::opens`] may be.
const _: () = assert!(OTHER_OPENS + IN_VAIN == 35);

impl Params {
    /// CPU time of an object's programs in themselves.
    pub(super) fn user(&self) -> Ps {
        self.user_us * US
    }

    pub(super) fn compiler_opens(&self) -> u32 {
        self.opens - OTHER_OPENS
    }

    /// Paths that make looks up for an object.
    pub(super) fn make_stats(&self) -> u32 {
        self.lookups - self.opens - OTHER_STATS
    }
}

/// The program.
#[derive(Debug)]
pub enum Kbuild {}

impl Program for Kbuild {
    type Params = Params;

    const NAME: &'static str = "kbuild";
    const ABOUT: &'static str =
        "make of a kernel: for each object six programs, 450 lookups of paths, and their files";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[Pair {
        machine: "laptop",
        parameters: "objects = 16",
        why: "a build, in which nothing should differ",
    }];

    fn objects(release: Release) -> Vec<Described> {
        let objects = [
            (Object::Name, "1 for each lookup of a path"),
            (Object::File, "1 for each open, in vain or not"),
            (Object::Vma, "about 250 for an object: 20 for each of 6 forks and of 6 execs"),
            (Object::BufferHead, "52 for an object: 205 KiB are written"),
            (
                Object::JournalHandle,
                "ext3: 1 for each page that is written; 1 for each file that is made or removed",
            ),
            (Object::Bio, "ext3: 1 for each page that the flusher writes; later 1 for each file"),
            (Object::Task, "6 for an object"),
            (Object::Mm, "12 for an object"),
        ];
        rows(release, &objects)
    }

    fn check(_machine: &MachineSpec, params: &Params) -> Result<(), String> {
        let (opens, lookups) = (params.opens, params.lookups);
        let least = opens + OTHER_STATS;
        match lookups >= least {
            true => Ok(()),
            false => Err(format!("lookups = {lookups}: expected at least {least} for opens = {opens}")),
        }
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// A page of the heap, a lookup, a millisecond of computing, six programs (measured).
        const PAGE_NS: u64 = 1_300;
        const LOOKUP_NS: u64 = 4_000;
        const COMPUTED_NS: u64 = 10_000;
        const PROGRAMS_NS: u64 = 700_000;
        let heap = u64::from(params.heap_mib) << 20;
        let object = (heap >> machine.page_shift) * PAGE_NS
            + u64::from(params.lookups) * LOOKUP_NS
            + params.user_us / 1_000 * COMPUTED_NS
            + PROGRAMS_NS;
        let memory = u64::from(params.jobs) * heap;
        let slabs = Estimate::of_operations(machine, 0, memory + (64 << 20));
        Estimate { host_ns: u64::from(params.objects) * object, ..slabs }
    }

    /// A repeat draws headers, the lengths of pieces of work, and what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let outcome = run(setup, params, seed, recorder)?;
        let mut own = caches(&outcome);
        let busy: u64 = outcome.spent.iter().flatten().sum();
        own.extend([("elapsed_ps", outcome.elapsed), ("cpu_ps", busy / outcome.messages.max(1))]);
        Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
    }
}

/// A number of a cache's objects for each 1,000 names.
const fn per_name(name: &'static str, about: &'static str) -> Metric {
    Metric { name, about, better: None, unit: "1", per_unit: 1.0, decimals: 0 }
}

const METRICS: [Metric; 2 + 17 + KERNEL.len()] = with_kernel([
    Metric {
        name: "elapsed_ps",
        about: "time of the build",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 4,
    },
    Metric {
        name: "cpu_ps",
        about: "CPU time of an object, of the kernel and of programs",
        better: Some(Better::Lower),
        unit: "ms",
        per_unit: 1e9,
        decimals: 3,
    },
    per_name("filp_names", "filp for each 1,000 names_cache"),
    per_name("vma_names", "vm_area_struct for each 1,000 names_cache"),
    per_name("buffer_names", "buffer_head for each 1,000 names_cache"),
    per_name("bio_names", "bio for each 1,000 names_cache"),
    per_name("handle_names", "journal_handle for each 1,000 names_cache"),
    Metric::percent("name_allocs_ppm", "fast allocations of names_cache", None),
    Metric::percent("name_frees_ppm", "fast frees of names_cache", None),
    Metric::percent("filp_allocs_ppm", "fast allocations of filp", None),
    Metric::percent("filp_frees_ppm", "fast frees of filp", None),
    Metric::percent("vma_allocs_ppm", "fast allocations of vm_area_struct", None),
    Metric::percent("vma_frees_ppm", "fast frees of vm_area_struct", None),
    Metric::percent("buffer_allocs_ppm", "fast allocations of buffer_head", None),
    Metric::percent("buffer_frees_ppm", "fast frees of buffer_head", None),
    Metric::percent("bio_allocs_ppm", "fast allocations of bio", None),
    Metric::percent("bio_frees_ppm", "fast frees of bio", None),
    Metric::percent("handle_allocs_ppm", "fast allocations of journal_handle", None),
    Metric::percent("handle_frees_ppm", "fast frees of journal_handle", None),
]);

/// The caches of the published table: the object; its metrics by [`METRICS`]' names.
const CACHES: [(Object, Option<&str>, &str, &str); 6] = [
    (Object::Name, None, "name_allocs_ppm", "name_frees_ppm"),
    (Object::File, Some("filp_names"), "filp_allocs_ppm", "filp_frees_ppm"),
    (Object::Vma, Some("vma_names"), "vma_allocs_ppm", "vma_frees_ppm"),
    (Object::BufferHead, Some("buffer_names"), "buffer_allocs_ppm", "buffer_frees_ppm"),
    (Object::Bio, Some("bio_names"), "bio_allocs_ppm", "bio_frees_ppm"),
    (Object::JournalHandle, Some("handle_names"), "handle_allocs_ppm", "handle_frees_ppm"),
];

/// The published table's numbers. A cache that was not used has zeros.
fn caches(outcome: &Outcome) -> Vec<(&'static str, u64)> {
    let of = |object: Object| {
        let is_of =
            |cache: &&CacheTally| ROWS.iter().any(|row| row.object == object && row.name == cache.name);
        outcome.caches.iter().find(is_of)
    };
    let names = of(Object::Name).map_or(1, |cache| cache.allocs.max(1));
    let mut numbers = Vec::new();
    for (object, per_name, fast_allocs, fast_frees) in CACHES {
        let cache = of(object);
        let count = |event: Event| {
            let events = cache.map_or(&[][..], |cache| &cache.events[..]);
            events.iter().find(|(one, _)| *one == event).map_or(0, |(_, count)| *count)
        };
        let share = |fast, slow| ppm(count(fast), count(fast) + count(slow));
        numbers.extend(per_name.map(|name| (name, cache.map_or(0, |cache| cache.allocs * 1_000 / names))));
        numbers.push((fast_allocs, share(Event::AllocFastpath, Event::AllocSlowpath)));
        numbers.push((fast_frees, share(Event::FreeFastpath, Event::FreeSlowpath)));
    }
    numbers
}

/// A program of a step.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// Headers and other files that it opens; the compiler opens what is left of [`Params::opens`].
    pub(super) opens: u32,
    /// Paths that it looks up without opening them.
    pub(super) stats: u32,
    /// Its part of [`Params::user_us`], in thousandths.
    pub(super) user: u64,
    /// Its heap in MiB; the compiler's is [`Params::heap_mib`].
    pub(super) heap_mib: u32,
    /// KiB that it writes into a new file: a .s of 100 to 200, a .o of 10 to 60, a .cmd of 10 to 30.
    pub(super) writes_kib: u32,
    /// Programs that it starts, one after the other.
    pub(super) starts: &'static [usize],
}

pub(super) const CC1: usize = 2;
pub(super) const AS: usize = 3;
/// What runs for an object (assumed, but for the sums).
pub(super) const STEPS: [Step; 6] = [
    Step { name: "sh", opens: 2, stats: 8, user: 20, heap_mib: 0, writes_kib: 0, starts: &[1, 4, 5] },
    Step { name: "gcc", opens: 3, stats: 20, user: 10, heap_mib: 0, writes_kib: 0, starts: &[CC1, AS] },
    Step { name: "cc1", opens: 0, stats: 6, user: 820, heap_mib: 0, writes_kib: 150, starts: &[] },
    Step { name: "as", opens: 3, stats: 4, user: 100, heap_mib: 4, writes_kib: 35, starts: &[] },
    Step { name: "fixdep", opens: 3, stats: 0, user: 30, heap_mib: 0, writes_kib: 20, starts: &[] },
    Step { name: "mv", opens: 0, stats: 2, user: 5, heap_mib: 0, writes_kib: 0, starts: &[] },
];
/// Make's part of [`Params::user_us`], in thousandths.
pub(super) const MAKE_USER: u64 = 15;
/// Opens of an exec, and its lookups beside them.
const EXEC: (u32, u32) = (3, 1);
/// Opens of an object beside those of the compiler's headers: execs, three outputs, and [`Step::opens`].
const OTHER_OPENS: u32 = STEPS.len() as u32 * EXEC.0 + 3 + 11;
/// Lookups of an object without an open beside make's: execs, [`Step::stats`], a removal, a rename.
const OTHER_STATS: u32 = STEPS.len() as u32 * EXEC.1 + 40 + 3;
/// One of so many opens of the compiler is in vain: include paths are tried in turn (assumed).
pub(super) const IN_VAIN: u32 = 3;
/// Bytes of a header (assumed), and of a write.
const HEADER: u32 = 6 << 10;
pub(super) const WRITE: u32 = 16 << 10;
/// A disk of 2009 (assumed). Its interrupts come to CPU 0.
const DISK: Disk = Disk { latency: 5_000_000_000, kib: 12_000_000, disks: 1, requests: 128 };
/// Headers of the tree that a build opens, and paths that it looks for in vain (assumed).
const HEADERS: u32 = 1_500;
const ABSENT: u32 = 500;

/// A source tree with its folders, and the programs.
struct Tree {
    folders: Vec<Rc<Entry>>,
    programs: Vec<Rc<Entry>>,
    headers: Vec<Rc<Entry>>,
    absent: Vec<Rc<Entry>>,
    libraries: Rc<Libraries>,
}

impl Tree {
    /// Programs are one folder below the root, headers two.
    fn new(task: &Task) -> Tree {
        let root = Entry::root(task);
        let (bin, include) = (root.create(task), root.create(task));
        let linux = include.create(task);
        let found = (0..2).map(|_| bin.create(task)).collect();
        Tree {
            programs: (0..=STEPS.len()).map(|_| bin.create(task)).collect(),
            headers: (0..HEADERS).map(|_| linux.create(task)).collect(),
            absent: (0..ABSENT).map(|_| include.absent(task)).collect(),
            libraries: Rc::new(Libraries { found, absent: bin.absent(task) }),
            folders: vec![linux, include, bin, root],
        }
    }

    fn root(&self) -> &Rc<Entry> {
        &self.folders[3]
    }

    fn forget(self, task: &Task) {
        let libraries = Rc::into_inner(self.libraries).expect("all programs have ended");
        let entries = libraries.found.into_iter().chain([libraries.absent]).chain(self.programs);
        let entries = entries.chain(self.headers).chain(self.absent).chain(self.folders);
        entries.for_each(|entry| entry.forget(task));
    }
}

/// What all programs of a run share.
struct Build {
    kbuild: Params,
    files: Rc<Files>,
    tree: Tree,
    /// Objects and lists of dependencies.
    outputs: RefCell<Vec<Rc<Entry>>>,
}

/// One object's temporary file.
type Assembly = Rc<RefCell<Option<Rc<Entry>>>>;

impl Build {
    /// A child becomes the program of a step, and does its work.
    fn run(self: &Rc<Self>, task: &Task, image: Image, at: usize, assembly: &Assembly) -> Image {
        let step = &STEPS[at];
        task.call_it(|| step.name.into());
        let table = FileTable::new(&self.files);
        let (tree, shape) = (&self.tree, Shape::SMALL);
        let mut image = image.exec(task, &table, &tree.programs[at], &tree.libraries, shape);
        let (opens, heap_mib) = match at {
            CC1 => (self.kbuild.compiler_opens(), self.kbuild.heap_mib),
            _ => (step.opens, step.heap_mib),
        };
        task.syscall(|| image.map_heap(task, u64::from(heap_mib) << 20));
        self.look_up(task, step.stats);
        self.read(task, &table, &image, at, opens, heap_mib);
        for start in step.starts {
            let children = Rc::new(Children::default());
            let (build, assembly, start) = (self.clone(), assembly.clone(), *start);
            let program = move |child: &Task, image| build.run(child, image, start, &assembly);
            task.syscall(|| children.fork(task, &image, program));
            task.syscall(|| children.wait(task));
        }
        self.write(task, &table, at, assembly);
        image
    }

    fn header(&self, task: &Task) -> &Rc<Entry> {
        &self.tree.headers[task.kernel.random(HEADERS.into()) as usize]
    }

    fn look_up(&self, task: &Task, stats: u32) {
        for _ in 0..stats {
            task.syscall(|| self.header(task).look_up(task));
        }
    }

    /// The program computes, opens and reads files, and its heap grows: each in `opens` parts, at least one.
    fn read(&self, task: &Task, table: &FileTable, image: &Image, at: usize, opens: u32, heap_mib: u32) {
        let parts = u64::from(opens.max(1));
        let user = self.kbuild.user() * STEPS[at].user / 1_000;
        let pages = (u64::from(heap_mib) << 20) >> Timed::page_shift();
        for part in 0..parts {
            task.compute(user / parts);
            if part < u64::from(opens) {
                let in_vain = at == CC1 && part % u64::from(IN_VAIN) == 0;
                self.open(task, table, in_vain);
            }
            let grown = part * pages / parts..(part + 1) * pages / parts;
            if !grown.is_empty() {
                image.grow_heap(task, grown);
            }
        }
    }

    fn open(&self, task: &Task, table: &FileTable, in_vain: bool) {
        if in_vain {
            let absent = &self.tree.absent[task.kernel.random(ABSENT.into()) as usize];
            let found = task.syscall(|| table.open(task, absent));
            assert!(found.is_none(), "an absent header was opened");
            return;
        }
        let file = task.syscall(|| table.open(task, self.header(task))).expect("the header exists");
        // fstat, and two reads: the second finds the end.
        task.syscall(|| ());
        task.syscall(|| file.read(task, HEADER));
        task.syscall(|| ());
        task.syscall(|| table.close(task, file));
    }

    /// The program's output; the driver removes the assembler's source, `mv` renames the object.
    fn write(&self, task: &Task, table: &FileTable, at: usize, assembly: &Assembly) {
        let root = self.tree.root();
        let kib = STEPS[at].writes_kib;
        if kib > 0 {
            let entry = task.syscall(|| root.create_file(task));
            let file = task.syscall(|| table.open(task, &entry)).expect("it was created");
            for written in (0..kib << 10).step_by(WRITE as usize) {
                let bytes = WRITE.min((kib << 10) - written);
                task.syscall(|| file.write(task, &self.files, bytes));
            }
            task.syscall(|| table.close(task, file));
            match at {
                CC1 => *assembly.borrow_mut() = Some(entry),
                _ => self.outputs.borrow_mut().push(entry),
            }
        }
        match STEPS[at].name {
            "gcc" => {
                let entry = assembly.borrow_mut().take().expect("the compiler wrote it");
                task.syscall(|| entry.remove(task));
            }
            "mv" => task.syscall(|| self.header(task).rename(task)),
            _ => {}
        }
    }

    /// Make, after its exec: starts the objects. Returns what happened.
    fn make(self: &Rc<Self>, task: &Task, image: &Image) -> Outcome {
        let children = Rc::new(Children::default());
        let mark = task.kernel.mark();
        for _ in 0..self.kbuild.objects {
            self.look_up(task, self.kbuild.make_stats());
            task.compute(self.kbuild.user() * MAKE_USER / 1_000);
            let build = self.clone();
            let shell = move |child: &Task, image: Image| {
                let image = build.run(child, image, 0, &Assembly::default());
                child.kernel.count_message();
                image
            };
            task.syscall(|| children.fork(task, image, shell));
            task.syscall(|| children.wait_for(task, self.kbuild.jobs - 1));
        }
        task.syscall(|| children.wait(task));
        task.kernel.outcome(&mark)
    }
}

/// Writes dirty files back until the build has ended.
#[derive(Default)]
struct Flusher {
    stops: Cell<bool>,
    has_stopped: Cell<bool>,
    stopped: WaitQueue,
}

impl Flusher {
    fn run(&self, task: &Task, files: &Files, device: &Rc<Device>, every: Ps) {
        task.call_it(|| "flusher".into());
        while !self.stops.get() {
            task.sleep(every);
            while let Some(pages) = files.next_dirty() {
                // ext3 has a bio for each block; later file systems make large ones.
                let bios = if task.kernel.era.since(3, 0, 0) { 1 } else { pages };
                let io = Io { bytes: pages << Timed::page_shift(), bios };
                task.syscall(|| device.submit(task, io, |_| ()));
            }
        }
        self.has_stopped.set(true);
        self.stopped.wake_all(&task.kernel, false);
    }

    fn stop(&self, task: &Task) {
        self.stops.set(true);
        task.syscall(|| {
            if !self.has_stopped.get() {
                self.stopped.wait(task, Waiting { what: "for the flusher", number: 0 });
            }
        });
    }
}

fn main(task: &Task, kbuild: Params) -> Outcome {
    task.call_it(|| "make".into());
    let (files, flusher) = (Rc::<Files>::default(), Rc::<Flusher>::default());
    let (for_flusher, of_files) = (flusher.clone(), files.clone());
    let device = Device::new(0, DISK, Affinity::Cpu(CpuId(0)));
    task.fork(move |task| for_flusher.run(task, &of_files, &device, kbuild.flush_ms * MS));
    let tree = Tree::new(task);
    let table = FileTable::new(&files);
    let make = &tree.programs[STEPS.len()];
    let image = Image::empty(task).exec(task, &table, make, &tree.libraries, Shape::SMALL);
    let build = Rc::new(Build { kbuild, files, tree, outputs: RefCell::default() });
    let mut outcome = build.make(task, &image);
    outcome.locks.extend(files::locks().into_iter().chain([mappings::locks(), block::locks()]));
    flusher.stop(task);
    image.end(task);
    let build = Rc::into_inner(build).expect("all programs have ended");
    build.outputs.into_inner().into_iter().for_each(|entry| entry.forget(task));
    build.tree.forget(task);
    outcome
}

/// Runs the program, and records it. The outcome's messages are objects that were compiled.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
///
/// # Panics
/// If the parameters do not pass [`Program::check`].
pub fn run(setup: &Setup, kbuild: &Params, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    let kbuild = *kbuild;
    with_recorded_kernel(setup, seed, recorder, |kernel: &Rc<Kernel>| {
        super::repeat::ended(kernel, |kernel, result| {
            kernel.start(kernel.new_process(), None, move |task| {
                let outcome = main(task, kbuild);
                *result.borrow_mut() = Some(outcome);
            });
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_hold_the_opens_and_those_of_the_programs() {
        #[track_caller]
        fn check(opens: u32, lookups: u32, expected: Result<(), &str>) {
            let params = Params { opens, lookups, ..Params::default() };
            let found = Kbuild::check(&MachineSpec::uniform(1, 1, 1 << 30), &params);
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text));
        }
        check(325, 450, Ok(()));
        check(35, 84, Ok(()));
        check(325, 373, Err("lookups = 373: expected at least 374 for opens = 325"));
    }
}
