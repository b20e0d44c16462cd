//! Which cells an experiment has, and what identifies their results.

mod ranges;

use crate::file::ExperimentFile;
use crate::file::rows::Select;
use crate::repeats::Repeats;
use crate::source::Experiment;
use crate::workload::Runs;
use crate::workload::{Estimate, Metric, Size, Value, Valued, Values};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use slablab_machines::Source;
use slablab_model::{Costs, Hardware};
use slablab_report::error::{Error, Result};
use slablab_sim::programs::draws::Draws;
use slablab_sim::setup::Setup;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Most cells of an experiment.
const CELLS_MAX: usize = 1_000_000;

/// What the command line changes of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Another size.
    pub size: Option<Size>,
    /// Another number of repeats of each placement: so many, whatever their interval.
    pub repeats: Option<u32>,
    /// Another seed.
    pub seed: Option<u64>,
    /// Whether each cell of a relation is run again with assumed costs halved and doubled.
    pub sensitivity: bool,
}

/// A machine, an engine, and a value of every parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The machine's place in the experiment.
    pub machine: usize,
    /// The engine's place in the experiment.
    pub engine: usize,
    /// The parameters.
    pub values: Values,
    /// What is changed of the machine's costs.
    pub scaled: Scaled,
}

/// A change of a machine's assumed costs, or of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaled {
    /// None.
    Nothing,
    /// All of them at once.
    All(Factor),
    /// One: its place in [`Experiment::assumed`].
    One(usize, Factor),
    /// None, but the run has the values of all varied runs ([`at`](crate::file::ranges::Ranges::at)).
    Short,
    /// A parameter has another value: its place in [`vary`](crate::file::ranges::Ranges::vary).
    Value(usize),
}

/// By what a cost is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Halved.
    Half,
    /// Doubled.
    Double,
}

impl Factor {
    pub(crate) const BOTH: [Factor; 2] = [Factor::Half, Factor::Double];

    fn fraction(self) -> (u64, u64) {
        match self {
            Factor::Half => (1, 2),
            Factor::Double => (2, 1),
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Factor::Half => "halved",
            Factor::Double => "doubled",
        }
    }
}

/// The cells of an experiment in their order, and how often each runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long runs are.
    pub size: Size,
    /// Runs of each cell that is as given.
    pub repeats: Repeats,
    /// The seed.
    pub seed: u64,
    /// Whether cells with other costs are there.
    pub sensitivity: bool,
    /// Runs of each of them.
    pub varied: u32,
    /// The cells; those with costs as given come first.
    pub cells: Vec<Cell>,
}

impl Plan {
    /// The cells of an experiment.
    ///
    /// # Errors
    /// Parameters that contradict each other or a machine, or too many cells.
    pub fn new(experiment: &Experiment, change: &Change) -> Result<Plan> {
        let file = &experiment.file;
        let size = change.size.unwrap_or(file.size);
        let combinations = combinations(file, size);
        let plain = experiment.machines.len() * file.engines.len();
        if combinations.len().saturating_mul(plain) > CELLS_MAX {
            let what = format!("{} cells or more: at most {CELLS_MAX}", combinations.len() * plain);
            return Err(Error::new(&experiment.path, what));
        }
        let mut cells = Vec::new();
        for values in &combinations {
            for machine in 0..experiment.machines.len() {
                check(experiment, machine, values)?;
                let cell = |engine| Cell { machine, engine, values: values.clone(), scaled: Scaled::Nothing };
                cells.extend((0..file.engines.len()).map(cell));
            }
        }
        let mut plan = Plan {
            size,
            repeats: match change.repeats {
                Some(least) => Repeats { least, until: None, ..file.repeats },
                None => file.repeats,
            },
            seed: change.seed.unwrap_or(file.seed),
            sensitivity: change.sensitivity,
            varied: file.ranges.as_ref().map_or(1, |ranges| ranges.repeats),
            cells,
        };
        plan.varied = plan.varied.min(change.repeats.unwrap_or(plan.varied));
        if change.sensitivity {
            let scaled = plan.scaled_cells(experiment)?;
            plan.cells.extend(scaled);
        }
        Ok(plan)
    }

    /// The cells of relations and orders, and those of figures with a published scatter, with each change.
    fn scaled_cells(&self, experiment: &Experiment) -> Result<Vec<Cell>> {
        let file = &experiment.file;
        let sides = file.expect.iter().flat_map(|expect| [&expect.base, &expect.other]);
        let figures = file.published.iter().filter(|row| row.moments().is_some()).map(|row| &row.cell);
        // An order of merit is varied by what the file says alone: it has many cells.
        let orders = file.merit.iter().filter(|_| file.ranges.is_some()).map(|merit| &merit.cell);
        let sides = sides.chain(figures).chain(orders);
        let named: BTreeSet<usize> = sides.flat_map(|side| self.selected(experiment, side)).collect();
        let mut cells: Vec<Cell> = Vec::new();
        for scaled in experiment.scaled(self.size) {
            for at in &named {
                let Some(cell) = file.varied(self.size, &self.cells[*at], scaled) else { continue };
                check(experiment, cell.machine, &cell.values)?;
                cells.push(cell);
            }
        }
        Ok(cells)
    }

