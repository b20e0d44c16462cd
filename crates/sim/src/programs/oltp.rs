//! Two databases.
//!
//! ```text
//! direct    a process computes ── submits an asynchronous read (kiocb, dio, bio, request, command, list)
//!           ── sleeps ── the interrupt, on the next CPU in its turn, frees all of these and wakes it
//!           every third transaction writes the log
//! cached    a client sends a query over a socket ── the server's thread computes ── sends the rows
//!           the last query of a transaction appends to the log's file, and waits for the disk
//! ```
//!
//! *direct* is Intel's: a commercial database with its pages in huge pages and hundreds of disks, whose CPUs
//! are busy. *cached* is sysbench's with mysql: all pages are in the server's memory. A server's thread has
//! one connection. All counts are assumed but where the parameters' documentation says more.

use super::measures::rows;
use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program, US};
use super::repeat::{Repeat, Repeats};
use super::repeated::{self, METRICS};
use crate::block::{self, Affinity, Device, Disk, Io, Pending};
use crate::fs::files::{self, Entry, FileTable, Files};
use crate::kernel::objects::Object;
use crate::kernel::tally::Failed;
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use crate::net::unix::{self, ReceiveQueue, Socket};
use crate::params::{params, words};
use crate::process::Kind;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{Access, LockTimes, MachineSpec, Ps, Timed};
use slablab_slabs::Release;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Asynchronous direct reads from many disks.
    Direct,
    /// Clients and a server that has all its pages in memory.
    Cached,
}

words! { Form { Direct = "direct", Cached = "cached" } }

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        form: Form,
            "direct: Intel's, reads from disks, interrupts on every CPU in its turn; cached: sysbench's, \
             queries over UNIX sockets, all pages in memory, one write of the log for each transaction",
            "N. Piggin, 16 January 2009, and Zhang Yanmin, 9 March 2009, name them; forms from memory";
        tasks: u32 = [384], 1..=10_000, "processes of the database, or clients; not pinned",
            "direct: assumed, enough to keep 8 CPUs busy; sysbench: 8 to 128 (Zhang Yanmin)";
        steps: u32 = [10], 1..=1_000, "reads of a transaction, or its queries",
            "assumed; sysbench's complex transactions have 18 to 20";
        user_us: u64 = [150], 0..=1_000_000, "CPU time of the database for a read or a query",
            "assumed: tens of thousands of reads a second and socket, 75 % of the CPU's time in user mode";
        latency_us: u64 = [7_000], 1..=1_000_000, "time of a disk's request", "disks of 2009: 5 to 10 ms";
        warm_up_us: u64 = [100_000, 200_000, 1_000_000], 0..=100_000_000, "time before the window",
            "assumed: several transactions";
        window_us: u64 = [200_000, 1_000_000, 60_000_000], 10..=100_000_000, "time that is counted",
            "assumed; the real ones run for minutes";
    }
}

impl Params {
    fn repeat(&self) -> Repeat {
        repeated::window(self.tasks, Kind::Process, 0, [self.warm_up_us, self.window_us])
    }
}

impl Program for Oltp {
    type Params = Params;

    const NAME: &'static str = "oltp";
    const ABOUT: &'static str =
        "a database: processes with asynchronous direct reads of many disks, or clients and a server";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[Pair {
        machine: "laptop",
        parameters: "form = [\"direct\", \"cached\"]\ntasks = 64\nwarm_up_us = 50000\nwindow_us = 100000",
        why: "block I/O that other CPUs complete; queries over sockets",
    }];

    fn objects(release: Release) -> Vec<Described> {
        const READ: &str =
            "direct: 1 for each read; the submitter allocates it, the interrupt's CPU frees it";
        let objects = [
            (Object::Kiocb, READ),
            (Object::Dio, READ),
            (Object::Bio, READ),
            (Object::Request, READ),
            (Object::ScsiCommand, READ),
            (Object::ScatterList, READ),
            (Object::SkBuff, "cached: 2 for each query, with data from kmalloc"),
            (Object::JournalHandle, "cached: 1 for each transaction"),
        ];
        rows(release, &objects)
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        let (steps, tasks) = (u64::from(params.steps), u64::from(params.tasks));
        let least_ns = steps * (params.user_us * 1_000 + 5_000);
        let busy = tasks.min(machine.cpu_node.len() as u64);
        let us = params.warm_up_us + params.window_us;
        let transactions = busy.saturating_mul(us * 1_000) / least_ns;
        let slabs = Estimate::of_operations(machine, 0, 16 << 20);
        // A read or a query takes 15 us, and its computing a hundredth of its time (measured).
        let host_ns = transactions.saturating_mul(steps * (15_000 + params.user_us * 10));
        Estimate { host_ns, host_bytes: slabs.host_bytes + tasks * (64 << 10) }
    }

