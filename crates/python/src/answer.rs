//! An answer in every form that the program prints it in.

use crate::errors::usage;
use crate::table::Table;
use crate::values::python;
use pyo3::PyClass;
use pyo3::prelude::*;
use slablab_report::Answer as Forms;

/// What all answers have: the class under those of the verbs.
#[pyclass(frozen, subclass, module = "slablab")]
pub(crate) struct Answer {
    forms: Forms,
    /// What made it, as its page shows.
    call: &'static str,
    is_incomplete: bool,
}

impl Answer {
    /// The answer of a verb, whose class `of` adds to this one.
    pub(crate) fn with<T: PyClass<BaseType = Answer>>(
        py: Python<'_>,
        (forms, call): (Forms, &'static str),
        is_incomplete: bool,
        of: T,
    ) -> PyResult<Py<T>> {
        let answer = PyClassInitializer::from(Answer { forms, call, is_incomplete });
        Py::new(py, answer.add_subclass(of))
    }
}

impl Answer {
    /// What stands under a key of the document.
    pub(crate) fn part<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.forms.json()[key])
    }
}

#[pymethods]
impl Answer {
    /// The answer in one sentence.
    #[getter]
    fn sentence(&self) -> &str {
        self.forms.sentence()
    }

    /// What is missing, what was assumed, and what to look at, as sentences.
    #[getter]
    fn remarks(&self) -> Vec<&str> {
        self.forms.said().collect()
    }

    /// Whether the input lacked something that would have made the answer better.
    #[getter]
    fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// The rows that the program prints with `--format csv`; `None` for an answer without rows.
    #[getter]
    pub(crate) fn rows(&self) -> Option<Table> {
        self.forms.frame().map(Table::of)
    }

    /// The document that the program prints with `--format json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.forms.json())
    }

    /// The text that the program prints with `--format json`.
    fn json(&self) -> String {
        slablab_report::json::document(&self.forms.json())
    }

    /// A self-contained page with charts.
    fn html(&self) -> String {
        self.forms.page(self.call)
    }

    /// The text that the program prints with `--format FORMAT`: table, markdown, json, csv, or a form of this
    /// verb alone. With `wide` a table has all columns.
    #[pyo3(signature = (format = "table", *, wide = false))]
    fn text(&self, format: &str, wide: bool) -> PyResult<String> {
        text(&self.forms, format, wide)
    }

    fn __str__(&self) -> String {
        self.forms.text(false)
    }
}

/// An answer in the form of a word of `--format`.
pub(crate) fn text(of: &Forms, format: &str, wide: bool) -> PyResult<String> {
    let missing = || usage(format!("format {format}: expected {}", of.forms().join(", ")));
    of.text_of(format, wide).ok_or_else(missing)
}
