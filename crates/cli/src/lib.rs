//! The program `slablab` as a library, for programs that add engines and policies of their own to it.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     slablab::Program::default().main()
//! }
//! ```
//!
//! is the program as it is. [`Program::engine`] adds an engine, and every verb that models has it;
//! [`Program::bench`] adds it to the allocators of `bench`, [`Program::checks`] adds the verb `check` for it.
//! docs/your-engine.md goes from an idea to a table.
//!
//! Exit codes: 0 done; 1 done, and over a threshold the user set; 2 usage or input error; 3 done, but the
//! input was incomplete; 128 + n ended by signal n. `slablab record` has the exit code of its program.

mod bench;
mod beside;
mod calibrate;
mod check;
mod closed;
mod colour;
mod compare;
mod doctor;
mod engines;
mod explain;
mod fleet;
mod front;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod generated;
mod import;
mod input;
mod installed;
mod interrupts;
mod keep;
mod leak;
mod linux;
mod list;
mod listed;
mod logs;
mod machines;
mod orders;
mod outcome;
mod output;
mod pressure;
mod program;
mod record;
mod replay;
mod report;
mod reproduce;
mod rows;
mod run;
mod schema;
mod sites;
mod suite;
mod top;
mod trees;
mod verify;
mod vm;
mod watch;
mod what;
mod whatif;

pub use check::Check;
pub use program::Program;
pub use slablab_bench::{benched, own::Benched};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
