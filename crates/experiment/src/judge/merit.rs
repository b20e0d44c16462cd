//! Orders of merit: a published column of figures beside the modelled one, by Kendall's tau.
//!
//! The figures are those of `[[published]]` rows that name a value of the parameter. Every machine, engine
//! and combination of other values is a row of its own: the same order is asked of each. A pair of values
//! *agrees* if it has the published order in all rows, is *undetermined* if its order differs between rows or
//! fewer than 95 % of the draws have it (`[ranges]` says what is drawn), and *differs* otherwise.
//! The null answer is that all values are equal.

use crate::file::merit::Merit;
use crate::file::rows::Sign;
use crate::judge::draws::{Base, Question, judged};
use crate::run::results::Results;
use crate::workload::Value;
use slablab_stats::kendall::{Kendall, kendall, order};
use std::cmp::Ordering;

/// The cells that differ in the parameter alone.
#[derive(Clone, Debug)]
pub struct Column {
    /// What the cells share.
    pub label: String,
    /// The cell of each published value, if there is one.
    pub cells: Vec<Option<usize>>,
    /// The modelled mean of each published value; `None` if the cell failed or is not there.
    pub modelled: Vec<Option<f64>>,
    /// How alike the two orders are, of the values that have both; `None` if they are too few.
    pub kendall: Option<Kendall>,
}

/// A published order, and the modelled ones.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// What is ordered.
    pub merit: Merit,
    /// Value and published figure, in the order of the file.
    pub published: Vec<(Value, f64)>,
    /// The modelled columns.
    pub columns: Vec<Column>,
    /// Pairs that agree, that are undetermined, and that differ.
    pub pairs: [usize; 3],
    /// Pairs with one order in all columns that fewer than 95 % of the draws have.
    pub open: Vec<Open>,
    /// Pairs that the null answer gets right: those that are published as equal.
    pub null: usize,
}

/// A pair of values whose order the draws leave open.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// The values.
    pub values: [String; 2],
    /// The column.
    pub label: String,
    /// The part of the draws that have the order of the plain runs.
    pub part: f64,
    /// How many draws there are.
    pub draws: usize,
}

/// The orders of an experiment, judged.
pub fn merits(results: &Results) -> Vec<Ordered> {
    results.experiment.file.merit.iter().map(|merit| ordered(results, merit)).collect()
}

fn ordered(results: &Results, merit: &Merit) -> Ordered {
    let published = published(results, merit);
    let columns = columns(results, merit, &published);
    let noise = results.experiment.file.noise_percent;
    let found = |column: &Column, base: usize, other: usize| {
        Some(order(column.modelled[base]?, column.modelled[other]?, noise))
    };
    let mut pairs = [0; 3];
    let mut null = 0;
    let mut open = Vec::new();
    for other in 0..published.len() {
        for base in 0..other {
            let expected = order(published[base].1, published[other].1, 0.0);
            null += usize::from(expected.is_eq());
            let first = columns.first().and_then(|column| found(column, base, other));
            let is_same = |column: &Column| found(column, base, other) == first;
            if first.is_none() || !columns.iter().all(is_same) {
                pairs[1] += 1;
                continue;
            }
            let of_draws = |column: &Column| draws_of(results, merit, column, [base, other], first?);
            if let Some((label, part, draws)) = columns.iter().find_map(of_draws) {
                let values = [base, other].map(|at| published[at].0.to_string());
                open.push(Open { values, label, part, draws });
                pairs[1] += 1;
                continue;
            }
            pairs[if first == Some(expected) { 0 } else { 2 }] += 1;
        }
    }
    Ordered { merit: merit.clone(), published, columns, pairs, open, null }
}

/// What a column asks of the draws of a pair of values. The band is that of [`order`].
fn question(results: &Results, merit: &Merit, column: &Column, pair: [usize; 2]) -> Option<Question> {
    let metric = results.metric(merit.metric);
    let [base, other] = [column.cells[pair[0]]?, column.cells[pair[1]]?];
    let band = -(-results.experiment.file.noise_percent / 100.0).ln_1p();
    Some(Question { base: Base::Cell(base, metric), other: (other, metric), runs: 1, band })
}

