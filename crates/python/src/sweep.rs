//! The two ends of a sweep: what a worker runs, and what collects the cells. `python/slablab/_sweep.py` is
//! between them.
//!
//! ```text
//! Sweep ── task, todo ── an executor's workers: run_cells(task, cells) ── documents
//!   └── accept(cell, document) ── finish ── Results
//! ```
//!
//! A task is text and numbers alone, and says which build made it: a worker with another build refuses. A
//! cell's document is that of a folder of results, so nothing is lost on the way.

use crate::errors::{Raised, usage};
use crate::experiment::{Results, change, fitted, program};
use crate::work::{Work, work};
use pyo3::prelude::*;
use serde_json::{Value, json};
use slablab_experiment::run::folder::{cell_json, runs_of};
use slablab_experiment::run::results::Results as Of;
use slablab_experiment::workload::Runs;
use slablab_experiment::{self as experiment, Change, Experiment, Folder, Options, Parts, Plan, Size};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The cells of an experiment, of which some have run.
#[pyclass(frozen, module = "slablab")]
pub(crate) struct Sweep {
    experiment: Experiment,
    plan: Plan,
    keys: Vec<String>,
    program: String,
    change: Change,
    /// `None` without one, and at the end of the sweep.
    folder: Mutex<Option<Folder>>,
    /// Cells that were in the folder.
    kept: usize,
    runs: Mutex<Vec<Option<Runs>>>,
}

impl Sweep {
    fn runs(&self) -> MutexGuard<'_, Vec<Option<Runs>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn folder(&self) -> MutexGuard<'_, Option<Folder>> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Sweep {
    /// Plans the cells, and takes those that `folder` has.
    #[new]
    #[pyo3(signature = (experiment, *, size = None, repeats = None, seed = None, folder = None))]
    fn new(
        py: Python<'_>,
        experiment: PathBuf,
        size: Option<&str>,
        repeats: Option<u32>,
        seed: Option<u64>,
        folder: Option<PathBuf>,
    ) -> PyResult<Sweep> {
        let experiment = Experiment::find(&experiment).raised()?;
        let change = fitted(change(size, repeats, seed)?, &experiment);
        let plan = Plan::new(&experiment, &change).raised()?;
        let program = program(py)?;
        let keys = plan.keys(&experiment, &program);
        let folder = folder.as_deref().map(Folder::open).transpose().raised()?;
        let mut runs = vec![None; keys.len()];
        if let Some(folder) = &folder {
            folder.begin(&experiment, &plan.json(&program, &keys)).raised()?;
            runs = keys.iter().map(|key| folder.cell(key)).collect();
        }
        let kept = runs.iter().flatten().count();
        let (folder, runs) = (Mutex::new(folder), Mutex::new(runs));
        Ok(Sweep { experiment, plan, keys, program, change, folder, kept, runs })
    }

    /// The number of cells.
    fn __len__(&self) -> usize {
        self.keys.len()
    }

    /// Cells that did not run, with the estimated nanoseconds of a core that each takes.
    #[getter]
    fn todo(&self) -> Vec<(usize, u64)> {
        let estimate = |at: usize| {
            let cell = &self.plan.cells[at];
            let spec = &self.experiment.machines[cell.machine].machine.spec;
            let each = (self.experiment.file.workload.estimate)(spec, &cell.values).host_ns;
            each.saturating_mul(self.plan.runs(cell).into()).max(1)
        };
        let runs = self.runs();
        (0..runs.len()).filter(|at| runs[*at].is_none()).map(|at| (at, estimate(at))).collect()
    }

    /// What a worker needs to know, as text.
    #[getter]
    fn task(&self) -> PyResult<String> {
        let parts = self.experiment.parts();
        let task = json!({
            "program": self.program,
            "path": parts.path,
            "text": parts.text,
            "machines": parts.machines,
            "recordings": parts.recordings,
            "size": self.change.size.map(Size::name),
            "repeats": self.change.repeats,
            "seed": self.change.seed,
        });
        Ok(task.to_string())
    }

    /// Takes the document of a cell, and keeps it in the folder.
    fn accept(&self, cell: usize, document: &str) -> PyResult<()> {
        let key = self.keys.get(cell).ok_or_else(|| usage(format!("no cell {cell}")))?;
        let value: Value = serde_json::from_str(document).map_err(usage)?;
        let runs = runs_of(key, &value)
            .ok_or_else(|| usage(format!("cell {cell}: these are results of another cell or build")))?;
        if let Some(folder) = &*self.folder() {
            folder.keep(key, &runs).raised()?;
        }
        self.runs()[cell] = Some(runs);
        Ok(())
    }

    /// Gives the folder back to others.
    fn close(&self) -> PyResult<()> {
        let folder = self.folder().take();
        folder.map_or(Ok(()), |folder| folder.close().raised())
    }

    /// The results, written into the folder too if there is one.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<Results>> {
        let runs = self.runs().clone();
        let missing = runs.iter().filter(|runs| runs.is_none()).count();
        if missing > 0 {
            return Err(usage(format!("{missing} of {} cells did not run", runs.len())));
        }
        let (experiment, plan) = (self.experiment.clone(), self.plan.clone());
        let mut results = Of::of_runs(experiment, plan, runs, self.program.clone());
        results.computed -= self.kept;
        if let Some(folder) = &*self.folder() {
            results.write(folder).raised()?;
        }
        Results::answer(py, results)
    }
}

/// Runs some cells of a task on one thread, and gives the document of each.
#[pyfunction]
pub(crate) fn run_cells(py: Python<'_>, task: &str, cells: Vec<usize>) -> PyResult<Vec<String>> {
    let task: Value = serde_json::from_str(task).map_err(usage)?;
    let own = program(py)?;
    if task["program"] != *own {
        let found = task["program"].as_str().unwrap_or("none");
        let what = format!("the sweep is of slablab {found}, this worker has {own}: expected the same build");
        return Err(usage(what));
    }
    let wrong = || usage("this is no task of a sweep");
    let parts = Parts {
        path: serde_json::from_value(task["path"].clone()).map_err(|_| wrong())?,
        text: task["text"].as_str().ok_or_else(wrong)?.into(),
        machines: serde_json::from_value(task["machines"].clone()).map_err(|_| wrong())?,
        recordings: serde_json::from_value(task["recordings"].clone()).map_err(|_| wrong())?,
    };
    let repeats = serde_json::from_value(task["repeats"].clone()).map_err(|_| wrong())?;
    let change = change(task["size"].as_str(), repeats, task["seed"].as_u64())?;
    let job = |work: &Work| {
        let experiment = Experiment::of_parts(&parts)?;
        let options = Options {
            change,
            cells: Some(cells.clone()),
            threads: Some(1),
            force: true,
            program: own,
            pulse: work.pulse(),
            ..Options::default()
        };
        experiment::run(&experiment, &options, None, &|done, whole| work.at(done, whole))
    };
    let results = work(py, None, Some(1), job)?;
    let keys = results.plan.keys(&results.experiment, &results.program);
    let document = |cell: &usize| match results.runs.get(*cell) {
        Some(Some(runs)) => Ok(cell_json(&keys[*cell], runs).to_string()),
        _ => Err(usage(format!("no cell {cell}"))),
    };
    cells.iter().map(document).collect()
}
