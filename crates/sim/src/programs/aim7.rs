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

use super::repeat::{self, Program, Repeat};
use super::user::User;
use crate::block::{self, Affinity, Device, Disk, Io};
use crate::fs::files::{self, Files};
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Task, locks_of};
use crate::net::pipe::{Pipe, PipeMutex};
use crate::net::unix::{self, ReceiveQueue};
use crate::process::Kind;
use crate::process::mappings;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::LockTimes;
use std::rc::Rc;

/// A job of the mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
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

/// The jobs of a mix; one that is listed twice runs twice as often. The mixes are assumed.
pub const MIXES: [(&str, &[Job]); 3] = [
    (
        "shared",
        &[
            Job::Compute,
            Job::Fork,
            Job::Exec,
            Job::Brk,
            Job::Page,
            Job::Write,
            Job::Copy,
            Job::Sync,
            Job::Create,
            Job::Search,
            Job::Pipe,
            Job::Stream,
        ],
    ),
    ("compute", &[Job::Compute, Job::Compute, Job::Compute, Job::Fork, Job::Exec, Job::Brk, Job::Page]),
    ("files", &[Job::Write, Job::Copy, Job::Sync, Job::Create, Job::Search, Job::Search]),
];

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

/// The program's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aim7 {
    /// Users and time.
    pub repeat: Repeat,
    /// A place in [`MIXES`].
    pub mix: usize,
}

struct State {
    mix: &'static [Job],
    files: Rc<Files>,
    disk: Rc<Device>,
}

impl State {
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

impl Program for State {
    type Process = User;

    fn process(&self, task: &Task) -> User {
        User::new(task, &self.files)
    }

    fn operation(&self, task: &Task, user: &User) -> u64 {
        let job = task.kernel.random(self.mix.len() as u64) as usize;
        self.run(task, user, self.mix[job]);
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

/// Runs the program, and records it. The outcome's messages are jobs.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run_recorded(setup: &Setup, aim7: &Aim7, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    let repeat = Repeat { kind: Kind::Process, ..aim7.repeat };
    let (_, mix) = MIXES[aim7.mix];
    let state =
        |_: &Rc<Kernel>| State { mix, files: Rc::default(), disk: Device::new(0, DISK, Affinity::Turns) };
    repeat::run_recorded(setup, &repeat, seed, recorder, state)
}
