//! Allocators side by side in one process.
//!
//! # Theory
//!
//! Two figures can be compared if they were measured in the same process, in turn, and nobody chose the order. So a run is
//! made of blocks: in each, every workload runs once on every contestant, in an order of chance. What changes from block to
//! block (the clock of the CPU, a neighbour) then falls on all alike, and ratios are taken inside blocks.
//!
//! ```text
//! patterns   workloads, each with its contestants         what is run
//!   subject    an allocator as a type, with its proof
//!   block      memory that frees itself
//!   contestants  the allocators of this build
//! memory     what a process holds, in a child each        what is run, apart
//! rig        blocks, order, samples                       how
//! stats      medians, bootstrap intervals                 what is said
//! report     rows: figures, ratios, false alarms
//!   output     text, JSON, CSV
//!   page       HTML
//! ```
//!
//! **A figure** is CPU time of the thread (of all threads, where there are several) per operation: the median over blocks,
//! with a bootstrap interval. **A ratio** is ours over the best peer's in the same block. **A proof** belongs to every sample:
//! the allocator is asked whether it served the addresses the workload got. **The twin** is ours a second time: what differs
//! between the two is the rig's.
//!
//! Deliberately absent: timing of single operations, which costs more than they do; any tuning of anybody.

#[expect(unsafe_code, reason = "calls allocators")]
mod block;
pub mod clock;
mod contestants;
mod engines;
#[expect(unsafe_code, reason = "links memory")]
mod freelist;
#[expect(unsafe_code, reason = "hands out memory")]
mod harness;
pub mod memory;
pub mod output;
pub mod page;
pub mod patterns;
#[cfg(feature = "peers")]
#[expect(unsafe_code, reason = "asks allocators about addresses")]
mod peers;
#[expect(unsafe_code, reason = "asks the C library")]
mod proof;
pub mod random;
pub mod report;
pub mod rig;
pub mod stats;
pub mod subject;
pub mod threads;
