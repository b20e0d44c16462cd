//! What an experiment gave: the tables of mails, the numbers of each cell, JSON, CSV; what it consists of.

use super::builds::builds;
use super::comparison::{
    comparison_avg_std, comparison_json, comparison_markdown, comparison_mmtests, comparison_table,
};
use crate::experiment::plan::{Cell, Plan};
use crate::experiment::repeats::Until;
use crate::experiment::results::Results;
use crate::experiment::source::{Experiment, INSTALLED};
use crate::experiment::summary::summary;
use crate::experiment::workload::{Kind, Metric, Object, Valued};
use crate::experiment::{ExperimentFile, Size};
use serde_json::Value;
use slablab_report::frame::Frame;
use slablab_report::html::Cell as Shown;
use slablab_report::text;
use slablab_sim::era::Era;
use slablab_slabs::Release;
use slablab_stats::sequential::half_width_percent;
use slablab_stats::table::Rules;
use slablab_stats::table::avg_std::Digits;
use slablab_stats::table::mmtests::Options;
use std::fmt::Write;

/// The widest line of a table that no `--wrap` narrows.
const WIDE: usize = 100;

/// The answer for people: a comparison of the engines, then every metric of each cell.
pub fn experiment_table(results: &Results, wrap: Option<usize>) -> String {
    let metric = main_metric(results);
    let mut out = head(results);
    let width = wrap.unwrap_or(WIDE);
    out += &text::wrapped_within(width, &metric_line(metric), "", "");
    out.push('\n');
    out += &comparison_table(&results.table(metric), Rules::default(), Some(width));
    out += "\nall metrics, means over the repeats\n";
    out += &cells(results).print_within(width);
    out += &placements(results, metric).map_or(String::new(), |(head, table)| {
        format!("\n{}{}", text::wrapped_within(width, &head, "", ""), table.print_within(width))
    });
    out += &unmet(results, metric).map_or(String::new(), |line| text::wrapped_within(width, &line, "\n", ""));
    out += &builds(results);
    out += &failures(results);
    out
}

/// The answer in Markdown.
pub fn experiment_markdown(results: &Results) -> String {
    let metric = main_metric(results);
    let table = comparison_markdown(&results.table(metric), Rules::default());
    let placements = placements(results, metric)
        .map_or(String::new(), |(head, table)| format!("\n{head}\n\n{}", table.markdown()));
    format!("{}{}\n\n{table}\n{}{placements}", head(results), metric_line(metric), cells(results).markdown())
}

/// The main metric as mmtests prints it.
pub fn experiment_mmtests(results: &Results, wrap: Option<usize>) -> String {
    let metric = main_metric(results);
    let options = Options { decimals: metric.decimals, wrap, ..Options::default() };
    comparison_mmtests(&results.table(metric), Rules::default(), &options)
}

/// The main metric as the mails of 2009 print it.
pub fn experiment_avg_std(results: &Results, wrap: Option<usize>) -> String {
    let metric = main_metric(results);
    let digits = Digits::Decimals(metric.decimals);
    comparison_avg_std(&results.table(metric), Rules::default(), digits, wrap)
}

/// The statistics of every cell, and the comparison of the engines.
pub fn experiment_json(results: &Results) -> Value {
    let mut document = summary(results);
    document["comparison"] = comparison_json(&results.table(main_metric(results)), Rules::default());
    document
}

/// Every metric of every cell, one each line.
pub fn experiment_csv(results: &Results) -> String {
    experiment_frame(results).csv()
}

/// The rows of [`experiment_csv`].
pub fn experiment_frame(results: &Results) -> Frame {
    let keys =
        ["machine", "engine", "parameters", "metric", "unit", "n", "mean", "sd", "median", "min", "max"];
    let mut frame = Frame::new(keys);
    for (at, cell) in results.plain() {
        for metric in metrics(results) {
            let Some(sample) = results.shown(at, metric) else { continue };
            let texts = names(results, cell).into_iter().chain([metric.name.into(), metric.unit.into()]);
            let numbers = [sample.mean(), sample.sd(), sample.median(), sample.min(), sample.max()];
            let numbers = numbers.map(|number| Shown::Number(number, metric.decimals));
            let count = Shown::Count(sample.n() as u64);
            frame.row(texts.map(Shown::Name).chain([count]).chain(numbers));
        }
    }
    frame
}

