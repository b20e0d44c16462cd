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

use super::measures::{self, ELSEWHERE, FAST_ALLOCS, FAST_FREES, LINES, LOCK_WAIT, SWITCHES};
use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program, Sample, US, ppm};
use crate::kernel::era::Era;
use crate::kernel::objects::Object;
use crate::kernel::tally::{self, Failed};
use crate::kernel::{Kernel, Mark, Task, locks_of};
use crate::locks::TcpSocket;
use crate::net::tcp::loopback::Loopback;
use crate::net::tcp::{self, End};
use crate::net::udp::{ReceiveQueue, Receiver};
use crate::params::{Word, params, words};
use crate::process::{Children, Kind};
use crate::programs::anchors::with_recorded_kernel;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{Hardware, MachineSpec, Ps, Spent, Timed};
use slablab_platform::{CpuId, Event};
use slablab_slabs::Release;
use slablab_stats::table::Better;
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

words! {
    Test {
        Stream = "udp-stream",
        RequestResponse = "udp-rr",
        TcpStream = "tcp-stream",
        TcpRequestResponse = "tcp-rr",
    }
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

words! {
    Binding { SameCpu = "same-cpu", SameSocket = "same-socket", OtherSocket = "other-socket" }
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

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        test: Test,
            "udp-stream: the client sends, the server receives; udp-rr: one request and one response at a \
             time, of `bytes` bytes each; tcp-stream and tcp-rr: the same over TCP",
            "netperf's tests UDP_STREAM, UDP_RR, TCP_STREAM and TCP_RR";
        bytes: u32 = [64], 1..=60_000, "bytes of data of a datagram",
            "mmtests: 64 to 16384; Intel's UDP-U-4k: 4096; udp-rr: 1";
        binding: Binding, "the server's CPU; the client's is CPU 0",
            "N. Piggin, 16 January 2009: the three of its tables";
        rcvbuf: u32 = [0], 0..=1_073_741_824,
            "the server's SO_RCVBUF in bytes; 0 leaves the kernel's default",
            "Intel's UDP-U-4k: 32768; netperf's default: the kernel's";
        warm_up_us: u64 = [80_000, 100_000, 1_000_000], 0..=100_000_000,
            "time before the window. A client on the server's CPU sends for a whole slice first",
            "assumed: longer than two slices of 2.6.29";
        window_us: u64 = [10_000, 40_000, 10_000_000], 100..=100_000_000, "time that is counted",
            "netperf's default: 10 s, a full run's; mmtests and Intel: 60 s";
        think_cycles: u64 = [50], 0..=1_000_000, "cycles of a process in its own program for each datagram",
            "assumed";
    }
}

/// The program.
#[derive(Debug)]
pub enum Netperf {}

impl Program for Netperf {
    type Params = Params;

    const NAME: &'static str = "netperf";
    const ABOUT: &'static str =
        "a client that sends UDP datagrams, or over TCP, to a server on the same host, each on one CPU";
    const METRICS: &'static [Metric] = METRICS;
    const SUITE: &'static [Pair] = &[
        Pair {
            machine: "laptop",
            parameters: "binding = [\"same-cpu\", \"same-socket\"]\nbytes = 1024",
            why: "datagrams that one CPU or two allocate and free",
        },
        Pair {
            machine: "numa8-full",
            parameters: "binding = \"other-socket\"\nbytes = 1024",
            why: "datagrams that are freed on another socket",
        },
    ];

    fn objects(release: Release) -> Vec<Described> {
        let head = Object::SkBuff.row(Era { release }).map(|row| Described {
            cache: row.name,
            bytes: row.bytes,
            per_operation:
                "1 for each datagram: the client allocates it, the server frees it, or the client \
                            if it is lost"
                    .into(),
            source: row.source,
        });
        let data = Described {
            cache: "kmalloc of the data",
            bytes: 0,
            per_operation:
                "1 for each datagram: `bytes`, 64 of headers, in whole lines, and 320 of shared info".into(),
            source: "published: 128 bytes are of class 512, 1024 of 2048, 4096 of 8192; the headers are assumed",
        };
        head.into_iter().chain([data]).collect()
    }

    fn ignores(cost: &str) -> bool {
        cost == "page_fault"
    }

    fn check(machine: &MachineSpec, params: &Params) -> Result<(), String> {
        if params.binding != Binding::SameCpu && machine.cpu_node.len() < 2 {
            return Err(format!("binding = {}: the machine has one CPU", params.binding.word()));
        }
        let (rcvbuf, bytes) = (params.rcvbuf, params.bytes);
        // A datagram counts at most twice this: its data's class has at most twice the bytes.
        let least = bytes + 640;
        match rcvbuf == 0 || rcvbuf >= least {
            true => Ok(()),
            false => Err(format!("rcvbuf = {rcvbuf}: expected 0, or at least {least} for bytes = {bytes}")),
        }
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// A datagram takes at least this long on the client, and so long on the host (measured).
        const LEAST_NS: u64 = 700;
        const HOST_NS: u64 = 1_500;
        let us = params.warm_up_us + params.window_us;
        let slabs = Estimate::of_operations(machine, 0, 4 << 20);
        Estimate { host_ns: us * 1_000 / LEAST_NS * HOST_NS, ..slabs }
    }

    /// A repeat draws when the client begins, and the lengths of pieces of work.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let outcome = run(setup, params, seed, recorder)?;
        let sample = sample(&outcome, params.bytes);
        Ok(Observed { sample, profile: Some(outcome.kernel.profile) })
    }
}

