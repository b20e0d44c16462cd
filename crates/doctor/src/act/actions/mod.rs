//! Actions that the user can take on this kernel: commands and boot parameters, each with its predicted
//! saving and its cost.
//!
//! ```text
//! offer       all of them, those that are needed first
//!   holders   on what holds the objects
//!   caches    on one cache, now
//!   machine   on the whole machine, now
//!   boot      on the whole machine, at the next boot
//! ```
//!
//! An action is offered only for a finding, only if [`knobs`](super::knobs) says that this kernel has the
//! knob and lets it be turned, and for a file of a cache only if the dump has that cache's directory. The
//! predicted effect is a range: bounds where the counters give bounds, the measured error of the prediction
//! where a model speaks.

mod all;
mod boot;
mod caches;
mod holders;
mod machine;
mod offer;

pub(crate) use all::offer;
pub use offer::Action;
