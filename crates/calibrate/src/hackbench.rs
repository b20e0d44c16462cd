//! Hackbench: groups of senders and receivers, as in `perf bench sched messaging`.
//!
//! In each group 20 senders write to 20 receivers. Each receiver has its own socket pair or pipe. Every
//! sender writes one message of 100 bytes to each receiver of its group in turn, `loops` times. The measured
//! time begins with the byte that wakes all of them, and ends when the last of them has ended and was waited
//! for.
//!
//! All of them belong to a process of their own, the *runner*: [`run`] ends it, with all its threads and
//! children, if the watcher says so or something fails. Unlike perf, a receiver checks that it gets each
//! sender's messages once and in order: a number in each message, a few ns.

use crate::raw::Child;
use crate::rig::Watcher;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, kill_process_group, setpgid, setrlimit};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Senders of a group, and receivers.
pub const TASKS: usize = 20;
/// Bytes of a message.
pub const MESSAGE: usize = 100;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Groups of 20 senders and 20 receivers.
    pub groups: usize,
    /// Messages of each sender to each receiver.
    pub loops: usize,
    /// Threads instead of processes.
    pub threads: bool,
    /// Pipes instead of socket pairs.
    pub pipes: bool,
}

impl Options {
    /// Senders and receivers of all groups.
    pub fn tasks(&self) -> usize {
        2 * TASKS * self.groups
    }

    /// Messages of a run.
    pub fn messages(&self) -> u64 {
        (TASKS * TASKS * self.groups) as u64 * self.loops as u64
    }

    /// `processes` or `threads`.
    pub fn kind(&self) -> &'static str {
        if self.threads { "threads" } else { "processes" }
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Seconds from the wake byte to the last wait.
    pub seconds: f64,
    /// Messages that receivers got.
    pub messages: u64,
}

/// Runs hackbench once. `None` if the watcher stopped it.
///
/// # Errors
/// Files, processes or threads beyond this process's limits; a receiver that got a wrong message.
pub fn run(options: Options, watcher: &dyn Watcher) -> io::Result<Option<Outcome>> {
    let (mut answers, answer) = pipe()?;
    let runner = Child::fork(move || {
        // A group of its own, so that one signal ends all of it. A terminal's Ctrl-C goes to the parent
        // alone, which then ends the group.
        let _ = setpgid(None, None);
        let text = match measure(options) {
            Ok(outcome) => format!("{} {}", outcome.seconds, outcome.messages),
            Err(error) => format!("error {error}"),
        };
        i32::from((&answer).write_all(text.as_bytes()).is_err())
    })?;
    let _group = Group(&runner);
    // The runner has the other copy of the pipe's end: when it ends, so does the answer.
    let mut text = String::new();
    loop {
        let mut fds = [PollFd::new(&answers, PollFlags::IN)];
        let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        match poll(&mut fds, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) if !watcher.at(0, 1) => return Ok(None),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error.into()),
        }
    }
    answers.read_to_string(&mut text)?;
    let mut words = text.split(' ');
    match (words.next().map(str::parse), words.next().map(str::parse)) {
        (Some(Ok(seconds)), Some(Ok(messages))) => Ok(Some(Outcome { seconds, messages })),
        _ => Err(io::Error::other(match text.strip_prefix("error ") {
            Some(error) => error.to_string(),
            None => "the process that ran the groups was ended by another program".into(),
        })),
    }
}

/// Ends the runner's group of processes when it is dropped.
struct Group<'a>(&'a Child);

impl Drop for Group<'_> {
    fn drop(&mut self) {
        // The runner itself ends by its own `Child`. It may not have made its group yet; then it has no
        // children either, or they end with it.
        let _ = kill_process_group(self.0.pid(), Signal::KILL);
    }
}

/// The receiving and the sending end of a channel.
fn channel(pipes: bool) -> io::Result<(File, File)> {
    let (from, to): (OwnedFd, OwnedFd) = if pipes {
        let (from, to) = pipe()?;
        (from.into(), to.into())
    } else {
        let (from, to) = UnixStream::pair()?;
        (from.into(), to.into())
    };
    Ok((from.into(), to.into()))
}

/// What every sender and receiver waits at before the measured time.
struct Gate {
    ready: File,
    wake: File,
}

impl Gate {
    /// Says that this task is ready, and waits until all go.
    fn wait(&self) -> io::Result<()> {
        (&self.ready).write_all(&[0])?;
        let mut fds = [PollFd::new(&self.wake, PollFlags::IN)];
        // No task reads the byte, so that it wakes all.
        while poll(&mut fds, None) == Err(rustix::io::Errno::INTR) {}
        Ok(())
    }
}

