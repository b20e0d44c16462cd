//! The doctor: the caches of a machine go in, and out comes where slab memory goes, what would help, and what
//! another setting would do.
//!
//! | module | what |
//! |---|---|
//! | [`state`] | a dump, a live machine or a bare slabinfo becomes a list of caches |
//! | [`measure`] | where its slab memory is, and how that grew |
//! | [`find`] | what is worth saying of that |
//! | [`act`] | the verdict, and what this kernel lets its user do |
//! | [`whatif`] | the same machine with another policy, other pages or CPUs |
//! | [`what`] | what caches are for and how to shrink them |
//! | [`orders`] | which sizes two order rules treat differently |
//! | [`fleet`] | many dumps: outliers, what grows everywhere, what one change would save over all |
//! | [`watch`] | slab memory as it moves: samples, growth |
//! | [`Asked`] | names, messages and files that `what` is asked of |
//! | [`output`] | the answers as text, CSV, JSON, Prometheus metrics and pages |
//!
//! No allocator runs here: everything is arithmetic on a [`state::State`].

pub mod act;
mod asked;
mod examine;
pub mod find;
pub mod fleet;
pub mod measure;
pub mod orders;
pub mod output;
pub mod state;
pub mod watch;
pub mod what;
pub mod whatif;
mod words;

pub use act::Report;
pub use asked::Asked;
pub use examine::examine;
pub use measure::Options;
pub use slablab_readers::cgroups::Owners;
pub use slablab_report::{Error, Result};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
