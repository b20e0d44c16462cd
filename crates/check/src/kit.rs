//! The primitives of a checking tool: words, fields, mutual exclusion, threads. Each kit is one file, with
//! these parts in this order.

use slablab_platform::{Context, Field, Lock, Word};
use std::cell::Cell;
use std::fmt::Debug;

/// Limits of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// loom: the most preemptions in a schedule, that is, switches away from a thread that is able to run.
    pub preemptions: usize,
    /// shuttle: the number of schedules.
    pub executions: usize,
    /// shuttle: the seed of the schedules.
    pub seed: u64,
}

impl Limits {
    /// The limits of an ordinary test run: every schedule with two preemptions, or 1,000 random schedules.
    pub const QUICK: Limits = Limits { preemptions: 2, executions: 1_000, seed: 1 };
}

/// The result of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Complete executions of the body.
    pub executions: u64,
}

/// The work of one thread.
pub type Job = Box<dyn FnOnce()>;

/// The primitives of a checking tool.
pub trait Kit: Sized + Debug + 'static {
    /// A word that threads race on.
    type Word: Word;
    /// A word without races: the tool reports two accesses that no lock or ordering separates.
    type Field: Field;
    /// Mutual exclusion, without a rank.
    type Mutex<T>: Lock<T>;

    /// Calls `f` with the state of the running thread.
    fn running<R>(f: impl FnOnce(&Running) -> R) -> R;
    /// Runs each of `jobs` on a separate thread, all at once. Returns when all have ended.
    fn together(jobs: Vec<Job>);
    /// Runs `body` in every schedule within `limits`. Panics if `body` panics in one of them.
    fn schedules(limits: Limits, body: impl Fn() + Send + Sync + 'static) -> Explored;
}

/// The state of a running thread.
#[derive(Debug)]
pub struct Running {
    /// The CPU that the thread runs on.
    pub cpu: Cell<u16>,
    /// The context that the thread runs in.
    pub context: Cell<Context>,
    /// A bit for the level of each lock that the thread holds.
    pub held: Cell<u128>,
}

impl Running {
    /// A task on CPU 0 that holds no lock.
    pub const fn new() -> Running {
        Running { cpu: Cell::new(0), context: Cell::new(Context::Task), held: Cell::new(0) }
    }
}

impl Default for Running {
    fn default() -> Self {
        Running::new()
    }
}
