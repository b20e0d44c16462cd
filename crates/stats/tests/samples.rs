//! Inputs at the edges, and what the bootstrap's resamples are worth.

use slablab_stats::bootstrap::{Bootstrap, Interval, Method};
use slablab_stats::effect::{cliffs_delta, hedges_g};
use slablab_stats::holm::holm;
use slablab_stats::placement::Groups;
use slablab_stats::rank::mann_whitney;
use slablab_stats::welch::{ratio_interval, welch};
use slablab_stats::{Error, Moments, Sample, quantile};

fn sample(values: &[f64]) -> Sample {
    Sample::new(values).expect("a sample")
}

fn moments(n: usize, mean: f64, sd: f64) -> Moments {
    Moments::new(n, mean, sd).expect("moments")
}

/// Checks that an input is refused with this message.
fn check<T: std::fmt::Debug>(result: Result<T, Error>, message: &str) {
    assert_eq!(result.expect_err("it is refused").to_string(), message);
}

#[test]
fn bad_inputs_are_refused() {
    check(Sample::new([]), "the sample has no values: expected at least 1");
    check(Sample::new([1.0, f64::NAN]), "value 1 is NaN: expected a number between -1e90 and 1e90");
    check(Sample::new([f64::INFINITY]), "value 0 is inf: expected a number between -1e90 and 1e90");
    check(Moments::new(0, 1.0, 1.0), "the sample has no values: expected at least 1");
    check(Moments::new(3, f64::NAN, 1.0), "the mean is NaN: expected a number between -1e90 and 1e90");
    check(Moments::new(3, 1.0, -0.5), "the standard deviation is -0.5: expected a number from 0 to 1e90");
    check(Moments::new(3, 1.0, f64::NAN), "the standard deviation is NaN: expected a number from 0 to 1e90");
    let (one, two) = (moments(1, 1.0, 0.0), moments(2, 1.0, 1.0));
    check(welch(&one, &two), "Welch's t-test needs 2 values on each side: 1 are given");
    check(hedges_g(&two, &one), "Hedges' g needs 2 values on each side: 1 are given");
    let zero = moments(5, 0.0, 1.0);
    check(ratio_interval(&zero, &two, 0.95), "the mean is 0: expected a number above 0 for a ratio");
    check(holm(&[0.1, f64::NAN]), "p-value 1 is NaN: expected a number from 0 to 1");
    check(holm(&[1.5]), "p-value 0 is 1.5: expected a number from 0 to 1");
    for level in [0.0, 1.0, -0.5, f64::NAN] {
        let message = format!(
            "the confidence level is {level}: expected a number above 0, at most 0.999999, such as 0.95"
        );
        check(welch(&two, &two).expect("a test").interval(level), &message);
        let bootstrap = Bootstrap { level, ..Bootstrap::default() };
        check(bootstrap.interval(&sample(&[1.0, 2.0]), |values| values[0]), &message);
    }
    let none = Bootstrap { resamples: 1, ..Bootstrap::default() };
    let message = "the bootstrap has 1 resamples: expected at least 2";
    check(none.interval(&sample(&[1.0]), |values| values[0]), message);
    let message = "the statistic of a resample is NaN: expected a finite number";
    check(Bootstrap::default().interval(&sample(&[1.0]), |_| f64::NAN), message);
    let message = "the variance between placements needs 2 placements and one of them with 2 values";
    check(Groups::new(vec![sample(&[1.0, 2.0])]), message);
    check(Groups::new(vec![sample(&[1.0]), sample(&[2.0])]), message);
}

/// A deterministic simulation repeats to the last bit: 3 and 5 equal runs must not differ by their rounding.
#[test]
fn equal_runs_do_not_differ() {
    let (three, five) = (sample(&[0.1; 3]), sample(&[0.1; 5]));
    let test = welch(&three.moments(), &five.moments()).expect("a test");
    assert_eq!((test.difference, test.t, test.p), (0.0, 0.0, 1.0));
    assert_eq!(test.interval(0.95), Ok(Interval { low: 0.0, high: 0.0 }));
    assert_eq!((three.sd(), three.harmonic_mean()), (0.0, Some(0.1)));
    assert_eq!(hedges_g(&three.moments(), &five.moments()), Ok(None));
    assert_eq!((mann_whitney(&three, &five).p, cliffs_delta(&three, &five)), (1.0, 0.0));
    let parts = Groups::new(vec![three, five]).expect("groups").parts();
    assert_eq!((parts.within, parts.between, parts.f, parts.p), (0.0, 0.0, 0.0, 1.0));
    assert_eq!(parts.share_between(), 0.0);
}

