//! The rows of a suite: a workload with its parameters on a machine, under both engines.

use crate::judge::differences::{Difference, differences};
use crate::output::comparison::short;
use crate::run::results::Results;
use crate::suite::SuiteResults;
use crate::workload::{Metric, Pair};
use slablab_report::column::Columns;
use slablab_report::html::Cell;
use slablab_report::text::counted;
use slablab_stats::table::{Better, Pair as Compared, Rules, Table, Verdict, summary};

/// Differences of means below this, in percent, cannot be told on a real machine.
pub(super) const NOISE_PERCENT: f64 = 1.0;

/// A row of the answer: a workload with its parameters on a machine, under both engines.
pub(super) struct Line {
    pub(super) workload: &'static str,
    pub(super) machine: String,
    pub(super) parameters: String,
    pub(super) why: &'static str,
    pub(super) metric: &'static Metric,
    /// The number of runs, their mean and their standard deviation, of the base and the other.
    pub(super) moments: [[Cell; 3]; 2],
    pub(super) compared: Compared,
    /// What else differs; empty where the main metric does not.
    pub(super) differences: Vec<Difference>,
}

impl Line {
    pub(super) fn name(&self) -> String {
        let words = [self.workload, &self.machine, &self.parameters];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn differs(&self) -> bool {
        matches!(self.compared.verdict, Verdict::Better | Verdict::Worse)
    }

    /// Whether it differs, by a test or without a scatter to test against.
    pub(super) fn changes(&self) -> bool {
        self.differs() || self.compared.is_unscattered()
    }

    /// Whether it differs, and its gain is one that `wanted` says.
    pub(super) fn gains(&self, wanted: impl Fn(f64) -> bool) -> bool {
        self.differs() && self.compared.gain_percent.is_some_and(wanted)
    }

    /// Whether a difference can be told in the model, but not on a real machine.
    fn is_small(&self) -> bool {
        self.differs() && self.compared.gain_percent.is_some_and(|gain| gain.abs() < NOISE_PERCENT)
    }

    fn verdict(&self) -> String {
        let small = if self.is_small() { format!(", below {NOISE_PERCENT} %") } else { String::new() };
        format!("{}{small}", short(&self.compared))
    }
}

/// The rows of an answer, compared with one correction over all of them; and the table that they are of.
pub(super) fn lines(suite: &SuiteResults) -> (Vec<Line>, Table) {
    let mut table = Table::new(suite.suite.engines.iter().map(|(engine, _)| engine.clone()));
    let mut found: Vec<(&Pair, &Results, usize)> = Vec::new();
    for ((pair, _), results) in suite.suite.pairs.iter().zip(&suite.results) {
        let Some(results) = results else { continue };
        let metric = main_metric(results);
        for (at, mut row) in results.table(metric).rows().iter().cloned().enumerate() {
            row.name = format!(
                "{} {} [{}]",
                results.experiment.file.workload.name,
                label(results, 2 * at),
                metric.unit
            );
            table.row(row).expect("two cells");
            found.push((pair, results, 2 * at));
        }
    }
    let compared = table.compare(Rules::default());
    let lines = found.into_iter().zip(table.rows()).zip(compared);
    let line = |(((pair, results, cell), row), compared): (
        ((&Pair, &Results, usize), &slablab_stats::table::Row),
        Compared,
    )| {
        let moments = |at: usize| match row.cells[at].moments() {
            Some(of) => [Cell::Count(of.n() as u64), Cell::Number(of.mean(), 4), Cell::Number(of.sd(), 4)],
            None => [Cell::Empty, Cell::Empty, Cell::Empty],
        };
        let mut line = Line {
            workload: results.experiment.file.workload.name,
            machine: results.experiment.machines[0].name.clone(),
            parameters: parameters(results, cell),
            why: pair.why,
            metric: main_metric(results),
            moments: [moments(0), moments(1)],
            compared,
            differences: Vec::new(),
        };
        if line.changes() {
            line.differences = differences(results, [cell, cell + 1]);
        }
        line
    };
    (lines.map(line).collect(), table)
}

fn main_metric(results: &Results) -> &'static Metric {
    &results.experiment.file.workload.metrics[results.experiment.file.metric]
}

/// The parameters that the pair names, with their values in a cell.
fn parameters(results: &Results, cell: usize) -> String {
    let values = &results.plan.cells[cell].values;
    let named = results.experiment.file.parameters.iter();
    named.map(|(name, _)| format!("{name}={}", values.0[name])).collect::<Vec<_>>().join(" ")
}

fn label(results: &Results, cell: usize) -> String {
    let machine = &results.experiment.machines[0].name;
    format!("{machine} {}", parameters(results, cell)).trim_end().to_string()
}

