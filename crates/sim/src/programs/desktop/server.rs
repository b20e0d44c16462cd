//! A file server of the same weeks: clients write a file over the network and read it back, again and again,
//! in memory that does not hold all files (R. Cohen, netatalk, 27 September 2001).
//!
//! The network is one link that all clients share. The mail does not tell its speed; with enough memory all
//! kernels move 12 MB/s, which is what a link of 100 Mbit/s carries.

use super::app::{App, Size};
use super::names::Names;
use super::{Desktop, NoMemory};
use crate::kernel::Task;
use crate::memory::Here;
use slablab_model::{Ps, Timed};
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use std::cell::Cell;
use std::rc::Rc;

/// Pages of a message (assumed), and the time that it takes on the link: 64 KiB at 12.5 MB/s.
const MESSAGE: u32 = 16;
const LINK: Ps = 5_242_880_000;
/// A client's process on the server (assumed), and how many messages are between two uses of 5 % of it.
const AFPD: Size = Size { name: "afpd", text: 256, heap: 256 };
const USED: (u32, u32) = (64, 5);
/// How often the user's task looks whether all clients have ended.
const EVERY: Ps = 100_000_000_000;

/// The test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// Clients.
    pub clients: u32,
    /// Times that each writes its file and reads it.
    pub rounds: u32,
    /// MiB of a file.
    pub mib: u32,
}

/// The link: when it is free again.
#[derive(Default)]
struct Link(Cell<Ps>);

impl Link {
    /// A message goes over the link after those before it.
    fn pass(&self, task: &Task) {
        let now = Timed::clock();
        let done = self.0.get().max(now) + LINK;
        self.0.set(done);
        task.sleep(done - now);
    }
}

pub(super) fn test(desktop: &Rc<Desktop>, task: &Task, server: &Server) -> Result<(), NoMemory> {
    let names = Names::new(&desktop.memory, 0);
    let (daemons, screen) = desktop.step("boot", &names, || desktop.boot(task))?;
    let (left, link) = (Rc::new(Cell::new(server.clients)), Rc::new(Link::default()));
    let begin = Timed::clock();
    for _ in 0..server.clients {
        let (left, link, server) = (left.clone(), link.clone(), *server);
        desktop.start("afpd", move |desktop, task| {
            let ended = client(desktop, task, &server, &link);
            desktop.answer.borrow_mut().ended.push(Timed::clock() - begin);
            left.set(left.get() - 1);
            ended
        });
    }
    desktop.step("clients", &names, || {
        while left.get() > 0 {
            task.sleep(EVERY);
        }
        Ok(())
    })?;
    daemons.stop(desktop, task);
    screen.close(desktop, task, 0)
}

fn client(desktop: &Desktop, task: &Task, server: &Server, link: &Link) -> Result<(), NoMemory> {
    let vm = &desktop.memory.vm;
    let app = App::start(desktop, task, AFPD)?;
    for _ in 0..server.rounds {
        let pages = server.mib * 256;
        let file = vm.with(|state| state.mappings.create(Kind::File, pages));
        for is_write in [true, false] {
            let mut open = OpenFile::new(file);
            for message in 0..pages / MESSAGE {
                if message % USED.0 == 0 {
                    app.used(desktop, task, USED.1)?;
                }
                serve(desktop, task, &mut open, (message, is_write), link)?;
            }
        }
        let here = Here::new(&desktop.memory, task);
        task.syscall(|| mm::unlink(vm, &here, file));
    }
    app.close(desktop, task, 0)
}

/// A message comes and is written to the file, or is read from it and goes.
fn serve(
    desktop: &Desktop,
    task: &Task,
    open: &mut OpenFile,
    (message, is_write): (u32, bool),
    link: &Link,
) -> Result<(), NoMemory> {
    let memory = &desktop.memory;
    let here = Here::new(memory, task);
    if is_write {
        link.pass(task);
    }
    let done = task.syscall(|| {
        task.copy(MESSAGE * 4_096);
        (message * MESSAGE..(message + 1) * MESSAGE).all(|page| match is_write {
            true => mm::write(&memory.vm, &here, &memory.rules, open, page, page + 1, true).is_some(),
            false => mm::read(&memory.vm, &here, &memory.rules, open, page).is_some(),
        })
    });
    if !done {
        return Err(NoMemory);
    }
    if !is_write {
        link.pass(task);
    }
    Ok(())
}