#[test]
fn runs_that_never_vary_differ_by_any_amount() {
    let (fast, slow) = (sample(&[1.0; 3]), sample(&[1.25; 3]));
    let test = welch(&fast.moments(), &slow.moments()).expect("a test");
    assert_eq!((test.difference, test.t, test.p), (0.25, f64::INFINITY, 0.0));
    let back = welch(&slow.moments(), &fast.moments()).expect("a test");
    assert_eq!((back.t, back.p), (f64::NEG_INFINITY, 0.0));
    assert_eq!(cliffs_delta(&fast, &slow), 1.0);
    let parts = Groups::new(vec![fast, slow]).expect("groups").parts();
    assert_eq!((parts.within, parts.f, parts.p, parts.share_between()), (0.0, f64::INFINITY, 0.0, 1.0));
}

#[test]
fn the_order_of_runs_changes_nothing() {
    let forth: Vec<f64> = (1..=30).map(|run| 1.0 / f64::from(run)).collect();
    let back: Vec<f64> = forth.iter().rev().copied().collect();
    assert_eq!(sample(&forth).moments(), sample(&back).moments());
    let bootstrap = Bootstrap::default();
    let median = |values: &[f64]| quantile(values, 0.5);
    assert_eq!(bootstrap.interval(&sample(&forth), median), bootstrap.interval(&sample(&back), median));
}

#[test]
fn intervals_are_the_same_on_any_number_of_threads() {
    let base = sample(&[1.0, 1.2, 0.9, 1.4, 1.1, 1.3]);
    let other = sample(&[1.5, 1.1, 1.9, 1.6]);
    let interval = |seed: u64| {
        let bootstrap = Bootstrap { seed, resamples: 999, ..Bootstrap::default() };
        let ratio = |base: &[f64], other: &[f64]| quantile(other, 0.5) / quantile(base, 0.5);
        bootstrap.interval_of_two(&base, &other, ratio).expect("an interval")
    };
    let alone: Vec<Interval> = (0..8).map(interval).collect();
    let on_eight: Vec<Interval> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || interval(seed))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    assert_eq!(alone, on_eight);
    assert!(alone.windows(2).any(|pair| pair[0] != pair[1]), "the seed decides: {alone:?}");
}

#[test]
fn bca_falls_back_to_percentiles() {
    let distinct = |values: &[f64]| 1.0 + values.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
    let thirty: Vec<f64> = (0..30).map(f64::from).collect();
    // One value; values of which leaving one out changes nothing; a statistic that every resample has less
    // of.
    for values in [&[3.0][..], &[3.0; 9], &thirty] {
        let of = |method| {
            let bootstrap = Bootstrap { method, ..Bootstrap::default() };
            bootstrap.interval(&sample(values), distinct).expect("an interval")
        };
        assert_eq!(of(Method::Bca), of(Method::Percentile), "{values:?}");
    }
}

/// Of many samples of a skewed distribution, about 95 % of the intervals hold its mean. BCa comes nearer than
/// the percentile interval, which is what it is for.
#[test]
fn coverage_of_bootstrap_intervals() {
    const SAMPLES: u64 = 600;
    let mut state = 7_u64;
    let mut unit = || {
        // A multiplicative generator; its upper bits are good enough here.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    // The exponential distribution has mean 1.
    let samples: Vec<Sample> =
        (0..SAMPLES).map(|_| sample(&(0..20).map(|_| -unit().ln()).collect::<Vec<f64>>())).collect();
    let covered = |method| {
        let holds = |(seed, sample): (usize, &Sample)| {
            let bootstrap = Bootstrap { resamples: 999, method, seed: seed as u64, ..Bootstrap::default() };
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let interval = bootstrap.interval(sample, mean).expect("an interval");
            (interval.low..=interval.high).contains(&1.0)
        };
        samples.iter().enumerate().filter(|one| holds(*one)).count()
    };
    let (percentile, bca) = (covered(Method::Percentile), covered(Method::Bca));
    assert!(
        (528..=580).contains(&percentile),
        "{percentile} of {SAMPLES} percentile intervals hold the mean"
    );
    assert!((540..=585).contains(&bca), "{bca} of {SAMPLES} BCa intervals hold the mean");
    assert!(bca > percentile, "BCa {bca}, percentile {percentile}");
}