/// The columns of both sides' numbers.
pub(super) fn columns([base, other]: [String; 2]) -> Columns<Line> {
    let part = |side: usize, at: usize| move |line: &Line| line.moments[side][at].clone();
    let shown = |side: usize| {
        move |line: &Line| match line.moments[side][1] {
            Cell::Number(mean, _) => Cell::Number(mean, line.metric.decimals),
            _ => Cell::Empty,
        }
    };
    let optional = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(value, 2));
    let p = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(value, 4));
    Columns::<Line>::default()
        .key("workload", |line| Cell::Text(line.workload.into()))
        .key("machine", |line| Cell::Name(line.machine.clone()))
        .key("parameters", |line| Cell::Text(line.parameters.clone()))
        .key("metric", |line| Cell::Text(line.metric.name.into()))
        .add("unit", "unit", "Unit", |line| Cell::Text(line.metric.unit.into()))
        .words()
        .key("better", |line| Cell::Text(line.metric.better.unwrap_or(Better::Lower).word().into()))
        .key("base_n", part(0, 0))
        .key("base_mean", part(0, 1))
        .key("base_sd", part(0, 2))
        .key("other_n", part(1, 0))
        .key("other_mean", part(1, 1))
        .key("other_sd", part(1, 2))
        .people("base_shown", base.clone(), base, shown(0))
        .people("other_shown", other.clone(), other, shown(1))
        .add("gain_percent", "gain %", "Gain", move |line| optional(line.compared.gain_percent))
        .key("gain_percent_low_95", move |line| optional(line.compared.gain_percent_95.map(|ends| ends.low)))
        .key("gain_percent_high_95", move |line| {
            optional(line.compared.gain_percent_95.map(|ends| ends.high))
        })
        .people("gain_interval", "95 % of gain", "95 % interval of the gain", |line| {
            let ends = line.compared.gain_percent_95;
            ends.map_or(Cell::Empty, |ends| Cell::Text(format!("{:.2} to {:.2}", ends.low, ends.high)))
        })
        .key("p", move |line| p(line.compared.p))
        .key("p_holm", move |line| p(line.compared.p_holm))
        .people("verdict", "verdict", "Verdict", |line| Cell::Text(line.verdict()))
        .words()
        .key("result", |line| Cell::Text(line.compared.verdict.to_string()))
        .key("below_noise", |line| Cell::Text(if line.is_small() { "yes" } else { "no" }.into()))
}

/// The engines: the base and the other.
pub(super) fn engines(suite: &SuiteResults) -> [String; 2] {
    suite.suite.engines.clone().map(|(engine, _)| engine)
}

/// What was run, in a line.
pub(super) fn what_ran(suite: &SuiteResults) -> String {
    let ran: Vec<&Results> = suite.results.iter().flatten().collect();
    let Some(first) = ran.first() else { return "no pair was run".into() };
    let mut workloads: Vec<&str> = ran.iter().map(|results| results.experiment.file.workload.name).collect();
    workloads.dedup();
    let part = match suite.results.len() - ran.len() {
        0 => String::new(),
        left => {
            let are = if left == 1 { "is" } else { "are" };
            format!("; {} of workload and machine {are} another part's", counted(left as u64, "pair"))
        }
    };
    format!(
        "{}, {} of workload and machine, {}, size {}, seed {}{part}",
        counted(workloads.len() as u64, "workload"),
        counted(ran.len() as u64, "pair"),
        first.plan.repeats.words(),
        first.plan.size.name(),
        first.plan.seed
    )
}

/// The sentences below the table.
pub(super) fn summaries(lines: &[Line]) -> Vec<String> {
    let compared: Vec<Compared> = lines.iter().map(|line| line.compared.clone()).collect();
    let mut said = vec![summary(&compared, Rules::default())];
    let small = lines.iter().filter(|line| line.is_small()).count();
    if small > 0 {
        said.push(format!("Differences below {NOISE_PERCENT} %, which no real machine would show: {small}."));
    }
    said
}

/// Why pairs have no numbers.
pub(super) fn failures(suite: &SuiteResults) -> Vec<String> {
    let mut said = Vec::new();
    for results in suite.results.iter().flatten() {
        for (at, cell) in results.plain() {
            if let Some(why) = results.failure(at) {
                let (workload, engine) =
                    (results.experiment.file.workload.name, &results.experiment.file.engines[cell.engine].0);
                said.push(format!("{workload} {} {engine}: {why}", label(results, at)));
            }
        }
    }
    said
}

/// A number of a difference: three figures, but not more than are there.
pub(super) fn shown(number: f64) -> String {
    match number.abs() {
        large if large >= 100.0 => format!("{number:.0}"),
        some if some >= 1.0 => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}
