//! The verdict, and what this kernel lets its user do.
//!
//! ```text
//! act                 Measured and Found become a Report
//!   verdict           the answer in one sentence
//!   actions           what can be done about it here
//!     knobs           what this kernel lets its user change
//!     predict         what a change would save
//! ```

pub mod actions;
pub mod knobs;
mod predict;
mod report;
pub mod verdict;

pub use report::{Report, act};
