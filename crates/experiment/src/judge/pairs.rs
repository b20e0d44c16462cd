//! The pairs of engines that a mail publishes with their scatter, over all experiments of one mail.
//!
//! ```text
//! [[published]] value, sd, n ── two engines of one block ── Welch ── Holm over all pairs ── published sign
//!                                        │
//!                      cells of both, at every swept value ── draws ── modelled signs ── verdict
//! ```
//!
//! A pair of which the mail tells no difference agrees only if the model's ratio is too near to 1 for the
//! mail's author to tell it: by Welch's test with the scatter and the number of runs of the mail, at the
//! level at which Holm's correction ended for the published pairs. A pair that differs needs the sign; its
//! size is judged beside it. Without draws, a modelled ratio has a sign if that test tells it, and the
//! model's own repeats do.

use crate::file::rows::{Expect, Published, Select, Sign};
use crate::judge::draws::{Question, band_of};
use crate::judge::verdict::{self, Compared, SIGNIFICANCE, Verdict};
use crate::run::results::Results;
use slablab_stats::Moments;
use slablab_stats::holm::holm;
use slablab_stats::table::Better;
use slablab_stats::welch::welch;

/// The logarithm of a ratio that every test tells, and how often it is halved: to less than a thousandth.
const BAND_MAX: f64 = 5.0;
const HALVINGS: usize = 16;

/// Two engines of a block, published and modelled.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The experiment's name.
    pub experiment: String,
    /// Where the figures are in the mail.
    pub block: String,
    /// The engine that is compared with.
    pub base: String,
    /// The engine that is compared.
    pub other: String,
    /// The published ratio, other over base.
    pub ratio: f64,
    /// Welch's p-value on the published moments, after Holm's correction over all pairs.
    pub p: f64,
    /// The published sign: [`Sign::Nothing`] if no difference can be told.
    pub sign: Sign,
    /// The engine whose published figure is the worse one.
    pub worse: Option<String>,
    /// What was modelled at each swept value.
    pub compared: Vec<Compared>,
    /// The verdict over all of them.
    pub verdict: Verdict,
}

/// All pairs of a mail.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The pairs, in the order of the files.
    pub all: Vec<Pair>,
    /// The best constant answer: an engine that is always the worse one, and how many of the pairs that
    /// differ it explains.
    pub constant: Option<(String, usize)>,
}

/// A published pair with its figures, before it is judged.
struct Found<'r> {
    results: &'r Results,
    base: &'r Published,
    other: &'r Published,
    moments: [Moments; 2],
    p: f64,
}

impl Pairs {
    /// The pairs of all experiments of a mail, judged; `None` if fewer than two engines of one block have a
    /// published scatter.
    ///
    /// # Panics
    /// Never: p-values are from 0 to 1.
    pub fn of(experiments: &[Results]) -> Option<Pairs> {
        let (found, corrected, level) = tested(experiments);
        let all: Vec<Pair> = found.iter().zip(corrected).map(|(pair, p)| pair.judged(p, level)).collect();
        let constant = constant(&all);
        (!all.is_empty()).then_some(Pairs { all, constant })
    }

    /// The pairs that differ in the mail.
    pub fn differ(&self) -> impl Iterator<Item = &Pair> {
        self.all.iter().filter(|pair| pair.sign != Sign::Nothing)
    }

    /// The pairs of which the mail tells no difference.
    pub fn alike(&self) -> impl Iterator<Item = &Pair> {
        self.all.iter().filter(|pair| pair.sign == Sign::Nothing)
    }

    /// The pairs that differ and that the best constant answer does not explain.
    pub fn exceptions(&self) -> impl Iterator<Item = &Pair> {
        let constant = self.constant.as_ref().map(|(engine, _)| engine);
        self.differ().filter(move |pair| pair.worse.as_ref() != constant)
    }
}

/// What the pairs of one experiment ask of its draws. The level is that of the experiment's own pairs.
pub(crate) fn questions(results: &Results) -> Vec<Question> {
    let (found, corrected, level) = tested(std::slice::from_ref(results));
    let of = |(pair, p): (&Found<'_>, f64)| {
        let sign = pair.sign(p);
        verdict::questions(results, &pair.expect(sign), pair.band(sign, level))
    };
    found.iter().zip(corrected).flat_map(of).collect()
}

/// The published pairs, their p-values after Holm's correction, and the level at which it ended.
fn tested(experiments: &[Results]) -> (Vec<Found<'_>>, Vec<f64>, f64) {
    let found: Vec<Found<'_>> = experiments.iter().flat_map(published).collect();
    let raw: Vec<f64> = found.iter().map(|pair| pair.p).collect();
    let corrected = holm(&raw).expect("p-values of tests are from 0 to 1");
    let rest = corrected.iter().filter(|p| **p > SIGNIFICANCE).count();
    (found, corrected, SIGNIFICANCE / rest.max(1) as f64)
}

