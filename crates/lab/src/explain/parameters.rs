//! The part of each parameter of a workload in the difference between two choices of their values.
//!
//! ```text
//! part=16,discard=no   part=16,discard=yes,shrink=no       A and B: values of the workload's parameters
//!     named alike on both sides, or on none ── one value for all runs
//!     different ── a group: every combination of their values runs ── shapley, each repeat
//! ```
//!
//! The cells of an experiment are the combinations of its parameters' values. So the cells of an experiment
//! with two values of each parameter that differs are those that Shapley's value needs.

use super::cells::{CellsExplained, explained, of_engines, of_row};
use super::groups::Group;
use super::shapley::{Coalition, Plan};
use crate::experiment::plan::Cell;
use crate::experiment::rows::near;
use crate::experiment::workload::{Parameter, Value, Valued, Workload};
use crate::experiment::{Experiment, Options, Size, run};
use slablab_report::error::{Error, Result};

/// Most parameters that differ: 256 combinations.
pub const PARAMETERS_MOST: usize = 8;

/// Values of parameters by their names.
pub type Choice = Vec<(&'static str, Value)>;

/// Whether a text names values of parameters: engines and policies begin with their name.
pub fn is_choice(text: &str) -> bool {
    text.split(',').next().is_some_and(|first| first.contains('='))
}

/// Understands `name=value[,name=value]...`.
///
/// # Errors
/// A parameter that the workload has not, or a value that it cannot have: what is expected.
pub fn choice(workload: &Workload, text: &str) -> std::result::Result<Choice, String> {
    let mut choice: Choice = Vec::new();
    for piece in pieces(workload, text) {
        let (name, value) = piece.split_once('=').unwrap_or((&piece, ""));
        let Some(parameter) = named(workload, name) else {
            let near = near(name, workload.parameters.iter().map(|parameter| parameter.name));
            return Err(format!("{name} is no parameter of {}{near}", workload.name));
        };
        if choice.iter().any(|(other, _)| *other == name) {
            return Err(format!("{name} is there twice"));
        }
        choice.push((parameter.name, parameter.parse(value)?));
    }
    Ok(choice)
}

fn named(workload: &Workload, name: &str) -> Option<&'static Parameter> {
    workload.parameters.iter().find(|parameter| parameter.name == name)
}

/// The text at its commas. A value of the parameter `vm` has commas too: what follows it and names no
/// parameter belongs to it.
fn pieces(workload: &Workload, text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split(',') {
        let is_named = piece.split_once('=').is_some_and(|(name, _)| named(workload, name).is_some());
        match pieces.last_mut().filter(|last| !is_named && last.starts_with("vm=")) {
            Some(last) => *last = format!("{last},{piece}"),
            None => pieces.push(piece.to_string()),
        }
    }
    pieces
}

/// Explains the difference between two choices of values in an experiment, with its first engine.
///
/// # Errors
/// More parameters that differ than [`PARAMETERS_MOST`], values that contradict each other, or runs that need
/// too much of the host.
pub fn explain_parameters(
    experiment: &Experiment,
    (names, choices): ([String; 2], &[Choice; 2]),
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<CellsExplained> {
    let one = of_engines(experiment, experiment.file.engines[..1].to_vec());
    let whole = crate::experiment::Plan::new(&one, &options.change)?;
    let first = row(&whole.cells[0], choices);
    // The last parameter varies fastest, and the lowest bit of a coalition: it is the first group.
    let differ = differing(experiment.file.workload, &first);
    if differ.len() > PARAMETERS_MOST {
        let what = format!("{} parameters differ: expected at most {PARAMETERS_MOST}", differ.len());
        return Err(Error::new(&experiment.path, what));
    }
    let value = |at: usize, name: &str| first[at].values.0[name].to_string();
    let group = |name: &&str| Group::of_one(name, value(0, name), value(1, name));
    let groups: Vec<Group> = differ.iter().map(group).collect();
    let results = run(&combined(&one, &first, &differ), options, None, progress)?;
    let plan = Plan::new(groups.len(), groups.len(), 0, super::SEED);
    let coalitions: Vec<Coalition> = plan.coalitions();
    let name = row_name(&one, whole.size, &first[0]);
    let mut left_out = left_out(&one, whole.size, &first);
    let failed = (0..coalitions.len()).find_map(|at| Some((at, results.failure(at)?)));
    let rows = match failed {
        Some((at, why)) => {
            let why = why.lines().next().unwrap_or_default().trim_end_matches(':');
            let of = results.label(at);
            left_out.push(format!("{name}: {of} has no number ({why}), so nothing can be taken apart"));
            Vec::new()
        }
        None => vec![explained(&results, &plan, &coalitions, name)],
    };
    left_out.push("costs of the machine other than those of its file".into());
    Ok(CellsExplained { names, ends: results, groups, rows, left_out })
}

/// The cell with the values of each choice.
fn row(cell: &Cell, choices: &[Choice; 2]) -> [Cell; 2] {
    let with = |choice: &Choice| {
        let mut cell = cell.clone();
        cell.values.0.extend(choice.iter().cloned());
        cell
    };
    [with(&choices[0]), with(&choices[1])]
}

/// The experiment of all combinations of the two cells' values.
fn combined(experiment: &Experiment, row: &[Cell; 2], differ: &[&str]) -> Experiment {
    let mut many = of_row(experiment, &row[0]);
    for (name, values) in many.file.parameters.iter_mut().filter(|(name, _)| differ.contains(name)) {
        *values = row.iter().map(|cell| cell.values.0[name].clone()).collect();
    }
    many
}

/// The parameters in which two cells differ, the last of the workload first.
fn differing(workload: &Workload, [from, to]: &[Cell; 2]) -> Vec<&'static str> {
    let names = workload.parameters.iter().rev().map(|parameter| parameter.name);
    names.filter(|name| from.values.0[name] != to.values.0[name]).collect()
}

