//! What an experiment gave: the runs of each cell, and the tables of them.

use super::folder::Runs;
use super::plan::{Cell, Plan, Scaled};
use super::source::Experiment;
use super::workload::{Metric, Value};
use slablab_stats::Sample;
use slablab_stats::table::{Better, Cell as Measured, Row, Table};

/// What an experiment gave.
#[derive(Clone)]
pub struct Results {
    /// The experiment.
    pub experiment: Experiment,
    /// Its cells.
    pub plan: Plan,
    /// The runs of each cell; `None` for a cell of another part.
    pub runs: Vec<Option<Runs>>,
    /// Cells that were run now; the others were in the folder.
    pub computed: usize,
    /// The program that ran them.
    pub program: String,
}

impl Results {
    /// A number of a cell over its runs; `None` if a run failed or the cell is another part's.
    pub fn sample(&self, cell: usize, metric: &Metric) -> Option<Sample> {
        let runs = self.runs[cell].as_ref()?;
        let numbers = runs.iter().map(|run| Some(*run.as_ref().ok()?.metrics.get(metric.name)? as f64));
        Sample::new(numbers.collect::<Option<Vec<f64>>>()?).ok()
    }

    /// A number of a cell over its runs, in the unit of tables.
    pub fn shown(&self, cell: usize, metric: &Metric) -> Option<Sample> {
        let sample = self.sample(cell, metric)?;
        let values: Vec<f64> = sample.values().iter().map(|value| value / metric.per_unit).collect();
        Sample::new(values).ok()
    }

    /// Why a cell has no numbers.
    pub fn failure(&self, cell: usize) -> Option<String> {
        match &self.runs[cell] {
            None => Some("not run".into()),
            Some(runs) => runs.iter().find_map(|run| run.as_ref().err()).map(|failed| failed.to_string()),
        }
    }

    /// Why a cell has no numbers, for a cell of a table: the first line, without what follows a colon.
    fn reason(&self, cell: usize) -> String {
        let why = self.failure(cell).unwrap_or("no number".into());
        let first = why.lines().next().unwrap_or(&why);
        first.split(':').next().unwrap_or(first).to_string()
    }

    /// The table of a metric: a row for each machine and combination of parameters, a column for each engine.
    ///
    /// # Panics
    /// Never: each row has a cell for each engine.
    pub fn table(&self, metric: &Metric) -> Table {
        let engines = self.experiment.file.engines.len();
        let plain = self.plain().count();
        let mut table = Table::new(self.experiment.file.engines.iter().map(|(engine, _)| engine.clone()));
        for first in (0..plain).step_by(engines) {
            let measured = |cell: usize| match self.shown(cell, metric) {
                Some(sample) => Measured::Runs(sample),
                None => Measured::Nothing(self.reason(cell)),
            };
            let row = Row {
                name: self.label(first),
                better: metric.better.unwrap_or(Better::Lower),
                cells: (first..first + engines).map(measured).collect(),
            };
            table.row(row).expect("a cell for each engine");
        }
        table
    }

    /// The cells whose costs are as given.
    pub fn plain(&self) -> impl Iterator<Item = (usize, &Cell)> {
        let cells = self.plan.cells.iter().enumerate();
        cells.filter(|(_, cell)| cell.scaled == Scaled::Nothing)
    }

    /// The machine and the swept parameters of a cell.
    pub fn label(&self, cell: usize) -> String {
        let cell = &self.plan.cells[cell];
        let mut words = Vec::new();
        let swept = self.swept(cell);
        if self.experiment.machines.len() > 1 || swept.is_empty() {
            words.push(self.experiment.machines[cell.machine].name.clone());
        }
        words.extend(swept);
        words.join(" ")
    }

    /// The parameters of a cell that other cells have other values of.
    pub fn swept(&self, cell: &Cell) -> Vec<String> {
        let file = &self.experiment.file;
        let swept = |name: &str| file.swept(name).is_some_and(|list| list.len() > 1);
        let shown = |(name, value): (&&str, &Value)| format!("{name}={value}");
        cell.values.0.iter().filter(|(name, _)| swept(name)).map(shown).collect()
    }
}

/// The key of each cell.
pub(super) fn keys(experiment: &Experiment, plan: &Plan, program: &str) -> Vec<String> {
    plan.cells.iter().map(|cell| plan.key(experiment, cell, program)).collect()
}
