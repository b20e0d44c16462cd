//! Published beside modelled: a verdict for each relation that an experiment expects.
//!
//! | verdict | when |
//! |---|---|
//! | agrees | the modelled difference has the published sign, at every swept value and every assumed cost |
//! | sign differs | it has the other sign |
//! | no difference can be told | the test with Holm's correction tells none, or it is below the noise |
//! | undetermined | the sign is not the same at all swept values, or what is assumed flips it |
//!
//! A change of what is assumed flips a sign if the ratio of means is on the other side of 1. It flips "no
//! difference" if the ratio is beyond the noise and, where varied cells run more than once, the test tells
//! it, with Holm's correction over the changes.

use crate::file::rows::{Expect, Select, Sign};
use crate::plan::{Cell, Scaled};
use crate::run::results::Results;
use crate::workload::Metric;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_stats::bootstrap::Interval;
use slablab_stats::holm::holm;
use slablab_stats::paired::{paired, paired_ratio_interval};
use slablab_stats::welch::{ratio_interval, welch};
use std::fmt;

/// The probability of even one false difference in an experiment, at most.
pub(crate) const SIGNIFICANCE: f64 = 0.05;

/// How a published relation and the modelled one compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The signs are the same.
    Agrees,
    /// The signs are opposite, or there is a difference where none was published.
    SignDiffers,
    /// The sign depends on what is assumed or not told.
    Undetermined,
    /// The modelled difference cannot be told from none.
    NoDifference,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Agrees => "agrees",
            Verdict::SignDiffers => "sign differs",
            Verdict::Undetermined => "undetermined",
            Verdict::NoDifference => "no difference can be told",
        })
    }
}

/// Two cells.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The swept values and the machine that both cells share.
    pub label: String,
    /// The base's place in the plan.
    pub base: usize,
    /// The other's place in the plan.
    pub other: usize,
    /// The modelled ratio of the means, other over base, infinite over 0; `None` if a run failed.
    pub ratio: Option<f64>,
    /// Its 95 % interval over the repeats.
    pub interval: Option<Interval>,
    /// The p-value after Holm's correction over the experiment.
    pub p: Option<f64>,
    /// What each change of what is assumed makes of it; empty if nothing is varied.
    pub varied: Vec<Varied>,
    /// The modelled sign.
    pub sign: Sign,
}

/// Two cells after a change of what is assumed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Varied {
    /// The change.
    pub by: String,
    /// The ratio of the means; in a document null if it is infinite.
    #[schemars(with = "Option<f64>")]
    pub ratio: f64,
    /// The p-value after Holm's correction over the changes; `None` if the cells ran once.
    #[serde(rename = "p_holm")]
    pub p: Option<f64>,
}

impl Compared {
    /// The changes with the lowest and the highest ratio.
    pub fn range(&self) -> Option<[&Varied; 2]> {
        let by_ratio = |a: &&Varied, b: &&Varied| a.ratio.total_cmp(&b.ratio);
        // The first of those with the highest ratio.
        let high = self.varied.iter().rev().max_by(by_ratio)?;
        Some([self.varied.iter().min_by(by_ratio)?, high])
    }

    /// The changes that flip the modelled sign.
    pub fn flips(&self, noise_percent: f64) -> impl Iterator<Item = &Varied> {
        self.varied.iter().filter(move |varied| match self.sign {
            Sign::Higher => varied.ratio <= 1.0,
            Sign::Lower => varied.ratio >= 1.0,
            Sign::Nothing => {
                is_more(varied.ratio, noise_percent) && varied.p.is_none_or(|p| p <= SIGNIFICANCE)
            }
        })
    }
}

/// An expected relation, and what was modelled.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The relation.
    pub expect: Expect,
    /// The pairs of cells that it is about: more than one if parameters are swept.
    pub compared: Vec<Compared>,
    /// The verdict over all of them.
    pub verdict: Verdict,
}

/// How many rows agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Score {
    /// Rows that agree.
    pub agree: usize,
    /// All rows.
    pub rows: usize,
    /// The sign that is expected most often, and how often: the best answer that is the same for all rows.
    pub constant: (Sign, usize),
}

