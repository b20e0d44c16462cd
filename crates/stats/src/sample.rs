//! Repeated measurements of one quantity, and the three numbers that most mails keep of them.

use crate::error::{Error, Result};

/// Values beyond this are refused: their third powers, which [`crate::bootstrap`] sums, would overflow.
const LARGEST: f64 = 1e90;

/// At least one value, sorted. What is computed from a sample does not depend on the order of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample(Vec<f64>);

/// The number of values, their mean and their standard deviation (divisor n - 1; 0 for one value).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    n: usize,
    mean: f64,
    sd: f64,
}

impl Sample {
    /// A sample of these values.
    ///
    /// # Errors
    /// If there are no values, or one of them is NaN, infinite or beyond 1e90.
    pub fn new(values: impl Into<Vec<f64>>) -> Result<Sample> {
        let mut values = values.into();
        if values.is_empty() {
            return Err(Error::Empty);
        }
        // NaN fails this comparison too.
        if let Some(index) = values.iter().position(|value| !matches!(value.abs(), 0.0..=LARGEST)) {
            return Err(Error::Value { index, value: values[index] });
        }
        values.sort_by(f64::total_cmp);
        Ok(Sample(values))
    }

    /// The values, ascending.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The number of values.
    pub fn n(&self) -> usize {
        self.0.len()
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The arithmetic mean (mmtests' Amean).
    pub fn mean(&self) -> f64 {
        mean(&self.0)
    }

    /// The harmonic mean (mmtests' Hmean, for rates). `None` if a value is 0 or below.
    pub fn harmonic_mean(&self) -> Option<f64> {
        if self.min() <= 0.0 {
            return None;
        }
        let inverses: f64 = self.0.iter().map(|value| 1.0 / value).sum();
        Some((self.n() as f64 / inverses).clamp(self.min(), self.max()))
    }

    /// The standard deviation (divisor n - 1); 0 for one value.
    pub fn sd(&self) -> f64 {
        sd(&self.0)
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// A quantile; see [`quantile`].
    pub fn quantile(&self, part: f64) -> f64 {
        quantile(&self.0, part)
    }

    /// The number of values, their mean and their standard deviation.
    pub fn moments(&self) -> Moments {
        Moments { n: self.n(), mean: self.mean(), sd: self.sd() }
    }
}

impl Moments {
    /// Moments from elsewhere, for example a mail's AVG and STD of 10 runs.
    ///
    /// # Errors
    /// If `n` is 0, `mean` is NaN, infinite or beyond 1e90, or `sd` is below 0 or not finite.
    pub fn new(n: usize, mean: f64, sd: f64) -> Result<Moments> {
        if n == 0 {
            return Err(Error::Empty);
        }
        if !matches!(mean.abs(), 0.0..=LARGEST) {
            let expected = "a number between -1e90 and 1e90";
            return Err(Error::Moment { what: "the mean", value: mean, expected });
        }
        if !matches!(sd, 0.0..=LARGEST) {
            let expected = "a number from 0 to 1e90";
            return Err(Error::Moment { what: "the standard deviation", value: sd, expected });
        }
        Ok(Moments { n, mean, sd })
    }

    /// The number of values.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation (divisor n - 1).
    pub fn sd(&self) -> f64 {
        self.sd
    }

    /// The variance of the mean: sd² / n.
    pub(crate) fn variance_of_mean(&self) -> f64 {
        self.sd * self.sd / self.n as f64
    }
}

/// The arithmetic mean of sorted values. Equal values have exactly that mean: without the clamp, the rounding
/// of the sum made a difference out of 3 and 5 equal runs.
pub(crate) fn mean(sorted: &[f64]) -> f64 {
    let sum: f64 = sorted.iter().sum();
    (sum / sorted.len() as f64).clamp(sorted[0], sorted[sorted.len() - 1])
}

/// The standard deviation of sorted values (divisor n - 1); 0 for one value.
fn sd(sorted: &[f64]) -> f64 {
    if sorted.len() < 2 {
        return 0.0;
    }
    let mean = mean(sorted);
    let squares: f64 = sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / (sorted.len() - 1) as f64).sqrt()
}

/// A quantile of sorted values, interpolated between neighbours: type 7 of Hyndman and Fan 1996, the default
/// of R and numpy. NaN if there are no values.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = part.clamp(0.0, 1.0) * last as f64;
    let (below, rest) = (place.floor() as usize, place.fract());
    let above = sorted[(below + 1).min(last)];
    sorted[below] + (above - sorted[below]) * rest
}
