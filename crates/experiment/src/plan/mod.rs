//! Which cells an experiment has, and what identifies their results.

pub mod draws;

use crate::file::ExperimentFile;
use crate::file::ranges::DRAWS_MAX;
use crate::file::rows::Select;
use crate::repeats::Repeats;
use crate::source::Experiment;
use crate::workload::Runs;
use crate::workload::{Estimate, Metric, Size, Value, Valued, Values};
use draws::Assumption;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use slablab_model::Hardware;
use slablab_report::error::{Error, Result};
use slablab_sim::programs::draws::Draws;
use slablab_sim::setup::{Boot, Setup};
use std::borrow::Cow;
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
    /// How often at most each cell of a relation is run again with all that is assumed drawn; `None` for
    /// never.
    pub draws: Option<u32>,
}

impl Change {
    /// Short runs, and at most 3 of each cell where all have `repeats`.
    pub fn quick(repeats: u32) -> Change {
        Change { size: Some(Size::Quick), repeats: Some(repeats.min(3)), ..Change::default() }
    }
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
    /// Whether what is assumed is drawn anew for each run.
    pub drawn: bool,
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
    /// Runs of each drawn cell at most; 0 if there is none.
    pub draws: u32,
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
                check_boot(experiment, machine)?;
                let cell = |engine| Cell { machine, engine, values: values.clone(), drawn: false };
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
            draws: change.draws.unwrap_or(0),
            cells,
        };
        if experiment.assumptions().is_empty() {
            plan.draws = 0;
        }
        plan.draws = plan.draws.min(file.ranges.as_ref().map_or(DRAWS_MAX, |ranges| ranges.draws));
        if plan.draws > 0 {
            let drawn = plan.drawn_cells(experiment)?;
            plan.cells.extend(drawn);
        }
        Ok(plan)
    }

    /// The drawn cells: of relations and orders, and of figures with a published scatter.
    fn drawn_cells(&self, experiment: &Experiment) -> Result<Vec<Cell>> {
        let file = &experiment.file;
        let sides = file.expect.iter().flat_map(|expect| [&expect.base, &expect.other]);
        let figures = file.published.iter().filter(|row| row.moments().is_some()).map(|row| &row.cell);
        // An order of merit is drawn by what the file says alone: it has many cells.
        let orders = file.merit.iter().filter(|_| file.ranges.is_some()).map(|merit| &merit.cell);
        let sides = sides.chain(figures).chain(orders);
        let named: BTreeSet<usize> = sides.flat_map(|side| self.selected(experiment, side)).collect();
        let mut cells: Vec<Cell> = Vec::new();
        for cell in named.into_iter().filter_map(|at| self.drawn_of(experiment, &self.cells[at])) {
            for run in 0..self.draws {
                check(experiment, cell.machine, &self.values(experiment, &cell, run))?;
            }
            cells.push(cell);
        }
        Ok(cells)
    }

    /// The drawn cell of a plain one; `None` if it has none: drawn runs have another value of a swept
    /// parameter.
    fn drawn_of(&self, experiment: &Experiment, cell: &Cell) -> Option<Cell> {
        let (file, size) = (&experiment.file, self.size);
        let mut drawn = Cell { drawn: true, ..cell.clone() };
        let Some(ranges) = &file.ranges else { return Some(drawn) };
        for (name, value) in ranges.shared(size) {
            let is_swept = file.swept(name, size).is_some_and(|list| list.len() > 1);
            if is_swept && cell.values.0[name] != *value {
                return None;
            }
            drawn.values.0.insert(name, value.clone());
        }
        Some(drawn)
    }

    /// How often a cell runs at least.
    pub fn runs(&self, cell: &Cell) -> u32 {
        if cell.drawn { draws::next_look(0, self.draws) } else { self.repeats.least() }
    }

    /// How often a cell runs at most.
    pub fn runs_most(&self, cell: &Cell) -> u32 {
        if cell.drawn { self.draws } else { self.repeats.most() }
    }

    /// How many runs a cell needs in all, after these; `None` if it has enough. Draws are judged with those
    /// of other cells ([`wanted`](crate::judge::draws::wanted)).
    pub(crate) fn next(&self, cell: &Cell, runs: &Runs, metric: &Metric) -> Option<u32> {
        if cell.drawn { None } else { self.repeats.next(runs, metric) }
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
        let given = experiment.setup(cell, self.seed_of(run));
        let costs = match cell.drawn {
            true => experiment.drawn_costs(cell.machine, (self.seed, run)),
            false => given.hardware.costs.clone(),
        };
        let hardware = Hardware { costs, ..given.hardware };
        Setup { placement: self.placement_of(run), hardware, ..given }
    }

    /// The values of a run of a cell.
    pub fn values<'c>(&self, experiment: &Experiment, cell: &'c Cell, run: u32) -> Cow<'c, Values> {
        match cell.drawn {
            true => Cow::Owned(experiment.file.drawn_values(&cell.values, (self.seed, run))),
            false => Cow::Borrowed(&cell.values),
        }
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
            "draws": self.draws,
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
            draws: Some(u32::try_from(json["draws"].as_u64()?).ok()?).filter(|draws| *draws > 0),
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
            "seed": self.seed,
        });
        if experiment.file.boot != Boot::default() {
            identity["boot"] = experiment.file.boot.name().into();
        }
        if cell.drawn {
            // A draw is the same however many there are: the cell of a look goes on from that of another.
            let assumptions = experiment.assumptions();
            let words = assumptions.iter().map(|one| match one {
                Assumption::Cost(source) => json!([one.name(), source.prior().within]),
                Assumption::Parameter(_, values) => json!([one.name(), values]),
            });
            identity["drawn"] = words.collect();
            identity["placements"] = self.repeats.placements.into();
        } else {
            identity["runs"] = self.runs(cell).into();
            add(&mut identity, &self.repeats);
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
            !cell.drawn
                && of(&select.machine, &experiment.machines[cell.machine].given)
                && of(&select.engine, &experiment.file.engines[cell.engine].0)
                && select.values.iter().all(|(name, values)| values.contains(&cell.values.0[name]))
        };
        (0..self.cells.len()).filter(|at| matches(&self.cells[*at])).collect()
    }

    /// The drawn cell of a plain one, if it has one.
    pub fn drawn(&self, experiment: &Experiment, cell: usize) -> Option<usize> {
        let wanted = self.drawn_of(experiment, &self.cells[cell]).filter(|_| self.draws > 0)?;
        self.cells.iter().position(|cell| *cell == wanted)
    }
}

