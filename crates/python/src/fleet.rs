//! Many dumps as one answer, and the two ends of reading them on an executor's workers:
//! `python/slablab/_fleet.py` is between them.
//!
//! ```text
//! FleetPlan ── task, paths ── workers: read_dumps(task, paths) ── parts, as text
//!    └── finish(parts) ── Fleet
//! ```
//!
//! A task is text, and says which build made it: a worker with another build refuses. Dumps are read on the
//! worker at the same paths. The answer does not depend on where the paths are cut into tasks.

use crate::answer::Answer;
use crate::dump::{OneOrMore, all};
use crate::errors::{Raised, usage};
use crate::experiment::program;
use crate::table::Table;
use crate::work::work;
use pyo3::prelude::*;
use serde_json::{Value, json};
use slablab_doctor::fleet::{self, By, Part};
use slablab_doctor::output::fleet_answer;
use slablab_doctor::whatif::Change;
use slablab_slabs::Preset;
use std::path::PathBuf;

/// `slub_max_order` whose saving is told if nothing else is asked, as the program does.
const MAX_ORDER: u8 = 0;
/// The words for groups.
const GROUPS: [(&str, By); 4] =
    [("release", By::Release), ("cpus", By::Cpus), ("arch", By::Arch), ("folder", By::Folder)];

/// Slab memory of many machines.
#[pyclass(frozen, extends = Answer, module = "slablab")]
pub(crate) struct Fleet;

#[pymethods]
impl Fleet {
    /// A row for each machine: its newest dump.
    #[getter]
    fn machines(of: PyRef<'_, Self>) -> Option<Table> {
        of.as_super().rows()
    }

    /// Caches of machines that have far more of the memory than on the others of their group.
    #[getter]
    fn outliers<'py>(of: PyRef<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of.as_super().part(of.py(), "outliers")
    }

    /// Dumps that could not be read, and why.
    #[getter]
    fn unread<'py>(of: PyRef<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of.as_super().part(of.py(), "unread")
    }
}

/// What is asked of every dump, in the words of the caller.
struct Asked {
    by: By,
    changes: Vec<Change>,
}

impl Asked {
    fn of(by: &str, max_orders: Vec<u8>, engines: &[String]) -> PyResult<Asked> {
        let known = || GROUPS.map(|(name, _)| name).join(", ");
        let by = GROUPS.iter().find(|(name, _)| *name == by).map(|(_, by)| *by);
        let by = by.ok_or_else(|| usage(format!("by: expected one of {}", known())))?;
        let engine = |text: &String| {
            let preset = Preset::parse(text).map_err(|bad| usage(format!("engine {text}: {bad}")))?;
            Ok(Change { engine: Some(preset), ..Change::default() })
        };
        let max_orders = match (&max_orders[..], engines) {
            ([], []) => vec![MAX_ORDER],
            _ => max_orders,
        };
        let of_order = |order| Ok(Change { max_order: Some(order), ..Change::default() });
        let changes = max_orders.into_iter().map(of_order).chain(engines.iter().map(engine));
        Ok(Asked { by, changes: changes.collect::<PyResult<_>>()? })
    }

    /// What a task says.
    fn read(py: Python<'_>, task: &str) -> PyResult<Asked> {
        let task: Value = serde_json::from_str(task).map_err(usage)?;
        let own = program(py)?;
        if task["program"] != *own {
            let found = task["program"].as_str().unwrap_or("none");
            let what =
                format!("the fleet is of slablab {found}, this worker has {own}: expected the same build");
            return Err(usage(what));
        }
        let wrong = |_| usage("this is no task of a fleet");
        let max_orders = serde_json::from_value(task["max_order"].clone()).map_err(wrong)?;
        let engines: Vec<String> = serde_json::from_value(task["engine"].clone()).map_err(wrong)?;
        Asked::of(task["by"].as_str().unwrap_or_default(), max_orders, &engines)
    }
}

/// The dumps of a fleet, and what is asked of them.
#[pyclass(frozen, module = "slablab")]
pub(crate) struct FleetPlan {
    /// The dumps, in the order of the answer.
    #[pyo3(get)]
    paths: Vec<PathBuf>,
    /// What a worker needs to know, as text.
    #[pyo3(get)]
    task: String,
}

#[pymethods]
impl FleetPlan {
    /// Looks for dumps in folders.
    #[new]
    #[pyo3(signature = (dumps, *, by = "release", max_order = None, engine = None))]
    fn new(
        py: Python<'_>,
        dumps: Vec<PathBuf>,
        by: &str,
        max_order: Option<OneOrMore<u8>>,
        engine: Option<OneOrMore<String>>,
    ) -> PyResult<FleetPlan> {
        let (max_order, engine) = (all(max_order), all(engine));
        Asked::of(by, max_order.clone(), &engine)?;
        let task = json!({ "program": program(py)?, "by": by, "max_order": max_order, "engine": engine });
        Ok(FleetPlan { paths: fleet::dumps(&dumps).raised()?, task: task.to_string() })
    }

    /// The answer, of the parts that workers read, in the order of the paths.
    fn finish(&self, py: Python<'_>, parts: Vec<String>, lines: usize) -> PyResult<Py<Fleet>> {
        let changes = Asked::read(py, &self.task)?.changes;
        let parts: Vec<Part> =
            parts.iter().map(|part| serde_json::from_str(part)).collect::<Result<_, _>>().map_err(usage)?;
        let fleet = fleet::whole(parts, &changes);
        if fleet.machines.is_empty() {
            let why = fleet.unread.first().map_or("the folder is empty", |first| &first.why);
            return Err(usage(format!("none of {} dumps could be read: {why}", self.paths.len())));
        }
        let answer = (fleet_answer(&fleet, lines), "slablab.fleet()");
        Answer::with(py, answer, !fleet.unread.is_empty(), Fleet)
    }
}

/// Reads some dumps of a task on `threads` threads, as many as there are CPUs if `None`, and gives what they
/// say as text.
#[pyfunction]
#[pyo3(signature = (task, paths, *, threads = 1, progress = None))]
pub(crate) fn read_dumps(
    py: Python<'_>,
    task: &str,
    paths: Vec<PathBuf>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let Asked { by, changes } = Asked::read(py, task)?;
    let part = work(py, progress, threads, |work| {
        Ok(fleet::part(&paths, by, &changes, &|done, whole| work.at(done, whole)))
    })?;
    serde_json::to_string(&part).map_err(usage)
}
