//! hackbench, as `perf bench sched messaging`: groups of 20 senders and 20 receivers.
//!
//! ```text
//! main       for each group: 20 connections, 20 receivers, 20 senders ── wait until all are ready
//!            start the clock ── wake all ── wait for all ── stop the clock
//! sender     ready ── wait to be woken ── loops times: a message of 100 bytes to each of the 20 receivers
//! receiver   ready ── wait to be woken ── read 20 x loops messages of 100 bytes
//! ```
//!
//! Forks are before the timed part, exits inside it. `hackbench 400 process 200` is 400 groups, 200 loops.

use super::measures::{KERNEL, sample, with_kernel};
use super::program::{Estimate, Metric, Object as Described, Observed, Pair, Program};
use crate::kernel::era::Era;
use crate::kernel::objects::{Object, Row};
use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use crate::net::pipe::{Pipe, PipeMutex};
use crate::net::unix::{self, ReceiveQueue, Socket};
use crate::params::{params, words};
use crate::process::{Children, Kind};
use crate::programs::anchors::with_recorded_kernel;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::{MachineSpec, Ps};
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Over what the messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// UNIX stream sockets.
    Sockets,
    /// Pipes.
    Pipes,
}

words! { Over { Sockets = "sockets", Pipes = "pipes" } }

params! {
    /// The program's parameters.
    #[derive(Copy, Eq)]
    pub struct Params {
        groups: u32 = [2, 10, 400], 1..=10_000, "groups of senders and receivers", "sched-messaging.c: 10";
        pairs: u32 = [20], 1..=1_000, "senders of a group, and receivers: each sender writes to each receiver",
            "sched-messaging.c: 20";
        loops: u32 = [20, 100, 200], 1..=1_000_000, "messages from each sender to each receiver",
            "sched-messaging.c: 100; the mails say 200, 2,000 and more";
        messages: u64 = [0], 0..=1_000_000_000_000,
            "messages of the whole run, which decide the loops, at least 1; 0: loops are given",
            "assumed; a mail's time that hardly changes with groups is a run of so many messages";
        before: u32 = [0], 0..=1_000, "whole runs of the program before the one that is timed",
            "mmtests runs each number of groups three times or more";
        bytes: u32 = [100], 1..=65_536, "bytes of a message", "sched-messaging.c: 100";
        over: Over, "what the messages go over: UNIX stream sockets or pipes", "sched-messaging.c: sockets";
        kind: Kind, "what senders and receivers are", "sched-messaging.c: processes";
        think_cycles: u64 = [50], 0..=1_000_000, "cycles of a task in its own program for each message",
            "assumed";
    }
}

impl Params {
    /// Loops, given or decided by the messages of the whole run.
    fn loops(&self) -> u32 {
        match self.messages {
            0 => self.loops,
            messages => (messages / self.messages_of(1)).clamp(1, 1_000_000) as u32,
        }
    }

    fn messages_of(&self, loops: u32) -> u64 {
        let pairs = u64::from(self.pairs);
        u64::from(self.groups).saturating_mul(pairs * pairs).saturating_mul(loops.into())
    }

    /// Messages of a run.
    pub fn all_messages(&self) -> u64 {
        self.messages_of(self.loops())
    }

    /// Senders and receivers.
    fn tasks(&self) -> u64 {
        u64::from(self.groups) * u64::from(self.pairs) * 2
    }
}

/// The program.
#[derive(Debug)]
pub enum Hackbench {}

impl Program for Hackbench {
    type Params = Params;

