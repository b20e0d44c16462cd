//! The verdict, and what this kernel lets its user do.
//!
//! ```text
//! act                 Measured and Found become a Report
//!   verdict           the answer in one sentence
//!     judgement       the kinds of answers
//!     texts           what messages and other texts say by themselves
//!   actions           what can be done about it here
//!     knobs           what this kernel lets its user change
//!     predict         what a change would save
//! ```

pub mod actions;
mod judgement;
pub mod knobs;
mod normal;
mod predict;
mod report;
mod texts;
mod uncounted;
pub mod verdict;

pub use report::{Report, act};