/// Writes the messages of sender `number`.
fn send(number: usize, to: &[File], loops: usize, gate: &Gate) -> io::Result<()> {
    gate.wait()?;
    let mut message = [0; MESSAGE];
    message[..8].copy_from_slice(&(number as u64).to_ne_bytes());
    for count in 0..loops as u64 {
        message[8..16].copy_from_slice(&count.to_ne_bytes());
        for mut file in to {
            file.write_all(&message)?;
        }
    }
    Ok(())
}

/// Reads the messages of all senders of a group, and checks that each sender's come once and in order.
fn receive(mut from: &File, loops: usize, gate: &Gate) -> io::Result<u64> {
    gate.wait()?;
    let mut next = [0u64; TASKS];
    let mut message = [0; MESSAGE];
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
    for _ in 0..TASKS * loops {
        from.read_exact(&mut message)?;
        let (sender, count) = (word(&message[..8]) as usize, word(&message[8..16]));
        let expected = next.get_mut(sender).filter(|next| **next == count);
        *expected.ok_or_else(|| io::Error::other("a message was lost, or came twice"))? += 1;
    }
    Ok(next.iter().sum())
}

/// A sender or receiver that runs.
enum Task {
    Process(Child),
    Thread(thread::JoinHandle<io::Result<u64>>),
}

impl Task {
    /// Starts `work`, which returns the messages it received.
    fn start(threads: bool, work: impl FnOnce() -> io::Result<u64> + Send + 'static) -> io::Result<Task> {
        if threads {
            return thread::Builder::new().stack_size(64 << 10).spawn(work).map(Task::Thread);
        }
        // A process passes on that it failed, not how many it got: it fails unless it got all.
        Child::fork(|| i32::from(work().is_err())).map(Task::Process)
    }

    /// Waits for the end. Returns the messages received; `expected` for a process that did not fail.
    fn wait(self, expected: u64) -> io::Result<u64> {
        match self {
            Task::Process(child) => match child.wait()? {
                Some(0) => Ok(expected),
                _ => Err(io::Error::other("a sender or receiver failed: a message was lost, or memory")),
            },
            Task::Thread(thread) => {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a sender or receiver panicked")))
            }
        }
    }
}

/// Starts all tasks, wakes them, and waits for them.
fn measure(options: Options) -> io::Result<Outcome> {
    allow_files(options)?;
    let (ready, to_ready) = pipe()?;
    let (wake, mut to_wake) = pipe()?;
    let gate = Arc::new(Gate { ready: OwnedFd::from(to_ready).into(), wake: OwnedFd::from(wake).into() });
    let mut tasks = Vec::with_capacity(options.tasks());
    for _ in 0..options.groups {
        start_group(options, &gate, &mut tasks).map_err(|error| too_many(options, &tasks, &error))?;
    }
    // Each task writes one byte. A task that ends before it fails the run below.
    let mut left = vec![0; tasks.len()];
    (&ready).read_exact(&mut left)?;
    let start = Instant::now();
    to_wake.write_all(&[0])?;
    let mut messages = 0;
    for (task, expected) in tasks {
        messages += task.wait(expected)?;
    }
    Ok(Outcome { seconds: start.elapsed().as_secs_f64(), messages })
}

/// Tasks, each with the number of messages it receives.
type Tasks = Vec<(Task, u64)>;

fn start_group(options: Options, gate: &Arc<Gate>, tasks: &mut Tasks) -> io::Result<()> {
    let Options { loops, threads, .. } = options;
    let mut to = Vec::with_capacity(TASKS);
    for _ in 0..TASKS {
        let (from, sending) = channel(options.pipes)?;
        to.push(sending);
        let gate = gate.clone();
        let task = Task::start(threads, move || receive(&from, loops, &gate))?;
        tasks.push((task, (TASKS * loops) as u64));
    }
    let to = Arc::new(to);
    for number in 0..TASKS {
        let (gate, to) = (gate.clone(), to.clone());
        let task = Task::start(threads, move || send(number, &to, loops, &gate).map(|()| 0))?;
        tasks.push((task, 0));
    }
    Ok(())
}

/// Raises the soft limit of open files to what the groups need.
fn allow_files(options: Options) -> io::Result<()> {
    // Processes hold the files of one group at a time.
    let groups = if options.threads { options.groups } else { 1 };
    let needed = (2 * TASKS * groups + 64) as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|most| most < needed) {
        let most = limit.maximum.unwrap_or(0);
        return Err(io::Error::other(format!(
            "{groups} groups of threads need {needed} open files; the limit is {most}: see ulimit -Hn"
        )));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit })?;
    Ok(())
}

fn too_many(options: Options, tasks: &Tasks, error: &io::Error) -> io::Error {
    let hint = match error.kind() {
        ErrorKind::WouldBlock => ": see ulimit -u and the cgroup's pids.max",
        _ => "",
    };
    let (started, all, kind) = (tasks.len(), options.tasks(), options.kind());
    io::Error::other(format!("{started} of {all} {kind} were started: {error}{hint}"))
}
