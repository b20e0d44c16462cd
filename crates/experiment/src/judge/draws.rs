//! Two cells while all that is assumed is drawn: on which side their ratio is, where it lies, which
//! assumption moves it most, and which cells need more draws.
//!
//! A draw of a ratio is the ratio of two runs with the same number: they have the same costs and the same
//! seed. [`slablab_stats::draws`] has the statistics.

use crate::file::ranges::DRAWS_MAX;
use crate::file::rows::Sign;
use crate::plan::draws::next_look;
use crate::run::results::Results;
use crate::workload::Metric;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_stats::bootstrap::Interval;
use slablab_stats::draws::{Drawn, Noise, Side};
use slablab_stats::holm::holm;
use slablab_stats::slope::slope;
use std::collections::BTreeMap;

/// The largest logarithm of a ratio: that over 0.
const LOG_MAX: f64 = 20.0;
/// An assumption that explains less of the variance is not told.
const PART_MIN: f64 = 0.1;
/// Fewer draws do not tell one assumption from another.
const DRAWS_MIN: usize = 16;
/// By how much an interval is wider after an early stop. The rule prefers to stop where few draws happen to
/// lie close together: without, the interval holds 93 to 94 of 100 ratios, with this factor 95
/// (`asked::tests::verdicts_hold_as_often_as_they_say`).
const STOPPED: f64 = 1.08;
/// The probability that an assumption is told although none matters.
const CHANCE: f64 = 0.05;

