//! The streaming test: dbench, a file of zeros, and the same file read, beside music and a user.

use super::app::{App, Size};
use super::machine::{
    self, ESTIMATE, GAP_LONGEST, GAPS, IN, KSWAPD, Machine, NEEDED, OUT, SKIPS, music, observed, seconds,
    swap,
};
use super::names::Names;
use super::{Answer, Desktop, Habits, NoMemory, Test};
use crate::kernel::Task;
use crate::kernel::tally::Failed;
use crate::memory::Here;
use crate::params::params;
use crate::programs::measures::{KERNEL, with_kernel};
use crate::programs::program::{Estimate, Metric, Object, Observed, Pair, Program, ppm};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::disk::Disk;
use slablab_model::{MachineSpec, Ps, Timed};
use slablab_slabs::Release;
use slablab_vm::MappingId;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::preset::Preset;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes that a system call copies for a page.
const PAGE: u32 = 4_096;
/// Pages that a dbench client writes: 66 MB, and it reads as many: a client is rated as 132 MB.
const WRITES: u32 = 16_896;
/// Pages of a client's files: tens of KB to about 1 MB; it removes the oldest when it has more than this many
/// pages: 20 MB.
const FILE: (u64, u64) = (4, 256);
const LIVE: u32 = 5_120;
/// What the user works with (assumed): every so often a part of it, in percent.
const DESK: Size = Size { name: "desk", text: 1_024, heap: 2_048 };
const WORK: u32 = 5;
const EVERY: Ps = 250_000_000_000;

params! {
    /// The workload's parameters.
    pub struct Params {
        vm: Preset = machine::VM;
        memory_mib: u64 = machine::MEMORY;
        disk: Disk = machine::DISK;
        buffer_ms: u64 = machine::BUFFER;
        clients: u32 = [1, 4, 4], 0..=1_000, "clients of dbench", "the mail does not tell";
        file_mib: u32 = [64, 512, 512], 1..=4_096, "MiB of the file that dd writes and cat reads",
            "the mail: bs=1024k count=512";
    }
}

/// The streaming test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// Clients of dbench.
    pub clients: u32,
    /// MiB of the file that dd writes and cat reads.
    pub mib: u32,
}

impl Program for Streams {
    type Params = Params;

    const NAME: &'static str = "streaming";
    const ABOUT: &'static str = "dbench, a large file written and then read, beside an mp3 player and a user";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[Pair {
        machine: "kulesa-2001",
        parameters: "memory_mib = 64\nclients = 1\nfile_mib = 64",
        why: "a PC whose disk is busy with writes",
    }];

    fn objects(_release: Release) -> Vec<Object> {
        machine::objects()
    }

    fn estimate(_machine: &MachineSpec, _params: &Params) -> Estimate {
        ESTIMATE
    }

    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let Params { vm, memory_mib, disk, buffer_ms, clients, file_mib } = params;
        let machine = Machine { vm, memory_mib: *memory_mib, disk };
        let test = Test::Streams(Streams { clients: *clients, mib: *file_mib });
        let answer = machine.run((setup, seed, recorder), (&test, Some(*buffer_ms), Habits::USUAL))?;
        let own = own(&answer);
        Ok(observed(&METRICS, answer, &own))
    }
}

/// The parts of the test.
const PARTS: [(&str, [&str; 3]); 3] = [
    ("dbench", ["dbench_ps", "dbench_skips", "dbench_needed_ps"]),
    ("dd", ["dd_ps", "dd_skips", "dd_needed_ps"]),
    ("cat", ["cat_ps", "cat_skips", "cat_needed_ps"]),
];

const fn time(at: usize) -> Metric {
    Metric { name: PARTS[at].1[0], about: "time of this part of the test", ..seconds() }
}

const fn skips(at: usize) -> Metric {
    Metric {
        name: PARTS[at].1[1],
        about: "times in this part that the sound card had nothing to play",
        ..SKIPS
    }
}

const fn needed(at: usize) -> Metric {
    Metric { name: PARTS[at].1[2], about: "the buffer that would have sufficed in this part", ..NEEDED }
}

const METRICS: [Metric; 18 + KERNEL.len()] = with_kernel([
    SKIPS,
    GAP_LONGEST,
    GAPS,
    NEEDED,
    skips(0),
    skips(1),
    skips(2),
    needed(0),
    needed(1),
    needed(2),
    time(0),
    time(1),
    time(2),
    Metric { name: "answer_longest_ps", about: "the slowest answer to the user", ..seconds() },
    OUT,
    IN,
    KSWAPD,
    Metric::percent("daemons_ppm", "pages of idle daemons that are resident at the end", None),
]);