fn main_metric(results: &Results) -> &'static Metric {
    &results.experiment.file.workload.metrics[results.experiment.file.metric]
}

fn metrics(results: &Results) -> impl Iterator<Item = &'static Metric> {
    results.experiment.file.workload.metrics.iter()
}

/// Machine, engine and all parameters of a cell.
fn names(results: &Results, cell: &Cell) -> [String; 3] {
    let file = &results.experiment.file;
    let values = cell.values.0.iter().map(|(name, value)| format!("{name}={value}"));
    [
        results.experiment.machines[cell.machine].name.clone(),
        file.engines[cell.engine].0.clone(),
        values.collect::<Vec<_>>().join(" "),
    ]
}

/// The first lines of an answer.
pub(super) fn head(results: &Results) -> String {
    let (file, plan) = (&results.experiment.file, &results.plan);
    let cells = results.plain().count();
    format!(
        "{}: {}\n{} cells of {}, {}, size {}, seed {}\n\n",
        file.name,
        file.title,
        cells,
        file.workload.name,
        plan.repeats.words(),
        plan.size.name(),
        plan.seed
    )
}

fn metric_line(metric: &Metric) -> String {
    format!("{}, in {}: {}", metric.name, metric.unit, metric.about)
}

/// A line for each cell, a column for each metric.
fn cells(results: &Results) -> text::Table {
    let heads = metrics(results).map(|metric| format!("{} {}", short(metric), metric.unit));
    let mut table = text::Table::new(std::iter::once(String::new()).chain(heads));
    for (at, cell) in results.plain() {
        let label = results.label(at);
        let engine = &results.experiment.file.engines[cell.engine].0;
        let numbers = metrics(results).map(|metric| match results.shown(at, metric) {
            Some(sample) => format!("{:.*}", metric.decimals, sample.mean()),
            None => "-".to_string(),
        });
        table.row(std::iter::once(format!("{label} {engine}")).chain(numbers));
    }
    table
}

/// How the main metric scatters within and between placements; `None` with one placement.
pub(super) fn placements(results: &Results, metric: &Metric) -> Option<(String, text::Table)> {
    let heads = ["", "mean", "sd within", "sd between", "between, % of the variance", "p"];
    let mut table = text::Table::new(heads).numbers(1..6);
    let mut parts = results.plain().filter_map(|(at, cell)| Some((at, cell, results.parts(at, metric)?)));
    let first = parts.next()?;
    for (at, cell, parts) in std::iter::once(first).chain(parts) {
        let number = |value: f64| format!("{:.*}", metric.decimals + 1, value / metric.per_unit);
        let engine = &results.experiment.file.engines[cell.engine].0;
        table.row([
            format!("{} {engine}", results.label(at)),
            number(results.sample(at, metric)?.mean()),
            number(parts.within.sqrt()),
            number(parts.between.sqrt()),
            format!("{:.0}", parts.share_between() * 100.0),
            if parts.p < 0.001 { "<0.001".to_string() } else { format!("{:.3}", parts.p) },
        ]);
    }
    let head = format!(
        "{} in {} within and between placements; p: of such means of placements, or means further apart, if \
         placements make no difference",
        metric.name, metric.unit
    );
    Some((head, table))
}

/// The cells that ended before their interval was narrow enough; `None` without such cells.
fn unmet(results: &Results, metric: &Metric) -> Option<String> {
    let Until { percent, most } = results.plan.repeats.until?;
    let wide = |at: usize| {
        let half = half_width_percent(&results.independent(at, metric)?)?;
        (half > percent).then_some(half)
    };
    let wide: Vec<f64> = results.plain().filter_map(|(at, _)| wide(at)).collect();
    let widest = wide.iter().copied().reduce(f64::max)?;
    Some(format!(
        "{} cells ended at {most} repeats before their interval was {percent} % of the mean: up to {widest:.1} %\n",
        wide.len()
    ))
}

/// A metric's name without its unit.
fn short(metric: &Metric) -> String {
    let name = metric.name.trim_end_matches("_ppm").trim_end_matches("_ps");
    name.replace('_', " ")
}

/// Which cells have no numbers, and why.
pub(super) fn failures(results: &Results) -> String {
    let mut out = String::new();
    for (at, cell) in results.plain() {
        if let Some(why) = results.failure(at) {
            let engine = &results.experiment.file.engines[cell.engine].0;
            writeln!(out, "{} {engine}: {why}", results.label(at)).expect("a string");
        }
    }
    out
}

