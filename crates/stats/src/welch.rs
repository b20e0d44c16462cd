//! Welch's t-test: do two means differ, where the two standard deviations may differ too?
//!
//! It needs only the moments of both sides. Sources: B. L. Welch, Biometrika 34 (1947), 28-35; the degrees of
//! freedom are Welch's and Satterthwaite's.

use crate::bootstrap::{Interval, outside};
use crate::error::{Error, Result};
use crate::sample::Moments;
use crate::special::{t_quantile, t_two_sided};

/// A result of the test. The difference is `other` minus `base`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// Mean of `other` minus mean of `base`.
    pub difference: f64,
    /// The difference in standard errors; infinite if neither side varies and the means differ.
    pub t: f64,
    /// Degrees of freedom.
    pub freedom: f64,
    /// Probability of such a `t`, or one further from 0, if the true means are equal.
    pub p: f64,
    /// Standard error of the difference.
    error: f64,
}

impl Welch {
    /// The interval that holds the true difference of the means with this confidence.
    ///
    /// # Errors
    /// If the level is out of range.
    pub fn interval(&self, level: f64) -> Result<Interval> {
        around(self.difference, self.error, self.freedom, level)
    }
}

/// Tests whether the means differ. If neither side varies, p is 1 for equal means and 0 for others.
///
/// # Errors
/// If a side has fewer than 2 values.
pub fn welch(base: &Moments, other: &Moments) -> Result<Welch> {
    enough(base, other)?;
    let difference = other.mean() - base.mean();
    let (error, freedom) = error_and_freedom(
        base.variance_of_mean(),
        base.n() as f64,
        other.variance_of_mean(),
        other.n() as f64,
    );
    let t = if difference == 0.0 { 0.0 } else { difference / error };
    let p = if difference == 0.0 { 1.0 } else { t_two_sided(t, freedom) };
    Ok(Welch { difference, t, freedom, p, error })
}

/// The interval that holds the ratio of the true means, `other` over `base`, with this confidence. It is the
/// interval of the difference of the logarithms, whose variances are (sd / mean)² / n (the delta method):
/// good while the standard error of each mean is small against the mean.
///
/// # Errors
/// If a side has fewer than 2 values, a mean is not above 0, or the level is out of range.
pub fn ratio_interval(base: &Moments, other: &Moments, level: f64) -> Result<Interval> {
    enough(base, other)?;
    for side in [base, other] {
        if side.mean() <= 0.0 {
            let expected = "a number above 0 for a ratio";
            return Err(Error::Moment { what: "the mean", value: side.mean(), expected });
        }
    }
    let relative = |side: &Moments| side.variance_of_mean() / (side.mean() * side.mean());
    let (error, freedom) =
        error_and_freedom(relative(base), base.n() as f64, relative(other), other.n() as f64);
    let logs = around((other.mean() / base.mean()).ln(), error, freedom, level)?;
    Ok(Interval { low: logs.low.exp(), high: logs.high.exp() })
}

fn enough(base: &Moments, other: &Moments) -> Result<()> {
    let found = base.n().min(other.n());
    if found < 2 {
        return Err(Error::TooFew { test: "Welch's t-test", needed: 2, found });
    }
    Ok(())
}

/// The standard error of a difference of two means, and its degrees of freedom by Welch and Satterthwaite: 1
/// / (c² / (n1 - 1) + (1 - c)² / (n2 - 1)), where c is the first mean's part of the variance. In this form no
/// square of a variance underflows.
fn error_and_freedom(variance1: f64, n1: f64, variance2: f64, n2: f64) -> (f64, f64) {
    let variance = variance1 + variance2;
    if variance == 0.0 {
        return (0.0, n1 + n2 - 2.0);
    }
    let part = variance1 / variance;
    let inverse = part * part / (n1 - 1.0) + (1.0 - part) * (1.0 - part) / (n2 - 1.0);
    (variance.sqrt(), 1.0 / inverse)
}

/// Student's interval around an estimate with this standard error.
pub(crate) fn around(middle: f64, error: f64, freedom: f64, level: f64) -> Result<Interval> {
    let outside = outside(level)?;
    let half = if error == 0.0 { 0.0 } else { t_quantile(1.0 - outside, freedom) * error };
    Ok(Interval { low: middle - half, high: middle + half })
}