/// Judges every relation that an experiment expects.
///
/// # Panics
/// Never: p-values are from 0 to 1.
pub fn judge(results: &Results) -> Vec<Judged> {
    let file = &results.experiment.file;
    // Cells of other sizes are not there.
    let is_there = |cell: &Select| !results.plan.selected(&results.experiment, cell).is_empty();
    let expected: Vec<&Expect> =
        file.expect.iter().filter(|expect| is_there(&expect.base) && is_there(&expect.other)).collect();
    let mut pairs: Vec<Vec<Compared>> = expected.iter().map(|expect| pairs(results, expect)).collect();
    let tested: Vec<f64> = pairs.iter().flatten().filter_map(|pair| pair.p).collect();
    let mut corrected = holm(&tested).expect("p-values of tests are from 0 to 1").into_iter();
    for pair in pairs.iter_mut().flatten() {
        pair.p = pair.p.and_then(|_| corrected.next());
        pair.sign = sign(pair, file.noise_percent);
    }
    let judged = expected.into_iter().zip(pairs).map(|(expect, compared)| {
        let verdict = verdict(expect.sign, &compared, file.noise_percent);
        Judged { expect: expect.clone(), compared, verdict }
    });
    judged.collect()
}

/// The score of the rows, beside that of the best constant answer.
pub fn score(rows: &[Judged]) -> Score {
    let expected = |sign: Sign| rows.iter().filter(|row| row.expect.sign == sign).count();
    let counts = Sign::WORDS.map(|(_, sign)| (sign, expected(sign)));
    let constant = counts.into_iter().rev().max_by_key(|(_, count)| *count);
    Score {
        agree: rows.iter().filter(|row| row.verdict == Verdict::Agrees).count(),
        rows: rows.len(),
        constant: constant.expect("there are three signs"),
    }
}

/// The pairs of cells that are alike in all that neither selection names.
pub(crate) fn pairs(results: &Results, expect: &Expect) -> Vec<Compared> {
    let plan = &results.plan;
    let bases = plan.selected(&results.experiment, &expect.base);
    let others = plan.selected(&results.experiment, &expect.other);
    let mut found = Vec::new();
    for base in bases {
        let alike = |other: &&usize| alike(expect, &plan.cells[base], &plan.cells[**other]);
        found.extend(others.iter().filter(alike).map(|other| compared(results, expect, base, *other)));
    }
    found
}

fn alike(expect: &Expect, base: &Cell, other: &Cell) -> bool {
    let named = |part: fn(&Select) -> bool| part(&expect.base) || part(&expect.other);
    // A parameter may differ if each side names one value of it; a list that both sides name is swept.
    let of_value = |name: &str| {
        let [base, other] = [&expect.base, &expect.other]
            .map(|select| select.values.iter().find(|(named, _)| *named == name).map(|(_, values)| values));
        base != other || (base.is_some_and(|values| values.len() == 1))
    };
    (named(|select| select.machine.is_some()) || base.machine == other.machine)
        && (named(|select| select.engine.is_some()) || base.engine == other.engine)
        && base.values.0.iter().all(|(name, value)| of_value(name) || other.values.0.get(name) == Some(value))
}

fn compared(results: &Results, expect: &Expect, base: usize, other: usize) -> Compared {
    let metrics = results.experiment.file.workload.metrics;
    let (of_base, of_other) = (&metrics[expect.base_metric], &metrics[expect.metric]);
    let mean = |cell: usize, metric: &Metric| results.independent(cell, metric).map(|sample| sample.mean());
    let ratio = |base: usize, other: usize| Some(ratio_of(mean(base, of_base)?, mean(other, of_other)?));
    let (p, interval) = tested(results, (base, of_base), (other, of_other));
    Compared {
        label: results.label(base),
        base,
        other,
        ratio: ratio(base, other),
        interval,
        p,
        varied: varied(results, (base, of_base), (other, of_other)),
        sign: Sign::Nothing,
    }
}