/// The machine, and the values of the parameters that the experiment sweeps.
fn row_name(experiment: &Experiment, size: Size, cell: &Cell) -> String {
    let is_swept = |name: &str| experiment.file.swept(name, size).is_some_and(|list| list.len() > 1);
    let swept = cell.values.0.iter().filter(|(name, _)| is_swept(name));
    let words = swept.map(|(name, value)| format!("{name}={value}"));
    std::iter::once(experiment.machines[cell.machine].name.clone()).chain(words).collect::<Vec<_>>().join(" ")
}

/// What the experiment runs beside the row: its first machine and values are taken, unless A and B name
/// others.
fn left_out(experiment: &Experiment, size: Size, row: &[Cell; 2]) -> Vec<String> {
    let of = |parameter: &Parameter| {
        let list = experiment.file.swept(parameter.name, size).filter(|list| list.len() > 1)?;
        let is_there = |value: &&Value| row.iter().any(|cell| cell.values.0[parameter.name] == **value);
        let others: Vec<String> =
            list.iter().filter(|value| !is_there(value)).map(Value::to_string).collect();
        (!others.is_empty()).then(|| format!("{}={}", parameter.name, others.join(", ")))
    };
    let mut left_out: Vec<String> = experiment.file.workload.parameters.iter().filter_map(of).collect();
    left_out.extend(experiment.machines.iter().skip(1).map(|machine| machine.name.clone()));
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Change, Plan as Cells};
    use std::path::Path;

    fn experiment() -> Experiment {
        Experiment::find(Path::new("000")).expect("an installed experiment")
    }

    fn choose(text: &str) -> std::result::Result<Choice, String> {
        choice(experiment().file.workload, text)
    }

    #[test]
    fn choices() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let found = choose(text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
            let found: Vec<(&str, String)> =
                found.iter().map(|(name, value)| (*name, value.to_string())).collect();
            let expected: Vec<(&str, String)> =
                expected.iter().map(|(name, value)| (*name, value.to_string())).collect();
            assert_eq!(found, expected, "{text}");
            assert!(is_choice(text), "{text}");
        };
        check("part=16", &[("part", "16")]);
        check("discard=yes,jobs=4", &[("discard", "yes"), ("jobs", "4")]);
        check("vm=vm@2.6.29,lumpy=no,jobs=4", &[("vm", "vm@2.6.29,lumpy=no"), ("jobs", "4")]);
        for name in ["slub@2.6.29,max_order=0", "vm@2.6.29,lumpy=no", "slqb"] {
            assert!(!is_choice(name), "{name}");
        }
    }

    #[test]
    fn what_is_no_choice() {
        let check = |text: &str, words: &str| {
            let bad = choose(text).expect_err(text);
            assert!(bad.contains(words), "{text}: no {words:?} in {bad:?}");
        };
        check("discrad=yes", "discrad is no parameter of tmpfs-swap; near it: discard");
        check("discard=maybe", "discard=maybe; expected one of no, yes");
        check("part=0", "part=0: expected a whole number from 1 to 64");
        check("part", "part=: expected a whole number");
        check("part=8,part=16", "part is there twice");
        check("discard=yes,lumpy=no", "lumpy is no parameter");
    }

    /// A cell is the combination of its place's bits, the first group the lowest; what both sides name alike
    /// is the same in all.
    #[test]
    fn cells_are_combinations() {
        let check = |choices: [&str; 2], expected: &[&str]| {
            let change = Change { size: Some(Size::Quick), ..Change::default() };
            let one = of_engines(&experiment(), experiment().file.engines[..1].to_vec());
            let whole = Cells::new(&one, &change).expect("a plan");
            let choices = choices.map(|text| choose(text).expect("a choice"));
            let sides = row(&whole.cells[0], &choices);
            let differ = differing(one.file.workload, &sides);
            assert_eq!(differ, expected);
            let cells = Cells::new(&combined(&one, &sides, &differ), &change).expect("a plan").cells;
            assert_eq!(cells.len(), 1 << differ.len());
            for (at, cell) in cells.iter().enumerate() {
                for (name, value) in &cell.values.0 {
                    let group = differ.iter().position(|other| other == name);
                    let side = group.map_or(0, |group| at >> group & 1);
                    assert_eq!(*value, sides[side].values.0[name], "{at} {name}");
                }
            }
        };
        check(["part=16", "part=16,discard=yes,overwrite_reads=no"], &["discard", "overwrite_reads"]);
        check(["shrink=no,jobs=4", "part=16"], &["shrink", "part", "jobs"]);
        check(["discard=no", "discard=no"], &[]);
    }
}
