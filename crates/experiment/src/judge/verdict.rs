//! Published beside modelled: a verdict for each relation that an experiment expects.
//!
//! | verdict | when, at every swept value |
//! |---|---|
//! | agrees | 95 % of the draws have the published sign, and 95 % of what could be drawn (Student) |
//! | sign differs | they have another sign |
//! | no difference can be told | a sign was published, and they cannot be told from a ratio of 1 |
//! | not resolvable | none of these, and the seed alone moves the ratio by more than the published effect |
//! | undetermined | none of these: what is assumed, or swept, decides |
//! | outside | 95 % of the draws are further from a published figure than the file allows, on one side |
//!
//! A ratio has a sign if it is further from 1 than the noise. Without draws the sign is that of the plain
//! runs, if Welch's test with Holm's correction over the experiment tells one. A number beside its published
//! figure is a ratio that must have no sign, where the file says what the noise is: `within_percent`. Without
//! draws the interval over the repeats must lie on one side.

use crate::file::rows::{Expect, Fitted, Published, Select, Sign};
use crate::judge::draws::{Base, Draws, Question, band_of, judged, noise, ratio_of};
use crate::plan::Cell;
use crate::run::results::Results;
use crate::workload::Metric;
use slablab_stats::bootstrap::Interval;
use slablab_stats::holm::holm;
use slablab_stats::paired::{paired, paired_ratio_interval};
use slablab_stats::welch::{ratio_interval, welch};
use std::fmt;

/// The probability of even one false difference in an experiment, at most.
pub(crate) const SIGNIFICANCE: f64 = 0.05;

/// How many times its lower end an interval's upper end is at most. Only ratios to counts of 0 make wider
/// ones.
const WIDEST: f64 = 1e6;

/// How a published relation and the modelled one compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The signs are the same.
    Agrees,
    /// The signs are opposite, or there is a difference where none was published.
    SignDiffers,
    /// The sign depends on what is assumed or not told.
    Undetermined,
    /// The seed alone moves the ratio by more than the published effect.
    NotResolvable,
    /// The modelled difference cannot be told from none.
    NoDifference,
    /// A number is too far from its published figure.
    Outside,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Agrees => "agrees",
            Verdict::SignDiffers => "sign differs",
            Verdict::Undetermined => "undetermined",
            Verdict::NotResolvable => "not resolvable",
            Verdict::NoDifference => "no difference can be told",
            Verdict::Outside => "outside",
        })
    }
}

/// Two cells.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The swept values and the machine that both cells share.
    pub label: String,
    /// The base's place in the plan; beside a figure the other's.
    pub base: usize,
    /// The other's place in the plan.
    pub other: usize,
    /// The modelled ratio of the means, other over base, infinite over 0; `None` if a run failed.
    pub ratio: Option<f64>,
    /// Its 95 % interval over the repeats.
    pub interval: Option<Interval>,
    /// The p-value after Holm's correction over the experiment.
    pub p: Option<f64>,
    /// What the draws say; `None` without.
    pub drawn: Option<Draws>,
    /// The standard deviation that the seed gives the logarithm of a ratio of published means; `None` with
    /// one run.
    pub scatter: Option<f64>,
    /// The modelled sign; `None` if no sign has 95 % of the draws.
    pub sign: Option<Sign>,
}

impl Compared {
    /// The 95 % interval beside which a published ratio is judged: that of the draws; without, over the
    /// repeats. `None` also where counts of 0 make it a million times wider than its lower end.
    pub fn ends(&self) -> Option<Interval> {
        let ends = self.drawn.as_ref().map(|drawn| drawn.interval).or(self.interval);
        ends.filter(|ends| ends.low <= 0.0 || ends.high < ends.low * WIDEST)
    }

