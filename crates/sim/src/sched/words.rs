//! The words of the scheduler's interface.

use slablab_platform::CpuId;

/// A time or a span of time in picoseconds.
pub type Ps = u64;

/// Picoseconds in a microsecond.
pub const US: Ps = 1_000_000;

/// Picoseconds in a millisecond.
pub const MS: Ps = 1_000_000_000;

/// A task's number. Numbers of tasks that exited are given to new tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A set of CPUs, by the number that [`super::Scheduler::affinity`] gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Affinity(pub(crate) u16);

/// The scheduling class of a task (docs/theory/scheduler.md 3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// `SCHED_OTHER`.
    #[default]
    Normal,
    /// `SCHED_BATCH`: never preempts when it wakes up.
    Batch,
    /// `SCHED_IDLE`: weight 3; each waking task of another class preempts it.
    Idle,
}

/// What a new task is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// From -20 (more CPU time) to 19 (less).
    pub nice: i8,
    /// The scheduling class.
    pub class: Class,
    /// The number of the address space: threads of one process have the same. Numbers are small: 2.4 keeps a
    /// table of them.
    pub mm: u32,
    /// The CPUs that the task may run on; the default is all.
    pub affinity: Affinity,
    /// The slice the task asked for (EEVDF only), 0.1 ms to 100 ms; none is the policy's own.
    pub slice: Option<Ps>,
}

/// Why a task is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A new task; its parent runs on `from`.
    Fork {
        /// The parent's CPU.
        from: CpuId,
    },
    /// The task replaces its program: a good moment to move, because its caches are cold. The caller asks
    /// `select_cpu`, and if the CPU differs lets the task leave with [`Leave::Move`] and queues it there.
    Exec,
    /// A sleeping task wakes up.
    Wake {
        /// The CPU that runs the waker: the task that runs there, or an interrupt.
        from: CpuId,
        /// The waker says that it will sleep soon (pipes, UNIX sockets).
        sync: bool,
    },
    /// A task that left with [`Leave::Move`] is queued again.
    Move,
}

/// How the running task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It waits for a wake-up.
    Sleep,
    /// It is queued elsewhere at once.
    Move,
    /// It ends.
    Exit,
}

/// The answer of `select_cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The CPU.
    pub cpu: CpuId,
    /// CPUs that the kernel would have looked at.
    pub scanned: u32,
}

/// A CPU that has to schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kick {
    /// The CPU. If it is not the caller's, the kernel sends it an interrupt (to an idle CPU that polls: a
    /// write).
    pub cpu: CpuId,
    /// It is idle; else its running task is preempted.
    pub idle: bool,
}

/// The answer of `pick`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The task that runs now; none if the CPU is idle.
    pub task: Option<TaskId>,
    /// Entries of the run queue that the kernel would have looked at: the whole list under 2.4, 1 or 0 else.
    pub scanned: u32,
    /// Tasks whose counter was computed anew (2.4 only): a walk over all tasks of the system.
    pub recalculated: u32,
    /// Another CPU that should run the task that was preempted here (2.4 only).
    pub kick: Option<Kick>,
}

/// In which state a CPU balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It has just run out of tasks.
    Newly,
    /// A tick of an idle CPU.
    Idle,
    /// A tick of a CPU that runs a task.
    Busy,
}

/// The answer of `balance`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Tasks that were moved to the CPU.
    pub moved: u32,
    /// Groups, CPUs and queued tasks that the kernel would have looked at.
    pub scanned: u32,
    /// A moved task preempts the running one.
    pub preempts: bool,
}

/// A task that `balance` moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The task.
    pub task: TaskId,
    /// The CPU on whose queue it was.
    pub from: CpuId,
}
