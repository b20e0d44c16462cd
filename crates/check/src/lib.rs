//! Worlds that check the engines, and the tests that need these worlds.
//!
//! | module | world | errors that it finds, or what it shows |
//! |---|---|---|
//! | [`solo`] | `Checked<Solo>`: one thread | misuse: a link outside a slab or never written, a lock out of order |
//! | [`loomed`] | `Checked<Loom>`: loom | orderings and unprotected fields, in every schedule of a small program |
//! | [`shuttled`] | `Checked<Shuttle>`: shuttle | whole engines on 2 to 4 CPUs, in many random schedules |
//! | [`bare`] | `Bare`: static memory, no threads | what the fast paths compile to |
//! | [`twist`] | `Twisted<World, Twist>` | any world with one change: refusing slots, or a planted fault |
//!
//! [`oracle`] runs random programs on many machines, [`duties`] checks what a CPU's exit, a shrink and a
//! grace period promise, and [`schedules`] races and whole programs under loom and shuttle. `own`
//! (with the feature `tools`) is both for a registered engine.
//!
//! The first three are one world ([`world`], [`machine`], [`slots`]) over a [`kit`] of primitives. So an
//! engine has the same memory and the same slots under each tool. [`explore()`] runs a body under a kit and
//! counts executions. [`suite`] runs the contract's checks.
//!
//! The feature `tools` (on by default) adds loom and shuttle. The tests that read machine code do not need
//! it.
//!
//! Absent on purpose: this crate names no kernel release, and no allocator depends on it.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod bare;
pub mod broken;
pub mod duties;
pub mod explore;
pub mod kit;
#[cfg(feature = "tools")]
pub mod loomed;
pub mod machine;
pub mod oracle;
#[cfg(feature = "tools")]
pub mod own;
pub mod program;
mod queue;
pub mod schedules;
#[cfg(feature = "tools")]
pub mod shuttled;
pub mod slots;
pub mod solo;
pub mod suite;
pub mod twist;
pub mod world;

pub use bare::Bare;
pub use explore::{effort, explore};
pub use kit::{Explored, Kit, Limits};
#[cfg(feature = "tools")]
pub use loomed::Loom;
pub use machine::{Address, Distances, Shape};
#[cfg(feature = "tools")]
pub use shuttled::Shuttle;
pub use solo::Solo;
pub use twist::Twisted;
pub use world::{Alone, Checked};

/// The world over loom.
#[cfg(feature = "tools")]
pub type Loomed = Checked<Loom>;
/// The world over shuttle.
#[cfg(feature = "tools")]
pub type Shuttled = Checked<Shuttle>;
/// A world whose slots always refuse.
pub type Refusing<P> = Twisted<P, broken::Refuse>;
