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

use crate::kernel::tally::{Failed, Outcome};
use crate::kernel::{Kernel, Task, WaitQueue, Waiting};
use crate::net::pipe::{Pipe, PipeMutex};
use crate::net::unix::{self, ReceiveQueue, Socket};
use crate::process::{Children, Kind};
use crate::programs::anchors::with_recorded_kernel;
use crate::record::Recorder;
use crate::setup::Setup;
use slablab_model::Ps;
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

/// The program's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hackbench {
    /// Groups.
    pub groups: u32,
    /// Senders of a group, and receivers.
    pub pairs: u32,
    /// Messages from each sender to each receiver.
    pub loops: u32,
    /// Bytes of a message.
    pub bytes: u32,
    /// Sockets or pipes.
    pub over: Over,
    /// Processes or threads.
    pub kind: Kind,
    /// Cycles that a task spends in its own program for each message.
    pub think: u64,
}

impl Default for Hackbench {
    /// The program's own defaults: 10 groups of processes over sockets, 100 loops.
    fn default() -> Self {
        Hackbench {
            groups: 10,
            pairs: 20,
            loops: 100,
            bytes: 100,
            over: Over::Sockets,
            kind: Kind::Process,
            think: 50,
        }
    }
}

impl Hackbench {
    /// Sizes by name: `quick`, `standard`, `full`.
    pub const SIZES: [(&'static str, u32, u32); 3] =
        [("quick", 2, 20), ("standard", 10, 100), ("full", 400, 200)];

    /// The parameters of a size.
    pub fn sized(size: &str) -> Option<Hackbench> {
        let (_, groups, loops) = Self::SIZES.into_iter().find(|(name, _, _)| *name == size)?;
        Some(Hackbench { groups, loops, ..Hackbench::default() })
    }

    /// Messages of a run.
    pub fn messages(&self) -> u64 {
        u64::from(self.groups) * u64::from(self.pairs) * u64::from(self.pairs) * u64::from(self.loops)
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
    hackbench: Hackbench,
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
        self.ready.get() == 2 * self.hackbench.pairs * self.hackbench.groups
    }

    fn end(&self, task: &Task, group: &Group) {
        group.left.set(group.left.get() - 1);
        if group.left.get() == 0 {
            group.connections.iter().for_each(|connection| connection.close(task));
        }
    }

    fn send(&self, task: &Task, group: &Group, sender: u32) {
        self.begin(task, group.number);
        for _ in 0..self.hackbench.loops {
            for connection in &group.connections {
                task.work(self.hackbench.think);
                connection.send(task, self.hackbench.bytes, sender);
            }
        }
        self.end(task, group);
    }

    /// # Panics
    /// If a message is lost or comes twice: each receiver gets `loops` messages of each sender.
    fn receive(&self, task: &Task, group: &Group, receiver: u32) {
        self.begin(task, group.number);
        let Hackbench { pairs, loops, bytes, think, .. } = self.hackbench;
        let connection = &group.connections[receiver as usize];
        let mut got = vec![0; pairs as usize];
        for _ in 0..pairs * loops {
            let mut left = bytes;
            while left > 0 {
                left -= connection.receive(task, left, |sender, part| got[sender as usize] += part);
            }
            task.work(think);
        }
        assert!(got.iter().all(|part| *part == loops * bytes), "receiver {receiver} got {got:?} bytes");
        self.end(task, group);
    }

    fn start_group(self: &Rc<Self>, main: &Task, children: &Rc<Children>, number: u32) {
        let pairs = self.hackbench.pairs;
        let connection = |at| Connection::new(main, self.hackbench.over, number * pairs + at);
        let connections = (0..pairs).map(connection).collect();
        let group = Rc::new(Group { number, connections, left: Cell::new(2 * pairs) });
        for worker in 0..2 * pairs {
            let (run, group) = (self.clone(), group.clone());
            children.start(main, self.hackbench.kind, move |task| {
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
        (0..self.hackbench.groups).for_each(|number| self.start_group(main, &children, number));
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

/// Runs the program.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
pub fn run(setup: &Setup, hackbench: &Hackbench, seed: u64) -> Result<Outcome, Failed> {
    run_recorded(setup, hackbench, seed, &Recorder::default())
}

/// Runs the program, and records its timed part.
///
/// # Errors
/// A machine that cannot be modelled; tasks that wait for ever; no memory.
pub fn run_recorded(
    setup: &Setup,
    hackbench: &Hackbench,
    seed: u64,
    recorder: &Recorder,
) -> Result<Outcome, Failed> {
    with_recorded_kernel(setup, seed, recorder, |kernel: &Rc<Kernel>| {
        let run = Rc::new(Run {
            hackbench: *hackbench,
            ready: Cell::new(0),
            all_ready: WaitQueue::default(),
            has_begun: Cell::new(false),
            begun: WaitQueue::default(),
        });
        let ended: Rc<RefCell<Option<Outcome>>> = Rc::default();
        let result = ended.clone();
        kernel.start(kernel.new_process(), None, move |main| {
            let mark = run.main(main);
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
