//! What an experiment consists of, as JSON: machines, engines, parameters with their sources, kernel objects.

use super::experiment::alike_releases;
use crate::experiment::plan::{Plan, value_json};
use crate::experiment::source::{Experiment, On};
use crate::experiment::workload::{Kind, Metric, Object, Parameter, Valued};
use crate::experiment::{ExperimentFile, Size};
use serde_json::{Map, Value, json};
use slablab_stats::table::Better;

/// The schema's name; the number grows when a key changes its meaning.
const SCHEMA: &str = "slablab.description.1";

/// What an experiment consists of.
pub fn experiment_description_json(experiment: &Experiment, plan: &Plan) -> Value {
    let file = &experiment.file;
    let workload = file.workload;
    let engine = |(name, preset): &(String, _)| json!({ "name": name, "preset": format!("{preset}") });
    let assumed = experiment.assumed();
    let assumed = assumed.iter().map(|source| json!({ "cost": source.cost, "distance": source.distance }));
    let estimate = plan.estimate(experiment);
    let mut document = json!({
        "schema": SCHEMA,
        "name": file.name,
        "title": file.title,
        "published": file.source,
        "machines": experiment.machines.iter().map(machine).collect::<Vec<_>>(),
        "engines": file.engines.iter().map(engine).collect::<Vec<_>>(),
        "workload": { "name": workload.name, "about": workload.about },
        "size": plan.size.name(),
        "repeats": plan.repeats.least,
        "seed": plan.seed,
        "parameters": workload.parameters.iter().map(|one| parameter(file, one, plan.size)).collect::<Vec<_>>(),
        "metrics": workload.metrics.iter().map(metric).collect::<Vec<_>>(),
        "metric": workload.metrics[file.metric].name,
        "objects": objects(file),
        "assumed_costs": assumed.collect::<Vec<_>>(),
        "fitted": file.fitted.as_ref().map(|fitted| json!({ "parameter": fitted.parameter, "how": fitted.how })),
        "cells": plan.cells.len(),
        "runs": plan.cells.iter().map(|cell| u64::from(plan.runs(cell))).sum::<u64>(),
        "estimate": { "core_s": estimate.host_ns as f64 / 1e9, "bytes_of_a_run": estimate.host_bytes },
    });
    plan.repeats.add_to(&mut document);
    document
}

fn machine(on: &On) -> Value {
    let spec = &on.machine.spec;
    json!({
        "name": on.name,
        "given": on.given,
        "cpus": spec.cpu_node.len(),
        "nodes": spec.nodes.len(),
        "nodes_with_memory": spec.nodes.iter().filter(|node| node.bytes > 0).count(),
        "page_bytes": 1_u64 << spec.page_shift,
        "memory_bytes": spec.nodes.iter().map(|node| node.bytes).sum::<u64>(),
    })
}

/// A parameter with its limits, its defaults by size, and its values in the experiment.
fn parameter(file: &ExperimentFile, parameter: &Parameter, size: Size) -> Value {
    let default = [parameter.default(size)];
    let values = file.swept(parameter.name, size);
    let mut shown = json!({
        "name": parameter.name,
        "about": parameter.about,
        "source": parameter.source,
        "values": values.unwrap_or(&default).iter().map(value_json).collect::<Vec<_>>(),
        "is_default": values.is_none(),
    });
    match parameter.kind {
        Kind::Number { least, most, defaults } => {
            let by_size =
                Size::NAMES.iter().zip(defaults).map(|((name, _), number)| (name.to_string(), json!(number)));
            shown["least"] = json!(least);
            shown["most"] = json!(most);
            shown["defaults"] = Value::Object(by_size.collect::<Map<_, _>>());
        }
        Kind::Word(words) => {
            shown["words"] = json!(words);
            shown["default"] = json!(words[0]);
        }
        Kind::File => {}
    }
    shown
}

fn metric(metric: &Metric) -> Value {
    let better = metric.better.map(|better| match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    });
    json!({
        "name": metric.name,
        "about": metric.about,
        "better": better,
        "unit": metric.unit,
        "per_unit": metric.per_unit,
    })
}

/// The kernel objects of an operation, for each group of releases that have the same ones.
fn objects(file: &ExperimentFile) -> Vec<Value> {
    let object = |object: &Object| {
        json!({
            "cache": object.cache,
            "bytes": object.bytes,
            "per_operation": object.per_operation,
            "source": object.source,
        })
    };
    let group = |(releases, objects): (Vec<String>, Vec<Object>)| json!({ "releases": releases, "objects": objects.iter().map(object).collect::<Vec<_>>() });
    alike_releases(file).into_iter().map(group).collect()
}
