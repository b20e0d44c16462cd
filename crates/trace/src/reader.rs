//! Reading a trace, a batch at a time.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

use crate::batch::{Batch, COLUMNS, Column, Columns, Form, Number, Visit};
use crate::error::Error;
use crate::event::NONE;
use crate::meta::Metadata;
use crate::pages::TextChunk;
use crate::positioned::Positioned;
use crate::quiet::quietly;
use crate::schema::Layout;
use crate::texts::Texts;

/// Rows in a batch: ten columns of it stay in a core's second-level cache.
const BATCH_ROWS: usize = 1 << 14;

/// An open trace. Cheap to read several times over, and from several threads.
pub struct Reader<R: ChunkReader = Positioned> {
    pub(crate) file: Arc<SerializedFileReader<R>>,
    pub(crate) layout: Arc<Layout>,
    metadata: Metadata,
}

impl Reader {
    /// Opens the trace at `path`. [`Error::Io`] names the path, other errors do not.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let file = File::open(path).and_then(Positioned::new);
        Reader::new(file.map_err(|source| Error::Io { path: path.into(), source })?)
    }
}

impl<R: ChunkReader + 'static> Reader<R> {
    /// Opens a trace.
    pub fn new(input: R) -> Result<Reader<R>, Error> {
        let length = input.len();
        let file = SerializedFileReader::new(input).map_err(Error::NotParquet)?;
        let footer = file.metadata().file_metadata();
        let metadata = Metadata::from_footer(footer.key_value_metadata())?;
        let layout = Arc::new(Layout::of(footer.schema_descr())?);
        check_places(file.metadata(), length)?;
        Ok(Reader { file: Arc::new(file), layout, metadata })
    }

    /// What is known about the recording.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        let groups = self.file.metadata().row_groups();
        groups.iter().map(|group| group.num_rows().max(0) as u64).sum()
    }

    /// The file's columns that this version does not know, by name.
    pub fn extra_columns(&self) -> impl Iterator<Item = &str> {
        self.layout.extra.iter().map(|field| field.name())
    }

    /// Reads `columns` from the start.
    pub fn batches(&self, columns: Columns) -> Batches<R> {
        let mut texts = Texts::default();
        for cache in &self.metadata.caches {
            texts.cache.id(&cache.name);
        }
        Batches {
            file: self.file.clone(),
            layout: self.layout.clone(),
            columns,
            batch_rows: BATCH_ROWS,
            object_ids: self.metadata.statistics.object_ids,
            texts,
            group: 0,
            open: None,
        }
    }
}

/// A trace being read. It holds one page of each column.
pub struct Batches<R: ChunkReader = Positioned> {
    file: Arc<SerializedFileReader<R>>,
    layout: Arc<Layout>,
    columns: Columns,
    batch_rows: usize,
    object_ids: u64,
    texts: Texts,
    group: usize,
    open: Option<Group>,
}

/// A row group being read.
struct Group {
    rows_left: usize,
    /// At each of our columns' positions; `None` for a column that was not asked for.
    chunks: Vec<Option<Chunk>>,
    /// What a number column is decoded into first.
    narrow: Vec<i32>,
    wide: Vec<i64>,
    levels: Vec<i16>,
}

enum Chunk {
    /// The file does not have the column.
    Missing,
    Number(Box<ColumnReader>),
    Text(Box<TextChunk>),
}

impl<R: ChunkReader + 'static> Batches<R> {
    /// With up to `rows` rows in a batch instead of 16,384. A batch never reaches over the end of a row
    /// group.
    pub fn with_rows(mut self, rows: usize) -> Self {
        assert!(rows > 0, "a batch of {rows} rows");
        self.batch_rows = rows;
        self
    }

    /// The strings of the rows read so far, by the ids in the batches.
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    pub(crate) fn texts_mut(&mut self) -> &mut Texts {
        &mut self.texts
    }

    /// The row group of the batch read last.
    pub(crate) fn group_index(&self) -> usize {
        self.group - 1
    }

    /// Replaces `batch` with the next rows; false at the end, and after an error.
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        // Parquet's decoder panics on a few kinds of damaged page (2 in 10,000 random damages). After a panic
        // nothing of this reader is used again, so that a half-changed state cannot be seen.
        let result = quietly(|| self.decode(batch)).unwrap_or_else(|panic| {
            let (group, column) = (self.group, "any".into());
            Err(Error::Corrupt { group, column, why: format!("a damaged page (Parquet's decoder: {panic})") })
        });
        if result.is_err() {
            (self.open, self.group) = (None, self.file.num_row_groups());
        }
        result
    }

    fn decode(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        batch.clear();
        while self.open.as_ref().is_none_or(|group| group.rows_left == 0) {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            self.open = Some(self.open_group()?);
            self.group += 1;
        }
        let group = self.open.as_mut().expect("opened above");
        let rows = group.rows_left.min(self.batch_rows);
        group.rows_left -= rows;
        let (group_index, object_ids) = (self.group - 1, self.object_ids);
        let mut cells = Cells { group, texts: &mut self.texts, rows, group_index };
        batch.visit(&mut cells)?;
        batch.rows = rows;
        // A replay indexes an array by object.
        match batch.object.iter().find(|&&id| id != NONE && u64::from(id) >= object_ids) {
            Some(id) => Err(Error::Corrupt {
                group: group_index,
                column: "object".into(),
                why: format!("id {id}, but the footer says that ids are below {object_ids}"),
            }),
            None => Ok(true),
        }
    }

    fn open_group(&self) -> Result<Group, Error> {
        let fail = |column: &Column, why: ParquetError| corrupt(self.group, column, why);
        let reader = self.file.get_row_group(self.group).map_err(|why| fail(&COLUMNS[0], why))?;
        let schema = self.file.metadata().file_metadata().schema_descr();
        let chunk = |column: &'static Column| {
            if !self.columns.has(column.set()) {
                return Ok(None);
            }
            let Some(leaf) = self.layout.leaf(column) else { return Ok(Some(Chunk::Missing)) };
            let chunk = match column.form {
                Form::Number { .. } => {
                    reader.get_column_reader(leaf).map(|chunk| Chunk::Number(Box::new(chunk)))
                }
                Form::Text => reader.get_column_page_reader(leaf).map(|pages| {
                    Chunk::Text(Box::new(TextChunk::new(pages, schema.column(leaf).max_def_level() > 0)))
                }),
            };
            chunk.map(Some).map_err(|why| fail(column, why))
        };
        let chunks = COLUMNS.iter().map(chunk).collect::<Result<Vec<_>, Error>>()?;
        let rows = self.file.metadata().row_group(self.group).num_rows();
        let (narrow, wide, levels) = Default::default();
        Ok(Group { rows_left: usize::try_from(rows).unwrap_or(0), chunks, narrow, wide, levels })
    }
}