/// The engine that is the worse one of most pairs; the first of several.
fn constant(all: &[Pair]) -> Option<(String, usize)> {
    let differ = || all.iter().filter(|pair| pair.sign != Sign::Nothing);
    let count = |engine: &String| differ().filter(|pair| pair.worse.as_ref() == Some(engine)).count();
    let engines: Vec<&String> = differ().filter_map(|pair| pair.worse.as_ref()).collect();
    let best = engines.iter().map(|engine| count(engine)).max()?;
    let engine = engines.iter().find(|engine| count(engine) == best)?;
    Some(((*engine).clone(), best))
}

/// Each two engines whose figures of one block have a scatter: the rows that are alike in all but the engine.
fn published(results: &Results) -> Vec<Found<'_>> {
    let rows: Vec<&Published> = results.experiment.file.published.iter().collect();
    let block = |row: &Published| (row.metric, Select { engine: None, ..row.cell.clone() });
    let mut found = Vec::new();
    for (at, other) in rows.iter().enumerate() {
        for base in &rows[..at] {
            let alike = block(base) == block(other) && base.cell.engine != other.cell.engine;
            let Some(moments) = base.moments().zip(other.moments()).filter(|_| alike) else { continue };
            let Ok(tested) = welch(&moments.0, &moments.1) else { continue };
            found.push(Found { results, base, other, moments: moments.into(), p: tested.p });
        }
    }
    found
}

impl Found<'_> {
    fn judged(&self, p: f64, level: f64) -> Pair {
        let metric = &self.results.experiment.file.workload.metrics[self.base.metric];
        let (ratio, sign) = (self.ratio(), self.sign(p));
        let name = |row: &Published| row.cell.engine.clone().unwrap_or_default();
        let is_worse = match metric.better.unwrap_or(Better::Lower) {
            Better::Lower => Sign::Higher,
            Better::Higher => Sign::Lower,
        };
        let worse = match sign {
            Sign::Nothing => None,
            sign if sign == is_worse => Some(name(self.other)),
            _ => Some(name(self.base)),
        };
        let band = self.band(sign, level);
        let mut compared = verdict::pairs(self.results, &self.expect(sign), band);
        for pair in &mut compared {
            pair.sign = match &pair.drawn {
                Some(drawn) => drawn.sign,
                None => Some(self.sign_of(pair, level)),
            };
        }
        let effect = if sign == Sign::Nothing { band } else { ratio.ln().abs() };
        Pair {
            experiment: self.results.experiment.file.name.clone(),
            block: self.other.source.clone(),
            base: name(self.base),
            other: name(self.other),
            ratio,
            p,
            sign,
            worse,
            verdict: verdict::verdict(sign, &compared, effect),
            compared,
        }
    }

    /// The pair as a relation of cells.
    fn expect(&self, sign: Sign) -> Expect {
        let (base, other) = (self.base.cell.clone(), self.other.cell.clone());
        let metric = self.base.metric;
        let name = String::new();
        Expect { name, base, other, metric, base_metric: metric, ratio: None, sign, within: None }
    }

    fn ratio(&self) -> f64 {
        self.other.value / self.base.value
    }

    /// The published sign.
    fn sign(&self, p: f64) -> Sign {
        if p <= SIGNIFICANCE { Sign::of_ratio(self.ratio()) } else { Sign::Nothing }
    }

    /// The logarithm of the largest ratio that cannot be told from 1: by the experiment's noise if the mail
    /// tells a difference, else by the mail's own scatter.
    fn band(&self, sign: Sign, level: f64) -> f64 {
        if sign != Sign::Nothing {
            return band_of(self.results.experiment.file.noise_percent);
        }
        // The test tells a ratio the easier the further it is from 1.
        let (mut low, mut high) = (0.0, BAND_MAX);
        for _ in 0..HALVINGS {
            let middle: f64 = (low + high) / 2.0;
            if self.is_told(middle.exp(), level) { high = middle } else { low = middle }
        }
        low
    }

    /// The sign of the plain runs: that of a ratio that the mail's test tells, and the repeats.
    fn sign_of(&self, pair: &Compared, level: f64) -> Sign {
        let told = pair
            .ratio
            .filter(|ratio| self.is_told(*ratio, level) && pair.p.is_some_and(|p| p <= SIGNIFICANCE));
        told.map_or(Sign::Nothing, Sign::of_ratio)
    }

    /// Whether the mail's scatter and runs tell this ratio from 1.
    fn is_told(&self, ratio: f64, level: f64) -> bool {
        let [base, other] = &self.moments;
        let mean = base.mean() * ratio;
        let modelled = Moments::new(other.n(), mean, other.sd() / other.mean() * mean);
        modelled.and_then(|modelled| welch(base, &modelled)).is_ok_and(|tested| tested.p <= level)
    }
}
