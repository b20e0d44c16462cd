//! Machines to model: files that describe them, and those that come with the program.
//!
//! | module | contents |
//! |---|---|
//! | `file` | what a machine file may say, read with lines |
//! | `costs` | the table `[costs]`: prices, sizes, sources |
//! | `priors` | how far a cost may be from the truth |
//! | [`disks`] | the tables `[disk.NAME]`, and the disks that come with the program |
//! | `shared` | which CPUs share a core, a last-level cache, a socket |
//! | `machine` | a whole file as the model's machine |
//! | `installed` | the machines that come with the program |
//! | [`list`] | those as a table, CSV and JSON |
//! | [`doc`], `cpus` | TOML with positions, for experiments too; CPU lists |
//!
//! docs/model.md explains each cost. Nothing here reads a clock or the host's hardware.
#![forbid(unsafe_code)]

mod costs;
mod cpus;
pub mod disks;
pub mod doc;
mod file;
mod installed;
pub mod list;
mod machine;
mod priors;
mod shared;

pub use costs::{COSTS, Cost, Priced, Source};
pub use disks::DiskFile;
pub use file::{Bad, MachineFile, NodeFile, Smt, read};
pub use installed::{INSTALLED, Installed, find, text_of};
pub use machine::Machine;
pub use priors::{Origin, Prior};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
