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
//! Without the feature `laboratory` it is a small program, of the verbs that answer from dumps of machines.
//!
//! Exit codes: 0 done; 1 done, and over a threshold the user set; 2 usage or input error; 3 done, but the
//! input was incomplete; 128 + n ended by signal n. `slablab record` has the exit code of its program.

#[cfg(feature = "laboratory")]
mod additions;
mod beside;
mod closed;
mod colour;
mod doctor;
mod fleet;
mod front;
#[cfg(all(feature = "laboratory", any(test, feature = "fuzz")))]
pub mod fuzz;
mod input;
mod instances;
mod interrupts;
mod keep;
#[cfg(feature = "laboratory")]
mod laboratory;
#[cfg(not(feature = "laboratory"))]
#[path = "without.rs"]
mod laboratory;
mod orders;
mod outcome;
mod output;
mod program;
mod rows;
mod watch;
mod what;
mod whatif;

#[cfg(feature = "laboratory")]
pub use laboratory::Check;
pub use program::Program;
#[cfg(feature = "laboratory")]
pub use slablab_bench::{benched, own::Benched};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
