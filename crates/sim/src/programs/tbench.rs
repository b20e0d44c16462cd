//! tbench: clients that play a file server's load over TCP and loopback, each with a server process of its
//! own.
//!
//! ```text
//! main     start tbench_srv ── start the clients ── warm-up ── the window, in which bytes of reads and writes
//!          count ── tell the clients to end
//! client   connect ── draw an operation ── send its request ── receive its response
//! srv      wait for a connection ── start a server for it
//! server   receive the length of a request, then the rest ── send its response
//! ```
//!
//! Where a client and its server run is the scheduler's matter: a fork is placed where load is least at that
//! moment, and a wake-up may move a server to its client's CPU if both are in one node. So the order of the
//! forks counts: all clients are there before the first server, whose parent is the process that accepts
//! (from memory of tbench_srv.c).
//!
//! Sizes of requests and responses are those of dbench's `sockio.c`. The mix is that of the standard load,
//! from memory of dbench's summaries ([`MIX`]): the load's file names the operations one by one, which is not
//! built; here each is drawn by its share. Bytes of a read or a write, lengths of names and entries of a
//! folder are assumed ([`Operation::draw`]); that the program asks for TCP_NODELAY is from memory.

use super::measures::{self, KERNEL, LINES, with_kernel};
use super::program::{Estimate, Metric, Object, Observed, Program, Sample, US, ppm};
use super::tcp_measures;
use crate::kernel::tally::{self, Failed};
use crate::kernel::{Kernel, Mark, Task, WaitQueue, Waiting, locks_of};
use crate::locks::TcpSocket;
use crate::net::tcp::loopback::Loopback;
use crate::net::tcp::{self, End};
use crate::params::params;
use crate::process::{Children, Kind};
use crate::programs::anchors::with_tcp_kernel;
use crate::record::Recorder;
use crate::setup::Setup;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use slablab_model::MachineSpec;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        clients: u32 = [2, 8, 8], 1..=4_096, "clients, each with a connection and a server process of its own",
            "mmtests: 1 to twice the CPUs";
        warm_up_us: u64 = [10_000, 20_000, 1_000_000], 1_000..=100_000_000, "time before the window",
            "assumed";
        window_us: u64 = [20_000, 60_000, 120_000_000], 1_000..=200_000_000, "time that is counted",
            "mmtests: 120 s";
        think_cycles: u64 = [2_000], 0..=10_000_000,
            "cycles of a client in its own program for each operation: it reads a line of the load's file",
            "assumed";
        serve_cycles: u64 = [200], 0..=10_000_000,
            "cycles of a server in its own program for each operation", "assumed";
        tcp_percent: u32 = [100], 1..=10_000,
            "cycles of TCP beside system calls, allocator, copies, lines, wake-ups, percent of the machine's",
            "assumed";
    }
}

/// The program.
#[derive(Debug)]
pub enum Tbench {}

impl Program for Tbench {
    type Params = Params;

    const NAME: &'static str = "tbench";
    const ABOUT: &'static str =
        "clients that play a file server's load over TCP and loopback, each with a server process";
    const METRICS: &'static [Metric] = &METRICS;

    fn objects(release: Release) -> Vec<Object> {
        const SEGMENTS: &str =
            "2 and more for each operation: 1 for each 16,384 bytes, from 3.7 on for each 65,483";
        tcp_measures::objects(release, SEGMENTS)
    }

    fn ignores(cost: &str) -> bool {
        cost == "page_fault"
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// A pair of CPUs needs at least this long for an operation, and the host so long (measured).
        const LEAST_NS: u64 = 12_000;
        const HOST_NS: u64 = 20_000;
        let us = params.warm_up_us + params.window_us;
        let clients = u64::from(params.clients);
        let busy = clients.min(machine.cpu_node.len() as u64);
        let slabs = Estimate::of_operations(machine, 0, clients << 20);
        Estimate { host_ns: busy * (us * 1_000 / LEAST_NS) * HOST_NS, ..slabs }
    }

    /// A repeat draws when each client begins, its operations, and what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let outcome = run(setup, params, seed, recorder)?;
        Ok(Observed { sample: sample(&outcome), profile: Some(outcome.kernel.profile) })
    }
}

const METRICS: [Metric; 5 + KERNEL.len()] = with_kernel([
    Metric {
        name: "bytes_per_s",
        about: "data of reads and writes in a second; nothing else counts, as tbench counts",
        better: Some(Better::Higher),
        unit: "MB/s",
        per_unit: 1e6,
        decimals: 2,
    },
    Metric {
        name: "operations_per_s",
        about: "operations in a second, of all kinds",
        better: Some(Better::Higher),
        unit: "1/s",
        per_unit: 1.0,
        decimals: 0,
    },
    tcp_measures::ACKS,
    tcp_measures::LOCKS,
    LINES,
]);

