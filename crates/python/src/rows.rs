//! A recording's rows as an Arrow stream that decodes as it is read. Numbers are handed over in the vectors
//! that they were decoded into; texts are dictionaries.

use crate::opened::Opened;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, PrimitiveArray, RecordBatch, RecordBatchReader, StringArray,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use slablab_report::error::At;
use slablab_trace::{Batch, Batches, COLUMNS, Column, Columns, Form, NONE, Table, Values};
use std::sync::Arc;

/// Rows in a batch: with fewer, a consumer's costs for a batch weigh more.
const BATCH_ROWS: usize = 1 << 16;

/// Some columns of a recording's rows. Each reader of it begins at the first row.
#[pyclass(frozen, module = "slablab")]
pub(crate) struct Rows {
    pub(crate) opened: Arc<Opened>,
    pub(crate) columns: Vec<&'static Column>,
}

#[pymethods]
impl Rows {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.columns.iter().map(|column| column.name).collect()
    }

    fn __len__(&self) -> usize {
        self.opened.reader.rows() as usize
    }

    fn __repr__(&self) -> String {
        format!("<slablab.Rows: {} rows of {}>", self.opened.reader.rows(), self.columns().join(", "))
    }

    /// Arrow's C stream.
    #[pyo3(signature = (requested_schema = None))]
    pub(crate) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        capsule(py, Decoding::new(self.opened.clone(), self.columns.clone()))
    }
}

/// A stream that Python's other libraries take over; whoever does not take it has it released.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    reader: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
}

/// Rows being decoded.
struct Decoding {
    opened: Arc<Opened>,
    columns: Vec<&'static Column>,
    batches: Batches,
    schema: SchemaRef,
    /// The texts of a column as Arrow has them, while there are no more of them.
    texts: Vec<Option<ArrayRef>>,
}

impl Decoding {
    fn new(opened: Arc<Opened>, columns: Vec<&'static Column>) -> Decoding {
        let wanted = columns.iter().fold(Columns::NONE, |all, column| all | column.set());
        let fields: Vec<Field> = columns.iter().map(|column| field(column)).collect();
        Decoding {
            batches: opened.reader.batches(wanted).with_rows(BATCH_ROWS),
            schema: Arc::new(Schema::new(fields)),
            texts: vec![None; columns.len()],
            columns,
            opened,
        }
    }

    fn decode(&mut self) -> slablab_report::Result<Option<RecordBatch>> {
        let opened = self.opened.clone();
        let path = &opened.path;
        let mut batch = Batch::default();
        if !self.batches.next(&mut batch).at(path)? {
            return Ok(None);
        }
        let arrays = (0..self.columns.len()).map(|at| self.array(at, &mut batch)).collect();
        RecordBatch::try_new(self.schema.clone(), arrays).map(Some).at(path)
    }

    fn array(&mut self, at: usize, batch: &mut Batch) -> ArrayRef {
        match batch.take(self.columns[at], self.batches.texts()) {
            Values::U8(values) => numbers::<UInt8Type>(values),
            Values::I8(values) => numbers::<Int8Type>(values),
            Values::U16(values) => numbers::<UInt16Type>(values),
            Values::I16(values) => numbers::<Int16Type>(values),
            Values::U32(values) => numbers::<UInt32Type>(values),
            Values::I32(values) => numbers::<Int32Type>(values),
            Values::U64(values) => numbers::<UInt64Type>(values),
            Values::I64(values) => numbers::<Int64Type>(values),
            Values::Times(values) => signed(values),
            Values::Texts(ids, table) => words(ids, table, &mut self.texts[at]),
        }
    }
}

impl Iterator for Decoding {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.decode().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Decoding {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

fn field(column: &Column) -> Field {
    let kind = match column.form {
        Form::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        Form::Number { bits: 8, signed: true } => DataType::Int8,
        Form::Number { bits: 8, signed: false } => DataType::UInt8,
        Form::Number { bits: 16, signed: true } => DataType::Int16,
        Form::Number { bits: 16, signed: false } => DataType::UInt16,
        Form::Number { bits: 32, signed: true } => DataType::Int32,
        Form::Number { bits: 32, signed: false } => DataType::UInt32,
        Form::Number { signed: true, .. } => DataType::Int64,
        Form::Number { .. } => DataType::UInt64,
    };
    Field::new(column.name, kind, column.form == Form::Text)
}

fn numbers<T: ArrowPrimitiveType>(values: Vec<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), None))
}

/// Unsigned numbers below the largest signed one, as signed ones.
fn signed<T: ArrowNativeType>(values: Vec<T>) -> ArrayRef {
    let length = values.len();
    let values = ScalarBuffer::<i64>::new(Buffer::from_vec(values), 0, length);
    Arc::new(PrimitiveArray::<Int64Type>::new(values, None))
}

/// Ids of texts, with the texts. [`NONE`] is null.
fn words(ids: Vec<u32>, table: &Table, known: &mut Option<ArrayRef>) -> ArrayRef {
    let texts = match known {
        Some(texts) if texts.len() == table.len() => texts.clone(),
        _ => {
            let all: ArrayRef = Arc::new(StringArray::from_iter_values(table.iter()));
            known.insert(all).clone()
        }
    };
    let is_there = BooleanBuffer::collect_bool(ids.len(), |at| ids[at] != NONE);
    let nulls = NullBuffer::new(is_there);
    let length = ids.len();
    let keys = ScalarBuffer::<i32>::new(Buffer::from_vec(ids), 0, length);
    let keys = Int32Array::new(keys, Some(nulls).filter(|nulls| nulls.null_count() > 0));
    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts).expect("ids are of the table"))
}

/// The columns with these names, all of them if there are none.
pub(crate) fn columns(names: Option<Vec<String>>) -> Result<Vec<&'static Column>, String> {
    let Some(names) = names else { return Ok(COLUMNS.iter().collect()) };
    let find = |name: String| {
        COLUMNS.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
            format!("no column {name}: expected one of {}", known.join(", "))
        })
    };
    let found = names.into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() {
        return Err("no columns: expected at least one, or None for all".into());
    }
    let twice = (1..found.len()).find(|at| found[..*at].contains(&found[*at]));
    match twice {
        Some(at) => Err(format!("column {} is given twice", found[at].name)),
        None => Ok(found),
    }
}
