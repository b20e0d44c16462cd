//! Published beside modelled as a document.

use crate::file::linear::Linear;
use crate::file::pinned::Pinned;
use crate::file::rows::{Published, Select, Sign};
use crate::judge::draws::{Draws, Matter};
use crate::judge::linear::{Fit, fits};
use crate::judge::merit::Ordered;
use crate::judge::score::{Sizes, score, sizes_of};
use crate::judge::verdict::{Compared, Judged};
use crate::output::merit::MeritDocument;
use crate::output::shown::ShownDocument;
use crate::run::results::Results;
use crate::workload::Value;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::Document;
use std::collections::BTreeMap;

/// Published figures beside modelled ones.
#[derive(Serialize, JsonSchema)]
pub(in crate::output) struct ReproduceDocument {
    /// slablab.reproduce.2
    schema: &'static str,
    name: String,
    title: String,
    /// Who published the figures, where and when.
    source: Option<String>,
    /// How a parameter was fitted; null if none was.
    fitted: Option<String>,
    /// Parameters that were pinned on published figures of the base engine.
    pinned: Vec<PinnedDocument>,
    figures: Vec<FigureDocument>,
    linear: Vec<LinearDocument>,
    merit: Vec<MeritDocument>,
    shown: Vec<ShownDocument>,
    relations: Vec<RelationDocument>,
    /// Relations that agree.
    agree: usize,
    /// All relations but fitted ones.
    rows: usize,
    best_constant: ConstantDocument,
    /// How near the ratios are to the published ones; null without any.
    sizes: Option<SizesDocument>,
}

/// How near the modelled ratios are to the published ones, beside one ratio for all.
#[derive(Serialize, JsonSchema)]
pub(in crate::output) struct SizesDocument {
    /// Ratios of cells that are published and modelled.
    rows: usize,
    /// Published ratios inside the intervals of the draws.
    inside: usize,
    /// Published ratios beside which there are draws.
    with_draws: usize,
    /// Published ratios without draws that are inside the intervals over the repeats.
    inside_repeats: usize,
    /// Published ratios without draws beside which there is an interval over the repeats.
    with_repeats: usize,
    /// The root mean square of the logarithm of modelled over published.
    error: f64,
    /// The ratio that is the same for all rows and fits best.
    same_ratio: f64,
    /// The error of that one.
    same_ratio_error: f64,
}

impl From<Sizes> for SizesDocument {
    fn from(sizes: Sizes) -> SizesDocument {
        SizesDocument {
            rows: sizes.rows,
            inside: sizes.inside[0],
            with_draws: sizes.inside[1],
            inside_repeats: sizes.inside_repeats[0],
            with_repeats: sizes.inside_repeats[1],
            error: sizes.error,
            same_ratio: sizes.same,
            same_ratio_error: sizes.same_error,
        }
    }
}

/// A parameter that the mail does not tell. Relations of the same cells are fitted, and count in no score.
#[derive(Serialize, JsonSchema)]
struct PinnedDocument {
    parameter: &'static str,
    value: String,
    /// The cells whose figure was used.
    base: BTreeMap<String, String>,
    /// The cells whose figure over that of the base was used; null for that of the base.
    other: Option<BTreeMap<String, String>>,
    metric: &'static str,
    /// The published figure or ratio.
    published: f64,
    tried: Vec<String>,
    how: String,
}

/// The sign that most relations have, given as the answer to all.
#[derive(Serialize, JsonSchema)]
struct ConstantDocument {
    sign: &'static str,
    agree: usize,
}

#[derive(Serialize, JsonSchema)]
struct FigureDocument {
    /// The cells: machine, engine and parameters.
    cells: BTreeMap<String, String>,
    metric: &'static str,
    unit: &'static str,
    published: f64,
    published_sd: Option<f64>,
    published_n: Option<u64>,
    source: String,
    modelled: Vec<ModelledDocument>,
}

#[derive(Serialize, JsonSchema)]
struct ModelledDocument {
    /// Its place in the experiment.
    cell: usize,
    mean: Option<f64>,
    sd: Option<f64>,
}

