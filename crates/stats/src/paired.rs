//! Student's t-test of pairs: do two quantities differ that were measured together, pair by pair?
//!
//! What both numbers of a run share is not in their difference. If the values of a pair move together,
//! the test tells smaller differences than [`welch`](crate::welch); if they do not, it has about half of
//! Welch's degrees of freedom and tells fewer. Source: Student, Biometrika 6 (1908), 1-25.

use crate::bootstrap::Interval;
use crate::error::{Error, Result};
use crate::sample::Sample;
use crate::special::t_two_sided;
use crate::welch::around;

/// A result of the test. The difference is `other` minus `base`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Mean of the differences.
    pub difference: f64,
    /// The difference in standard errors; infinite if all differences are equal and not 0.
    pub t: f64,
    /// Degrees of freedom: pairs less 1.
    pub freedom: f64,
    /// Probability of such a `t`, or one further from 0, if the true mean of the differences is 0.
    pub p: f64,
}

/// Tests whether the mean difference, second minus first of each pair, is 0. If all differences are equal, p
/// is 1 for 0 and 0 for others.
///
/// # Errors
/// If there are fewer than 2 pairs, or a value is not finite.
pub fn paired(pairs: &[[f64; 2]]) -> Result<Paired> {
    let (difference, error) = mean_and_error(pairs, |[base, other]| other - base)?;
    let freedom = pairs.len() as f64 - 1.0;
    let t = if difference == 0.0 { 0.0 } else { difference / error };
    let p = if difference == 0.0 { 1.0 } else { t_two_sided(t, freedom) };
    Ok(Paired { difference, t, freedom, p })
}

/// The interval that holds the ratio of the true means, second over first of each pair, with this
/// confidence: that of the difference of the logarithms, whose variance is that of `other / mean - base /
/// mean` (the delta method), good while the standard error of each mean is small against the mean.
///
/// # Errors
/// If there are fewer than 2 pairs, a mean is not above 0, or the level is out of range.
pub fn paired_ratio_interval(pairs: &[[f64; 2]], level: f64) -> Result<Interval> {
    let mean = |side: usize| {
        let mean = Sample::new(pairs.iter().map(|pair| pair[side]).collect::<Vec<f64>>())?.mean();
        let expected = "a number above 0 for a ratio";
        if mean > 0.0 { Ok(mean) } else { Err(Error::Moment { what: "the mean", value: mean, expected }) }
    };
    let (base, other) = (mean(0)?, mean(1)?);
    let (_, error) = mean_and_error(pairs, |pair| pair[1] / other - pair[0] / base)?;
    let logs = around((other / base).ln(), error, pairs.len() as f64 - 1.0, level)?;
    Ok(Interval { low: logs.low.exp(), high: logs.high.exp() })
}

/// The mean of a number of each pair, and its standard error.
fn mean_and_error(pairs: &[[f64; 2]], of: impl Fn([f64; 2]) -> f64) -> Result<(f64, f64)> {
    if pairs.len() < 2 {
        return Err(Error::TooFew { test: "Student's test of pairs", needed: 2, found: pairs.len() });
    }
    let sample = Sample::new(pairs.iter().map(|pair| of(*pair)).collect::<Vec<f64>>())?;
    Ok((sample.mean(), sample.moments().variance_of_mean().sqrt()))
}