/// The experiments that come with the program.
///
/// # Panics
/// Never: a test reads them all.
pub fn experiments_list() -> String {
    let mut table = text::Table::headless().numbers(0..0);
    for installed in INSTALLED {
        let file = ExperimentFile::parse(installed.text).expect("installed experiments are read by a test");
        table.row([installed.name, &file.title]);
    }
    table.print()
}

/// What an experiment consists of: machines, engines, parameters with their sources, kernel objects.
pub fn experiment_description(experiment: &Experiment, plan: &Plan) -> String {
    let file = &experiment.file;
    let mut out = text::wrapped(&format!("{}: {}", file.name, file.title), "", "  ");
    if let Some(source) = &file.source {
        out += &text::wrapped(&format!("published: {source}"), "", "  ");
    }
    let machines: Vec<&str> = experiment.machines.iter().map(|on| &*on.name).collect();
    let engines: Vec<String> = file.engines.iter().map(|(_, preset)| preset.to_string()).collect();
    out += &text::wrapped(&format!("machines: {}", machines.join(", ")), "", "  ");
    out += &text::wrapped(&format!("engines: {}", engines.join(", ")), "", "  ");
    let assumed = experiment.assumed().len();
    let sum = |runs: fn(&Plan, &Cell) -> u32| -> u64 {
        plan.cells.iter().map(|cell| u64::from(runs(plan, cell))).sum()
    };
    let (cells, runs, most) = (plan.cells.len(), sum(Plan::runs), sum(Plan::runs_most));
    let runs = if runs == most { format!("{runs} runs") } else { format!("{runs} to {most} runs") };
    let estimate = plan.estimate(experiment);
    let seconds = estimate.host_ns as f64 / 1e9;
    let mib = estimate.host_bytes >> 20;
    out += &text::wrapped(
        &format!(
            "{cells} cells, {runs}: about {seconds:.1} s of one core, {mib} MiB for each run at a time \
             (estimated); {assumed} costs of the machines are assumed"
        ),
        "",
        "  ",
    );
    out.push('\n');
    out += &workload_description(file, plan.size);
    if let Some(fitted) = &file.fitted {
        out.push('\n');
        out += &text::wrapped(&format!("fitted: {}: {}", fitted.parameter, fitted.how), "", "  ");
    }
    out
}

/// What the workload of an experiment does: its parameters, objects and metrics.
fn workload_description(file: &ExperimentFile, size: Size) -> String {
    let workload = file.workload;
    let mut out = text::wrapped(&format!("{}: {}", workload.name, workload.about), "", "  ");
    out += "\nparameters\n";
    for parameter in workload.parameters {
        let given = file
            .swept(parameter.name, size)
            .map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        let value = given.unwrap_or_else(|| parameter.default(size).to_string());
        out += &text::wrapped(&format!("{} = {value}: {}", parameter.name, parameter.about), "  ", "    ");
        let limits = match parameter.kind {
            Kind::Number { least, most, .. } => format!("{least} to {most}"),
            Kind::Word(words) => words.join(", "),
            Kind::File => "a recording".into(),
        };
        out += &text::wrapped(&format!("{limits}; source: {}", parameter.source), "    ", "    ");
    }
    for (names, objects) in alike_releases(file) {
        out += &text::wrapped(&format!("kernel objects of {}", names.join(", ")), "\n", "  ");
        for object in objects {
            let bytes = if object.bytes > 0 { format!(" ({} bytes)", object.bytes) } else { String::new() };
            let line =
                format!("{}{bytes}: {}; source: {}", object.cache, object.per_operation, object.source);
            out += &text::wrapped(&line, "  ", "    ");
        }
    }
    out += "\nmetrics\n";
    for metric in workload.metrics {
        out += &text::wrapped(&metric_line(metric), "  ", "    ");
    }
    out
}

/// The kernel objects of an operation, and the releases of the engines that have these.
pub(super) fn alike_releases(file: &ExperimentFile) -> Vec<(Vec<String>, Vec<Object>)> {
    let mut releases: Vec<Release> = file.engines.iter().map(|(_, preset)| Era::of(preset).release).collect();
    releases.sort();
    releases.dedup();
    let objects = file.workload.objects;
    let alike = releases.chunk_by(|one, other| objects(*one) == objects(*other));
    alike.map(|group| (group.iter().map(ToString::to_string).collect(), objects(group[0]))).collect()
}
