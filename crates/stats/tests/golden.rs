//! Every result beside scipy's. `scripts/stats_golden.py` writes the cases; their file names scipy's version.
//!
//! What this cannot show: that the resamples of the bootstrap are drawn well. They are scipy's here; ours are
//! tested by their coverage in `tests/samples.rs`.

use serde_json::Value;
use slablab_stats::bootstrap::{Method, ends};
use slablab_stats::effect::{cliffs_delta, hedges_g};
use slablab_stats::holm::holm;
use slablab_stats::paired::{paired, paired_ratio_interval};
use slablab_stats::placement::Groups;
use slablab_stats::rank::{Distribution, mann_whitney};
use slablab_stats::welch::{ratio_interval, welch};
use slablab_stats::{Moments, Sample};
use std::collections::BTreeMap;

/// The part of the expected number that a result may be off.
const TOLERANCE: f64 = 1e-9;

type Found = BTreeMap<String, f64>;

/// Compares the results for one case with the expected numbers: the same names, the same values.
fn check(case: &Value) {
    let kind = case["kind"].as_str().expect("a kind");
    let found = match kind {
        "sample" => of_sample(&sample(&case["values"])),
        "moments" => of_moments(&moments(&case["base"]), &moments(&case["other"])),
        "two" => of_two(&sample(&case["base"]), &sample(&case["other"])),
        "pairs" => of_pairs(&numbers(&case["base"]), &numbers(&case["other"])),
        "holm" => of_holm(&numbers(&case["p_values"])),
        "bootstrap" => of_bootstrap(case),
        "placements" => of_placements(&case["groups"]),
        other => panic!("no such kind of case: {other}"),
    };
    let expected = case["expected"].as_object().expect("expected numbers");
    assert!(expected.keys().eq(found.keys()), "{kind}: {found:?}, expected {expected:?}");
    for (name, found) in found {
        let expected = expected[&name].as_f64().expect("a number");
        let off = (found - expected).abs();
        assert!(off <= TOLERANCE * expected.abs(), "{kind} {name}: {found}, expected {expected}: {case}");
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(|number| number.as_f64().expect("a number")).collect()
}

fn sample(value: &Value) -> Sample {
    Sample::new(numbers(value)).expect("a sample")
}

fn moments(value: &Value) -> Moments {
    let [n, mean, sd] = numbers(value)[..] else { panic!("three numbers: {value}") };
    Moments::new(n as usize, mean, sd).expect("moments")
}

fn named<const N: usize>(pairs: [(&str, f64); N]) -> Found {
    pairs.into_iter().map(|(name, number)| (name.to_string(), number)).collect()
}

fn of_sample(sample: &Sample) -> Found {
    let mut found = named([
        ("mean", sample.mean()),
        ("sd", sample.sd()),
        ("median", sample.median()),
        ("min", sample.min()),
        ("max", sample.max()),
        ("quantile_0.05", sample.quantile(0.05)),
        ("quantile_0.9", sample.quantile(0.9)),
    ]);
    found.extend(sample.harmonic_mean().map(|mean| ("harmonic_mean".to_string(), mean)));
    found
}

fn of_moments(base: &Moments, other: &Moments) -> Found {
    let test = welch(base, other).expect("enough values");
    let mut found = named([
        ("difference", test.difference),
        ("t", test.t),
        ("freedom", test.freedom),
        ("p", test.p),
        ("hedges_g", hedges_g(base, other).expect("enough values").expect("a side that varies")),
    ]);
    for level in [0.95, 0.99] {
        let interval = test.interval(level).expect("a level");
        found.extend([(format!("low_{level}"), interval.low), (format!("high_{level}"), interval.high)]);
    }
    if let Ok(ratio) = ratio_interval(base, other, 0.95) {
        found.extend(named([("ratio_low", ratio.low), ("ratio_high", ratio.high)]));
    }
    found
}

fn of_two(base: &Sample, other: &Sample) -> Found {
    let test = welch(&base.moments(), &other.moments()).expect("enough values");
    let interval = test.interval(0.95).expect("a level");
    let ranks = mann_whitney(base, other);
    named([
        ("t", test.t),
        ("freedom", test.freedom),
        ("p", test.p),
        ("low", interval.low),
        ("high", interval.high),
        ("u", ranks.u),
        ("rank_p", ranks.p),
        ("exact", f64::from(u8::from(ranks.distribution == Distribution::Exact))),
        ("cliffs_delta", cliffs_delta(base, other)),
    ])
}

fn of_pairs(base: &[f64], other: &[f64]) -> Found {
    let pairs: Vec<[f64; 2]> = base.iter().zip(other).map(|(base, other)| [*base, *other]).collect();
    let test = paired(&pairs).expect("two pairs");
    let mut found =
        named([("difference", test.difference), ("t", test.t), ("freedom", test.freedom), ("p", test.p)]);
    if let Ok(ratio) = paired_ratio_interval(&pairs, 0.95) {
        found.extend(named([("ratio_low", ratio.low), ("ratio_high", ratio.high)]));
    }
    found
}

fn of_holm(p_values: &[f64]) -> Found {
    let corrected = holm(p_values).expect("p-values");
    corrected.into_iter().enumerate().map(|(index, p)| (index.to_string(), p)).collect()
}

fn of_bootstrap(case: &Value) -> Found {
    let sides: Vec<Sample> = case["sides"].as_array().expect("sides").iter().map(sample).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let statistic = |sides: &[Sample]| match case["statistic"].as_str().expect("a statistic") {
        "mean" => sides[0].mean(),
        "sd" => sides[0].sd(),
        "ratio" => mean(sides[1].values()) / mean(sides[0].values()),
        other => panic!("no such statistic: {other}"),
    };
    let without = |side: usize, out: usize| {
        let mut rest = sides.clone();
        let mut values = sides[side].values().to_vec();
        values.remove(out);
        rest[side] = Sample::new(values).expect("a rest");
        statistic(&rest)
    };
    let left_out: Vec<Vec<f64>> = sides
        .iter()
        .enumerate()
        .map(|(side, sample)| (0..sample.n()).map(|out| without(side, out)).collect())
        .collect();
    let level = case["level"].as_f64().expect("a level");
    let mut found = Found::new();
    for (name, method) in [("percentile", Method::Percentile), ("BCa", Method::Bca)] {
        let mut resampled = numbers(&case["resampled"]);
        let interval = ends(method, level, statistic(&sides), &mut resampled, &left_out).expect("ends");
        found.extend([(format!("{name}_low"), interval.low), (format!("{name}_high"), interval.high)]);
    }
    found
}

fn of_placements(groups: &Value) -> Found {
    let groups = groups.as_array().expect("groups").iter().map(sample).collect();
    let parts = Groups::new(groups).expect("groups").parts();
    named([("f", parts.f), ("p", parts.p), ("within", parts.within), ("between", parts.between)])
}

#[test]
fn results_are_scipys() {
    let text = include_str!("../testdata/golden.json");
    let golden: Value = serde_json::from_str(text).expect("JSON");
    assert!(golden["versions"]["scipy"].is_string(), "the file names scipy's version");
    let cases = golden["cases"].as_array().expect("cases");
    assert!(cases.len() >= 20, "{} cases", cases.len());
    cases.iter().for_each(check);
}
