//! Medians and their intervals.

use crate::random::Random;

/// The number of resamples for an interval.
const RESAMPLES: usize = 2000;
/// The part of the resamples that lies inside an interval.
const INSIDE: f64 = 0.95;

/// A median and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The median.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Half of the interval's width, in percent of the median.
    pub fn give_or_take_percent(&self) -> f64 {
        if self.median == 0.0 { 0.0 } else { (self.high - self.low) / 2.0 / self.median.abs() * 100.0 }
    }
}

/// A quantile of sorted numbers, interpolated between neighbours. NaN if there are no numbers.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = part.clamp(0.0, 1.0) * last as f64;
    let (below, rest) = (place.floor() as usize, place.fract());
    let above = sorted[(below + 1).min(last)];
    sorted[below] + (above - sorted[below]) * rest
}

/// The median. NaN if there are no numbers.
pub fn median(values: &[f64]) -> f64 {
    quantile(&sorted(values), 0.5)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median, and the interval that contains the medians of 95 % of the resamples. A resample draws as many
/// values as there are, with replacement (Efron's percentile bootstrap). `None` if there are no values. The
/// seed decides the draws.
pub fn estimate(values: &[f64], seed: u64) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let mut random = Random::new(seed);
    let mut drawn = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.fill_with(|| values[random.below(values.len() as u64) as usize]);
            drawn.sort_by(f64::total_cmp);
            quantile(&drawn, 0.5)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let outside = (1.0 - INSIDE) / 2.0;
    Some(Estimate {
        median: median(values),
        low: quantile(&medians, outside),
        high: quantile(&medians, 1.0 - outside),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_known_numbers() {
        // Values of R's quantile(type = 7), which is also numpy's default.
        let cases: [(&[f64], f64, f64); 8] = [
            (&[7.0], 0.5, 7.0),
            (&[1.0, 2.0], 0.5, 1.5),
            (&[1.0, 2.0, 4.0], 0.5, 2.0),
            (&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25, 2.0),
            (&[15.0, 20.0, 35.0, 40.0, 50.0], 0.4, 29.0),
            (&[3.0, 6.0, 7.0, 8.0, 8.0, 10.0, 13.0, 15.0, 16.0, 20.0], 0.75, 14.5),
            (&[1.0, 2.0], 0.0, 1.0),
            (&[1.0, 2.0], 1.0, 2.0),
        ];
        for (values, part, expected) in cases {
            assert!((quantile(values, part) - expected).abs() < 1e-12, "{part} of {values:?}");
        }
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0, "it sorts");
    }

    #[test]
    fn intervals() {
        assert_eq!(estimate(&[], 1), None);
        let same = estimate(&[3.0; 9], 1).expect("values");
        assert_eq!((same.low, same.median, same.high), (3.0, 3.0, 3.0));
        let values: Vec<f64> = (1..=13).map(f64::from).collect();
        let all = estimate(&values, 1).expect("values");
        assert_eq!(all, estimate(&values, 1).expect("values"), "the seed decides");
        // Of 13 drawn values, 7 are among the first 3 in 1.6 % of the resamples, and among the first 4 in 7.1
        // % (binomial).
        assert_eq!((all.low, all.median, all.high), (4.0, 7.0, 10.0));
    }

    /// For many samples of a known distribution, about 95 % of the intervals contain its median.
    #[test]
    fn coverage() {
        const SAMPLES: u64 = 300;
        let mut random = Random::new(7);
        let mut holds = 0;
        for sample in 0..SAMPLES {
            // A skewed distribution, as times have: the median of -ln(u) is ln 2.
            let values: Vec<f64> = (0..15).map(|_| -random.unit().max(1e-12).ln()).collect();
            let found = estimate(&values, sample).expect("values");
            holds += u64::from((found.low..=found.high).contains(&std::f64::consts::LN_2));
        }
        assert!((270..=296).contains(&holds), "{holds} of {SAMPLES} intervals hold the median");
    }
}
