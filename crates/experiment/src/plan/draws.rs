//! What `slablab reproduce` draws of an experiment: all costs of its machines and the values of
//! `[ranges.vary]`, together, once for each run of a *drawn* cell.
//!
//! ```text
//! seed, run, name of the cost ── stream ── standard normal ── prior (machines) ── factor ── cost of the run
//! seed, run, name of the parameter ── stream ── one of the cell's value and those of `vary`
//! ```
//!
//! A draw depends on its name and the run alone: so run 7 of every cell and of every machine has the same
//! factor of `memory` at distance 10.

use crate::file::ExperimentFile;
use crate::source::Experiment;
use crate::workload::{Value, Values};
use slablab_machines::Source;
use slablab_model::Costs;
use slablab_sim::programs::draws::Draws;
use slablab_stats::draws::LOOKS;

/// What is drawn.
#[derive(Clone, Debug)]
pub enum Assumption {
    /// A cost, of every machine that has it.
    Cost(Source),
    /// A parameter, and its values beside the cell's own.
    Parameter(&'static str, Vec<Value>),
}

impl Assumption {
    /// Its name: the cost with its distance, or the parameter.
    pub fn name(&self) -> String {
        match self {
            Assumption::Cost(source) => named(source),
            Assumption::Parameter(name, _) => (*name).to_string(),
        }
    }

    /// How many standard deviations of its logarithm a factor of a cost is; `None` for a parameter.
    pub fn deviations(&self, factor: f64) -> Option<f64> {
        match self {
            Assumption::Cost(source) => Some(factor.ln() / source.prior().deviation()),
            Assumption::Parameter(..) => None,
        }
    }

