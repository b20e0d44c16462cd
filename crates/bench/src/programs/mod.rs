//! Any program under several allocators, by `LD_PRELOAD`: `slablab bench -- PROGRAM`.
//!
//! ```text
//! run          proofs, blocks, order            the measurement
//!   allocator    a name, a library
//!   scratch      a folder for the linker's words
//!   served       whose malloc the linker bound
//!   process      one run: its time, its peak, its output
//! judged       figures, ratios, the sentence    the report
//! ```
//!
//! **A proof** is a run that is not measured: the dynamic linker says, for every process of the program,
//! which library each `malloc` was bound to. A program that brings its own malloc, or has none to bind, is
//! refused: its figures would be those of another allocator.
//!
//! **The twin** is the first allocator once more: what differs between the two is the machine's.

mod allocator;
pub mod judged;
mod process;
mod run;
mod scratch;
mod served;

pub use allocator::{Allocator, chosen};
pub use run::{Lane, Measured, Options, run};