/// A number that grows linearly with a parameter.
#[derive(Serialize, JsonSchema)]
struct LinearDocument {
    name: String,
    parameter: &'static str,
    metric: &'static str,
    unit: &'static str,
    /// The largest residual of the line of least squares over the modelled mean.
    percent: f64,
    fits: Vec<Fit>,
}

/// The ratio of two cells, or of a cell over its own published figure.
#[derive(Serialize, JsonSchema)]
struct RelationDocument {
    name: String,
    metric: &'static str,
    /// The metric of the base.
    base_metric: &'static str,
    /// 1 beside a figure.
    published_ratio: Option<f64>,
    /// The word none beside a figure.
    published_sign: &'static str,
    /// The figure that the cells are compared with, in the metric's unit; null if there are two cells.
    published_figure: Option<f64>,
    /// How near the cells must be to the figure: the ratio or its inverse is above 1 by this at most. Null
    /// without a figure.
    within_percent: Option<f64>,
    pairs: Vec<PairDocument>,
    verdict: String,
}

/// Two cells; several pairs of a relation are those of swept values.
#[derive(Serialize, JsonSchema)]
struct PairDocument {
    cells: String,
    /// Beside a figure the other's place.
    base: usize,
    other: usize,
    /// Other over base; null if a run failed or it is infinite.
    ratio: Option<f64>,
    ratio_low_95: Option<f64>,
    ratio_high_95: Option<f64>,
    /// The p-value after Holm's correction over the table.
    p_holm: Option<f64>,
    /// How far the published ratio is outside of the interval of the draws, without draws of that over the
    /// repeats: percent of the nearer end; 0 inside. Null without an interval or a published ratio, and if
    /// the modelled ratio is 0 or infinite.
    outside_percent: Option<f64>,
    /// Lower, none, higher, or open: no sign has 95 % of the draws.
    sign: &'static str,
    /// The standard deviation that the seed gives the logarithm of a ratio of published means; null with one
    /// run.
    scatter: Option<f64>,
    /// What draws of all that is assumed say; null without.
    drawn: Option<DrawsDocument>,
}

/// Runs of two cells with all costs, and what `[ranges.vary]` names, drawn together.
#[derive(Serialize, JsonSchema)]
pub(in crate::output) struct DrawsDocument {
    draws: usize,
    /// Draws whose ratio is below 1 by more than the noise.
    lower_percent: f64,
    /// Draws whose ratio cannot be told from 1.
    none_percent: f64,
    /// Draws whose ratio is above 1 by more than the noise.
    higher_percent: f64,
    /// The interval that holds the published ratio in 95 of 100 cases, if the model is right.
    ratio_low_95: f64,
    ratio_high_95: f64,
    /// How far the published ratio is outside of the interval, percent of the nearer end; 0 inside. Null if
    /// no ratio was published.
    outside_percent: Option<f64>,
    /// The assumption that explains the most of the draws' variance; null if chance may explain as much.
    most: Option<Matter>,
}

impl DrawsDocument {
    pub(in crate::output) fn new(pair: &Compared, published: Option<f64>) -> Option<DrawsDocument> {
        let Draws { n, parts: [lower, none, higher], interval, most, .. } = pair.drawn.as_ref()?;
        Some(DrawsDocument {
            draws: *n,
            lower_percent: lower * 100.0,
            none_percent: none * 100.0,
            higher_percent: higher * 100.0,
            ratio_low_95: interval.low,
            ratio_high_95: interval.high,
            outside_percent: published.and_then(|published| pair.outside_percent(published)),
            most: most.clone(),
        })
    }
}

impl Document for ReproduceDocument {
    const NAME: &str = "slablab.reproduce.2";
    const TITLE: &str = "slablab reproduce: published figures beside modelled ones";
}