fn own(answer: &Answer) -> Vec<(&'static str, u64)> {
    let (resident, pages) = answer.resident("cat", "daemon");
    let mut own = vec![("daemons_ppm", ppm(resident, pages)), ("answer_longest_ps", answer.answer_longest)];
    own.extend(swap(answer));
    own.extend(music(answer.played()));
    for (part, [time, skips, needed]) in PARTS {
        let step = answer.step(part);
        own.push((time, step.map_or(0, |step| step.elapsed)));
        own.push((skips, step.map_or(0, |step| step.played.skips)));
        own.push((needed, step.map_or(0, |step| step.played.needed)));
    }
    own
}

pub(super) fn test(desktop: &Rc<Desktop>, task: &Task, streams: &Streams) -> Result<(), NoMemory> {
    let names = Names::new(&desktop.memory, 0);
    let (daemons, screen) = desktop.step("boot", &names, || desktop.boot(task))?;
    let (left, over) = (Rc::new(Cell::new(1)), Rc::new(Cell::new(false)));
    let (user_left, user_over) = (left.clone(), over.clone());
    desktop.start("desk", move |desktop, task| {
        let ended = work(desktop, task, &user_over);
        user_left.set(0);
        ended
    });
    desktop.step("dbench", &names, || dbench(desktop, task, streams.clients))?;
    let pages = streams.mib * 256;
    let file = desktop.memory.vm.with(|state| state.mappings.create(Kind::File, pages));
    desktop.step("dd", &names, || write_all(desktop, task, file, pages))?;
    desktop.step("cat", &names, || read_all(desktop, task, file, pages))?;
    over.set(true);
    while left.get() > 0 {
        task.sleep(EVERY);
    }
    mm::unlink(&desktop.memory.vm, &Here::new(&desktop.memory, task), file);
    daemons.stop(desktop, task);
    screen.close(desktop, task, 0)
}

/// Writes a file from its begin to its end (`dd if=/dev/zero`).
fn write_all(desktop: &Desktop, task: &Task, file: MappingId, pages: u32) -> Result<(), NoMemory> {
    let memory = &desktop.memory;
    let (here, mut file) = (Here::new(memory, task), OpenFile::new(file));
    for page in 0..pages {
        let written = task.syscall(|| {
            task.copy(PAGE);
            mm::write(&memory.vm, &here, &memory.rules, &mut file, page, page + 1, true)
        });
        written.ok_or(NoMemory)?;
    }
    Ok(())
}

/// Reads a file from its begin to its end (`cat`).
fn read_all(desktop: &Desktop, task: &Task, file: MappingId, pages: u32) -> Result<(), NoMemory> {
    let memory = &desktop.memory;
    let (here, mut file) = (Here::new(memory, task), OpenFile::new(file));
    for page in 0..pages {
        let read = task.syscall(|| {
            task.copy(PAGE);
            mm::read(&memory.vm, &here, &memory.rules, &mut file, page)
        });
        read.ok_or(NoMemory)?;
    }
    Ok(())
}

/// Clients that play a file server's load together; returns when the last has ended.
fn dbench(desktop: &Rc<Desktop>, task: &Task, clients: u32) -> Result<(), NoMemory> {
    let left = Rc::new(Cell::new(clients));
    for _ in 0..clients {
        let left = left.clone();
        desktop.start("dbench", move |desktop, task| {
            let ended = client(desktop, task);
            left.set(left.get() - 1);
            ended
        });
    }
    while left.get() > 0 {
        task.sleep(EVERY);
    }
    Ok(())
}

/// A client writes files, reads each of them once again, and removes the oldest; at the end all.
fn client(desktop: &Desktop, task: &Task) -> Result<(), NoMemory> {
    let memory = &desktop.memory;
    let here = Here::new(memory, task);
    let remove = |file: MappingId| task.syscall(|| mm::unlink(&memory.vm, &here, file));
    let (mut files, mut live, mut written) = (VecDeque::new(), 0, 0);
    while written < WRITES {
        let pages = (FILE.0 + desktop.below(FILE.1 - FILE.0 + 1)) as u32;
        let file = memory.vm.with(|state| state.mappings.create(Kind::File, pages));
        write_all(desktop, task, file, pages)?;
        read_all(desktop, task, file, pages)?;
        files.push_back((file, pages));
        (live, written) = (live + pages, written + pages);
        while live > LIVE
            && let Some((oldest, pages)) = files.pop_front()
        {
            remove(oldest);
            live -= pages;
        }
    }
    files.into_iter().for_each(|(file, _)| remove(file));
    Ok(())
}

/// The user works, and the slowest answer is noted.
fn work(desktop: &Desktop, task: &Task, over: &Cell<bool>) -> Result<(), NoMemory> {
    let app = App::start(desktop, task, DESK)?;
    while !over.get() {
        task.sleep(EVERY);
        let at = Timed::clock();
        app.used(desktop, task, WORK)?;
        desktop.answer_longest.set(desktop.answer_longest.get().max(Timed::clock() - at));
    }
    app.close(desktop, task, 0)
}