/// Whether a machine and these values fit the workload.
fn check(experiment: &Experiment, machine: usize, values: &Values) -> Result<()> {
    let (workload, on) = (experiment.file.workload, &experiment.machines[machine]);
    (workload.check)(&on.machine.spec, values)
        .map_err(|bad| Error::new(&experiment.path, format!("{} on {}: {bad}", workload.name, on.name)))
}

/// Whether it is known what each engine's kernel holds after boot on a machine.
fn check_boot(experiment: &Experiment, machine: usize) -> Result<()> {
    let (file, on) = (&experiment.file, &experiment.machines[machine]);
    for (name, preset) in &file.engines {
        let known = file.boot.check(preset, &on.machine.spec);
        known.map_err(|bad| Error::new(&experiment.path, format!("{name} on {}: {bad}", on.name)))?;
    }
    Ok(())
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
    /// The machine and engine of a cell. `seed` is that of the repeat.
    pub fn setup(&self, cell: &Cell, seed: u64) -> Setup {
        let machine = &self.machines[cell.machine].machine;
        let mut spec = machine.spec.clone();
        spec.seed = seed;
        let hardware = machine.hardware.clone();
        let preset = self.file.engines[cell.engine].1;
        Setup { spec, hardware, preset, boot: self.file.boot, placement: None }
    }
}
