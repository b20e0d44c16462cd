//! Readers of kernel files: slabinfo, /sys/kernel/slab, support bundles; recordings of perf, trace-cmd and
//! tracefs; records of memory pressure ([`vmrecord`]).
//!
//! Bytes in, values out. No reader opens a path, reads a clock or prints: the caller hands over `&[u8]`, a
//! `Read`, or the files of a dump one by one. Every size found in a file is checked against what is there
//! before memory is taken for it, and what is wrong is an error with a byte offset or a line, never a panic
//! ([`fuzz`]).

mod bytes;
mod decoders;
mod lines;
mod moment;
mod tar;

pub mod allocinfo;
pub mod bundle;
pub mod cgroups;
pub mod compressed;
pub mod counters;
pub mod error;
pub mod event;
pub mod ftrace;
pub mod fuzz;
pub mod gfp;
pub mod kallsyms;
pub mod kmem;
pub mod modules;
pub mod pasted;
pub mod perfdata;
pub mod procfs;
pub mod recording;
pub mod slabinfo;
pub mod slabs;
pub mod sysfs;
pub mod text;
pub mod tidy;
pub mod tracedat;
pub mod tracepoint;
pub mod tracked;
pub mod vmrecord;

pub use error::ReadError;
pub use event::{CutOff, Event, Header, Item, Kind, LossKind, Lost, Name, Names, Source, Tally};
pub use tar::TarError;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
