//! Replays of a recording.

use crate::answer::Answer;
use crate::errors::{Raised, usage};
use crate::opened::Opened;
use crate::recording::{Given, Wanted};
use crate::table::Table;
use crate::values::python;
use crate::work::{Work, work};
use pyo3::prelude::*;
use slablab_engines::parse_choice;
use slablab_machines as machines;
use slablab_replay::map::slab_map;
use slablab_replay::output::{
    cache_answer, caches_frame, engines_frame, map_page, replay_answer, timeline_frame,
};
use slablab_replay::replay as of;
use slablab_replay::replay::before::Before;
use slablab_replay::replay::hotplug::{Command, nanoseconds};
use slablab_replay::replay::{Evidence, Options};
use slablab_slabs::Release;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Caches that a page lists for each engine, as the program does.
const TOP: usize = 15;

/// The answer of a replay, with the question.
#[pyclass(frozen, extends = Answer, module = "slablab")]
pub(crate) struct Replay {
    answer: of::Replay,
    opened: Arc<Opened>,
    options: Options,
}

#[pymethods]
impl Replay {
    /// A row for each engine: its sums over all caches.
    #[getter]
    fn engines(&self) -> Table {
        Table::of(&engines_frame(&self.answer))
    }

    /// A row for each engine and cache.
    #[getter]
    fn caches(&self) -> Table {
        Table::of(&caches_frame(&self.answer))
    }

    /// Slab memory over time: a row for each sample of each engine.
    #[getter]
    fn timeline(&self) -> Table {
        Table::of(&timeline_frame(&self.answer))
    }

    /// Seconds that the pass over the rows took, by engine. They differ from run to run.
    #[getter]
    fn elapsed_s(&self) -> Vec<(String, f64)> {
        let outcomes = self.answer.outcomes.iter();
        outcomes.map(|outcome| (outcome.engine().to_string(), outcome.elapsed.as_secs_f64())).collect()
    }

    /// Every counter of one cache: the document that `slablab replay --cache NAME --format json` prints.
    fn cache<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match cache_answer(&self.answer, name, TOP) {
            Some(found) => python(py, &found.json()),
            None => Err(usage(format!("{}: no cache is called {name}", self.answer.path.display()))),
        }
    }

    /// The slab map of a cache, by default of the one with most slabs: a page that plays, or one moment of it
    /// as a drawing. `at` is the moment after the recording's start, as 1.5s. Replays again.
    #[pyo3(signature = (cache = None, *, at = None, format = "html", progress = None))]
    fn map(
        &self,
        py: Python<'_>,
        cache: Option<String>,
        at: Option<&str>,
        format: &str,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let is_drawing = match format {
            "html" => false,
            "svg" => true,
            other => return Err(usage(format!("format {other}: expected html or svg"))),
        };
        let expected = |text: &str| usage(format!("at {text}: expected a time as 1.5s, 20ms or 300us"));
        let at_ns = at.map(|text| nanoseconds(text).ok_or_else(|| expected(text))).transpose()?;
        let job = |work: &Work| {
            let recording = (&self.opened.reader, self.opened.path.as_path());
            let tick = |done, whole| work.at(done, whole);
            slab_map(recording, &self.options, &self.answer, cache.as_deref(), &tick)
        };
        let map = work(py, progress, Some(1), job)?;
        let at_ns = at_ns.map(|at| map.start_ns.saturating_add(at));
        Ok(match is_drawing {
            true => map.drawing(at_ns),
            false => map_page(&map, &self.answer, "slablab.replay().map()", at_ns),
        })
    }

    fn __repr__(&self) -> String {
        let engines = self.answer.outcomes.iter().map(|outcome| outcome.engine().to_string());
        format!(
            "<slablab.Replay of {}: {}>",
            self.answer.path.display(),
            engines.collect::<Vec<_>>().join(", ")
        )
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
    /// The options of a replay of `recording`; reads the files. Without a dump of before, the state before is
    /// that in the recording, if it has one.
    pub(crate) fn options(self, recording: &Path) -> PyResult<Options> {
        let release = self.release.map(|text| {
            let expected = "expected a release of a kernel, for example 6.1 or 6.1.0-50-amd64";
            Release::parse(&text).ok_or_else(|| usage(format!("release {text}: {expected}")))
        });
        let machine = self.machine.as_deref().map(machines::find).transpose().raised()?;
        Ok(Options {
            machine: machine.unwrap_or_default(),
            before: Before::read_for(recording, &self.before).raised()?,
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
) -> PyResult<Py<Replay>> {
    let engine = |text: &String| parse_choice(text).map_err(|bad| usage(format!("engine {text}: {bad}")));
    let engines = engines.unwrap_or_default().iter().map(engine).collect::<PyResult<_>>()?;
    let command = |(time, what): &(String, String)| {
        Command::parse(time, what).map_err(|bad| usage(format!("at {time} {what}: {bad}")))
    };
    let hotplug = at.iter().map(command).collect::<PyResult<_>>()?;
    let start = Start { before, machine, release, force };
    let wanted: Wanted = recording.wanted();
    let options = Options { engines, hotplug, ..start.options(wanted.path())? };
    let job = |work: &Work| {
        let opened = wanted.open(work)?;
        let answer = of::replay(&opened.reader, &opened.path, &options, &|done, whole| work.at(done, whole))?;
        Ok(Replay { answer, opened, options })
    };
    let replay = work(py, progress, threads, job)?;
    let is_incomplete = replay.answer.metadata.is_incomplete();
    let answer = replay_answer(&replay.answer, TOP);
    Answer::with(py, (answer, "slablab.replay()"), is_incomplete, replay)
}