    /// What is drawn of it in a run: standard deviations of a cost's logarithm; the place of a parameter's
    /// value, 0 for the cell's own.
    pub fn drawn(&self, seed: u64, run: u32) -> f64 {
        match self {
            Assumption::Cost(source) => normal(stream(seed, run, &named(source))),
            Assumption::Parameter(name, values) => place(seed, run, name, values.len()) as f64,
        }
    }
}

/// A cost and its distance.
fn named(source: &Source) -> String {
    let distance = source.distance.map_or(String::new(), |distance| format!(" at distance {distance}"));
    format!("{}{distance}", source.cost)
}

/// The numbers of a name in a run.
fn stream(seed: u64, run: u32, name: &str) -> Draws {
    let start = Draws(!seed).draw() ^ Draws(run.into()).draw();
    Draws(name.bytes().fold(start, |state, byte| Draws(state ^ u64::from(byte)).draw()))
}

/// A standard normal number: the sum of 12 uniform ones, less 6. It needs no logarithm, whose last digit
/// depends on the host.
fn normal(mut stream: Draws) -> f64 {
    let mut uniform = || (stream.draw() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

/// Which of a cell's own value, 0, and `others` further ones a run has.
fn place(seed: u64, run: u32, name: &str, others: usize) -> usize {
    stream(seed, run, name).below(others as u64 + 1) as usize
}

/// How many runs a drawn cell has at the look after `n`, of at most `most`.
pub(crate) fn next_look(n: u32, most: u32) -> u32 {
    LOOKS.into_iter().map(|look| look as u32).find(|look| *look > n).unwrap_or(most).min(most)
}

impl Experiment {
    /// The times that the workload is charged for: each cost and distance once, over all machines.
    fn times(&self) -> impl Iterator<Item = &Source> {
        let all = self.machines.iter().flat_map(|on| on.machine.priced.times());
        let mut seen: Vec<(&str, Option<u32>)> = Vec::new();
        all.filter(|source| !(self.file.workload.ignores)(source.cost)).filter(move |source| {
            let key = (source.cost, source.distance);
            let is_new = !seen.contains(&key);
            seen.push(key);
            is_new
        })
    }

    /// The assumed costs that the workload is charged for.
    pub fn assumed(&self) -> Vec<Source> {
        self.times().filter(|source| source.is_assumed()).cloned().collect()
    }

    /// All that is drawn.
    pub fn assumptions(&self) -> Vec<Assumption> {
        let ranges = self.file.ranges.as_ref();
        let costs = ranges.is_none_or(|ranges| ranges.costs);
        let costs = self.times().filter(|_| costs).cloned().map(Assumption::Cost);
        let values = ranges.into_iter().flat_map(|ranges| &ranges.vary);
        costs.chain(values.map(|(name, values)| Assumption::Parameter(name, values.clone()))).collect()
    }

    /// The costs of a machine in a run of a drawn cell.
    pub(super) fn drawn_costs(&self, machine: usize, (seed, run): (u64, u32)) -> Costs {
        let mut priced = self.machines[machine].machine.priced.clone();
        if self.file.ranges.as_ref().is_some_and(|ranges| !ranges.costs) {
            return priced.costs;
        }
        let own: Vec<Source> = priced.times().cloned().collect();
        for source in own.iter().filter(|source| !(self.file.workload.ignores)(source.cost)) {
            let deviations = normal(stream(seed, run, &named(source)));
            priced.costs = priced.scaled(source, source.prior().factor_ppm(deviations), 1_000_000);
        }
        priced.costs
    }
}

impl ExperimentFile {
    /// The values of a run of a drawn cell.
    pub(super) fn drawn_values(&self, values: &Values, (seed, run): (u64, u32)) -> Values {
        let mut values = values.clone();
        for (name, others) in self.ranges.iter().flat_map(|ranges| &ranges.vary) {
            if let Some(other) = place(seed, run, name, others.len()).checked_sub(1) {
                values.0.insert(name, others[other].clone());
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::ranges::DRAWS_MAX;
    use crate::plan::Cell;
    use crate::workload::Size;
    use crate::{Change, Plan};
    use slablab_machines::doc::Read;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// An experiment with two kernels and two disks, and these lines of ranges.
    fn parse(ranges: &str) -> Read<ExperimentFile> {
        ExperimentFile::parse(&format!(
            "name = \"mine\"\ntitle = \"t\"\nmachines = [\"kulesa-2001\"]\nengines = [\"slab@2.4\"]\n\
             workload = \"apps\"\n[parameters]\nvm = [\"vm@2.4.8\", \"vm@2.4.10\"]\n\
             disk = [\"ide-7200-2001\", \"scsi-10k-2001\"]\n\
             [[expect]]\nname = \"e\"\nbase = {{ vm = \"vm@2.4.8\" }}\nother = {{ vm = \"vm@2.4.10\" }}\n\
             sign = \"higher\"\n{ranges}"
        ))
    }

    fn experiment(ranges: &str) -> Experiment {
        let file = parse(ranges).unwrap_or_else(|bad| panic!("{ranges}: {}", bad.what));
        Experiment { file, ..Experiment::find(Path::new("004-apps")).expect("an installed experiment") }
    }

    /// Drawn cells, their draws at most, and the values of `name` that they have.
    #[track_caller]
    fn check(ranges: &str, size: Size, cells: usize, draws: u32, (name, expected): (&str, &[u64])) {
        let experiment = experiment(ranges);
        let change = Change { size: Some(size), draws: Some(DRAWS_MAX), ..Change::default() };
        let plan = Plan::new(&experiment, &change).expect("a plan");
        let drawn: Vec<&Cell> = plan.cells.iter().filter(|cell| cell.drawn).collect();
        assert_eq!(drawn.len(), cells, "{ranges}");
        for cell in &drawn {
            assert_eq!(plan.runs_most(cell), draws, "{ranges}");
            let value = |run| match plan.values(&experiment, cell, run).0[name] {
                Value::Number(number) => number,
                ref other => panic!("{name} = {other}"),
            };
            assert_eq!(Vec::from_iter((0..DRAWS_MAX).map(value).collect::<BTreeSet<u64>>()), expected);
        }
    }

    #[test]
    fn what_is_drawn() {
        let full = Size::Standard;
        check("", full, 4, 64, ("pause_s", &[10]));
        check("[ranges]\ndraws = 16", full, 4, 16, ("pause_s", &[10]));
        check("[ranges]\ncosts = \"none\"", full, 0, 0, ("pause_s", &[]));
        let pauses = "[ranges]\ncosts = \"none\"\n[ranges.vary]\npause_s = [5, 30]\n";
        check(pauses, full, 4, 64, ("pause_s", &[5, 10, 30]));
        let short = format!("{pauses}[ranges.at]\nfiles = 5000\n");
        check(&short, full, 4, 64, ("files", &[5000]));
        check(&short, Size::Quick, 4, 64, ("pause_s", &[5, 10, 30]));
        // Cells of one of two disks.
        let one = format!("{pauses}[ranges.at]\ndisk = \"scsi-10k-2001\"\n");
        check(&one, full, 2, 64, ("pause_s", &[5, 10, 30]));
    }

    #[test]
    fn what_cannot_be_drawn() {
        let check = |ranges: &str, words: &str| {
            let bad = parse(ranges).err().unwrap_or_else(|| panic!("{ranges}: expected an error"));
            assert!(bad.what.contains(words) && bad.line > 12, "{ranges}: {} at {}", bad.what, bad.line);
        };
        check("[ranges]\ncosts = \"some\"", "costs");
        check("[ranges]\ndraws = 1", "draws");
        check("[ranges]\nvaries = 1", "varies");
        check("[ranges.vary]\ndisk = \"scsi-10k-2001\"", "that [parameters] does not sweep");
        check("[ranges.vary]\npause = 3", "near it: pause_s");
        check("[ranges.at]\nfiles = [1, 2]", "expected one value");
    }

    /// The costs of 64 draws have the stated priors, and one draw has one factor in all machines.
    #[test]
    fn costs_are_drawn_from_their_priors() {
        type Of = fn(&Costs) -> u64;
        // The logarithm of a cost over that of the machine file, in the draws of each drawn cell.
        let logs = |name: &str, of: Of| -> Vec<Vec<f64>> {
            let experiment = Experiment::find(Path::new(name)).expect("an installed experiment");
            let change = Change { draws: Some(DRAWS_MAX), ..Change::default() };
            let plan = Plan::new(&experiment, &change).expect("a plan");
            let plain = plan.setup(&experiment, &plan.cells[0], 3).hardware.costs;
            assert_eq!(plain, experiment.machines[0].machine.priced.costs);
            let of_cell = |cell: &Cell| {
                let given = of(&experiment.machines[cell.machine].machine.priced.costs) as f64;
                let drawn = (0..DRAWS_MAX).map(|run| plan.setup(&experiment, cell, run).hardware.costs);
                drawn.map(|costs| (of(&costs) as f64 / given).ln()).collect()
            };
            plan.cells.iter().filter(|cell| cell.drawn).map(of_cell).collect()
        };
        let check = |name: &str, of: Of, within: f64| {
            let cells = logs(name, of);
            let squares: f64 = cells[0].iter().map(|log| log * log).sum();
            let (sd, expected) = ((squares / f64::from(DRAWS_MAX)).sqrt(), within.ln() / 1.96);
            assert!((sd / expected - 1.0).abs() < 0.3, "{name}: {sd} for {expected}");
            for other in &cells {
                let pairs = cells[0].iter().zip(other);
                assert!(pairs.into_iter().all(|(one, other)| (one - other).abs() < 1e-4));
            }
        };
        check("2026", |costs| costs.memory[0].1, 1.3);
        check("003-hackbench", |costs| costs.memory[0].1, 1.1);
        check("003-hackbench", |costs| costs.l1, 1.1);
        check("003-hackbench", |costs| costs.wake_remote, 2.0);
    }
}