fn corrupt(group: usize, column: &Column, why: ParquetError) -> Error {
    Error::Corrupt { group, column: column.name.into(), why: why.to_string() }
}

/// Parquet's reader trusts the footer about where a column chunk is, and panics where that cannot be.
fn check_places(footer: &ParquetMetaData, length: u64) -> Result<(), Error> {
    for (group, row_group) in footer.row_groups().iter().enumerate() {
        for chunk in row_group.columns() {
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let size = chunk.compressed_size();
            let end = u64::try_from(start)
                .ok()
                .zip(u64::try_from(size).ok())
                .and_then(|(start, size)| start.checked_add(size));
            if end.is_none_or(|end| end > length) {
                let why = format!("{size} bytes at {start}, in a file of {length} bytes");
                return Err(Error::Corrupt { group, column: chunk.column_path().string(), why });
            }
        }
    }
    Ok(())
}

/// Fills the columns of one batch.
struct Cells<'a> {
    group: &'a mut Group,
    texts: &'a mut Texts,
    rows: usize,
    group_index: usize,
}

impl Cells<'_> {
    fn check(&self, column: &Column, found: usize) -> Result<(), Error> {
        let rows = self.rows;
        if found == rows {
            return Ok(());
        }
        let why = format!("{rows} more rows expected, {found} found");
        Err(Error::Corrupt { group: self.group_index, column: column.name.into(), why })
    }
}

impl Visit for Cells<'_> {
    fn number<T: Number>(
        &mut self,
        column: &'static Column,
        none: T,
        cells: &mut Vec<T>,
    ) -> Result<(), Error> {
        let (rows, at) = (self.rows, self.group_index);
        let Group { chunks, narrow, wide, levels, .. } = &mut *self.group;
        let found = match &mut chunks[column.position()] {
            None => return Ok(()),
            Some(Chunk::Number(chunk)) => match &mut **chunk {
                ColumnReader::Int32ColumnReader(reader) => read(reader, rows, narrow, levels)
                    .and_then(|found| fill(narrow, levels, T::BITS == 64, none, cells).map(|()| found)),
                ColumnReader::Int64ColumnReader(reader) => read(reader, rows, wide, levels)
                    .and_then(|found| fill(wide, levels, T::BITS < 64, none, cells).map(|()| found)),
                _ => Err(ParquetError::General("not a column of whole numbers".into())),
            },
            Some(_) => {
                cells.resize(rows, none);
                Ok(rows)
            }
        };
        self.check(column, found.map_err(|why| corrupt(at, column, why))?)
    }

    fn text(&mut self, column: &'static Column, none: u32, cells: &mut Vec<u32>) -> Result<(), Error> {
        let found = match &mut self.group.chunks[column.position()] {
            None => return Ok(()),
            Some(Chunk::Text(chunk)) => chunk
                .read(self.rows, self.texts.table_mut(column.name), cells)
                .map_err(|why| corrupt(self.group_index, column, why))?,
            Some(_) => {
                cells.resize(self.rows, none);
                self.rows
            }
        };
        self.check(column, found)
    }
}

type Parsed<T> = Result<T, ParquetError>;

/// Decodes `rows` values; `levels` stays empty when the column cannot be null.
fn read<P: DataType>(
    reader: &mut ColumnReaderImpl<P>,
    rows: usize,
    values: &mut Vec<P::T>,
    levels: &mut Vec<i16>,
) -> Parsed<usize> {
    values.clear();
    levels.clear();
    let (mut done, mut left) = (0, rows);
    while left > 0 {
        let (found, _, _) = reader.read_records(left, Some(levels), None, values)?;
        if found == 0 {
            break;
        }
        (done, left) = (done + found, left - found);
    }
    Ok(done)
}

/// Converts decoded values to cells, putting `none` where a level says null. A column that another program
/// stored in another width is `foreign`, and its values must fit.
#[inline]
fn fill<P: Copy + Into<i64>, T: Number>(
    values: &[P],
    levels: &[i16],
    foreign: bool,
    none: T,
    cells: &mut Vec<T>,
) -> Parsed<()> {
    if foreign && let Some(&value) = values.iter().find(|&&value| T::try_from(value.into()).is_err()) {
        return Err(ParquetError::General(format!("{} does not fit in {} bits", value.into(), T::BITS)));
    }
    if levels.is_empty() || levels.len() == values.len() {
        cells.extend(values.iter().map(|&value| T::unpack(value.into())));
        return Ok(());
    }
    let mut values = values.iter();
    cells.extend(levels.iter().map(|&level| match level {
        0 => none,
        _ => values.next().map_or(none, |&value| T::unpack(value.into())),
    }));
    Ok(())
}
