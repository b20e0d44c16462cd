//! The part of each policy in the difference between two presets.

use crate::answer::Answer;
use crate::errors::usage;
use crate::recording::Given;
use crate::replay::Start;
use crate::table::Table;
use crate::work::{Work, work};
use pyo3::prelude::*;
use slablab_replay::explain as of;
use slablab_replay::explain::{EXACT_USUALLY, Explained, Question, SAMPLES_USUALLY};
use slablab_replay::output::{explain_answer, explain_frame, explain_pairs_frame};
use slablab_slabs::Preset;
use std::path::PathBuf;

/// The answer to "which policy carries what".
#[pyclass(frozen, extends = Answer, module = "slablab")]
pub(crate) struct Explanation(Explained);

#[pymethods]
impl Explanation {
    /// A row for each measure and policy: what the policy carries of the measure's change.
    #[getter]
    fn parts(&self) -> Table {
        Table::of(&explain_frame(&self.0))
    }

    /// A row for each measure and pair of policies: what both do beyond what each does without the other.
    #[getter]
    fn pairs(&self) -> Table {
        Table::of(&explain_pairs_frame(&self.0))
    }

    /// Whether every combination was replayed; otherwise parts have intervals.
    #[getter]
    fn is_exact(&self) -> bool {
        self.0.sampled.is_none()
    }
}

/// Explains the difference between two presets on a recording.
#[pyfunction]
#[pyo3(signature = (
    recording, a, b, *, cache = None, before = vec![], machine = None, release = None, force = false,
    exact = EXACT_USUALLY, samples = SAMPLES_USUALLY, threads = None, progress = None
))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub(crate) fn explain(
    py: Python<'_>,
    recording: Given<'_>,
    a: &str,
    b: &str,
    cache: Option<String>,
    before: Vec<PathBuf>,
    machine: Option<PathBuf>,
    release: Option<String>,
    force: bool,
    exact: usize,
    samples: usize,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<Explanation>> {
    let preset =
        |text: &str, which| Preset::parse(text).map_err(|bad| usage(format!("{which} {text}: {bad}")));
    if exact > of::EXACT_MOST {
        return Err(usage(format!("exact: expected at most {}", of::EXACT_MOST)));
    }
    if !(4..=100_000).contains(&samples) {
        return Err(usage(format!("samples {samples}: expected 4 to 100000")));
    }
    let question = Question { from: preset(a, "a")?, to: preset(b, "b")?, cache, exact, samples };
    let wanted = recording.wanted();
    let options = Start { before, machine, release, force }.options(wanted.path())?;
    let job = |work: &Work| {
        let opened = wanted.open(work)?;
        let tick = |done, whole| work.at(done, whole);
        of::explain(&opened.reader, &opened.path, &options, &question, &tick)
    };
    let explained = work(py, progress, threads, job)?;
    let is_incomplete = explained.replay.metadata.is_incomplete();
    let answer = explain_answer(&explained);
    Answer::with(py, (answer, "slablab.explain()"), is_incomplete, Explanation(explained))
}
