//! Replays of a recording.

use crate::errors::{Raised, usage};
use crate::recording::{Given, Wanted};
use crate::table::Table;
use crate::values::python;
use crate::work::{Work, work};
use pyo3::prelude::*;
use slablab_lab::output::{
    caches_frame, engines_frame, engines_table, remarks, replay_json, replay_page, timeline_frame,
};
use slablab_lab::replay as of;
use slablab_lab::replay::before::Before;
use slablab_lab::replay::hotplug::Command;
use slablab_lab::replay::{Evidence, Options};
use slablab_machines as machines;
use slablab_slabs::Release;
use slablab_slabs::preset::Choice;
use std::path::PathBuf;

/// Caches that a page lists for each engine, as the program does.
const TOP: usize = 15;

/// The answer of a replay.
#[pyclass(frozen, module = "slablab")]
pub(crate) struct Replay(of::Replay);

#[pymethods]
impl Replay {
    /// A row for each engine: its sums over all caches.
    #[getter]
    fn engines(&self) -> Table {
        Table::of(&engines_frame(&self.0))
    }

    /// A row for each engine and cache.
    #[getter]
    fn caches(&self) -> Table {
        Table::of(&caches_frame(&self.0))
    }

    /// Slab memory over time: a row for each sample of each engine.
    #[getter]
    fn timeline(&self) -> Table {
        Table::of(&timeline_frame(&self.0))
    }

    /// What was assumed, and what to look at, as sentences.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        remarks(&self.0)
    }

    /// Whether the recording lost events.
    #[getter]
    fn is_incomplete(&self) -> bool {
        self.0.metadata.losses.records > 0
    }

    /// Seconds that the pass over the rows took, by engine. They differ from run to run.
    #[getter]
    fn elapsed_s(&self) -> Vec<(String, f64)> {
        let outcomes = self.0.outcomes.iter();
        outcomes.map(|outcome| (outcome.engine().to_string(), outcome.elapsed.as_secs_f64())).collect()
    }

    /// The document that `slablab replay --format json` prints.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, &replay_json(&self.0))
    }

    /// The text that `slablab replay --format json` prints.
    fn json(&self) -> String {
        slablab_report::json::document(&replay_json(&self.0))
    }

    /// A self-contained page with charts.
    #[pyo3(signature = (*, top = TOP))]
    fn html(&self, top: usize) -> String {
        replay_page(&self.0, "slablab.replay()", top)
    }

    fn __str__(&self) -> String {
        engines_table(&self.0)
    }

    fn __repr__(&self) -> String {
        let engines = self.0.outcomes.iter().map(|outcome| outcome.engine().to_string());
        format!("<slablab.Replay of {}: {}>", self.0.path.display(), engines.collect::<Vec<_>>().join(", "))
    }
}

/// What a start is read from.
pub(crate) struct Start {
    pub(crate) before: Vec<PathBuf>,
    pub(crate) machine: Option<PathBuf>,
    pub(crate) release: Option<String>,
    pub(crate) force: bool,
}

impl Start {
    /// The options of a replay; reads the files.
    pub(crate) fn options(self) -> PyResult<Options> {
        let release = self.release.map(|text| {
            let expected = "expected a release of a kernel, for example 6.1 or 6.1.0-50-amd64";
            Release::parse(&text).ok_or_else(|| usage(format!("release {text}: {expected}")))
        });
        let machine = self.machine.as_deref().map(machines::find).transpose().raised()?;
        Ok(Options {
            machine: machine.unwrap_or_default(),
            before: Before::read_all(&self.before).raised()?,
            release: release.transpose()?,
            force: self.force,
            evidence: Evidence::Pages,
            ..Options::default()
        })
    }
}

/// Replays a recording through slab allocators.
#[pyfunction]
#[pyo3(signature = (
    recording, engines = None, *, before = vec![], machine = None, release = None, force = false, at = vec![],
    threads = None, progress = None
))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn replay(
    py: Python<'_>,
    recording: Given<'_>,
    engines: Option<Vec<String>>,
    before: Vec<PathBuf>,
    machine: Option<PathBuf>,
    release: Option<String>,
    force: bool,
    at: Vec<(String, String)>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Replay> {
    let engine = |text: &String| Choice::parse(text).map_err(|bad| usage(format!("engine {text}: {bad}")));
    let engines = engines.unwrap_or_default().iter().map(engine).collect::<PyResult<_>>()?;
    let command = |(time, what): &(String, String)| {
        Command::parse(time, what).map_err(|bad| usage(format!("at {time} {what}: {bad}")))
    };
    let hotplug = at.iter().map(command).collect::<PyResult<_>>()?;
    let start = Start { before, machine, release, force };
    let options = Options { engines, hotplug, ..start.options()? };
    let wanted: Wanted = recording.wanted();
    let job = |work: &Work| {
        let opened = wanted.open(work)?;
        of::replay(&opened.reader, &opened.path, &options, &|done, whole| work.at(done, whole))
    };
    work(py, progress, threads, job).map(Replay)
}