fn sample(Outcome { kernel, bytes }: &Outcome) -> Sample {
    let per_s = |count: u64| ppm(count, kernel.elapsed / 1_000_000);
    let own = [
        ("bytes_per_s", per_s(*bytes)),
        ("operations_per_s", per_s(kernel.messages)),
        (tcp_measures::ACKS.name, tcp_measures::acks(kernel)),
        (tcp_measures::LOCKS.name, tcp_measures::locks(kernel)),
    ];
    measures::sample(&METRICS, kernel, &own)
}

/// An operation: its name, how many of them come with 1,000 creates, bytes of its request and of its
/// response, names in the request (each byte of a name is two bytes), and what else it carries.
pub type Row = (&'static str, u32, [u32; 2], u32, Carries);

/// What an operation carries beside names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Nothing.
    Nothing,
    /// Data to the server.
    Write,
    /// Data from the server.
    Read,
    /// Entries of a folder, 90 bytes each, from the server.
    Entries,
}

/// The operations. Sizes: dbench's `sockio.c`. Shares: from memory of dbench's summaries of the standard
/// load, relative to creates.
pub const MIX: [Row; 14] = [
    ("create", 1_000, [74, 87], 1, Carries::Nothing),
    ("close", 730, [47, 39], 0, Carries::Nothing),
    ("rename", 42, [47, 39], 2, Carries::Nothing),
    ("unlink", 200, [43, 39], 1, Carries::Nothing),
    ("query path", 900, [55, 71], 1, Carries::Nothing),
    ("query file", 160, [59, 71], 0, Carries::Nothing),
    ("query file system", 170, [59, 71], 0, Carries::Nothing),
    ("set info", 80, [71, 47], 0, Carries::Nothing),
    ("find", 350, [59, 39], 1, Carries::Entries),
    ("write", 500, [59, 55], 0, Carries::Write),
    ("read", 1_570, [59, 59], 0, Carries::Read),
    ("flush", 70, [41, 39], 0, Carries::Nothing),
    ("lock", 3, [51, 39], 0, Carries::Nothing),
    ("unlock", 3, [51, 39], 0, Carries::Nothing),
];

/// Bytes of the first word of a message, which tells its length.
const WORD: u32 = 4;

/// A drawn operation: bytes of the request, of the response, and of the data that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Bytes of the request.
    pub request: u32,
    /// Bytes of the response; 0 ends the connection.
    pub response: u32,
    /// Bytes that were read or written.
    pub counts: u32,
}

impl Operation {
    /// Draws one: `random(n)` is a number below `n`. Data is 4, 8, 16, 32 or 64 KiB, each as likely
    /// (assumed); a name has 20 to 60 bytes, a folder 1 to 19 entries (assumed).
    pub fn draw(mut random: impl FnMut(u64) -> u64) -> Operation {
        let all: u32 = MIX.iter().map(|row| row.1).sum();
        let mut at = random(all.into()) as u32;
        let chosen = MIX.iter().find(|row| match at.checked_sub(row.1) {
            None => true,
            Some(rest) => {
                at = rest;
                false
            }
        });
        let (_, _, [mut request, mut response], names, carries) = *chosen.expect("shares add up");
        (0..names).for_each(|_| request += 2 * (20 + random(41) as u32));
        let mut counts = 0;
        match carries {
            Carries::Nothing => {}
            Carries::Entries => response += 90 * (1 + random(19) as u32),
            Carries::Write | Carries::Read => counts = 4_096 << random(5),
        }
        match carries {
            Carries::Write => request += counts,
            Carries::Read => response += counts,
            _ => {}
        }
        Operation { request, response, counts }
    }
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The kernel's counts: times and operations of the window, caches and locks of the whole run.
    pub kernel: tally::Outcome,
    /// Bytes that were read and written in the window.
    pub bytes: u64,
}

/// What all tasks share.
struct Run {
    /// Connections that wait for a server, and tbench_srv, which waits for them.
    connected: RefCell<VecDeque<(u32, Rc<Connection>)>>,
    accepts: WaitQueue,
    tbench: Params,
    seed: u64,
    bytes: Cell<u64>,
    ends: Cell<bool>,
}

/// A client's connection to its server.
struct Connection {
    client: Rc<End>,
    server: Rc<End>,
    /// The seed of the client's operations: they are the same under every engine.
    load: u64,
    /// What the client asks for: the contents of the request.
    asked: Cell<Operation>,
}

impl Connection {
    fn receive(task: &Task, end: &End, bytes: u32) {
        let mut left = bytes;
        while left > 0 {
            left -= task.syscall(|| end.receive(task, left));
        }
    }

