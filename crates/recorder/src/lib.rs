//! Records the allocation calls of a program as a trace.
//!
//! ```text
//! library    the file that is preloaded into the program (folder preload); it writes raw files
//! raw        their layout
//! folder     where they are, with the library; what killed recorders left
//!   preloaded  the library as bytes, and the variables that it reads
//!   owner      a process, told apart from later ones with its number
//! files      the files of a recording: which processes there were, and their events in the order of time
//! convert    a process's events become rows of a trace
//!   objects    which object an address is
//!   frames     names of the functions of call chains
//! kernel     every slab of the kernel that runs, at one moment
//! probes     what is recorded of it that has no event
//! ```
//!
//! A recording is a folder with one file for each process: for each program that was executed, and for each
//! child that a fork made. A trace is of one process, because addresses of two have nothing to do with each
//! other. Threads are the trace's CPUs: a thread that ends leaves its number to the next one, as it leaves
//! its slot to the next one under slablab's malloc.
//!
//! Call chains cost more than the calls. So some of the allocations have one, drawn by their bytes: see
//! preload/chains.rs.

mod convert;
mod files;
mod folder;
mod frames;
pub mod kernel;
mod objects;
mod owner;
mod preloaded;
pub mod probes;
mod raw;

#[cfg(clippy)]
#[path = "../preload/library.rs"]
mod preload;

pub use convert::{KIND, Summary, convert};
pub use files::{Process, processes};
pub use folder::{Folder, Left};
pub use owner::Owner;
pub use preloaded::{COUNTS, DESCRIPTOR, FOLDER, LIBRARY, LIMIT, SAMPLE};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
