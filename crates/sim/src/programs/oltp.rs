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

use super::repeat::{self, Program, Repeat};
use crate::block::{self, Affinity, Device, Disk, Io, Pending};
use crate::fs::files::{self, Entry, FileTable, Files};
use crate::kernel::objects::Object;
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use crate::net::unix::{self, ReceiveQueue, Socket};
use crate::process::Kind;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{Access, LockTimes, Ps, Timed};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

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

/// Which database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Asynchronous direct reads from many disks.
    #[default]
    Direct,
    /// Clients and a server that has all its pages in memory.
    Cached,
}

/// The program's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oltp {
    /// Tasks and time: processes of the database, or clients.
    pub repeat: Repeat,
    /// Which database.
    pub form: Form,
    /// Reads of a transaction, or queries.
    pub steps: u32,
    /// CPU time of a read's or a query's work in the database.
    pub user: Ps,
    /// Time of a disk's request.
    pub latency: Ps,
}

impl Default for Oltp {
    fn default() -> Self {
        Oltp {
            repeat: Repeat::default(),
            form: Form::Direct,
            steps: 10,
            user: 150_000_000,
            latency: 7_000_000_000,
        }
    }
}

/// The database: its disks, and what its server's threads share.
struct State {
    oltp: Oltp,
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
struct Connection {
    socket: Rc<Socket>,
    ended: Rc<(Cell<bool>, WaitQueue)>,
}

impl State {
    fn new(kernel: &Kernel, oltp: Oltp) -> State {
        // A thousand disks for the data: no request waits for another.
        let many = Disk { latency: oltp.latency, kib: 10_000_000, disks: 1_000, requests: 100_000 };
        let one = Disk { latency: 500_000_000, disks: 1, requests: 128, ..many };
        let log = Device::new(1, one, Affinity::Turns);
        let server = Server {
            mm: kernel.new_process(),
            files: Rc::default(),
            log: RefCell::default(),
            connections: Cell::new(0),
            user: oltp.user,
            device: log.clone(),
        };
        let data = Device::new(0, many, Affinity::Turns);
        State { oltp, data, log, transactions: Cell::new(0), server: Rc::new(server) }
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
        for _ in 0..self.oltp.steps {
            task.compute(self.oltp.user);
            self.direct(task, &self.data, PAGE);
        }
        self.transactions.set(self.transactions.get() + 1);
        if self.transactions.get().is_multiple_of(GROUP) {
            self.direct(task, &self.log, LOG);
        }
    }

    fn cached_transaction(&self, task: &Task, connection: &Connection) {
        for step in 1..=self.oltp.steps {
            let tag = if step == self.oltp.steps { COMMIT } else { 0 };
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

impl Program for State {
    type Process = Option<Connection>;

    /// A client's connection, and the server's thread for it.
    fn process(&self, task: &Task) -> Option<Connection> {
        task.unpin();
        if self.oltp.form == Form::Direct {
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

/// Runs the program, and records it. The outcome's messages are transactions.
///
/// # Errors
/// A machine that cannot be modelled; no memory.
pub fn run_recorded(setup: &Setup, oltp: &Oltp, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    let repeat = Repeat { kind: Kind::Process, ..oltp.repeat };
    repeat::run_recorded(setup, &repeat, seed, recorder, |kernel| State::new(kernel, *oltp))
}
