//! A machine's slab memory in numbers, without any judgement.
//!
//! ```text
//! measure             a State becomes Measured
//!   History           earlier snapshots, in the order of time; growth against them
//!     comparable      which snapshots belong together
//!     partial         which snapshots have a part of the caches
//!   Line              each cache: its bytes, its growth, who frees its objects
//!     Split           bytes that add up to slabinfo's Loss
//!       accounting    what the kernel keeps beside objects: cgroups, lines of code
//!       parked        bounds of the objects that are parked with CPUs
//!       EachSlab      of a recording: its slabs one by one
//!     Reclaim         who frees the objects of a cache
//!   Meminfo           the sum of the caches, compared with /proc/meminfo's Slab
//!   Grown             which caches grew together, and under which names
//!   Code              lines of code behind a cache's objects, by /proc/allocinfo
//!   Made              the module that made a cache
//!   Charged           memory cgroups
//!   CounterGrowth     memory of the kernel beside slabs that grew, by /proc/meminfo
//! Rounding            what kmalloc's classes cost, by a recording
//! alike               caches with nearly the same number of objects
//! ```
//!
//! Nothing here reads a file of the machine or a clock: the input is a [`State`](crate::state::State).

pub mod accounting;
pub(crate) mod alike;
pub mod allocator;
pub mod cgroups;
pub mod code;
mod comparable;
pub mod counters;
pub mod each;
pub mod grown;
pub mod held;
pub mod history;
pub mod holders;
mod line;
pub mod made;
mod measured;
pub mod meminfo;
pub mod parked;
pub mod partial;
pub mod reclaim;
pub mod rounding;
mod sort;
pub mod split;
mod vectors;

pub use line::{Line, named};
pub use measured::{Measured, Options, WORTH_BYTES, WORTH_PERCENT, measure};
pub use sort::SortKey;
