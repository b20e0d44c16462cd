//! fio's example netio: one process sends over TCP and loopback, another receives.
//!
//! ```text
//! sender     write a block, until all is sent      receiver   read a block, until all is received
//! ```
//!
//! The time from the first write to the receiver's last read counts. fio's sender starts a second after its
//! receiver; that second is left out, as is fio's own measuring of each block beside `think`.

use super::measures::{self, KERNEL, LINES, with_kernel};
use super::program::{Estimate, Metric, Object, Observed, Program};
use super::tcp_measures;
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Mark, Task, locks_of};
use crate::locks::TcpSocket;
use crate::net::tcp::loopback::Loopback;
use crate::net::tcp::{self, End};
use crate::params::params;
use crate::process::{Children, Kind};
use crate::programs::anchors::with_tcp_kernel;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{MachineSpec, Ps};
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::cell::RefCell;
use std::rc::Rc;

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        block: u32 = [4_096], 1..=1_048_576, "bytes of a write, and the most of a read",
            "fio's example netio: bs=4k";
        mib: u64 = [8, 64, 4_096], 1..=1_048_576, "MiB that are sent",
            "fio's example netio today: 100 GiB, in 2009 less; scaled down here: times are of a MiB";
        think_cycles: u64 = [500], 0..=1_000_000,
            "cycles of a process in its own program for each block: fio takes the time of each", "assumed";
        tcp_percent: u32 = [100], 1..=10_000,
            "cycles of TCP beside system calls, allocator, copies, lines, wake-ups, percent of the machine's",
            "assumed";
    }
}

impl Params {
    /// What a run with these parameters sends.
    fn load(&self) -> Netio {
        let blocks = (self.mib << 20).div_ceil(self.block.into());
        Netio { block: self.block, blocks, think: self.think_cycles, tcp_percent: self.tcp_percent }
    }
}

/// The program, as blocks that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Netio {
    /// Bytes of a write, and the most of a read.
    pub block: u32,
    /// Blocks that are sent.
    pub blocks: u64,
    /// Cycles that a process spends in its own program for each block.
    pub think: u64,
    /// Percent of the machine's cycles of TCP.
    pub tcp_percent: u32,
}

impl Program for Netio {
    type Params = Params;

    const NAME: &'static str = "netio";
    const ABOUT: &'static str =
        "fio's netio: one process sends blocks over TCP and loopback, another receives them";
    const METRICS: &'static [Metric] = &METRICS;

    fn objects(release: Release) -> Vec<Object> {
        const SEGMENTS: &str =
            "1 for 4 blocks of 4,096 bytes or more, from 3.7 on for 16: blocks wait for others";
        tcp_measures::objects(release, SEGMENTS)
    }

    fn ignores(cost: &str) -> bool {
        cost == "page_fault"
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// A block on the host (measured).
        const BLOCK_NS: u64 = 10_000;
        let slabs = Estimate::of_operations(machine, 0, 8 << 20);
        Estimate { host_ns: params.load().blocks.saturating_mul(BLOCK_NS), ..slabs }
    }

    /// A repeat draws when the sender begins, lengths of pieces of work, and what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let outcome = run(setup, &params.load(), seed, recorder)?;
        let own = [
            ("mib_ps", outcome.elapsed / params.mib),
            ("elapsed_ps", outcome.elapsed),
            (tcp_measures::ACKS.name, tcp_measures::acks(&outcome)),
            (tcp_measures::LOCKS.name, tcp_measures::locks(&outcome)),
        ];
        let sample = measures::sample(&METRICS, &outcome, &own);
        Ok(Observed { sample, profile: Some(outcome.profile) })
    }
}

const METRICS: [Metric; 5 + KERNEL.len()] = with_kernel([
    Metric {
        name: "mib_ps",
        about: "time of a MiB, from the first write to the last read",
        better: Some(Better::Lower),
        unit: "us",
        per_unit: 1e6,
        decimals: 2,
    },
    Metric {
        name: "elapsed_ps",
        about: "time from the first write to the last read",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 4,
    },
    tcp_measures::ACKS,
    tcp_measures::LOCKS,
    LINES,
]);

/// The sender begins this long after its start, and up to as much later: the receiver waits for it by then.
const SETTLE: Ps = 2_000_000_000;

/// The counts when the first block is sent, and those until the last one is read.
type Counts = RefCell<(Option<Mark>, Option<Outcome>)>;

fn sender(task: &Task, netio: &Netio, end: &End, counts: &Counts) {
    task.call_it(|| "sender".into());
    task.sleep(SETTLE + task.kernel.random(SETTLE));
    counts.borrow_mut().0 = Some(task.kernel.mark());
    for _ in 0..netio.blocks {
        task.work(netio.think);
        task.syscall(|| end.send(task, netio.block));
    }
}

fn receiver(task: &Task, netio: &Netio, end: &End, counts: &Counts) {
    task.call_it(|| "receiver".into());
    let mut left = netio.blocks * u64::from(netio.block);
    while left > 0 {
        let most = left.min(netio.block.into()) as u32;
        left -= u64::from(task.syscall(|| end.receive(task, most)));
        task.work(netio.think);
        task.kernel.count_message();
    }
    let mark = counts.borrow_mut().0.take().expect("the sender began");
    counts.borrow_mut().1 = Some(task.kernel.outcome(&mark));
}

/// Runs the program, and records it from the first write on. Caches and locks are counted over the whole run.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
pub fn run(setup: &Setup, netio: &Netio, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    with_tcp_kernel(setup, seed, recorder, netio.tcp_percent, |kernel: &Rc<Kernel>| {
        let (netio, counts) = (*netio, Rc::new(Counts::default()));
        let (start, result) = (kernel.mark(), counts.clone());
        kernel.start(kernel.new_process(), None, move |main| {
            main.call_it(|| "main".into());
            let (children, loopback) = (Rc::new(Children::default()), Loopback::new());
            let (from, to) = tcp::pair(main, &loopback, 0, false);
            let (end, of_sender) = (from.clone(), counts.clone());
            children.start(main, Kind::Process, move |task| receiver(task, &netio, &to, &counts));
            children.start(main, Kind::Process, move |task| sender(task, &netio, &end, &of_sender));
            main.syscall(|| children.wait(main));
            tcp::close(main, &from);
            loopback.close(main);
        });
        kernel.run()?;
        let mut outcome = result.borrow_mut().1.take().expect("the receiver ended");
        let whole = kernel.outcome(&start);
        (outcome.caches, outcome.locks) = (whole.caches, whole.locks);
        outcome.locks.push(locks_of::<TcpSocket>());
        Ok(outcome)
    })
}
