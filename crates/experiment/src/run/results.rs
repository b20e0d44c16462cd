//! What an experiment gave: the runs of each cell, and the tables of them.

use crate::plan::{Cell, Plan};
use crate::source::Experiment;
use crate::workload::Runs;
use crate::workload::{Metric, Value};
use slablab_stats::placement::Parts;
use slablab_stats::table::{Better, Cell as Measured, Row, Table};
use slablab_stats::{Bootstrap, Interval, Method, Sample, sequential};

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
    /// Results of cells that ran elsewhere: the runs of each cell in the plan's order, and the program that
    /// ran them.
    ///
    /// # Panics
    /// If there is not an element for each cell.
    pub fn of_runs(experiment: Experiment, plan: Plan, runs: Vec<Option<Runs>>, program: String) -> Results {
        assert_eq!(runs.len(), plan.cells.len(), "an element for each cell");
        let computed = runs.iter().flatten().count();
        Results { experiment, plan, runs, computed, program }
    }

    /// A number of a cell in the order of its runs; `None` if a run failed or the cell is another part's.
    pub(crate) fn values(&self, cell: usize, metric: &Metric) -> Option<Vec<f64>> {
        let runs = self.runs[cell].as_ref()?;
        let numbers = runs.iter().map(|run| Some(*run.as_ref().ok()?.metrics.get(metric.name)? as f64));
        numbers.collect()
    }

    /// A number of a cell over its runs; `None` if a run failed or the cell is another part's.
    pub fn sample(&self, cell: usize, metric: &Metric) -> Option<Sample> {
        Sample::new(self.values(cell, metric)?).ok()
    }

    /// The independent values of a cell, for tests and intervals: those of [`Results::sample`], or with
    /// several placements the mean of each.
    pub fn independent(&self, cell: usize, metric: &Metric) -> Option<Sample> {
        match self.plan.cells[cell].drawn {
            false => self.plan.repeats.means(&self.values(cell, metric)?).ok(),
            true => self.sample(cell, metric),
        }
    }

    /// The independent values of two numbers of a cell, a pair for each run or placement; `None` if a run
    /// failed or the cell is another part's.
    pub fn pairs(&self, cell: usize, base: &Metric, other: &Metric) -> Option<Vec<[f64; 2]>> {
        let [base, other] = [base, other].map(|metric| self.values(cell, metric));
        Some(self.plan.repeats.pairs(&base?, &other?))
    }

    /// The variance of a number within and between placements; `None` with one placement.
    pub fn parts(&self, cell: usize, metric: &Metric) -> Option<Parts> {
        match self.plan.cells[cell].drawn {
            false => self.plan.repeats.parts(&self.values(cell, metric)?),
            true => None,
        }
    }

    /// The 95 % interval of a number's mean: a bootstrap interval over the repeats, with several placements
    /// Student's interval over their means. `None` with one value.
    pub fn interval(&self, cell: usize, metric: &Metric) -> Option<Interval> {
        let sample = self.independent(cell, metric)?;
        match self.plan.repeats.placements {
            1 => bootstrap_interval(&sample),
            _ => sequential::mean_interval(&sample.moments()).ok(),
        }
    }

    /// A number of a cell over its runs, in the unit of tables.
    pub fn shown(&self, cell: usize, metric: &Metric) -> Option<Sample> {
        Some(in_unit(&self.sample(cell, metric)?, metric))
    }

    /// Whether a cell was run: in a part of an experiment other cells were not.
    pub fn was_run(&self, cell: usize) -> bool {
        self.runs[cell].is_some()
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
    /// With several placements a value is the mean of one.
    ///
    /// # Panics
    /// Never: each row has a cell for each engine.
    pub fn table(&self, metric: &Metric) -> Table {
        let engines = self.experiment.file.engines.len();
        let plain = self.plain().count();
        let mut table = Table::new(self.experiment.file.engines.iter().map(|(engine, _)| engine.clone()));
        for first in (0..plain).step_by(engines) {
            let measured = |cell: usize| match self.independent(cell, metric) {
                Some(sample) => Measured::Runs(in_unit(&sample, metric)),
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
        cells.filter(|(_, cell)| !cell.drawn)
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

    /// A metric of the workload by its place.
    pub fn metric(&self, at: usize) -> &'static Metric {
        &self.experiment.file.workload.metrics[at]
    }

    /// The engine of a cell.
    pub fn engine(&self, cell: usize) -> &str {
        &self.experiment.file.engines[self.plan.cells[cell].engine].0
    }

    /// A cell with its engine.
    pub fn name(&self, cell: usize) -> String {
        format!("{} {}", self.label(cell), self.engine(cell))
    }

    /// The parameters of a cell that other cells have other values of.
    pub fn swept(&self, cell: &Cell) -> Vec<String> {
        let file = &self.experiment.file;
        let swept = |name: &str| file.swept(name, self.plan.size).is_some_and(|list| list.len() > 1);
        let shown = |(name, value): (&&str, &Value)| format!("{name}={value}");
        cell.values.0.iter().filter(|(name, _)| swept(name)).map(shown).collect()
    }
}

/// The 95 % interval of the mean of two or more repeats.
fn bootstrap_interval(sample: &Sample) -> Option<Interval> {
    let rules = Bootstrap { method: Method::Bca, ..Bootstrap::default() };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    (sample.n() > 1).then(|| rules.interval(sample, mean).ok())?
}

/// A sample in the unit of tables.
fn in_unit(sample: &Sample, metric: &Metric) -> Sample {
    let values: Vec<f64> = sample.values().iter().map(|value| value / metric.per_unit).collect();
    Sample::new(values).expect("a unit is a finite number above 0")
}