    fn client(&self, task: &Task, run: &Run) {
        let mut load = Pcg64Mcg::seed_from_u64(self.load);
        while !run.ends.get() {
            task.work(run.tbench.think_cycles);
            let operation = Operation::draw(|below| load.next_u64() % below);
            self.asked.set(operation);
            task.syscall(|| self.client.send(task, operation.request));
            Self::receive(task, &self.client, WORD);
            Self::receive(task, &self.client, operation.response - WORD);
            run.bytes.set(run.bytes.get() + u64::from(operation.counts));
            task.kernel.count_message();
        }
        self.asked.set(Operation::default());
        task.syscall(|| self.client.send(task, WORD));
    }

    fn server(&self, task: &Task, run: &Run) {
        loop {
            Self::receive(task, &self.server, WORD);
            let Operation { request, response, .. } = self.asked.get();
            if response == 0 {
                return;
            }
            Self::receive(task, &self.server, request - WORD);
            task.work(run.tbench.serve_cycles);
            task.syscall(|| self.server.send(task, response));
        }
    }
}

impl Run {
    fn start(self: &Rc<Run>, main: &Task, children: &Rc<Children>, loopback: &Rc<Loopback>) -> Vec<Rc<End>> {
        let run = self.clone();
        children.start(main, Kind::Process, move |task| run.accept(task));
        main.preemption_point();
        let start = |number: u32| {
            let (client, server) = tcp::pair(main, loopback, 2 * number, true);
            let load = self.seed << 16 | u64::from(number);
            let connection = Connection { client: client.clone(), server, load, asked: Cell::default() };
            let (run, connection) = (self.clone(), Rc::new(connection));
            children.start(main, Kind::Process, move |task| {
                task.call_it(|| format!("client {number}"));
                task.compute(task.kernel.random(1_000_000_000));
                run.connect(task, number, &connection);
                connection.client(task, &run);
            });
            main.preemption_point();
            client
        };
        (0..self.tbench.clients).map(start).collect()
    }

    /// A client's connection waits for tbench_srv.
    fn connect(&self, task: &Task, number: u32, connection: &Rc<Connection>) {
        task.syscall(|| {
            self.connected.borrow_mut().push_back((number, connection.clone()));
            self.accepts.wake_one(&task.kernel, false);
        });
    }

    /// tbench_srv: a process for each connection.
    fn accept(self: &Rc<Run>, task: &Task) {
        task.call_it(|| "tbench_srv".into());
        let servers = Rc::new(Children::default());
        for accepted in 0..self.tbench.clients {
            task.syscall(|| {
                while self.connected.borrow().is_empty() {
                    self.accepts.wait(task, Waiting { what: "for a connection, accepted", number: accepted });
                }
            });
            let Some((number, connection)) = self.connected.borrow_mut().pop_front() else { continue };
            let run = self.clone();
            servers.start(task, Kind::Process, move |task| {
                task.call_it(|| format!("server {number}"));
                connection.server(task, &run);
            });
            task.preemption_point();
        }
        task.syscall(|| servers.wait(task));
    }

    fn main(self: &Rc<Run>, main: &Task) -> (Mark, Outcome) {
        main.call_it(|| "main".into());
        let (start, loopback) = (main.kernel.mark(), Loopback::new());
        let children = Rc::new(Children::default());
        let connections = self.start(main, &children, &loopback);
        main.sleep(self.tbench.warm_up_us * US);
        let (mark, bytes) = (main.kernel.mark(), self.bytes.get());
        main.sleep(self.tbench.window_us * US);
        let outcome = Outcome { kernel: main.kernel.outcome(&mark), bytes: self.bytes.get() - bytes };
        self.ends.set(true);
        main.syscall(|| children.wait(main));
        connections.iter().for_each(|client| tcp::close(main, client));
        loopback.close(main);
        (start, outcome)
    }
}

/// Runs the program, and records it from the begin of the window on.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
pub fn run(setup: &Setup, tbench: &Params, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    with_tcp_kernel(setup, seed, recorder, tbench.tcp_percent, |kernel: &Rc<Kernel>| {
        let run = Rc::new(Run {
            connected: RefCell::default(),
            accepts: WaitQueue::default(),
            tbench: *tbench,
            seed,
            bytes: Cell::new(0),
            ends: Cell::new(false),
        });
        let ended: Rc<RefCell<Option<(Mark, Outcome)>>> = Rc::default();
        let result = ended.clone();
        kernel.start(kernel.new_process(), None, move |main| {
            let ended = run.main(main);
            *result.borrow_mut() = Some(ended);
        });
        kernel.run()?;
        let (start, mut outcome) = ended.borrow_mut().take().expect("main ended");
        let whole = kernel.outcome(&start);
        (outcome.kernel.caches, outcome.kernel.locks) = (whole.caches, whole.locks);
        outcome.kernel.locks.push(locks_of::<TcpSocket>());
        Ok(outcome)
    })
}
