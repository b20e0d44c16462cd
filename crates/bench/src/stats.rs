//! Medians and their intervals: the statistics of `slablab-stats` in the form of the tables.

use slablab_stats::{Bootstrap, Method, Sample, quantile};

/// The interval of a median: the middle of 2,000 resamples' medians.
const INTERVAL: Bootstrap = Bootstrap { resamples: 2_000, level: 0.95, method: Method::Percentile, seed: 0 };

/// A median and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
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

/// The median. NaN if there are no numbers.
pub fn median(values: &[f64]) -> f64 {
    Sample::new(values).map_or(f64::NAN, |sample| sample.median())
}

/// The median, and the interval that contains the medians of 95 % of the resamples. `None` if there are no
/// values. The seed decides the draws; the order of the values does not matter.
pub fn estimate(values: &[f64], seed: u64) -> Option<Estimate> {
    let sample = Sample::new(values).ok()?;
    let interval = Bootstrap { seed, ..INTERVAL }.interval(&sample, |sorted| quantile(sorted, 0.5)).ok()?;
    Some(Estimate { median: sample.median(), low: interval.low, high: interval.high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn medians() {
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0, "it sorts");
        assert_eq!(median(&[4.0, 1.0]), 2.5);
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

    /// The figures of 11 runs, as bench printed them before it had its statistics from `slablab-stats`. They
    /// do not depend on the order of the runs.
    #[test]
    fn figures_of_fixed_samples() {
        let mut runs = [12.5, 11.0, 14.25, 10.75, 13.0, 12.0, 30.5, 11.5, 12.25, 10.5, 13.75];
        let printed = Estimate { median: 12.25, low: 11.0, high: 13.75 };
        for seed in 0..4 {
            assert_eq!(estimate(&runs, seed), Some(printed), "seed {seed}");
            runs.rotate_left(3);
        }
        assert_eq!(format!("{:.4}", printed.give_or_take_percent()), "11.2245");
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
