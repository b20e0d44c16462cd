//! Errors as exceptions: their classes are in `python/slablab/_errors.py`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use slablab_report::error::Place;

const MODULE: &str = "slablab._errors";

/// Something that a user gave and that cannot be used.
pub(crate) fn usage(what: impl std::fmt::Display) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    raised(&CLASS, "UsageError", |class| class.call1((what.to_string(),)))
}

/// An input that cannot be used, with its place.
pub(crate) fn input(error: &slablab_report::Error) -> PyErr {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (line, offset) = match error.place() {
        Some(Place::Line(line)) => (Some(line), None),
        Some(Place::Offset(offset)) => (None, Some(offset)),
        None => (None, None),
    };
    raised(&CLASS, "InputError", |class| class.call1((error.to_string(), error.path.clone(), line, offset)))
}

/// An exception of a class that is looked up once.
fn raised(
    known: &'static PyOnceLock<Py<PyType>>,
    name: &str,
    make: impl for<'py> FnOnce(&Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>>,
) -> PyErr {
    Python::attach(|py| {
        let made = known.import(py, MODULE, name).and_then(make);
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// A result of the laboratory as one of Python.
pub(crate) trait Raised<T> {
    /// The value, or the exception.
    fn raised(self) -> PyResult<T>;
}

impl<T> Raised<T> for slablab_report::Result<T> {
    fn raised(self) -> PyResult<T> {
        self.map_err(|error| input(&error))
    }
}
