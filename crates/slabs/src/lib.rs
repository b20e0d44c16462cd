//! The slab allocators of Linux, each a set of named policies with presets by kernel release.
//!
//! | module | what |
//! |---|---|
//! | [`engine`] | what every engine can do: the trait the lab and the checks use |
//! | [`engines::slub`] | SLUB, 2.6.29 to 7.1, since 6.18 with sheaves |
//! | [`engines::slqb`] | SLQB as posted in January and as of September 2009 |
//! | [`engines::slab`] | SLAB, 2.4, 2.6.29 and 6.1 |
//! | [`engines::slob`] | SLOB, 2.6.32 and 6.1 |
//! | [`preset`] | the grammar `engine[@release][,knob=value]...` and the table of presets |
//! | [`registered`] | registered engines, in the grammar beside these |
//! | [`cache`] | what a cache is asked to be: size, alignment, flags; its layout and merging, by era |
//! | [`wrap`] | debugging and hardening around any engine |
//! | [`zones`] | red zones, poison and records around objects, by era |
//! | [`order`] | slab orders, by era |
//! | [`kmalloc`] | size classes, types and page-backed sizes, by era |
//! | [`accounting`] | what a kernel keeps beside each object, by era |
//! | [`partition`] | copies of kmalloc caches, divided among call sites |
//! | [`clock`] | page reclaim of 2.4 takes empty slabs, from one cache at a time |
//! | [`lent`] | sheaves of objects that a caller has in advance |
//! | [`slab`] | one slab through its frame descriptor, lists of slabs |
//!
//! Deliberately absent: an engine knows no world, reads no clock but the world's, allocates nothing outside
//! its pages, and has no statics and no `unsafe`. Debugging, hardening and recording are wrappers, not flags
//! in here.
#![no_std]
#![forbid(unsafe_code)]

pub mod accounting;
pub mod backing;
pub mod cache;
pub mod clock;
mod damage;
pub mod engine;
pub mod engines;
mod front;
pub mod kmalloc;
pub mod knob;
pub mod lent;
pub mod order;
pub mod partition;
pub mod preset;
pub mod registered;
pub mod release;
pub mod report;
pub mod slab;
pub mod wrap;
pub mod zones;

pub use backing::{Backing, Common, Held, Metadata};
pub use cache::{CacheFlags, CacheId, CacheSpec, Geometry};
pub use engine::{Busy, Engine, Exposed, FunctionCosts, Idle, Place, Reapable, Usage};
pub use front::Front;
pub use lent::Sheaf;
pub use preset::{Choice, Preset};
pub use registered::Family;
pub use release::Release;
pub use report::Misuse;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