/// `other` over `base`: infinite over 0; 1 if both are 0.
fn ratio_of(base: f64, other: f64) -> f64 {
    if base == other { 1.0 } else { other / base }
}

/// The p-value of a difference between two numbers, and the 95 % interval of their ratio. Two numbers of
/// the same runs are tested as pairs. Runs of two cells with one seed are not: under `tmpfs-swap` they
/// are no more alike than any two runs, and a test of pairs would tell less.
fn tested(
    results: &Results,
    base: (usize, &Metric),
    other: (usize, &Metric),
) -> (Option<f64>, Option<Interval>) {
    if base.0 == other.0 {
        let Some(pairs) = results.pairs(base.0, base.1, other.1) else { return (None, None) };
        return (paired(&pairs).ok().map(|found| found.p), paired_ratio_interval(&pairs, 0.95).ok());
    }
    let moments =
        |(cell, metric): (usize, &Metric)| results.independent(cell, metric).map(|one| one.moments());
    let Some((base, other)) = moments(base).zip(moments(other)) else { return (None, None) };
    (welch(&base, &other).ok().map(|found| found.p), ratio_interval(&base, &other, 0.95).ok())
}

/// What each change of what is assumed makes of two cells. A change without numbers is left out.
fn varied(results: &Results, base: (usize, &Metric), other: (usize, &Metric)) -> Vec<Varied> {
    let (experiment, plan) = (&results.experiment, &results.plan);
    let mut changes: Vec<Scaled> = plan.cells.iter().map(|cell| cell.scaled).collect();
    changes.retain(|change| plan.sensitivity && *change != Scaled::Nothing);
    // Cells of one change follow each other.
    changes.dedup();
    let mean = |(cell, metric): (usize, &Metric)| results.independent(cell, metric).map(|one| one.mean());
    let of = |change: Scaled| {
        let at = |cell: usize| plan.with_scale(experiment, &plan.cells[cell], change);
        let (base, other) = ((at(base.0)?, base.1), (at(other.0)?, other.1));
        let ratio = ratio_of(mean(base)?, mean(other)?);
        let p = if plan.varied > 1 { tested(results, base, other).0 } else { None };
        Some(Varied { by: experiment.words(change), ratio, p })
    };
    let mut varied: Vec<Varied> = changes.into_iter().filter_map(of).collect();
    let tested: Vec<f64> = varied.iter().filter_map(|one| one.p).collect();
    let mut corrected = holm(&tested).expect("p-values of tests are from 0 to 1").into_iter();
    for one in &mut varied {
        one.p = one.p.and_then(|_| corrected.next());
    }
    varied
}

/// The sign of a modelled ratio, if the test and the noise leave one.
fn sign(pair: &Compared, noise_percent: f64) -> Sign {
    match (pair.ratio, pair.p) {
        (Some(ratio), Some(p)) if p <= SIGNIFICANCE && is_more(ratio, noise_percent) => Sign::of_ratio(ratio),
        _ => Sign::Nothing,
    }
}

/// Whether a ratio is further from 1 than the noise.
fn is_more(ratio: f64, noise_percent: f64) -> bool {
    (ratio - 1.0).abs() * 100.0 > noise_percent
}

