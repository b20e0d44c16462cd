//! The streaming test: dbench, a file of zeros, and the same file read, beside music and a user.

use super::app::{App, Size};
use super::names::Names;
use super::{Desktop, NoMemory};
use crate::kernel::Task;
use crate::memory::Here;
use slablab_model::{Ps, Timed};
use slablab_vm::MappingId;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
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

/// The streaming test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    /// Clients of dbench.
    pub clients: u32,
    /// MiB of the file that dd writes and cat reads.
    pub mib: u32,
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
