//! Time: the clock, where code runs, and work that is done later.

use crate::{CpuId, Topology};

/// The clock and deferred work.
pub trait Time: Topology {
    /// Nanoseconds since some start; never goes back.
    fn now() -> u64;
    /// The context this code runs in.
    fn context() -> Context;
    /// Queues `work` for `cpu`, due after `delay_ns`. The program that assembled the world takes due work and
    /// hands it to the engine. A work that already waits on that CPU is not queued twice: its first deadline
    /// stays.
    fn defer(cpu: CpuId, delay_ns: u64, work: Work);
    /// Queues `work`, due after every reader that runs now has ended (RCU).
    fn after_grace_period(work: Work);
}

/// The context code runs in, and with it what the code may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A task; it may block.
    Task,
    /// A softirq: may not block, may be interrupted.
    Softirq,
    /// A hard interrupt.
    Hardirq,
    /// A non-maskable interrupt: may come between any two instructions.
    Nmi,
}

/// Deferred work: its kind, the cache it is for, and an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Work {
    /// What is to be done.
    pub kind: WorkKind,
    /// The number of the cache.
    pub cache: u32,
    /// The engine's own argument.
    pub argument: u64,
}

/// Kinds of deferred work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WorkKind {
    /// SLQB's visit of one CPU's queues every three seconds, SLAB's visit of one CPU's arrays every two.
    Reap,
    /// A slab whose readers have ended goes back to the page allocator.
    FreeSlab,
    /// A sheaf of objects whose readers have ended.
    FreeSheaf,
    /// An object whose readers have ended goes back to the heap.
    FreeObject,
}
