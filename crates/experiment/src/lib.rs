//! Experiments: cells of machine, engine and parameters, each run several times on a modelled machine.
//!
//! ```text
//! experiments/2026.toml ── file ── source ── plan: machines × engines × parameters
//!                                             │
//!             workloads: tables ──── run: all cells on all cores; run::folder keeps whole cells
//!                                             │
//!                              judge: summary of each cell; verdict: published beside modelled
//! ```
//!
//! [`explain`] gives the part of each policy, or of each parameter, in a difference; [`pressure`] runs
//! scripts of page accesses and judges them by records of real kernels; [`output`] has the answers as text,
//! CSV, JSON and pages.
//!
//! A result depends on the experiment, its machines, the seed and the program alone: not on the host, the
//! number of threads, or whether a run was interrupted. docs/run.md is the manual.

pub mod explain;
pub mod file;
pub mod input;
pub mod judge;
pub mod output;
pub mod plan;
pub mod pressure;
mod published;
pub mod recorded;
pub mod repeats;
pub mod run;
pub mod series;
pub mod source;
pub mod suite;
mod words;
pub mod workload;
pub mod workloads;

pub use file::ExperimentFile;
pub use file::rows::Sign;
pub use judge::pairs::Pairs;
pub use plan::{Change, Plan};
pub use repeats::Repeats;
pub use run::folder::Folder;
pub use run::results::Results;
pub use run::{Options, Shard, join, run};
pub use slablab_report::Result;
pub use slablab_sim::heap::Simulated;
pub use slablab_sim::pulse::{Cancelled, Pulse};
pub use source::{Experiment, INSTALLED, Parts};
pub use suite::Suite;
pub use workload::Size;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
