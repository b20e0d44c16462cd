//! The laboratory: a recording or a dump goes in, tables come out.
//!
//! | module | what |
//! |---|---|
//! | [`explain`] | which policy carries how much of the difference between two presets |
//! | [`import`] | a recording becomes a trace |
//! | [`machine`] | which machine to model: from the recording, a dump, a file |
//! | [`replay`] | a trace through engines: survey, plan, run, outcome |
//! | [`verify`] | what the model said beside what the kernel did |
//! | [`output`] | the answers as text, CSV, JSON and pages |
//!
//! The lab reads files and knows every other room; nothing but the program and the Python package knows the
//! lab.

pub mod explain;
pub mod import;
pub mod machine;
pub mod output;
pub mod replay;
pub mod verify;

pub use slablab_report::{Error, Result};
