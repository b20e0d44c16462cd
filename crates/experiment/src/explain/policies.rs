//! The part of each group of policies in the difference between two presets of page replacement, in an
//! experiment whose workload has a parameter `vm`.
//!
//! As [`super::cells`], with values of the parameter in place of engines. A combination has the page
//! allocator and the page cache of one kernel and the policies of the other one, too: the group `kernel`.

use super::cells::{CellsExplained, explained, main_metric, of_engines, of_row};
use super::groups::Groups;
use crate::run::results::Results;
use crate::workload::Value;
use crate::{Experiment, Options, run};
use slablab_report::error::{Error, Result};
use slablab_sim::programs::policy;
use slablab_stats::shapley::Plan;
use slablab_vm::preset::Preset;

/// The parameter.
const VM: &str = "vm";
/// Rows that are taken apart: the one that differs most, as runs that swap are long.
const ROWS: usize = 1;

/// Explains the difference between two policies in an experiment, with its first engine.
///
/// # Errors
/// A workload without page replacement, policies that cannot be taken apart, or runs that need too much of
/// the host.
pub fn explain_policies(
    experiment: &Experiment,
    [from, to]: [Preset; 2],
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<CellsExplained> {
    let at = |why: String| Error::new(&experiment.path, why);
    let workload = experiment.file.workload;
    if workload.parameters.iter().all(|parameter| parameter.name != VM) {
        return Err(at(format!(
            "the workload {} has no parameter {VM}: expected two engines",
            workload.name
        )));
    }
    let groups = Groups::new(from, to).map_err(at)?;
    let one = of_engines(experiment, experiment.file.engines[..1].to_vec());
    let ends = run(&of_policies(&one, &[from, to]), options, None, progress)?;
    let (chosen, mut left_out) = choose(&ends);
    let plan = Plan::new(groups.groups.len(), groups.groups.len(), 0, slablab_stats::shapley::SEED);
    let coalitions = plan.coalitions();
    let between: Vec<Preset> = coalitions.iter().map(|chosen| groups.variant(*chosen)).collect();
    let mut rows = Vec::new();
    for cell in chosen {
        let row = of_policies(&of_row(&one, &ends.plan.cells[cell]), &between);
        let results = run(&row, options, None, progress)?;
        let failed = (0..between.len()).find_map(|at| Some((at, results.failure(at)?)));
        match failed {
            Some((at, why)) => {
                let why = why.lines().next().unwrap_or_default().trim_end_matches(':');
                left_out.push(format!(
                    "{}: {} has no number ({why}), so nothing can be taken apart",
                    label(&ends, cell),
                    policy::word_of(&between[at])
                ));
            }
            None => rows.push(explained(&results, &plan, &coalitions, label(&ends, cell))),
        }
    }
    let in_themes = groups.groups.iter().filter(|group| group.policies.len() > 1);
    let names: Vec<&str> = in_themes.map(|group| group.name.as_str()).collect();
    if !names.is_empty() {
        left_out.push(format!("parts within a group of several policies: {}", names.join(", ")));
    }
    left_out.push("costs of the machines other than those of their files".into());
    let names = [from, to].map(|preset| preset.to_string());
    Ok(CellsExplained { names, ends, groups: groups.groups, rows, left_out })
}

/// The experiment with these values of the parameter, which varies last.
fn of_policies(experiment: &Experiment, presets: &[Preset]) -> Experiment {
    let mut other = experiment.clone();
    other.file.parameters.retain(|(name, _)| *name != VM);
    other.file.of_size.iter_mut().for_each(|(_, lists)| lists.retain(|(name, _)| *name != VM));
    let values = presets.iter().map(|preset| Value::Word(policy::word_of(preset))).collect();
    other.file.parameters.push((VM, values));
    other
}

/// What a cell shares with the cell of the other policy.
fn label(results: &Results, cell: usize) -> String {
    let of = &results.plan.cells[cell];
    let is_own = |one: &String| one.starts_with("vm=");
    let swept = results.swept(of).into_iter().filter(|one| !is_own(one));
    let machine = results.experiment.machines[of.machine].name.clone();
    std::iter::once(machine).chain(swept).collect::<Vec<_>>().join(" ")
}

/// The first policy's cells of the rows to take apart, those whose means differ most; and what is left out.
fn choose(ends: &Results) -> (Vec<usize>, Vec<String>) {
    let metric = main_metric(ends);
    let mut rows: Vec<(usize, f64)> = Vec::new();
    let mut left_out = Vec::new();
    let cells = ends.plan.cells.len();
    for base in 0..cells {
        let name = label(ends, base);
        let Some(other) = (base + 1..cells).find(|at| label(ends, *at) == name) else { continue };
        let mean = |cell| ends.shown(cell, metric).map(|sample| sample.mean());
        match mean(base).zip(mean(other)) {
            Some((one, two)) if one == two => left_out.push(format!("{name}: no difference")),
            Some((one, two)) => rows.push((base, (two - one).abs() / one.abs().max(two.abs()))),
            None => left_out.push(format!("{name}: a run failed")),
        }
    }
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    left_out.extend(rows.iter().skip(ROWS).map(|(cell, _)| format!("{}: differs less", label(ends, *cell))));
    let mut chosen: Vec<usize> = rows.into_iter().take(ROWS).map(|(cell, _)| cell).collect();
    chosen.sort_unstable();
    (chosen, left_out)
}
