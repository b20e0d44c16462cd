//! What an experiment consists of: machines, engines, parameters with their sources, kernel objects.

use super::experiment::metric_line;
use super::finding::joined;
use crate::plan::{Cell, Plan};
use crate::repeats::MoreRepeats;
use crate::source::{Experiment, On};
use crate::workload::{Kind, Metric, Object, Parameter, Value, Valued};
use crate::{ExperimentFile, Size};
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::document::{Named, named};
use slablab_report::text::counted;
use slablab_report::{Answer, Document};
use slablab_sim::era::Era;
use slablab_slabs::Release;
use slablab_stats::table::Better;
use std::collections::BTreeMap;

/// What an experiment consists of.
#[derive(Serialize, JsonSchema)]
struct Description {
    name: String,
    title: String,
    /// Who published figures of it, where and when.
    published: Option<String>,
    machines: Vec<MachineDocument>,
    engines: Vec<EngineDocument>,
    workload: WorkloadDocument,
    size: &'static str,
    /// Runs of each cell and placement, at least.
    repeats: u32,
    #[serde(flatten)]
    more_repeats: MoreRepeats,
    /// The seed of random numbers.
    seed: u64,
    parameters: Vec<ParameterDocument>,
    metrics: Vec<MetricDocument>,
    /// The metric that is compared first.
    metric: &'static str,
    /// The kernel objects of an operation, for each group of releases that have the same ones.
    objects: Vec<ObjectsDocument>,
    /// Costs of the machines that no document says.
    assumed_costs: Vec<AssumedDocument>,
    /// The parameter that is fitted; null if none is.
    fitted: Option<FittedDocument>,
    cells: usize,
    /// Runs of all cells, at least.
    runs: u64,
    estimate: EstimateDocument,
}

