//! Recordings: a recording goes in, tables come out.
//!
//! | module | contents |
//! |---|---|
//! | [`engines`] | registered engines in a replay |
//! | [`explain`] | the part of each policy in the difference between two presets |
//! | [`import`] | a recording becomes a trace |
//! | [`leak`] | a leak while it happens: snapshots, a recording, who, which code, what ends it |
//! | [`map`] | where every object of one cache is, event by event |
//! | [`machine`] | which machine to model: from the recording, a dump, a file |
//! | [`recorded`] | files of `slablab record`: a recording with the states around it |
//! | [`replay`] | a trace through engines: survey, plan, run, outcome |
//! | [`sites`] | which code allocates: of a recording, /proc/allocinfo, SLUB's debugging lists |
//! | [`verify`] | compares the model's prediction with the kernel's counters |
//! | [`output`] | the answers as text, CSV, JSON and pages |
//!
//! Deliberately absent: the simulated kernel and page replacement. A replay runs recorded events, not
//! programs.

pub mod engines;
pub mod explain;
pub mod import;
pub mod leak;
pub mod machine;
pub mod map;
pub mod output;
mod quantiles;
pub mod recorded;
pub mod replay;
pub mod sites;
pub mod verify;

pub use slablab_report::{Error, Result};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
