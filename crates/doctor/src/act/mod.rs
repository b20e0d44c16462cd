//! Where slab memory goes, what would help, and what this kernel lets its user do.
//!
//! ```text
//! examine               a State becomes a Report
//!   split::Split        each cache's bytes, adding up to slabinfo's Loss
//!     parked            bounds of the objects that are parked with CPUs
//!   meminfo::Meminfo    the sum, compared with /proc/meminfo's Slab
//!   since::History      growth against earlier snapshots
//!     together          which snapshots belong together
//!   growth::Grown       which caches grew together, under which names, and who holds them
//!   reclaim             who frees the objects of a cache
//!   verdict             the answer in one sentence
//!   rounding            what kmalloc's classes cost, by a recording
//!   findings            what is worth saying
//!     caches, machine   of caches, of the machine around them; since and rounding have theirs
//!     climbing, cgroups of growth; of memory cgroups
//!     trust             of the numbers themselves
//!     pasted            of a text: its messages, and what one moment tells
//!   actions             what can be done about it here
//!     knobs             what this kernel lets its user change
//!     predict           what a change would save
//! ```
//!
//! The doctor reads no file and no clock. Its input is [`State`].

pub mod actions;
pub mod knobs;
pub mod predict;
pub mod report;
pub mod verdict;