    /// How often a cell runs at least.
    pub fn runs(&self, cell: &Cell) -> u32 {
        if cell.scaled == Scaled::Nothing { self.repeats.least() } else { self.varied }
    }

    /// How often a cell runs at most.
    pub fn runs_most(&self, cell: &Cell) -> u32 {
        if cell.scaled == Scaled::Nothing { self.repeats.most() } else { self.varied }
    }

    /// How many runs a cell needs in all, after these; `None` if it has enough.
    pub(crate) fn next(&self, cell: &Cell, runs: &Runs, metric: &Metric) -> Option<u32> {
        if cell.scaled == Scaled::Nothing { self.repeats.next(runs, metric) } else { None }
    }

    /// The seed of a run. All cells share it: the runs of two cells are alike in what is drawn.
    pub fn seed_of(&self, run: u32) -> u64 {
        Draws(self.seed).draw() ^ Draws(u64::from(run)).draw()
    }

    /// The seed of a run's placement; `None` if there is one placement.
    fn placement_of(&self, run: u32) -> Option<u64> {
        let number = u64::from(run % self.repeats.placements);
        (self.repeats.placements > 1).then(|| Draws(!self.seed).draw() ^ Draws(!number).draw())
    }

    /// The machine and engine of a run of a cell.
    pub fn setup(&self, experiment: &Experiment, cell: &Cell, run: u32) -> Setup {
        Setup { placement: self.placement_of(run), ..experiment.setup(cell, self.seed_of(run)) }
    }

    /// What all runs need of the host: time of one core, and the memory of the largest run.
    pub fn estimate(&self, experiment: &Experiment) -> Estimate {
        let mut sum = Estimate::default();
        for each in self.estimates(experiment) {
            sum.host_ns = sum.host_ns.saturating_add(each.host_ns);
            sum.host_bytes = sum.host_bytes.max(each.host_bytes);
        }
        sum
    }

    /// What the runs of each cell need of the host.
    pub(crate) fn estimates(&self, experiment: &Experiment) -> Vec<Estimate> {
        let of = |cell: &Cell| {
            let spec = &experiment.machines[cell.machine].machine.spec;
            let each = (experiment.file.workload.estimate)(spec, &cell.values);
            Estimate { host_ns: each.host_ns.saturating_mul(self.runs_most(cell).into()), ..each }
        };
        self.cells.iter().map(of).collect()
    }

    /// What a folder keeps of the plan.
    pub fn json(&self, program: &str, keys: &[String]) -> Json {
        let mut plan = json!({
            "schema": "slablab.plan.1",
            "program": program,
            "size": self.size.name(),
            "repeats": self.repeats.least,
            "seed": self.seed,
            "sensitivity": self.sensitivity,
            "cells": keys,
        });
        add(&mut plan, &self.repeats);
        plan
    }

    /// The plan that [`Plan::json`] wrote, as a change of its experiment; and the program.
    pub fn change_of(json: &Json) -> Option<(Change, String)> {
        let size = json["size"].as_str()?;
        let change = Change {
            size: Size::NAMES.iter().find(|(name, _)| *name == size).map(|(_, size)| *size),
            // With a precision the file says how often.
            repeats: match json.get("precision_percent") {
                Some(_) => None,
                None => Some(u32::try_from(json["repeats"].as_u64()?).ok()?),
            },
            seed: json["seed"].as_u64(),
            sensitivity: json["sensitivity"].as_bool()?,
        };
        (change.size.is_some() && change.seed.is_some())
            .then(|| Some((change, json["program"].as_str()?.to_string())))?
    }

    /// The key of each cell.
    pub fn keys(&self, experiment: &Experiment, program: &str) -> Vec<String> {
        self.cells.iter().map(|cell| self.key(experiment, cell, program)).collect()
    }