    /// How far a ratio is outside of [`Compared::ends`], percent of the nearer end: above 0 if it is higher
    /// than the model's, 0 inside. `None` without an interval, and where the modelled ratio has no size: 0 or
    /// infinite.
    pub fn outside_percent(&self, published: f64) -> Option<f64> {
        self.ratio.filter(|ratio| *ratio > 0.0 && ratio.is_finite())?;
        let ends = self.ends()?;
        let nearer = published.clamp(ends.low, ends.high);
        Some((published / nearer - 1.0) * 100.0)
    }

    /// Whether the seed alone moves the ratio by more than an effect, a logarithm.
    pub(crate) fn is_lost(&self, effect: f64) -> bool {
        self.scatter.is_some_and(|scatter| scatter > effect)
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
    /// Whether a parameter was pinned on it: it counts in no score.
    pub is_fitted: bool,
}

impl Judged {
    /// The verdict in a word or two; fitted where it predicts nothing.
    pub fn word(&self) -> String {
        if self.is_fitted { "fitted".into() } else { self.verdict.to_string() }
    }

    /// [`Judged::word`], and how far the model is outside.
    pub fn words(&self) -> String {
        let ratios = self.compared.iter().filter_map(|pair| pair.ratio);
        let furthest = ratios.max_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()));
        match furthest.filter(|_| self.verdict == Verdict::Outside && !self.is_fitted) {
            Some(ratio) => {
                let side = if ratio < 1.0 { "low" } else { "high" };
                format!("outside, {:.1} % too {side}", (ratio - 1.0).abs() * 100.0)
            }
            None => self.word(),
        }
    }
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
    let mut pairs: Vec<Vec<Compared>> =
        expected.iter().map(|expect| pairs(results, expect, band(results, expect))).collect();
    let tested: Vec<f64> = pairs.iter().flatten().filter_map(|pair| pair.p).collect();
    let mut corrected = holm(&tested).expect("p-values of tests are from 0 to 1").into_iter();
    for (expect, compared) in expected.iter().zip(&mut pairs) {
        for pair in compared {
            pair.p = pair.p.and_then(|_| corrected.next());
            pair.sign = match expect.within {
                Some(_) => side(pair, band(results, expect)),
                None => sign(pair, file.noise_percent),
            };
        }
    }
    let judged = expected.into_iter().zip(pairs).map(|(expect, compared)| {
        let found = verdict(expect.sign, &compared, effect(expect, band(results, expect)));
        let verdict = if expect.within.is_some() { of_figure(found) } else { found };
        let of_fitted = |fitted: &Fitted| {
            expect.within.is_some() && (&fitted.cell, file.metric) == (&expect.other, expect.metric)
        };
        let is_fitted =
            file.fitted.as_ref().is_some_and(of_fitted) || file.pinned.iter().any(|one| one.is(expect));
        Judged { expect: expect.clone(), compared, verdict, is_fitted }
    });
    judged.collect()
}

/// The logarithm of the largest ratio of a relation that cannot be told from 1.
pub(crate) fn band(results: &Results, expect: &Expect) -> f64 {
    band_of(expect.within.map_or(results.experiment.file.noise_percent, |within| within.percent))
}

/// The verdict beside a figure.
fn of_figure(found: Verdict) -> Verdict {
    match found {
        Verdict::SignDiffers => Verdict::Outside,
        // A run failed.
        Verdict::NoDifference => Verdict::Undetermined,
        found => found,
    }
}

/// How far from 1 the published ratio is, as a logarithm: `band` if no difference was published, infinite if
/// its size was not.
fn effect(expect: &Expect, band: f64) -> f64 {
    match (expect.sign, expect.ratio) {
        (Sign::Nothing, _) => band,
        (_, Some(ratio)) => ratio.ln().abs(),
        (_, None) => f64::INFINITY,
    }
}

/// The pairs of cells that are alike in all that neither selection names, compared. `band` is the logarithm
/// of the largest ratio that cannot be told from 1.
pub(crate) fn pairs(results: &Results, expect: &Expect, band: f64) -> Vec<Compared> {
    questions(results, expect, band).iter().map(|asked| compared(results, asked)).collect()
}

