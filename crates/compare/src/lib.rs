//! Results that verbs wrote with `--format json`, side by side.
//!
//! ```text
//! files ── Document   schema, kind ──┐
//!             │                      │
//!          kinds/*                   ├── Comparison ── output: text, JSON, CSV, page
//!             │                      │
//!          Answer     inputs, settings, quantities
//! ```
//!
//! A *quantity* is a number that two results of one kind can both have. A *setting* may differ: the engine,
//! the machine, the load. An *input* may not: results of different recordings say nothing about engines.
//!
//! This crate knows documents and no verb: it reads results of other versions of the program, and of other
//! machines.

#![forbid(unsafe_code)]

mod answer;
mod comparison;
mod document;
mod kinds;
pub mod output;

pub use comparison::{Comparison, Options, compare};
pub use document::{Document, RESULT, names};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
