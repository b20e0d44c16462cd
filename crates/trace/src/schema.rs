//! The file's schema, and what else Parquet is told.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};

use crate::batch::{COLUMNS, Column, Columns, Form, Packing};
use crate::error::Error;

/// Level 9 saves 1 % of the file and writes 2.9 instead of 4.3 million rows/s (examples/decode_speed.rs).
const ZSTD_LEVEL: i32 = 3;

/// A dictionary larger than this is given up in favour of plain values.
const DICTIONARY_BYTES: usize = 4 << 20;

/// The schema of a trace: our columns, then `extra`.
pub(crate) fn schema(extra: &[TypePtr]) -> TypePtr {
    let ours = COLUMNS.iter().map(|column| Arc::new(field(column)));
    let fields = ours.chain(extra.iter().cloned()).collect();
    let built = Type::group_type_builder("slablab_trace").with_fields(fields).build();
    Arc::new(built.expect("names and types of COLUMNS are valid"))
}

fn field(column: &Column) -> Type {
    let built = match column.form {
        Form::Number { bits, signed } => Type::primitive_type_builder(
            column.name,
            if bits == 64 { Physical::INT64 } else { Physical::INT32 },
        )
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::integer(bits as i8, signed)))
        .build(),
        Form::Text => Type::primitive_type_builder(column.name, Physical::BYTE_ARRAY)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(Some(LogicalType::String))
            .build(),
    };
    built.expect("a name and a type that go together")
}

/// How a trace is packed.
pub(crate) fn properties() -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("a level of zstd");
    // In a page a trace is for this process alone: packing it would only take time.
    let is_packed = !cfg!(target_family = "wasm");
    let compression = if is_packed { Compression::ZSTD(level) } else { Compression::UNCOMPRESSED };
    let start = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        // One range per row group lets others skip groups by time; indexes per page would be a fifth of a
        // small file.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_created_by(concat!("slablab ", env!("CARGO_PKG_VERSION")).into());
    let packed = COLUMNS.iter().fold(start, |properties, column| {
        let path = ColumnPath::from(column.name);
        match column.packing {
            Packing::Dictionary => properties,
            Packing::Plain => properties.set_column_dictionary_enabled(path, false),
            Packing::Delta => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        }
    });
    packed.build()
}

/// Where the columns of a file are.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// At each of our columns' positions, the leaf in the file.
    leaves: Vec<Option<usize>>,
    /// The file's other columns, whole (they may be nested), and the leaves that belong to them.
    pub(crate) extra: Vec<TypePtr>,
    pub(crate) extra_leaves: Vec<usize>,
}

impl Layout {
    pub(crate) fn of(schema: &SchemaDescriptor) -> Result<Layout, Error> {
        let roots = schema.root_schema().get_fields();
        let known = |name: &str| COLUMNS.iter().any(|column| column.name == name);
        let find = |column: &Column| {
            (0..schema.num_columns()).find(|&leaf| schema.column(leaf).path().parts() == [column.name])
        };
        let layout = Layout {
            leaves: COLUMNS.iter().map(find).collect(),
            extra: roots.iter().filter(|root| !known(root.name())).cloned().collect(),
            extra_leaves: (0..schema.num_columns())
                .filter(|&leaf| !known(&schema.column(leaf).path().parts()[0]))
                .collect(),
        };
        for column in COLUMNS {
            match layout.leaf(column) {
                None if Columns::REQUIRED.has(column.set()) => return Err(Error::MissingColumn(column.name)),
                None => {}
                Some(leaf) => check_type(schema, column, leaf)?,
            }
        }
        Ok(layout)
    }

    /// The leaf of `column`, `None` when the file does not have it.
    pub(crate) fn leaf(&self, column: &Column) -> Option<usize> {
        self.leaves[column.position()]
    }
}

/// A program that rewrote the file may have widened a number or made it nullable; it may not have made it a
/// float.
fn check_type(schema: &SchemaDescriptor, column: &Column, leaf: usize) -> Result<(), Error> {
    let found = schema.column(leaf);
    let fits = match column.form {
        Form::Number { .. } => matches!(found.physical_type(), Physical::INT32 | Physical::INT64),
        Form::Text => found.physical_type() == Physical::BYTE_ARRAY,
    };
    if fits && found.max_rep_level() == 0 && found.max_def_level() <= 1 {
        return Ok(());
    }
    let expected = match column.form {
        Form::Number { bits, signed } => format!("{}{bits}", if signed { "int" } else { "uint" }),
        Form::Text => "string".into(),
    };
    Err(Error::ColumnType { column: column.name, expected, found: format!("{:?}", found.physical_type()) })
}
