//! What can be counted on a machine, without any judgement.

pub mod cgroups;
pub(crate) mod comparable;
pub mod grown;
pub mod history;
pub mod meminfo;
pub mod parked;
pub mod reclaim;
pub mod rounding;
mod sort;
pub mod split;

pub use sort::SortKey;
