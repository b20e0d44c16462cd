//! What an experiment gave: the comparison of its engines, every metric of each cell.

use super::builds::builds;
use super::comparison::{ComparisonDocument, comparison_avg_std, comparison_blocks, comparison_mmtests};
use super::finding::{finding, missing};
use super::functions::{FunctionDocument, functions, with_functions};
use super::locks::{LOCKS, locks_table};
use super::run_page::{basis, page_blocks};
use crate::judge::summary::{Summary, summary};
use crate::plan::Cell;
use crate::repeats::Until;
use crate::run::observe::Seen;
use crate::run::results::Results;
use crate::workload::Metric;
use schemars::JsonSchema;
use serde::Serialize;
use slablab_report::document::{Named, named};
use slablab_report::frame::Frame;
use slablab_report::html::Cell as Shown;
use slablab_report::text::counted;
use slablab_report::{Answer, Document, text};
use slablab_stats::sequential::half_width_percent;
use slablab_stats::table::Rules;
use slablab_stats::table::avg_std::Digits;
use slablab_stats::table::mmtests::Options;

/// What an answer has beside its usual blocks.
#[derive(Clone, Copy, Default)]
pub struct Look<'a> {
    /// The widest line, where the terminal does not say it.
    pub wrap: Option<usize>,
    /// Whether the text has a table of locks.
    pub locks: bool,
    /// What the first repeat of each cell shows, for a table of the functions of engines that report them.
    pub functions: Option<&'a [Option<Seen>]>,
    /// What the first repeat of each cell shows ([`crate::run::observe::seen`]); without it there is no page.
    pub seen: Option<&'a [Option<Seen>]>,
}

/// The statistics of every cell, and the comparison of the engines.
#[derive(Serialize, JsonSchema)]
struct ExperimentDocument {
    #[serde(flatten)]
    summary: Summary,
    comparison: ComparisonDocument,
    /// What functions cost, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<Vec<FunctionDocument>>,
}

impl Document for ExperimentDocument {
    const NAME: &str = "slablab.experiment.1";
    const TITLE: &str = "slablab run, slablab run --join: the statistics of an experiment";
}

/// The schema of the answer.
pub(super) fn schema() -> Named {
    named::<ExperimentDocument>()
}

/// The answer of `run`.
pub fn experiment_answer(results: &Results, look: Look<'_>) -> Answer {
    let metric = main_metric(results);
    let (table, rules) = (results.table(metric), Rules::default());
    let sentence = format!("{}{}.", finding(&table, metric), missing(results));
    let owned = results.clone();
    let seen = look.functions.map(<[_]>::to_vec);
    let document = move || ExperimentDocument {
        summary: summary(&owned),
        comparison: ComparisonDocument::new(&owned.table(main_metric(&owned)), Rules::default()),
        functions: seen.as_deref().map(|seen| functions(&owned, seen)),
    };
    let answer = begun(results, sentence, look).line(metric_line(metric)).document_of(document);
    let answer = comparison_blocks(answer, &table, rules)
        .heading("all metrics, means over the repeats")
        .table(cells(results), &[]);
    let answer = with_tables(answer, placements(results, metric));
    let answer = unmet(results, metric).into_iter().fold(answer, Answer::line);
    ended(builds(answer, results), results, look)
        .rows(experiment_frame(results))
        .form("mmtests", experiment_mmtests(results, look.wrap))
        .form("avgstd", experiment_avg_std(results, look.wrap))
}

/// An answer about an experiment: its sentence, and what was run.
pub(super) fn begun(results: &Results, sentence: String, look: Look<'_>) -> Answer {
    let file = &results.experiment.file;
    let title = format!("{}: {}", file.name, file.title);
    Answer::new(&title, sentence).within(look.wrap).heading(title).line(what_ran(results))
}

/// The end of an answer about an experiment: cells that failed, locks, the page, what the numbers rest on.
pub(super) fn ended(answer: Answer, results: &Results, look: Look<'_>) -> Answer {
    let answer = failures(results).into_iter().fold(answer, |answer, (cell, mut why)| {
        let first = if why.is_empty() { String::new() } else { why.remove(0) };
        answer.entry(format!("{cell}: {first}"), why)
    });
    let answer = match look.locks {
        true => answer.heading(LOCKS).table(locks_table(results), &[]),
        false => answer,
    };
    let found = look.functions.map(|seen| functions(results, seen));
    let answer = found.into_iter().fold(answer, |answer, found| with_functions(answer, &found));
    let answer = look.seen.into_iter().fold(answer, |answer, seen| page_blocks(answer, results, seen));
    answer.remarks(basis(results))
}

