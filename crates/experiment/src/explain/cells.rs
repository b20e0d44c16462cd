//! The part of each group of policies in the difference between two engines in an experiment.
//!
//! ```text
//! experiment, quick, both engines ── rows that differ most, at most four
//!     each of them ── all combinations of at most six groups as engines ── run ── shapley, each repeat
//! ```
//!
//! A repeat has the same seed under each combination. So its parts are those of one game, and the scatter of
//! parts over the repeats gives their interval.

use super::groups::{Group, Groups};
use crate::plan::Cell;
use crate::run::results::Results;
use crate::workload::Metric;
use crate::{Experiment, Options, run};
use slablab_report::error::{Error, Result};
use slablab_slabs::Preset;
use slablab_stats::Sample;
use slablab_stats::sequential::mean_interval;
use slablab_stats::shapley::{Coalition, Mean, Plan};
use slablab_stats::table::{Rules, Verdict};

/// Most rows that are taken apart.
pub const ROWS_MOST: usize = 4;

/// The answer.
pub struct CellsExplained {
    /// What is compared: two engines, or two policies of page replacement.
    pub names: [String; 2],
    /// The results of both engines in every row: what the rows were chosen by.
    pub ends: Results,
    /// What differs between the engines.
    pub groups: Vec<Group>,
    /// The rows that were taken apart.
    pub rows: Vec<Row>,
    /// What was left out, in sentences.
    pub left_out: Vec<String>,
}

/// A machine with values of the parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What was measured: the main metric first, and the others that any group changes.
    pub measures: Vec<Measured>,
}

/// A metric's difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The metric.
    pub metric: &'static str,
    /// Its unit, and how many of the metric's numbers are one of it.
    pub unit: (&'static str, f64),
    /// Decimals in tables.
    pub decimals: usize,
    /// The mean under the first engine.
    pub from: f64,
    /// The mean under the second engine.
    pub to: f64,
    /// What each group carries.
    pub parts: Vec<Part>,
    /// What pairs of groups do together beyond what each does without the other, strongest first.
    pub together: Vec<([usize; 2], f64)>,
}

/// What a group carries, in the metric's numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its share of the change: the sum over the repeats, exactly.
    pub sum: Mean,
    /// The mean over the repeats.
    pub value: f64,
    /// Half of Student's 95 % interval over the repeats; `None` with one.
    pub give_or_take: Option<f64>,
    /// What it changes alone, in the first engine.
    pub alone: f64,
    /// What it changes as the last, towards the second engine.
    pub last: f64,
    /// Whether it changes anything in any combination and repeat.
    pub moves: bool,
}

