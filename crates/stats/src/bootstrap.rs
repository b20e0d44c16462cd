//! Bootstrap intervals: what a statistic would be in other runs, from resamples of this one.
//!
//! A resample draws as many values as the sample has, with replacement. The percentile interval is the middle
//! of the resamples' statistics. BCa moves its ends for bias (the statistic of the sample is not the median
//! of the resamples) and for acceleration (the scatter depends on the true value, from leaving out one value
//! at a time). Source: B. Efron, J. Am. Stat. Assoc. 82 (1987), 171-185; for two samples as in scipy.

use crate::error::{Error, Result};
use crate::sample::{Sample, quantile};
use crate::special::{normal_below, normal_quantile};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The ends of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How the ends are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Quantiles of the resamples.
    Percentile,
    /// Quantiles corrected for bias and acceleration. The percentile interval where the corrections are not
    /// defined: all resamples lie on one side of the statistic, or leaving out a value changes nothing.
    Bca,
}

/// What an interval depends on besides the values.
#[derive(Clone, Copy, Debug)]
pub struct Bootstrap {
    /// The number of resamples.
    pub resamples: u32,
    /// The confidence: the part of such intervals that hold the true value.
    pub level: f64,
    /// How the ends are found.
    pub method: Method,
    /// Equal seeds give equal intervals.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// 9,999 resamples, 95 %, BCa: scipy's defaults, with seed 0.
    fn default() -> Bootstrap {
        Bootstrap { resamples: 9_999, level: 0.95, method: Method::Bca, seed: 0 }
    }
}

impl Bootstrap {
    /// An interval of a statistic of one sample. `statistic` gets sorted values.
    ///
    /// # Errors
    /// If the level or the number of resamples is out of range, or `statistic` gives no finite number.
    pub fn interval(&self, sample: &Sample, statistic: impl Fn(&[f64]) -> f64) -> Result<Interval> {
        let sides = [sample.values()];
        self.of_sides(sides, |[values]| statistic(values))
    }

    /// An interval of a statistic of two samples, such as the ratio of their medians. `statistic` gets sorted
    /// values. The resamples of one side do not depend on those of the other.
    ///
    /// # Errors
    /// If the level or the number of resamples is out of range, or `statistic` gives no finite number.
    pub fn interval_of_two(
        &self,
        base: &Sample,
        other: &Sample,
        statistic: impl Fn(&[f64], &[f64]) -> f64,
    ) -> Result<Interval> {
        self.of_sides([base.values(), other.values()], |[base, other]| statistic(base, other))
    }

    fn of_sides<const SIDES: usize>(
        &self,
        sides: [&[f64]; SIDES],
        statistic: impl Fn([&[f64]; SIDES]) -> f64,
    ) -> Result<Interval> {
        if self.resamples < 2 {
            return Err(Error::Resamples(self.resamples));
        }
        let mut streams: [Draws<'_>; SIDES] =
            std::array::from_fn(|side| Draws::new(sides[side], self.seed, side as u64));
        let mut resampled = Vec::with_capacity(self.resamples as usize);
        for _ in 0..self.resamples {
            streams.iter_mut().for_each(Draws::draw);
            resampled.push(statistic(std::array::from_fn(|side| streams[side].drawn.as_slice())));
        }
        let left_out: [Vec<f64>; SIDES] = std::array::from_fn(|side| {
            (0..sides[side].len())
                .map(|out| {
                    let mut rest = sides[side].to_vec();
                    rest.remove(out);
                    let mut all = sides;
                    all[side] = &rest;
                    if rest.is_empty() { f64::NAN } else { statistic(all) }
                })
                .collect()
        });
        ends(self.method, self.level, statistic(sides), &mut resampled, &left_out)
    }
}

/// The ends of an interval: `found` is the statistic of the samples, `resampled` those of the resamples,
/// `left_out[side]` those without one value of this side.
///
/// # Errors
/// If the level is out of range, or `found` or a number of `resampled` is not finite.
pub fn ends(
    method: Method,
    level: f64,
    found: f64,
    resampled: &mut [f64],
    left_out: &[Vec<f64>],
) -> Result<Interval> {
    let outside = outside(level)?;
    if let Some(bad) = resampled.iter().chain([&found]).find(|value| !value.is_finite()) {
        return Err(Error::Statistic(*bad));
    }
    resampled.sort_by(f64::total_cmp);
    let parts = match method {
        Method::Percentile => None,
        Method::Bca => corrected(outside, found, resampled, left_out),
    };
    let (low, high) = parts.unwrap_or((outside, 1.0 - outside));
    Ok(Interval { low: quantile(resampled, low), high: quantile(resampled, high) })
}

/// The probability below an interval with this confidence.
pub(crate) fn outside(level: f64) -> Result<f64> {
    // At levels nearer to 1 the quantiles of Student's t lose their digits.
    if !(level > 0.0 && level <= 0.999_999) {
        return Err(Error::Level(level));
    }
    Ok((1.0 - level) / 2.0)
}

/// The parts of the resamples below the two ends of a BCa interval. `None` where they are not defined.
fn corrected(outside: f64, found: f64, resampled: &[f64], left_out: &[Vec<f64>]) -> Option<(f64, f64)> {
    let below = resampled.partition_point(|value| *value < found);
    let at_most = resampled.partition_point(|value| *value <= found);
    let bias = normal_quantile((below + at_most) as f64 / 2.0 / resampled.len() as f64);
    let (mut cubes, mut squares) = (0.0, 0.0);
    for statistics in left_out {
        let n = statistics.len() as f64;
        let mean = statistics.iter().sum::<f64>() / n;
        for statistic in statistics {
            let influence = (n - 1.0) * (mean - statistic) / n;
            cubes += influence.powi(3);
            squares += influence.powi(2);
        }
    }
    let acceleration = cubes / (6.0 * squares.powf(1.5));
    let part = |z: f64| normal_below(bias + (bias + z) / (1.0 - acceleration * (bias + z)));
    let parts = (part(normal_quantile(outside)), part(normal_quantile(1.0 - outside)));
    (bias.is_finite() && acceleration.is_finite()).then_some(parts)
}

/// The resamples of one sample.
struct Draws<'a> {
    values: &'a [f64],
    random: Pcg64Mcg,
    /// How often each value is drawn.
    times: Vec<u32>,
    drawn: Vec<f64>,
}

impl<'a> Draws<'a> {
    fn new(values: &'a [f64], seed: u64, stream: u64) -> Draws<'a> {
        // The odd constant is 2^64 over the golden ratio: neighbouring seeds do not share streams.
        let seed = seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = Pcg64Mcg::seed_from_u64(seed);
        Draws { values, random, times: vec![0; values.len()], drawn: Vec::with_capacity(values.len()) }
    }

    /// The next resample. Counting the draws of each value makes it sorted without a sort.
    fn draw(&mut self) {
        self.times.fill(0);
        for _ in 0..self.values.len() {
            let at = (u128::from(self.random.next_u64()) * self.values.len() as u128) >> 64;
            self.times[at as usize] += 1;
        }
        self.drawn.clear();
        for (value, times) in self.values.iter().zip(&self.times) {
            self.drawn.extend(std::iter::repeat_n(*value, *times as usize));
        }
    }
}