    const NAME: &'static str = "hackbench";
    const ABOUT: &'static str =
        "groups of 20 senders and 20 receivers that pass small messages over sockets or pipes";
    const METRICS: &'static [Metric] = &METRICS;
    const SUITE: &'static [Pair] = &[
        Pair {
            machine: "laptop",
            parameters: "over = [\"sockets\", \"pipes\"]",
            why: "small messages between processes on a small machine",
        },
        Pair { machine: "numa8", parameters: "", why: "CPUs whose node has no memory" },
        Pair { machine: "spr224", parameters: "groups = 5", why: "many CPUs, few of them busy" },
    ];

    fn objects(release: Release) -> Vec<Described> {
        let used = Object::ALL.into_iter().filter(|object| *object <= Object::Cred);
        let rows = used.filter_map(|object| object.row(Era { release }));
        let object = |row: &Row| Described {
            cache: row.name,
            bytes: row.bytes,
            per_operation: when(row.object).into(),
            source: row.source,
        };
        rows.map(object).collect()
    }

    fn check(_machine: &MachineSpec, params: &Params) -> Result<(), String> {
        match params.tasks() {
            ..=100_000 => Ok(()),
            tasks => Err(format!("groups and pairs make {tasks} tasks: expected at most 100000")),
        }
    }

    fn estimate(machine: &MachineSpec, params: &Params) -> Estimate {
        /// A message, and a task with its stack and its objects (measured).
        const MESSAGE_NS: u64 = 3_000;
        const TASK_NS: u64 = 200_000;
        const TASK_BYTES: u64 = 64 << 10;
        let tasks = params.tasks();
        let slabs = Estimate::of_operations(machine, 0, tasks * 32_768);
        Estimate {
            host_ns: params
                .all_messages()
                .saturating_mul(MESSAGE_NS)
                .saturating_add(tasks * TASK_NS)
                .saturating_mul(u64::from(params.before) + 1),
            host_bytes: slabs.host_bytes + tasks * TASK_BYTES,
        }
    }

    /// A repeat draws when each task begins, and what the scheduler draws.
    fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Observed, Failed> {
        let outcome = run(setup, params, seed, recorder)?;
        let own = [
            ("elapsed_ps", outcome.elapsed),
            ("message_ps", per_message(&outcome)),
            ("slab_bytes_boot", outcome.slab_bytes_booted),
            ("slab_bytes_end", outcome.slab_bytes.0),
            ("slab_bytes_left", outcome.slab_bytes.0.saturating_sub(outcome.slab_bytes_booted)),
        ];
        Ok(Observed { sample: sample(&METRICS, &outcome, &own), profile: Some(outcome.profile) })
    }
}

const METRICS: [Metric; 5 + KERNEL.len()] = with_kernel([
    Metric {
        name: "elapsed_ps",
        about: "time from the first message to the end of the last task",
        better: Some(Better::Lower),
        unit: "s",
        per_unit: 1e12,
        decimals: 4,
    },
    Metric {
        name: "message_ps",
        about: "that time over the number of messages",
        better: Some(Better::Lower),
        unit: "ns",
        per_unit: 1e3,
        decimals: 0,
    },
    Metric {
        name: "slab_bytes_end",
        about: "slab memory when the last task has ended",
        better: Some(Better::Lower),
        unit: "MiB",
        per_unit: 1_048_576.0,
        decimals: 1,
    },
    Metric {
        name: "slab_bytes_boot",
        about: "slab memory before the program starts",
        better: Some(Better::Lower),
        unit: "MiB",
        per_unit: 1_048_576.0,
        decimals: 1,
    },
    Metric {
        name: "slab_bytes_left",
        about: "slab memory when the last task has ended, beyond that before the program started",
        better: Some(Better::Lower),
        unit: "MiB",
        per_unit: 1_048_576.0,
        decimals: 1,
    },
]);

/// When a kernel object is allocated.
fn when(object: Object) -> &'static str {
    match object {
        Object::SkBuff => "1 for each message over sockets, with its data from kmalloc",
        Object::File | Object::Dentry => "2 for each connection",
        Object::SocketInode | Object::UnixSock => "2 for each connection over sockets",
        Object::PipeInode => "1 for each connection over pipes",
        Object::Task | Object::Pid | Object::Cred => "1 for each task",
        Object::Signal | Object::Sighand | Object::Files | Object::Fs | Object::Mm => "1 for each process",
        _ => "several for each process",
    }
}

/// One receiver's connection.
enum Connection {
    Sockets(Rc<Socket>, Rc<Socket>),
    Pipe(Box<Pipe>),
}

impl Connection {
    fn new(task: &Task, over: Over, number: u32) -> Connection {
        match over {
            Over::Sockets => {
                let (from, to) = unix::pair(task, 2 * number);
                Connection::Sockets(from, to)
            }
            Over::Pipes => Connection::Pipe(Box::new(Pipe::new(task, number))),
        }
    }

    fn send(&self, task: &Task, bytes: u32, tag: u32) {
        task.syscall(|| match self {
            Connection::Sockets(from, _) => from.send(task, bytes, tag),
            Connection::Pipe(pipe) => pipe.write(task, bytes, tag),
        });
    }

    fn receive(&self, task: &Task, bytes: u32, each: impl FnMut(u32, u32)) -> u32 {
        task.syscall(|| match self {
            Connection::Sockets(_, to) => to.receive(task, bytes, each),
            Connection::Pipe(pipe) => pipe.read(task, bytes, each),
        })
    }

    fn close(&self, task: &Task) {
        match self {
            Connection::Sockets(from, _) => unix::close(task, from),
            Connection::Pipe(pipe) => pipe.close(task),
        }
    }
}

/// What all tasks of a run share.
struct Run {
    params: Params,
    loops: u32,
    ready: Cell<u32>,
    all_ready: WaitQueue,
    has_begun: Cell<bool>,
    begun: WaitQueue,
}

/// One group.
struct Group {
    number: u32,
    connections: Vec<Connection>,
    /// Tasks that have not ended.
    left: Cell<u32>,
}