/// What a relation asks of its pairs of cells.
pub(crate) fn questions(results: &Results, expect: &Expect, band: f64) -> Vec<Question> {
    let metrics = results.experiment.file.workload.metrics;
    let runs = runs_of(&results.experiment.file.published, expect);
    let metric = &metrics[expect.metric];
    let asked = |[base, other]: [usize; 2]| Question {
        base: match expect.within {
            Some(within) => Base::Figure(within.figure * metric.per_unit),
            None => Base::Cell(base, &metrics[expect.base_metric]),
        },
        other: (other, metric),
        runs,
        band,
    };
    alike_cells(results, expect).into_iter().map(asked).collect()
}

/// Over how many runs the published figures of both sides are means: 1 if that is not told.
fn runs_of(published: &[Published], expect: &Expect) -> usize {
    let of = |cell: &Select, metric: usize| {
        published.iter().find(|row| row.cell == *cell && row.metric == metric).and_then(|row| row.n)
    };
    let both = of(&expect.base, expect.base_metric).zip(of(&expect.other, expect.metric));
    both.map_or(1, |(base, other)| base.min(other) as usize)
}

/// The cells that a relation compares.
fn alike_cells(results: &Results, expect: &Expect) -> Vec<[usize; 2]> {
    let plan = &results.plan;
    let bases = plan.selected(&results.experiment, &expect.base);
    let others = plan.selected(&results.experiment, &expect.other);
    let mut found = Vec::new();
    for base in bases {
        let alike = |other: &&usize| alike(expect, &plan.cells[base], &plan.cells[**other]);
        found.extend(others.iter().filter(alike).map(|other| [base, *other]));
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

fn compared(results: &Results, asked: &Question) -> Compared {
    let mean =
        |(cell, metric): (usize, &Metric)| results.independent(cell, metric).map(|sample| sample.mean());
    let (place, base) = match asked.base {
        Base::Cell(cell, metric) => (cell, mean((cell, metric))),
        Base::Figure(figure) => (asked.other.0, Some(figure)),
    };
    let ratio = base.zip(mean(asked.other)).map(|(base, other)| ratio_of(base, other));
    let (p, interval) = tested(results, asked);
    Compared {
        label: results.label(place),
        base: place,
        other: asked.other.0,
        ratio,
        interval,
        p,
        drawn: judged(results, asked),
        scatter: noise(results, asked).map(|noise| (noise.variance / noise.runs as f64).sqrt()),
        sign: None,
    }
}

/// The p-value of a difference between two numbers, and the 95 % interval of their ratio. Two numbers of
/// the same runs are tested as pairs. Runs of two cells with one seed are not: under `tmpfs-swap` they
/// are no more alike than any two runs, and a test of pairs would tell less. A number beside its figure is
/// not tested for a difference.
fn tested(results: &Results, asked: &Question) -> (Option<f64>, Option<Interval>) {
    let other = asked.other;
    let base = match asked.base {
        Base::Cell(base, metric) if base == other.0 => {
            let Some(pairs) = results.pairs(base, metric, other.1) else { return (None, None) };
            return (paired(&pairs).ok().map(|found| found.p), paired_ratio_interval(&pairs, 0.95).ok());
        }
        Base::Cell(base, metric) => (base, metric),
        Base::Figure(figure) => {
            let Some(sample) = results.independent(other.0, other.1) else { return (None, None) };
            let pairs: Vec<[f64; 2]> = sample.values().iter().map(|value| [figure, *value]).collect();
            return (None, paired_ratio_interval(&pairs, 0.95).ok());
        }
    };
    let moments =
        |(cell, metric): (usize, &Metric)| results.independent(cell, metric).map(|one| one.moments());
    let Some((base, other)) = moments(base).zip(moments(other)) else { return (None, None) };
    (welch(&base, &other).ok().map(|found| found.p), ratio_interval(&base, &other, 0.95).ok())
}

/// The sign of a modelled ratio: that of the draws; without, if the test and the noise leave one.
fn sign(pair: &Compared, noise_percent: f64) -> Option<Sign> {
    if let Some(drawn) = &pair.drawn {
        return drawn.sign;
    }
    Some(match (pair.ratio, pair.p) {
        (Some(ratio), Some(p)) if p <= SIGNIFICANCE && is_more(ratio, noise_percent) => Sign::of_ratio(ratio),
        _ => Sign::Nothing,
    })
}

/// The side of a band on which a number is, seen from its figure: that of the draws; without, if the whole
/// interval over the repeats lies there, or one run does.
fn side(pair: &Compared, band: f64) -> Option<Sign> {
    if let Some(drawn) = &pair.drawn {
        return drawn.sign;
    }
    let [low, high] = match (pair.interval, pair.ratio) {
        (Some(ends), _) => [ends.low, ends.high].map(f64::ln),
        (None, ratio) => [ratio?.ln(); 2],
    };
    let is_on = |sign: &Sign| match sign {
        Sign::Lower => high < -band,
        Sign::Nothing => low >= -band && high <= band,
        Sign::Higher => low > band,
    };
    Sign::WORDS.map(|(_, sign)| sign).into_iter().find(is_on)
}

/// Whether a ratio is further from 1 than the noise.
fn is_more(ratio: f64, noise_percent: f64) -> bool {
    (ratio - 1.0).abs() * 100.0 > noise_percent
}

/// The verdict over pairs of cells that have signs. `effect` is the logarithm of the published ratio, or of
/// what cannot be told from 1.
pub(crate) fn verdict(expected: Sign, pairs: &[Compared], effect: f64) -> Verdict {
    let Some(first) = pairs.first() else { return Verdict::NoDifference };
    if pairs.iter().any(|pair| pair.ratio.is_none()) {
        return Verdict::NoDifference;
    }
    let found = first.sign.filter(|sign| pairs.iter().all(|pair| pair.sign == Some(*sign)));
    let is_lost = pairs.iter().any(|pair| pair.is_lost(effect));
    match found {
        Some(found) if found == expected => Verdict::Agrees,
        Some(Sign::Nothing) if is_lost && first.drawn.is_none() => Verdict::NotResolvable,
        Some(Sign::Nothing) => Verdict::NoDifference,
        Some(_) => Verdict::SignDiffers,
        None if is_lost => Verdict::NotResolvable,
        None => Verdict::Undetermined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cells with this ratio and p-value, and draws of this sign.
    fn pair(ratio: f64, p: f64, drawn: Option<Option<Sign>>) -> Compared {
        let drawn = drawn.map(|sign| Draws {
            n: 64,
            parts: [0.0, 0.0, 1.0],
            interval: Interval { low: ratio * 0.9, high: ratio * 1.1 },
            sign,
            most: None,
        });
        let (label, scatter) = (String::new(), Some(0.01));
        let pair = Compared {
            label,
            base: 0,
            other: 1,
            ratio: Some(ratio),
            interval: None,
            p: Some(p),
            drawn,
            scatter,
            sign: None,
        };
        Compared { sign: sign(&pair, 1.0), ..pair }
    }

    #[test]
    fn verdicts() {
        let check = |expected: Sign, pairs: &[Compared], wanted: Verdict| {
            assert_eq!(verdict(expected, pairs, 0.05), wanted, "{expected:?} {pairs:?}");
        };
        use Sign::{Higher, Lower, Nothing};
        let (lower, higher, nothing) = (Some(Some(Lower)), Some(Some(Higher)), Some(Some(Nothing)));
        check(Lower, &[pair(0.4, 0.001, lower)], Verdict::Agrees);
        check(Higher, &[pair(0.4, 0.001, lower)], Verdict::SignDiffers);
        check(Nothing, &[pair(0.4, 0.001, lower)], Verdict::SignDiffers);
        // What is assumed decides, or a swept value does.
        check(Lower, &[pair(0.9, 0.001, Some(None))], Verdict::Undetermined);
        check(Nothing, &[pair(0.995, 0.001, Some(None))], Verdict::Undetermined);
        check(Lower, &[pair(0.9, 0.001, lower), pair(1.2, 0.001, higher)], Verdict::Undetermined);
        check(Lower, &[pair(0.99, 0.001, nothing)], Verdict::NoDifference);
        check(Nothing, &[pair(0.99, 0.001, nothing)], Verdict::Agrees);
        // Without draws: the test tells none, or it is below the noise.
        check(Lower, &[pair(0.9, 0.001, None)], Verdict::Agrees);
        check(Lower, &[pair(0.9, 0.2, None)], Verdict::NoDifference);
        check(Lower, &[pair(0.995, 0.001, None)], Verdict::NoDifference);
        check(Nothing, &[pair(0.995, 0.001, None)], Verdict::Agrees);
        check(Lower, &[], Verdict::NoDifference);
        // The seed moves it by more than the effect.
        let lost = |drawn| Compared { scatter: Some(0.2), ..pair(0.9, 0.2, drawn) };
        check(Lower, &[lost(Some(None))], Verdict::NotResolvable);
        check(Lower, &[lost(None)], Verdict::NotResolvable);
        check(Lower, &[lost(lower)], Verdict::Agrees);
        check(Lower, &[lost(nothing)], Verdict::NoDifference);
        check(Nothing, &[lost(Some(None))], Verdict::NotResolvable);
    }

    #[test]
    fn a_published_ratio_is_inside_or_so_far_outside() {
        let drawn = pair(1.0, 0.001, Some(Some(Sign::Nothing)));
        let plain = pair(1.0, 0.001, None);
        let repeated = Compared { interval: Some(Interval { low: 0.8, high: 1.2 }), ..plain.clone() };
        let both = Compared { interval: repeated.interval, ..drawn.clone() };
        let check = |pair: &Compared, published: f64, expected: Option<f64>| {
            let found = pair.outside_percent(published).map(|percent| percent.round());
            assert_eq!(found, expected, "{published}: {pair:?}");
        };
        check(&drawn, 1.05, Some(0.0));
        check(&drawn, 1.1, Some(0.0));
        check(&drawn, 1.32, Some(20.0));
        check(&drawn, 0.72, Some(-20.0));
        check(&repeated, 1.15, Some(0.0));
        check(&repeated, 1.32, Some(10.0));
        check(&both, 1.32, Some(20.0));
        check(&plain, 1.0, None);
        let of_zeros = Some(Interval { low: 1e-9, high: 1e9 });
        check(&Compared { interval: of_zeros, ..plain.clone() }, 1.0, None);
        check(&Compared { ratio: Some(0.0), ..both.clone() }, 1e-6, None);
    }

    #[test]
    fn a_difference_from_zero_has_a_sign() {
        let of = |base: f64, other: f64| sign(&pair(ratio_of(base, other), 0.001, None), 7.0);
        assert_eq!(of(0.0, 2.0), Some(Sign::Higher));
        assert_eq!(of(2.0, 0.0), Some(Sign::Lower));
        assert_eq!(of(0.0, 0.0), Some(Sign::Nothing));
    }

    #[test]
    fn a_run_that_failed_agrees_with_nothing() {
        let failed = Compared { ratio: None, p: None, ..pair(0.4, 0.001, None) };
        let failed = Compared { sign: sign(&failed, 1.0), ..failed };
        for expected in [Sign::Higher, Sign::Lower, Sign::Nothing] {
            assert_eq!(verdict(expected, std::slice::from_ref(&failed), 0.05), Verdict::NoDifference);
        }
    }
}