/// Tables of the text, each below its heading.
pub(super) fn with_tables(answer: Answer, tables: impl IntoIterator<Item = (String, text::Table)>) -> Answer {
    tables.into_iter().fold(answer, |answer, (head, table)| answer.heading(head).table(table, &[]))
}

/// The main metric as mmtests prints it.
pub(super) fn experiment_mmtests(results: &Results, wrap: Option<usize>) -> String {
    let metric = main_metric(results);
    let options = Options { decimals: decimals(results, metric), wrap, ..Options::default() };
    comparison_mmtests(&results.table(metric), Rules::default(), &options)
}

/// The main metric as the mails of 2009 print it.
pub(super) fn experiment_avg_std(results: &Results, wrap: Option<usize>) -> String {
    let metric = main_metric(results);
    let digits = Digits::Decimals(decimals(results, metric));
    comparison_avg_std(&results.table(metric), Rules::default(), digits, wrap)
}

/// Decimals of a metric in tables that people compare by eye: at least its own, and so many that the smallest
/// mean has five digits. The mails print 13.19 s and 1.2727 s, and tell differences of a percent and less.
fn decimals(results: &Results, metric: &Metric) -> usize {
    let means = results.plain().filter_map(|(at, _)| Some(results.shown(at, metric)?.mean().abs()));
    let smallest = means.filter(|mean| *mean > 0.0).fold(f64::INFINITY, f64::min);
    metric.decimals.max(decimals_of(smallest))
}

/// Decimals with which a number has five digits from its first one on; none for a number that is not finite.
fn decimals_of(number: f64) -> usize {
    match number.is_finite() {
        true => (4 - number.log10().floor() as i32).clamp(0, 12) as usize,
        false => 0,
    }
}

/// Every metric of every cell, one each row.
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
    results.metric(results.experiment.file.metric)
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

/// How many cells of what, how often, with which seed.
fn what_ran(results: &Results) -> String {
    let (file, plan) = (&results.experiment.file, &results.plan);
    format!(
        "{} of {}, {}, size {}, seed {}",
        counted(results.plain().count() as u64, "cell"),
        file.workload.name,
        plan.repeats.words(),
        plan.size.name(),
        plan.seed
    )
}

/// A metric with its unit and what it measures.
pub(super) fn metric_line(metric: &Metric) -> String {
    format!("{}, in {}: {}", metric.name, metric.unit, metric.about)
}

/// A line for each cell, a column for each metric.
fn cells(results: &Results) -> text::Table {
    let heads = metrics(results).map(|metric| format!("{} {}", short(metric), metric.unit));
    let mut table = text::Table::new(std::iter::once(String::new()).chain(heads));
    for (at, _) in results.plain() {
        let numbers = metrics(results).map(|metric| match results.shown(at, metric) {
            Some(sample) => format!("{:.*}", metric.decimals, sample.mean()),
            None => "-".to_string(),
        });
        table.row(std::iter::once(results.name(at)).chain(numbers));
    }
    table
}

/// How the main metric scatters within and between placements; `None` with one placement.
fn placements(results: &Results, metric: &Metric) -> Option<(String, text::Table)> {
    let heads = ["", "mean", "sd within", "sd between", "between, % of the variance", "p"];
    let mut table = text::Table::new(heads).numbers(1..6);
    let mut parts = results.plain().filter_map(|(at, _)| Some((at, results.parts(at, metric)?)));
    let first = parts.next()?;
    for (at, parts) in std::iter::once(first).chain(parts) {
        let number = |value: f64| format!("{:.*}", metric.decimals + 1, value / metric.per_unit);
        table.row([
            results.name(at),
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
        "{} cells ended at {most} repeats before their interval was {percent} % of the mean: up to {widest:.1} %",
        wide.len()
    ))
}

/// A metric's name without its unit.
fn short(metric: &Metric) -> String {
    let name = metric.name.trim_end_matches("_ppm").trim_end_matches("_ps");
    name.replace('_', " ")
}

/// Which cells have no numbers, and why, line by line.
fn failures(results: &Results) -> Vec<(String, Vec<String>)> {
    let of = |at: usize| {
        let why = results.failure(at)?;
        Some((results.name(at), why.lines().map(str::to_string).collect()))
    };
    results.plain().filter_map(|(at, _)| of(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A difference of a percent shows in every number.
    #[test]
    fn the_smallest_mean_has_five_digits() {
        let rows = [(0.006_7, 7), (1.27, 4), (13.19, 3), (122.0, 2), (144_150.0, 0), (f64::INFINITY, 0)];
        for (number, decimals) in rows {
            assert_eq!(decimals_of(number), decimals, "{number}");
        }
    }
}