impl Run {
    fn new(params: Params) -> Rc<Run> {
        Rc::new(Run {
            params,
            loops: params.loops(),
            ready: Cell::new(0),
            all_ready: WaitQueue::default(),
            has_begun: Cell::new(false),
            begun: WaitQueue::default(),
        })
    }

    /// A worker is ready, and waits until all are.
    fn begin(&self, task: &Task, number: u32) {
        task.compute(task.kernel.random(20_000_000));
        task.syscall(|| {
            self.ready.set(self.ready.get() + 1);
            if self.all_are_ready() {
                self.all_ready.wake_one(&task.kernel, false);
            }
        });
        task.syscall(|| {
            if !self.has_begun.get() {
                self.begun.wait(task, Waiting { what: "to begin, group", number });
            }
        });
    }

    fn all_are_ready(&self) -> bool {
        self.ready.get() == 2 * self.params.pairs * self.params.groups
    }

    fn end(&self, task: &Task, group: &Group) {
        group.left.set(group.left.get() - 1);
        if group.left.get() == 0 {
            group.connections.iter().for_each(|connection| connection.close(task));
        }
    }

    fn send(&self, task: &Task, group: &Group, sender: u32) {
        self.begin(task, group.number);
        for _ in 0..self.loops {
            for connection in &group.connections {
                task.work(self.params.think_cycles);
                connection.send(task, self.params.bytes, sender);
            }
        }
        self.end(task, group);
    }

    /// # Panics
    /// If a message is lost or comes twice: each receiver gets `loops` messages of each sender.
    fn receive(&self, task: &Task, group: &Group, receiver: u32) {
        self.begin(task, group.number);
        let Params { pairs, bytes, think_cycles, .. } = self.params;
        let loops = self.loops;
        let connection = &group.connections[receiver as usize];
        let mut got = vec![0; pairs as usize];
        for _ in 0..pairs * loops {
            let mut left = bytes;
            while left > 0 {
                left -= connection.receive(task, left, |sender, part| got[sender as usize] += part);
            }
            task.work(think_cycles);
        }
        assert!(got.iter().all(|part| *part == loops * bytes), "receiver {receiver} got {got:?} bytes");
        self.end(task, group);
    }

    fn start_group(self: &Rc<Self>, main: &Task, children: &Rc<Children>, number: u32) {
        let pairs = self.params.pairs;
        let connection = |at| Connection::new(main, self.params.over, number * pairs + at);
        let connections = (0..pairs).map(connection).collect();
        let group = Rc::new(Group { number, connections, left: Cell::new(2 * pairs) });
        for worker in 0..2 * pairs {
            let (run, group) = (self.clone(), group.clone());
            children.start(main, self.params.kind, move |task| {
                let (role, at) =
                    if worker < pairs { ("receiver", worker) } else { ("sender", worker - pairs) };
                task.call_it(|| format!("{role} {number}.{at}"));
                if worker < pairs {
                    run.receive(task, &group, worker);
                } else {
                    run.send(task, &group, worker - pairs);
                }
            });
            main.preemption_point();
        }
    }

    fn main(self: &Rc<Self>, main: &Task) -> crate::kernel::Mark {
        main.call_it(|| "main".into());
        let children = Rc::new(Children::default());
        (0..self.params.groups).for_each(|number| self.start_group(main, &children, number));
        main.syscall(|| {
            if !self.all_are_ready() {
                self.all_ready.wait(main, Waiting { what: "for workers, ready", number: self.ready.get() });
            }
        });
        let mark = main.kernel.mark();
        main.syscall(|| {
            self.has_begun.set(true);
            self.begun.wake_all(&main.kernel, false);
        });
        main.syscall(|| children.wait(main));
        mark
    }
}

/// Runs the program, and records its timed part.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
pub fn run(setup: &Setup, params: &Params, seed: u64, recorder: &Recorder) -> Result<Outcome, Failed> {
    with_recorded_kernel(setup, seed, recorder, |kernel: &Rc<Kernel>| {
        let params = *params;
        let ended: Rc<RefCell<Option<Outcome>>> = Rc::default();
        let result = ended.clone();
        kernel.start(kernel.new_process(), None, move |main| {
            (0..params.before).for_each(|_| drop(Run::new(params).main(main)));
            let mark = Run::new(params).main(main);
            let mut outcome = main.kernel.outcome(&mark);
            outcome
                .locks
                .extend([crate::kernel::locks_of::<ReceiveQueue>(), crate::kernel::locks_of::<PipeMutex>()]);
            *result.borrow_mut() = Some(outcome);
        });
        kernel.run()?;
        Ok(ended.borrow_mut().take().expect("main ended"))
    })
}

/// Time for each message.
pub fn per_message(outcome: &Outcome) -> Ps {
    outcome.elapsed / outcome.messages.max(1)
}
