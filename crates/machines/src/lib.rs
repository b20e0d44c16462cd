//! Machines to model: files that describe them.
#![forbid(unsafe_code)]

mod file;

pub use file::{MachineFile, Memory, NodeFile, YesNo, read};
