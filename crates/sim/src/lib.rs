//! The simulated kernel: the slab engines on a machine with clocks, and what allocates from them.
//!
//! | module | contents |
//! |---|---|
//! | [`heap`] | a kernel's slab caches, of any engine |
//! | [`paths`] | what an engine's operations cost beside the lines they touch, by release |
//! | [`micro`] | pairs, batches and frees on another CPU: what a microbenchmark would measure |
//! | [`ublk`] | block I/O of 2026: a null device in user space under io_uring |
//! | [`sched`] | scheduler policies by release: where a task runs, who preempts, what a CPU pulls |

#![forbid(unsafe_code)]

pub mod heap;
pub mod micro;
pub mod paths;
pub mod sched;
pub mod ublk;