    /// A repeat draws the lengths of pieces of work, and what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        repeated::run(setup, &params.repeat(), seed, recorder, &[], |kernel| Oltp::new(kernel, *params))
    }
}

/// Bytes of a kiocb, and of a dio, that a submission writes (assumed).
const KIOCB: u32 = 240;
const DIO: u32 = 256;
/// Bytes of a dio before it had a cache (assumed).
const OLD_DIO: u32 = 720;
/// Cycles of an asynchronous submission, and of its end, beside block layer, allocator and lines (assumed).
const SUBMIT: u64 = 900;
const END: u64 = 400;
/// Bytes of a page of the database, and of a write of the log (assumed).
const PAGE: Io = Io { bytes: 8_192, bios: 1 };
const LOG: Io = Io { bytes: 16_384, bios: 1 };
/// Bytes of a query, and of the rows that it returns (assumed).
const QUERY: u32 = 100;
const ROWS: u32 = 1_000;
/// The tag of a query that ends a transaction, and of the message that ends a connection.
const COMMIT: u32 = 1;
const QUIT: u32 = 2;

/// The database: its disks, and what its server's threads share.
pub struct Oltp {
    params: Params,
    data: Rc<Device>,
    log: Rc<Device>,
    transactions: Cell<u64>,
    server: Rc<Server>,
}

/// The server of clients.
struct Server {
    mm: u32,
    files: Rc<Files>,
    /// The log's folder and file; the first connection makes them.
    log: RefCell<Option<[Rc<Entry>; 2]>>,
    connections: Cell<u32>,
    user: Ps,
    device: Rc<Device>,
}

/// A client's connection: its socket, and the end of its thread in the server.
pub struct Connection {
    socket: Rc<Socket>,
    ended: Rc<(Cell<bool>, WaitQueue)>,
}

impl Oltp {
    /// A database of these parameters.
    pub fn new(kernel: &Kernel, params: Params) -> Oltp {
        // A thousand disks for the data: no request waits for another.
        let many = Disk { latency: params.latency_us * US, kib: 10_000_000, disks: 1_000, requests: 100_000 };
        let one = Disk { latency: 500_000_000, disks: 1, requests: 128, ..many };
        let log = Device::new(1, one, Affinity::Turns);
        let server = Server {
            mm: kernel.new_process(),
            files: Rc::default(),
            log: RefCell::default(),
            connections: Cell::new(0),
            user: params.user_us * US,
            device: log.clone(),
        };
        let data = Device::new(0, many, Affinity::Turns);
        Oltp { params, data, log, transactions: Cell::new(0), server: Rc::new(server) }
    }

    /// An asynchronous direct read or write, and the wait for it.
    fn direct(&self, task: &Task, device: &Rc<Device>, io: Io) {
        let ended = Rc::new((Cell::new(false), WaitQueue::default()));
        let at_end = ended.clone();
        task.syscall(|| {
            task.work(SUBMIT);
            let kiocb = task.alloc(Object::Kiocb);
            let dio = match Object::Dio.row(task.kernel.era) {
                Some(_) => task.alloc(Object::Dio),
                None => task.alloc_bytes(OLD_DIO),
            };
            task.touch(&kiocb, KIOCB, Access::Write);
            task.touch(&dio, DIO, Access::Write);
            device.submit(task, io, move |kernel| {
                Timed::cycles(END);
                for held in [dio, kiocb] {
                    Timed::touch(held.address, 64, Access::Write);
                    kernel.free(held);
                }
                at_end.0.set(true);
                at_end.1.wake_one(kernel, false);
            });
        });
        task.syscall(|| {
            if !ended.0.get() {
                ended.1.wait(task, Waiting { what: "for a read", number: 0 });
            }
        });
    }

