//! netperf's tests of UDP and TCP over loopback, a client process and a server process, each on one CPU.
//!
//! ```text
//! UDP_STREAM   client: warm-up, then the window: send a datagram   server: receive datagrams
//! UDP_RR       client: warm-up, then the window: send a request ── wait for the response
//!              server: receive a request ── send the response
//! TCP_STREAM, TCP_RR   the same over a connection, which loses nothing
//! ```
//!
//! The client of UDP_STREAM never waits: a datagram that the server's buffer cannot hold is lost, and freed
//! on the client's CPU. After the window the client sends an end mark again and again, until the buffer
//! holds it.
//!
//! Not built: netperf's control connection, its statistics of confidence, its ring of send buffers.

use crate::kernel::tally::{self, Failed};
use crate::kernel::{Kernel, Mark, Task, locks_of};
use crate::locks::TcpSocket;
use crate::net::tcp::loopback::Loopback;
use crate::net::tcp::{self, End};
use crate::net::udp::{ReceiveQueue, Receiver};
use crate::process::{Children, Kind};
use crate::programs::anchors::with_recorded_kernel;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{Hardware, Ps, Timed};
use slablab_platform::CpuId;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A test of netperf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// `UDP_STREAM`: datagrams in one direction.
    Stream,
    /// `UDP_RR`: one request and one response at a time.
    RequestResponse,
    /// `TCP_STREAM`: writes in one direction.
    TcpStream,
    /// `TCP_RR`.
    TcpRequestResponse,
}

impl Test {
    /// Whether requests wait for responses.
    fn answers(self) -> bool {
        matches!(self, Test::RequestResponse | Test::TcpRequestResponse)
    }

    fn is_tcp(self) -> bool {
        matches!(self, Test::TcpStream | Test::TcpRequestResponse)
    }
}

/// The CPUs of client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// One CPU for both.
    SameCpu,
    /// Two cores of a socket.
    SameSocket,
    /// A core of each of two sockets.
    OtherSocket,
}

impl Binding {
    /// The CPUs of client and server: the client's is CPU 0, the server's the first that fits. None if the
    /// machine has no such CPU.
    pub fn cpus(self, hardware: &Hardware) -> Option<(CpuId, CpuId)> {
        let (core, socket) = (&hardware.core, &hardware.socket);
        let fits = |cpu: &usize| match self {
            Binding::SameCpu => true,
            Binding::SameSocket => socket[*cpu] == socket[0] && core[*cpu] != core[0],
            Binding::OtherSocket => socket[*cpu] != socket[0],
        };
        let server = (0..core.len()).find(fits)?;
        Some((CpuId(0), CpuId(server as u16)))
    }
}

/// The program's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Netperf {
    /// The test.
    pub test: Test,
    /// Bytes of a datagram; of a request and of a response.
    pub bytes: u32,
    /// The CPUs.
    pub binding: Binding,
    /// The receive buffer that `SO_RCVBUF` asks for; 0 takes the kernel's default.
    pub receive_buffer: u32,
    /// How long the client sends before the window begins. Under 2.6.29 a client that shares its CPU with
    /// the server sends for a whole slice, and loses most of it, before the two begin to alternate.
    pub warm_up: Ps,
    /// How long the client sends in the window, which is what counts.
    pub window: Ps,
    /// Cycles that a process spends in its own program for each datagram.
    pub think: u64,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The kernel's counts: times and messages of the window, caches and locks of the whole run.
    pub kernel: tally::Outcome,
    /// Datagrams that the client sent in the window.
    pub sent: u64,
    /// Datagrams that the server (UDP_STREAM) or the client (UDP_RR) received in the window.
    pub received: u64,
    /// Datagrams that found the server's buffer full in the window, and were freed by the client.
    pub lost: u64,
}

/// The tags of a datagram with data and of the end mark.
const DATA: u32 = 0;
const END: u32 = 1;
/// The client begins this long after its start, and up to as much later: the server waits for it by then.
const SETTLE: Ps = 2_000_000_000;
/// How long the client waits before it sends the end mark again.
const RETRY: Ps = 1_000_000_000;

