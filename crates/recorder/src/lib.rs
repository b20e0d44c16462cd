//! Records the allocation calls of a program as a trace.
//!
//! ```text
//! library    the file that is preloaded into the program (folder preload); it writes raw files
//! raw        their layout
//! files      the files of a recording: which processes there were, and their events in the order of time
//! convert    a process's events become rows of a trace
//!   objects    which object an address is
//! ```
//!
//! A recording is a folder with one file for each process: for each program that was executed, and for each
//! child that a fork made. A trace is of one process, because addresses of two have nothing to do with each
//! other. Threads are the trace's CPUs: a thread that ends leaves its number to the next one, as it leaves
//! its slot to the next one under slablab's malloc.
//!
//! Deliberately absent: the stacks of callers, which cost more than the calls.

mod convert;
mod files;
mod objects;
mod raw;

#[cfg(clippy)]
#[path = "../preload/library.rs"]
mod preload;

pub use convert::{KIND, Summary, convert};
pub use files::{Process, processes};

/// The file to preload; empty if this crate was built without a linker for its target.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libslablab-record.so"));

/// The variable of the environment that names the folder of a recording.
pub const FOLDER: &str = "SLABLAB_RECORD";

/// The variable of the environment with the largest size of a process's file, in bytes.
pub const LIMIT: &str = "SLABLAB_RECORD_LIMIT";

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
