//! What this host's parts cost, as a machine file for the model; and a native hackbench to compare with.
//!
//! # Theory
//!
//! A machine that others use is never quiet. So each quantity is measured in many short blocks, and all
//! quantities in turn for about a minute: a disturbance of some seconds reaches a few blocks of each, and the
//! median of the blocks does not move. The quartiles say how far to trust it.
//!
//! ```text
//! host        CPUs, caches, nodes from the kernel's files
//! probes/*    one block of some series each              ┐
//!   raw       instructions, fork, shared pages           │ the run
//! series      names, samples, quartiles                  │
//! rig         all probes in turn, noise                  ┘
//! costs       samples -> costs of a machine file           no clock, no files
//! file        the machine file (TOML)
//! output      the answers
//! hackbench   senders and receivers, as `perf bench sched messaging`
//! ```
//!
//! Deliberately absent: a fit. No number here comes from a parallel benchmark, so hackbench on the modelled
//! machine remains a prediction. What user space cannot measure is `assumed` in the file, with the reason.

pub mod costs;
pub mod file;
pub mod hackbench;
pub mod host;
pub mod output;
mod probes;
#[expect(unsafe_code, reason = "instructions, fork, shared pages")]
mod raw;
pub mod rig;
pub mod series;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
