//! An answer's rows as Arrow: handed over through the C stream interface, without a copy.

use crate::errors::usage;
use crate::rows::capsule;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::{Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use slablab_report::frame::{Frame, Values};
use std::sync::Arc;

/// Rows with typed columns. pyarrow, polars, pandas and DuckDB take it as it is.
#[pyclass(frozen, module = "slablab")]
#[derive(Clone)]
pub(crate) struct Table(RecordBatch);

impl Table {
    /// The table of an answer's rows.
    pub(crate) fn of(frame: &Frame) -> Table {
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = frame
            .columns()
            .map(|(key, values)| {
                let column = array(values);
                (Field::new(key, column.data_type().clone(), true), column)
            })
            .unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
        Table(batch.expect("the columns of a frame have one length"))
    }
}

fn array(values: Values) -> ArrayRef {
    match values {
        Values::Texts(texts) => Arc::new(StringArray::from(texts)),
        Values::Whole(numbers) => Arc::new(Int64Array::from(numbers)),
        Values::Fractions(numbers) => Arc::new(Float64Array::from(numbers)),
        Values::Unknown(rows) => Arc::new(NullArray::new(rows)),
    }
}

#[pymethods]
impl Table {
    /// The names of the columns, with their units.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The values of one column; `None` for an unknown one.
    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyList>> {
        match self.0.column_by_name(column) {
            Some(found) => list(py, found),
            None => Err(usage(format!("no column {column}: expected one of {}", self.columns().join(", ")))),
        }
    }

    /// All columns by their names.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, column) in self.columns().iter().zip(self.0.columns()) {
            all.set_item(name, list(py, column)?)?;
        }
        Ok(all)
    }

    fn __repr__(&self) -> String {
        format!("<slablab.Table: {} rows of {}>", self.0.num_rows(), self.columns().join(", "))
    }

    /// Arrow's C stream: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may hand out its own schema, and the consumer casts.
        drop(requested_schema);
        let schema = self.0.schema();
        capsule(py, RecordBatchIterator::new([Ok(self.0.clone())], schema))
    }

    /// Arrow's C schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.0.schema()).map_err(usage)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}

fn list<'py>(py: Python<'py>, column: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let any = column.as_any();
    if let Some(texts) = any.downcast_ref::<StringArray>() {
        return PyList::new(py, texts.iter().collect::<Vec<_>>());
    }
    if let Some(numbers) = any.downcast_ref::<Int64Array>() {
        return PyList::new(py, numbers.iter().collect::<Vec<_>>());
    }
    if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        return PyList::new(py, numbers.iter().collect::<Vec<_>>());
    }
    PyList::new(py, vec![None::<i64>; column.len()])
}
