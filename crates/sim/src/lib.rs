//! The simulated kernel: the slab engines on a machine with clocks, and what allocates from them.
//!
//! | module | contents |
//! |---|---|
//! | [`heap`] | a kernel's slab caches, of any engine |
//! | [`paths`] | what an engine's operations cost beside the lines they touch, by release |
//! | [`micro`] | pairs, batches and frees on another CPU: what a microbenchmark would measure |
//! | [`ublk`] | block I/O of 2026: a null device in user space under io_uring |
//! | [`kernel`] | tasks on CPUs: switches, wake-ups, ticks, deferred work |
//! | [`era`], [`objects`] | what differs between releases: rules of buffers; kernel objects and their sizes |
//! | [`unix`], [`udp`], [`tcp`], [`pipe`] | sockets and pipes between tasks |
//! | [`messages`], [`anchors`] | cycles of sends and receives; from measured times of one thread |
//! | [`block`] | block devices that complete by interrupt |
//! | [`disk`] | disks with seeks and rotation, request queues, elevators |
//! | [`locks`] | locks outside of the allocators |
//! | [`memory`] | page replacement with time, tasks and devices |
//! | [`files`] | paths, open files |
//! | [`ext2`] | where ext2 puts files: groups, inodes, blocks |
//! | [`placement`] | what changes from boot to boot: the starting state of caches and pages |
//! | [`process`] | what a fork and an exec allocate, and an exit frees |
//! | [`tally`], [`profile`] | what a run counts; where its time went |
//! | [`vm`] | mappings of a process: their objects, pages and locks |
//! | [`workloads`] | programs |
//! | [`pulse`] | how far runs are, for a reader on another thread |
//! | [`record`], [`trace`] | what a run records for a viewer; functions that allocations enter |
//! | [`sched`] | scheduler policies by release: where a task runs, who preempts, what a CPU pulls |

#![forbid(unsafe_code)]

pub mod anchors;
pub mod block;
pub mod disk;
pub mod era;
pub mod ext2;
pub mod files;
pub mod heap;
pub mod kernel;
pub mod locks;
pub mod memory;
pub mod messages;
pub mod micro;
pub mod objects;
pub mod paths;
pub mod pipe;
pub mod placement;
pub mod process;
pub mod profile;
pub mod pulse;
pub mod record;
pub mod sched;
pub mod tally;
pub mod tcp;
pub mod trace;
pub mod ublk;
pub mod udp;
pub mod unix;
pub mod vm;
pub mod workloads;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
