//! `slablab run`: the metrics of cells, over repeats.

use super::{Kind, list, text};
use crate::answer::{Answer, Fact, Quantity, Role, program};
use serde_json::Value;
use slablab_stats::Moments;
use slablab_stats::table::{Better, Cell};

pub(super) const KIND: Kind = Kind {
    verb: "run",
    words: "slablab run",
    schema: "slablab.experiment.1",
    medians: false,
    exact: "these are single runs of the model, which scatter with the seed",
    read,
};

/// How a metric's numbers are shown.
struct Metric<'a> {
    name: &'a str,
    unit: &'a str,
    per_unit: f64,
    decimals: usize,
    better: Better,
}

fn read(document: &Value) -> Result<Answer, String> {
    let metrics: Vec<Metric> = list(document, "metrics")?.iter().filter_map(metric).collect();
    let main = text(document, "metric")?;
    let mut answer = Answer {
        inputs: vec![
            Fact::of("experiment", &document["name"]),
            Fact::of("workload", &document["workload"]),
            Fact::of("size", &document["size"]),
        ],
        settings: vec![
            program(document),
            Fact::of("repeats", &document["repeats"]),
            Fact::of("seed", &document["seed"]),
        ],
        ..Answer::default()
    };
    for cell in list(document, "cells")? {
        let engine = text(cell, "engine")?;
        let at = position(&mut answer.engines, engine);
        let failed = cell["failed"].as_array().map_or(0, Vec::len);
        let place = place(cell)?;
        if failed > 0 {
            answer.cautions.push(format!("{failed} runs of {engine} failed: {place}"));
        }
        for metric in &metrics {
            let Some(measured) = moments(&cell["metrics"][metric.name], metric.per_unit) else { continue };
            answer.quantities.push(Quantity {
                engine: Some(at),
                group: place.clone(),
                name: format!("{}, {}", short(metric.name), metric.unit),
                better: metric.better,
                decimals: metric.decimals,
                role: if metric.name == main { Role::Answer } else { Role::Detail },
                cell: measured,
            });
        }
    }
    Ok(answer)
}

/// A metric of which one direction is better.
fn metric(value: &Value) -> Option<Metric<'_>> {
    Some(Metric {
        name: value["name"].as_str()?,
        unit: value["unit"].as_str()?,
        per_unit: value["per_unit"].as_f64()?,
        decimals: value["decimals"].as_u64()? as usize,
        better: better(value["better"].as_str()?)?,
    })
}

pub(super) fn better(word: &str) -> Option<Better> {
    match word {
        "lower" => Some(Better::Lower),
        "higher" => Some(Better::Higher),
        _ => None,
    }
}

/// The place of a name in a list, which gets it if it has not.
pub(super) fn position(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|one| one == name).unwrap_or_else(|| {
        names.push(name.to_string());
        names.len() - 1
    })
}

/// Machine, parameters and changed costs of a cell.
fn place(cell: &Value) -> Result<String, String> {
    let parameters = cell["parameters"].as_object().ok_or("no object `parameters`")?;
    let parameters = parameters.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={text}"),
        value => format!("{name}={value}"),
    });
    let costs = cell["costs"].as_str().filter(|costs| !costs.is_empty());
    let words = std::iter::once(text(cell, "machine")?.to_string()).chain(parameters);
    Ok(words.chain(costs.map(String::from)).collect::<Vec<_>>().join(" "))
}

fn moments(metric: &Value, per_unit: f64) -> Option<Cell> {
    let (n, mean) = (metric["n"].as_u64()?, metric["mean"].as_f64()?);
    let sd = metric["sd"].as_f64().unwrap_or(0.0);
    Moments::new(n as usize, mean / per_unit, sd / per_unit).ok().map(Cell::Moments)
}

/// A metric's name without its unit.
fn short(name: &str) -> String {
    name.trim_end_matches("_ppm").trim_end_matches("_ps").replace('_', " ")
}