    fn direct_transaction(&self, task: &Task) {
        /// One write of the log serves so many transactions.
        const GROUP: u64 = 3;
        for _ in 0..self.params.steps {
            task.compute(self.params.user_us * US);
            self.direct(task, &self.data, PAGE);
        }
        self.transactions.set(self.transactions.get() + 1);
        if self.transactions.get().is_multiple_of(GROUP) {
            self.direct(task, &self.log, LOG);
        }
    }

    fn cached_transaction(&self, task: &Task, connection: &Connection) {
        for step in 1..=self.params.steps {
            let tag = if step == self.params.steps { COMMIT } else { 0 };
            task.syscall(|| connection.socket.send(task, QUERY, tag));
            let mut left = ROWS;
            while left > 0 {
                left -= task.syscall(|| connection.socket.receive(task, left, |_, _| ()));
            }
        }
    }
}

impl Server {
    /// A thread with one connection.
    fn serve(&self, task: &Task, socket: &Socket) {
        task.call_it(|| "server".into());
        let table = FileTable::new(&self.files);
        let entry = self.log(task);
        let file = task.syscall(|| table.open(task, &entry)).expect("the log exists");
        loop {
            let mut query = 0;
            let mut left = QUERY;
            while left > 0 {
                left -= task.syscall(|| socket.receive(task, left, |tag, _| query = tag));
            }
            if query == QUIT {
                break;
            }
            task.compute(self.user);
            if query == COMMIT {
                task.syscall(|| file.overwrite(task, 512));
                let pending = Rc::new(Pending::default());
                task.syscall(|| {
                    pending.submit(task, &self.device, Io { bytes: 4_096, bios: 1 });
                    pending.wait(task);
                });
            }
            task.syscall(|| socket.send(task, ROWS, 0));
        }
        task.syscall(|| table.close(task, file));
        drop(entry);
        self.end(task);
    }

    fn log(&self, task: &Task) -> Rc<Entry> {
        let made = self.log.borrow().clone();
        if let Some([_, log]) = made {
            return log;
        }
        let root = Entry::root(task);
        let log = root.create(task);
        // Another thread may have been faster while this one allocated.
        let [_, winner] = self.log.borrow_mut().get_or_insert_with(|| [root.clone(), log.clone()]).clone();
        if !Rc::ptr_eq(&winner, &log) {
            [log, root].into_iter().for_each(|entry| entry.forget(task));
        }
        winner
    }

    fn end(&self, task: &Task) {
        self.connections.set(self.connections.get() - 1);
        if self.connections.get() == 0 {
            let log = self.log.borrow_mut().take();
            let [root, log] = log.expect("a thread made the log");
            [log, root].into_iter().for_each(|entry| entry.forget(task));
        }
    }
}

impl Repeats for Oltp {
    type Process = Option<Connection>;

    /// A client's connection, and the server's thread for it.
    fn process(&self, task: &Task) -> Option<Connection> {
        task.unpin();
        if self.params.form == Form::Direct {
            return None;
        }
        let number = self.server.connections.get();
        self.server.connections.set(number + 1);
        let (socket, other) = unix::pair(task, 2 * number);
        let ended = Rc::new((Cell::new(false), WaitQueue::default()));
        let (server, at_end) = (self.server.clone(), ended.clone());
        task.kernel.start(self.server.mm, Some(task.id), move |thread| {
            server.serve(thread, &other);
            at_end.0.set(true);
            at_end.1.wake_one(&thread.kernel, false);
        });
        Some(Connection { socket, ended })
    }

    fn operation(&self, task: &Task, process: &Option<Connection>) -> u64 {
        match process {
            None => self.direct_transaction(task),
            Some(connection) => self.cached_transaction(task, connection),
        }
        1
    }

    fn end(&self, task: &Task, process: Option<Connection>) {
        let Some(Connection { socket, ended }) = process else { return };
        task.syscall(|| socket.send(task, QUERY, QUIT));
        task.syscall(|| {
            if !ended.0.get() {
                ended.1.wait(task, Waiting { what: "for the server's thread", number: 0 });
            }
        });
        unix::close(task, &socket);
    }

    fn locks(&self) -> Vec<(&'static str, LockTimes)> {
        let own = [block::locks(), crate::kernel::locks_of::<ReceiveQueue>()];
        files::locks().into_iter().chain(own).collect()
    }
}
