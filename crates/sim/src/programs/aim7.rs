//! AIM7: users that each run jobs of a mix, in random order.
//!
//! | job | what it does |
//! |---|---|
//! | compute | arithmetic |
//! | fork, exec | children that end, or execute a program |
//! | brk, page | the heap grows by 1 MiB, a page or all are touched, it shrinks |
//! | write, copy | a file is created, written, read again (copy), and removed |
//! | sync | a file is created, written to the disk, and removed |
//! | create | files are created, opened, closed and removed |
//! | search | paths are looked up |
//! | pipe, stream | messages to itself over a pipe, or over a UNIX socket |
//!
//! A user is a process that may run on every CPU. The lengths of jobs are assumed: about a millisecond each,
//! a thousandth of the benchmark's. Not built of its about 50 jobs: signals, shared memory, TCP and UDP,
//! and disks that are read. The page cache holds all files.

use super::measures::{KERNEL, rows, sample, with_kernel};
use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program};
use super::repeat::{self, Repeat, Repeats};
use super::repeated;
use super::user::User;
use crate::block::{self, Affinity, Device, Disk, Io};
use crate::fs::files::{self, Files};
use crate::kernel::objects::Object;
use crate::kernel::tally::Failed;
use crate::kernel::{Task, locks_of};
use crate::net::pipe::{Pipe, PipeMutex};
use crate::net::unix::{self, ReceiveQueue};
use crate::params::{params, words};
use crate::process::Kind;
use crate::process::mappings;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{LockTimes, MachineSpec};
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::rc::Rc;

/// A mix of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Each job.
    Shared,
    /// Arithmetic, children and heaps.
    Compute,
    /// Files.
    Files,
}

words! { Mix { Shared = "shared", Compute = "compute", Files = "files" } }

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        tasks: u32 = [8, 16, 100], 1..=10_000, "users, processes that are not pinned",
            "AIM7's results are curves over the number of tasks";
        mix: Mix,
            "jobs: shared has each of 12 once; compute has arithmetic, forks and heaps; files has files alone",
            "assumed; AIM7's mixes have these names and about 50 jobs";
        warm_up_us: u64 = [5_000, 20_000, 100_000], 0..=100_000_000, "time before the window",
            "assumed: some jobs";
        window_us: u64 = [30_000, 200_000, 10_000_000], 10..=100_000_000, "time that is counted",
            "assumed; the real one runs for minutes";
    }
}

/// The program: its mix, its files and their disk. Its tasks are processes.
pub struct Aim7 {
    mix: Mix,
    files: Rc<Files>,
    disk: Rc<Device>,
}

impl Aim7 {
    /// Users that run jobs of a mix.
    pub fn new(mix: Mix) -> Aim7 {
        Aim7 { mix, files: Rc::default(), disk: Device::new(0, DISK, Affinity::Turns) }
    }
}

impl Params {
    fn repeat(&self) -> Repeat {
        repeated::window(self.tasks, Kind::Process, 0, [self.warm_up_us, self.window_us])
    }
}

impl Program for Aim7 {
    type Params = Params;

    const NAME: &'static str = "aim7";
    const ABOUT: &'static str =
        "users that each run jobs in random order: forks, execs, heaps, files, pipes and sockets";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] =
        &[Pair { machine: "laptop", parameters: "", why: "forks, files and messages at a time" }];

    fn objects(release: Release) -> Vec<Described> {
        let objects = [
            (Object::Task, "1 for each child of the jobs fork (8) and exec (4)"),
            (Object::Mm, "1 for each of these children, and 1 for each exec"),
            (Object::Vma, "20 for each of these children and of these execs; 1 for each change of the heap"),
            (Object::Name, "1 for each lookup, open and removal"),
            (Object::File, "1 for each open"),
            (Object::Dentry, "1 for each file that is created"),
            (Object::FileInode, "1 for each file that is created"),
            (Object::BufferHead, "64 for each of the jobs write, copy and sync"),
            (Object::JournalHandle, "1 for each file made or removed; ext3: 1 for each page written"),
            (Object::Bio, "64 for each job sync"),
            (Object::SkBuff, "300 for each job stream, with data from kmalloc"),
        ];
        rows(release, &objects)
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// A microsecond of a busy CPU takes this long on the host (measured).
        const HOST_NS: u64 = 1_500;
        let tasks = u64::from(params.tasks);
        let busy = tasks.min(machine.cpu_node.len() as u64);
        let us = params.warm_up_us + params.window_us;
        let slabs = Estimate::of_operations(machine, 0, 64 << 20);
        let host_bytes = slabs.host_bytes + tasks * (256 << 10);
        Estimate { host_ns: busy.saturating_mul(us).saturating_mul(HOST_NS), host_bytes }
    }

    /// A repeat draws the jobs, the lengths of pieces of work, and what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let outcome = repeat::run(setup, &params.repeat(), seed, recorder, &[], |_| Aim7::new(params.mix))?;
        let wide = u128::from(outcome.messages) * 60_000_000_000_000;
        let own = [
            ("jobs_per_min", (wide / u128::from(outcome.elapsed.max(1))) as u64),
            ("job_ps", outcome.elapsed.saturating_mul(params.tasks.into()) / outcome.messages.max(1)),
        ];
        Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
    }
}

const METRICS: [Metric; 2 + KERNEL.len()] = with_kernel([
    Metric {
        name: "jobs_per_min",
        about: "jobs in a minute, of all users; a job is a thousandth of the benchmark's",
        better: Some(Better::Higher),
        unit: "1/min",
        per_unit: 1.0,
        decimals: 0,
    },
    Metric {
        name: "job_ps",
        about: "time of a job of one user",
        better: Some(Better::Lower),
        unit: "us",
        per_unit: 1e6,
        decimals: 1,
    },
]);

