//! slablab in a page: questions go in as JSON, answers come out as text, page and JSON.
//!
//! ```text
//! page/page.html      what is seen: questions, files, answers
//! page/worker.js      reads files into this module's memory, asks, says how far it is
//! abi                 buffers and calls between JavaScript and Rust
//! ask                 a question is read and given on; the command that asks the same
//! states              of states of machines, the rooms of `slablab_doctor`
//! progress            how much of a question is done
//! recordings          of a recording, the rooms of `slablab_replay`
//! pressure            of scripts of page accesses, the rooms of `slablab_experiment`
//! experiments         of experiments and results, the rooms of `slablab_experiment` and `slablab_compare`
//! ```
//!
//! Files are known by name: the page gives them ([`slablab_report::files`]), and all readers find them there.
//! The answers are those of the program: the same values, rendered by the same code.

#[cfg(target_family = "wasm")]
mod abi;
mod answered;
mod ask;
mod experiments;
mod pressure;
mod progress;
mod recordings;
mod states;

pub use ask::{Reply, answer};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
