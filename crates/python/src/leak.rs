//! What grows on a machine, who holds it, and which code allocates it.

use crate::answer::Answer;
use crate::table::Table;
use crate::work::{Work, work};
use pyo3::prelude::*;
use slablab_doctor::state::Input;
use slablab_replay::leak::{Evidence, examine};
use slablab_replay::output::leak_answer;
use std::path::PathBuf;

/// What grew, or what is held.
#[pyclass(frozen, extends = Answer, module = "slablab")]
pub(crate) struct Leak;

#[pymethods]
impl Leak {
    /// What grew, the likeliest leak first: holder, call sites, the command that ends it.
    #[getter]
    fn suspects<'py>(of: PyRef<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        of.as_super().part(of.py(), "suspects")
    }

    /// A row for each suspect.
    #[getter]
    fn table(of: PyRef<'_, Self>) -> Option<Table> {
        of.as_super().rows()
    }
}

/// Reads a file of `slablab leak --save` or `slablab record -g`, or a dump with earlier ones, and tells what
/// grew. `top` is the number of call sites of each suspect that the text has.
#[pyfunction]
#[pyo3(signature = (input, *, since = vec![], top = 5, progress = None))]
pub(crate) fn leak(
    py: Python<'_>,
    input: PathBuf,
    since: Vec<PathBuf>,
    top: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Py<Leak>> {
    let input = Input { path: Some(input), ..Input::default() };
    let job = |work: &Work| {
        let at = |done, whole| work.at(done, whole);
        let evidence = Evidence::read(&input, &since, (&mut |events| at(events, events), &at))?;
        let leak = examine(&evidence)?;
        Ok((leak_answer(&leak, top), leak.report.measured.is_incomplete()))
    };
    let (answer, is_incomplete) = work(py, progress, None, job)?;
    Answer::with(py, (answer, "slablab.leak()"), is_incomplete, Leak)
}
