//! The part of each policy, or of each parameter, in a difference between experiments or scripts.
//!
//! [`cells`] takes a cell's engine apart: groups of policies, and metrics of its workload. [`policies`] does
//! the same for page replacement in an experiment, [`script`] for page replacement under a script, and
//! [`parameters`] for values of the parameters of an experiment's workload. Parts are Shapley values
//! ([`slablab_stats::shapley`]); docs/explain.md says what they mean and what they do not mean.

pub mod cells;
pub mod groups;
pub mod parameters;
pub mod policies;
pub mod script;
