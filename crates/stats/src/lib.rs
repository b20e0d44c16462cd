//! Statistics of repeated measurements, and the tables that mails to the kernel's lists carry.
//!
//! ```text
//! Sample ── Moments ──┬─ welch          do two means differ? intervals of their difference and ratio
//!    │      (n, mean, └─ effect         Hedges' g
//!    │       sd)
//!    ├─ paired                          do two numbers of the same runs differ?
//!    ├─ rank ─────────── effect         Mann-Whitney's U; Cliff's delta
//!    ├─ bootstrap                       intervals of any statistic
//!    ├─ placement                       variance within and between placements
//!    ├─ sequential                      when to stop to repeat
//!    └─ draws                           a ratio while assumptions are drawn: its side, when it is settled
//! slope                                 what part of a variance a number explains
//! holm                                  p-values of a whole table
//! kendall                               how alike two orders are
//! shapley                               the part of each change in a difference
//! table ─┬─ avg_std                     AVG=13.19 STD=0.40
//!        └─ mmtests                     Amean     1        1.2727 (   0.00%)
//! ```
//!
//! A [`Moments`] needs no samples: a mail that gives only averages and standard deviations is enough for
//! [`welch`], [`effect::hedges_g`] and the tables.
//!
//! This crate reads no file, no clock and no environment, and starts no thread. A result depends on the
//! values, never on their order (in [`paired`] on which are of one run), and for [`bootstrap`] on the
//! seed: it is the same on any number of threads. The distribution functions come from the crate
//! `statrs`; `tests/golden.rs` compares every result with scipy's.

#![forbid(unsafe_code)]

pub mod bootstrap;
pub mod draws;
pub mod effect;
pub mod error;
pub mod holm;
pub mod kendall;
pub mod paired;
pub mod placement;
pub mod rank;
pub mod sample;
pub mod sequential;
pub mod shapley;
pub mod slope;
mod special;
pub mod table;
pub mod welch;

pub use bootstrap::{Bootstrap, Interval, Method};
pub use error::{Error, Result};
pub use sample::{Moments, Sample, quantile};

/// The example of README.md is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