/// What client and server share.
struct Run {
    netperf: Netperf,
    to_server: Receiver,
    to_client: Receiver,
    sent: Cell<u64>,
    answered: Cell<u64>,
    /// The connection of the TCP tests: the client's end and the server's.
    tcp: RefCell<Option<[Rc<End>; 2]>>,
    /// Bytes that the client sends over it, and whether these are all.
    tcp_bytes: Cell<u64>,
    tcp_ends: Cell<bool>,
    outcome: RefCell<Option<Outcome>>,
}

impl Run {
    fn new(kernel: &Kernel, netperf: &Netperf) -> Run {
        Run {
            netperf: *netperf,
            to_server: Receiver::new(kernel, 0, netperf.receive_buffer),
            to_client: Receiver::new(kernel, 1, netperf.receive_buffer),
            sent: Cell::new(0),
            answered: Cell::new(0),
            tcp: RefCell::default(),
            tcp_bytes: Cell::new(0),
            tcp_ends: Cell::new(false),
            outcome: RefCell::new(None),
        }
    }

    fn client(&self, task: &Task, cpu: CpuId) {
        task.pin(cpu);
        task.sleep(SETTLE + task.kernel.random(SETTLE));
        self.send_until(task, Timed::clock() + self.netperf.warm_up);
        let mark = (task.kernel.mark(), self.datagrams());
        self.send_until(task, Timed::clock() + self.netperf.window);
        *self.outcome.borrow_mut() = Some(self.outcome(&task.kernel, &mark));
        if self.netperf.test.is_tcp() {
            self.tcp_ends.set(true);
            self.tcp_bytes.set(self.tcp_bytes.get() + 1);
            task.syscall(|| self.end(0).send(task, 1));
            return;
        }
        while !task.syscall(|| self.to_server.send(task, 1, END)) {
            task.sleep(RETRY);
        }
    }

    /// The client's end of the connection, or the server's.
    fn end(&self, at: usize) -> Rc<End> {
        self.tcp.borrow().as_ref().expect("a TCP test has a connection")[at].clone()
    }

    /// One write, and its response if the test has one.
    fn send_tcp(&self, task: &Task) {
        let (end, bytes) = (self.end(0), self.netperf.bytes);
        self.tcp_bytes.set(self.tcp_bytes.get() + u64::from(bytes));
        task.syscall(|| end.send(task, bytes));
        let mut left = if self.netperf.test.answers() { bytes } else { 0 };
        while left > 0 {
            left -= task.syscall(|| end.receive(task, left));
        }
    }

    fn serve_tcp(&self, task: &Task) {
        let (end, bytes) = (self.end(1), self.netperf.bytes);
        let mut got = 0;
        loop {
            let before = got / u64::from(bytes);
            got += u64::from(task.syscall(|| end.receive(task, bytes)));
            if self.tcp_ends.get() && got == self.tcp_bytes.get() {
                return;
            }
            if got / u64::from(bytes) > before {
                task.kernel.count_message();
                task.work(self.netperf.think);
                if self.netperf.test.answers() {
                    task.syscall(|| end.send(task, bytes));
                }
            }
        }
    }

    fn send_until(&self, task: &Task, end: Ps) {
        while Timed::clock() < end {
            task.work(self.netperf.think);
            self.sent.set(self.sent.get() + 1);
            if self.netperf.test.is_tcp() {
                self.send_tcp(task);
                self.answered.set(self.answered.get() + 1);
                continue;
            }
            let sent = task.syscall(|| self.to_server.send(task, self.netperf.bytes, DATA));
            if sent && self.netperf.test == Test::RequestResponse {
                task.syscall(|| self.to_client.receive(task));
                self.answered.set(self.answered.get() + 1);
            }
        }
    }

