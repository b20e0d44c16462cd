//! Allocators side by side in one process.
//!
//! # Theory
//!
//! Two figures can be compared if they were measured in the same process, in turn, and in random order. So a
//! run consists of blocks. In each block every workload runs once on every contestant, in random order.
//! Changes between blocks (the CPU's clock, other load on the machine) then affect all contestants alike, and
//! ratios are computed inside blocks.
//!
//! ```text
//! patterns   workloads, each with its contestants         the programs
//!   subject    an allocator as a type, with its proof
//!   calls      the calls of a recorded program
//!   block      memory that frees itself
//!   contestants  the allocators of this build
//! memory     resident memory of a process                 the programs
//! process    CPU, page faults and peak of a process
//!   times      how long single calls take
//!   day        memory over the day of a service
//! programs   any program under preloaded allocators
//! own        engines that a program registers             what can run
//! child      runs one contestant in a child process
//! rig        blocks, order, samples                       the run
//! predicted  native costs beside those of the model       a run of its own
//! stats      medians, bootstrap intervals                 the report
//! report     rows: figures, ratios, false alarms
//!   doubts     when a machine was too busy for verdicts
//!   host       the machine, in words
//!   output     the answers
//! ```
//!
//! **A figure** is CPU time of the thread (or of all threads) per operation: the median over blocks, with a
//! bootstrap interval. **A ratio** is the figure of our allocator over that of the best peer in the same
//! block. **A proof** belongs to every sample: the allocator confirms that it served addresses of the
//! workload. **The twin** is our allocator a second time: a difference between the two comes from the rig.
//!
//! Deliberately absent: tuning of any allocator; and, but for the group `latency`, timing of single
//! operations, which costs more than the operations.

#[expect(unsafe_code, reason = "calls allocators")]
mod block;
pub mod calls;
pub mod child;
pub mod clock;
mod contestants;
pub mod costs;
pub mod day;
mod doubts;
mod engines;
#[expect(unsafe_code, reason = "links memory")]
mod freelist;
#[expect(unsafe_code, reason = "hands out memory")]
mod harness;
mod host;
pub mod memory;
pub mod output;
pub mod own;
pub mod patterns;
#[cfg(feature = "peers")]
#[expect(unsafe_code, reason = "asks allocators about addresses")]
mod peers;
pub mod predicted;
mod process;
pub mod programs;
#[expect(unsafe_code, reason = "asks the C library")]
mod proof;
pub mod random;
pub mod report;
pub mod rig;
pub mod stats;
pub mod subject;
pub mod threads;
pub mod times;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
