//! A sequential stop rule: repeat a measurement until the interval of its mean is narrow, or a limit is
//! reached.
//!
//! The rule looks at fixed numbers of values only: at the least number, and then at each doubling of it up to
//! the limit. It stops at the first look at which the half-width of Student's interval is at most a given
//! part of the mean. What it decides depends on the values in their order, never on how fast they come.
//!
//! An interval after such a stop is slightly too narrow: the rule prefers to stop where the values happen to
//! lie close together. A least number of values and few looks keep that small. `tests/sequential.rs`
//! simulates how often the interval holds the true mean.

use crate::bootstrap::Interval;
use crate::error::Result;
use crate::sample::{Moments, Sample};
use crate::welch::around;

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The number of values at the first look, at least 2.
    pub least: usize,
    /// The number of values at the last look.
    pub most: usize,
    /// The half-width of the interval over the mean, in percent, at which to stop.
    pub percent: f64,
}

/// The confidence of the rule's interval.
pub const LEVEL: f64 = 0.95;

impl Rule {
    /// How many values there have to be at the next look, after a look at `values` in the order in which they
    /// were measured. `None`: stop. With fewer values than the least number that is the first look.
    ///
    /// # Panics
    /// Never: finite values are a sample.
    pub fn next(&self, values: &[f64]) -> Option<usize> {
        let n = values.len();
        if n < self.least {
            return Some(self.least);
        }
        if n >= self.most || self.is_met(&Sample::new(values).expect("measured values are finite")) {
            return None;
        }
        Some((2 * n).min(self.most))
    }

    /// Whether the interval of the mean is narrow enough. Not with one value.
    pub fn is_met(&self, sample: &Sample) -> bool {
        half_width_percent(sample).is_some_and(|half| half <= self.percent)
    }
}

/// Half the width of Student's 95 % interval of the mean over the mean, in percent. `None` with one value or
/// a mean that is not above 0.
pub fn half_width_percent(sample: &Sample) -> Option<f64> {
    let Interval { low, high } = mean_interval(&sample.moments()).ok()?;
    (sample.mean() > 0.0).then(|| (high - low) / 2.0 / sample.mean() * 100.0)
}

/// Student's 95 % interval of a mean.
///
/// # Errors
/// With one value.
pub fn mean_interval(moments: &Moments) -> Result<Interval> {
    if moments.n() < 2 {
        return Err(crate::error::Error::TooFew {
            test: "Student's interval",
            needed: 2,
            found: moments.n(),
        });
    }
    around(moments.mean(), moments.variance_of_mean().sqrt(), (moments.n() - 1) as f64, LEVEL)
}
