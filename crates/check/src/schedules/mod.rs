//! Races and whole programs of one engine, for loom and shuttle.

pub mod heap;
#[cfg(feature = "tools")]
pub mod programs;
pub mod races;

pub use heap::{EXCHANGED, Heap};
#[cfg(feature = "tools")]
pub use programs::{Load, programs};
pub use races::{Race, Step, exchanges, explored, hand_over, races};