    /// What identifies the results of a cell: equal keys have equal results.
    fn key(&self, experiment: &Experiment, cell: &Cell, program: &str) -> String {
        let mut identity = json!({
            "program": program,
            "workload": experiment.file.workload.name,
            "machine": experiment.machines[cell.machine].text,
            "engine": experiment.file.engines[cell.engine].1.to_string(),
            "values": cell.values,
            "scaled": experiment.words(cell.scaled),
            "seed": self.seed,
            "runs": self.runs(cell),
        });
        if cell.scaled == Scaled::Nothing {
            add(&mut identity, &self.repeats);
        } else if self.repeats.placements > 1 {
            identity["placements"] = self.repeats.placements.into();
        }
        for (name, value) in &cell.values.0 {
            if let Value::File(input) = value {
                identity["files"][*name] = input.sha256().into();
            }
        }
        if self.repeats.until.is_some() {
            identity["metric"] = experiment.file.workload.metrics[experiment.file.metric].name.into();
        }
        let digest = Sha256::digest(identity.to_string().as_bytes());
        digest[..16].iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string");
            text
        })
    }

    /// Places of the cells of a selection, costs as given.
    pub fn selected(&self, experiment: &Experiment, select: &Select) -> Vec<usize> {
        let of = |name: &Option<String>, found: &str| name.as_deref().is_none_or(|name| name == found);
        let matches = |cell: &Cell| {
            cell.scaled == Scaled::Nothing
                && of(&select.machine, &experiment.machines[cell.machine].given)
                && of(&select.engine, &experiment.file.engines[cell.engine].0)
                && select.values.iter().all(|(name, values)| values.contains(&cell.values.0[name]))
        };
        (0..self.cells.len()).filter(|at| matches(&self.cells[*at])).collect()
    }

    /// The cell like `cell` but for a change.
    pub fn with_scale(&self, experiment: &Experiment, cell: &Cell, scaled: Scaled) -> Option<usize> {
        let wanted = experiment.file.varied(self.size, cell, scaled)?;
        self.cells.iter().position(|cell| *cell == wanted)
    }
}

/// Whether a machine and these values fit the workload.
fn check(experiment: &Experiment, machine: usize, values: &Values) -> Result<()> {
    let (workload, on) = (experiment.file.workload, &experiment.machines[machine]);
    (workload.check)(&on.machine.spec, values)
        .map_err(|bad| Error::new(&experiment.path, format!("{} on {}: {bad}", workload.name, on.name)))
}

/// Adds to a document what it says of repeats beside their number.
fn add(document: &mut Json, repeats: &Repeats) {
    for (key, value) in json!(repeats.more()).as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
}

/// Every combination of the parameters' values, the last parameter the fastest.
fn combinations(file: &ExperimentFile, size: Size) -> Vec<Values> {
    let mut all = vec![Values::default()];
    for parameter in file.workload.parameters {
        let one = [parameter.default(size)];
        let list = file.swept(parameter.name, size).unwrap_or(&one);
        let extended = all.iter().take(CELLS_MAX).flat_map(|values| {
            list.iter().map(|value| {
                let mut values = values.clone();
                values.0.insert(parameter.name, value.clone());
                values
            })
        });
        all = extended.collect();
    }
    all
}

impl Experiment {
    /// The assumed costs that the workload is charged for: each cost and distance once, over all machines.
    pub fn assumed(&self) -> Vec<Source> {
        let mut all: Vec<Source> = Vec::new();
        for on in &self.machines {
            for source in
                on.machine.priced.assumed().filter(|source| !(self.file.workload.ignores)(source.cost))
            {
                if !all.iter().any(|one| (one.cost, one.distance) == (source.cost, source.distance)) {
                    all.push(source.clone());
                }
            }
        }
        all
    }

    /// The machine and engine of a cell. `seed` is that of the repeat.
    pub fn setup(&self, cell: &Cell, seed: u64) -> Setup {
        let machine = &self.machines[cell.machine].machine;
        let mut spec = machine.spec.clone();
        spec.seed = seed;
        let hardware = Hardware { costs: self.costs(cell), ..machine.hardware.clone() };
        Setup { spec, hardware, preset: self.file.engines[cell.engine].1, placement: None }
    }

    fn costs(&self, cell: &Cell) -> Costs {
        let priced = &self.machines[cell.machine].machine.priced;
        let assumed = self.assumed();
        let (sources, factor): (&[Source], Factor) = match cell.scaled {
            Scaled::Nothing | Scaled::Short | Scaled::Value(_) => return priced.costs.clone(),
            Scaled::All(factor) => (&assumed, factor),
            Scaled::One(at, factor) => (&assumed[at..=at], factor),
        };
        let (numerator, denominator) = factor.fraction();
        let mut priced = priced.clone();
        let own: Vec<Source> = priced.assumed().cloned().collect();
        let is_own = |source: &&Source| {
            own.iter().any(|own| (own.cost, own.distance) == (source.cost, source.distance))
        };
        for source in sources.iter().filter(is_own) {
            priced.costs = priced.scaled(source, numerator, denominator);
        }
        priced.costs
    }
}
