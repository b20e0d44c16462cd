//! The simulated kernel: the slab engines on a machine with clocks, and what allocates from them.
//!
//! | module | contents |
//! |---|---|
//! | [`setup`] | what every run takes: a machine, and the engine on it |
//! | [`sched`] | scheduler policies by release: where a task runs, who preempts, what a CPU pulls |
//! | [`locks`] | locks outside of the allocators |
//! | [`heap`] | a kernel's slab caches, of any engine; prices of their paths, starting states |
//! | [`recorded`] | a recording as the tasks of a closed program |
//! | [`params`] | parameters of programs: what each one is, may be and sets |
//! | [`record`] | what a run records for a viewer: events, where time went, functions that allocations enter |
//! | [`kernel`] | tasks on CPUs: switches, wake-ups, ticks, deferred work; what differs between releases |
//! | [`fs`] | paths and open files; where ext2 puts files |
//! | [`process`] | what a fork and an exec allocate, and an exit frees; mappings of a process |
//! | [`net`] | sockets and pipes between tasks |
//! | [`block`] | block devices: disks, request queues, elevators |
//! | [`memory`] | page replacement with time, tasks and devices |
//! | [`programs`] | what runs: microbenchmarks, benchmarks, builds, scripts |
//!
//! No module uses one below it in this list.

#![forbid(unsafe_code)]

pub mod block;
pub mod fs;
pub mod heap;
pub mod kernel;
pub mod locks;
pub mod memory;
pub mod net;
pub mod params;
pub mod process;
pub mod programs;
pub mod record;
pub mod recorded;
pub mod sched;
pub mod setup;

pub use heap::{paths, placement};
pub use kernel::{era, messages, objects, tally};
pub use record::{profile, pulse, slabs, trace};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