/// What the orders of an experiment ask of its draws.
pub(crate) fn questions(results: &Results) -> Vec<Question> {
    let of = |merit: &Merit| {
        let published = published(results, merit);
        let pairs = (0..published.len()).flat_map(|other| (0..other).map(move |base| [base, other]));
        let columns = columns(results, merit, &published);
        let asked = |pair| {
            columns.iter().filter_map(|column| question(results, merit, column, pair)).collect::<Vec<_>>()
        };
        pairs.flat_map(asked).collect::<Vec<_>>()
    };
    results.experiment.file.merit.iter().flat_map(of).collect()
}

/// The draws of a column that do not have this order of a pair of values with 95 %: its label, the part that
/// has it, and how many draws there are.
fn draws_of(
    results: &Results,
    merit: &Merit,
    column: &Column,
    pair: [usize; 2],
    order: Ordering,
) -> Option<(String, f64, usize)> {
    let draws = judged(results, &question(results, merit, column, pair)?)?;
    // The order is that of the base beside the other.
    let (sign, part) = match order {
        Ordering::Greater => (Sign::Lower, draws.parts[0]),
        Ordering::Equal => (Sign::Nothing, draws.parts[1]),
        Ordering::Less => (Sign::Higher, draws.parts[2]),
    };
    (draws.sign != Some(sign)).then(|| (column.label.clone(), part, draws.n))
}

/// The published figures of a row of the file.
fn published(results: &Results, merit: &Merit) -> Vec<(Value, f64)> {
    let rows = results.experiment.file.published.iter().filter(|row| row.metric == merit.metric);
    let mut found: Vec<(Value, f64)> = Vec::new();
    for row in rows {
        let named = |name: &str| row.cell.values.iter().find(|(one, _)| *one == name);
        let Some((_, values)) = named(merit.parameter) else { continue };
        // A figure of other cells than those of the row is another order's.
        let is_of = |(name, values): &(&str, Vec<Value>)| named(name).is_none_or(|(_, of)| of == values);
        if let ([value], true) = (&values[..], merit.cell.values.iter().all(is_of)) {
            found.push((value.clone(), row.value));
        }
    }
    found
}

/// The columns.
fn columns(results: &Results, merit: &Merit, published: &[(Value, f64)]) -> Vec<Column> {
    let metric = &results.experiment.file.workload.metrics[merit.metric];
    let (experiment, plan) = (&results.experiment, &results.plan);
    let mut columns: Vec<Column> = Vec::new();
    for cell in plan.selected(experiment, &merit.cell) {
        let of = &plan.cells[cell];
        let own = &of.values.0[merit.parameter];
        let Some(at) = published.iter().position(|(value, _)| value == own) else { continue };
        let named = format!("{}={own}", merit.parameter);
        let mut label: Vec<String> = results.swept(of).into_iter().filter(|one| *one != named).collect();
        if label.is_empty() {
            label.push(experiment.machines[of.machine].name.clone());
        }
        let label = label.join(" ");
        let column = columns.iter().position(|column| column.label == label).unwrap_or_else(|| {
            let (cells, modelled) = (vec![None; published.len()], vec![None; published.len()]);
            columns.push(Column { label, cells, modelled, kendall: None });
            columns.len() - 1
        });
        columns[column].cells[at] = Some(cell);
        columns[column].modelled[at] = results.shown(cell, metric).map(|sample| sample.mean());
    }
    for column in &mut columns {
        let both = published.iter().zip(&column.modelled);
        let both = both.filter_map(|((_, published), modelled)| Some((*published, (*modelled)?)));
        let (one, other): (Vec<f64>, Vec<f64>) = both.unzip();
        column.kendall = kendall(&one, &other, experiment.file.noise_percent);
    }
    columns
}
