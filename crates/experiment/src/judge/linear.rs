//! Numbers that grow linearly with a parameter: the fit of each machine, engine and combination of other
//! values.
//!
//! The line is that of least squares of the means, each weighted by 1 over its square: so the residuals count
//! in percent, and the shortest run as much as the longest.

use crate::file::linear::Linear;
use crate::run::results::Results;
use crate::workload::Value;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The line through the means of cells that differ in the parameter alone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fit {
    /// What the cells share: machine, engine, other swept values.
    #[serde(rename = "cells")]
    pub label: String,
    /// The parameter and the mean of each cell, ascending, in the metric's unit of tables.
    pub points: Vec<(u64, f64)>,
    /// The line's value where the parameter is 0.
    #[serde(rename = "at_0")]
    pub start: f64,
    /// What one more of the parameter adds.
    #[serde(rename = "each")]
    pub slope: f64,
    /// The largest residual over the mean, percent.
    pub residual_percent: f64,
    /// Whether that is at most the percentage of the file, and the line rises.
    pub is_linear: bool,
}

/// The fits of a row: one for each machine, engine and combination of other values, where the parameter has
/// three values or more and no run failed.
pub fn fits(results: &Results, row: &Linear) -> Vec<Fit> {
    let metric = &results.experiment.file.workload.metrics[row.metric];
    let mut groups: BTreeMap<String, (usize, Vec<(u64, f64)>)> = BTreeMap::new();
    for cell in results.plan.selected(&results.experiment, &row.cell) {
        let of = &results.plan.cells[cell];
        let Some(Value::Number(at)) = of.values.0.get(row.parameter) else { continue };
        let Some(sample) = results.shown(cell, metric) else { continue };
        let own = format!("{}={at}", row.parameter);
        let swept = results.swept(of).into_iter().filter(|one| *one != own);
        let machine = results.experiment.machines[of.machine].name.clone();
        let engine = results.experiment.file.engines[of.engine].0.clone();
        let label: Vec<String> = [machine, engine].into_iter().chain(swept).collect();
        groups.entry(label.join(" ")).or_insert((cell, Vec::new())).1.push((*at, sample.mean()));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (first, _))| *first);
    let fits = groups.into_iter().filter(|(_, (_, points))| points.len() >= 3);
    fits.map(|(label, (_, points))| fit(label, points, row.percent)).collect()
}

fn fit(label: String, mut points: Vec<(u64, f64)>, percent: f64) -> Fit {
    points.sort_by_key(|point| point.0);
    let weighted = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|(x, y)| of(*x as f64, *y) / (y * y).max(f64::MIN_POSITIVE)).sum()
    };
    let weights = weighted(&|_, _| 1.0);
    let (x, y) = (weighted(&|x, _| x) / weights, weighted(&|_, y| y) / weights);
    let slope = weighted(&|at, value| (at - x) * (value - y)) / weighted(&|at, _| (at - x) * (at - x));
    let start = y - slope * x;
    let residual = |(at, value): &(u64, f64)| ((start + slope * *at as f64) / value - 1.0).abs() * 100.0;
    let residual_percent = points.iter().map(residual).fold(0.0, f64::max);
    let is_linear = residual_percent <= percent && slope > 0.0;
    Fit { label, points, start, slope, residual_percent, is_linear }
}
