//! Orders of merit: published and modelled orders, Kendall's tau, and the null answer.

use crate::judge::merit::{Column, Open, Ordered};
use crate::run::results::Results;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::Answer;
use slablab_stats::kendall::order;

/// An order of merit as a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct MeritDocument {
    name: String,
    /// Its values are put in order.
    parameter: &'static str,
    metric: &'static str,
    values: Vec<String>,
    published: Vec<f64>,
    columns: Vec<ColumnDocument>,
    /// Pairs with one order in all columns that fewer than 95 % of the draws have.
    open: Vec<OpenDocument>,
    /// Pairs of values that have the published order in all columns.
    agree: usize,
    /// Pairs whose order differs between columns, or is open.
    undetermined: usize,
    differ: usize,
    /// Pairs that are published as equal.
    null_agrees: usize,
}

/// The modelled figures of cells that differ in the parameter alone.
#[derive(Serialize, JsonSchema)]
struct ColumnDocument {
    cells: String,
    modelled: Vec<Option<f64>>,
    /// Kendall's tau-b with the published order.
    tau: Option<f64>,
    /// The part of all orders that have this tau or a higher one.
    chance: Option<f64>,
}

/// A pair of values whose order the draws leave open.
#[derive(Serialize, JsonSchema)]
struct OpenDocument {
    values: [String; 2],
    /// The column.
    cells: String,
    /// The draws that have the order of the runs at costs as given.
    percent: f64,
    draws: usize,
}

impl MeritDocument {
    pub(super) fn new(results: &Results, one: &Ordered) -> MeritDocument {
        let column = |column: &Column| ColumnDocument {
            cells: column.label.clone(),
            modelled: column.modelled.clone(),
            tau: column.kendall.map(|one| one.tau),
            chance: column.kendall.map(|one| one.chance),
        };
        let open = |open: &Open| OpenDocument {
            values: open.values.clone(),
            cells: open.label.clone(),
            percent: open.part * 100.0,
            draws: open.draws,
        };
        let [agree, undetermined, differ] = one.pairs;
        MeritDocument {
            name: one.merit.name.clone(),
            parameter: one.merit.parameter,
            metric: results.experiment.file.workload.metrics[one.merit.metric].name,
            values: one.published.iter().map(|(value, _)| value.to_string()).collect(),
            published: one.published.iter().map(|(_, figure)| *figure).collect(),
            columns: one.columns.iter().map(column).collect(),
            open: one.open.iter().map(open).collect(),
            agree,
            undetermined,
            differ,
            null_agrees: one.null,
        }
    }
}

/// The orders: how many pairs of each agree, the published order and the modelled ones.
pub(super) fn merit_blocks(answer: Answer, results: &Results, all: &[Ordered]) -> Answer {
    let Some(first) = all.first() else { return answer };
    let noise = results.experiment.file.noise_percent;
    let answer = answer.heading(format!(
        "orders of merit by {}, lowest first; what differs by {noise} % or less is equal. tau: Kendall's tau-b with \
         the published order, 0 for the null answer \"all are equal\"; chance: the part of all orders with \
         this tau or a higher one",
        first.merit.parameter
    ));
    all.iter().fold(answer, |answer, one| {
        let figures = one.published.iter().map(|(_, figure)| Some(*figure));
        let published = format!("published: {}", in_order(one, figures, 0.0));
        let column = |column: &Column| {
            let tau = column.kendall.map_or(String::new(), |kendall| {
                format!(" (tau {:.2}, chance {:.1} %)", kendall.tau, kendall.chance * 100.0)
            });
            format!("{}{tau}: {}", column.label, in_order(one, column.modelled.iter().copied(), noise))
        };
        answer.entry(agreement(one), std::iter::once(published).chain(one.columns.iter().map(column)))
    })
}

/// How many pairs of an order agree.
fn agreement(one: &Ordered) -> String {
    let [agree, undetermined, differ] = one.pairs;
    let words = |open: &Open| {
        let [base, other] = &open.values;
        format!(
            " {base} and {other}: {:.0} % of {} draws have the order of {}.",
            open.part * 100.0,
            open.draws,
            open.label
        )
    };
    let open: String = one.open.iter().map(words).collect();
    format!(
        "{}: of {} pairs {agree} agree, {undetermined} are undetermined, {differ} differ; the null answer agrees \
         in {}.{open}",
        one.merit.name,
        one.pairs.iter().sum::<usize>(),
        one.null
    )
}

/// How many pairs of all orders agree; `None` without an order.
pub(super) fn merit_sum(all: &[Ordered]) -> Option<String> {
    let (mut pairs, mut agree, mut null) = (0, 0, 0);
    for one in all {
        pairs += one.pairs.iter().sum::<usize>();
        (agree, null) = (agree + one.pairs[0], null + one.null);
    }
    let line = format!("{agree} of {pairs} pairs in orders of merit agree, of the null answer {null}");
    (!all.is_empty()).then_some(line)
}

/// The values from the lowest figure to the highest: `a < b = c`; those without a figure are left out.
fn in_order(one: &Ordered, figures: impl Iterator<Item = Option<f64>>, noise_percent: f64) -> String {
    let values = one.published.iter().map(|(value, _)| value.to_string());
    let mut rows: Vec<(f64, String)> =
        figures.zip(values).filter_map(|(figure, value)| Some((figure?, value))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut out = String::new();
    for (at, (figure, value)) in rows.iter().enumerate() {
        if at > 0 {
            let is_equal = order(rows[at - 1].0, *figure, noise_percent).is_eq();
            out += if is_equal { " = " } else { " < " };
        }
        out += value.strip_prefix("vm@").unwrap_or(value);
    }
    out
}
