//! Published beside modelled as a document.

use crate::file::linear::Linear;
use crate::file::rows::{Published, Select};
use crate::judge::linear::{Fit, fits};
use crate::judge::merit::Ordered;
use crate::judge::verdict::{Judged, Varied, score};
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
    /// slablab.reproduce.1
    schema: &'static str,
    name: String,
    title: String,
    /// Who published the figures, where and when.
    source: Option<String>,
    /// How a parameter was fitted; null if none was.
    fitted: Option<String>,
    figures: Vec<FigureDocument>,
    linear: Vec<LinearDocument>,
    merit: Vec<MeritDocument>,
    shown: Vec<ShownDocument>,
    relations: Vec<RelationDocument>,
    /// Relations that agree.
    agree: usize,
    /// All relations.
    rows: usize,
    best_constant: ConstantDocument,
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

/// The ratio of two cells.
#[derive(Serialize, JsonSchema)]
struct RelationDocument {
    name: String,
    metric: &'static str,
    /// The metric of the base.
    base_metric: &'static str,
    published_ratio: Option<f64>,
    published_sign: &'static str,
    pairs: Vec<PairDocument>,
    verdict: String,
}

/// Two cells; several pairs of a relation are those of swept values.
#[derive(Serialize, JsonSchema)]
struct PairDocument {
    cells: String,
    base: usize,
    other: usize,
    /// Other over base; null if a run failed or it is infinite.
    ratio: Option<f64>,
    ratio_low_95: Option<f64>,
    ratio_high_95: Option<f64>,
    /// The p-value after Holm's correction over the table.
    p_holm: Option<f64>,
    sign: &'static str,
    /// The lowest ratio with what is assumed varied.
    assumed_low: Option<Varied>,
    /// The highest ratio with what is assumed varied.
    assumed_high: Option<Varied>,
    /// The changes that flip the sign.
    flips: Vec<Varied>,
}

impl Document for ReproduceDocument {
    const NAME: &str = "slablab.reproduce.1";
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
            figures: file.published.iter().map(|row| figure(results, row)).collect(),
            linear: file.linear.iter().map(|row| linear(results, row)).collect(),
            merit: orders.iter().map(|one| MeritDocument::new(results, one)).collect(),
            shown: file.shown.iter().map(|shown| ShownDocument::new(results, shown)).collect(),
            relations: judged.iter().map(|row| relation(results, row)).collect(),
            agree: of.agree,
            rows: of.rows,
            best_constant: ConstantDocument { sign: of.constant.0.word(), agree: of.constant.1 },
        }
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
    let noise = results.experiment.file.noise_percent;
    let pairs = row.compared.iter().map(|pair| {
        let range = pair.range();
        PairDocument {
            cells: pair.label.clone(),
            base: pair.base,
            other: pair.other,
            ratio: pair.ratio,
            ratio_low_95: pair.interval.map(|ends| ends.low),
            ratio_high_95: pair.interval.map(|ends| ends.high),
            p_holm: pair.p,
            sign: pair.sign.word(),
            assumed_low: range.map(|ends| ends[0].clone()),
            assumed_high: range.map(|ends| ends[1].clone()),
            flips: pair.flips(noise).cloned().collect(),
        }
    });
    RelationDocument {
        name: row.expect.name.clone(),
        metric: results.metric(row.expect.metric).name,
        base_metric: results.metric(row.expect.base_metric).name,
        published_ratio: row.expect.ratio,
        published_sign: row.expect.sign.word(),
        pairs: pairs.collect(),
        verdict: row.verdict.to_string(),
    }
}