fn verdict(expected: Sign, pairs: &[Compared], noise_percent: f64) -> Verdict {
    let Some(first) = pairs.first() else { return Verdict::NoDifference };
    let is_flipped = |pair: &Compared| pair.ratio.is_some() && pair.flips(noise_percent).next().is_some();
    if pairs.iter().any(|pair| pair.sign != first.sign || is_flipped(pair)) {
        return Verdict::Undetermined;
    }
    match (expected, first.sign) {
        (expected, found) if expected == found && first.ratio.is_some() => Verdict::Agrees,
        (_, Sign::Nothing) => Verdict::NoDifference,
        _ => Verdict::SignDiffers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ratio: f64, p: f64, range: [f64; 2]) -> Compared {
        let varied = range.map(|ratio| Varied { by: "a cost halved".into(), ratio, p: None }).to_vec();
        let mut pair = Compared {
            label: String::new(),
            base: 0,
            other: 1,
            ratio: Some(ratio),
            interval: None,
            p: Some(p),
            varied,
            sign: Sign::Nothing,
        };
        pair.sign = sign(&pair, 1.0);
        pair
    }

    #[test]
    fn verdicts() {
        let check = |expected: Sign, pairs: &[Compared], wanted: Verdict| {
            assert_eq!(verdict(expected, pairs, 1.0), wanted, "{expected:?} {pairs:?}");
        };
        use Sign::{Higher, Lower, Nothing};
        check(Lower, &[pair(0.4, 0.001, [0.3, 0.6])], Verdict::Agrees);
        check(Higher, &[pair(0.4, 0.001, [0.3, 0.6])], Verdict::SignDiffers);
        check(Nothing, &[pair(0.4, 0.001, [0.3, 0.6])], Verdict::SignDiffers);
        // The sign changes with an assumed cost, or with a swept value.
        check(Lower, &[pair(0.9, 0.001, [0.8, 1.1])], Verdict::Undetermined);
        check(Lower, &[pair(0.9, 0.001, [0.8, 1.0])], Verdict::Undetermined);
        check(Lower, &[pair(0.9, 0.001, [0.8, 0.9]), pair(1.2, 0.001, [1.1, 1.3])], Verdict::Undetermined);
        // No difference: the test tells none, or it is below the noise.
        check(Lower, &[pair(0.9, 0.2, [0.995, 1.005])], Verdict::NoDifference);
        check(Lower, &[pair(0.995, 0.001, [0.995, 1.005])], Verdict::NoDifference);
        check(Nothing, &[pair(0.995, 0.001, [0.995, 1.005])], Verdict::Agrees);
        check(Nothing, &[pair(0.995, 0.001, [0.9, 1.005])], Verdict::Undetermined);
        check(Lower, &[], Verdict::NoDifference);
    }

    /// Several runs of varied cells: "no difference" flips only if the test tells one; a sign if the mean
    /// does.
    #[test]
    fn flips_of_several_runs() {
        let check = |ratio: f64, p: f64, varied: (f64, f64), wanted: &[&str]| {
            let of = Varied { by: "it".into(), ratio: varied.0, p: Some(varied.1) };
            let same = Varied { by: "same".into(), ratio, p: Some(p) };
            let pair = Compared { varied: vec![same, of], ..pair(ratio, p, [ratio; 2]) };
            let found: Vec<&str> = pair.flips(1.0).map(|one| one.by.as_str()).collect();
            assert_eq!(found, wanted, "{ratio} {p} {varied:?}");
        };
        check(1.0, 0.9, (1.2, 0.01), &["it"]);
        check(1.0, 0.9, (1.2, 0.2), &[]);
        check(1.0, 0.9, (1.005, 0.01), &[]);
        check(1.3, 0.01, (0.98, 0.6), &["it"]);
        check(1.3, 0.01, (1.02, 0.6), &[]);
        check(0.7, 0.01, (1.1, 0.6), &["it"]);
        // A difference that the test does not tell is none.
        check(1.3, 0.2, (1.3, 0.01), &["it"]);
    }

    #[test]
    fn a_difference_from_zero_has_a_sign() {
        assert_eq!(sign(&pair(ratio_of(0.0, 2.0), 0.001, [1.0, 1.0]), 7.0), Sign::Higher);
        assert_eq!(sign(&pair(ratio_of(2.0, 0.0), 0.001, [1.0, 1.0]), 7.0), Sign::Lower);
        assert_eq!(sign(&pair(ratio_of(0.0, 0.0), 0.001, [1.0, 1.0]), 7.0), Sign::Nothing);
    }

    #[test]
    fn a_run_that_failed_agrees_with_nothing() {
        let failed = Compared { ratio: None, p: None, varied: Vec::new(), ..pair(0.4, 0.001, [0.3, 0.6]) };
        let failed = Compared { sign: sign(&failed, 1.0), ..failed };
        for expected in [Sign::Higher, Sign::Lower, Sign::Nothing] {
            assert_eq!(verdict(expected, std::slice::from_ref(&failed), 1.0), Verdict::NoDifference);
        }
    }
}
