//! Draws of a ratio while everything that is assumed is drawn too: on which side of a band around 1 the ratio
//! is, where it lies, and when enough was drawn.
//!
//! A draw is the logarithm of one ratio: of two runs with the same drawn assumptions. It varies with the
//! assumptions, and with the seed of the runs. A published ratio of means of `runs` runs varies with the seed
//! less than one draw. So the draws are moved towards their mean until of the seed's variance, which runs
//! without drawn assumptions give, a `runs`-th part is left.
//!
//! ```text
//! draws ── mean, sd ── less the seed's variance ── values ──┬─ parts below, within, above the band
//!                                                           ├─ interval of the next value: Student's
//!                                                           └─ settled: tolerance limits at each look
//! ```
//!
//! The sequential rule looks after 8, 16, 32 and 64 draws. It stops if a one-sided tolerance limit says that
//! 95 % of all draws lie on one side, or that on no side there are as many. Each look may be wrong with a
//! fourth of 5 %. The limits are those of normal values (Natrella 1963, by an approximation);
//! `tests/draws.rs` counts the errors for others too.

use crate::bootstrap::Interval;
use crate::error::{Error, Result};
use crate::sample::Sample;
use crate::special::{normal_quantile, t_quantile, t_two_sided};

/// How many draws there are at each look.
pub const LOOKS: [usize; 4] = [8, 16, 32, 64];
/// The part of the draws that must lie on one side.
pub const PART: f64 = 0.95;
/// The probability that the rule stops with a wrong answer, at most, over all looks.
pub const ERROR: f64 = 0.05;
/// The fewest degrees of freedom. Where nearly all variance is the seed's, the estimate of the rest and its
/// degrees of freedom are small together: without a limit intervals hold 98 to 99.7 of 100 ratios, with all
/// degrees 91, with this limit 94 to 96 (`tests/draws.rs`).
const FREEDOM_MIN: f64 = 5.0;

/// Where a ratio lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Below the band.
    Below,
    /// In it: the ratio cannot be told from 1.
    Within,
    /// Above it.
    Above,
}

impl Side {
    /// All sides, ascending.
    pub const ALL: [Side; 3] = [Side::Below, Side::Within, Side::Above];
}

/// What the seed alone does to the logarithm of a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The variance over seeds.
    pub variance: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
    /// Over how many runs the ratio that is predicted is a mean, at least 1.
    pub runs: usize,
}

/// Draws of the logarithm of a ratio.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Less the seed's variance.
    values: Vec<f64>,
    mean: f64,
    /// Of the values.
    sd: f64,
    /// Of the mean.
    error: f64,
    /// Degrees of freedom of the next value's variance: fewer than of the draws' if much of theirs was the
    /// seed's (Welch and Satterthwaite).
    freedom: f64,
}

impl Drawn {
    /// Draws, in logarithms.
    ///
    /// # Errors
    /// Fewer than two draws, or one that is not finite.
    pub fn new(logs: &[f64], noise: Option<Noise>) -> Result<Drawn> {
        if logs.len() < 2 {
            return Err(Error::TooFew { test: "a test of draws", needed: 2, found: logs.len() });
        }
        let moments = Sample::new(logs)?.moments();
        let (mean, all, of_mean) = (moments.mean(), moments.sd().powi(2), moments.variance_of_mean());
        let of_draws = (logs.len() - 1) as f64;
        let (mut left, mut freedom) = (1.0, of_draws);
        if let Some(noise) = noise.filter(|_| all > 0.0) {
            let least = 1.0 / noise.runs.max(1) as f64;
            left = (1.0 - noise.variance / all * (1.0 - least)).clamp(least, 1.0);
            let of_all = (all + of_mean).powi(2) / of_draws;
            let of_noise = (noise.variance * (1.0 - least)).powi(2) / noise.freedom.max(1.0);
            freedom = ((left * all + of_mean).powi(2) / (of_all + of_noise)).clamp(FREEDOM_MIN, of_draws);
        }
        let values = logs.iter().map(|log| mean + (log - mean) * left.sqrt()).collect();
        Ok(Drawn { values, mean, sd: (left * all).sqrt(), error: of_mean.sqrt(), freedom })
    }

    /// How many were drawn.
    pub fn n(&self) -> usize {
        self.values.len()
    }

    /// The mean of the logarithms.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The draws, less the seed's variance, in their order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The part of the draws on each side of a band, whose half-width is a logarithm.
    pub fn parts(&self, band: f64) -> [f64; 3] {
        let part = |is: &dyn Fn(f64) -> bool| {
            self.values.iter().filter(|value| is(**value)).count() as f64 / self.n() as f64
        };
        [part(&|value| value < -band), part(&|value| value.abs() <= band), part(&|value| value > band)]
    }

    /// The interval that holds the logarithm of the next such ratio in 95 of 100 cases: Student's.
    pub fn interval(&self) -> Interval {
        let half = t_quantile(0.975, self.freedom) * self.next_sd();
        Interval { low: self.mean - half, high: self.mean + half }
    }

    /// The side that has 95 % of the draws and, by Student's distribution, of what could be drawn.
    pub fn side(&self, band: f64) -> Option<Side> {
        let (parts, next) = (self.parts(band), self.next(band));
        Side::ALL.into_iter().find(|side| parts[*side as usize] >= PART && next[*side as usize] >= PART)
    }

    /// Whether more draws would hardly change what [`Drawn::side`] says.
    pub fn is_settled(&self, band: f64) -> bool {
        if self.sd == 0.0 {
            return true;
        }
        let margins = [-band - self.mean, band - self.mean.abs(), self.mean - band];
        let [least, most] = self.limits().map(|limit| limit * self.sd);
        match self.side(band) {
            Some(side) => margins[side as usize] >= most,
            None => margins.iter().all(|margin| *margin <= least),
        }
    }

    /// The probability that the next such ratio is on each side.
    fn next(&self, band: f64) -> [f64; 3] {
        let sd = self.next_sd();
        let above = |limit: f64| match (limit - self.mean, sd) {
            (far, 0.0) => f64::from(u8::from(far < 0.0)),
            (far, sd) => {
                let tail = t_two_sided(far / sd, self.freedom) / 2.0;
                if far > 0.0 { tail } else { 1.0 - tail }
            }
        };
        // A value on the upper edge is in the band: without scatter, on the lower one too.
        let (not_below, above) =
            (if sd == 0.0 && self.mean == -band { 1.0 } else { above(-band) }, above(band));
        [1.0 - not_below, not_below - above, above]
    }

    /// The standard deviation of the next value from the mean of these.
    fn next_sd(&self) -> f64 {
        self.sd.hypot(self.error)
    }

    /// How many standard deviations the mean must be away from an edge for [`PART`] of all draws to be on its
    /// side: with the confidence of a look fewer than the first are too few, and the second are enough.
    fn limits(&self) -> [f64; 2] {
        let (part, sure) = (normal_quantile(PART), normal_quantile(1.0 - ERROR / LOOKS.len() as f64));
        let a = 1.0 - sure * sure / (2.0 * self.freedom);
        let b = part * part - sure * sure * (self.error / self.sd).powi(2);
        let root = (part * part - a * b).max(0.0).sqrt();
        // So few degrees of freedom have no upper limit.
        let most = if a > 0.0 { (part + root) / a } else { f64::INFINITY };
        [b / (part + root), most]
    }
}
