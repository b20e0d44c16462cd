//! The laboratory: a recording or a dump goes in, tables come out.
//!
//! | module | contents |
//! |---|---|
//! | [`engines`] | names of engines, and registered engines |
//! | [`experiment`] | cells of machine, engine and parameters on modelled machines |
//! | [`explain`] | the part of each policy in the difference between two presets |
//! | [`import`] | a recording becomes a trace |
//! | [`map`] | where every object of one cache is, event by event |
//! | [`machine`] | which machine to model: from the recording, a dump, a file |
//! | [`recorded`] | files of `slablab record`: a recording with the states around it |
//! | [`replay`] | a trace through engines: survey, plan, run, outcome |
//! | [`sites`] | which code allocates: of a recording, /proc/allocinfo, SLUB's debugging lists |
//! | [`verify`] | compares the model's prediction with the kernel's counters |
//! | [`pressure`] | scripts and records of memory pressure; modelled runs judged by real ones |
//! | [`output`] | the answers as text, CSV, JSON and pages |
//!
//! The lab reads files and may depend on every other crate. Only the program and the Python package depend on
//! the lab.

pub mod engines;
pub mod experiment;
pub mod explain;
pub mod import;
pub mod machine;
pub mod map;
pub mod output;
pub mod pressure;
pub mod recorded;
pub mod replay;
pub mod sites;
pub mod verify;

pub use slablab_report::{Error, Result};
pub use slablab_sim::pulse::{Cancelled, Pulse};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
