//! Policies by name: one grammar for slab engines and page replacement.
//!
//! ```text
//! name[@release][,knob=value]...      slub@6.1,max_order=0      vm@6.12.117+deb12,swappiness=10
//! ```
//!
//! | word | what |
//! |---|---|
//! | policy | a set of rules as a value of a `Copy` type |
//! | [`knobs`] | one rule of a policy that can be set by name: its name, its values, a text |
//! | preset | a policy that has a name: the rules of one release |
//! | [`release`] | a kernel's release, or the date of a posting; the preset that stands for a release |
//! | [`text`] | the grammar: a text is split, its knobs are set, and what was set is printed |
//! | [`near`](mod@near) | names that look like a wrong one |
//! | [`error`] | what is wrong with a text |
//!
//! Parsing and printing are inverse: a printed choice has the knobs that differ from its preset, and parses
//! to the same policy.
//!
//! Deliberately absent: the policies and their presets, which are of the crates that have them
//! (`slablab-slabs`, `slablab-vm`). This crate does not allocate, has no dependencies and no statics.
#![no_std]
#![forbid(unsafe_code)]

pub mod error;
pub mod knobs;
pub mod near;
pub mod release;
pub mod text;

pub use error::{BadKind, BadPreset, Needs, Taken};
pub use knobs::{AUTO, Erased, KNOBS_MAX, Knob, Knobs, Setting, Values, With, knob};
pub use near::near;
pub use release::{Release, newest_not_newer};
pub use text::{Text, change, is_called, print_changed};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