/// Explains the difference between two engines in an experiment.
///
/// # Errors
/// Engines that have no policies in common, or runs that need too much of the host.
pub fn explain_cells(
    experiment: &Experiment,
    engines: &[(String, Preset); 2],
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<CellsExplained> {
    let groups = Groups::new(engines[0].1, engines[1].1).map_err(|bad| Error::new(&experiment.path, bad))?;
    let ends = run(&of_engines(experiment, engines.to_vec()), options, None, progress)?;
    let (chosen, mut left_out) = choose(&ends);
    let plan = Plan::new(groups.groups.len(), groups.groups.len(), 0, slablab_stats::shapley::SEED);
    let coalitions = plan.coalitions();
    let between: Vec<(String, Preset)> =
        coalitions.iter().map(|chosen| (format!("{chosen:06b}"), groups.variant(*chosen))).collect();
    let mut rows = Vec::new();
    for cell in chosen {
        let one = of_row(&of_engines(experiment, between.clone()), &ends.plan.cells[cell]);
        let results = run(&one, options, None, progress)?;
        match (0..between.len()).find_map(|at| Some((at, results.failure(at)?))) {
            Some((at, why)) => {
                let (name, preset) = (ends.label(cell), between[at].1);
                let why = why.lines().next().unwrap_or_default().trim_end_matches(':').to_string();
                left_out
                    .push(format!("{name}: {preset} has no number ({why}), so nothing can be taken apart"));
            }
            None => rows.push(explained(&results, &plan, &coalitions, ends.label(cell))),
        }
    }
    let in_themes = groups.groups.iter().filter(|group| group.policies.len() > 1);
    let names: Vec<&str> = in_themes.map(|group| group.name.as_str()).collect();
    if !names.is_empty() {
        left_out.push(format!("parts within a group of several policies: {}", names.join(", ")));
    }
    left_out.push("costs of the machines other than those of their files".into());
    let names = engines.clone().map(|(name, _)| name);
    Ok(CellsExplained { names, ends, groups: groups.groups, rows, left_out })
}

/// The experiment with other engines, and without what it says of its own.
pub(super) fn of_engines(experiment: &Experiment, engines: Vec<(String, Preset)>) -> Experiment {
    let mut other = experiment.clone();
    other.file.engines = engines;
    (other.file.published, other.file.expect) = (Vec::new(), Vec::new());
    other
}

/// The experiment of the machine and the values of one cell.
pub(super) fn of_row(experiment: &Experiment, cell: &Cell) -> Experiment {
    let mut one = experiment.clone();
    one.machines = vec![experiment.machines[cell.machine].clone()];
    one.file.parameters = cell.values.0.iter().map(|(name, value)| (*name, vec![value.clone()])).collect();
    one.file.of_size.clear();
    one
}

/// The first cells of the rows to take apart, those that differ most; and which rows are left out.
fn choose(ends: &Results) -> (Vec<usize>, Vec<String>) {
    let metric = main_metric(ends);
    let mut differ: Vec<(usize, f64)> = Vec::new();
    let mut equal = Vec::new();
    for pair in ends.table(metric).compare(Rules::default()) {
        match pair.verdict {
            _ if pair.is_unscattered() => differ.push((2 * pair.row, pair.gain_percent.unwrap_or(0.0).abs())),
            Verdict::Better | Verdict::Worse => {
                differ.push((2 * pair.row, pair.gain_percent.unwrap_or(0.0).abs()))
            }
            _ => equal.push(ends.label(2 * pair.row)),
        }
    }
    differ.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let smaller: Vec<String> = differ.iter().skip(ROWS_MOST).map(|(cell, _)| ends.label(*cell)).collect();
    let mut left_out = Vec::new();
    if !equal.is_empty() {
        left_out.push(format!("rows in which no difference can be told: {}", equal.join(", ")));
    }
    if !smaller.is_empty() {
        left_out.push(format!("rows with smaller differences: {}", smaller.join(", ")));
    }
    let mut chosen: Vec<usize> = differ.iter().take(ROWS_MOST).map(|(cell, _)| *cell).collect();
    chosen.sort_unstable();
    (chosen, left_out)
}

pub(super) fn main_metric(results: &Results) -> &'static Metric {
    &results.experiment.file.workload.metrics[results.experiment.file.metric]
}

/// The parts of every metric; a cell of the results is a combination.
pub(super) fn explained(results: &Results, plan: &Plan, coalitions: &[Coalition], name: String) -> Row {
    let main = main_metric(results);
    let all = results.experiment.file.workload.metrics.iter();
    let mut measures: Vec<Measured> = Vec::new();
    for metric in std::iter::once(main).chain(all.filter(|metric| metric.name != main.name)) {
        if let Some(measured) = measured(results, plan, coalitions, metric)
            && (measures.is_empty() || measured.parts.iter().any(|part| part.moves))
        {
            measures.push(measured);
        }
    }
    Row { name, measures }
}

fn measured(
    results: &Results,
    plan: &Plan,
    coalitions: &[Coalition],
    metric: &'static Metric,
) -> Option<Measured> {
    // In the order of the runs: a repeat's numbers under all combinations are those of one seed.
    let values = |at| Some(results.values(at, metric)?.into_iter().map(|value| value as i128).collect());
    let values: Vec<Vec<i128>> = (0..coalitions.len()).map(values).collect::<Option<_>>()?;
    let unit = (metric.unit, metric.per_unit);
    Some(apart(plan, coalitions, &values, Named { metric: metric.name, unit, decimals: metric.decimals }))
}