const METRICS: &[Metric] = &[
    Metric {
        name: "received_bps",
        about: "data that is received in a second; udp-rr: data of responses",
        better: Some(Better::Higher),
        unit: "Mbit/s",
        per_unit: 1e6,
        decimals: 3,
    },
    Metric {
        name: "sent_bps",
        about: "data that the client sends in a second, lost or not",
        better: Some(Better::Higher),
        unit: "Mbit/s",
        per_unit: 1e6,
        decimals: 3,
    },
    Metric {
        name: "received_per_s",
        about: "datagrams that are received in a second; udp-rr: transactions",
        better: Some(Better::Higher),
        unit: "1/s",
        per_unit: 1.0,
        decimals: 0,
    },
    Metric::percent("lost_ppm", "datagrams that found the buffer full", Some(Better::Lower)),
    FAST_ALLOCS,
    FAST_FREES,
    ELSEWHERE,
    Metric { about: "part of the busy CPUs' time in waits for locks", ..LOCK_WAIT },
    Metric::each("locks_milli", "locks of the allocators taken for one datagram, SLUB's slab_lock too"),
    LINES,
    SWITCHES,
];

fn sample(outcome: &Outcome, bytes: u32) -> Sample {
    let Outcome { kernel, sent, received, lost } = outcome;
    let busy: u64 = kernel.spent.iter().flatten().sum();
    let waits: u64 = kernel.spent.iter().map(|spent| spent[Spent::LockWait as usize]).sum();
    // Locks and caches are counted over the whole run: so are the datagrams that they are divided by.
    // SLUB's slab_lock is a bit of a word, so it has no rank: its event counts it.
    let allocs = |cache: &str| kernel.cache(cache).map_or(0, |cache| cache.allocs);
    let heads = match allocs("skbuff_fclone_cache") {
        0 => allocs("skbuff_head_cache").max(1),
        segments => segments,
    };
    let ranked = kernel
        .locks
        .iter()
        .filter(|(name, _)| !name.starts_with("udp ") && !name.starts_with("tcp "))
        .map(|(_, times)| times.taken);
    let events = kernel.caches.iter().flat_map(|cache| &cache.events);
    let bits: u64 = events.filter(|(event, _)| *event == Event::LockSlab).map(|(_, count)| *count).sum();
    let per_s = |datagrams: u64| bits_per_second(datagrams, 1, kernel.elapsed) / 8;
    let own = [
        ("received_bps", bits_per_second(*received, bytes, kernel.elapsed)),
        ("sent_bps", bits_per_second(*sent, bytes, kernel.elapsed)),
        ("received_per_s", per_s(*received)),
        ("lost_ppm", ppm(*lost, *sent)),
        // Only two CPUs have work: of the time of all, waits would be a part of the idle CPUs' time too.
        (LOCK_WAIT.name, ppm(waits, busy)),
        ("locks_milli", (ranked.sum::<u64>() + bits) * 1_000 / heads),
    ];
    measures::sample(METRICS, kernel, &own)
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
    netperf: Params,
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
    fn new(kernel: &Kernel, netperf: &Params) -> Run {
        Run {
            netperf: *netperf,
            to_server: Receiver::new(kernel, 0, netperf.rcvbuf),
            to_client: Receiver::new(kernel, 1, netperf.rcvbuf),
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
        self.send_until(task, Timed::clock() + self.netperf.warm_up_us * US);
        let mark = (task.kernel.mark(), self.datagrams());
        self.send_until(task, Timed::clock() + self.netperf.window_us * US);
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
                task.work(self.netperf.think_cycles);
                if self.netperf.test.answers() {
                    task.syscall(|| end.send(task, bytes));
                }
            }
        }
    }

    fn send_until(&self, task: &Task, end: Ps) {
        while Timed::clock() < end {
            task.work(self.netperf.think_cycles);
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
            task.work(self.netperf.think_cycles);
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

/// Runs the program, and records it from the begin of the window on.
///
/// # Errors
/// A machine that cannot be modelled, or has no CPUs for the binding; a buffer that does not hold a datagram;
/// no memory.
pub fn run(setup: &Setup, netperf: &Params, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    let binding = netperf.binding;
    let Some((client, server)) = binding.cpus(&setup.hardware) else {
        return Err(Failed::Machine(format!("the machine has no two CPUs for the binding {binding:?}")));
    };
    with_recorded_kernel(setup, seed, recorder, |kernel: &Rc<Kernel>| {
        let run = Rc::new(Run::new(kernel, netperf));
        if !run.to_server.holds(kernel, netperf.bytes) {
            let (buffer, bytes) = (netperf.rcvbuf, netperf.bytes);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_needs_cpus_and_a_datagram_a_buffer() {
        #[track_caller]
        fn check(cpus: u16, binding: Binding, [rcvbuf, bytes]: [u32; 2], expected: Result<(), &str>) {
            let machine = MachineSpec::uniform(cpus, 1, 1 << 30);
            let params = Params { binding, rcvbuf, bytes, ..Params::default() };
            let found = Netperf::check(&machine, &params);
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text));
        }
        check(1, Binding::SameCpu, [0, 60_000], Ok(()));
        check(2, Binding::SameSocket, [32_768, 4_096], Ok(()));
        let one = "binding = other-socket: the machine has one CPU";
        check(1, Binding::OtherSocket, [0, 64], Err(one));
        let small = "rcvbuf = 4096: expected 0, or at least 4736 for bytes = 4096";
        check(2, Binding::SameSocket, [4_096, 4_096], Err(small));
    }

    #[test]
    fn objects_are_those_of_the_release() {
        let bytes = |minor, patch| Netperf::objects(Release::new(2, minor, patch))[0].bytes;
        assert_eq!([bytes(4, 0), bytes(6, 29)], [160, 232]);
    }
}