    fn server(&self, task: &Task, cpu: CpuId) {
        task.pin(cpu);
        if self.netperf.test.is_tcp() {
            return self.serve_tcp(task);
        }
        while task.syscall(|| self.to_server.receive(task)).0 == DATA {
            task.work(self.netperf.think);
            if self.netperf.test == Test::RequestResponse {
                task.syscall(|| self.to_client.send(task, self.netperf.bytes, DATA));
            }
        }
    }

    /// Datagrams sent and lost, and requests answered, until now.
    fn datagrams(&self) -> [u64; 3] {
        [self.sent.get(), self.to_server.lost(), self.answered.get()]
    }

    fn outcome(&self, kernel: &Kernel, since: &(Mark, [u64; 3])) -> Outcome {
        let counts = kernel.outcome(&since.0);
        let now = self.datagrams();
        let [sent, lost, answered] = std::array::from_fn(|at| now[at] - since.1[at]);
        let received = match self.netperf.test {
            Test::Stream | Test::TcpStream => counts.messages,
            Test::RequestResponse | Test::TcpRequestResponse => answered,
        };
        Outcome { kernel: counts, sent, received, lost }
    }
}

/// Runs the program.
///
/// # Errors
/// A machine that cannot be modelled, or has no CPUs for the binding; a buffer that does not hold a datagram;
/// no memory.
pub fn run(setup: &Setup, netperf: &Netperf, seed: u64) -> Result<Outcome, Failed> {
    run_recorded(setup, netperf, seed, &Recorder::default())
}

/// Runs the program, and records it from the begin of the window on.
///
/// # Errors
/// A machine that cannot be modelled, or has no CPUs for the binding; a buffer that does not hold a datagram;
/// no memory.
pub fn run_recorded(
    setup: &Setup,
    netperf: &Netperf,
    seed: u64,
    recorder: &Recorder,
) -> Result<Outcome, Failed> {
    let binding = netperf.binding;
    let Some((client, server)) = binding.cpus(&setup.hardware) else {
        return Err(Failed::Machine(format!("the machine has no two CPUs for the binding {binding:?}")));
    };
    with_recorded_kernel(setup, seed, recorder, |kernel: &Rc<Kernel>| {
        let run = Rc::new(Run::new(kernel, netperf));
        if !run.to_server.holds(kernel, netperf.bytes) {
            let (buffer, bytes) = (netperf.receive_buffer, netperf.bytes);
            return Err(Failed::Machine(format!("a receive buffer of {buffer} holds no {bytes} bytes")));
        }
        let (start, of_tasks) = (kernel.mark(), run.clone());
        kernel.start(kernel.new_process(), None, move |main| {
            let (children, loopback) = (Rc::new(Children::default()), Loopback::new());
            let run = of_tasks.clone();
            let tcp = run.netperf.test.is_tcp();
            if tcp {
                let (client, server) = tcp::pair(main, &loopback, 2, run.netperf.test.answers());
                *run.tcp.borrow_mut() = Some([client, server]);
            }
            let of_main = run.clone();
            children.start(main, Kind::Process, move |task| run.server(task, server));
            children.start(main, Kind::Process, move |task| of_tasks.client(task, client));
            main.syscall(|| children.wait(main));
            if tcp {
                tcp::close(main, &of_main.end(0));
                loopback.close(main);
            }
        });
        kernel.run()?;
        let mut outcome = run.outcome.borrow_mut().take().expect("the client ended");
        let whole = kernel.outcome(&start);
        (outcome.kernel.caches, outcome.kernel.locks) = (whole.caches, whole.locks);
        outcome.kernel.locks.extend([locks_of::<ReceiveQueue>(), locks_of::<TcpSocket>()]);
        Ok(outcome)
    })
}

/// Bits of data that are received in a second. 0 without a window.
pub fn bits_per_second(datagrams: u64, bytes: u32, elapsed: Ps) -> u64 {
    let bits = u128::from(datagrams) * u128::from(bytes) * 8;
    (bits * 1_000_000_000_000 / u128::from(elapsed.max(1))) as u64
}
