//! Object caches: objects of one kind from the kernel's slab allocators, in a program.
//!
//! # Theory
//!
//! Bonwick's object cache (1994): objects of one type lie side by side in slabs, and a constructed value can
//! stay in its object while the object is free. A cache here is one cache of one engine. It shares page
//! frames, slots, upkeep and statistics with malloc's classes.
//!
//! ```text
//! insert, alloc              typed: makes or keeps the value
//!   untyped::Cache::alloc      SlotArrays::pop: the slot of this thread
//!   alloc_slow                 Front::alloc_slow_slot, limit, the engine's slow path; without memory the
//!                              shrinkers, then once more
//! drop of an object          typed
//!   untyped::Cache::free       SlotArrays::push: the slot of this thread
//!   free_slow                  the engine's slow path
//! ```
//!
//! # States of an object in a cache with a constructor
//!
//! ```text
//!         slab made           first allocation         free, alloc
//! (none) ───────────▶ fresh ──────────────────▶ live ◀────────▶ constructed, free
//!                                                                  │ the slab is freed
//!                                                                  ▼
//!                                                                dropped
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`ObjectCache`], [`Object`], [`Reserve`] | values of one type |
//! | [`checked`] | addresses from anywhere, every misuse reported: C's functions use it |
//! | [`untyped`] | a cache of bytes |
//! | [`Shrinker`], [`shrink_all`] | functions that free objects when memory is short |
//!
//! Deliberately absent: C's functions, which the library `slablab-c` exports; counted references,
//! generations, and anything else that a program can build on an object.

mod cache;
#[expect(unsafe_code, reason = "addresses come from anywhere")]
pub mod checked;
#[expect(unsafe_code, reason = "makes values in raw memory")]
mod constructor;
mod deferred_drop;
mod engine;
mod error;
mod limit;
#[expect(unsafe_code, reason = "owns values in raw memory")]
mod object;
mod prefill;
mod shrinker;
mod spec;
mod stats;
pub mod untyped;

pub use cache::{Builder, ObjectCache};
pub use constructor::{Constructed, Mode, Plain};
pub use error::{AllocError, CreateError, InUse, InsertError};
pub use limit::Limit;
pub use object::{Object, Reserve};
pub use shrinker::{Shrinker, shrink_all};
pub use slablab_slabs::zones::Letters;
pub use stats::Stats;

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