#[derive(Serialize, JsonSchema)]
struct MachineDocument {
    name: String,
    /// As the experiment names it.
    given: String,
    cpus: usize,
    nodes: usize,
    nodes_with_memory: usize,
    page_bytes: u64,
    memory_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
struct EngineDocument {
    /// As the experiment names it.
    name: String,
    /// With its release and knobs.
    preset: String,
}

#[derive(Serialize, JsonSchema)]
struct WorkloadDocument {
    name: &'static str,
    about: &'static str,
}

/// A parameter with its limits, its defaults by size, and its values in the experiment.
#[derive(Serialize, JsonSchema)]
struct ParameterDocument {
    name: &'static str,
    about: &'static str,
    source: &'static str,
    values: Vec<Value>,
    is_default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<u64>,
    /// The defaults of a number, by size.
    #[serde(skip_serializing_if = "Option::is_none")]
    defaults: Option<BTreeMap<&'static str, u64>>,
    /// The words that it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<&'static str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
struct MetricDocument {
    name: &'static str,
    about: &'static str,
    /// Which values are better, lower or higher; null if neither is.
    better: Option<&'static str>,
    unit: &'static str,
    per_unit: f64,
}

#[derive(Serialize, JsonSchema)]
struct ObjectsDocument {
    releases: Vec<String>,
    objects: Vec<ObjectDocument>,
}

#[derive(Serialize, JsonSchema)]
struct ObjectDocument {
    cache: &'static str,
    bytes: u32,
    per_operation: String,
    source: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct AssumedDocument {
    cost: &'static str,
    /// The node distance, for a cost that depends on it.
    distance: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct FittedDocument {
    parameter: &'static str,
    how: String,
}

/// What all runs need of the host.
#[derive(Serialize, JsonSchema)]
struct EstimateDocument {
    core_s: f64,
    /// Memory of the largest run.
    bytes_of_a_run: u64,
}

impl Document for Description {
    const NAME: &str = "slablab.description.1";
    const TITLE: &str = "slablab run --describe: what an experiment consists of";
}

/// The schema of the answer.
pub(super) fn schema() -> Named {
    named::<Description>()
}

/// The answer of `run --describe`.
pub fn description_answer(experiment: &Experiment, plan: &Plan) -> Answer {
    let file = &experiment.file;
    let title = format!("{}: {}", file.name, file.title);
    let machines: Vec<String> = experiment.machines.iter().map(|on| on.name.clone()).collect();
    let engines: Vec<String> = file.engines.iter().map(|(_, preset)| preset.to_string()).collect();
    let mut answer =
        Answer::new(&title, sentence(experiment, plan)).document(&document(experiment, plan)).heading(title);
    if let Some(source) = &file.source {
        answer = answer.line(format!("published: {source}"));
    }
    answer = answer
        .line(format!("machines: {}", machines.join(", ")))
        .line(format!("engines: {}", engines.join(", ")));
    answer = workload(answer, file, plan.size);
    match &file.fitted {
        Some(fitted) => answer.heading(format!("fitted: {}: {}", fitted.parameter, fitted.how)),
        None => answer,
    }
}

/// What is run where, and what that needs.
fn sentence(experiment: &Experiment, plan: &Plan) -> String {
    let file = &experiment.file;
    let some = |count: usize, one: &str, many: &str, names: Vec<String>| match count {
        1 => format!("{one} {}", joined(names)),
        count => format!("{count} {many}"),
    };
    let machines = experiment.machines.iter().map(|on| on.name.clone()).collect();
    let engines = file.engines.iter().map(|(engine, _)| engine.clone()).collect();
    let sum = |runs: fn(&Plan, &Cell) -> u32| -> u64 {
        plan.cells.iter().map(|cell| u64::from(runs(plan, cell))).sum()
    };
    let (runs, most) = (sum(Plan::runs), sum(Plan::runs_most));
    let runs = if runs == most { counted(runs, "run") } else { format!("{runs} to {most} runs") };
    let estimate = plan.estimate(experiment);
    format!(
        "{} runs {} on {} under {}: {}, {runs}, about {:.1} s of one core and {} MiB for each run at a time \
         (estimated); {} costs of the machines are assumed.",
        file.name,
        file.workload.name,
        some(experiment.machines.len(), "the machine", "machines", machines),
        some(file.engines.len(), "the engine", "engines", engines),
        counted(plan.cells.len() as u64, "cell"),
        estimate.host_ns as f64 / 1e9,
        estimate.host_bytes >> 20,
        experiment.assumed().len()
    )
}

/// What the workload of an experiment does: its parameters, objects and metrics.
fn workload(answer: Answer, file: &ExperimentFile, size: Size) -> Answer {
    let workload = file.workload;
    let mut answer = answer.heading(format!("{}: {}", workload.name, workload.about)).heading("parameters");
    for parameter in workload.parameters {
        let given = file
            .swept(parameter.name, size)
            .map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        let value = given.unwrap_or_else(|| parameter.default(size).to_string());
        let limits = match parameter.kind {
            Kind::Number { least, most, .. } => format!("{least} to {most}"),
            Kind::Word(words) => words.join(", "),
            Kind::File => "a recording".into(),
        };
        answer = answer.entry(
            format!("{} = {value}: {}", parameter.name, parameter.about),
            [format!("{limits}; source: {}", parameter.source)],
        );
    }
    for (names, objects) in alike_releases(file) {
        let object = |object: &Object| {
            let bytes = if object.bytes > 0 { format!(" ({} bytes)", object.bytes) } else { String::new() };
            format!("{}{bytes}: {}; source: {}", object.cache, object.per_operation, object.source)
        };
        answer = answer
            .heading(format!("kernel objects of {}", names.join(", ")))
            .list(objects.iter().map(object));
    }
    answer.heading("metrics").list(workload.metrics.iter().map(metric_line))
}

fn document(experiment: &Experiment, plan: &Plan) -> Description {
    let file = &experiment.file;
    let workload = file.workload;
    let engine =
        |(name, preset): &(String, _)| EngineDocument { name: name.clone(), preset: format!("{preset}") };
    let assumed = experiment.assumed();
    let estimate = plan.estimate(experiment);
    Description {
        name: file.name.clone(),
        title: file.title.clone(),
        published: file.source.clone(),
        machines: experiment.machines.iter().map(machine).collect(),
        engines: file.engines.iter().map(engine).collect(),
        workload: WorkloadDocument { name: workload.name, about: workload.about },
        size: plan.size.name(),
        repeats: plan.repeats.least,
        more_repeats: plan.repeats.more(),
        seed: plan.seed,
        parameters: workload.parameters.iter().map(|one| parameter(file, one, plan.size)).collect(),
        metrics: workload.metrics.iter().map(metric).collect(),
        metric: workload.metrics[file.metric].name,
        objects: objects(file),
        assumed_costs: assumed
            .iter()
            .map(|source| AssumedDocument { cost: source.cost, distance: source.distance })
            .collect(),
        fitted: file
            .fitted
            .as_ref()
            .map(|fitted| FittedDocument { parameter: fitted.parameter, how: fitted.how.clone() }),
        cells: plan.cells.len(),
        runs: plan.cells.iter().map(|cell| u64::from(plan.runs(cell))).sum(),
        estimate: EstimateDocument {
            core_s: estimate.host_ns as f64 / 1e9,
            bytes_of_a_run: estimate.host_bytes,
        },
    }
}

fn machine(on: &On) -> MachineDocument {
    let spec = &on.machine.spec;
    MachineDocument {
        name: on.name.clone(),
        given: on.given.clone(),
        cpus: spec.cpu_node.len(),
        nodes: spec.nodes.len(),
        nodes_with_memory: spec.nodes.iter().filter(|node| node.bytes > 0).count(),
        page_bytes: 1_u64 << spec.page_shift,
        memory_bytes: spec.nodes.iter().map(|node| node.bytes).sum(),
    }
}

fn parameter(file: &ExperimentFile, parameter: &Parameter, size: Size) -> ParameterDocument {
    let default = [parameter.default(size)];
    let values = file.swept(parameter.name, size);
    let mut shown = ParameterDocument {
        name: parameter.name,
        about: parameter.about,
        source: parameter.source,
        values: values.unwrap_or(&default).to_vec(),
        is_default: values.is_none(),
        least: None,
        most: None,
        defaults: None,
        words: None,
        default: None,
    };
    match parameter.kind {
        Kind::Number { least, most, defaults } => {
            (shown.least, shown.most) = (Some(least), Some(most));
            shown.defaults = Some(Size::NAMES.iter().map(|(name, _)| *name).zip(defaults).collect());
        }
        Kind::Word(words) => (shown.words, shown.default) = (Some(words.to_vec()), Some(words[0])),
        Kind::File => {}
    }
    shown
}

fn metric(metric: &Metric) -> MetricDocument {
    MetricDocument {
        name: metric.name,
        about: metric.about,
        better: metric.better.map(Better::word),
        unit: metric.unit,
        per_unit: metric.per_unit,
    }
}

fn objects(file: &ExperimentFile) -> Vec<ObjectsDocument> {
    let object = |object: &Object| ObjectDocument {
        cache: object.cache,
        bytes: object.bytes,
        per_operation: object.per_operation.to_string(),
        source: object.source,
    };
    let group = |(releases, objects): (Vec<String>, Vec<Object>)| ObjectsDocument {
        releases,
        objects: objects.iter().map(object).collect(),
    };
    alike_releases(file).into_iter().map(group).collect()
}

/// The kernel objects of an operation, and the releases of the engines that have these.
fn alike_releases(file: &ExperimentFile) -> Vec<(Vec<String>, Vec<Object>)> {
    let mut releases: Vec<Release> = file.engines.iter().map(|(_, preset)| Era::of(preset).release).collect();
    releases.sort();
    releases.dedup();
    let objects = file.workload.objects;
    let alike = releases.chunk_by(|one, other| objects(*one) == objects(*other));
    alike.map(|group| (group.iter().map(ToString::to_string).collect(), objects(group[0]))).collect()
}
