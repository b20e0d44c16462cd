//! What a checking tool supplies: words, fields, mutual exclusion, threads. Each kit is one file, in this
//! order.

use crate::explore::{Explored, Limits};
use slablab_platform::{Context, Field, Lock, Word};
use std::cell::Cell;
use std::fmt::Debug;

/// Something a thread is to do.
pub type Job = Box<dyn FnOnce()>;

/// The primitives of a checking tool.
pub trait Kit: Sized + Debug + 'static {
    /// A word that threads race on.
    type Word: Word;
    /// A word that the tool reports when nothing protects it.
    type Field: Field;
    /// Mutual exclusion, without a rank.
    type Mutex<T>: Lock<T>;

    /// Calls `f` with the state of the running thread.
    fn running<R>(f: impl FnOnce(&Running) -> R) -> R;
    /// Runs jobs at once, each on a thread of its own; comes back when all have ended.
    fn together(jobs: Vec<Job>);
    /// Runs `body` in every schedule within the limits; panics when one of them does.
    fn schedules(limits: Limits, body: impl Fn() + Send + Sync + 'static) -> Explored;
}

/// What a thread knows of itself.
#[derive(Debug)]
pub struct Running {
    /// The CPU it runs on.
    pub cpu: Cell<u16>,
    /// Where it runs.
    pub context: Cell<Context>,
    /// A bit for each level of lock it holds.
    pub held: Cell<u128>,
}

impl Running {
    /// A task on CPU 0 that holds nothing.
    pub const fn new() -> Running {
        Running { cpu: Cell::new(0), context: Cell::new(Context::Task), held: Cell::new(0) }
    }
}

impl Default for Running {
    fn default() -> Self {
        Running::new()
    }
}
