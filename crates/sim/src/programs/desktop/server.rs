//! A file server of the same weeks: clients write a file over the network and read it back, again and again,
//! in memory that does not hold all files (R. Cohen, netatalk, 27 September 2001).
//!
//! The network is one link that all clients share. The mail does not tell its speed; with enough memory all
//! kernels move 12 MB/s, which is what a link of 100 Mbit/s carries.

use super::app::{App, Size};
use super::machine::{self, ESTIMATE, IN, KSWAPD, Machine, OUT, observed, seconds, swap};
use super::names::Names;
use super::{Desktop, Habits, NoMemory, Test};
use crate::kernel::Task;
use crate::kernel::tally::Failed;
use crate::memory::Here;
use crate::params::params;
use crate::programs::measures::{KERNEL, with_kernel};
use crate::programs::program::{Estimate, Metric, Object, Observed, Pair, Program};
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::disk::Disk;
use slablab_model::{MachineSpec, Ps, Timed};
use slablab_slabs::Release;
use slablab_vm::mappings::Kind;
use slablab_vm::mm::{self, OpenFile};
use slablab_vm::preset::Preset;
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

params! {
    /// The workload's parameters.
    pub struct Params {
        vm: Preset = machine::VM;
        memory_mib: u64 = machine::MEMORY;
        disk: Disk = machine::DISK;
        clients: u32 = [2, 5, 5], 1..=100, "clients",
            "R. Cohen, 27 September 2001: 5 clients, 10 times, 30 MB";
        rounds: u32 = [1, 10, 10], 1..=1_000, "times that a client writes its file and reads it",
            "R. Cohen, 27 September 2001: 5 clients, 10 times, 30 MB";
        file_mib: u32 = [30], 1..=1_024, "MiB of a file",
            "R. Cohen, 27 September 2001: 5 clients, 10 times, 30 MB";
    }
}

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

impl Program for Server {
    type Params = Params;

    const NAME: &'static str = "netatalk";
    const ABOUT: &'static str =
        "clients of a file server that write a file over one link and read it back, under a VM of 2.4";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[Pair {
        machine: "kulesa-2001",
        parameters: "memory_mib = 64\nclients = 2\nrounds = 1",
        why: "a file server whose memory does not hold the files",
    }];

    fn objects(_release: Release) -> Vec<Object> {
        machine::objects()
    }

    fn estimate(_machine: &MachineSpec, _params: &Params) -> Estimate {
        ESTIMATE
    }

    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let Params { vm, memory_mib, disk, clients, rounds, file_mib } = params;
        let machine = Machine { vm, memory_mib: *memory_mib, disk };
        let test = Test::Server(Server { clients: *clients, rounds: *rounds, mib: *file_mib });
        let answer = machine.run((setup, seed, recorder), (&test, None, Habits::USUAL))?;
        let mut own = vec![
            ("last_ps", answer.ended.last().copied().unwrap_or_default()),
            ("first_ps", answer.ended.first().copied().unwrap_or_default()),
        ];
        own.extend(swap(&answer));
        Ok(observed(&METRICS, answer, &own))
    }
}

const METRICS: [Metric; 5 + KERNEL.len()] = with_kernel([
    Metric { name: "last_ps", about: "time until the last client has done its work", ..seconds() },
    Metric { name: "first_ps", about: "time until the first client has done its work", ..seconds() },
    OUT,
    IN,
    KSWAPD,
]);

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
