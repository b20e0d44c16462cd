//! The laboratory: a recording or a dump goes in, tables come out.
//!
//! | module | what |
//! |---|---|
//! | [`doctor`] | where slab memory goes and what would help |
//! | [`explain`] | which policy carries how much of the difference between two presets |
//! | [`import`] | a recording becomes a trace |
//! | [`machine`] | which machine to model: from the recording, a dump, a file |
//! | [`orders`] | which sizes two order rules treat differently |
//! | [`replay`] | a trace through engines: survey, plan, run, outcome |
//! | [`state`] | a dump, a live machine or a bare slabinfo becomes a list of caches |
//! | [`verify`] | what the model said beside what the kernel did |
//! | [`watch`] | slab memory as it moves: samples, growth |
//! | [`whatif`] | the same machine with another policy, other pages or CPUs |
//! | [`what`] | what caches are for and how to shrink them |
//! | [`output`] | tables, JSON, CSV |
//! | [`html`] | pages with charts |
//!
//! The lab reads files and knows every other room; nothing but the program and the Python package knows the lab.

pub mod doctor;
pub mod explain;
pub mod html;
pub mod import;
pub mod machine;
pub mod orders;
pub mod output;
pub mod replay;
pub mod state;
pub mod verify;
pub mod watch;
pub mod what;
pub mod whatif;

pub use slablab_report::{Error, Result};