/// A job of the mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Arithmetic.
    Compute,
    /// Children that end.
    Fork,
    /// Children that execute a program.
    Exec,
    /// A heap of which a page is touched.
    Brk,
    /// A heap of which all pages are touched.
    Page,
    /// A file is written and removed.
    Write,
    /// A file is written, read and removed.
    Copy,
    /// A file is written to the disk and removed.
    Sync,
    /// Files are created and removed.
    Create,
    /// Paths are looked up.
    Search,
    /// Messages over a pipe.
    Pipe,
    /// Messages over a UNIX socket.
    Stream,
}

impl Mix {
    /// The jobs; one that is listed twice runs twice as often. The mixes are assumed.
    const fn jobs(self) -> &'static [Job] {
        use Job::{Brk, Compute, Copy, Create, Exec, Fork, Page, Pipe, Search, Stream, Sync, Write};
        match self {
            Mix::Shared => &[Compute, Fork, Exec, Brk, Page, Write, Copy, Sync, Create, Search, Pipe, Stream],
            Mix::Compute => &[Compute, Compute, Compute, Fork, Exec, Brk, Page],
            Mix::Files => &[Write, Copy, Sync, Create, Search, Search],
        }
    }
}

/// Lengths of jobs: cycles of arithmetic; children; growths of the heap; bytes of files; files; lookups;
/// messages and their bytes.
const COMPUTE: u64 = 3_000_000;
const FORKS: u32 = 8;
const EXECS: u32 = 4;
const BRKS: u32 = 100;
const PAGES: u32 = 4;
const BYTES: u32 = 256 << 10;
const CREATED: u32 = 50;
const LOOKUPS: u32 = 400;
const MESSAGES: u32 = 300;
const MESSAGE: u32 = 100;
/// Bytes of a read or write.
const PIECE: u32 = 4 << 10;
/// A disk of an array with a cache that takes writes (assumed).
const DISK: Disk = Disk { latency: 200_000_000, kib: 3_000_000, disks: 8, requests: 1_024 };

impl Aim7 {
    fn run(&self, task: &Task, user: &User, job: Job) {
        match job {
            Job::Compute => task.compute(COMPUTE * task.kernel.prices.cycle),
            Job::Fork => (0..FORKS).for_each(|_| user.child(task, false)),
            Job::Exec => (0..EXECS).for_each(|_| user.child(task, true)),
            Job::Brk => (0..BRKS).for_each(|_| user.heap(task, 1)),
            Job::Page => (0..PAGES).for_each(|_| user.heap(task, u64::MAX)),
            Job::Write | Job::Copy | Job::Sync => self.file(task, user, job),
            Job::Create => (0..CREATED).for_each(|_| self.create(task, user)),
            Job::Search => (0..LOOKUPS).for_each(|_| task.syscall(|| user.root.look_up(task))),
            Job::Pipe => Self::pipe(task),
            Job::Stream => Self::stream(task),
        }
    }

    fn create(&self, task: &Task, user: &User) {
        let entry = task.syscall(|| user.root.create_file(task));
        let file = task.syscall(|| user.table.open(task, &entry)).expect("it was created");
        task.syscall(|| user.table.close(task, file));
        task.syscall(|| entry.remove(task));
    }

    fn file(&self, task: &Task, user: &User, job: Job) {
        let entry = task.syscall(|| user.root.create_file(task));
        let file = task.syscall(|| user.table.open(task, &entry)).expect("it was created");
        for _ in 0..BYTES / PIECE {
            task.syscall(|| file.write(task, &self.files, PIECE));
        }
        if job == Job::Copy {
            (0..BYTES / PIECE).for_each(|_| task.syscall(|| file.read(task, PIECE)));
        }
        if job == Job::Sync {
            let io = Io { bytes: BYTES, bios: BYTES / PIECE };
            task.syscall(|| self.disk.submit_and_wait(task, io));
        }
        task.syscall(|| user.table.close(task, file));
        task.syscall(|| entry.remove(task));
    }

    fn pipe(task: &Task) {
        let pipe = task.syscall(|| Pipe::new(task, task.id.0));
        for _ in 0..MESSAGES {
            task.syscall(|| pipe.write(task, MESSAGE, 0));
            task.syscall(|| pipe.read(task, MESSAGE, |_, _| ()));
        }
        task.syscall(|| pipe.close(task));
    }

    fn stream(task: &Task) {
        let (from, to) = task.syscall(|| unix::pair(task, 2 * task.id.0));
        for _ in 0..MESSAGES {
            task.syscall(|| from.send(task, MESSAGE, 0));
            task.syscall(|| to.receive(task, MESSAGE, |_, _| ()));
        }
        task.syscall(|| unix::close(task, &from));
    }
}

impl Repeats for Aim7 {
    type Process = User;

    fn process(&self, task: &Task) -> User {
        User::new(task, &self.files)
    }

    fn operation(&self, task: &Task, user: &User) -> u64 {
        let job = task.kernel.random(self.mix.jobs().len() as u64) as usize;
        self.run(task, user, self.mix.jobs()[job]);
        1
    }

    fn end(&self, task: &Task, user: User) {
        // What was written and removed is not dirty any more.
        while self.files.next_dirty().is_some() {}
        user.end(task);
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        let own = [mappings::locks(), block::locks(), locks_of::<PipeMutex>(), locks_of::<ReceiveQueue>()];
        files::locks().into_iter().chain(own).collect()
    }
}
