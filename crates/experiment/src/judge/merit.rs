//! Orders of merit: a published column of figures beside the modelled one, by Kendall's tau.
//!
//! The figures are those of `[[published]]` rows that name a value of the parameter. Every machine, engine
//! and combination of other values is a row of its own: the same order is asked of each. A pair of values
//! *agrees* if it has the published order in all rows, is *undetermined* if its order differs between rows,
//! and *differs* otherwise. Rows after a change of what is assumed count too, if the file says what to vary.
//! The null answer is that all values are equal.

use crate::file::merit::Merit;
use crate::plan::Scaled;
use crate::run::results::Results;
use crate::workload::Value;
use slablab_stats::kendall::{Kendall, kendall, order};

/// The cells that differ in the parameter alone.
#[derive(Clone, Debug)]
pub struct Column {
    /// What the cells share.
    pub label: String,
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
    /// The columns after each change of what is assumed ([`Ranges`](crate::file::ranges::Ranges)).
    pub varied: Vec<Column>,
    /// Pairs that agree, that are undetermined, and that differ.
    pub pairs: [usize; 3],
    /// Pairs with one order in all columns, of which a change gives another order: the values, and a change.
    pub flipped: Vec<([String; 2], String)>,
    /// Pairs that the null answer gets right: those that are published as equal.
    pub null: usize,
}

/// The orders of an experiment, judged.
pub fn merits(results: &Results) -> Vec<Ordered> {
    results.experiment.file.merit.iter().map(|merit| ordered(results, merit)).collect()
}

fn ordered(results: &Results, merit: &Merit) -> Ordered {
    let published = published(results, merit);
    let columns = columns(results, merit, &published, Scaled::Nothing);
    let mut changes: Vec<Scaled> = results.plan.cells.iter().map(|cell| cell.scaled).collect();
    changes.retain(|change| *change != Scaled::Nothing && results.experiment.file.ranges.is_some());
    changes.dedup();
    let of = |change: Scaled| self::columns(results, merit, &published, change);
    let varied: Vec<Column> = changes.into_iter().flat_map(of).collect();
    let noise = results.experiment.file.noise_percent;
    let found = |column: &Column, base: usize, other: usize| {
        Some(order(column.modelled[base]?, column.modelled[other]?, noise))
    };
    let mut pairs = [0; 3];
    let mut null = 0;
    let mut flipped = Vec::new();
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
            // A column that has no number after a change says nothing.
            let is_other = |column: &&Column| found(column, base, other).is_some() && !is_same(column);
            if let Some(column) = varied.iter().find(is_other) {
                let names = [base, other].map(|at| published[at].0.to_string());
                flipped.push((names, column.label.clone()));
                pairs[1] += 1;
                continue;
            }
            pairs[if first == Some(expected) { 0 } else { 2 }] += 1;
        }
    }
    Ordered { merit: merit.clone(), published, columns, varied, pairs, flipped, null }
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

/// The columns after a change of what is assumed; a cell that has none of it is in none.
fn columns(results: &Results, merit: &Merit, published: &[(Value, f64)], change: Scaled) -> Vec<Column> {
    let metric = &results.experiment.file.workload.metrics[merit.metric];
    let (experiment, plan) = (&results.experiment, &results.plan);
    let mut columns: Vec<Column> = Vec::new();
    for cell in plan.selected(experiment, &merit.cell) {
        let of = &plan.cells[cell];
        let own = &of.values.0[merit.parameter];
        let Some(at) = published.iter().position(|(value, _)| value == own) else { continue };
        let named = format!("{}={own}", merit.parameter);
        let Some(cell) = plan.with_scale(experiment, of, change) else { continue };
        let mut label: Vec<String> = results.swept(of).into_iter().filter(|one| *one != named).collect();
        if label.is_empty() {
            label.push(experiment.machines[of.machine].name.clone());
        }
        label.extend((change != Scaled::Nothing).then(|| experiment.words(change)));
        let label = label.join(" ");
        let column = columns.iter().position(|column| column.label == label).unwrap_or_else(|| {
            columns.push(Column { label, modelled: vec![None; published.len()], kendall: None });
            columns.len() - 1
        });
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
