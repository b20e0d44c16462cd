//! JSON as Python's values, and the documents of answers as the program prints them.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;
use slablab_report::json::{document, with_program};

/// An answer's document as the program's `--format json` has it, as Python's values.
pub(crate) fn answer(py: Python<'_>, answer: Value) -> PyResult<Bound<'_, PyAny>> {
    python(py, &with_program(answer))
}

/// The text that the program's `--format json` prints for an answer.
pub(crate) fn answer_text(answer: Value) -> String {
    document(&with_program(answer))
}

/// A document as dictionaries, lists, numbers and texts.
pub(crate) fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (None, Some(number)) => number.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(values) => {
            let list = PyList::empty(py);
            values.iter().try_for_each(|value| list.append(python(py, value)?))?;
            Ok(list.into_any())
        }
        Value::Object(values) => {
            let dict = PyDict::new(py);
            values.iter().try_for_each(|(key, value)| dict.set_item(key, python(py, value)?))?;
            Ok(dict.into_any())
        }
    }
}