/// What was measured.
pub(super) struct Named {
    pub metric: &'static str,
    pub unit: (&'static str, f64),
    pub decimals: usize,
}

/// Takes a metric apart: `values` has those of each repeat, in the order of all combinations' numbers.
pub(super) fn apart(plan: &Plan, coalitions: &[Coalition], values: &[Vec<i128>], of: Named) -> Measured {
    let repeats = values[0].len();
    let worth = |repeat: usize| move |chosen: Coalition| values[chosen as usize][repeat];
    let each: Vec<Vec<Mean>> = (0..repeats).map(|repeat| plan.parts(&worth(repeat))).collect();
    let mean = |of: &dyn Fn(usize) -> i128| (0..repeats).map(of).sum::<i128>() as f64 / repeats as f64;
    let all = plan.all();
    let part = |group: usize| {
        let values: Vec<f64> = each.iter().map(|parts| parts[group].value()).collect();
        let sample = Sample::new(values).expect("parts are finite");
        let interval = mean_interval(&sample.moments()).ok();
        let with = |before: Coalition| before | 1 << group;
        let moves = |repeat: usize| {
            coalitions.iter().any(|before| worth(repeat)(with(*before)) != worth(repeat)(*before))
        };
        Part {
            sum: Mean { sum: each.iter().map(|parts| parts[group].sum).sum(), ..each[0][group] },
            value: sample.mean(),
            give_or_take: interval.map(|ends| (ends.high - ends.low) / 2.0),
            alone: mean(&|repeat| worth(repeat)(1 << group) - worth(repeat)(0)),
            last: mean(&|repeat| worth(repeat)(all) - worth(repeat)(all & !(1 << group))),
            moves: (0..repeats).any(moves),
        }
    };
    let mut together: Vec<([usize; 2], f64)> = Vec::new();
    for repeat in 0..repeats {
        for pair in plan.interactions(&worth(repeat)) {
            let value = pair.mean.value() / repeats as f64;
            match together.iter_mut().find(|(players, _)| *players == pair.players) {
                Some((_, sum)) => *sum += value,
                None => together.push((pair.players, value)),
            }
        }
    }
    together.retain(|(_, value)| *value != 0.0);
    together.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    Measured {
        metric: of.metric,
        unit: of.unit,
        decimals: of.decimals,
        from: mean(&|repeat| worth(repeat)(0)),
        to: mean(&|repeat| worth(repeat)(all)),
        parts: (0..plan.players()).map(part).collect(),
        together,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Change;
    use crate::workload::Sample as Run;
    use std::path::Path;

    #[test]
    fn a_repeat_is_taken_apart_from_its_own_numbers() {
        let engines =
            ["slub@7.0", "slub@7.1"].map(|name| (name.into(), Preset::parse(name).expect("an engine")));
        let experiment = Experiment::find(Path::new("2026")).expect("an installed experiment");
        let every = of_engines(&experiment, engines.to_vec());
        let change = Change { repeats: Some(2), ..Change::default() };
        let whole = crate::Plan::new(&every, &change).expect("a plan");
        let one = of_row(&every, &whole.cells[0]);
        let plan = crate::Plan::new(&one, &change).expect("a plan");
        let run = |iops: u64| Ok(Run { metrics: [("iops".to_string(), iops)].into(), ..Run::default() });
        // The repeats of the first engine descend: sorted, each pair would be 10 apart.
        let runs = vec![Some(vec![run(2), run(1)]), Some(vec![run(11), run(12)])];
        let results = Results { experiment: one, plan, runs, computed: 0, program: "p".into() };
        let plan = Plan::new(1, 1, 0, slablab_stats::shapley::SEED);
        let found = measured(&results, &plan, &plan.coalitions(), main_metric(&results)).expect("numbers");
        let part = &found.parts[0];
        assert_eq!((part.value, part.sum.exact()), (10.0, "20".to_string()));
        assert!(part.give_or_take.is_some_and(|half| half > 12.0), "{part:?}");
    }
}