impl ReproduceDocument {
    pub(in crate::output) fn new(
        results: &Results,
        judged: &[Judged],
        orders: &[Ordered],
    ) -> ReproduceDocument {
        let (file, of) = (&results.experiment.file, score(judged));
        ReproduceDocument {
            schema: ReproduceDocument::NAME,
            name: file.name.clone(),
            title: file.title.clone(),
            source: file.source.clone(),
            fitted: file.fitted.as_ref().map(|fitted| fitted.how.clone()),
            pinned: file.pinned.iter().map(|one| pinned(results, one)).collect(),
            figures: file.published.iter().map(|row| figure(results, row)).collect(),
            linear: file.linear.iter().map(|row| linear(results, row)).collect(),
            merit: orders.iter().map(|one| MeritDocument::new(results, one)).collect(),
            shown: file.shown.iter().map(|shown| ShownDocument::new(results, shown)).collect(),
            relations: judged.iter().map(|row| relation(results, row)).collect(),
            agree: of.agree,
            rows: of.rows,
            best_constant: ConstantDocument { sign: of.constant.0.word(), agree: of.constant.1 },
            sizes: sizes_of(judged).map(SizesDocument::from),
        }
    }
}

fn pinned(results: &Results, one: &Pinned) -> PinnedDocument {
    PinnedDocument {
        parameter: one.parameter,
        value: one.value.to_string(),
        base: names(&one.base),
        other: one.other.as_ref().map(names),
        metric: results.metric(one.metric).name,
        published: one.published,
        tried: one.tried.iter().map(ToString::to_string).collect(),
        how: one.how.clone(),
    }
}

fn figure(results: &Results, row: &Published) -> FigureDocument {
    let metric = results.metric(row.metric);
    let modelled = |cell: usize| {
        let sample = results.shown(cell, metric);
        ModelledDocument {
            cell,
            mean: sample.as_ref().map(|sample| sample.mean()),
            sd: sample.as_ref().map(|sample| sample.sd()),
        }
    };
    let cells = results.plan.selected(&results.experiment, &row.cell);
    FigureDocument {
        cells: names(&row.cell),
        metric: metric.name,
        unit: metric.unit,
        published: row.value,
        published_sd: row.sd,
        published_n: row.n,
        source: row.source.clone(),
        modelled: cells.into_iter().map(modelled).collect(),
    }
}

fn names(select: &Select) -> BTreeMap<String, String> {
    let names = [("machine", &select.machine), ("engine", &select.engine)];
    let named = names.into_iter().filter_map(|(key, name)| Some((key.to_string(), name.clone()?)));
    let words = |values: &[Value]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let values = select.values.iter().map(|(name, values)| (name.to_string(), words(values)));
    named.chain(values).collect()
}

fn linear(results: &Results, row: &Linear) -> LinearDocument {
    LinearDocument {
        name: row.name.clone(),
        parameter: row.parameter,
        metric: results.metric(row.metric).name,
        unit: results.metric(row.metric).unit,
        percent: row.percent,
        fits: fits(results, row),
    }
}

fn relation(results: &Results, row: &Judged) -> RelationDocument {
    let pairs = row.compared.iter().map(|pair| PairDocument {
        cells: pair.label.clone(),
        base: pair.base,
        other: pair.other,
        ratio: pair.ratio,
        ratio_low_95: pair.interval.map(|ends| ends.low),
        ratio_high_95: pair.interval.map(|ends| ends.high),
        p_holm: pair.p,
        outside_percent: row.expect.ratio.and_then(|published| pair.outside_percent(published)),
        sign: pair.sign.map_or("open", Sign::word),
        scatter: pair.scatter,
        drawn: DrawsDocument::new(pair, row.expect.ratio),
    });
    RelationDocument {
        name: row.expect.name.clone(),
        metric: results.metric(row.expect.metric).name,
        base_metric: results.metric(row.expect.base_metric).name,
        published_ratio: row.expect.ratio,
        published_sign: row.expect.sign.word(),
        published_figure: row.expect.within.map(|within| within.figure),
        within_percent: row.expect.within.map(|within| within.percent),
        pairs: pairs.collect(),
        verdict: row.word(),
    }
}
