//! Recordings: opened once, replayed and read as often as wanted.

use crate::errors::{Raised, usage};
use crate::opened::Opened;
use crate::rows::{Rows, columns};
use crate::values::python;
use crate::work::{Work, work};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use slablab_replay::import::{self, Input};
use slablab_report::error::At;
use slablab_trace::Reader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A recording of a kernel's allocations, as a trace.
#[pyclass(frozen, module = "slablab")]
pub(crate) struct Recording(pub(crate) Arc<Opened>);

/// A recording that is open, or a file to open.
#[derive(FromPyObject)]
pub(crate) enum Given<'py> {
    Open(Bound<'py, Recording>),
    Path(PathBuf),
}

/// What is known of a recording before work begins.
pub(crate) enum Wanted {
    Open(Arc<Opened>),
    Path(PathBuf, Option<String>, Option<PathBuf>),
}

impl Given<'_> {
    pub(crate) fn wanted(self) -> Wanted {
        match self {
            Given::Open(recording) => Wanted::Open(recording.get().0.clone()),
            Given::Path(path) => Wanted::Path(path, None, None),
        }
    }
}

impl Wanted {
    /// The file that the user named.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Wanted::Open(opened) => &opened.path,
            Wanted::Path(path, ..) => path,
        }
    }

    /// Opens the recording. What is no trace is imported into a file without a name.
    pub(crate) fn open(self, work: &Work) -> slablab_report::Result<Arc<Opened>> {
        let (path, recording, formats) = match self {
            Wanted::Open(opened) => return Ok(opened),
            Wanted::Path(path, recording, formats) => (path, recording, formats),
        };
        // Events are counted, and how many there will be is not known.
        let input = Input { path: &path, recording: recording.as_deref(), formats: formats.as_deref() };
        let tick = &mut |_| work.at(0, 0);
        let reader = import::open(input, tick)?;
        Ok(Arc::new(Opened { path, reader }))
    }
}

#[pymethods]
impl Recording {
    /// The file.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path.clone()
    }

    /// What is known about the recording: release, CPUs, nodes, caches, lost events, where it is from.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value = serde_json::to_value(self.0.reader.metadata()).map_err(usage)?;
        python(py, &value)
    }

    /// The number of events that the recorder lost, as far as it says.
    #[getter]
    fn events_lost(&self) -> u64 {
        self.0.reader.metadata().losses.events
    }

    fn __len__(&self) -> usize {
        self.0.reader.rows() as usize
    }

    fn __repr__(&self) -> String {
        format!("<slablab.Recording {}: {} rows>", self.0.path.display(), self.0.reader.rows())
    }

    /// Some columns of the rows, in this order.
    #[pyo3(signature = (columns = None))]
    fn rows(&self, columns: Option<Vec<String>>) -> PyResult<Rows> {
        Ok(Rows { opened: self.0.clone(), columns: self::columns(columns).map_err(usage)? })
    }

    /// Arrow's C stream, of all columns.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        self.rows(None)?.__arrow_c_stream__(py, requested_schema)
    }
}

/// Opens a recording; what is no trace is imported first.
#[pyfunction]
#[pyo3(signature = (path, *, recording = None, formats = None))]
pub(crate) fn read_recording(
    py: Python<'_>,
    path: PathBuf,
    recording: Option<String>,
    formats: Option<PathBuf>,
) -> PyResult<Recording> {
    work(py, None, None, |work| Wanted::Path(path, recording, formats).open(work)).map(Recording)
}

/// Imports a recording into a trace at `output`, which appears whole or not at all.
#[pyfunction]
#[pyo3(signature = (path, output, *, recording = None, formats = None))]
pub(crate) fn import_recording(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    recording: Option<String>,
    formats: Option<PathBuf>,
) -> PyResult<Recording> {
    if path == output {
        return Err(usage(format!("{}: expected another file for the trace", output.display())));
    }
    let input = Input { path: &path, recording: recording.as_deref(), formats: formats.as_deref() };
    work(py, None, None, |work| import::import(input, &output, &mut |_| work.at(0, 0)).map(drop))?;
    let reader = Reader::open(&output).map_err(slablab_trace::Error::without_path);
    Ok(Recording(Arc::new(Opened { reader: reader.at(&output).raised()?, path: output })))
}
