//! Experiments on modelled machines.

use crate::answer::{Answer, text};
use crate::errors::{Raised, usage};
use crate::table::Table;
use crate::work::{Work, work};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use slablab_experiment::judge::summary::{samples, samples_frame};
use slablab_experiment::output::{LOCKS, Look, experiment_answer, experiment_frame, locks_table};
use slablab_experiment::{self as experiment, Change, Experiment, Folder, Options, Size};
use std::path::{Path, PathBuf};

/// The results of an experiment.
#[pyclass(frozen, extends = Answer, module = "slablab")]
pub(crate) struct Results(experiment::Results);

impl Results {
    /// The answer of results.
    pub(crate) fn answer(py: Python<'_>, results: experiment::Results) -> PyResult<Py<Results>> {
        let is_incomplete = results.runs.iter().flatten().flatten().any(Result::is_err);
        let answer = experiment_answer(&results, Look::default());
        Answer::with(py, (answer, "slablab.run()"), is_incomplete, Results(results))
    }
}

#[pymethods]
impl Results {
    /// A row for each cell and metric: its statistics over the repeats.
    #[getter]
    fn cells(&self) -> Table {
        Table::of(&experiment_frame(&self.0))
    }

    /// A row for each number of each run.
    #[getter]
    fn samples(&self) -> Table {
        Table::of(&samples_frame(&self.0))
    }

    /// Cells that ran now; the others were in the folder.
    #[getter]
    fn computed(&self) -> usize {
        self.0.computed
    }

    /// Why cells have no numbers: the cell's place, and the reason.
    #[getter]
    fn failures(&self) -> Vec<(usize, String)> {
        let cells = 0..self.0.plan.cells.len();
        cells.filter_map(|cell| Some((cell, self.0.failure(cell)?))).collect()
    }

    /// The file `samples.parquet` of a folder of results.
    fn parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &samples(&self.0).raised()?))
    }

    /// Writes a folder of results, as `slablab run --folder` does.
    fn write(&self, folder: PathBuf) -> PyResult<()> {
        if self.0.runs.iter().any(Option::is_none) {
            return Err(usage("these are results of some cells only"));
        }
        Folder::open(&folder).and_then(|folder| self.0.write_whole(&folder)).raised()
    }

    /// The text that `slablab run --format FORMAT` prints: table, json, csv, markdown, mmtests or avgstd, in
    /// lines of at most `wrap` columns.
    #[pyo3(signature = (format = "table", *, wide = false, wrap = None))]
    fn text(&self, format: &str, wide: bool, wrap: Option<usize>) -> PyResult<String> {
        text(&experiment_answer(&self.0, Look { wrap, ..Look::default() }), format, wide)
    }

    /// The table that `slablab run --locks` prints: each cell's locks, how often they were taken, waits and
    /// holds.
    #[pyo3(signature = (*, wrap = None))]
    fn locks(&self, wrap: Option<usize>) -> String {
        format!("{LOCKS}\n{}", locks_table(&self.0).print_within(wrap.unwrap_or(usize::MAX)))
    }

    fn __repr__(&self) -> String {
        format!("<slablab.Results of {}: {} cells>", self.0.experiment.file.name, self.0.plan.cells.len())
    }
}

/// This package's version and the digest of its bytes: results of another build are not used again.
pub(crate) fn program(py: Python<'_>) -> PyResult<String> {
    static PROGRAM: PyOnceLock<String> = PyOnceLock::new();
    let read = || {
        let path: PathBuf = py.import("slablab._native")?.getattr("__file__")?.extract()?;
        experiment::run::program(env!("CARGO_PKG_VERSION"), Path::new(&path)).raised()
    };
    PROGRAM.get_or_try_init(py, read).cloned()
}

/// What a caller changes of an experiment.
pub(crate) fn change(size: Option<&str>, repeats: Option<u32>, seed: Option<u64>) -> PyResult<Change> {
    let size = size.map(|name| {
        let known = Size::NAMES.iter().find(|(known, _)| *known == name);
        let known = known.map(|(_, size)| *size);
        known.ok_or_else(|| usage(format!("size {name}: expected quick, standard or full")))
    });
    if repeats.is_some_and(|repeats| !(1..=10_000).contains(&repeats)) {
        return Err(usage("repeats: expected 1 to 10000"));
    }
    Ok(Change { size: size.transpose()?, repeats, seed, draws: None })
}

/// `change`, with at most three repeats of quick runs, as `slablab run --quick` has them.
pub(crate) fn fitted(change: Change, experiment: &Experiment) -> Change {
    let few = experiment.file.repeats.least.min(3);
    let quick = (change.size == Some(Size::Quick)).then_some(few);
    Change { repeats: change.repeats.or(quick), ..change }
}

/// Runs an experiment: a file (TOML), or the name of one that comes with the package.
#[pyfunction]
#[pyo3(signature = (
    experiment, *, size = None, repeats = None, seed = None, threads = None, force = false, folder = None,
    progress = None
))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn run(
    py: Python<'_>,
    experiment: PathBuf,
    size: Option<&str>,
    repeats: Option<u32>,
    seed: Option<u64>,
    threads: Option<usize>,
    force: bool,
    folder: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<Results>> {
    let change = change(size, repeats, seed)?;
    let program = program(py)?;
    let job = |work: &Work| {
        let experiment = Experiment::find(&experiment)?;
        let folder = folder.as_deref().map(Folder::open).transpose()?;
        let change = fitted(change, &experiment);
        let options = Options { change, threads, force, program, pulse: work.pulse(), ..Options::default() };
        experiment::run(&experiment, &options, folder.as_ref(), &|done, whole| work.at(done, whole))
    };
    Results::answer(py, work(py, progress, threads, job)?)
}