/// What a number of a cell is compared with.
#[derive(Clone, Copy)]
pub(crate) enum Base {
    /// A number of a cell: its place in the plan, and the metric.
    Cell(usize, &'static Metric),
    /// The published figure of the cell itself, in the metric's own unit.
    Figure(f64),
}

/// What is asked of two cells, or of a cell and its figure.
#[derive(Clone, Copy)]
pub(crate) struct Question {
    /// What is compared with.
    pub(crate) base: Base,
    /// The other's place in the plan, and its metric.
    pub(crate) other: (usize, &'static Metric),
    /// Over how many runs the published figures are means.
    pub(crate) runs: usize,
    /// The logarithm of the largest ratio that cannot be told from 1.
    pub(crate) band: f64,
}

impl Question {
    /// The cells and their metrics: the base's, if it is a cell, and the other's.
    fn cells(&self) -> impl Iterator<Item = (usize, &'static Metric)> {
        let base = match self.base {
            Base::Cell(cell, metric) => Some((cell, metric)),
            Base::Figure(_) => None,
        };
        base.into_iter().chain([self.other])
    }
}

/// What draws say of a ratio.
#[derive(Clone, Debug)]
pub struct Draws {
    /// How many there are.
    pub n: usize,
    /// The part of them that is lower, that cannot be told from 1, and that is higher.
    pub parts: [f64; 3],
    /// The interval that holds the published ratio in 95 of 100 cases, if the model is right.
    pub interval: Interval,
    /// The sign; `None` if no sign has 95 %.
    pub sign: Option<Sign>,
    /// The assumption that explains the most of the draws' variance.
    pub most: Option<Matter>,
}

/// How much an assumption matters.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Matter {
    /// The cost with its distance, or the parameter.
    pub name: String,
    /// The part of the draws' variance that a line explains, percent.
    pub percent: f64,
    /// By how many percent the ratio grows if a cost grows by 10 %; null for a parameter.
    pub of_ten_percent: Option<f64>,
}

/// `other` over `base`: infinite over 0; 1 if both are 0.
pub(crate) fn ratio_of(base: f64, other: f64) -> f64 {
    if base == other { 1.0 } else { other / base }
}

fn log_of(base: f64, other: f64) -> f64 {
    ratio_of(base, other).ln().clamp(-LOG_MAX, LOG_MAX)
}

/// The share of what cannot be told, as a logarithm.
pub(crate) fn band_of(noise_percent: f64) -> f64 {
    (noise_percent / 100.0).ln_1p()
}

/// The sign of a side.
fn sign_of(side: Side) -> Sign {
    match side {
        Side::Below => Sign::Lower,
        Side::Within => Sign::Nothing,
        Side::Above => Sign::Higher,
    }
}

/// What the seed alone does to the ratio of two plain cells; `None` with one run. `freedom` is that of two
/// samples of variances.
pub(crate) fn noise(results: &Results, asked: &Question) -> Option<Noise> {
    let runs = asked.runs.max(1);
    if let Base::Cell(cell, metric) = asked.base
        && cell == asked.other.0
    {
        let [base, other] = [metric, asked.other.1].map(|metric| results.values(cell, metric));
        let logs: Vec<f64> = base?.iter().zip(&other?).map(|(base, other)| log_of(*base, *other)).collect();
        let n = logs.len();
        let variance = slablab_stats::Sample::new(logs).ok()?.sd().powi(2);
        return (n > 1).then_some(Noise { variance, freedom: (n - 1) as f64, runs });
    }
    let relative = |(cell, metric): (usize, &Metric)| {
        let sample = results.sample(cell, metric).filter(|sample| sample.n() > 1)?;
        let of_mean = sample.sd() / sample.mean().abs().max(f64::MIN_POSITIVE);
        Some((of_mean.min(LOG_MAX).powi(2), (sample.n() - 1) as f64))
    };
    let sides: Vec<(f64, f64)> = asked.cells().map(relative).collect::<Option<_>>()?;
    let variance: f64 = sides.iter().map(|(variance, _)| variance).sum();
    // Welch and Satterthwaite.
    let parts: f64 = sides.iter().map(|(variance, freedom)| variance * variance / freedom).sum();
    let all = || sides.iter().map(|(_, freedom)| freedom).sum();
    let freedom = if parts > 0.0 { variance * variance / parts } else { all() };
    Some(Noise { variance, freedom, runs })
}

/// The places of the drawn cells, in the order of [`Question::cells`].
fn places(results: &Results, asked: &Question) -> Option<Vec<usize>> {
    asked.cells().map(|(cell, _)| results.plan.drawn(&results.experiment, cell)).collect()
}

/// The runs of both sides that ended well, and the draws in logarithms.
fn drawn(results: &Results, asked: &Question) -> Option<(Vec<u32>, Drawn)> {
    let cells = places(results, asked)?;
    let number = |cell: usize, metric: &Metric, run: usize| -> Option<f64> {
        let run = results.runs[cell].as_ref()?.get(run)?.as_ref().ok()?;
        Some(*run.metrics.get(metric.name)? as f64)
    };
    let of = |run: usize| {
        let base = match asked.base {
            Base::Cell(_, metric) => number(cells[0], metric, run)?,
            Base::Figure(figure) => figure,
        };
        let other = number(*cells.last()?, asked.other.1, run)?;
        Some((run as u32, log_of(base, other)))
    };
    let (runs, logs): (Vec<u32>, Vec<f64>) = (0..done(results, &cells)).filter_map(of).unzip();
    Some((runs, Drawn::new(&logs, noise(results, asked)).ok()?))
}

/// How many draws all cells have.
fn done(results: &Results, cells: &[usize]) -> usize {
    let of = |cell: &usize| results.runs[*cell].as_ref().map_or(0, Vec::len);
    cells.iter().map(of).min().unwrap_or(0)
}

/// What the draws of two cells say; `None` without.
pub(crate) fn judged(results: &Results, asked: &Question) -> Option<Draws> {
    let (runs, drawn) = drawn(results, asked)?;
    let ends = drawn.interval();
    let is_early = (drawn.n() as u32) < DRAWS_MAX;
    let half = (ends.high - ends.low) / 2.0 * if is_early { STOPPED } else { 1.0 };
    Some(Draws {
        n: drawn.n(),
        parts: drawn.parts(asked.band),
        interval: Interval { low: (drawn.mean() - half).exp(), high: (drawn.mean() + half).exp() },
        sign: drawn.side(asked.band).map(sign_of),
        most: most(results, &runs, drawn.values()),
    })
}

/// The assumption whose line explains most of the draws, if chance hardly explains as much.
fn most(results: &Results, runs: &[u32], logs: &[f64]) -> Option<Matter> {
    if logs.len() < DRAWS_MIN {
        return None;
    }
    let seed = results.plan.seed;
    let lines = results.experiment.assumptions().into_iter().filter_map(|one| {
        let drawn: Vec<f64> = runs.iter().map(|run| one.drawn(seed, *run)).collect();
        Some((slope(&drawn, logs)?, one))
    });
    let lines: Vec<_> = lines.collect();
    let corrected = holm(&lines.iter().map(|(line, _)| line.p).collect::<Vec<f64>>()).ok()?;
    let told = lines.iter().zip(corrected).filter(|((line, _), p)| *p <= CHANCE && line.part >= PART_MIN);
    let ((line, one), _) = told.max_by(|((a, _), _), ((b, _), _)| a.part.total_cmp(&b.part))?;
    Some(Matter {
        name: one.name(),
        percent: line.part * 100.0,
        of_ten_percent: one.deviations(1.1).map(|deviations| ((line.slope * deviations).exp() - 1.0) * 100.0),
    })
}

/// The drawn cells that need more draws, and how many in all: those of questions that are not settled.
pub(crate) fn wanted(results: &Results, questions: &[Question]) -> BTreeMap<usize, u32> {
    let mut wanted = BTreeMap::new();
    for asked in questions {
        let Some(cells) = places(results, asked) else { continue };
        let n = done(results, &cells) as u32;
        // Cells whose runs fail are not settled by more.
        let is_open = drawn(results, asked).is_some_and(|(_, drawn)| !drawn.is_settled(asked.band));
        if n < results.plan.draws && is_open {
            for cell in cells {
                let most = wanted.entry(cell).or_insert(0);
                *most = next_look(n, results.plan.draws).max(*most);
            }
        }
    }
    wanted.retain(|cell, most| results.runs[*cell].as_ref().is_some_and(|runs| runs.len() < *most as usize));
    wanted
}
